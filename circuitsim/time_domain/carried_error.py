"""The error of an implicit run's waveforms, propagated along the run.

The neighbour takes the same steps, but its stages also integrate the residual of the run's dense output: to first order
it moves away from the run as the exact waveforms do (Zadunaisky 1976; correction of defects, Skeel 1986).
"""

from __future__ import annotations

import numpy as np

from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.errors import CircuitError
from circuitsim.time_domain.companion import Companion
from circuitsim.time_domain.implicit_step import Moving, Point, Step, euler_step, residual, runge_kutta_step


class CarriedError:
    """The neighbour of a run, and the largest distances of both.

    Parameters
    ----------
    companion : Companion

    Attributes
    ----------
    off, largest : (2, m) float arrays
        Largest error, and largest size, of the voltage, V, and current, A, of each element so far.
    known : bool
        Whether the neighbour has been found at all times.
    """

    def __init__(self, companion: Companion) -> None:
        self.companion, self.known = companion, True
        self.off, self.largest = np.zeros((2, 2, len(companion.own)))

    def begin(self, x: np.ndarray) -> None:
        """Begin at the states (q,) of the run."""
        self._x = self._slope = x

    def jump(self, moving: Moving, time: float, instant: float, near: OperatingPoint) -> None:
        """Take both short steps after a discontinuity, of the same length, s."""
        try:
            for k in (1.0, 2.0):
                end = euler_step(self.companion, moving, time + k * instant, self._x, instant, near).end
                self._x, self._slope = end.x, end.slope
        except CircuitError:
            self.known = False

    def shift(self, change: np.ndarray) -> None:
        """Move the neighbour's states (q,): an event comes at another time there."""
        self._x = self._x + change

    def step(self, moving: Moving, at: Point, step: Step, waves: np.ndarray, inside: np.ndarray) -> Point | None:
        """Take a step of the run, too.

        Parameters
        ----------
        moving : callable
            Values of sources and switches.
        at : Point
            Where it begins.
        step : Step
        waves : (stages, 2, m) float array
            Voltages, V, and currents, A, at the beginning and in all stages.
        inside : (2, m) float array
            Largest residual of the dense output.

        Returns
        -------
        Point or None
            The neighbour's end.
        """
        if not self.known:
            return None
        begin = at.time, self._x, self._slope, step.stages[0].solved
        try:
            own = runge_kutta_step(self.companion, moving, begin, step.length, step.end.time, shift=residual(at, step))
        except CircuitError:
            self.known = False
            return None
        off = np.abs(own.waves[-1] - waves[-1])
        self.off = np.maximum(self.off, off + inside)
        self.largest = np.maximum(self.largest, np.abs(waves).max(axis=0))
        self._x, self._slope = own.end.x, own.end.slope
        return own.end


__all__ = ["CarriedError"]
