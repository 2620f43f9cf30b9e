"""Implicit steps: backward Euler after a discontinuity, otherwise an ESDIRK method.

The method is the implicit part of ARK4(3)6L[2]SA (Kennedy & Carpenter 2003): the first stage is the last one of the
previous step, five implicit stages have the same diagonal coefficient, and the last of them ends the step. It is
L-stable of order 4; an embedded method of order 3 estimates the local error. Kirchhoff's laws and the devices'
equations hold in all stages, so also at the ends of steps. Between them waveforms are weighted means of the stages
(dense output), so linear equations hold at all times. Two more stages inside the step measure the residual of the dense
output; they do not affect the step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.time_domain.companion import Beginning, Companion, Solved, joined

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


_EARLIER, _EULER = _with_inside(), np.array([[0.0, 0.0], [0.0, 1.0]])
SHARES = np.append(NODES[1:], INSIDE)
"""Times of the implicit stages and of the inside stages, in steps."""


def _residual() -> np.ndarray:
    """Weights that take states at the beginning, in the stages and in the inside stages, and slopes at both ends times
    the length of the step, to what the residual of the dense output adds to the states of each stage."""
    inside, at_ends, none = np.eye(INSIDE.size) / DIAGONAL, np.eye(2), np.zeros((2, 2))
    first, last = np.hstack([-END_SLOPES, none, at_ends])
    slopes = np.vstack([first, np.hstack([-AT_INSIDE / DIAGONAL, inside, none]), last])
    weights = TABLE[1:] @ np.vander(NODES, 4) @ np.linalg.inv(np.vander([0.0, *INSIDE, 1.0], 4))
    return np.asarray(weights @ slopes)


RESIDUAL = _residual()


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
        Of the stage, or a nearby one.
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
    begin : Point
        Of a backward Euler step, its end with the states at the beginning.
    length : float
        s.
    times : (k,) float array
        Of its stages and of the inside stages, s.
    moved : tuple of (p,) int array, (k, p) float array
        Elements whose values vary, and their values.
    solved : Solved
        Its stages, then the inside stages, if requested.
    """

    begin: Point
    length: float
    times: np.ndarray
    moved: tuple[np.ndarray, np.ndarray]
    solved: Solved

    def at(self, k: int) -> Point:
        """One of its stages."""
        voltage, current = self.wave[k]
        x, slope, point = self.solved.x[k], self.solved.slope[k], self.solved.points[k]
        return Point(float(self.times[k]), x, slope, voltage, current, point)

    @cached_property
    def stages(self) -> list[Point]:
        """Without the inside stages; the last one is its end."""
        return [self.at(k) for k in range(min(len(self.solved.points), STAGES))]

    @cached_property
    def end(self) -> Point:
        """Where it ends."""
        return self.at(min(len(self.solved.points), STAGES) - 1)

    @property
    def change(self) -> np.ndarray:
        """The change of the states (q,)."""
        return self.end.x - self.begin.x

    @property
    def inside(self) -> bool:
        """Whether its inside stages are solved."""
        return len(self.solved.points) > STAGES

    @cached_property
    def wave(self) -> np.ndarray:
        """Voltages, V, and currents, A, in its stages and inside stages (k, 2, m)."""
        return self.solved.wave()

    @cached_property
    def waves(self) -> np.ndarray:
        """Voltages, V, and currents, A, at its beginning and in its stages (stages + 1, 2, m)."""
        made = np.empty((NODES.size, 2, self.begin.voltage.size))
        made[0, 0], made[0, 1], made[1:] = self.begin.voltage, self.begin.current, self.wave[:STAGES]
        return made

    @cached_property
    def error(self) -> np.ndarray:
        """The estimate of the local error (q,)."""
        slopes = np.concatenate([self.begin.slope[None], self.solved.slope[:STAGES]])
        return np.asarray(self.length * (ERROR @ slopes))

    @cached_property
    def residual(self) -> np.ndarray:
        """What the residual of the dense output adds to the states of each stage (stages, q); it must have its inside
        stages."""
        begin, (x, slope, *_) = self.begin, self.solved
        ends = self.length * np.array([begin.slope, slope[STAGES - 1]])
        return np.asarray(RESIDUAL @ np.concatenate([begin.x[None], x, ends]))

    @cached_property
    def between(self) -> np.ndarray:
        """Largest residual of the dense output, of all voltages, V, and currents, A (2, m); zero without inside
        stages."""
        if not self.inside:
            return np.zeros(self.waves.shape[1:])
        found = AT_INSIDE @ self.waves.reshape(NODES.size, -1)
        found -= self.wave[STAGES:].reshape(INSIDE.size, -1)
        return np.asarray(np.abs(found).max(axis=0)).reshape(self.waves.shape[1:])

    def perturbed(self, companion: Companion, x: np.ndarray, slope: np.ndarray) -> Solved:
        """The stages from other states and derivatives (q,), with `residual` added to their states; of a large circuit
        only the last one, as earlier ones are linearised about those of this step."""
        begun = Beginning(x, [slope], self.length, DIAGONAL * self.length, _EARLIER, self.residual)
        places, values = self.moved
        if companion.large:
            change = begun._replace(x=x - self.begin.x, slopes=[slope - self.begin.slope])
            for k in range(STAGES - 1):
                found = companion.change(change, places, values[k], self.solved.points[k])
                if found is None:
                    break
                change.slopes.append(found)
                begun.slopes.append(self.solved.slope[k] + found)
        done = len(begun.slopes) - 1
        return _stages(companion, (places, values[done:STAGES]), begun, self.solved.points[done:])


