"""Small circuits with smooth devices: Newton's method in one kernel."""

from __future__ import annotations

import numpy as np

from circuitsim.analysis.newton import Found, Smooth
from circuitsim.analysis.small_circuit import LazyOperatingPoint, SmallCircuitSolver
from circuitsim.circuit.table import read_only
from circuitsim.engine.small.active_set import FEW
from circuitsim.engine.small.single import NO_GUESS
from circuitsim.kernels import TERM, kernel
from circuitsim.newton.steps import newton_once


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
        self.small, self._places = small, smooth.places(small.value.size)
        self._nodes = small.circuit.arrays().n_nodes

    def solve(self, smooth: Smooth, column: np.ndarray, start: Found | None, few: bool = False) -> Found | None:
        """The certified solution for element values (m,); an initial guess where it fails its certificate, and for few
        nodes, where refined steps give all digits; None where the kernel has neither.

        Parameters
        ----------
        smooth : Smooth
            The devices with the parameters to solve for.
        start : Found, optional
            A nearby solution.
        few : bool
            Whether the kernel also takes circuits of few nodes: within the tolerance, but not to all digits.
        """
        start = smooth.at_rest() if start is None else start
        guess = NO_GUESS if start.point is None else read_only(start.point.currents)
        own, out, memory = start.own.copy(), np.empty(self.small.size), self.small.take()
        out[: column.size] = column
        steps, worst = kernel(newton_once, self._nodes + 20 * smooth.rest.size, TERM)(
            *memory, guess, *self._places, smooth.rows, own, self.small.tolerance, out
        )
        self.small.give(memory)
        if steps == 0:
            return None
        if not worst <= self.small.tolerance:
            return Found(None, own, int(steps))
        out.setflags(write=False)
        point = LazyOperatingPoint(self.small, out, None, float(worst))
        return Found(point, own, int(steps), few or self._nodes > FEW)


__all__ = ["SmallNewton"]
