"""Random circuits with controlled sources against enumeration of all states in exact arithmetic."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from corpus import controlled
from exact_controlled import Count, all_points
from hard_circuits import hard_circuit
from judge import Answer, judged

import circuitsim
from circuitsim.controlled.verdict import Uniqueness

FOUND = {
    text.split("\n")[0]: circuitsim.loads(text).circuit
    for text in (Path(__file__).parent / "found.cir").read_text(encoding="utf-8").split("\n.end\n")[:-1]
}
"""Random circuits on which the verdict that begins the title needs care."""


@pytest.mark.parametrize("block", range(4))
def test_every_answer_is_right(block: int) -> None:
    decks = [controlled(2 * seed) for seed in range(60 * block, 60 * block + 60)]
    found = Counter(judged(circuitsim.loads(deck).circuit) for deck in decks)
    assert found[Answer.UNIQUE] >= 10 and found[Answer.NONE] >= 5


def test_every_verdict_on_circuits_that_nothing_makes_well_posed_is_right() -> None:
    """Floating parts, singular equations, loops of sources, nine decades, points at breakpoints: none is skipped, and
    each circuit with exactly one operating point is solved and called unique."""
    found = Counter(judged(hard_circuit(seed)) for seed in range(200))
    assert not found[Answer.MISSED] and not found[Answer.SKIPPED]
    assert min(found[answer] for answer in (Answer.UNIQUE, Answer.SEVERAL, Answer.UNKNOWN, Answer.NONE)) >= 4


@pytest.mark.parametrize(
    ("deck", "count", "answer"),
    [
        ("R1 x y 1\nI1 x y 1\nE1 out 0 x 0 2\nR2 out 0 1\n", Count.CONTINUUM, Answer.UNKNOWN),
        (
            "I1 0 n1 1\nR1 n1 0 1\nR4 n4 n2 1\nR8 n1 n6 10\nR9 n6 n2 1\nR10 n1 n3 1\n"
            "V1 n6 n4 0\nEo1 n2 0 OPAMP n4 n6\n",
            Count.CONTINUUM,
            Answer.SINGULAR,
        ),
        (
            "R3 n3 n1 1\nR4 n4 0 .4m\nR7 n5 n7 300k\nR10 n5 n6 1\nR11 n7 0 1\nR12 n2 n7 1\nR14 n3 0 1\nR15 n5 0 1\n"
            "V1 n6 0 -.06\nD1 n4 n5\nD2 n3 n2\nE1 0 n2 n7 n1 40\n",
            Count.SEVERAL,
            Answer.SEVERAL,
        ),
        (
            "R2 n1 0 1\nV1 n1 0 1\nD1 n3 n2\nD2 n2 n1\nD3 n1 n3\n"
            "F1 n3 n2 V1 -1e5\nE1 n1 n2 n2 0 1\nG2 0 n2 n1 n2 -9e5\n",
            Count.NONE,
            Answer.NONE,
        ),
        (
            "R1 n1 n2 .359\nR2 n6 n2 .08\nR5 n1 n6 .007\nRX0 n4 n5 2\nV0 n1 n6 1\nI0 n2 n4 1m\nD0 n4 n5\nD1 n5 n3\n"
            "EU0 0 n2 OPAMP n2 0\n",
            Count.NONE,
            Answer.NONE,
        ),
        ("V1 a 0 1\nR1 a b 1k\nG1 b 0 a b 1m\n", Count.UNIQUE, Answer.SINGULAR),
        ("V1 a 0 .3\nV2 a b .1\nR1 b c 1\nD1 c d\nE1 d 0 a b 2\nG1 c 0 b 0 1\n", Count.UNIQUE, Answer.UNIQUE),
    ],
    ids=[
        "floating part",
        "op-amp with shorted inputs",
        "nine decades",
        "loop of diodes",
        "current into a floating part",
        "decimals",
        "loop in decimals",
    ],
)
def test_verdicts_of_circuits_that_were_judged_wrongly(deck: str, count: Count, answer: Answer) -> None:
    circuit = circuitsim.loads(f"t\n{deck}").circuit
    exact = all_points(circuit)
    assert exact is not None and exact.count is count and judged(circuit) is answer


@pytest.mark.parametrize("title", FOUND)
def test_what_rounding_decides_is_no_proof(title: str) -> None:
    point = circuitsim.solve(FOUND[title])
    assert point.certificate.certified
    if title.startswith("several"):
        assert judged(FOUND[title]) is Answer.SEVERAL
    elif title.startswith("unknown"):
        assert point.uniqueness is Uniqueness.UNKNOWN and point.other is None and abs(point.voltages).max() == 5.0
    elif title.startswith("not unique"):
        assert point.uniqueness is not Uniqueness.UNIQUE
    else:
        assert abs(point.voltages).max() == 2.0
