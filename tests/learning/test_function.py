"""Blocks as differentiable functions: derivatives against finite differences, bounds, errors."""

import numpy as np
import pytest

import circuitsim
from circuitsim.errors import ConvergenceError, UsageError
from circuitsim.learning.function import DifferentiableBlock, circuit_block, evaluate


def divider() -> DifferentiableBlock:
    """v = V / (1 + g2⁻¹…): two resistors, bounded."""
    circuit = circuitsim.loads("divider\nV1 in 0 1\nR1 in out 1\nR2 out 0 2\n.end")
    return circuit_block(circuit, "V1", "v(out)", ["R1 min=0.5 max=4", "R2 min=1 max=4"])


def test_values_beyond_bounds_count_as_the_bound() -> None:
    block, x = divider(), np.array([[3.0]])
    inside = evaluate(block, x, {"conductance": np.array([1.0, 0.5])})
    assert inside.output[0, 0] == pytest.approx(2.0)
    beyond = evaluate(block, x, {"conductance": np.array([5.0, 0.1])})  # bounds: 0.25 … 2, 0.25 … 1
    at = evaluate(block, x, {"conductance": np.array([2.0, 0.25])})
    np.testing.assert_array_equal(beyond.output, at.output)
    exact = at.pullback(np.ones((1, 1)))[0]["conductance"]
    assert exact[0] > 0.0 > exact[1]
    # v rises with g1, which a descent step on v takes back to its bound, and falls with g2, which goes up: both return.
    np.testing.assert_array_equal(beyond.pullback(np.ones((1, 1)))[0]["conductance"], exact)
    # A descent step on −v would lead further away.
    np.testing.assert_array_equal(beyond.pullback(-np.ones((1, 1)))[0]["conductance"], [0.0, 0.0])


def test_samples_without_steady_state_are_named() -> None:
    circuit = circuitsim.loads("clash\nV1 a 0 0\nV2 b 0 1\nD1 a b ideal\n.model ideal D\nR1 a c 1\nR2 c 0 1\n.end")
    block = circuit_block(circuit, "V1", "v(c)", "R*")
    own = dict(block.parameters)
    assert evaluate(block, np.array([[0.5]]), own).output[0, 0] == pytest.approx(0.25)
    with pytest.raises(ConvergenceError, match=r"2 of 3 samples have no certified steady state \(rows 0, 2\)"):
        evaluate(block, np.array([[2.0], [0.5], [3.0]]), own)


@pytest.mark.parametrize(
    ("x", "conductance", "message"),
    [
        (np.zeros((2, 2)), [1.0, 1.0], r"rows of 1 inputs are needed, not an array of shape \(2, 2\)"),
        (np.array([[np.nan]]), [1.0, 1.0], "an input is not finite"),
        (np.zeros((1, 1)), [1.0], r"conductance must be finite values of shape \(2,\), not \[1.\]$"),
        (np.zeros((1, 1)), [1.0, np.inf], r"conductance must be finite values of shape \(2,\), not \[ 1. inf\]$"),
    ],
)
def test_wrong_arguments(x: np.ndarray, conductance: list[float], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        evaluate(divider(), x, {"conductance": np.array(conductance)})


def test_a_block_without_other_parameters_is_named() -> None:
    class Own:
        n_inputs = 1
        parameters: dict[str, np.ndarray] = {}

    with pytest.raises(UsageError, match=r"Own has no method at\(parameters\)"):
        evaluate(Own(), np.zeros((1, 1)), {})  # type: ignore[arg-type]
