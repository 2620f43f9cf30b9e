"""Implicit steps: backward Euler after a discontinuity, else a Runge-Kutta method whose stages share their resistances.

The method is ARK3(2)4L[2]SA of Kennedy & Carpenter (2003), its implicit part: the first stage is the last one of the
step before, three implicit stages have the same diagonal coefficient, the last of them ends the step. It is of order 3
and L-stable; an embedded method of order 2 estimates the local error. Kirchhoff's laws and the devices' laws hold in
all stages, so at the ends of steps too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.time_domain.companion import Beginning, Companion, Solved

ORDER = 3
DIAGONAL = 0.43586652150845899942
"""Coefficient γ of a stage's own derivative: of γ³ − 3 γ² + 3 γ / 2 = 1/6 the root for which the method is L-stable."""
NODES = np.array([0.0, 2.0 * DIAGONAL, 0.6, 1.0])
"""Times of the stages, in steps."""


def _before() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Coefficients of earlier derivatives in the implicit stages: inner stages of order 2, the last one of order 3."""
    inner = (0.5 * NODES[2] ** 2 - DIAGONAL * NODES[2]) / NODES[1]
    moments = 1.0 / np.arange(1.0, 4.0) - DIAGONAL
    last = np.linalg.solve(np.vander(NODES[:3], increasing=True).T, moments)
    return np.array([DIAGONAL]), np.array([NODES[2] - DIAGONAL - inner, inner]), last


BEFORE = _before()
"""Coefficients of the derivatives of earlier stages, in the implicit stages."""
_TABLE, _NONE = np.array([np.pad(row, (0, 3 - row.size)) for row in BEFORE]), np.zeros((1, 1))
WEIGHTS = np.append(BEFORE[2], DIAGONAL)
"""Of all stages in integrals over the step."""
_LATE = np.array([0.8687250025, 0.4016969751])
"""Of the last two stages in the embedded method of order 2 (Kennedy & Carpenter 2003)."""
_SECOND = (0.5 - NODES[2:] @ _LATE) / NODES[1]
ERROR = WEIGHTS - np.array([1.0 - _LATE.sum() - _SECOND, _SECOND, *_LATE])
"""Weights of the estimate of the local error."""

Moving = Callable[[float], list[tuple[np.ndarray, np.ndarray]]]
"""Elements and their values at a time."""


class Point(NamedTuple):
    """The circuit at a time.

    Attributes
    ----------
    time : float
        s.
    x : (q,) float array
        Capacitor voltages, V, inductor currents, A.
    slope : (q,) float array
        Their derivatives.
    voltage, current : (m,) float arrays
        Of all branches.
    solved : OperatingPoint
        Of the stage.
    """

    time: float
    x: np.ndarray
    slope: np.ndarray
    voltage: np.ndarray
    current: np.ndarray
    solved: OperatingPoint


class Step(NamedTuple):
    """A step.

    Attributes
    ----------
    length : float
        s.
    stages : tuple of Point
        The last one is its end.
    error : (q,) float array
        Estimate of the local error; of backward Euler the change.
    """

    length: float
    stages: tuple[Point, ...]
    error: np.ndarray

    @property
    def end(self) -> Point:
        """Where it ends."""
        return self.stages[-1]


def euler_step(
    companion: Companion, moving: Moving, time: float, x: np.ndarray, length: float, near: OperatingPoint | None
) -> Step:
    """A step of backward Euler from states x (q,) to ``time``, with the sources at ``time``."""
    (end,) = _stages(companion, moving, (time,), Beginning(x, [np.zeros(x.size)], length, length, _NONE), near)
    return Step(length, (end,), end.x - x)


def third_order_step(
    companion: Companion,
    moving: Moving,
    begin: tuple[float, np.ndarray, np.ndarray, OperatingPoint | None],
    length: float,
    end: float,
) -> Step:
    """A step of the Runge-Kutta method.

    Parameters
    ----------
    begin : tuple
        Time, s, states and their derivatives (q,), an operating point nearby.
    length : float
        s.
    end : float
        Time at which the last stage takes the sources, s: before their jump, where they have one.
    """
    time, x, slope, near = begin
    times = (*(time + length * share for share in NODES[1:3].tolist()), end)
    begun = Beginning(x, [slope], length, DIAGONAL * length, _TABLE)
    stages = _stages(companion, moving, times, begun, near)
    error = length * sum(weight * own for weight, own in zip(ERROR, begun.slopes))
    return Step(length, stages, np.asarray(error))


def _stages(
    companion: Companion, moving: Moving, times: tuple[float, ...], begin: Beginning, near: OperatingPoint | None
) -> tuple[Point, ...]:
    """The stages at some times, each from all those before it."""
    stages, changed = list[Point](), [moving(time) for time in times]
    while len(stages) < len(times):
        k = len(stages)
        for found in companion.solve_stages(begin, changed[k:], near) or [_stage(companion, begin, changed[k], near)]:
            stages.append(Point(times[len(stages)], *found))
            begin.slopes.append(found.slope)
        near = stages[-1].solved
    return tuple(stages)


def _stage(
    companion: Companion, begin: Beginning, changed: list[tuple[np.ndarray, np.ndarray]], near: OperatingPoint | None
) -> Solved:
    """The stage after the known ones."""
    row = begin.before[len(begin.slopes) - 1]
    base = begin.x + begin.length * sum(weight * own for weight, own in zip(row, begin.slopes))
    solved = companion.solve(begin.share, base, changed, near)
    change = companion.state(solved)
    x = base + change
    return Solved(x, change / begin.share, *companion.waves(solved, x), solved)
