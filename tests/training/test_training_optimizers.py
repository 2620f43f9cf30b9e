"""Optimisers against their formulas written out, and schedules against theirs."""

import math

import numpy as np
import pytest

from circuitsim.errors import UsageError
from circuitsim.training import SGD, Adam, Constant, Cosine, Exponential


def _formulas():
    """SGD with decay at half the rate, momentum with a decay by name, Adam: each as its steps p ← p − …"""
    u, m, v = np.zeros((3, 2))

    def sgd(p, g, step):
        return 0.05 * (g + 0.3 * p)

    def momentum(p, g, step):
        u[:] = 0.8 * u + g + 0.2 * p
        return 0.1 * u

    def adam(p, g, step):
        m[:], v[:] = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        return 0.01 * (m / (1 - 0.9**step)) / (np.sqrt(v / (1 - 0.999**step)) + 1e-8)

    return [(SGD(0.1, decay=0.3), 0.5, sgd), (SGD(0.1, {"w": 0.2}, 0.8), 1.0, momentum), (Adam(0.01), 1.0, adam)]


@pytest.mark.parametrize(("optimizer", "factor", "formula"), _formulas())
def test_steps_are_those_of_the_formula(optimizer, factor, formula):
    parameters, expected = {"w": np.array([1.0, -2.0])}, np.array([1.0, -2.0])
    memory = optimizer.start(parameters)
    for step, gradient in enumerate(np.array([[0.5, 1.0], [-1.0, 0.25], [2.0, -0.5]]), start=1):
        expected -= formula(expected, gradient, step)
        optimizer.step(parameters, {"w": gradient}, memory, factor)
        np.testing.assert_allclose(parameters["w"], expected, rtol=1e-13)


@pytest.mark.parametrize("optimizer", [SGD(0.1), SGD(0.1, momentum=0.9), Adam(0.1)])
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
        (lambda: Adam(math.nan), "a learning rate must be finite and non-negative, not nan"),
        (lambda: SGD(0.1, momentum=1.0), r"momentum must lie in \[0, 1\), not 1.0"),
        (lambda: Adam(0.1, beta2=1.0), r"averages must lie in \[0, 1\), not 0.9 and 1.0"),
        (lambda: SGD({"v": 0.1}).start({"w": np.ones(1)}), "rates are given for .*v.*, but the parameters are .*w"),
        (lambda: SGD(0.1, {"v": 0.1}).start({"w": np.ones(1)}), "decays are given for .*v.*, but the parameters are"),
        (lambda: Exponential(0.0), r"decay per epoch must lie in \(0, 1\], not 0.0"),
        (lambda: Cosine(0), "at least one epoch, not 0"),
        (lambda: Cosine(3, 2.0), r"a fraction in \[0, 1\], not 2.0"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(UsageError, match=message):
        make()


def test_schedules():
    assert [Constant().factor(e) for e in (0, 7)] == [1.0, 1.0]
    assert Exponential(0.99).factor(3) == pytest.approx(0.99**3)
    cosine = Cosine(10, final=0.1)
    assert [cosine.factor(e) for e in (0, 5, 10, 99)] == pytest.approx([1.0, 0.55, 0.1, 0.1])
