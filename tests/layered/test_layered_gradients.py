"""Gradients of layered networks against independent ways to compute them: finite differences, unrolling, each other."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import plain_layers
import pytest
from networks import parameters

from circuitsim.blocks import EnergyBlock, Nudge
from circuitsim.errors import ConvergenceError, TopologyError
from circuitsim.layered import LayeredLearner
from circuitsim.layered.architecture import Architecture, ResistiveLearning
from circuitsim.layered.network import DeepResistiveNetwork

SHAPES = [(12,), (12, 10), (9, 10, 8)]
GAINS = {1: (2.0, 1.5), 2: (2.0, 0.5, 3.0), 3: (2.0, 0.5, 1.5, 2.0)}


def network(*hidden: int, amplified: bool = False, seed: int = 0) -> DeepResistiveNetwork:
    of = Architecture((6, *hidden, 3), 2.0, GAINS[len(hidden)] if amplified else ())
    return DeepResistiveNetwork(of, parameters(of, seed), sweeps=5000, tolerance=1e-14)


def sample(seed: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs, targets, weights of the samples."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(4, 6)), rng.normal(0, 0.3, (4, 3)), np.array([0.5, 0.25, 0.0, 0.25])


def loss(net: DeepResistiveNetwork, x: np.ndarray, y: np.ndarray, weight: np.ndarray) -> float:
    return float(weight @ (0.5 * ((net.relax(x).output - y) ** 2).sum(axis=1)))


def exact(net: DeepResistiveNetwork, x: np.ndarray, y: np.ndarray, weight: np.ndarray) -> dict[str, np.ndarray]:
    free = net.relax(x)
    return net.implicit(free, x, free.output - y, weight)[0]


def relative(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.linalg.norm(a - b) / np.linalg.norm(b))


@pytest.mark.parametrize("hidden", SHAPES, ids=str)
@pytest.mark.parametrize("amplified", [False, True], ids=["plain", "amplified"])
def test_implicit_gradients_are_finite_differences_of_the_loss(hidden: tuple[int, ...], amplified: bool) -> None:
    net, (x, y, weight) = network(*hidden, amplified=amplified), sample()
    found = exact(net, x, y, weight)
    rng = np.random.default_rng(2)
    for name, array in net.parameters.items():
        flat, h = array.reshape(-1), 1e-6
        # Interior conductances: at zero only one side is allowed, but the energy does not mind.
        for k in rng.choice(flat.size, min(8, flat.size), replace=False):
            before = flat[k]
            flat[k] = before + h
            above = loss(net, x, y, weight)
            flat[k] = before - h
            below = loss(net, x, y, weight)
            flat[k] = before
            assert found[name].reshape(-1)[k] == pytest.approx((above - below) / (2 * h), rel=1e-5, abs=1e-8)


def test_derivatives_by_the_inputs_are_finite_differences() -> None:
    net, (x, y, weight) = network(9, 8, amplified=True), sample()
    free = net.relax(x)
    found = net.implicit(free, x, free.output - y, weight)[1]
    for b, k in itertools.product(range(4), range(6)):
        moved = [x.copy(), x.copy()]
        moved[0][b, k] += 1e-6
        moved[1][b, k] -= 1e-6
        above, below = (0.5 * ((net.relax(m).output[b] - y[b]) ** 2).sum() for m in moved)
        assert found[b, k] == pytest.approx((above - below) / 2e-6, rel=1e-5, abs=1e-8)


@pytest.mark.parametrize("hidden", SHAPES, ids=str)
@pytest.mark.parametrize("amplified", [False, True], ids=["plain", "amplified"])
def test_equilibrium_propagation_is_the_gradient_layer_by_layer(hidden: tuple[int, ...], amplified: bool) -> None:
    """A constant current is exact at finite β; a spring is wrong by O(β²), one-sided by O(β)."""
    net, (x, y, weight) = network(*hidden, amplified=amplified), sample()
    found, free = exact(net, x, y, weight), net.relax(x)
    for name in net.parameters:
        assert np.linalg.norm(found[name]) > 1e-6
    error = free.output - y

    def estimate(plus: Nudge | None, minus: Nudge | None, width: float) -> dict[str, np.ndarray]:
        states = [net.relax(x, nudge, free) for nudge in (plus, minus)]
        return net.parameter_difference(states[0], states[1], x, weight / width)

    beta = 1e-5
    constant = estimate(Nudge(beta * error), Nudge(-beta * error), 2 * beta)
    assert all(relative(constant[name], found[name]) < 1e-6 for name in found)
    worst = {}
    for share in (1e-2, 5e-3):
        # The same strength in the scale in which amplifiers are wires.
        beta = share / net.architecture.amplification[-1] ** 2
        spring = estimate(Nudge(-beta * y, beta), Nudge(beta * y, -beta), 2 * beta)
        one_sided = estimate(Nudge(-beta * y, beta), None, beta)
        worst[share] = [max(relative(e[name], found[name]) for name in found) for e in (spring, one_sided)]
    assert worst[5e-3][0] < 0.35 * worst[1e-2][0] < 0.02
    assert 0.35 < worst[5e-3][1] / worst[1e-2][1] < 0.65
    assert worst[1e-2][0] < worst[1e-2][1]


def test_input_differences_are_those_of_the_energy() -> None:
    net, (x, y, _) = network(9, 8, amplified=True), sample()
    free = net.relax(x)
    plus, minus = (net.relax(x, Nudge(-b * y, b), free) for b in (0.01, -0.01))
    found = net.input_difference(plus, minus, x)
    for k in range(6):
        step = np.zeros_like(x)
        step[:, k] = 1e-5
        slope = [(net.energy(s, x + step) - net.energy(s, x - step)) / 2e-5 for s in (plus, minus)]
        np.testing.assert_allclose(found[:, k], slope[0] - slope[1], rtol=1e-4, atol=1e-7)


def unrolled(
    p: dict[str, np.ndarray], x: np.ndarray, labels: np.ndarray, start: list[np.ndarray], sweeps: int
) -> float:
    """Mean loss after so many sweeps."""
    layers = len(p) // 2
    inner, biases = [p[f"conductances{i}"] for i in range(1, layers)], [p[f"bias{i}"] for i in range(1, layers + 1)]
    given = plain_layers.drive(p["conductances0"], x, 2.0)
    output = plain_layers.relax(inner, biases, given, start, sweeps)[-1]
    return 0.5 * ((output - np.eye(3)[labels]) ** 2).sum() / len(x)


def stepped(
    method: str, p: dict[str, np.ndarray], x: np.ndarray, labels: np.ndarray, free: int, back: int
) -> dict[str, np.ndarray]:
    """The gradient by each parameter: a step of a learner at rate one, from conductances far from zero."""
    hidden = [p[f"bias{i}"].size for i in range(1, len(p) // 2)]
    of, rule = Architecture((6, *hidden, 3), 2.0), ResistiveLearning(0.05, free, back)
    made = LayeredLearner(of, rule, len(x), np.random.default_rng(0), method, np.float64, parameters=p)
    made.steps((x, labels), np.arange(len(x)), len(x), dict.fromkeys(p, 1.0), np.random.default_rng(0))
    found = made.network().parameters
    return {name: p[name] - found[name] for name in p}


def far_from_zero(*hidden: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(4)
    return {
        name: rng.normal(0, 0.05, array.shape) if name.startswith("bias") else rng.uniform(1.0, 2.0, array.shape)
        for name, array in network(*hidden).parameters.items()
    }


# Outputs in odd and in even layers; three samples are no multiple of four.
@pytest.mark.parametrize("hidden", [*SHAPES, (8, 9, 7, 6)], ids=str)
@pytest.mark.parametrize("samples", [3, 8])
def test_backpropagation_is_the_derivative_of_the_unrolled_sweeps(hidden: tuple[int, ...], samples: int) -> None:
    """From a state that has not converged, so that every sweep counts."""
    rng, p = np.random.default_rng(3), far_from_zero(*hidden)
    x, labels = rng.normal(size=(samples, 6)), rng.integers(0, 3, samples)
    rest = [np.zeros((samples, p[f"bias{i}"].size)) for i in range(1, len(p) // 2 + 1)]
    inner, biases = [p[f"conductances{i}"] for i in range(1, len(rest))], [p[f"bias{i + 1}"] for i in range(len(rest))]
    start = plain_layers.relax(inner, biases, plain_layers.drive(p["conductances0"], x, 2.0), rest, 1)
    gradient = stepped("bp", p, x, labels, 1, 3)
    for name, array in p.items():
        flat = array.reshape(-1)
        for k in rng.choice(flat.size, min(8, flat.size), replace=False):
            before, found = flat[k], []
            for h in (1e-5, -1e-5):
                flat[k] = before + h
                found.append(unrolled(p, x, labels, start, 3))
            flat[k] = before
            slope = (found[0] - found[1]) / 2e-5
            assert gradient[name].reshape(-1)[k] == pytest.approx(slope, rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("hidden", SHAPES, ids=str)
def test_compiled_gradients_are_those_of_the_block(hidden: tuple[int, ...]) -> None:
    rng, p = np.random.default_rng(3), far_from_zero(*hidden)
    x, labels = rng.normal(size=(4, 6)), rng.integers(0, 3, 4)
    net = DeepResistiveNetwork(Architecture((6, *hidden, 3), 2.0), p, sweeps=5000, tolerance=1e-14)
    found = exact(net, x, np.eye(3)[labels], np.full(4, 0.25))
    response, far, near = (
        stepped(*way)
        for way in (("implicit", p, x, labels, 1000, 1), ("bp", p, x, labels, 1000, 300), ("bp", p, x, labels, 1000, 1))
    )
    for name in p:
        assert relative(response[name], found[name]) < 1e-9
        assert relative(far[name], found[name]) < 1e-9
    assert relative(near["conductances1"], found["conductances1"]) > 1e-8


def test_the_energy_is_least_at_the_state_that_relax_finds() -> None:
    net, (x, _, _) = network(9, 8, amplified=True), sample()
    state = net.relax(x)
    assert state.certified.all()
    rng = np.random.default_rng(5)
    for _ in range(20):
        moved = []
        for layer, v in enumerate(state.layers):
            step = rng.normal(0, 0.01, v.shape)
            half, is_output = v.shape[1] // 2, layer == len(state.layers) - 1
            new = v + step
            moved.append(new if is_output else np.hstack([np.maximum(new[:, :half], 0), np.minimum(new[:, half:], 0)]))
        other = replace(state, relaxed=state.relaxed._replace(layers=tuple(moved)))
        assert (net.energy(other, x) > net.energy(state, x)).all()


def test_the_network_is_an_energy_block() -> None:
    net = network(9, 8)
    assert isinstance(net, EnergyBlock)
    assert (net.n_inputs, net.n_outputs) == (6, 3)
    net.parameters["conductances0"] -= 10
    net.project()
    assert net.parameters["conductances0"].min() == 0
    with pytest.raises(TopologyError, match="has no conductance"):
        net.parameters["conductances1"][:] = 0
        net.relax(np.zeros((1, 6)))


def test_a_nudge_that_takes_too_much_is_refused() -> None:
    with pytest.raises(ConvergenceError, match="more conductance than an output has"):
        network(9, 8).relax(np.zeros((1, 6)), Nudge(np.zeros((1, 3)), -100.0))
