"""Learning rules on random circuits: limits and orders, brackets of the loss, kinks, what each rule refuses."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from energy_blocks import agree, made, random_case, slopes

from circuitsim import CircuitBlock, circuit_block, loads
from circuitsim.blocks import Nudge
from circuitsim.errors import CircuitError, ConvergenceError, UsageError
from circuitsim.learning import (
    AgnosticPropagation,
    ConstantCurrent,
    CoupledLearning,
    CrossEntropy,
    EquilibriumPropagation,
    Estimate,
    FollowingCurrent,
    FrequencyPropagation,
    GradientProblem,
    ImplicitDifferentiation,
    Learner,
    ResistorNudge,
    SquaredError,
)

RESISTOR, FOLLOWING, CONSTANT = ResistorNudge(), FollowingCurrent(), ConstantCurrent()
NUDGES = pytest.mark.parametrize("nudging", [RESISTOR, FOLLOWING, CONSTANT], ids=lambda n: type(n).__name__)
SEEDS = pytest.mark.parametrize("seed", range(4))


def problem_at(block: Any, x: np.ndarray, y: np.ndarray, loss: Any = None) -> GradientProblem:
    return GradientProblem(block, x, y, loss or SquaredError(), block.relax(x), np.full(len(x), 1.0 / len(x)))


def problem_of(seed: int, loss: Any = None, batch: int = 3) -> GradientProblem:
    case = random_case(seed, batch=batch)
    problem = problem_at(case.block(), case.x, case.y if loss is None else np.arange(batch) % 2, loss)
    assert problem.free.active.any()
    return problem


def flat(estimate: Estimate) -> np.ndarray:
    return np.concatenate([np.ravel(value) for value in estimate.parameters.values()])


def distance(found: Estimate, exact: Estimate) -> float:
    parts = [float(np.linalg.norm(flat(found) - flat(exact)) / np.linalg.norm(flat(exact)))]
    if found.inputs is not None and exact.inputs is not None:
        parts.append(float(np.linalg.norm(found.inputs - exact.inputs) / np.linalg.norm(exact.inputs)))
    return max(parts)


def calm(problem: GradientProblem) -> float:
    """A strength up to which the same diodes conduct under a resistor nudge of either sign: far from every kink."""
    beta = 0.05 * problem.block.stiffness_limit()
    while EquilibriumPropagation(beta, nudging=RESISTOR).estimate(problem).kinks.changes.any():
        beta /= 2
        assert beta > 1e-6
    return beta


def tiny(strength: float) -> AgnosticPropagation:
    return AgnosticPropagation(1e-6, strength)


ORDERS = {
    "positive": (1, 0.04, lambda beta: EquilibriumPropagation(beta, "positive", RESISTOR)),
    "negative": (1, 0.04, lambda beta: EquilibriumPropagation(beta, "negative", FOLLOWING)),
    "centred": (2, 0.04, lambda beta: EquilibriumPropagation(beta, "centred", RESISTOR)),
    "frequency": (2, 0.2, lambda gamma: FrequencyPropagation(gamma, 16, FOLLOWING)),
    "agnostic, by beta": (1, 0.04, tiny),
    "agnostic, by epsilon": (1, 0.5, lambda epsilon: AgnosticPropagation(epsilon, 1e-5)),
    "constant centred": (None, 1.0, EquilibriumPropagation),
    "constant frequency": (None, 1.0, FrequencyPropagation),
}


@pytest.mark.parametrize("name", ORDERS)
@SEEDS
def test_the_order_in_the_strength_by_which_a_rule_is_off_the_gradient(seed: int, name: str) -> None:
    """Constant currents are off by nothing while the same diodes conduct, at any strength."""
    (order, share, rule), problem = ORDERS[name], problem_of(seed)
    exact = ImplicitDifferentiation().estimate(problem)
    small = share * (0.004 if "epsilon" in name else calm(problem))
    off = [distance(rule(strength).estimate(problem), exact) for strength in (small, small / 2)]
    if order is None:
        assert max(off) < 1e-8
    else:
        assert np.log2(off[0] / off[1]) == pytest.approx(order, abs=0.2) and off[1] < 0.05


@pytest.mark.parametrize(
    "name", ["circuit 10 with devices", "circuit 13 with devices", "amplified devices", "resistive"]
)
def test_gradients_of_other_blocks(name: str) -> None:
    """All parameters of devices, amplifiers in between, networks of layers; the nudge acts on volts at the outputs."""
    block, x = made(name)
    problem = problem_at(block, x, block.relax(x).output + np.array([0.1, -0.1])[: block.n_outputs])
    exact = ImplicitDifferentiation().estimate(problem)
    unit = getattr(block, "stiffness_limit", lambda: 1.0)()
    rules = [EquilibriumPropagation(1e-5 * unit)]
    rules += [FrequencyPropagation(1e-5 * unit, 4)] if isinstance(block, CircuitBlock) else []
    rules += [] if "with devices" in name else [EquilibriumPropagation(1e-4 * unit, nudging=RESISTOR)]
    for rule in rules:
        found = rule.estimate(problem)
        assert found.certified.all() and distance(found, exact) < 1e-6


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("variant", ["positive", "negative"])
def test_a_one_sided_estimate_is_the_gradient_of_its_bound(seed: int, variant: str) -> None:
    """Theorem 3: at a finite β, and the bound that is reported is the function whose gradient is found."""
    problem = problem_of(seed)
    block, x = problem.block, problem.x
    rule = EquilibriumPropagation(0.4 * block.stiffness_limit(), variant, RESISTOR)

    def bound() -> float:
        found = rule.estimate(problem._replace(free=block.relax(x)))
        return float((found.lower if variant == "positive" else found.upper).mean())

    found = rule.estimate(problem)
    values = {**found.parameters, "x": found.inputs / len(x)}
    for name, step, slope in slopes(block, x, bound):
        agree(values[name], step, slope, name)


@NUDGES
@pytest.mark.parametrize("loss", [None, CrossEntropy(0.3)])
@SEEDS
def test_the_bracket_holds_the_loss(seed: int, loss: Any, nudging: Any) -> None:
    problem = problem_of(seed, loss)
    if nudging is RESISTOR and loss:
        with pytest.raises(UsageError, match="squared error only"):
            EquilibriumPropagation(0.1, nudging=nudging).estimate(problem)
        return
    value = problem.loss.value(problem.free.output, problem.target)
    exact, widths = ImplicitDifferentiation().estimate(problem), []
    steep = problem.block.stiffness_limit() / problem.loss.gradient_lipschitz
    for beta in (0.5 * steep, 0.05 * steep, 0.005 * steep):
        found = EquilibriumPropagation(beta, "centred", nudging).estimate(problem)
        assert (found.lower <= value + 1e-12).all() and (value <= found.upper + 1e-12).all()
        widths.append(found.upper - found.lower)
    assert (np.diff(widths, axis=0) < 0).all() and (widths[-1] > 0).any()  # G is concave: closer for smaller β
    assert distance(found, exact) < 0.05


@NUDGES
def test_at_a_kink_centred_ep_is_the_mean_of_the_one_sided_derivatives(nudging: Any) -> None:
    """Node a is at 0 V by symmetry: the diode is on the verge."""
    lines = [
        "kink",
        "V1 p 0 1",
        "V2 m 0 -1",
        "R1 p a 1",
        "R2 a m 1",
        "R3 b 0 1",
        "R4 a out 1",
        "R5 out 0 1",
        "D1 a b d",
    ]
    block = circuit_block(loads("\n".join([*lines, ".model d D\n"])), "V1 V2", "v(out)", "R* min=1m max=1k", 1e-10)
    x, y = np.array([[1.0, -1.0]]), np.array([[0.3]])
    found = EquilibriumPropagation(1e-5, "centred", nudging).estimate(problem_at(block, x, y)).inputs[0]

    def loss(point: np.ndarray) -> float:
        return float(SquaredError().value(block.relax(point[None]).output, y)[0])

    here, step = loss(x[0]), 1e-6
    sides = [[(loss(x[0] + sign * step * unit) - here) / (sign * step) for unit in np.eye(2)] for sign in (1.0, -1.0)]
    assert abs(sides[0][0] - sides[1][0]) > 0.01
    np.testing.assert_allclose(found, np.mean(sides, axis=0), rtol=1e-4)


@pytest.mark.parametrize("name", ["circuit 3", "circuit 4", "circuit 10 with devices"])
@pytest.mark.parametrize("outputs", [1, 2])
def test_coupled_learning_is_driven_by_output_conductance_times_error(name: str, outputs: int) -> None:
    """With several outputs another direction than the gradient of the squared error, with one parallel to it."""
    given, x = made(name)
    block = CircuitBlock(given.whole, given.roles._replace(outputs=given.roles.outputs[:outputs]), 1e-10)
    free = block.relax(x)
    problem = problem_at(block, x, free.output + 0.1 * np.random.default_rng(0).normal(size=free.output.shape))
    columns = []
    for unit in np.eye(outputs):
        pull = 1e-6 * np.tile(unit, (len(x), 1))
        columns.append((block.relax(x, Nudge(-pull), free).output - block.relax(x, Nudge(pull), free).output) / 2e-6)
    error = free.output - problem.target
    driven = np.linalg.solve(np.stack(columns, axis=2), error[:, :, None])[:, :, 0]
    parameters, inputs = block.implicit(free, x, driven, problem.weight)
    exact = ImplicitDifferentiation().estimate(problem)
    limit = exact._replace(parameters=parameters, inputs=inputs)
    off = [distance(CoupledLearning(eta).estimate(problem), limit) for eta in (2e-4, 1e-4)]
    assert off[1] < 1e-2 and np.log2(off[0] / off[1]) == pytest.approx(1.0, abs=0.2)
    if outputs == 2:
        assert flat(limit) @ flat(exact) < 0.9999 * np.linalg.norm(flat(limit)) * np.linalg.norm(flat(exact))
    alone = problem_at(block, x[:1], problem.target[:1])
    if outputs == 1:
        a, b = flat(CoupledLearning(1e-5).estimate(alone)), flat(ImplicitDifferentiation().estimate(alone))
        assert a @ b == pytest.approx(np.linalg.norm(a) * np.linalg.norm(b), rel=1e-7)


def test_the_agnostic_move_is_a_minimum_of_the_total_energy() -> None:
    """‖u − θ‖²/(2ε) + Σ_b weight_b (E_b + β cost_b), at knobs that hold θ in the free phase, is least at the new θ."""
    problem = problem_of(1)
    block, epsilon, beta = problem.block, 0.02, 0.05
    gradient = AgnosticPropagation(epsilon, beta).estimate(problem).parameters
    zero = problem.free._replace(voltages=0 * problem.free.voltages)
    push = block.parameter_difference(problem.free, zero, problem.x, problem.weight)
    knobs = {name: theta + epsilon * push[name] for name, theta in block.parameters.items()}
    moved = block.at({name: theta - epsilon * beta * gradient[name] for name, theta in block.parameters.items()})

    def total() -> float:
        state = RESISTOR.relax(problem._replace(block=moved), beta)
        energy = moved.energy(state, problem.x) + beta * problem.loss.value(state.output, problem.target)
        springs = sum(((knobs[name] - theta) ** 2).sum() for name, theta in moved.parameters.items()) / (2 * epsilon)
        return float(springs + problem.weight @ energy)

    for name, step, slope in slopes(moved, problem.x, total):
        assert name == "x" or abs(slope) < 1e-6 * np.abs(step).sum()


def test_weights_leave_samples_out() -> None:
    problem = problem_of(0)
    for rule in (EquilibriumPropagation(), ImplicitDifferentiation(), CoupledLearning(), FrequencyPropagation()):
        parts = [flat(rule.estimate(problem._replace(weight=unit))) for unit in np.eye(3) / 3]
        np.testing.assert_allclose(flat(rule.estimate(problem)), sum(parts), rtol=1e-9, atol=1e-12)


CLAMP = "clamp at 1 V\nV1 in 0 0\nR1 in out 1\nVref ref 0 1\nD1 out ref\n"
"""The output follows the input up to 1 V; beyond, the diode takes x − 1 A. A nudge draws β (out − y) A."""


def clamped(*x: float) -> GradientProblem:
    return problem_at(circuit_block(loads(CLAMP), "V1", "v(out)", "R1"), np.array(x)[:, None], np.zeros((len(x), 1)))


# x = 1.05: 0.05 A through the diode, error 1 V; x = 0.97: 0.03 V below the clamp, error 0.97 V; x = 0.5: far.
@pytest.mark.parametrize(
    ("rule", "kinks"),
    [
        (EquilibriumPropagation(0.02), [0, 0, 0]),
        (EquilibriumPropagation(0.04), [0, 1, 0]),
        (EquilibriumPropagation(0.06), [1, 1, 0]),
        (EquilibriumPropagation(0.06, "positive"), [1, 0, 0]),
        (EquilibriumPropagation(0.06, "negative"), [0, 1, 0]),
        (EquilibriumPropagation(1.2, "negative"), [0, 1, 1]),
        (FrequencyPropagation(0.06), [1, 1, 0]),
        # The clamped output lies η · out below the free one: the diode blocks.
        (CoupledLearning(0.1), [1, 0, 0]),
        (ImplicitDifferentiation(), [0, 0, 0]),
    ],
)
def test_kinks_worked_out_by_hand(rule: Any, kinks: list[int]) -> None:
    problem = clamped(1.05, 0.97, 0.5)
    found = rule.estimate(problem).kinks
    assert found.changes.tolist() == kinks and found.switches == 1
    _, metrics = Learner(problem.block, rule, SquaredError()).gradient(
        (problem.x, problem.target), np.random.default_rng(0)
    )
    assert metrics["kinks"] == metrics["kink_share"] == pytest.approx(sum(kinks) / 3) == pytest.approx(found.share)


def test_implicit_differentiation_counts_the_kinks_it_stands_on() -> None:
    found = ImplicitDifferentiation().estimate(clamped(1.0, 1.0 + 1e-6, 1.0 - 1e-6, 1.05))
    assert found.kinks.changes.tolist() == [1, 0, 0, 0]
    # The derivative by the input: 1 below the clamp, 0 above; at the kink one of the two.
    np.testing.assert_allclose(found.inputs[1:, 0], [0.0, 1.0 - 1e-6, 0.0], atol=1e-9)
    assert min(abs(found.inputs[0, 0]), abs(found.inputs[0, 0] - 1.0)) < 1e-9


@pytest.mark.parametrize(("share", "kinks"), [(0.0, 0), (0.25, 1), (0.5, 2)])
def test_an_automatic_beta_keeps_below_the_share(share: float, kinks: int) -> None:
    problem = clamped(1.05, 0.97, 0.5, 1.0 + 1e-4)
    found = EquilibriumPropagation("auto", kink_share=share).estimate(problem)
    assert found.kinks.changes.sum() <= kinks
    above = EquilibriumPropagation(4 * found.beta).estimate(problem)
    assert found.beta == pytest.approx(0.1 * problem.block.stiffness_limit()) or above.kinks.changes.sum() > kinks
    exact = flat(ImplicitDifferentiation().estimate(problem))
    assert share > 0.0 or np.abs(flat(found) - exact).max() < 1e-12
    assert np.abs(flat(EquilibriumPropagation(0.06).estimate(problem)) - exact).max() > 1e-4


def estimated(rule: Any, loss: Any = None, **changes: Any) -> Estimate:
    return rule.estimate(problem_of(0, loss)._replace(**changes))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: EquilibriumPropagation("auto", kink_share=2.0), UsageError, "the fraction of diodes"),
        (lambda: CoupledLearning(2.0), UsageError, r"in \(0, 1\]"),
        (lambda: FrequencyPropagation(-1.0), UsageError, "amplitude must be positive"),
        (lambda: FrequencyPropagation(0.1, 2), UsageError, "at least 3 times"),
        (lambda: AgnosticPropagation(0.0), UsageError, "epsilon and beta"),
        (lambda: SquaredError(1.0, 0.0), UsageError, "must lie above"),
        (lambda: CrossEntropy(0.0), UsageError, "temperature"),
        (lambda: estimated(CoupledLearning(), CrossEntropy()), UsageError, "squared error only"),
        (lambda: estimated(EquilibriumPropagation(), CrossEntropy(), target=np.zeros((3, 2))), UsageError, "a class"),
        (
            lambda: estimated(
                EquilibriumPropagation(1.0, "negative", replace(FOLLOWING, iterations=2)), CrossEntropy(0.5)
            ),
            ConvergenceError,
            "smaller --beta",
        ),
    ],
)
def test_what_a_rule_does_not_fit_is_refused(make: Callable[[], Any], error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        make()


@pytest.mark.filterwarnings("ignore::circuitsim.errors.DeckWarning")
@pytest.mark.parametrize("rule", [EquilibriumPropagation(), AgnosticPropagation(), CoupledLearning()])
def test_rules_of_energies_refuse_controlled_sources_by_type(rule: Any) -> None:
    deck = "t\nV1 in 0 0\nR1 in a 1\nE1 b 0 in a 2\nR2 b a 1\nR3 a 0 1\n"
    problem = problem_at(circuit_block(loads(deck), "V1", "v(a)", "R*"), np.ones((1, 1)), np.zeros((1, 1)))
    with pytest.raises(CircuitError, match="controlled source"):
        rule.estimate(problem)


def test_classes_become_target_voltages_and_curvature_is_bounded() -> None:
    loss = SquaredError(-0.5, 0.5)
    output = np.array([[0.5, -0.5], [0.0, 0.5]])
    assert loss.value(output, np.array([0, 1])).tolist() == [0.0, 0.125]
    assert loss.gradient(output, np.array([0, 1])).tolist() == [[0.0, 0.0], [0.5, 0.0]]
    rng, entropy, label = np.random.default_rng(0), CrossEntropy(0.7), np.array([2])
    for _ in range(50):
        o, u = rng.normal(size=(1, 4)), rng.normal(size=(1, 4))
        slope = entropy.gradient(o + 1e-5 * u, label) - entropy.gradient(o - 1e-5 * u, label)
        assert (slope * u).sum() / 2e-5 <= entropy.gradient_lipschitz * (u @ u.T).item() * (1 + 1e-6)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("D1.rs", "D1.rs is 0: state its bounds, min= and max="),
        ("D1.tnom", "D1.tnom cannot be trained: there is no rule for the tnom of a junction diode"),
        ("D1.is min=1 max=2", "D1.is has 1e-09 A, outside its bounds 1 … 2 A"),
        ("D2.ron min=0 max=5", r"state bounds \(min=, max=\) that keep each resistance above zero"),
        ("D2.ron min=1 max=1k", "must not be above Roff .*; state narrower bounds"),
        ("D1.bv", "no element matches|D1.bv"),
        ("D1", "parameters of devices"),
    ],
)
def test_what_cannot_be_trained_is_refused_by_name(line: str, message: str) -> None:
    circuit = loads("t\nV1 a 0 1\nD1 a 0 d\nD2 a 0 p\n.model d D(IS=1n)\n.model p D(Ron=2 Roff=100)\n")
    with pytest.raises(UsageError, match=message):
        circuit_block(circuit, "V1", "v(a)", line)
