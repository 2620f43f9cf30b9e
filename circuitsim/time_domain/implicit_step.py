"""Implicit steps: backward Euler after a discontinuity, otherwise an ESDIRK method.

The method is the implicit part of ARK4(3)6L[2]SA (Kennedy & Carpenter 2003): the first stage is the last one of the
previous step, five implicit stages have the same diagonal coefficient, and the last of them ends the step. It is
L-stable of order 4; an embedded method of order 3 estimates the local error. Kirchhoff's laws and the devices'
equations hold in all stages, so also at the ends of steps. Between them waveforms are weighted means of the stages
(dense output), so linear equations hold at all times. Two more stages inside the step measure the residual of the dense
output; they do not affect the step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.time_domain.companion import Beginning, Companion

ORDER, DIAGONAL = 4, 0.25
NODES = np.array([0.0, 1 / 2, 83 / 250, 31 / 50, 17 / 20, 1.0])
"""Times of the stages, in steps."""
STAGES = NODES.size - 1
INSIDE = 0.5 + np.array([-0.1, 0.1]) * 5.0**0.5
"""Times of the stages that measure the residual of the dense output, in steps: with both ends the nodes of the
four-point Lobatto rule, which integrates polynomials of degree 5."""


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
"""Quadrature weights of all stages."""
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
    """Weights of the stages in the dense output, as polynomials of the time in steps (stages, powers): exact for cubics
    in time, and for the terms A c² and A c³ of a differential equation's solution."""
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


AT_INSIDE, END_SLOPES = dense(INSIDE), dense_slopes(np.array([0.0, 1.0]))
"""Weights of the stages at the inside times, and in the slopes of the dense output at both ends."""


def _with_inside() -> np.ndarray:
    """Coefficients of earlier slopes in the implicit and the inside stages. An inside stage equals the dense output if
    its slope, times the diagonal coefficient, is that of the dense output."""
    inside = (AT_INSIDE - DIAGONAL * dense_slopes(INSIDE)) @ TABLE
    return np.pad(np.vstack([np.tril(TABLE, -1)[1:], inside]), ((0, 0), (0, INSIDE.size - 1)))


_EARLIER, _NONE = _with_inside(), np.zeros((1, 1))
SHARES = np.append(NODES[1:], INSIDE)
"""Times of the implicit stages and of the inside stages, in steps."""


RESIDUAL = TABLE[1:] @ np.vander(NODES, 4) @ np.linalg.inv(np.vander([0.0, *INSIDE, 1.0], 4))
"""Weights that take residuals of slopes, at both ends of a step and in the inside stages, to the stages."""


Moving = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Elements (p,) and their values at times (n,), (n, p)."""


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


@dataclass(frozen=True, eq=False)
class Step:
    """A step.

    Attributes
    ----------
    length : float
        s.
    points : tuple of Point
        Its stages, then the inside stages, if requested.
    error : (q,) float array
        Estimate of the local error; for backward Euler the change of the states.
    """

    length: float
    points: tuple[Point, ...]
    error: np.ndarray

    @property
    def stages(self) -> tuple[Point, ...]:
        """The last one is its end."""
        return self.points[:STAGES]

    @property
    def end(self) -> Point:
        """Where it ends."""
        return self.stages[-1]

    @cached_property
    def waves(self) -> np.ndarray:
        """Voltages, V, and currents, A, at all points (k, 2, m)."""
        return np.array([(point.voltage, point.current) for point in self.points])


def residual(begin: Point, step: Step) -> np.ndarray:
    """What the residual of the dense output adds to the states of each stage of a step (stages, q); the step must have
    its inside stages."""
    states = np.array([point.x for point in (begin, *step.points)])
    states, inside = np.split(states, [NODES.size])
    ends, inside = END_SLOPES @ states, (inside - AT_INSIDE @ states) / DIAGONAL
    first, last = step.length * begin.slope - ends[0], step.length * step.end.slope - ends[1]
    return np.asarray(RESIDUAL @ np.concatenate([first[None], inside, last[None]]))


def euler_step(
    companion: Companion, moving: Moving, time: float, x: np.ndarray, length: float, near: OperatingPoint | None
) -> Step:
    """A backward Euler step from states x (q,) to ``time``, with the sources at ``time``."""
    begun = Beginning(x, [np.zeros(x.size)], length, length, _NONE, np.zeros((1, x.size)))
    points = _stages(companion, moving, np.array([time]), begun, near)
    return Step(length, points, points[0].x - x)


def first_steps(
    companion: Companion, moving: Moving, time: float, x: np.ndarray, length: float, near: OperatingPoint | None
) -> tuple[Step, Step]:
    """Two backward Euler steps of this length, s, after a discontinuity at ``time``: the first lets states x (q,) jump,
    the second has their derivatives. The sources take the states' time: otherwise these move away from them, which may
    decide diode states."""
    jump = euler_step(companion, moving, time + length, x, length, near)
    return jump, euler_step(companion, moving, time + 2.0 * length, jump.end.x, length, jump.end.solved)


def runge_kutta_step(
    companion: Companion,
    moving: Moving,
    begin: tuple[float, np.ndarray, np.ndarray, OperatingPoint | None],
    length: float,
    end: float,
    inside: bool = False,
    shift: np.ndarray | None = None,
    follow: bool = False,
) -> Step:
    """A Runge–Kutta step.

    Parameters
    ----------
    begin : tuple
        Time, s, states and their derivatives (q,), an operating point nearby.
    length : float
        s.
    end : float
        Time of the sources in the last stage, s: just before a jump, if they have one.
    inside : bool
        Whether the inside stages are solved, too.
    shift : (stages, q) float array, optional
        Added to the states of each stage.
    follow : bool
        Whether to refuse a step over the end of a branch of operating points (`BranchEnds`).
    """
    time, x, slope, near = begin
    times = time + length * (SHARES if inside else SHARES[:STAGES])
    times[STAGES - 1] = end
    shift = np.zeros((len(times), x.size)) if shift is None else shift
    begun = Beginning(x, [slope], length, DIAGONAL * length, _EARLIER, shift)
    points = _stages(companion, moving, times, begun, near, follow)
    return Step(length, points, np.asarray(length * (ERROR @ begun.slopes[: NODES.size])))


def with_inside(
    companion: Companion, moving: Moving, begin: tuple[float, np.ndarray, np.ndarray, OperatingPoint | None], step: Step
) -> Step:
    """The result of `runge_kutta_step` with its inside stages."""
    time, x, slope, _ = begin
    slopes, none = [slope, *(stage.slope for stage in step.stages)], np.zeros((len(SHARES), x.size))
    begun = Beginning(x, slopes, step.length, DIAGONAL * step.length, _EARLIER, none)
    times = time + step.length * SHARES[STAGES:]
    return replace(step, points=step.points + _stages(companion, moving, times, begun, step.end.solved))


def _stages(
    companion: Companion,
    moving: Moving,
    times: np.ndarray,
    begin: Beginning,
    near: OperatingPoint | None,
    follow: bool = False,
) -> tuple[Point, ...]:
    """The stages at given times, each from all previous ones."""
    stages, (places, values) = list[Point](), moving(times)
    while len(stages) < times.size:
        k = len(stages)
        found = companion.at_once.solve(begin, places, values[k:], near, follow) if companion.at_once else None
        found = found or companion.solve(begin, places, values[k], near)
        for time, x, slope, (voltage, current), solved in zip(times[k:].tolist(), *found):
            stages.append(Point(time, x, slope, voltage, current, solved))
            begin.slopes.append(slope)
        near = stages[-1].solved
    return tuple(stages)
