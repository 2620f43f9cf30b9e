"""What `auto` picks, by size and by what the circuit leaves open, and that --explain says so."""

from __future__ import annotations

import pytest

import circuitsim
from circuitsim.analysis.explain import explain
from circuitsim.analysis.small_circuit import LARGEST, TOO_DENSE, TOO_LARGE, WHY
from circuitsim.bench.families import make
from circuitsim.cli import main

RECTIFIER = "t\nV1 1 0 1\nR1 1 2 1\nD1 2 3\nR2 3 0 1\n"
LEFT = "active-set engine: sources close a loop, or only blocking diodes hold some potential"


@pytest.mark.parametrize(
    ("deck", "why"),
    [
        (RECTIFIER, WHY),
        (RECTIFIER + "D2 2 3\n", f"{WHY}; conducting diodes close loops, whose currents are those of least norm"),
        (RECTIFIER + "V2 1 0 1\n", LEFT),
        (RECTIFIER + "D2 4 3\nD3 4 2\n", LEFT),
    ],
)
def test_the_kernel_takes_what_it_can_and_hands_on_the_rest(deck: str, why: str) -> None:
    point = circuitsim.solve(circuitsim.loads(deck))
    assert point.solver["why"] == why and point["3"] == 0.5


def test_the_size_decides() -> None:
    for unknowns, why in ((LARGEST - 150, WHY), (LARGEST + 150, TOO_LARGE)):
        assert str(circuitsim.solve(make("ladder", unknowns, 0)).solver["why"]).startswith(why)


def test_so_does_fill() -> None:
    assert circuitsim.solve(make("drn", 700, 0)).solver["why"] == TOO_DENSE


def test_a_method_asked_for_by_name_is_taken() -> None:
    point = circuitsim.solve(circuitsim.loads("t\nV1 1 0 1\nR1 1 2 1\nD1 2 0\n"), solver="coordinate-descent")
    assert point.solver["name"] == "coordinate-descent" and point.solver["why"] == "asked for by name"


def test_the_text_counts_what_matters() -> None:
    text = explain(circuitsim.solve(circuitsim.loads(RECTIFIER + "D2 3 0\n")))
    assert text[0] == "circuit: 4 nodes, 5 elements; 2 unknown potentials once sources and shorts join nodes"
    assert text[1].startswith("diodes: 2, 1 of them with an end at a fixed potential; 2 conduct, 1 of these between")
    assert text[2] == f"method: active-set ({WHY})"


def test_the_command_says_it_on_stderr_and_keeps_its_output(capsys: pytest.CaptureFixture) -> None:
    assert main(["solve", "netlists/rectifier-half-wave.cir", "--explain"]) == 0
    explained = capsys.readouterr()
    assert main(["solve", "netlists/rectifier-half-wave.cir"]) == 0
    plain = capsys.readouterr()
    assert explained.out == plain.out and plain.err == "" and "method: active-set (" in explained.err
