"""Random circuits with controlled sources against enumeration of all states in exact arithmetic."""

from __future__ import annotations

from collections import Counter

import pytest
from judge import Answer, judged
from random_controlled import random_circuit

import circuitsim
from circuitsim.controlled.verdict import Uniqueness


@pytest.mark.parametrize("block", range(4))
def test_every_answer_is_right(block: int) -> None:
    found = Counter(judged(random_circuit(seed)) for seed in range(60 * block, 60 * block + 60))
    assert found[Answer.UNIQUE] >= 10 and found[Answer.NONE] >= 5


def test_larger_circuits() -> None:
    found = Counter(judged(random_circuit(seed, 40, 10)) for seed in range(10_000, 10_010))
    assert found[Answer.UNIQUE] >= 1


def test_a_point_that_is_singular_but_for_rounding_is_no_proof_of_several() -> None:
    """Its second point lies at 5e16 V for exact decimals, at 1e17 V for their doubles: unknown."""
    point = circuitsim.solve(random_circuit(170_027, 40, 10))
    assert point.uniqueness is Uniqueness.UNKNOWN and point.other is None
    assert abs(point.voltages).max() == 5.0


def test_rounding_of_earlier_blocks_decides_nothing() -> None:
    """A diode between two held nodes at 0 V, one behind a gain of 1e5: rounding was taken for a contradiction."""
    circuit = random_circuit(60_682, 25, 8)
    point = circuitsim.solve(circuit)
    assert point.certificate.certified and abs(point.voltages).max() == 2.0


def test_a_row_that_only_rounding_fills_is_no_proof_of_unique() -> None:
    """An op-amp of gain one whose input carries no current sets the current of a diode, and no voltage: an open one."""
    point = circuitsim.solve(random_circuit(412_869, 40, 10))
    assert point.certificate.certified and point.uniqueness is Uniqueness.UNKNOWN
