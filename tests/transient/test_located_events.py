"""Events of the implicit method: roots to their resolution, in few steps; steps of equal length."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import cast

import numpy as np
import pytest

from circuitsim import Circuit
from circuitsim.time_domain import Sine, implicit, transient
from circuitsim.time_domain.implicit_events import located
from circuitsim.time_domain.implicit_step import NODES, Point, Step

BEND, RESOLUTION = 1e-9, 1e-7


def smooth(t: float, root: float) -> float:
    return float(np.sin(root + 0.3) - np.sin(t + 0.3))


def bent(t: float, root: float) -> float:
    """A voltage before, a current beyond: its slope is 30 times as large from 1e-9 on."""
    return BEND + (30.0 if t > root else 1.0) * (root - t + 0.4 * (t - root) ** 2)


def flat(t: float, root: float) -> float:
    """Neither voltage nor current before."""
    return BEND + min(root - t + 0.3 * (t - root) ** 2, 0.0)


def jumping(t: float, root: float) -> float:
    return 1.0 if t < root else -2.0


@pytest.mark.parametrize(
    ("distance", "bend", "mean", "most"),
    [(smooth, math.inf, 5.5, 7), (bent, BEND, 6.0, 10), (flat, BEND, 8.0, 20), (jumping, math.inf, 27.0, 32)],
)
def test_events_are_between_the_last_two_lengths(
    distance: Callable[[float, float], float], bend: float, mean: float, most: int
) -> None:
    attempts = []
    for root in np.random.default_rng(1).uniform(0.01, 0.99, 200).tolist():
        lengths: list[float] = []

        def attempt(length: float, lengths: list[float] = lengths) -> Step:
            lengths.append(length)
            return step(length)

        def far(point: Point, root: float = root) -> float:
            return distance(cast(float, point), root)

        length, error, found = located(attempt, far, bend, at(0.0), step(1.0), RESOLUTION)
        assert found.length == length and error <= RESOLUTION
        assert distance(length, root) < 0.0 <= distance(length - error, root)
        attempts.append(len(lengths))
    assert np.mean(attempts) <= mean and max(attempts) <= most


def at(time: float) -> Point:
    """Points of which the time alone counts."""
    return cast(Point, time)


def step(length: float) -> Step:
    stages = tuple(at(length * share) for share in NODES[1:].tolist())
    return Step(length, stages, np.zeros(1), np.zeros((5, 1)), np.zeros((5, 2, 1)))


def test_equal_steps_have_equal_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lengths differ by more than rounding or not at all: a factor belongs to all bits of a length."""
    circuit = Circuit()
    circuit.voltage_source("V1", "in", "0", 0.0)
    circuit.resistor("R1", "in", "out", 1e3)
    circuit.add("C", "C1", "out", "0", 1e-6)
    lengths = []
    taken = implicit.runge_kutta_step
    monkeypatch.setattr(implicit, "runge_kutta_step", lambda *given: lengths.append(given[3]) or taken(*given))
    found = transient(circuit, 7e-3, {"V1": Sine(0.0, 5.0, 1e3)}, {}, points=12, method="implicit", accuracy=1e-6)
    change = np.abs(np.diff(lengths)) / lengths[1:]
    assert ((change == 0.0) | (change > 1e-9)).all()
    assert (change == 0.0).sum() > 0.7 * found.steps > 200
