"""Waveforms at several values of elements and parameters, against closed forms and single runs."""

from __future__ import annotations

import json
import math
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from circuitsim import transient
from circuitsim.cli import main
from circuitsim.errors import UsageError
from circuitsim.netlist import loads
from circuitsim.time_domain import TransientSweep, stepped, transient_sweep

CHARGING = """charging
V1 in 0 5
R1 in out {r}
C1 out 0 1u ic=0
.param r=1k double={2*r}
.tran 100u 5m uic
.meas tran half WHEN v(out)=2.5
.meas tran late FIND v(out) AT=4m
"""
RECTIFIER = """half-wave rectifier
.param c=10u
V1 in 0 SIN(0 10 50)
D1 in out
C1 out 0 {c}
R1 out 0 1k
.tran 1m 40m
.step param c list 5u 10u
.meas tran ripple PP v(out) FROM=20m
"""
CLOSING = """a switch with and without hysteresis
V1 in 0 10
R1 in c 1k
C1 c 0 1u ic=0
S1 c 0 c 0 sw
.param h=1
.model sw SW(vt=5 vh={h} ron=1 roff=1g)
.tran 100u 2m uic
"""


def charged(times: np.ndarray, seconds: np.ndarray) -> np.ndarray:
    return 5.0 * (1.0 - np.exp(-times / seconds))


def test_against_closed_forms() -> None:
    """Parameters, those that follow them in expressions of columns, elements and the temperature, first fastest."""
    deck = loads(CHARGING)
    found = transient_sweep(deck, {"r": [1e3, 2e3], "C1": [1e-6, 2e-6, 3e-6]}, "v(out) {v(out)*double}")
    waves, measured = found.waves, found.measured
    assert waves.shape == (51, 2, 3) and measured.shape == (2, 3)
    seconds = waves["r"] * waves["C1"]
    assert waves["v(out)"] == pytest.approx(charged(waves["time"], seconds), abs=1e-12)
    assert waves.columns["{v(out)*double}"] == pytest.approx(2.0 * waves["r"] * waves["v(out)"], rel=1e-12)
    assert measured["r"].tolist() == [1e3, 2e3] * 3
    seconds = measured["r"] * measured["C1"]
    assert measured["half"] == pytest.approx(seconds * math.log(2.0), rel=1e-11)
    assert measured["late"] == pytest.approx(charged(np.full(6, 4e-3), seconds), rel=1e-11)
    assert measured.grid("late").shape == (2, 3)


def test_one_run_is_that_of_the_deck() -> None:
    deck = loads(RECTIFIER)
    found, run = transient_sweep(deck, {}, "v(out) i(D1)"), transient(deck)
    assert found.waves["v(out)"].tobytes() == run.voltage("out").tobytes()
    assert found.waves["time"].tobytes() == run.times.tobytes()
    assert found.events.columns[0] == [event.time for event in run.events]
    assert len(found.measured) == 1


def same(a: TransientSweep, b: TransientSweep) -> bool:
    return all(a.waves.columns[name].tobytes() == b.waves.columns[name].tobytes() for name in a.waves.columns)


def test_processes_give_the_same_bits() -> None:
    deck = loads(RECTIFIER)
    vary = {"c": [5e-6, 1e-5, 2e-5]}
    assert same(transient_sweep(deck, vary), transient_sweep(deck, vary, workers=2))


def test_a_run_with_an_error_keeps_what_was_before() -> None:
    found = transient_sweep(loads(CLOSING), {"h": [0.0, 1.0]}, "v(c)")
    end = 1e-3 * math.log(2.0)
    waves = found.waves.grid("v(c)")
    times = found.waves.grid("time")[:, 0]
    before = times < end
    assert waves[before, 0] == pytest.approx(10.0 * (1.0 - np.exp(-times[before] / 1e-3)), abs=1e-4)
    assert np.isnan(waves[~before, 0]).all() and not np.isnan(waves[:, 1]).any()
    assert [failure.row for failure in found.measured.failures] == [0]
    assert "hysteresis" in str(found.measured.failures[0].error)
    assert len(found.waves.failures) == np.count_nonzero(~before)


