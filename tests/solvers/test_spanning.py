"""Conjugate gradients on the strongest spanning tree: networks of good wires and weak cross links."""

from __future__ import annotations

import networkx
import numpy as np
import pytest
from local_scales import distance

from circuitsim import Circuit, solve
from circuitsim.analysis import prepared
from circuitsim.analysis.explain import explain
from circuitsim.bench.families import make
from circuitsim.circuit.elements import CURRENT, DIODE, RESISTOR, VOLTAGE
from circuitsim.engine.network import network
from circuitsim.errors import ConvergenceError
from circuitsim.program import analyse
from circuitsim.solvers import dense, spanning

NONE = np.zeros(0, dtype=int)


def wired(seed: int, n: int = 60, weak: float = 1e-3) -> tuple[np.ndarray, ...]:
    """A random tree of strong branches with weak links across it: ends, conductances, currents, shorts."""
    rng = np.random.default_rng(seed)
    tree = np.array([rng.integers(max(0, k - 5), k) for k in range(1, n + 1)])
    number = rng.permutation(n + 1)
    a, b = np.append(np.arange(1, n + 1), rng.integers(0, n + 1, 2 * n)), np.append(tree, rng.integers(0, n + 1, 2 * n))
    g = np.exp(rng.standard_normal(a.size)) * np.where(np.arange(a.size) < n, 1.0, weak)
    return number[a], number[b], g, rng.standard_normal(n), *rng.integers(0, n + 1, (2, n // 8))


def method_name(circuit: Circuit, direct: bool = False) -> str:
    """The method that is chosen for the linear circuits of a circuit."""
    return network(analyse(circuit), direct).laplacian.method_name


@pytest.mark.parametrize("seed", range(6))
def test_potentials_are_those_of_elimination(seed: int) -> None:
    a, b, g, current, u, v = wired(seed)
    n = current.size
    if seed < 2:
        u = v = NONE
    merged = spanning.merge(n, a, b, g, u, v)
    x, _ = spanning.solve(merged, current, None, 1e-14)
    shorts = np.full(u.size, dense.SHORT)
    exact = dense.solve(dense.factor(n, np.append(a, u), np.append(b, v), np.append(g, shorts)), current)
    assert np.abs(x - exact).max() < 1e-11 * np.abs(exact).max()
    assert np.array_equal(x[u], x[v]) and x[n] == 0.0
    # From anywhere; and what is still missing is what the potentials, stopped early, really leave.
    start = exact + 0.1 * np.random.default_rng(seed).standard_normal(n + 1)[merged.row]
    start[merged.row == 0] = 0.0
    x, missing = spanning.solve(merged, current, start, 1e-3)
    flow = g * (x[a] - x[b])
    left = current - (np.bincount(a, flow, n + 1) - np.bincount(b, flow, n + 1))[:-1]
    left = np.bincount(merged.row[:-1], left, merged.up.size)
    assert np.abs(missing).max() > 1e-6 and np.abs(missing - left)[1:].max() < 1e-11 and missing[0] == 0.0
    assert np.array_equal(spanning.at_nodes(merged, missing), missing[merged.row])


@pytest.mark.parametrize("seed", range(4))
def test_tree_is_the_strongest_within_powers_of_two_and_its_walks_solve_it(seed: int) -> None:
    a, b, g, current, *_ = wired(seed)
    n = current.size
    merged = spanning.merge(n, a, b, g, NONE, NONE)
    graph = networkx.Graph()
    graph.add_nodes_from(range(n + 1))
    power_of_two = np.frexp(g)[1].astype(float)
    for e in np.argsort(power_of_two, kind="stable").tolist():
        graph.add_edge(int(a[e]), int(b[e]), weight=power_of_two[e])  # of parallel edges the strongest
    best = networkx.maximum_spanning_tree(graph).size(weight="weight")
    resistance = merged.resistance[1:]
    assert merged.up.size == n + 1 and np.frexp(1.0 / resistance)[1].sum() == best
    assert np.isin(resistance, 1.0 / g).all()
    assert (merged.up[1:] < np.arange(1, n + 1)).all() and merged.up[0] == merged.resistance[0] == 0
    assert np.array_equal(merged.row[merged.node], np.arange(n + 1)) and not merged.further.size
    r = np.append(0.0, np.empty(n))
    r[merged.row[:-1]] = current
    z = r.copy()
    power = spanning._gather(merged.up, merged.runs, merged.resistance, z)
    spanning._fall(merged.up, merged.runs, merged.resistance, z)
    above = np.where(merged.up[1:] == 0, n, merged.up[1:].astype(int) - 1)
    exact = dense.solve(dense.factor(n, np.arange(n), above, 1.0 / resistance), r[1:])[:-1]
    assert np.abs(z[1:] - exact).max() < 1e-12 * np.abs(exact).max() and z[0] == 0.0
    assert abs(power - r @ z) < 1e-12 * np.abs(r * z).sum()


def comb(wires: int, length: int, seed: int) -> tuple[np.ndarray, ...]:
    """Wires from ground, some shorter, with a twig at some nodes, numbered at random, and weak links between them."""
    rng = np.random.default_rng(seed)
    a, b, count = [], [], 1
    for _ in range(wires):
        above = 0
        for _ in range(length - int(rng.integers(0, 3))):
            a.append(count), b.append(above)
            above, count = count, count + 1
    for k in rng.integers(1, count, wires):
        a.append(count), b.append(int(k))
        count += 1
    strong = len(a)
    g = np.append(np.exp(0.1 * rng.standard_normal(strong)), np.full(3 * wires, 1e-4))
    number = rng.permutation(count)
    number[number == count - 1], number[0] = number[0], count - 1  # ground is last
    ends = (np.append(k, rng.integers(0, count, 3 * wires)) for k in (a, b))
    return *(number[k] for k in ends), g, rng.standard_normal(count - 1)


@pytest.mark.parametrize("seed", range(4))
def test_parallel_wires_are_walked_in_runs_and_their_order_changes_nothing(seed: int) -> None:
    a, b, g, current = comb(wires=37, length=20, seed=seed)
    n = current.size
    merged = spanning.merge(n, a, b, g, NONE, NONE)
    runs, up = merged.runs, merged.up.astype(int)
    assert 2 <= runs.size <= 20 * 6
    for lo, hi in zip(runs[:-1].tolist(), runs[1:].tolist()):
        away = np.arange(lo, hi) - up[lo:hi]
        assert np.unique(away).size == 1 and hi - lo <= away[0]  # parents in a row, and all of them before
    leaves = np.setdiff1d(np.arange(1, n + 1), up)
    assert np.array_equal(leaves, np.arange(runs[-1], n + 1))
    x, _ = spanning.solve(merged, current, None, 1e-14)
    one_by_one = merged._replace(runs=np.ones(1, dtype=np.int64))
    assert np.abs(spanning.solve(one_by_one, current, None, 1e-14)[0] - x).max() < 1e-12 * np.abs(x).max()


def test_nothing_is_left_to_solve_where_every_node_is_shorted_to_earth() -> None:
    a, b, g, current, *_ = wired(0)
    n = current.size
    merged = spanning.merge(n, a, b, g, np.arange(n), np.arange(1, n + 1))
    assert merged.up.size == merged.node.size == 1 and not merged.row.any()
    x, missing = spanning.solve(merged, current, None, 1e-14)
    assert np.array_equal(x, np.zeros(n + 1)) and np.array_equal(missing, [0.0])


@pytest.mark.parametrize("family", ["crossbar", "crossbar-1d1r"])
def test_without_sources_every_potential_and_current_is_exactly_zero(family: str) -> None:
    circuit = make(family, 4000, 0)
    kind, value = circuit.arrays().kind, circuit.arrays().value
    dark = np.where(np.isin(kind, (VOLTAGE, CURRENT)), 0.0, value)
    ready = prepared(circuit)
    for _ in range(2):
        ready.solve()
        point = ready.solve(dark)
        assert not point.voltages.any() and not point.currents.any() and point.certificate.certified


def test_edges_are_ordered_by_squares() -> None:
    one, other = (k.ravel() for k in np.meshgrid(np.arange(16), np.arange(16), indexing="ij"))
    order = np.argsort(spanning._interleaved(one, other), kind="stable")
    for size in (2, 4, 8):
        squares = (one[order] // size * 16 + other[order] // size).reshape(-1, size * size)
        assert (squares == squares[:, :1]).all()
    large = np.array([2**31 + 5, 2**31 + 4])
    assert np.array_equal(np.argsort(spanning._interleaved(large, large)), [1, 0])


def test_stretch_is_conductance_times_resistance_of_the_tree() -> None:
    a, b, g, current, *_ = wired(3)
    n = current.size
    merged = spanning.merge(n, a, b, g, NONE, NONE)
    tree = networkx.Graph()
    for k in range(1, n + 1):
        tree.add_edge(k, int(merged.up[k]), resistance=merged.resistance[k])
    ends = zip(merged.row[a].tolist(), merged.row[b].tolist(), g.tolist())
    whole = sum(networkx.shortest_path_length(tree, i, j, "resistance") * s for i, j, s in ends)
    assert a.size - n <= spanning.SAMPLE
    assert merged.stretch == pytest.approx((whole - n) / n, rel=1e-9)  # each edge of the tree has a stretch of one


def test_diodes_that_tie_wires_together_are_left_to_factors() -> None:
    """While they block every cell is a leaf; where they conduct the cells are as strong as the wires."""
    circuit = make("crossbar-1d1r", 8000, 0)
    value = circuit.arrays().value
    # One cell so weak that the choice is not made by how evenly all conduct.
    cells = np.flatnonzero((circuit.arrays().kind == RESISTOR) & (value > 1e3))
    value = np.where(np.isin(np.arange(value.size), cells), 2.0, value)
    value[cells[0]] = 1e6
    strong = circuit.with_column(value)
    assert method_name(strong) == spanning.NAME
    point = solve(strong)
    assert point.certificate.certified and point.solver["linear"] == "sparse factors"


def test_chosen_for_wires_with_weak_cells_alone() -> None:
    for family in ("crossbar", "crossbar-1d1r"):
        circuit = make(family, 4000, 0)
        assert method_name(circuit) == spanning.NAME and method_name(circuit, direct=True) == "sparse factors"
        # Cells that conduct as well as the wires.
        kind, value = circuit.arrays().kind, circuit.arrays().value
        strong = circuit.with_column(np.where((kind == RESISTOR) & (value > 2.0), 1e-4 * value, value))
        assert method_name(strong) == "sparse factors"
    for family in ("grid", "grid-scaled", "ladder", "selectors", "scale-free"):
        assert method_name(make(family, 4000, 0)) != spanning.NAME, family


@pytest.mark.parametrize("family", ["crossbar", "crossbar-1d1r"])
def test_answers_are_certified_the_same_for_new_values_and_those_of_factors(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    circuit = make(family, 4000, 0)
    kind, value = circuit.arrays().kind, circuit.arrays().value.copy()
    rng = np.random.default_rng(0)
    again = prepared(circuit)
    again.solve()
    for changes in (np.isin(kind, (VOLTAGE, CURRENT)), kind == RESISTOR):
        new = np.where(changes, value * rng.uniform(0.5, 1.5, value.size), value)
        point = again.solve(new)
        fresh = solve(circuit.with_column(new))
        assert point.certificate.certified
        assert distance(point, fresh) < 1e-9
        with monkeypatch.context() as patch:
            patch.setattr(spanning, "STEPS", 2)
            factored = solve(circuit.with_column(new))  # conjugate gradients give up, factors take over
        scale = np.abs(point.voltages).max()
        assert np.abs(factored.voltages - point.voltages).max() <= 1e-13 * scale
        conducts = np.flatnonzero(kind == DIODE)
        assert np.array_equal(factored.currents[conducts] > 0.0, point.currents[conducts] > 0.0)


def test_too_many_steps_and_too_strong_links_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for steps, weak in ((3, 1e-3), (300, 10.0)):
        a, b, g, current, *_ = wired(0, weak=weak)
        merged = spanning.merge(current.size, a, b, g, NONE, NONE)
        monkeypatch.setattr(spanning, "STEPS", steps)
        with pytest.raises(ConvergenceError, match="did not converge"):
            spanning.solve(merged, current, None, 1e-14)


def test_explanations_name_the_method_of_the_linear_circuits() -> None:
    for family, name in (("crossbar", spanning.NAME), ("grid", "sparse factors")):
        told = explain(solve(make(family, 4000, 0)))
        assert any(line.endswith(f"; its linear circuits by {name}") for line in told)


def test_what_the_topology_and_conductances_told_is_not_looked_at_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    circuit = make("crossbar", 4000, 0)
    kept = prepared(circuit)
    first = kept.solve()
    monkeypatch.setattr(spanning, "merge", None)
    again = kept.solve()
    assert first.voltages.tobytes() == again.voltages.tobytes() and first.currents.tobytes() == again.currents.tobytes()
