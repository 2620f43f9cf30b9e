"""Deep Hopfield blocks: minima, nudges, gradients against finite differences, adjoint and truncated backprop."""

from __future__ import annotations

import numpy as np
import pytest

from circuitsim.blocks import EnergyBlock, Nudge
from circuitsim.blocks.hopfield import DeepHopfieldBlock, Sweeps
from circuitsim.errors import ConvergenceError, TopologyError, UsageError

EXACT = Sweeps(2000, 2000, 1e-14)


def block(layers: list[int], **options: object) -> DeepHopfieldBlock:
    made = DeepHopfieldBlock(layers, **{"rng": 3, "sweeps": EXACT, "spread": 0.8, **options})  # type: ignore[arg-type]
    rng = np.random.default_rng(5)
    for name, array in made.parameters.items():
        if name.startswith("bias"):
            array[...] = rng.uniform(0.1, 0.5, array.shape)
    return made


CASES = [
    ({}, [5, 4, 3]),
    ({"clamped": False}, [5, 4, 3, 2]),
    ({"activation": "laborieux"}, [4, 6, 5]),
    ({"activation": "laborieux", "clamped": False, "inputs": 7}, [6, 5, 3]),
    ({"inputs": 3}, [4, 3]),
    ({"clamped": False}, [4]),
]


Setting = tuple[DeepHopfieldBlock, np.ndarray, np.ndarray, np.ndarray]


def setting(options: dict[str, object], layers: list[int]) -> Setting:
    made = block(layers, **options)
    rng = np.random.default_rng(7)
    x = rng.uniform(-0.3, 0.9, (6, made.n_inputs))
    return made, x, rng.normal(size=(6, made.n_outputs)), rng.uniform(0.2, 1.0, 6)


@pytest.mark.parametrize(("options", "layers"), CASES)
def test_relaxation_reaches_a_minimum_of_the_energy(options: dict[str, object], layers: list[int]) -> None:
    made, x, _, _ = setting(options, layers)
    assert isinstance(made, EnergyBlock)
    state = made.relax(x)
    assert state.residual.max() < 1e-12
    assert state.certified.all()
    least = made.energy(state, x)
    rng = np.random.default_rng(0)
    for _ in range(20):
        moved = []
        for s, layer in zip(state.layers, made._layers, strict=True):
            step = s + 1e-3 * rng.normal(size=s.shape)
            moved.append(step if layer.lower is None else np.clip(step, layer.lower, layer.upper))
        assert (state.layered_energy.energy(state.constants, moved) > least).all()


@pytest.mark.parametrize(("options", "layers"), CASES)
def test_implicit_is_the_finite_difference_of_the_relaxed_output(options: dict[str, object], layers: list[int]) -> None:
    made, x, cotangent, weight = setting(options, layers)

    def value() -> float:
        return float((weight * (made.relax(x).output * cotangent).sum(axis=1)).sum())

    gradients, inputs = made.implicit(made.relax(x), x, cotangent, weight)
    assert set(gradients) == set(made.parameters)
    for name, array in [*made.parameters.items(), ("x", x)]:
        expected = np.empty_like(array)
        for place in np.ndindex(array.shape):
            old = array[place]
            array[place] = old + 1e-6
            high = value()
            array[place] = old - 1e-6
            expected[place] = (high - value()) / 2e-6
            array[place] = old
        found = inputs * weight[:, None] if name == "x" else gradients[name]
        np.testing.assert_allclose(found, expected, atol=2e-8, rtol=1e-6, err_msg=name)


@pytest.mark.parametrize(("options", "layers"), CASES)
def test_contrast_of_nudged_states_is_the_implicit_gradient(options: dict[str, object], layers: list[int]) -> None:
    """Stationary nudges are exact at finite β while no unit meets a bound."""
    made, x, cotangent, weight = setting(options, layers)
    free = made.relax(x)
    beta = 1e-4
    plus, minus = (made.relax(x, Nudge(sign * beta * cotangent), free) for sign in (1, -1))
    exact, inputs = made.implicit(free, x, cotangent, weight)
    for name, value in made.parameter_difference(plus, minus, x, weight).items():
        np.testing.assert_allclose(value / (2 * beta), exact[name], atol=1e-9, err_msg=name)
    np.testing.assert_allclose(made.input_difference(plus, minus, x) / (2 * beta), inputs, atol=1e-9)


def reverse_mode(
    made: DeepHopfieldBlock, layers: list[np.ndarray], cotangent: np.ndarray, sweeps: int
) -> dict[str, np.ndarray]:
    """Plain backpropagation through so many free sweeps that start and stay at a fixed point, gate by gate."""
    count = len(layers)
    order = [*range(0, count, 2), *range(1, count, 2)]
    adjoint = [np.zeros_like(s) for s in layers]
    adjoint[-1] += cotangent
    total = {name: np.zeros_like(array) for name, array in made.parameters.items()}
    for _ in range(sweeps):
        for index in reversed(order):
            slope = made._layers[index].slope
            inside = (layers[index] > 0) & (layers[index] < 1) if made._layers[index].lower is not None else 1.0
            pull = adjoint[index] * inside / slope
            adjoint[index] = np.zeros_like(pull)
            total[f"bias{index + 1}"] += pull.sum(axis=0)
            if index > 0:
                total[f"weights{index}"] += layers[index - 1].T @ pull
                adjoint[index - 1] += pull @ made.parameters[f"weights{index}"].T
            if index + 1 < count:
                total[f"weights{index + 1}"] += pull.T @ layers[index + 1]
                adjoint[index + 1] += pull @ made.parameters[f"weights{index + 1}"]
    return total


