"""Loops that run compiled on large circuits, beside plain numpy, networkx and exact fractions."""

from __future__ import annotations

from fractions import Fraction

import networkx
import numpy as np
import pytest

from circuitsim.kernels import COMPILED, kernel
from circuitsim.program import compensated, precise
from circuitsim.program.components import component_labels
from circuitsim.program.flow import rooted
from circuitsim.program.strong import _tarjan, strong_labels


@pytest.mark.parametrize("seed", range(20))
def test_strong_components_are_those_of_networkx(seed: int) -> None:
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


def test_residuals_are_right_to_twice_double_precision_in_both_forms() -> None:
    rng = np.random.default_rng(5)
    n, r = 6, 40
    a, b = rng.integers(0, n, r), rng.integers(0, n, r)
    g, e, x = 10.0 ** rng.uniform(-6, 6, r), rng.normal(size=r), rng.normal(size=n)
    e[::3] = 0.0
    last = np.array([0, 1, 2, 2, 4, 5])
    exact = [Fraction(0)] * n
    for k in range(r):
        i, j = int(last[a[k]]), int(last[b[k]])
        flow = Fraction(g[k]) * (Fraction(x[a[k]]) - Fraction(x[b[k]]) + Fraction(e[k]))
        exact[i] -= flow
        exact[j] += flow
    between = last[a] != last[b]
    magnitudes = np.where(between, g * (np.abs(x[a]) + np.abs(x[b]) + np.abs(e)), 0.0)
    scale = np.bincount(last[a], magnitudes, n) + np.bincount(last[b], magnitudes, n)
    for add in (precise.add_flows, compensated.add_flows):
        found = np.zeros((3, n))
        add(a, b, g, e, x, last, *found)
        np.testing.assert_allclose(found[2], scale, rtol=1e-13)
        for k in range(n):
            assert abs(Fraction(found[0][k]) + Fraction(found[1][k]) - exact[k]) < Fraction(1, 10**22)
    assert abs(float(exact[0])) > 1.0


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
