"""Tables with level pieces beside controlled sources, against enumeration of all pieces in exact arithmetic."""

from __future__ import annotations

from collections import Counter

import pytest
from corpus import controlled, piecewise_model
from exact_controlled import Count, all_points
from hard_circuits import hard_circuit
from judge import Answer, agrees, judged
from level_tables import level_table

import circuitsim
from circuitsim import Circuit
from circuitsim.controlled.verdict import Uniqueness


def made(seed: int) -> Circuit:
    """Ordinary amplifiers for odd seeds, circuits that nothing makes well posed for even ones."""
    if seed % 2:
        return circuitsim.loads(controlled(seed, piecewise_model)).circuit
    return hard_circuit(seed, 6, 3, level_table)


def test_every_answer_is_right() -> None:
    """Ordinary amplifiers with exactly one operating point are all solved, whatever can be proven about others. Of two
    op-amps with positive feedback through open devices, 1e97 and 1e107 V beside sources of 5 V were shown."""
    found = Counter[Answer]()
    for seed in (*range(240), 501, 831):
        circuit = made(seed)
        answer = judged(circuit)
        found[answer] += 1
        if seed % 2 and answer is Answer.MISSED:
            assert circuitsim.solve(circuit).uniqueness is Uniqueness.UNKNOWN
    assert found[Answer.UNIQUE] >= 100 and found[Answer.UNKNOWN] >= 5


DECKS = {
    "a gain of 1e5 beside an open device": "V1 n1 0 5\nR2 n2 n1 1k\nR3 n3 R3x 100k\nR4 n4 n3 1k\nR5 n5 0 100k\n"
    "D0 n4 n3 m0\nD1 n1 n4 m1\nD2 n2 n5 m2\nD4 n5 n4 m3\nE0 n2 0 n4 n3 -1e5\nVR3 R3x 0 0\nH1 n3 0 VR3 -50\n"
    ".model m0 D(vfwd=1.774 ron=25.28 vrev=47.04 rrev=0.012)\n.model m1 D(vfwd=0.772 ron=0.0191)\n"
    ".model m2 PWL(1.01883 0 1.18295 0 3.95946 0.3359m)\n.model m3 D(vfwd=0.72 ron=0.00127)\n",
    "level up to a breakpoint, rising behind it": "V1 n1 0 1\nR2 n2 n1 4.7k\nR3 n3 0 100k\nR4 n4 R4x 1k\nR5 n5 n2 100\n"
    "R7 n7 n1 1k\nR10 n10 n7 10k\nR11 n11 R11x 1k\nRX0 n7 n3 4.7k\nD0 n10 n5 m0\nD1 n5 n4 m1\nVR4 R4x 0 0\n"
    "F0 n10 n11 VR4 -1e5\nE1 n7 0 n5 n11 -10\nVR11 R11x 0 0\nH2 n10 0 VR11 -200\n"
    ".model m0 PWL(-8.618 0 -3.14 0.05553 -2.9 0.05553 1.943 0.05556)\n"
    ".model m1 PWL(-0.651 0 -0.373 0 6.378 87.7u 10.78 87.7u)\n",
    "an op-amp that holds a device at its breakpoint": "V1 n1 0 -5\nR2 n2 0 4.7k\nR3 n3 0 10k\nR4 n4 n2 10k\n"
    "D1 n4 0 m1\nD2 n3 n2 m2\nI1 n3 n1 -1m\nE0 n3 0 OPAMP n2 0\n.model m1 D(vfwd=0.8435 ron=6.776)\n"
    ".model m2 PWL(-6.04 -0.0844 -4.64 -1.11u -4.40692 0)\n",
    "no current anywhere": "V1 n1 0 5\nR2 n2 n1 100k\nR3 n3 0 10k\nR4 n4 n1 10k\nD0 n4 n2 m0\nD1 n2 n3 m1\n"
    "E0 n3 0 n3 0 -0.5\n.model m0 PWL(-6.25 0 -4.85 0)\n.model m1 PWL(-6.6 0 -6.3 0 -5.4 0 -5 0)\n",
}


@pytest.mark.parametrize("name", DECKS)
def test_currents_of_level_pieces_are_exact(name: str) -> None:
    """Currents of 1e-25 A, and of 1e-90 A, are noise beside amperes and beside volts over kiloohms."""
    circuit = circuitsim.loads(f"t\n{DECKS[name]}")
    exact, point = all_points(circuit), circuitsim.solve(circuit)
    assert exact is not None and exact.count is Count.UNIQUE and point.certificate.certified
    assert agrees(point, *exact.points[0])
