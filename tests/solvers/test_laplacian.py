"""The subtraction-free Laplacian factorisation: equal to its plain twin, exact at any weight ratio, deterministic."""

from fractions import Fraction

import laplacian_twin as twin
import numpy as np
import pytest

from circuitsim.solvers.laplacian import SHORT, analyse, factor, predict, solve


def grid(m):
    i = np.arange(m * m).reshape(m, m)
    a = np.concatenate([i[:, :-1].ravel(), i[:-1].ravel(), i[:, 0]])
    b = np.concatenate([i[:, 1:].ravel(), i[1:].ravel(), np.full(m, m * m)])
    return m * m, a, b


def ladder(n):
    return n, np.concatenate([np.arange(n), np.arange(n - 1)]), np.concatenate([np.full(n, n), np.arange(1, n)])


def tangle(n, edges, seed):
    """Random multigraph with loops and repeated edges; some components without ground."""
    rng = np.random.default_rng(seed)
    return n, rng.integers(0, n + 1, edges), rng.integers(0, n + 1, edges)


def star(n):
    return n, np.zeros(n - 1, int), np.arange(1, n)


GRAPHS = [
    pytest.param(grid(1), id="grid1"),
    pytest.param(grid(7), id="grid7"),
    pytest.param(grid(18), id="grid18"),
    pytest.param(ladder(60), id="ladder"),
    pytest.param(star(40), id="floating-star"),
    pytest.param(tangle(2, 1, 0), id="pair"),
    pytest.param(tangle(30, 20, 1), id="forest"),
    pytest.param(tangle(60, 90, 2), id="sparse"),
    pytest.param(tangle(150, 600, 3), id="dense"),
    pytest.param(tangle(300, 1500, 4), id="denser"),
    pytest.param((5, np.zeros(0, int), np.zeros(0, int)), id="no-edges"),
    pytest.param((0, np.zeros(0, int), np.zeros(0, int)), id="no-nodes"),
]


def weights_for(a, seed, spread=18):
    return 10.0 ** np.random.default_rng(seed).uniform(-spread / 2, spread / 2, len(a))


def exact(n, a, b, weights, rhs):
    """Solve a grounded Laplacian in rational arithmetic."""
    rows = [[Fraction(0)] * n + [Fraction(float(v))] for v in rhs]
    for i, j, w in zip(a, b, weights):
        w = Fraction(float(w))
        for p, q in ((int(i), int(j)), (int(j), int(i))):
            if p < n and i != j:
                rows[p][p] += w
                if q < n:
                    rows[p][q] -= w
    for k in range(n):
        for i in range(k + 1, n):
            if rows[i][k]:
                ratio = rows[i][k] / rows[k][k]
                rows[i] = [u - ratio * v for u, v in zip(rows[i], rows[k])]
    x = [Fraction(0)] * n
    for k in range(n - 1, -1, -1):
        x[k] = (rows[k][n] - sum(rows[k][j] * x[j] for j in range(k + 1, n))) / rows[k][k]
    return np.array([float(v) for v in x])


@pytest.mark.parametrize("graph", GRAPHS)
def test_factor_and_solution_match_the_plain_twin(graph):
    n, a, b = graph
    w = weights_for(a, 1)
    symbolic = analyse(n, a, b)
    assert symbolic.place.size == np.count_nonzero(a != b)
    made = factor(symbolic, w)
    order = np.append(symbolic.pattern.order, n)
    shares, pivots = twin.eliminate(twin.weight_matrix(n, a, b, w)[np.ix_(order, order)])
    np.testing.assert_allclose(made.pivots, pivots, rtol=1e-13)
    rhs = np.random.default_rng(2).uniform(0.0, 1.0, (n, 3))
    x = solve(made, rhs)
    np.testing.assert_allclose(x[order[:-1]], twin.substitute(shares, pivots, rhs[order[:-1]]), rtol=1e-12)
    one = solve(made, rhs[:, 1])
    np.testing.assert_allclose(one, x[:, 1], rtol=1e-13)


