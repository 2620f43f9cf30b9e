"""Conjugate gradients on graphs that fill in, and circuits whose sets of conducting diodes returned."""

from __future__ import annotations

import numpy as np
import pytest
from local_scales import distance, same_bits

import circuitsim
from circuitsim.bench.families import make
from circuitsim.circuit.elements import CURRENT, RESISTOR, VOLTAGE
from circuitsim.engine.network import network
from circuitsim.errors import ConvergenceError
from circuitsim.program import analyse
from circuitsim.solvers import conjugate, dense


def varied(family: str, unknowns: int, seed: int, factor: float) -> circuitsim.Circuit:
    """A benchmark circuit, its source values changed by up to ± ``factor``."""
    circuit = make(family, unknowns, seed)
    kind, value = circuit.arrays().kind, circuit.arrays().value
    change = np.random.default_rng(0).uniform(1.0 - factor, 1.0 + factor, value.size)
    return circuit.with_column(np.where(np.isin(kind, (VOLTAGE, CURRENT)), value * change, value))


def method_name(circuit: circuitsim.Circuit, direct: bool = False) -> str:
    """The method that is chosen for the linear circuits of a circuit."""
    return network(analyse(circuit), direct).laplacian.method_name


@pytest.mark.parametrize(("family", "unknowns", "seed"), [("grid-scaled", 2000, 2), ("scale-free", 10_000, 0)])
def test_loops_of_conducting_diodes_do_not_make_the_iterations_cycle(family: str, unknowns: int, seed: int) -> None:
    """The first circuits found on which sets of conducting diodes returned."""
    point = circuitsim.solve(varied(family, unknowns, seed, factor=0.1))
    assert point.certificate.certified and int(str(point.solver["iterations"])) < 40


def random_network(seed: int, n: int = 60) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, n + 1, (2, 5 * n))
    a, b = np.append(a, np.arange(n)), np.append(b, np.arange(1, n + 1))
    return a, b, np.exp(rng.standard_normal(a.size)), rng.integers(0, n + 1, (2, n // 4)), rng.standard_normal(n)


def merged(network: tuple[np.ndarray, ...]) -> conjugate.Merged:
    """The network with its shorts."""
    a, b, g, shorts, current = network
    return conjugate.merged(current.size, a, b, g, (shorts[0], shorts[1]), np.zeros(0, dtype=int), 1.0)


@pytest.mark.parametrize("seed", range(5))
def test_conjugate_gradients_agree_with_elimination(seed: int) -> None:
    a, b, g, (u, v), current = random_network(seed)
    n = current.size
    made = merged(random_network(seed))
    x = made.solve(current, 1e-14)
    shorts = np.full(u.size, dense.SHORT)
    exact = dense.solve(dense.factor(n, np.append(a, u), np.append(b, v), np.append(g, shorts)), current)
    assert np.abs(x - exact).max() < 1e-11 * np.abs(exact).max()
    assert np.array_equal(x[u], x[v]) and x[n] == 0.0
    rough = made.solve(np.stack([current, 2.0 * current], axis=1), 1e-3)
    assert np.array_equal(2.0 * rough[:, 0], rough[:, 1])
    assert 1e-14 < np.abs(rough[:, 0] - exact).max() < 0.1 * np.abs(exact).max()


def test_choice_by_shape_values_and_paths_to_ground() -> None:
    random = make("erdos-renyi", 2500, 0)
    assert method_name(random) == conjugate.NAME and method_name(random, direct=True) == "sparse factors"
    kind, value = random.arrays().kind, random.arrays().value.copy()
    value[np.flatnonzero(kind == RESISTOR)[0]] *= 1e-6
    assert method_name(random.with_column(value)) == "sparse factors"
    assert method_name(make("erdos-renyi", 1000, 0)) == "sparse factors"
    for family in ("grid", "crossbar-1d1r", "selectors", "ladder"):
        assert method_name(make(family, 4000, 0)) != conjugate.NAME, family
    alone = circuitsim.loads(circuitsim.dumps(random)).circuit
    alone.diode("Dalone", "alone", "0")  # a node without a path of resistors to ground
    assert method_name(alone) == "sparse factors"


def test_both_methods_give_one_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    circuit = make("erdos-renyi", 2500, 1)
    point = circuitsim.solve(circuit)
    assert point.solver["linear"] == conjugate.NAME and same_bits(point, circuitsim.solve(circuit))
    monkeypatch.setattr(conjugate, "STEPS", 1)
    network = random_network(0)
    with pytest.raises(ConvergenceError, match="did not converge"):
        merged(network).solve(network[-1], 1e-13)
    direct = circuitsim.solve(circuit)  # conjugate gradients give up, factors take over
    assert direct.solver["linear"] == "sparse factors" and distance(point, direct) < 1e-9
