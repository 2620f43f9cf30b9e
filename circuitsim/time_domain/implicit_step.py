"""Implicit steps: backward Euler after a discontinuity, else a Runge-Kutta method whose stages share their resistances.

The method is ARK4(3)6L[2]SA of Kennedy & Carpenter (2003), its implicit part: the first stage is the last one of the
step before, five implicit stages have the same diagonal coefficient, the last of them ends the step. It is of order 4
and L-stable; an embedded method of order 3 estimates the local error. Kirchhoff's laws and the devices' laws hold in
all stages, so at the ends of steps too. Between them waveforms are weighted means of the stages (dense output), so that
linear laws hold at all times; two more stages inside, whose distance from the dense output is its residual, do not
enter the step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.time_domain.companion import Beginning, Companion

ORDER, DIAGONAL = 4, 0.25
NODES = np.array([0.0, 1 / 2, 83 / 250, 31 / 50, 17 / 20, 1.0])
"""Times of the stages, in steps."""
STAGES = NODES.size - 1
INSIDE = 0.5 + np.array([-0.1, 0.1]) * 5.0**0.5
"""Times of the stages that are compared with the dense output, in steps: with both ends those of Lobatto's rule, whose
integral of the residual is that of a polynomial of degree 5."""


def _table() -> np.ndarray:
    """Coefficients of all slopes in all stages (Kennedy & Carpenter 2003)."""
    table = DIAGONAL * np.eye(NODES.size)
    table[0, 0] = 0.0
    table[2, 1] = -1743 / 31250
    table[3, 1:3] = -654441 / 2922500, 174375 / 388108
    table[4, 1:4] = -71443401 / 120774400, 730878875 / 902184768, 2285395 / 8070912
    table[5, 1:5] = 0.0, 15625 / 83664, 69875 / 102672, -2260 / 8211
    table[:, 0] = NODES - table[:, 1:].sum(axis=1)
    return table


TABLE = _table()
WEIGHTS = TABLE[-1]
"""Of all stages in integrals over the step."""
ERROR = WEIGHTS - np.array(
    [
        4586570599 / 29645900160,
        0.0,
        178811875 / 945068544,
        814220225 / 1159782912,
        -3700637 / 11593932,
        61727 / 225920,
    ]
)
"""Weights of the estimate of the local error."""


def _dense() -> np.ndarray:
    """Weights of the stages in the dense output, as polynomials of the time in steps (stages, powers): cubics of time
    are exact, and of what a differential equation gives the terms A c² and A c³ too."""
    powers = np.vander(NODES, 4, increasing=True).T
    conditions = np.vstack([powers, TABLE @ NODES**2, TABLE @ NODES**3])
    right = np.zeros((NODES.size, ORDER + 1))
    right[range(4), range(4)] = 1.0
    right[4, 3], right[5, 4] = 1 / 3, 1 / 4
    return np.asarray(np.linalg.solve(conditions, right))


DENSE = _dense()
_SLOPES = DENSE[:, 1:] * np.arange(1.0, ORDER + 1.0)


def dense(shares: np.ndarray) -> np.ndarray:
    """Weights of the stages (n, stages) at times (n,) of a step, in steps."""
    return np.asarray(np.vander(shares, ORDER + 1, increasing=True) @ DENSE.T)


def dense_slopes(shares: np.ndarray) -> np.ndarray:
    """Derivatives of `dense` by the times."""
    return np.asarray(np.vander(shares, ORDER, increasing=True) @ _SLOPES.T)


LOOKS, END_SLOPES = dense(INSIDE), dense_slopes(np.array([0.0, 1.0]))
"""Weights of the stages at the times of those inside, and in the slopes of the dense output at both ends."""


def _with_inside() -> np.ndarray:
    """Coefficients of earlier slopes in the implicit stages and in those inside: of these so many that their own slope,
    times the diagonal coefficient, leads from there to the dense output if that has this slope."""
    inside = (LOOKS - DIAGONAL * dense_slopes(INSIDE)) @ TABLE
    return np.pad(np.vstack([np.tril(TABLE, -1)[1:], inside]), ((0, 0), (0, INSIDE.size - 1)))


_EARLIER, _NONE = _with_inside(), np.zeros((1, 1))
_SHARES = [*NODES[1:].tolist(), *INSIDE.tolist()]


RESIDUAL = TABLE[1:] @ np.vander(NODES, 4) @ np.linalg.inv(np.vander([0.0, *INSIDE, 1.0], 4))
"""Weights of residuals of slopes, at both ends of a step and in the stages inside, that lead to the stages."""


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
    states : (k, q) float array
        Of the stages, and of those inside.
    waves : (k, 2, m) float array
        Voltages, V, and currents, A, likewise.
    inside : tuple of Point
        Stages inside, where they were asked for.
    """

    length: float
    stages: tuple[Point, ...]
    error: np.ndarray
    states: np.ndarray
    waves: np.ndarray
    inside: tuple[Point, ...] = ()

    @property
    def end(self) -> Point:
        """Where it ends."""
        return self.stages[-1]


