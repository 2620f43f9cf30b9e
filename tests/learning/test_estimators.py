"""Gradient estimators on random circuits with conducting diodes between free nodes: identities and limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from random_circuits import random_case
from slow_batch import slow_batched

from circuitsim.blocks.circuit import CircuitBlock
from circuitsim.errors import ConvergenceError, UsageError
from circuitsim.learning import (
    AgnosticPropagation,
    ConstantCurrent,
    CoupledLearning,
    CrossEntropy,
    EquilibriumPropagation,
    FollowingCurrent,
    FrequencyPropagation,
    GradientProblem,
    ImplicitDifferentiation,
    ResistorNudge,
    SquaredError,
)
from circuitsim.learning.nudges import CONSTANT

SEEDS = range(6)
NUDGES = [ResistorNudge(), FollowingCurrent(), ConstantCurrent()]


def problem_of(seed: int, loss=None, batch: int = 3) -> GradientProblem:
    case = random_case(seed, batch=batch)
    block = CircuitBlock(case.circuit, case.roles, 1e-10)
    target = case.y if loss is None or loss.quadratic else np.arange(batch) % 2
    free = block.relax(case.x)
    assert free.closed.any()
    return GradientProblem(block, case.x, target, loss or SquaredError(), free, np.full(batch, 1.0 / batch))


def flat(estimate) -> np.ndarray:
    """All derivatives as one vector; those of the inputs too, where the method has them."""
    parts = list(estimate.parameters.values())
    return np.concatenate([*parts, np.ravel(estimate.inputs)] if estimate.inputs is not None else parts)


def distance(a, b) -> float:
    return float(np.linalg.norm(flat(a) - flat(b)) / np.linalg.norm(flat(b)))


def calm(problem: GradientProblem) -> float:
    """A strength up to which the same diodes conduct under a resistor nudge of either sign: far from every kink."""
    beta = 0.05 * problem.block.stiffness_limit()
    for _ in range(12):
        states = [
            ResistorNudge().relax(problem.block, problem.x, problem.free, problem.loss, problem.target, sign * beta)
            for sign in (1.0, -1.0)
        ]
        if all((state.closed == problem.free.closed).all() for state in states):
            return beta
        beta /= 2
    raise AssertionError("on a kink")


def numeric(function, theta: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """Central differences of a number; for tests only."""
    found = np.empty(theta.size)
    for k in range(theta.size):
        ends = []
        for sign in (1.0, -1.0):
            moved = theta.copy()
            moved[k] += sign * step * max(1.0, abs(theta[k]))
            ends.append(function(moved))
        found[k] = (ends[0] - ends[1]) / (2 * step * max(1.0, abs(theta[k])))
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_implicit_is_the_gradient_of_the_loss(seed: int) -> None:
    problem = problem_of(seed)
    exact = ImplicitDifferentiation().estimate(problem)
    for name, theta in problem.block.parameters.items():

        def loss(point: np.ndarray, name: str = name) -> float:
            block = problem.block.at(problem.block.parameters | {name: point})
            return float(problem.loss.value(block.relax(problem.x).output, problem.target).mean())

        np.testing.assert_allclose(exact.parameters[name], numeric(loss, theta), rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("scheme", ["positive", "negative"])
@pytest.mark.parametrize("nudging", NUDGES, ids=lambda n: type(n).__name__)
@pytest.mark.parametrize("seed", [0, 1])
def test_ep_is_the_gradient_of_the_contrast_at_finite_beta(seed: int, nudging, scheme: str) -> None:
    """Theorem 3: not only as β → 0. A constant current's pull is part of what is held fixed."""
    problem = problem_of(seed, batch=2)
    beta = 0.5 * (1.0 if scheme == "positive" else min(1.0, problem.block.stiffness_limit()))
    found = EquilibriumPropagation(beta, scheme, nudging).estimate(problem)
    signed = beta if scheme == "positive" else -beta
    for name, theta in problem.block.parameters.items():

        def contrast(point: np.ndarray, name: str = name) -> float:
            block = problem.block.at(problem.block.parameters | {name: point})
            free = block.relax(problem.x)
            # The constant current is that of the parameters as they stand: `free.output` of the problem.
            fixed = free._replace(output=problem.free.output) if isinstance(nudging, ConstantCurrent) else free
            state = nudging.relax(block, problem.x, fixed, problem.loss, problem.target, signed)
            raised = block.energy(state, problem.x) - block.energy(free, problem.x)
            cost = nudging.cost(fixed, problem.loss, problem.target, state.output)
            return float((raised / signed + cost).mean())

        np.testing.assert_allclose(found.parameters[name], numeric(contrast, theta), rtol=2e-5, atol=1e-8)


