"""Alternating directions, which tell most conducting diodes before the first iteration."""

from __future__ import annotations

import pytest

import circuitsim
from circuitsim.bench.families import make
from circuitsim.circuit.elements import DIODE
from circuitsim.engine.small.active_set import MANY


@pytest.mark.parametrize("unknowns", [150, 400])
def test_few_iterations_follow(unknowns: int) -> None:
    circuit = make("grid", unknowns, 0)
    point = circuitsim.solve(circuit)
    assert (circuit.arrays().kind == DIODE).sum() >= MANY
    assert 2 <= int(str(point.solver["iterations"])) <= 5
