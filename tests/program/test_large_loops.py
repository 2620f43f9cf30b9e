"""Loops that run compiled on large circuits, beside plain numpy and networkx."""

from __future__ import annotations

import networkx
import numpy as np
import pytest

from circuitsim import kernels
from circuitsim.kernels import COMPILED, kernel
from circuitsim.program.components import _tarjan, component_labels, strong_labels
from circuitsim.program.flow import rooted


@pytest.mark.parametrize("seed", range(20))
def test_strong_components_are_those_of_networkx(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(kernels, "_patience", 0)  # compiled also where no cache has the kernel yet
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    m = int(rng.integers(0, 3 * n))
    tail, head = rng.integers(0, n, m), rng.integers(0, n, m)
    graph = networkx.MultiDiGraph()
    graph.add_nodes_from(range(n))
    graph.add_edges_from(zip(tail.tolist(), head.tolist()))
    expected = {frozenset(part) for part in networkx.strongly_connected_components(graph)}
    label = strong_labels(n, tail, head)
    assert {frozenset(np.flatnonzero(label == k).tolist()) for k in np.unique(label)} == expected
    many = COMPILED + 1
    again = strong_labels(n * many, *((ends[None] + n * np.arange(many)[:, None]).ravel() for ends in (tail, head)))
    assert kernel(_tarjan, many) is not _tarjan
    assert len(np.unique(again)) == many * len(expected)
    assert np.array_equal(again[:n][:, None] == again[:n], label[:, None] == label)


@pytest.mark.parametrize("seed", range(5))
def test_roots_are_each_trees_node_of_largest_scale(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 3 * COMPILED
    child = np.flatnonzero(rng.random(n) < 0.8) + 1  # a parent before every child: a forest
    parent = (child * rng.random(child.size)).astype(np.int64)
    scale = rng.integers(0, 50, n + 1).astype(float)
    forest = rooted(n, child, parent, scale)
    label = component_labels(n + 1, child, parent)
    roots = forest.order[forest.edge < 0]
    touched = np.unique(np.concatenate([child, parent]))
    order = touched[np.argsort(-scale[touched], kind="stable")]
    expected = order[np.unique(label[order], return_index=True)[1]]
    assert sorted(roots.tolist()) == sorted(expected.tolist()) and len(forest.order) == touched.size
