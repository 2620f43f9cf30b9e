"""Conjugate gradients on graphs that fill in, and circuits whose sets of conducting diodes returned."""

from __future__ import annotations

import numpy as np
import pytest

import circuitsim
from circuitsim.bench.families import make
from circuitsim.circuit.elements import CURRENT, VOLTAGE
from circuitsim.solvers import conjugate, dense


def varied(family: str, unknowns: int, seed: int, factor: float) -> circuitsim.Circuit:
    """A benchmark circuit, its source values changed by up to ± ``factor``."""
    circuit = make(family, unknowns, seed)
    kind, value = circuit.arrays().kind, circuit.arrays().value
    change = np.random.default_rng(0).uniform(1.0 - factor, 1.0 + factor, value.size)
    return circuit.with_column(np.where(np.isin(kind, (VOLTAGE, CURRENT)), value * change, value))


@pytest.mark.parametrize(("family", "unknowns", "seed"), [("grid-scaled", 2000, 2), ("scale-free", 10_000, 0)])
def test_loops_of_conducting_diodes_do_not_make_the_iterations_cycle(family: str, unknowns: int, seed: int) -> None:
    """The first circuits found on which sets of conducting diodes returned."""
    point = circuitsim.solve(varied(family, unknowns, seed, factor=0.1))
    assert point.certificate.certified and int(str(point.solver["iterations"])) < 40


def random_network(seed: int, n: int = 60) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, n + 1, (2, 5 * n))
    a, b = np.append(a, np.arange(n)), np.append(b, np.arange(1, n + 1))
    return a, b, np.exp(rng.standard_normal(a.size)), rng.integers(0, n + 1, (2, n // 4)), rng.standard_normal(n)


def merged(network: tuple[np.ndarray, ...]) -> conjugate.Merged:
    """The network with its shorts."""
    a, b, g, shorts, current = network
    return conjugate.merged(current.size, a, b, g, (shorts[0], shorts[1]), np.zeros(0, dtype=int), 1.0)


@pytest.mark.parametrize("seed", range(5))
def test_conjugate_gradients_agree_with_elimination(seed: int) -> None:
    a, b, g, (u, v), current = random_network(seed)
    n = current.size
    made = merged(random_network(seed))
    x = made.solve(current, 1e-14)
    shorts = np.full(u.size, dense.SHORT)
    exact = dense.solve(dense.factor(n, np.append(a, u), np.append(b, v), np.append(g, shorts)), current)
    assert np.abs(x - exact).max() < 1e-11 * np.abs(exact).max()
    assert np.array_equal(x[u], x[v]) and x[n] == 0.0
    rough = made.solve(np.stack([current, 2.0 * current], axis=1), 1e-3)
    assert np.array_equal(2.0 * rough[:, 0], rough[:, 1])
    assert 1e-14 < np.abs(rough[:, 0] - exact).max() < 0.1 * np.abs(exact).max()
