"""The parts of the Laplacian factorisation one by one: orderings, tiles, compilation without a cache."""

import laplacian_twin as twin
import numpy as np
import pytest

from circuitsim import _jit
from circuitsim.solvers.laplacian import graph, panels, predict, symbolic, tile
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


@pytest.mark.parametrize("case", [tangle(40, 60, 0), tangle(70, 300, 1), tangle(1, 1, 2), mesh(5, 9)])
def test_adjacency_is_sorted_without_loops_or_repetitions(case):
    n, a, b = case
    ptr, idx = graph.adjacency(n, a, b)
    linked = twin.weight_matrix(n, a, b, np.ones(len(a)))[:n, :n] > 0
    for i in range(n):
        assert np.array_equal(idx[ptr[i] : ptr[i + 1]], np.flatnonzero(linked[i]))


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


@pytest.mark.parametrize(
    "case", [mesh(9, 14), tangle(200, 500, 4), tangle(50, 20, 5), (3, np.zeros(0, int), np.zeros(0, int))]
)
def test_orders_are_permutations_and_repeatable(case):
    adjacency = graph.adjacency(*case)
    found = symbolic.fill_reducing(*adjacency)
    assert np.array_equal(np.sort(found), np.arange(case[0]))
    assert np.array_equal(found, symbolic.fill_reducing(*adjacency))


@pytest.mark.parametrize("widest", [1, 3, 64])
def test_panels_hold_the_filled_pattern(widest):
    n, a, b = mesh(9, 11)
    pattern = predict(n, a, b)
    symbolic = panels(pattern, widest)
    filled = twin.fill_pattern(n, a, b, pattern.order)
    width = np.diff(symbolic.first)
    assert width.max() <= widest
    for t in range(symbolic.panels):
        rows = symbolic.rows[symbolic.row_ptr[t] : symbolic.row_ptr[t + 1]]
        assert np.all(np.diff(rows) > 0)
        assert rows[-1] == n
        assert np.array_equal(rows[: width[t]], np.arange(symbolic.first[t], symbolic.first[t + 1]))
        needed = np.flatnonzero(filled[:, symbolic.first[t] : symbolic.first[t + 1]].any(axis=1))
        assert np.all(np.isin(needed, rows))


@pytest.mark.parametrize("widest", [3, 64])
def test_updates_name_the_rows_of_their_targets(widest):
    n, a, b = mesh(9, 11)
    symbolic = panels(predict(n, a, b), widest)
    rows = [symbolic.rows[symbolic.row_ptr[t] : symbolic.row_ptr[t + 1]] for t in range(symbolic.panels)]
    columns = np.diff(symbolic.first)
    for s in range(symbolic.panels):
        u = np.arange(symbolic.update_ptr[s], symbolic.update_ptr[s + 1])
        lo = np.append(symbolic.lo[u], rows[s].size - 1)
        assert lo[0] == columns[s]
        for k, t in zip(u, symbolic.target[u]):
            held = symbolic.held[symbolic.held_ptr[k] : symbolic.held_ptr[k + 1]]
            assert np.array_equal(rows[t][held], rows[s][symbolic.lo[k] :])
            across = lo[k - u[0] + 1] - lo[k - u[0]]
            assert np.array_equal(held < columns[t], np.arange(held.size) < across)


def test_lists_are_sorted_together():
    rng = np.random.default_rng(6)
    sizes = rng.integers(0, 9, 20)
    ptr = np.concatenate([[0], np.cumsum(sizes)])
    values = np.concatenate([rng.choice(50, size, replace=False) for size in sizes]).astype(np.int32)
    expected = np.concatenate([np.sort(part) for part in np.split(values, ptr[1:-1])])
    symbolic._sort_lists(50, ptr, values)
    assert np.array_equal(values, expected)


@pytest.mark.parametrize(("tall", "depth", "across"), [(1, 1, 1), (7, 3, 2), (8, 4, 4), (45, 9, 10), (70, 64, 33)])
def test_tile_product_is_a_matrix_product(tall, depth, across):
    rng = np.random.default_rng(7)
    lda = tall + 2
    a = rng.uniform(size=lda * depth + 3 + tile.OVERREAD)
    left = a[3 : 3 + lda * depth].reshape(depth, lda).T[:tall]
    right = rng.uniform(size=(depth, across))
    fours = -(-across // tile.ACROSS)
    padded = np.zeros((depth, fours * tile.ACROSS))
    padded[:, :across] = right
    b = np.ascontiguousarray(padded.reshape(depth, fours, tile.ACROSS).transpose(1, 0, 2)).ravel()
    ldc = tall + tile.OVERREAD
    c = np.zeros(ldc * fours * tile.ACROSS)
    tile.product(a, 3, lda, depth, tall, b, across, c, ldc)
    found = c.reshape(-1, ldc).T[:tall, :across]
    lower = np.arange(tall)[:, None] >= np.arange(across)[None, :]
    np.testing.assert_allclose(found[lower], (left @ right)[lower], rtol=1e-14)


@pytest.mark.parametrize("hidden", [True, False])
def test_kernels_compile_where_no_cache_can_be_written(monkeypatch, hidden):
    """Any other complaint of the compiler is told."""

    def fails(self):
        raise RuntimeError("cannot cache function 'f': no locator available" if hidden else "something else")

    monkeypatch.setattr(_jit.Kernel, "enable_caching", fails)
    if hidden:
        assert _jit.jit()(lambda v: v + 1)(41) == 42
        return
    with pytest.raises(RuntimeError, match="something else"):
        _jit.jit()(lambda v: v)


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
