"""Where a solve begins: with no conducting diode, with those of a point given, or with those of the sample before."""

from __future__ import annotations

import numpy as np
import pytest

import circuitsim
from circuitsim.analysis.small_circuit import LazyOperatingPoint


def test_currents_of_samples_beside_a_nanoohm() -> None:
    """1 nΩ between kiloohms: Ohm's law by hand is the reference."""
    circuit = circuitsim.loads("t\nV1 a 0 5\nR1 a b 1n\nR2 b c 1k\nD1 c d\nR3 d 0 1k\nD2 0 c\n")
    solver = circuitsim.batched(circuit, ["V1"])
    x = np.array([[5.0], [7.0], [-2.0], [0.5], [0.0]])
    found = solver.solve(x)
    assert found.certified.all()
    expected = np.where(x[:, 0] > 0.0, x[:, 0] / 2e3, x[:, 0] / 1e3)
    assert found.current("R1") == pytest.approx(expected, rel=1e-9)
    assert found.current("R3") == pytest.approx(np.maximum(expected, 0.0), rel=1e-9, abs=0.0)


def test_a_dead_end_behind_a_blocking_diode_carries_exactly_nothing() -> None:
    """A triangle of resistors that only a blocking diode joins to a second node of the circuit."""
    circuit = circuitsim.loads(
        "t\nV1 a 0 1.1\nR1 a b 3.3k\nR2 b 0 0.7k\nR3 b p 1.7\nR4 p q 2.9\nR5 q r 1.3k\nR6 r p 7.7\nD1 r a\nD2 0 q\n"
    )
    kept = circuitsim.prepared(circuit)
    for volts in (1.1, 0.3, 1e3 / 7.0):
        point = kept.solve({"V1": volts})
        assert isinstance(point, LazyOperatingPoint)
        for name in ("R3", "R4", "R5", "R6", "D1", "D2"):
            assert point.current(name) == 0.0
        assert point["p"] == point["q"] == point["r"] == point["b"]
