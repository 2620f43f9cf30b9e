"""The loop for ideal diodes: the order of conducting diodes, currents in loops of them, exact line search."""

from __future__ import annotations

import networkx
import numpy as np
import pytest

from circuitsim.engine import active_set, nodal


@pytest.mark.parametrize("seed", range(3))
def test_diodes_are_in_the_order_of_their_amounts(seed: int) -> None:
    rng, d = np.random.default_rng(seed), 300
    amount, chosen = rng.normal(size=d) * 2.0 ** rng.integers(-1070, 1020, d), rng.random(d) < 0.5
    amount[:4], chosen[:4] = [0.0, np.inf, 5e-324, 1.7e308], True
    order = nodal.falling(amount, chosen)
    assert sorted(order.tolist()) == np.flatnonzero(chosen).tolist()
    above = amount[order] > 0.0
    assert (np.diff(above.astype(int)) <= 0).all()
    assert (np.diff(np.frexp(amount[order][above & np.isfinite(amount[order])])[1]) <= 0).all()


@pytest.mark.parametrize("seed", range(40))
def test_currents_without_loops_carry_the_same_on_a_forest(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 25))
    tail, head = rng.integers(0, n, (2, 3 * n))
    tail, head = tail[tail != head], head[tail != head]
    flow = rng.integers(0, 4, tail.size).astype(float)
    found = nodal.without_loops(tail, head, flow)
    used = found > 0.0
    assert (found >= 0.0).all()
    assert networkx.is_forest(networkx.MultiGraph([*zip(tail[used].tolist(), head[used].tolist()), (n, n + 1)]))
    change = found - flow
    assert not (np.bincount(tail, change, n) - np.bincount(head, change, n)).any()


@pytest.mark.parametrize("seed", range(20))
def test_a_step_of_least_energy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    w, change, ohms = *rng.normal(size=(2, 9)), rng.uniform(0.1, 9.0, 9)
    curvature, decrement = rng.uniform(0.0, 1.0), 3.0

    def energy(t: float) -> float:
        lost = np.maximum(w + t * change, 0.0) ** 2 - 2.0 * t * change * np.maximum(w, 0.0)
        return 0.5 * curvature * t * t - decrement * t + 0.5 * float((lost / ohms).sum())

    share = active_set.least_energy(curvature, decrement, w, change, ohms)
    assert energy(share) <= min(energy(0.99 * share), energy(1.01 * share))