@pytest.mark.parametrize("nudging", NUDGES, ids=lambda n: type(n).__name__)
@pytest.mark.parametrize("loss", [SquaredError(), CrossEntropy(0.3)], ids=lambda loss: type(loss).__name__)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_bracket_holds_the_loss(seed: int, loss, nudging) -> None:
    problem = problem_of(seed, loss)
    if isinstance(nudging, ResistorNudge) and not loss.quadratic:
        with pytest.raises(UsageError, match="squared error only"):
            EquilibriumPropagation(0.1, nudging=nudging).estimate(problem)
        return
    value = loss.value(problem.free.output, problem.target)
    steep = problem.block.stiffness_limit() / loss.gradient_lipschitz
    before = None
    for beta in (0.5 * steep, 0.05 * steep, 0.005 * steep):
        found = EquilibriumPropagation(beta, "centred", nudging).estimate(problem)
        assert (found.lower <= value + 1e-12).all() and (value <= found.upper + 1e-12).all()
        width = found.upper - found.lower
        assert before is None or (width < before).all()  # G is concave: closer for smaller β
        before = width
    assert found.lower is not None and (width > 0).any()


@pytest.mark.parametrize("nudging", [ResistorNudge(), FollowingCurrent()], ids=lambda n: type(n).__name__)
@pytest.mark.parametrize("seed", SEEDS)
def test_orders_in_beta(seed: int, nudging) -> None:
    """One-sided estimates are off by O(β), centred ones by O(β²), from the implicit gradient."""
    problem = problem_of(seed)
    exact = ImplicitDifferentiation().estimate(problem)
    small = 0.04 * calm(problem)
    for scheme, order in (("positive", 1), ("negative", 1), ("centred", 2)):
        methods = [EquilibriumPropagation(b, scheme, nudging) for b in (small, 2 * small)]
        off = [distance(method.estimate(problem), exact) for method in methods]
        assert np.log2(off[1] / off[0]) == pytest.approx(order, abs=0.15), scheme
        assert off[0] < 0.02


@pytest.mark.parametrize("seed", SEEDS)
def test_cross_entropy_too(seed: int) -> None:
    problem = problem_of(seed, CrossEntropy(0.5))
    exact = ImplicitDifferentiation().estimate(problem)
    small = 2e-3 * problem.block.stiffness_limit()
    assert distance(EquilibriumPropagation(small, nudging=ConstantCurrent()).estimate(problem), exact) < 1e-7
    follows = [EquilibriumPropagation(b, nudging=FollowingCurrent()) for b in (small, 4 * small)]
    off = [distance(method.estimate(problem), exact) for method in follows]
    assert np.log2(off[1] / off[0]) / 2 == pytest.approx(2, abs=0.2)


@pytest.mark.parametrize("seed", SEEDS)
def test_centred_constant_currents_are_exact_while_the_same_diodes_conduct(seed: int) -> None:
    problem = problem_of(seed)
    exact = ImplicitDifferentiation().estimate(problem)
    strengths = [1.0 * 0.5**k for k in range(12)]
    same = []
    for beta in strengths:
        states = [
            CONSTANT.relax(problem.block, problem.x, problem.free, problem.loss, problem.target, sign * beta)
            for sign in (1.0, -1.0)
        ]
        if all((state.closed == problem.free.closed).all() for state in states):
            same.append(beta)
    assert same  # off kinks there is always such a β, and it need not be small
    for beta in (same[0], same[-1]):
        assert distance(EquilibriumPropagation(beta).estimate(problem), exact) < 1e-9
    assert same[0] > 0.001


def kink() -> tuple[CircuitBlock, np.ndarray, np.ndarray]:
    """A diode on the verge: node a at 0 V by symmetry, a diode from ground would conduct below. Free–free through m."""
    from circuitsim import Circuit
    from circuitsim.netlist.roles import make_roles

    circuit = Circuit("kink")
    circuit.voltage_source("V1", "p", "0", 1.0)
    circuit.voltage_source("V2", "m", "0", -1.0)
    for name, a, b in (("R1", "p", "a"), ("R2", "a", "m"), ("R3", "b", "0"), ("R4", "a", "out"), ("R5", "out", "0")):
        circuit.resistor(name, a, b, 1.0)
    circuit.diode("D1", "a", "b")
    roles = make_roles(circuit, "V1 V2", "v(out)", "R* min=1m max=1k")
    return CircuitBlock(circuit, roles, 1e-10), np.array([[1.0, -1.0]]), np.array([[0.3]])