def test_every_entry_is_accurate_over_36_decades():
    n, a, b = grid(6)
    w = weights_for(a, 3, spread=36)
    rhs = np.random.default_rng(4).uniform(0.0, 1.0, n)  # one sign: no cancellation belongs to the problem
    x = solve(factor(analyse(n, a, b), w), rhs)
    np.testing.assert_allclose(x, exact(n, a, b, w, rhs), rtol=1e-13)


def test_one_node_of_each_floating_component_is_held_at_zero():
    a, b = np.array([0, 1, 3, 4, 6]), np.array([1, 2, 4, 5, 7])  # 0-1-2, 3-4-5, 6-ground
    rhs = np.array([1.0, 2.0, -0.5, 1.0, 0.0, -1.0, 3.0])
    made = factor(analyse(7, a, b), np.array([1.0, 1.0, 1.0, 1.0, 2.0]))
    x = solve(made, rhs)
    held = made.symbolic.pattern.order[made.pivots == 0.0]
    assert sorted(held // 3) == [0, 1] and np.all(x[held] == 0.0)
    assert x[6] == 1.5 and x[3] - x[5] == 2.0


def test_an_open_edge_is_a_zero_in_the_same_pattern():
    n, a, b = ladder(10)
    w = np.ones(a.size)
    w[10 + 4] = 0.0  # cut the rail
    w[5:10] = 0.0  # and float the far half
    made = factor(analyse(n, a, b), w)
    held = made.symbolic.pattern.order[made.pivots == 0.0]
    assert held.size == 1 and held[0] >= 5


@pytest.mark.parametrize("spread", [0, 18, 36])
def test_shorts_merge_nodes_exactly(spread):
    """A loop of shorts, a chain of shorts, parallel shorts and a short to ground act as merged nodes."""
    n, a, b = grid(6)
    w = weights_for(a, 5, spread)
    edge = {(int(i), int(j)): e for e, (i, j) in enumerate(zip(a, b))}
    for pair in [(0, 1), (1, 7), (6, 7), (0, 6), (14, 15), (15, 16), (16, 22), (35 - 6, 35)]:
        w[edge[pair]] = SHORT
    a, b, w = np.append(a, [14, 35]), np.append(b, [15, n]), np.append(w, [SHORT, SHORT])
    name = np.arange(n + 1)
    for group, head in (((1, 6, 7), 0), ((15, 16, 22), 14), ((29, 35), n)):
        name[list(group)] = head
    kept = np.flatnonzero(name[:n] == np.arange(n))
    small = np.full(n + 1, kept.size)
    small[kept] = np.arange(kept.size)
    rhs = np.random.default_rng(6).uniform(0.0, 1.0, n)
    merged = np.bincount(small[name[:n]], rhs, kept.size + 1)[:-1]
    inside = w < SHORT
    expected = exact(kept.size, small[name[a[inside]]], small[name[b[inside]]], w[inside], merged)
    x = solve(factor(analyse(n, a, b), w), rhs)
    full = np.append(expected, 0.0)[small[name[:n]]]
    np.testing.assert_allclose(x, full, rtol=1e-12, atol=1e-100)


def test_ordering_keeps_the_fill_low():
    n, a, b = grid(60)
    assert predict(n, a, b).fill < 0.35 * 60 * n  # of the order by rows
    n, a, b = ladder(500)
    assert predict(n, a, b).fill <= 3 * n


def test_wrong_input_is_refused():
    n, a, b = ladder(4)
    symbolic = analyse(n, a, b)
    good = np.ones(a.size)
    with pytest.raises(ValueError, match=r"0\.\.4"):
        analyse(n, a + 5, b)
    with pytest.raises(ValueError, match="equally long"):
        analyse(n, a[1:], b)
    for bad in (-1.0, np.nan, np.inf, 1e300):
        with pytest.raises(ValueError, match="between 0 and"):
            factor(symbolic, np.where(np.arange(a.size) == 2, bad, 1.0))
    with pytest.raises(ValueError, match="7 weights"):
        factor(symbolic, good[1:])
    with pytest.raises(ValueError, match="another symbolic"):
        factor(symbolic, good, previous=factor(analyse(n, a, b), good))
    with pytest.raises(ValueError, match="right-hand side"):
        solve(factor(symbolic, good), np.ones(3))
