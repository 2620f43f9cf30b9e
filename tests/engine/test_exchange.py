"""Exchanges in trees of conducting diodes."""

from __future__ import annotations

import networkx
import numpy as np
import pytest

from circuitsim import kernels
from circuitsim.engine.exchange import exchange
from circuitsim.program.flow import forest_flow, spanning_forest


def loops(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Diodes at random, a spanning forest of them, and needs that currents ≥ 0 on all of them meet for even seeds."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 25))
    tail, head = rng.integers(0, n + 1, (2, 3 * n))
    tail, head = tail[tail != head], head[tail != head]
    if seed % 2 == 0:
        carried = rng.integers(0, 3, tail.size).astype(float)
    else:
        carried = rng.integers(-2, 3, tail.size).astype(float)
    need = np.bincount(tail, carried, n + 1) - np.bincount(head, carried, n + 1)
    return tail, head, spanning_forest(n, tail, head, np.arange(tail.size)), need


@pytest.mark.parametrize("compiled", [False, True])
def test_exchanges_find_trees_that_carry_all_current_forwards_where_any_exist(
    monkeypatch: pytest.MonkeyPatch, compiled: bool
) -> None:
    monkeypatch.setattr(kernels, "COMPILED", -1 if compiled else 10**9)
    feasible, swapped = 0, 0
    for seed in range(60):
        tail, head, forest, need = loops(seed)
        n = need.size - 1
        scale = np.abs(need) + 1.0
        flow = forest_flow(n, tail[forest], head[forest], need, scale)
        noise = np.abs(flow)
        graph = networkx.Graph(zip(tail.tolist(), head.tolist()))
        group = np.arange(n + 1)
        for part in networkx.connected_components(graph):
            group[list(part)] = min(part)
        after, flow_after, _ = exchange(
            tail, head, group, np.ones(tail.size, dtype=bool), forest, flow, noise, need, scale
        )
        assert after.size == forest.size == spanning_forest(n, tail, head, after).size
        net = np.bincount(tail[after], flow_after, n + 1) - np.bincount(head[after], flow_after, n + 1)
        assert np.abs(net - need).max() < 1e-9
        swapped += not np.array_equal(after, forest)
        if seed % 2 == 0:
            assert flow_after.min() > -1e-9  # currents exist, so the trees carry them
            feasible += 1
    assert feasible == 30 and swapped > 10
