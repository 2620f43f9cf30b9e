"""Error of an implicit run's waveforms, propagated along the run.

A perturbed run takes the same steps, but its stages also integrate the residual of the run's dense output. To first
order it differs from the run as the exact waveforms do (Zadunaisky 1976; defect correction, Skeel 1986).
"""

from __future__ import annotations

import numpy as np

from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.errors import CircuitError
from circuitsim.time_domain.companion import Companion
from circuitsim.time_domain.implicit_step import Moving, Point, Step, euler_step, residual, runge_kutta_step


class CarriedError:
    """The perturbed run, and its largest distance from the run.

    Parameters
    ----------
    companion : Companion

    Attributes
    ----------
    off, largest : (2, m) float arrays
        Largest error, and largest value, of the voltage, V, and current, A, of each element so far.
    known : bool
        Whether the perturbed run has a solution at all times so far.
    """

    def __init__(self, companion: Companion) -> None:
        self.companion, self.known = companion, True
        self.off, self.largest = np.zeros((2, 2, len(companion.own)))

    def begin(self, x: np.ndarray) -> None:
        """Start at the states (q,) of the run."""
        self._x = self._slope = x

    def jump(self, moving: Moving, time: float, instant: float, near: OperatingPoint) -> None:
        """Take the two short steps after a discontinuity, of the same length, s."""
        try:
            for k in (1.0, 2.0):
                end = euler_step(self.companion, moving, time + k * instant, self._x, instant, near).end
                self._x, self._slope = end.x, end.slope
        except CircuitError:
            self.known = False

    def shift(self, change: np.ndarray) -> None:
        """Shift the states (q,) for an event at another time."""
        self._x = self._x + change

    def step(self, moving: Moving, at: Point, step: Step, waves: np.ndarray, inside: np.ndarray) -> Point | None:
        """Take the same step as the run.

        Parameters
        ----------
        moving : callable
            Values of sources and switches.
        at : Point
            The start of the run's step.
        step : Step
        waves : (stages, 2, m) float array
            Voltages, V, and currents, A, at the start and in all stages.
        inside : (2, m) float array
            Largest residual of the dense output.

        Returns
        -------
        Point or None
            The end of the perturbed run's step; None if it has none.
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
