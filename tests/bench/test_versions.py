"""The comparison of two versions: circuits that both read alike, cases, rows with failures."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import circuitsim

ROOT = Path(__file__).parents[2]


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> dict[str, ModuleType]:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return {name: importlib.import_module(name) for name in ("version_circuits", "versions")}


def test_circuits_are_deterministic_and_read_in_the_order_of_their_cards(scripts: dict[str, ModuleType]) -> None:
    made = scripts["version_circuits"]
    for family in made.FAMILIES:
        cards = made.make(family, 40)
        assert cards.text == made.make(family, 40).text
        circuit = circuitsim.loads(cards.text)
        assert list(circuit.names) == cards.names
        diodes = np.array([name[0] == "D" for name in cards.names])
        assert (circuit.arrays().value[~diodes] == cards.value[~diodes]).all()
        op = circuitsim.solve(circuit)
        assert op.certificate.certified
        if diodes.any():
            assert (op.currents[diodes] > 0.0).any()


def test_cases_share_processes_by_family(scripts: dict[str, ModuleType]) -> None:
    groups = scripts["versions"].groups
    assert groups("grid,drn,ladder:7", [100, 10_000]) == [["grid:100", "grid:10000"], ["drn:100"], ["ladder:7"]]
    assert groups("layered", [100]) == [["layered:xs", "layered:2h"]]
    with pytest.raises(SystemExit, match="no case is called 'torus'"):
        groups("torus", [100])


def test_rows_have_ratios_of_neighbours_and_failures_with_their_text(
    scripts: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([0.004, 0.002, 0.001, 0.003, 0.005, 0.001])  # old, new, new, old, old, new

    def fake(tree: Path, cases: list[str], budget: float) -> tuple[dict, dict]:
        seconds = next(answers)
        return {"a:1": {"cold": seconds}}, {"b:1": "out of time"} if tree.name == "new" else {}

    monkeypatch.setattr(scripts["versions"], "measured", fake)
    rows = scripts["versions"].in_turns([Path("old"), Path("new")], ["a:1", "b:1"], 3, 0.1)
    assert rows == ["| a:1 | cold | 4 | 1 | 3.00 | 2.00 … 5.00 | 3.00 |", "| b:1 | failed (new): out of time | | | | |"]


def test_another_version_than_the_one_named_is_refused(scripts: dict[str, ModuleType], tmp_path: Path) -> None:
    (tmp_path / "circuitsim").mkdir()
    (tmp_path / "circuitsim" / "__init__.py").write_text("raise ImportError('not this one')\n")
    times, failed = scripts["versions"].measured(tmp_path, ["grid:10"], 0.0)
    assert times == {} and failed == {"grid:10": "ImportError: not this one"}
