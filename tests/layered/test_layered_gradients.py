"""Gradients in the compiled steps of deep resistive networks, beside the block's sweeps and its adjoint."""

import numpy as np
import pytest
from energy_blocks import agree, slopes

from circuitsim.blocks.layered import Sweeps
from circuitsim.layered import Architecture, DeepResistiveNetwork, LayeredLearner

# Outputs in odd and in even layers; three samples are no multiple of four.
SHAPES = pytest.mark.parametrize("hidden", [(12,), (12, 10), (9, 10, 8), (8, 9, 7, 6)], ids=str)
SAMPLES = pytest.mark.parametrize("samples", [3, 8])


def setting(hidden: tuple[int, ...], samples: int) -> tuple[DeepResistiveNetwork, np.ndarray, np.ndarray]:
    """A network whose conductances are far from zero, inputs and labels."""
    rng = np.random.default_rng(4)
    net = DeepResistiveNetwork(Architecture((6, *hidden, 3), 2.0), sweeps=5000, tolerance=1e-14)
    for name, array in net.parameters.items():
        array[...] = rng.normal(0, 0.05, array.shape) if name.startswith("bias") else rng.uniform(1.0, 2.0, array.shape)
    return net, rng.normal(size=(samples, 6)), rng.integers(0, 3, samples)


def stepped(
    net: DeepResistiveNetwork, x: np.ndarray, labels: np.ndarray, method: str, free: int, back: int
) -> dict[str, np.ndarray]:
    """The gradient by each parameter: a step of a learner at rate one."""
    start = net.at(net.parameters)
    start.sweeps = Sweeps(free, back, None, reverse_nudged=False)
    made = LayeredLearner(start, len(x), method)
    made.steps((x, labels), np.arange(len(x)), len(x), dict.fromkeys(net.parameters, 1.0), np.random.default_rng(0))
    return {name: array - made.network().parameters[name] for name, array in net.parameters.items()}


@SHAPES
@SAMPLES
def test_backpropagation_is_the_derivative_of_the_sweeps_after_the_free_ones(
    hidden: tuple[int, ...], samples: int
) -> None:
    """From a state that has not converged, so that every sweep counts."""
    net, x, labels = setting(hidden, samples)
    gradient = stepped(net, x, labels, "bp", 1, 3)
    once, thrice = (DeepResistiveNetwork(net.architecture, rng=0, sweeps=k, tolerance=0.0) for k in (1, 3))
    once.parameters = thrice.parameters = net.parameters
    start, target = once.relax(x), np.eye(3)[labels]

    def loss() -> float:
        return 0.5 * ((thrice.relax(x, None, start).output - target) ** 2).sum() / samples

    assert gradient.keys() == net.parameters.keys()
    for name, step, slope in slopes(net, x, loss):
        if name in gradient:
            agree(gradient[name], step, slope, name)


@SHAPES
@SAMPLES
def test_converged_gradients_are_those_of_the_block(hidden: tuple[int, ...], samples: int) -> None:
    net, x, labels = setting(hidden, samples)
    free = net.relax(x)
    exact = net.implicit(free, x, free.output - np.eye(3)[labels], np.full(samples, 1.0 / samples))[0]
    found = stepped(net, x, labels, "bp", 1000, 300)
    for name, array in exact.items():
        np.testing.assert_allclose(found[name], array, rtol=0, atol=1e-9 * np.abs(array).max())
