"""Random circuits with controlled sources against enumeration of all states in exact arithmetic."""

from __future__ import annotations

from collections import Counter

import pytest
from judge import Answer, judged
from random_controlled import random_circuit

import circuitsim


@pytest.mark.parametrize("block", range(4))
def test_every_answer_is_right(block: int) -> None:
    found = Counter(judged(random_circuit(seed)) for seed in range(60 * block, 60 * block + 60))
    assert found[Answer.UNIQUE] >= 10 and found[Answer.NONE] >= 5


def test_larger_circuits() -> None:
    found = Counter(judged(random_circuit(seed, 40, 10)) for seed in range(10_000, 10_010))
    assert found[Answer.UNIQUE] >= 1


def test_rounding_of_earlier_blocks_decides_nothing() -> None:
    """A diode between two held nodes at 0 V, one behind a gain of 1e5: rounding was taken for a contradiction."""
    circuit = random_circuit(60_682, 25, 8)
    point = circuitsim.solve(circuit)
    assert point.certificate.certified and abs(point.voltages).max() == 2.0
