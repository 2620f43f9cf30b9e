"""Exchanges in trees of conducting diodes, and conjugate gradients on graphs that fill in."""

from __future__ import annotations

import networkx
import numpy as np
import pytest

from circuitsim import kernels
from circuitsim.bench.families import make
from circuitsim.circuit.elements import CURRENT, VOLTAGE
from circuitsim.errors import ConvergenceError
from circuitsim.program import QuadraticProgram, analyse, feasible_program, quadratic_program
from circuitsim.program.flow import forest_flow, spanning_forest
from circuitsim.solvers import conjugate, dense, laplacian
from circuitsim.solvers.active_set import ActiveSet
from circuitsim.solvers.contracted import prepare
from circuitsim.engine.exchange import exchange


def program_of(family: str, unknowns: int, seed: int, factor: float = 0.0) -> QuadraticProgram:
    """A benchmark circuit, its source values changed by up to ± ``factor``."""
    structure = analyse(make(family, unknowns, seed))
    kind, value = structure.arrays.kind, structure.arrays.value
    sources = (kind == VOLTAGE) | (kind == CURRENT)
    change = np.random.default_rng(0).uniform(1.0 - factor, 1.0 + factor, value.size)
    value = np.where(sources, value * change, value)
    structure = structure._replace(arrays=structure.arrays._replace(value=value))
    return feasible_program(structure, quadratic_program(structure))[0]


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
        flow, noise = forest_flow(n, tail[forest], head[forest], need, scale)
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


@pytest.mark.parametrize(("family", "unknowns", "seed"), [("grid-scaled", 2000, 2), ("scale-free", 10_000, 0)])
def test_loops_of_conducting_diodes_do_not_make_the_rounds_cycle(family: str, unknowns: int, seed: int) -> None:
    """The first circuits found on which rounds without exchanges came back to a set of diodes they had seen."""
    program = program_of(family, unknowns, seed, factor=0.1)
    solution = ActiveSet().solve(program, np.zeros(program.n + 1))
    assert solution.info["steps"] == 0 and not solution.doubt


def network(seed: int, n: int = 60) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, n + 1, (2, 5 * n))
    a, b = np.append(a, np.arange(n)), np.append(b, np.arange(1, n + 1))
    return a, b, np.exp(rng.standard_normal(a.size)), rng.integers(0, n + 1, (2, n // 4)), rng.standard_normal(n)


def out_of_nodes(a: np.ndarray, b: np.ndarray, g: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Currents that leave the nodes but earth through the resistors."""
    flow = g * (x[a] - x[b])
    return (np.bincount(a, flow, x.size) - np.bincount(b, flow, x.size))[:-1]


def at_groups(row: np.ndarray, current: np.ndarray) -> np.ndarray:
    """Of the nodes of each unknown together; −1 is earth."""
    return np.bincount(row[:-1] + 1, current)[1:]


@pytest.mark.parametrize("seed", range(5))
def test_conjugate_gradients_agree_with_elimination(seed: int) -> None:
    a, b, g, (u, v), current = network(seed)
    n = current.size
    merged = conjugate.merge(n, a, b, g, u, v)
    x, _ = conjugate.solve(merged, current, None, 1e-14)
    shorts = np.full(u.size, dense.SHORT)
    exact = dense.solve(dense.factor(n, np.append(a, u), np.append(b, v), np.append(g, shorts)), current)
    assert np.abs(x - exact).max() < 1e-11 * np.abs(exact).max()
    assert np.array_equal(x[u], x[v]) and x[n] == 0.0
    again, _ = conjugate.solve(merged, current, np.zeros(n + 1), 1e-14)
    assert np.array_equal(x, again)
    close = [conjugate.solve(merged, current, exact, 1e-6)[0] for _ in range(2)]
    assert np.array_equal(*close)
    # What is still missing is what the potentials, stopped early, really leave.
    x, missing = conjugate.solve(merged, current, None, 1e-3)
    left = at_groups(merged.row, current - out_of_nodes(a, b, g, x))
    assert np.abs(missing).max() > 1e-4 and np.abs(missing - left).max() < 1e-12
    assert np.array_equal(conjugate.at_nodes(merged, missing)[merged.row >= 0], missing[merged.row[merged.row >= 0]])


def test_choice_by_shape_values_and_ways_to_earth() -> None:
    def iterative(program: QuadraticProgram, direct: bool = False) -> bool:
        return prepare(program, direct).laplacian.iterative is conjugate

    random = program_of("erdos-renyi", 2500, 0)
    assert iterative(random) and not iterative(random, direct=True)
    wide = random.g.copy()
    wide[0] *= 1e6
    assert not iterative(random._replace(g=wide))
    assert not iterative(program_of("erdos-renyi", 1000, 0))
    for family in ("grid", "crossbar-1d1r", "selectors", "ladder"):
        assert not iterative(program_of(family, 4000, 0)), family
    alone = int(np.bincount(np.append(random.a, random.b)).argmin())
    cut = (random.a != alone) & (random.b != alone)
    assert not iterative(random._replace(a=random.a[cut], b=random.b[cut], g=random.g[cut], e=random.e[cut]))


def test_both_ways_give_one_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    program = program_of("erdos-renyi", 2500, 1)
    start = np.zeros(program.n + 1)
    x = ActiveSet().solve(program, start).x
    assert np.array_equal(x, ActiveSet().solve(program, start).x)
    monkeypatch.setattr(conjugate, "STEPS", 3)
    merged = conjugate.merge(program.n, program.a, program.b, program.g, *np.zeros((2, 0), dtype=int))
    with pytest.raises(ConvergenceError, match="did not converge"):
        conjugate.solve(merged, program.c[:-1], start, 1e-13)
    direct = ActiveSet().solve(program, start)  # conjugate gradients give up, factors take over
    assert np.abs(x - direct.x).max() <= 1e-14 * np.abs(x).max()


def test_new_values_reuse_what_the_topology_told_bit_for_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    for family in ("grid", "erdos-renyi"):
        circuit = make(family, 2500, 0)
        structure = analyse(circuit)
        first = ActiveSet().solve(quadratic_program(structure), np.zeros(structure.n + 1))
        with monkeypatch.context() as patch:
            # Nothing of the topology is looked at a second time.
            patch.setattr(laplacian, "analyse", None)
            patch.setattr(conjugate, "spreads", None)
            again = ActiveSet().solve(quadratic_program(structure), np.zeros(structure.n + 1))
        assert np.array_equal(first.x, again.x)
        fresh = analyse(circuit)
        assert np.array_equal(first.x, ActiveSet().solve(quadratic_program(fresh), np.zeros(fresh.n + 1)).x)