def first_steps(
    companion: Companion, moving: Moving, time: float, x: np.ndarray, length: float, near: OperatingPoint | None
) -> tuple[Step, Step]:
    """Two backward Euler steps of this length, s, after a discontinuity at ``time``: the first lets states x (q,) jump,
    the second has their derivatives. The sources take the states' time: otherwise these move away from them, which may
    decide diode states."""
    times, none, steps = time + length * np.array([1.0, 2.0]), np.zeros((2, x.size)), list[Step]()
    places, values = moving(times)
    solved = _stages(companion, (places, values), Beginning(x, [none[0]], length, length, _EULER, none), [near])
    for k in range(2):
        own = solved.stage(k)
        voltage, current = own.wave()[0]
        begin = Point(float(times[k]), x, own.slope[0], voltage, current, own.points[0])
        steps.append(Step(begin, length, times[k : k + 1], (places, values[k : k + 1]), own))
        x = own.x[0]
    return steps[0], steps[1]


def runge_kutta_step(
    companion: Companion,
    moving: Moving,
    begin: Point,
    length: float,
    end: float,
    inside: bool = False,
    follow: bool = False,
) -> Step:
    """A Runge–Kutta step.

    Parameters
    ----------
    begin : Point
    length : float
        s.
    end : float
        Time of the sources in the last stage, s: just before a jump, if they have one.
    inside : bool
        Whether the inside stages are solved, too.
    follow : bool
        Whether to refuse a step over the end of a branch of operating points (`BranchEnds`).
    """
    times = begin.time + length * SHARES
    times[STAGES - 1] = end
    (places, values), none = moving(times), np.zeros((times.size, begin.x.size))
    begun = Beginning(begin.x, [begin.slope], length, DIAGONAL * length, _EARLIER, none)
    solved = _stages(companion, (places, values[: None if inside else STAGES]), begun, [begin.solved], follow)
    return Step(begin, length, times, (places, values), solved)


def with_inside(companion: Companion, step: Step) -> Step:
    """The result of `runge_kutta_step` with its inside stages."""
    begin, (places, values), none = step.begin, step.moved, np.zeros((len(SHARES), step.begin.x.size))
    begun = Beginning(begin.x, [begin.slope, *step.solved.slope], step.length, DIAGONAL * step.length, _EARLIER, none)
    found = _stages(companion, (places, values[STAGES:]), begun, [step.end.solved])
    return replace(step, solved=joined([step.solved, found]))


def _stages(
    companion: Companion,
    moved: tuple[np.ndarray, np.ndarray],
    begin: Beginning,
    near: Sequence[OperatingPoint | None],
    follow: bool = False,
) -> Solved:
    """The stages for these values of elements, each from all previous ones, and from the operating point at its place
    in ``near``, from the last stage where that has no more."""
    (places, values), solved, points = moved, list[Solved](), iter(near)
    point = next(points)
    while len(values):
        found = companion.at_once.solve(begin, places, values, point, follow) if companion.at_once else None
        found = found or companion.solve(begin, places, values[0], point)
        begin.slopes.extend(found.slope)
        values = values[len(found.points) :]
        for _ in found.points:
            point = next(points, found.points[-1])
        solved.append(found)
    return joined(solved)