@pytest.mark.parametrize("nudging", NUDGES, ids=lambda n: type(n).__name__)
def test_at_a_kink_centred_ep_is_the_mean_of_the_one_sided_derivatives(nudging) -> None:
    block, x, y = kink()
    problem = GradientProblem(block, x, y, SquaredError(), block.relax(x), np.ones(1))
    np.testing.assert_allclose(problem.free.voltages[0, [block.circuit.node_index(n) for n in "ab"]], 0.0, atol=1e-15)
    found = EquilibriumPropagation(1e-5, "centred", nudging).estimate(problem).inputs[0]

    def loss(point: np.ndarray) -> float:
        return float(SquaredError().value(block.relax(point[None]).output, y)[0])

    step, here = 1e-6, loss(x[0])
    sides = [[(loss(x[0] + sign * step * unit) - here) / (sign * step) for unit in np.eye(2)] for sign in (1.0, -1.0)]
    assert abs(sides[0][0] - sides[1][0]) > 0.01
    np.testing.assert_allclose(found, np.mean(sides, axis=0), rtol=1e-4)


@pytest.mark.parametrize("seed", SEEDS)
def test_coupled_learning_is_ep_driven_by_output_conductance_times_error(seed: int) -> None:
    problem = problem_of(seed)
    driven = np.empty_like(problem.target)
    block = problem.block
    solver = slow_batched(block.circuit, block.roles.inputs, block.roles.outputs)
    for b, closed in enumerate(problem.free.closed):
        driven[b] = solver.output_conductance(closed) @ (problem.free.output[b] - problem.target[b])
    parameters, inputs = problem.block.implicit(problem.free, problem.x, driven, problem.weight)
    limit = ImplicitDifferentiation().estimate(problem)._replace(parameters=parameters, inputs=inputs)
    off = [distance(CoupledLearning(eta).estimate(problem), limit) for eta in (1e-4, 2e-4)]
    assert off[0] < 1e-2 and np.log2(off[1] / off[0]) == pytest.approx(1.0, abs=0.1)
    # With several outputs that is another direction than the gradient of the squared error.
    exact = ImplicitDifferentiation().estimate(problem)
    cosine = flat(limit) @ flat(exact) / np.linalg.norm(flat(limit)) / np.linalg.norm(flat(exact))
    assert cosine < 0.9999


def test_coupled_learning_with_one_output_is_parallel_to_the_gradient() -> None:
    case = random_case(2, batch=1)
    roles = case.roles._replace(outputs=case.roles.outputs[:1])
    block = CircuitBlock(case.circuit, roles, 1e-10)
    problem = GradientProblem(block, case.x, case.y[:, :1], SquaredError(), block.relax(case.x), np.ones(1))
    a, b = flat(CoupledLearning(1e-5).estimate(problem)), flat(ImplicitDifferentiation().estimate(problem))
    assert a @ b / np.linalg.norm(a) / np.linalg.norm(b) == pytest.approx(1.0, abs=1e-8)


@pytest.mark.parametrize("seed", SEEDS)
def test_frequency_propagation(seed: int) -> None:
    problem = problem_of(seed)
    exact = ImplicitDifferentiation().estimate(problem)
    small = 0.2 * calm(problem)
    assert distance(FrequencyPropagation(small).estimate(problem), exact) < 1e-8
    # Where the error follows the state the amplitude matters, in second order.
    follows = [FrequencyPropagation(g, 16, FollowingCurrent()) for g in (small, 2 * small)]
    off = [distance(method.estimate(problem), exact) for method in follows]
    assert np.log2(off[1] / off[0]) == pytest.approx(2.0, abs=0.15)


@pytest.mark.parametrize("seed", [0, 1])
def test_agnostic_ep_moves_downhill_by_physics(seed: int) -> None:
    """Off by O(β) at fixed, tiny ε and by O(ε) at fixed, tiny β."""
    problem = problem_of(seed)
    exact = ImplicitDifferentiation().estimate(problem)
    exact = exact._replace(inputs=None)
    tiny, small = 1e-6, 1e-3 * problem.block.stiffness_limit()
    off = [distance(AgnosticPropagation(tiny, b).estimate(problem), exact) for b in (small, 2 * small)]
    assert off[0] < 0.01 and np.log2(off[1] / off[0]) == pytest.approx(1.0, abs=0.15)
    off = [distance(AgnosticPropagation(e, 1e-5).estimate(problem), exact) for e in (2e-3, 4e-3)]
    assert off[0] < 0.05 and np.log2(off[1] / off[0]) == pytest.approx(1.0, abs=0.15)


