"""Linear circuits of all shapes, exact at any ratio of resistances and with shorts; the factor that solves them."""

import numpy as np
import pytest
from circuits import sketch_of
from exact import Oracle

import circuitsim
from circuitsim.bench.families import make
from circuitsim.circuit.elements import CURRENT, VOLTAGE
from circuitsim.engine.network import network
from circuitsim.engine.steady_state import steady_state
from circuitsim.program.structure import analyse_arrays
from circuitsim.solvers.laplacian import factor, solve
from circuitsim.solvers.linear import NodalPattern


def grid(m: int) -> np.ndarray:
    """Edges (2, k) of m × m nodes, the left column tied to ground, node 0."""
    i = np.arange(1, m * m + 1).reshape(m, m)
    pairs = [(i[:, :-1], i[:, 1:]), (i[:-1], i[1:]), (i[:, 0], 0 * i[:, 0])]
    return np.concatenate([np.stack([a.ravel(), b.ravel()]) for a, b in pairs], axis=1)


def tangle(n: int, edges: int) -> np.ndarray:
    """A random multigraph with loops and repeated edges, each node tied to one before it."""
    rng = np.random.default_rng(n)
    tree = np.stack([np.arange(1, n + 1), rng.integers(0, np.arange(1, n + 1))])
    return np.concatenate([tree, rng.integers(0, n + 1, (2, edges))], axis=1)


GRAPHS = {
    "one node": grid(1),
    "grid": grid(6),
    "ladder": np.stack([np.tile(np.arange(1, 41), 2), np.append(np.zeros(40, int), np.arange(40))]),
    "star": np.stack([np.full(30, 1), np.append(0, np.arange(2, 31))]),
    "sparse": tangle(40, 20),
    "dense": tangle(30, 160),
}


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("decades", [0, 18, 36])
@pytest.mark.parametrize("shorts", [False, True])
def test_every_potential_is_exact(name: str, decades: int, shorts: bool) -> None:
    """Currents of one sign into all nodes: no cancellation belongs to the problem. With shorts a tenth of the edges
    have no resistance: loops, chains, parallel ones, some to ground."""
    rng, ends = np.random.default_rng(decades), GRAPHS[name]
    ohms = 10.0 ** rng.uniform(-decades / 2, decades / 2, ends.shape[1])
    ohms[rng.random(ohms.size) < 0.1 * shorts] = 0.0
    parts = [("R", int(a), int(b), float(r)) for a, b, r in zip(*ends, ohms)]
    nodes = sorted({int(k) for k in ends.ravel()} - {0})
    sketch = sketch_of([*parts, *(("I", 0, k, float(rng.uniform(0.0, 1.0))) for k in nodes)])
    exact = Oracle(sketch.n, sketch.edges()).solve()
    assert exact is not None
    point = circuitsim.solve(sketch.circuit())
    expected = np.array([float(v) for v in exact.voltage])
    np.testing.assert_allclose(point.voltages, expected, rtol=1e-12, atol=1e-100)


def test_rounding_of_the_sources_drives_a_current() -> None:
    """0.1 V, 0.9 V and 0.2 A through 4 Ω are decimals that cancel but for the rounding of their doubles."""
    deck = "t\nV1 a 0 .1\nV2 b 0 .9\nR1 a m 4\nR2 m b 4\nI1 m b -.2\nV3 c 0 1e-295\nR3 c 0 1\n"
    net = network(analyse_arrays(circuitsim.loads(deck).circuit.arrays()))
    found = steady_state(net, np.arange(0), np.zeros(7), np.zeros(net.n_nodes), 1)
    assert found.current[3] == 2.0**-58 and found.drop[5] == 1e-295


def test_the_factor_holds_one_node_of_each_floating_part_at_zero() -> None:
    a, b = np.array([0, 1, 3, 4, 6]), np.array([1, 2, 4, 5, 7])  # 0-1-2, 3-4-5, 6-ground
    rhs = np.array([1.0, 2.0, -0.5, 1.0, 0.0, -1.0, 3.0])
    made = factor(NodalPattern(7, a, b, 5, True).symbolic, np.array([1.0, 1.0, 1.0, 1.0, 2.0]))
    x = solve(made, rhs)
    held = made.symbolic.order[made.pivots == 0.0]
    assert sorted(held // 3) == [0, 1] and np.all(x[held] == 0.0)
    assert x[6] == 1.5 and x[3] - x[5] == 2.0


def test_ordering_keeps_the_fill_low() -> None:
    a, b = grid(60)
    mesh = NodalPattern(3600, (a - 1) % 3601, (b - 1) % 3601, a.size, True)
    chain = NodalPattern(500, np.arange(500), np.append(np.arange(1, 500), 500), 500, True)
    assert mesh.symbolic.count.sum() < 0.35 * 60 * 3600  # of the order by rows
    assert chain.symbolic.count.sum() <= 1500


@pytest.mark.parametrize(("family", "unknowns", "seed"), [("grid-scaled", 2000, 2), ("scale-free", 10_000, 0)])
def test_loops_of_conducting_diodes_do_not_make_the_iterations_cycle(family: str, unknowns: int, seed: int) -> None:
    """The first circuits found on which sets of conducting diodes returned: one by elimination, one, whose graph fills
    in, by conjugate gradients."""
    circuit = make(family, unknowns, seed)
    kind, value = circuit.arrays().kind, circuit.arrays().value
    change = np.random.default_rng(0).uniform(0.9, 1.1, value.size)
    point = circuitsim.solve(circuit.with_column(np.where(np.isin(kind, (VOLTAGE, CURRENT)), value * change, value)))
    assert point.certificate.certified and int(str(point.solver["iterations"])) < 40
