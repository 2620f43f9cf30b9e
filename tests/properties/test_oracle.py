"""The exact oracle: its search against enumeration on small circuits, and Kirchhoff's laws on large ones."""

from __future__ import annotations

from fractions import Fraction

import pytest
from closing import closed_edges
from exact import Oracle
from wide_circuits import LARGE, Regime, draw


@pytest.mark.parametrize("regime", Regime)
def test_search_agrees_with_enumeration(regime: Regime) -> None:
    """Where all sets of diodes can be tried: the same ranges, flags, energy and unique currents."""
    compared = 0
    for seed in range(60):
        sketch = draw(regime, seed, (2, 7))
        oracle = Oracle(sketch.n, closed_edges(sketch))
        if len(oracle.diodes) > 8:
            continue
        compared += 1
        searched, tried = oracle.solve(), oracle.enumerated()
        assert (tried is None) == (oracle.infeasible() or oracle.unbounded())
        assert (searched is None) == (tried is None)
        if searched is None or tried is None:
            continue
        assert searched.interval == tried.interval
        assert searched.unique == tried.unique
        assert searched.energy == tried.energy
        assert all(i == j for i, j, only in zip(searched.current, tried.current, tried.unique) if only)
    assert compared >= 30


@pytest.mark.parametrize("regime", Regime)
def test_laws_on_large_circuits(regime: Regime) -> None:
    """Every law of elements and nodes holds exactly, without a guess and from a wrong one."""
    for seed in range(3):
        sketch = draw(regime, seed, LARGE)
        oracle = Oracle(sketch.n, closed_edges(sketch))
        exact, other = oracle.solve(), oracle.solve(range(0, len(oracle.diodes), 2))
        if exact is None or other is None:
            assert exact is other
            assert oracle.infeasible() or oracle.unbounded()
            continue
        assert (exact.interval, exact.unique, exact.energy) == (other.interval, other.unique, other.energy)
        net = [Fraction(0)] * sketch.n
        for (letter, a, b, value), i in zip(oracle.edges, exact.current):
            drop = exact.voltage[a] - exact.voltage[b]
            net[a] += i
            net[b] -= i
            if letter == "D":
                assert i >= 0
                assert drop <= 0
                assert i * drop == 0
            elif letter == "I":
                assert i == value
            elif letter in "VL" or (letter == "R" and value == 0):
                assert drop == (value if letter == "V" else 0)
            elif letter == "R":
                assert drop == value * i
        assert not any(net)
