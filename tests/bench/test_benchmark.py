"""The benchmark measures what it says: deterministic circuits, verified errors, lasting failures, resuming."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import circuitsim
from circuitsim.bench import runner
from circuitsim.bench.families import FAMILIES, make
from circuitsim.bench.runner import OURS, expand, verified_error
from circuitsim.circuit.elements import DIODE
from circuitsim.cli import main
from circuitsim.errors import UsageError


@pytest.mark.parametrize("family", FAMILIES)
def test_families_are_deterministic_and_have_a_certified_steady_state(family: str) -> None:
    first, second = make(family, 150, 3), make(family, 150, 3)
    assert [column.tobytes() for column in first.arrays()[:4]] == [column.tobytes() for column in second.arrays()[:4]]
    op = circuitsim.solve(first)
    conducting = (op.currents > 0.0)[first.arrays().kind == DIODE]
    if FAMILIES[family].linear:
        assert conducting.size == 0
    else:
        assert 0.1 <= conducting.mean() <= 0.9


def test_unknown_names_are_refused() -> None:
    with pytest.raises(UsageError, match="no family is called 'torus'; known: grid"):
        make("torus", 100, 0)
    with pytest.raises(UsageError, match="no suite is called 'huge'; there are small, full"):
        list(runner.cases("huge", [OURS], 0))
    with pytest.raises(UsageError, match="--against 'gurobi': known are cvxpy"):
        expand("gurobi")


def test_a_wrong_answer_is_found_out_and_the_right_one_is_not() -> None:
    circuit = make("grid", 60, 1)
    voltages = circuitsim.solve(circuit).voltages
    assert verified_error(circuit, voltages + 5.0) < 1e-12
    wrong = voltages.copy()
    wrong[7] += 1e-3
    assert verified_error(circuit, wrong) > 1e-6
    assert not np.isfinite(verified_error(circuit, wrong * np.nan))


def test_a_competitor_that_lies_is_a_failure_not_a_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    def liar(circuit: circuitsim.Circuit, tolerance: float | None) -> Callable[[None], np.ndarray]:
        return lambda value: np.linspace(0.0, 1.0, circuit.arrays().n_nodes)

    monkeypatch.setattr("circuitsim.bench.runner.create", lambda name: liar)
    row = runner.measure(runner.Case("grid", 30, 0, "cvxpy:PIQP"), 0.01)
    assert row["failure"].startswith("verified error") and "cold" not in row


def test_runs_resume_even_after_a_line_was_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[runner.Case] = []

    def fake(case: runner.Case, limit: float, budget: float) -> dict[str, object]:
        measured.append(case)
        assert (limit > 100.0) is (case.competitor == OURS)  # kernels may have to be compiled first
        return case._asdict() | {"failure": "out of time (1 s)"} if case.competitor != OURS else case._asdict() | TIMES

    monkeypatch.setattr(runner, "_measured", fake)
    wanted = [runner.Case("grid", size, 0, name) for size in (10, 100) for name in (OURS, "cvxpy:OSQP")]
    lines: list[str] = []
    rows = runner.run(wanted, tmp_path, 1.0, 1.0, lines.append)
    # The larger case of a competitor that ran out of time is not tried.
    assert [case.competitor for case in measured] == [OURS, "cvxpy:OSQP", OURS] and len(lines) == 4
    assert rows[-1]["failure"] == "not tried: out of time at a smaller size"
    path = tmp_path / runner.RESULTS
    path.write_text(path.read_text()[:-40])
    measured.clear()
    runner.run(wanted, tmp_path, 1.0, 1.0, lines.append)
    assert measured == [] or measured == [wanted[-1]]
    assert len(runner.finished(tmp_path)) == 4


TIMES = {
    "cold": 0.002,
    "prepared": 0.0005,
    "batch": 0.0001,
    "error": 1e-16,
    "memory": 50.0,
    "nodes": 102,
    "diodes": 30,
    "conducting": 0.5,
}


def test_the_command_measures_in_processes_and_writes_its_report(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    words = [
        "bench",
        "--against",
        "cvxpy-nodal:PIQP",
        "--max-unknowns",
        "10",
        "--budget",
        "0.01",
        "--out",
        str(tmp_path),
    ]
    # One family is enough: the others are here already.
    skipped = [
        {"family": f, "unknowns": 10, "seed": 0, "competitor": c, "failure": "skipped by the test"}
        for f in FAMILIES
        if f != "grid"
        for c in (OURS, "cvxpy-nodal:PIQP")
    ]
    (tmp_path / runner.RESULTS).write_text("".join(json.dumps(row) + "\n" for row in skipped))
    assert main(words) == 0
    assert "| grid | 10 |" in capsys.readouterr().out
    assert (tmp_path / "report.md").exists()
    assert (tmp_path / "times.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.ngspice
def test_ngspice_is_read_and_is_off_by_its_diodes() -> None:
    import shutil

    if shutil.which("ngspice") is None:
        pytest.skip("the program ngspice is not installed")
    row = runner.measure(runner.Case("grid", 30, 0, "ngspice"), 0.01)
    assert "failure" not in row and 0.0 < row["off"] < 0.1


@pytest.mark.parametrize("line", [b"\xff", b"[]", b"3", b"null", b"{}", b"[" * 50_000])
def test_lines_that_are_no_rows_are_left_out(tmp_path: Path, line: bytes) -> None:
    row = {"family": "grid", "unknowns": 10, "seed": 0, "competitor": "piqp", "failure": "out of time"}
    wrong = {**row, "family": ["grid"]}
    lines = [line, json.dumps(row).encode(), json.dumps(wrong).encode(), line]
    (tmp_path / runner.RESULTS).write_bytes(b"\n".join(lines))
    assert list(runner.finished(tmp_path).values()) == [row]
