"""Currents around loops of conducting diodes: of all that satisfy Kirchhoff's law, those of least norm."""

import numpy as np
import pytest
from scipy.optimize import nnls

import circuitsim


def tangled(seed: int) -> circuitsim.Circuit:
    """A few nodes, each with a resistor to ground and a current, and more diodes than a forest could have."""
    rng, n = np.random.default_rng(seed), 7
    cards = [
        f"R{k} n{k} 0 {rng.choice([1, 2, 1000])}\nI{k} 0 n{k} {rng.choice([-1.0, 0.0, 1.0, 1e-6])}" for k in range(n)
    ]
    ends = [rng.choice(n, 2, replace=False) for _ in range(14)]
    return circuitsim.loads("\n".join(["t", *cards, *(f"D{k} n{a} n{c}" for k, (a, c) in enumerate(ends)), ""])).circuit


def test_currents_that_are_not_unique_have_the_least_norm() -> None:
    compared = 0
    for seed in range(60):
        point = circuitsim.solve(tangled(seed))
        assert [w.kind for w in point.warnings].count("nonunique-current") == (not point.unique.all())
        free = np.flatnonzero(~point.unique)
        if free.size == 0:
            continue
        _, first, second, _, n = point.circuit.arrays()
        incidence = np.zeros((n, free.size))
        incidence[first[free], np.arange(free.size)] += 1.0
        incidence[second[free], np.arange(free.size)] -= 1.0
        own = point.currents[free]
        equations, right = np.vstack([1e4 * incidence, np.eye(free.size)]), np.append(1e4 * incidence @ own, 0.0 * own)
        assert own == pytest.approx(nnls(equations, right)[0], abs=1e-6), seed
        compared += 1
    assert compared > 20
