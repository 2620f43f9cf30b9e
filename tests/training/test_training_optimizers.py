"""Optimisers against their formulas written out, and schedules against theirs."""

import math

import numpy as np
import pytest

from circuitsim.errors import UsageError
from circuitsim.training import SGD, Adam, Constant, Cosine, Exponential, Momentum


def _walk(optimizer, gradients, factor=1.0):
    """The parameter after each gradient, from a fixed start."""
    parameters = {"w": np.array([1.0, -2.0])}
    memory = optimizer.start(parameters)
    path = []
    for gradient in gradients:
        optimizer.step(parameters, {"w": np.array(gradient)}, memory, factor)
        path.append(parameters["w"].copy())
    return path


GRADIENTS = [[0.5, 1.0], [-1.0, 0.25], [2.0, -0.5]]


def test_sgd_with_decay_and_factor():
    p = np.array([1.0, -2.0])
    for got, gradient in zip(_walk(SGD(0.1, decay=0.3), GRADIENTS, factor=0.5), GRADIENTS, strict=True):
        p = p - 0.05 * (np.array(gradient) + 0.3 * p)
        np.testing.assert_allclose(got, p, rtol=1e-15)


def test_momentum():
    p, u = np.array([1.0, -2.0]), np.zeros(2)
    for got, gradient in zip(_walk(Momentum(0.1, 0.8, {"w": 0.2}), GRADIENTS), GRADIENTS, strict=True):
        u = 0.8 * u + np.array(gradient) + 0.2 * p
        p = p - 0.1 * u
        np.testing.assert_allclose(got, p, rtol=1e-15)


def test_adam():
    p, m, v = np.array([1.0, -2.0]), np.zeros(2), np.zeros(2)
    for step, (got, gradient) in enumerate(zip(_walk(Adam(0.01), GRADIENTS), GRADIENTS, strict=True), start=1):
        g = np.array(gradient)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        p = p - 0.01 * (m / (1 - 0.9**step)) / (np.sqrt(v / (1 - 0.999**step)) + 1e-8)
        np.testing.assert_allclose(got, p, rtol=1e-13)


@pytest.mark.parametrize("optimizer", [SGD(0.1), Momentum(0.1, 0.9), Adam(0.1)])
def test_single_precision_stays_single(optimizer):
    parameters = {"w": np.ones(2, np.float32)}
    memory = optimizer.start(parameters)
    optimizer.step(parameters, {"w": np.ones(2, np.float32)}, memory, 0.5)
    assert parameters["w"].dtype == np.float32
    assert (parameters["w"] < 1).all()


def test_rates_and_decays_by_name():
    parameters = {"a": np.ones(1), "b": np.ones(1)}
    optimizer = SGD({"a": 0.1, "b": 0.0}, decay={"a": 1.0})
    optimizer.step(parameters, {"a": np.zeros(1), "b": np.ones(1)}, optimizer.start(parameters), 1.0)
    assert parameters["a"][0] == pytest.approx(0.9) and parameters["b"][0] == 1.0


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: SGD(-0.1), "a learning rate must be finite and not negative, not -0.1"),
        (lambda: Adam(math.nan), "a learning rate must be finite and not negative, not nan"),
        (lambda: SGD(0.1, decay=-1), "a weight decay must be finite and not negative, not -1"),
        (lambda: Momentum(0.1, 1.0), "momentum must lie in [0, 1), not 1.0"),
        (lambda: Adam(0.1, beta2=1.0), "Adam's averages must lie in [0, 1), not 0.9 and 1.0"),
        (
            lambda: SGD({"v": 0.1}).start({"w": np.ones(1)}),
            "learning rates are given for ['v'], but the parameters are ['w']",
        ),
        (
            lambda: SGD(0.1, {"v": 0.1}).start({"w": np.ones(1)}),
            "weight decays are given for ['v'], but the parameters are ['w']",
        ),
        (lambda: Exponential(0.0), "the rate's decay per epoch must lie in (0, 1], not 0.0"),
        (lambda: Cosine(0), "a cosine schedule needs at least one epoch, not 0"),
        (lambda: Cosine(3, 2.0), "the final rate of a cosine schedule is a fraction in [0, 1], not 2.0"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(UsageError) as caught:
        make()
    assert str(caught.value) == message


def test_schedules():
    assert [Constant().factor(e) for e in (0, 7)] == [1.0, 1.0]
    assert Exponential(0.99).factor(3) == pytest.approx(0.99**3)
    cosine = Cosine(10, final=0.1)
    assert [cosine.factor(e) for e in (0, 5, 10, 99)] == pytest.approx([1.0, 0.55, 0.1, 0.1])