@pytest.mark.parametrize(
    ("deck", "vary", "said"),
    [
        (RECTIFIER, {"V1": [1.0]}, "V1 is a source with a waveform"),
        (CLOSING, {"S1": [1.0]}, "S1 is a switch"),
        (RECTIFIER, {"time": [0.0, 1.0]}, "the time is not varied over runs"),
        (RECTIFIER, {"nothing": [1.0]}, "nothing that can vary"),
        (RECTIFIER, {"R1": np.linspace(1.0, 2.0, 200_000)}, "200,000 runs"),
        (RECTIFIER, {"R1": [-1.0]}, "R1"),
    ],
)
def test_refused(deck: str, vary: dict[str, list[float]], said: str) -> None:
    with pytest.raises(Exception, match=said) as caught:
        transient_sweep(loads(deck), vary)
    assert getattr(caught.value, "exit_code", None) == 2


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main([*words])
    return code, *capsys.readouterr()


def test_tran_and_sweep_run_the_steps_of_a_deck(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "deck.cir"
    path.write_text(RECTIFIER)
    code, out, err = run(capsys, "tran", str(path), "--columns", "v(out)")
    assert code == 0 and len(out.splitlines()) == 1 + 2 * 41
    assert out.startswith("time,c,status,v(out)\n0.0,5e-06,solved,")
    assert err.splitlines()[-2].startswith("measured at c=5e-06: ripple = ")
    assert run(capsys, "sweep", str(path), "--columns", "v(out)") == (0, out, err)
    code, out, _ = run(capsys, "tran", str(path), "--measure", "top MAX v(out)", "--format", "json")
    columns = json.loads(out)["columns"]
    assert columns["top"] == pytest.approx([10.0, 10.0], rel=1e-12)
    assert columns["ripple"][0] > columns["ripple"][1] > 0.0
    code, out, _ = run(capsys, "tran", str(path), "--vary", "R1=500,1k", "--events")
    assert code == 0 and out.startswith("R1,time,error,changed,energy_lost\n500.0,")


def test_tran_shows_all_runs_and_ends_with_3_where_one_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, picture = tmp_path / "deck.cir", tmp_path / "runs.svg"
    path.write_text(CLOSING)
    code, out, err = run(capsys, "tran", str(path), "--vary", "h=0,1", "--columns", "v(c)", "--plot", str(picture))
    assert code == 3 and "1 of 2 runs ended with an error; the first, at h=0: after" in err
    assert len(out.splitlines()) == 1 + 2 * 21 and "not converged" in out
    assert b"</svg>" in picture.read_bytes()


def test_sweep_of_a_deck_over_time_has_no_solver(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "deck.cir"
    path.write_text(RECTIFIER)
    code, out, err = run(capsys, "sweep", str(path), "--solver", "active-set")
    assert (code, out) == (2, "") and "--solver is for operating points" in err


def test_columns_must_be_there() -> None:
    with pytest.raises(UsageError):
        transient_sweep(loads(RECTIFIER), {}, "v(nowhere)")


def test_ended_early_it_has_the_runs_done() -> None:
    deck, vary = loads(CHARGING), {"r": [1e3, 2e3], "V1": [5.0, 6.0, 7.0]}
    whole = transient_sweep(deck, vary, "v(out)")
    found = transient_sweep(deck, vary, "v(out)", progress=lambda done, runs: done == 4)
    n = len(whole.waves) // 6
    assert len(found.measured) == 4 and found.waves.shape == (n, 4)
    assert found.waves["v(out)"].tobytes() == whole.waves["v(out)"][: 4 * n].tobytes()
    assert found.measured["V1"].tolist() == [5.0, 5.0, 6.0, 6.0]


@pytest.mark.parametrize(
    ("deck", "values", "rows", "code"), [(RECTIFIER, "c=5u,10u,20u", 41, 130), (CLOSING, "h=0,1,2", 21, 3)]
)
def test_interrupted_it_shows_the_runs_done(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    deck: str,
    values: str,
    rows: int,
    code: int,
) -> None:
    """A run that failed before the signal is an error still."""
    path = tmp_path / "deck.cir"
    path.write_text(deck)
    real, runs = stepped.run_at, []

    def second_is_interrupted(*task: Any) -> stepped.Run:
        runs.append(task)
        if len(runs) == 2:
            signal.raise_signal(signal.SIGINT)
        return real(*task)

    monkeypatch.setattr(stepped, "run_at", second_is_interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where a shell started it so
    column = "v(out)" if deck is RECTIFIER else "v(c)"
    ended, out, err = run(capsys, "tran", str(path), "--vary", values, "--columns", column)
    signal.signal(signal.SIGINT, before)
    assert ended == code and len(out.splitlines()) == 1 + 2 * rows
    assert "interrupted after 2 runs: what is shown ends there" in err.splitlines()
    assert ("1 of 2 runs ended with an error" in err) is (code == 3)
