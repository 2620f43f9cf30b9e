"""Circuits whose control graph has no loop: convex section by section; the same answers as the general way."""

from __future__ import annotations

import pytest
from judge import agrees

import circuitsim
from circuitsim.controlled.verdict import Uniqueness
from circuitsim.errors import NoSteadyStateError

BUFFERED = """three sections, one of them with a loop of diodes and a floating node
V1 in 0 2
R1 in a 1k
R2 a 0 1k
D1 a b
D2 b c
R3 b 0 2k
C1 c 0 1u
E1 p 0 a 0 3
R4 p q 1k
D3 q 0
D4 q 0
G1 q 0 b 0 1m
E2 r p q b -2
R5 r s 1k
R6 s 0 1k
H1 t 0 R5 100
R7 t r 1k
"""


def test_sections_are_solved_one_after_the_other() -> None:
    point = circuitsim.solve(circuitsim.loads(BUFFERED))
    assert point.solver["name"] == "sections" and point.certificate.certified
    a = 2.0 * (2e3 * 1e3 / 3e3) / (1e3 + 2e3 * 1e3 / 3e3)
    assert point["a"] == point["b"] == pytest.approx(a)
    assert point["p"] == pytest.approx(3.0 * a) and point["q"] == 0.0
    assert point["r"] == pytest.approx(3.0 * a + 2.0 * a)
    assert point["t"] == pytest.approx(100.0 * point["r"] / 2e3)
    assert not point.unique[point.circuit.element_index("D3")]
    assert point.uniqueness is Uniqueness.UNKNOWN


def test_a_chain_is_unique_and_agrees_with_exact_arithmetic() -> None:
    from exact_controlled import all_points

    cards = ["V0 o0 0 1"]
    for k in range(1, 6):
        cards += [
            f"RA{k} o{k - 1} m{k} {k}k",
            f"RB{k} m{k} 0 1k",
            f"D{k} m{k} d{k}",
            f"RC{k} d{k} 0 3k",
            f"E{k} o{k} 0 d{k} m{k} {-4 * k}",
        ]
    circuit = circuitsim.loads("\n".join(["chain", *cards, ""]))
    point, exact = circuitsim.solve(circuit), all_points(circuit)
    assert point.uniqueness is Uniqueness.UNIQUE
    assert exact is not None and len(exact.points) == 1 and agrees(point, *exact.points[0])


def test_a_section_without_steady_state_names_its_own_elements() -> None:
    with pytest.raises(NoSteadyStateError) as caught:
        circuitsim.solve(circuitsim.loads("none\nV1 a 0 1\nE1 b 0 a 0 1\nI1 0 c 1m\nD1 b c\n"))
    assert {"I1"} <= set(caught.value.elements) and "c" in caught.value.nodes
