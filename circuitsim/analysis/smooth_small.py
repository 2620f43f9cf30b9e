"""Small circuits with smooth devices: Newton's method in one kernel, and its result as an operating point."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from circuitsim.analysis.newton import Found, Smooth, Start, State, project
from circuitsim.analysis.small_circuit import LazyOperatingPoint, SmallCircuitSolver
from circuitsim.circuit.table import read_only
from circuitsim.engine.small.active_set import FEW
from circuitsim.engine.small.single import NO_GUESS
from circuitsim.kernels import TERM, kernel
from circuitsim.newton.steps import CURRENT, DISTANCE, INNER, KEPT, NEAR, NO_DEVICE, TOUCH, VOLTAGE, newton_once


class SmallNewton:
    """The kernel for one circuit of elementary elements.

    Parameters
    ----------
    small : SmallCircuitSolver
        Of the circuit of elementary elements.
    smooth : Smooth
        The positions of its devices.
    """

    def __init__(self, small: SmallCircuitSolver, smooth: Smooth) -> None:
        self.small = small
        self._places, self._role = tangent_places(smooth, small.value.size)
        self._nodes = small.circuit.arrays().n_nodes
        self._smooth = smooth

    def solve(
        self, smooth: Smooth, column: np.ndarray, start: Start | None, few: bool = False
    ) -> Solved | Start | None:
        """The certified solution for element values (m,); an initial guess where it fails its certificate, and for few
        nodes, where refined steps give all digits; None where the kernel has neither.

        Parameters
        ----------
        smooth : Smooth
            The devices with the parameters to solve for.
        start : Start, optional
            A nearby solution.
        few : bool
            Whether the kernel also takes circuits of few nodes: within the tolerance, but not to all digits.
        """
        if start is not None:
            guess = NO_GUESS if start.point is None else read_only(start.point.currents)
            found = self._run(smooth, column, start.state(smooth), guess)
        else:
            found = self._run(smooth, column, self._zero(smooth), NO_GUESS)
        if isinstance(found, Solved) and self._nodes <= FEW and not few:
            return Start(found.point, found.own[VOLTAGE], found.own[CURRENT], found.steps)
        return found

    def _run(self, smooth: Smooth, column: np.ndarray, state: State, guess: np.ndarray) -> Solved | Start | None:
        own, out, memory = np.empty((KEPT, smooth.rest.size)), np.empty(self.small.size), self.small.take()
        own[TOUCH], own[TOUCH + 1 : TOUCH + 5] = state.junctions, state.points
        out[: column.size] = column
        steps, worst = kernel(newton_once, self._nodes + 20 * smooth.rest.size, TERM)(
            *memory, guess, self._places, self._role, smooth.rows, own, self.small.tolerance, out
        )
        self.small.give(memory)
        if steps == 0:
            return None
        if not worst <= self.small.tolerance:
            return Start(None, own[VOLTAGE], own[CURRENT], int(steps))
        out.setflags(write=False)
        return Solved(LazyOperatingPoint(self.small, out, None, float(worst)), own, int(steps))

    def _zero(self, smooth: Smooth) -> State:
        """The points of the curves at zero volts."""
        return self._at_zero if smooth is self._smooth else at_zero(smooth)

    @cached_property
    def _at_zero(self) -> State:
        return at_zero(self._smooth)


def tangent_places(smooth: Smooth, elements: int) -> tuple[np.ndarray, np.ndarray]:
    """The positions of the companion models' elements (3, s), and the role of each element (m,); see
    `circuitsim.newton.steps.newton_once`."""
    places, role = np.array([smooth.slope, smooth.touch, smooth.rest]), np.full(elements, NO_DEVICE)
    role[places[:2].ravel()] = INNER
    role[smooth.rest] = np.arange(smooth.rest.size)
    return places, role


def at_zero(smooth: Smooth) -> State:
    """The points of the curves at zero volts."""
    zero = np.zeros(smooth.rest.size)
    return project(smooth, zero, zero, zero, zero)


class Solved:
    """The kernel's result: the operating point of the elementary elements, and the devices' rows (KEPT, s)."""

    def __init__(self, point: LazyOperatingPoint, own: np.ndarray, steps: int) -> None:
        self.point, self.own, self.steps = point, own, steps

    def found(self) -> Found:
        """The result in the form of `circuitsim.analysis.newton.iterate`."""
        own = self.own
        state = State(own[NEAR + 1 : NEAR + 5], own[NEAR])
        return Found(self.point, own[VOLTAGE], own[CURRENT], state, own[DISTANCE], self.steps)


__all__ = ["SmallNewton", "Solved"]