def residual(begin: Point, step: Step) -> np.ndarray:
    """What the residual of the dense output adds to the states of each stage of a step (stages, q); with its stages
    inside, and the point that it begins at."""
    states = np.concatenate([begin.x[None], step.states[:STAGES]])
    ends = END_SLOPES @ states
    inside = (step.states[STAGES:] - LOOKS @ states) / DIAGONAL
    first, last = step.length * begin.slope - ends[0], step.length * step.end.slope - ends[1]
    return np.asarray(RESIDUAL @ np.concatenate([first[None], inside, last[None]]))


def euler_step(
    companion: Companion, moving: Moving, time: float, x: np.ndarray, length: float, near: OperatingPoint | None
) -> Step:
    """A step of backward Euler from states x (q,) to ``time``, with the sources at ``time``."""
    begun = Beginning(x, [np.zeros(x.size)], length, length, _NONE, np.zeros((1, x.size)))
    (end,), states, waves = _stages(companion, moving, (time,), begun, near)
    return Step(length, (end,), end.x - x, states, waves)


def runge_kutta_step(
    companion: Companion,
    moving: Moving,
    begin: tuple[float, np.ndarray, np.ndarray, OperatingPoint | None],
    length: float,
    end: float,
    inside: bool = False,
    shift: np.ndarray | None = None,
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
    inside : bool
        Whether the stages inside are solved, too.
    shift : (stages, q) float array, optional
        What is added to the states of each stage.
    """
    time, x, slope, near = begin
    times = [time + length * share for share in (_SHARES if inside else _SHARES[:STAGES])]
    times[STAGES - 1] = end
    shift = np.zeros((len(times), x.size)) if shift is None else shift
    begun = Beginning(x, [slope], length, DIAGONAL * length, _EARLIER, shift)
    stages, states, waves = _stages(companion, moving, tuple(times), begun, near)
    error = length * (ERROR @ begun.slopes[: NODES.size])
    return Step(length, stages[:STAGES], np.asarray(error), states, waves, stages[STAGES:])


def with_inside(
    companion: Companion, moving: Moving, begin: tuple[float, np.ndarray, np.ndarray, OperatingPoint | None], step: Step
) -> Step:
    """A step of `runge_kutta_step` with its stages inside."""
    time, x, slope, _ = begin
    slopes, none = [slope, *(stage.slope for stage in step.stages)], np.zeros((len(_SHARES), x.size))
    begun = Beginning(x, slopes, step.length, DIAGONAL * step.length, _EARLIER, none)
    times = tuple(time + step.length * share for share in _SHARES[STAGES:])
    inside, states, waves = _stages(companion, moving, times, begun, step.end.solved)
    both = np.concatenate([step.states, states]), np.concatenate([step.waves, waves])
    return Step(step.length, step.stages, step.error, *both, inside)


def _stages(
    companion: Companion, moving: Moving, times: tuple[float, ...], begin: Beginning, near: OperatingPoint | None
) -> tuple[tuple[Point, ...], np.ndarray, np.ndarray]:
    """The stages at some times, each from all those before it; their states, and voltages and currents."""
    stages, changed, found = list[Point](), [moving(time) for time in times], None
    while len(stages) < len(times):
        k = len(stages)
        found = companion.solve_stages(begin, changed[k:], near) or companion.solve_stage(begin, changed[k], near)
        for time, x, slope, (voltage, current), solved in zip(times[k:], *found):
            stages.append(Point(time, x, slope, voltage, current, solved))
            begin.slopes.append(slope)
        near = stages[-1].solved
    assert found is not None
    if len(found.points) == len(stages):
        return tuple(stages), found.x, found.wave
    waves = np.array([(point.voltage, point.current) for point in stages])
    return tuple(stages), np.array([point.x for point in stages]), waves