def test_the_agnostic_move_is_a_minimum_of_the_total_energy() -> None:
    """‖u − θ‖²/(2ε) + Σ_b weight_b (E_b + β cost_b), at knobs that hold θ in the free phase, is least at the new θ."""
    problem = problem_of(1)
    block, epsilon, beta = problem.block, 0.02, 0.05
    method = AgnosticPropagation(epsilon, beta)
    gradient = method.estimate(problem).parameters
    new = {name: theta - epsilon * beta * gradient[name] for name, theta in block.parameters.items()}
    zero = problem.free._replace(voltages=0 * problem.free.voltages)
    push = block.parameter_difference(problem.free, zero, problem.x, problem.weight)
    knobs = {name: theta + epsilon * push[name] for name, theta in block.parameters.items()}

    def total(parameters) -> float:
        moved = block.at(parameters)
        state = ResistorNudge().relax(moved, problem.x, problem.free, problem.loss, problem.target, beta)
        energy = moved.energy(state, problem.x) + beta * problem.loss.value(state.output, problem.target)
        springs = sum(((knobs[name] - parameters[name]) ** 2).sum() for name in parameters) / (2 * epsilon)
        return float(springs + problem.weight @ energy)

    rng, least = np.random.default_rng(0), total(new)
    for _ in range(10):
        aside = {name: theta + 1e-3 * rng.normal(size=theta.shape) for name, theta in new.items()}
        assert total(aside) > least
    for name, theta in new.items():
        slope = numeric(lambda point, name=name: total(new | {name: point}), theta, 1e-5)
        np.testing.assert_allclose(slope, 0.0, atol=1e-6)


def test_weights_leave_samples_out() -> None:
    problem = problem_of(0)
    alone = problem._replace(weight=np.array([0.0, 1.0, 0.0]))
    for method in (EquilibriumPropagation(), ImplicitDifferentiation(), CoupledLearning(), FrequencyPropagation()):
        both = method.estimate(alone).parameters["conductance"]
        parts = [method.estimate(problem._replace(weight=unit)).parameters["conductance"] for unit in np.eye(3) / 3]
        np.testing.assert_allclose(both, 3 * parts[1], rtol=1e-9, atol=1e-12)
        mean = method.estimate(problem).parameters["conductance"]
        np.testing.assert_allclose(mean, sum(parts), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: EquilibriumPropagation(0.0), "beta must be positive"),
        (lambda: EquilibriumPropagation(0.1, "sideways"), "there is no variant 'sideways'"),
        (lambda: CoupledLearning(2.0), r"in \(0, 1\]"),
        (lambda: FrequencyPropagation(-1.0), "amplitude must be positive"),
        (lambda: FrequencyPropagation(0.1, 2), "at least 3 times"),
        (lambda: AgnosticPropagation(0.0), "epsilon and beta"),
        (lambda: SquaredError(1.0, 0.0), "must lie above"),
        (lambda: CrossEntropy(0.0), "temperature"),
    ],
)
def test_values_out_of_range_are_refused(make, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make()


def test_what_does_not_fit_is_refused() -> None:
    problem = problem_of(0, CrossEntropy())
    with pytest.raises(UsageError, match="squared error only"):
        CoupledLearning().estimate(problem)
    with pytest.raises(UsageError, match="needs a class"):
        EquilibriumPropagation().estimate(problem._replace(target=np.zeros((3, 2))))


def test_divergence_of_a_following_current_is_an_error() -> None:
    problem = problem_of(0, CrossEntropy(0.5))
    with pytest.raises(ConvergenceError, match="smaller --beta"):
        EquilibriumPropagation(1.0, "negative", replace(FollowingCurrent(), iterations=2)).estimate(problem)


def test_classes_become_target_voltages() -> None:
    loss = SquaredError(-0.5, 0.5)
    output = np.array([[0.5, -0.5], [0.0, 0.5]])
    assert loss.value(output, np.array([0, 1])).tolist() == [0.0, 0.125]
    assert loss.gradient(output, np.array([0, 1])).tolist() == [[0.0, 0.0], [0.5, 0.0]]


def test_the_curvature_of_cross_entropy_is_bounded_by_its_lipschitz_constant() -> None:
    rng, loss = np.random.default_rng(0), CrossEntropy(0.7)
    for _ in range(50):
        o, u = rng.normal(size=(1, 4)), rng.normal(size=(1, 4))
        u /= np.linalg.norm(u)
        label = np.array([2])
        slope = loss.gradient(o + 1e-5 * u, label) - loss.gradient(o - 1e-5 * u, label)
        assert (slope * u).sum() / 2e-5 <= loss.gradient_lipschitz * (1 + 1e-6)
        value = (loss.value(o + 1e-5 * u, label) - loss.value(o - 1e-5 * u, label)) / 2e-5
        np.testing.assert_allclose(value, (loss.gradient(o, label) * u).sum(axis=1), rtol=1e-7, atol=1e-9)