@pytest.mark.parametrize(
    ("options", "layers"), [({}, [6, 5, 4]), ({"clamped": False}, [5, 6, 5, 3]), ({"activation": "laborieux"}, [4] * 5)]
)
def test_every_nudged_sweep_is_a_step_of_backpropagation(options: dict[str, object], layers: list[int]) -> None:
    """The GDU property (Nest & Ernoult 2024, Eq. 98), in double precision, off kinks."""
    made, x, cotangent, _ = setting(options, layers)
    weight, beta = np.ones(len(x)), 1e-4
    free = made.relax(x)
    for sweeps in range(1, 13):
        made.sweeps = Sweeps(1, sweeps)
        plus, minus = (made.relax(x, Nudge(sign * beta * cotangent), free) for sign in (1, -1))
        expected = reverse_mode(made, list(free.layers), cotangent, sweeps)
        truncated, inputs = made.truncated(free, x, cotangent, weight, sweeps)
        for name, value in made.parameter_difference(plus, minus, x, weight).items():
            np.testing.assert_allclose(value / (2 * beta), expected[name], atol=1e-9, rtol=0, err_msg=name)
            np.testing.assert_allclose(truncated[name], expected[name], atol=1e-12, rtol=1e-12, err_msg=name)
        np.testing.assert_allclose(made.input_difference(plus, minus, x) / (2 * beta), inputs, atol=1e-9, rtol=0)


def test_forward_order_of_nudged_sweeps_breaks_that_property() -> None:
    made, x, cotangent, _ = setting({}, [6, 5, 4, 3])
    free = made.relax(x)
    made.sweeps = Sweeps(1, 2, reverse_nudged=False)
    plus, minus = (made.relax(x, Nudge(sign * 1e-4 * cotangent), free) for sign in (1, -1))
    found = made.parameter_difference(plus, minus, x, np.ones(len(x)))["weights1"] / 2e-4
    expected = reverse_mode(made, list(free.layers), cotangent, 2)["weights1"]
    assert np.abs(found - expected).max() > 1e-3


def test_elastic_nudge_is_the_exact_minimiser_and_follow_has_its_limit() -> None:
    """(pull + β y)/(1 + β) in one step, and the fixed point of the published step, agree."""
    made, x, _, _ = setting({"clamped": False, "inputs": 4}, [6, 5, 3])
    y, beta = np.random.default_rng(1).uniform(size=(6, 3)), 0.2
    free = made.relax(x)
    exact = made.relax(x, Nudge(-beta * y, beta), free)
    pull = exact.layers[-2] @ made.parameters["weights2"] + made.parameters["bias3"]
    np.testing.assert_allclose(exact.output, (pull + beta * y) / (1 + beta), atol=1e-12)
    follow = made.relax(x, Nudge(np.zeros_like(y), follow=lambda s: beta * (s - y)), free)
    np.testing.assert_allclose(follow.output, exact.output, atol=1e-12)
    assert exact.residual.max() < 1e-12
    assert follow.residual.max() < 1e-12


def test_fixed_sweeps_report_their_residual_and_single_precision_stays_single() -> None:
    made = block([40, 30, 20], dtype=np.float32, sweeps=Sweeps(2, 2), spread=1.0)
    state = made.relax(np.random.default_rng(0).uniform(size=(5, 40)))
    assert all(layer.dtype == np.float32 for layer in state.layers)
    assert state.certified.all()
    assert (state.residual > 1e-6).all()
    made.sweeps = Sweeps(2, 2, tolerance=1e-6)
    assert not made.relax(np.random.default_rng(0).uniform(size=(5, 40))).certified.any()


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(UsageError, match="activation"):
        DeepHopfieldBlock([3, 2], activation="relu")
    with pytest.raises(TopologyError, match="at least one unit"):
        DeepHopfieldBlock([3, 0])
    with pytest.raises(UsageError, match="rows of 3 inputs"):
        DeepHopfieldBlock([3, 2]).relax(np.zeros((1, 4)))
    unstable = DeepHopfieldBlock([1, 1])
    unstable.parameters["weights1"][...] = 3.0
    middle = unstable.relax(np.full((1, 1), 0.0))
    # A point between the bounds at which the energy curves down is no minimum.
    for layer in middle.relaxed.layers:
        layer[...] = 0.5
    with pytest.raises(ConvergenceError, match="strict minimum"):
        unstable.implicit(middle, np.zeros((1, 1)), np.ones((1, 1)), np.ones(1))
