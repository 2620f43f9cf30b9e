"""Random circuits of each kind against independent answers, a minute in all; `benchmarks/campaign.py` goes on."""

import sys
from pathlib import Path

import pytest
from judge import Answer

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import campaign

COUNTS = {
    "points": 600,
    "large": 40,
    "values": 80,
    "devices": 150,
    "controlled": 50,
    "hard": 200,
    "tables": 20,
    "waveforms": 10,
    "ac": 60,
    "tolerances": 12,
}
"""Circuits of each kind, unless the seconds are over."""

SECONDS = 60.0 / len(COUNTS)

SEEN = {"points": 10, "large": 10, "values": 10, "controlled": 4, "hard": 5, "tolerances": 2}
"""Different answers that a share of circuits must show, so that the comparison is not empty."""


@pytest.mark.parametrize("kind", COUNTS)
def test_random_circuits(kind: str) -> None:
    found = campaign.run(kind, range(4, 4 + COUNTS[kind]), SECONDS)
    assert found.wrong == {} and found.answers.total()
    if found.answers.total() == COUNTS[kind]:
        assert len(found.answers) >= SEEN.get(kind, 1)
    if kind == "hard":
        assert not found.answers[Answer.MISSED.value] and not found.answers[Answer.SKIPPED.value]


def test_circuits_that_were_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Net currents of loops that differ by less than their rounding, loops of sources and shorts without any, and a
    diode whose current changes its sign when a sum of sources is closed."""
    assert campaign.run("points", range(12_438_812, 12_438_813), SECONDS).wrong == {}
    assert campaign.run("values", range(12_301_259, 12_301_260), SECONDS).wrong == {}
    monkeypatch.setattr("circuitsim.analysis.convex.small_circuit_solver", lambda *_: "left to the large driver")
    assert campaign.run("values", range(5_133, 5_134), SECONDS).wrong == {}


def test_the_program_names_its_kinds_and_counts(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["campaign.py", "points", "--count", "10", "--start", "3", "--step", "10"])
    assert campaign.main() == 0
    assert "| 3 … | 10 | 0 | shorts 10 |" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["campaign.py", "pionts"])
    with pytest.raises(SystemExit):
        campaign.main()
    assert "no kind 'pionts'" in capsys.readouterr().err
