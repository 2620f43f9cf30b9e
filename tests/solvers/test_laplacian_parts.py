"""The parts of the Laplacian factorisation one by one: orderings, tiles, compilation without a cache."""

import laplacian_twin as twin
import numpy as np
import pytest

from circuitsim.solvers.laplacian import graph, predict, symbolic
from circuitsim.solvers.minimum_degree import minimum_degree


def mesh(rows, columns):
    i = np.arange(rows * columns).reshape(rows, columns)
    a = np.concatenate([i[:, :-1].ravel(), i[:-1].ravel()])
    b = np.concatenate([i[:, 1:].ravel(), i[1:].ravel()])
    return rows * columns, a, b


def tangle(n, edges, seed):
    rng = np.random.default_rng(seed)
    return n, rng.integers(0, n, edges), rng.integers(0, n, edges)


def minimum_degree_fill(n, a, b):
    """Fill of the exact minimum degree order, by brute force."""
    linked = twin.weight_matrix(n, a, b, np.ones(len(a)))[:n, :n] > 0
    left = np.ones(n, bool)
    fill = 0
    for _ in range(n):
        degree = np.where(left, (linked & left).sum(axis=1), n + 1)
        k = int(degree.argmin())
        left[k] = False
        others = np.flatnonzero(linked[k] & left)
        linked[np.ix_(others, others)] = True
        linked[others, others] = False
        fill += 1 + others.size
    return fill


@pytest.mark.parametrize("seed", range(8))
def test_minimum_degree_is_about_as_good_as_the_exact_one(seed):
    n, a, b = tangle(80, 40 + 30 * seed, seed)
    ptr, idx = graph.adjacency(n, a, b)
    found = minimum_degree(ptr, idx)
    fill = twin.fill_pattern(n, a, b, found).sum()
    assert fill <= 1.1 * minimum_degree_fill(n, a, b)


def test_minimum_degree_leaves_dense_nodes_to_the_end():
    n, a, b = mesh(12, 12)
    a, b, n = np.append(a, np.full(n, n)), np.append(b, np.arange(n)), n + 1
    found = minimum_degree(*graph.adjacency(n, a, b))
    assert sorted(found) == list(range(n)) and found[-1] == n - 1


def test_scrambled_numbers_cost_little_fill():
    n, a, b = mesh(60, 60)
    scrambled = np.random.default_rng(8).permutation(n)
    ptr, idx = graph.adjacency(n, scrambled[a], scrambled[b])
    assert graph.mean_reach(ptr, idx) > symbolic.FAR > graph.mean_reach(*graph.adjacency(n, a, b))
    near = graph.breadth_first(ptr, idx)
    assert np.array_equal(np.sort(near), np.arange(n))
    place = np.argsort(near)
    assert graph.mean_reach(*graph.relabel(ptr, idx, near, place)) < symbolic.FAR
    assert predict(n, scrambled[a], scrambled[b]).flops < 1.15 * predict(n, a, b).flops
    parts = graph.adjacency(5, np.array([0, 3]), np.array([4, 1]))
    assert sorted(graph.breadth_first(*parts)) == [0, 1, 2, 3, 4]
