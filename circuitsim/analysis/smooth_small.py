"""Small circuits with smooth devices: Newton's method in one kernel, and its result as an operating point."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from circuitsim.analysis.newton import Found, Smooth, Start, State, project
from circuitsim.analysis.small_circuit import Deferred, DeferredPoint, LazyOperatingPoint, SmallCircuitSolver
from circuitsim.analysis.solution_warnings import implausible_currents
from circuitsim.certificate import Certificate
from circuitsim.circuit import Circuit
from circuitsim.circuit.expansion import Expansion
from circuitsim.circuit.table import read_only
from circuitsim.engine.small.active_set import FEW
from circuitsim.engine.small.single import NO_GUESS
from circuitsim.errors import Problem
from circuitsim.kernels import TERM, kernel
from circuitsim.models import Region
from circuitsim.models.smooth import SmoothDevice
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


class SmoothPoint(DeferredPoint):
    """An operating point of a circuit whose devices are all smooth."""

    more = ("regions", "junctions", "elementary", "_device_parts")

    def __init__(self, circuit: Circuit, expansion: Expansion, smooth: Smooth, solved: Solved) -> None:
        self._named, self.solved, self._smooth = circuit, solved, smooth
        self.elementary, self._device_parts, self.intervals = solved.point, expansion.parts, {}

    @Deferred
    def circuit(self) -> Circuit:
        own = self._named.arrays().value
        value = self.solved.point._out[: own.size]
        return self._named.with_column(np.where(own == own, value, own))

    @Deferred
    def voltages(self) -> np.ndarray:
        return self.solved.point.voltages[: len(self._named.node_names)]

    @Deferred
    def currents(self) -> np.ndarray:
        return self._own(self.solved.point.currents, self.solved.own[CURRENT])

    @Deferred
    def drops(self) -> np.ndarray:
        """Branch voltages, V (m,)."""
        return self._own(self.solved.point.drops, self.solved.own[VOLTAGE])

    @Deferred
    def unique(self) -> np.ndarray:
        unique = self.solved.point.unique[: len(self._named)].copy()
        parts = np.array([list(self._device_parts[k]) for k in self._smooth.elements.tolist()])
        unique[self._smooth.elements] = self.solved.point.unique[parts].all(axis=1)
        unique.setflags(write=False)
        return unique

    @Deferred
    def certificate(self) -> Certificate:
        """That of the elementary circuit, in which the devices are sources, with their distances from their curves."""
        made, own = self.solved.point.certificate, self.solved.own
        off = np.abs(own[VOLTAGE : CURRENT + 1] - own[NEAR + 1 : NEAR + 3])
        relative = {**made.relative, "devices": float(own[DISTANCE].max())}
        return made._replace(relative=relative, device_gap=float(off[0] @ off[1]))

    @Deferred
    def solver(self) -> dict[str, object]:
        return {**self.solved.point.solver, "newton_steps": self.solved.steps}

    @Deferred
    def warnings(self) -> tuple[Problem, ...]:
        extreme = implausible_currents(self._named, self._smooth.elements, self.currents, self.drops)
        return (*self._named.notes, *self.solved.point.warnings, *extreme)

    @Deferred
    def regions(self) -> dict[int, Region]:
        return smooth_regions(self._named, self._smooth, self.solved.own[NEAR])

    @Deferred
    def junctions(self) -> dict[int, float]:
        return dict(zip(self._smooth.elements.tolist(), self.solved.own[NEAR].tolist()))

    def _own(self, elementary: np.ndarray, devices: np.ndarray) -> np.ndarray:
        """The entries of the circuit's own elements."""
        own = elementary[: len(self._named)].copy()
        own[self._smooth.elements] = devices
        own.setflags(write=False)
        return own


def smooth_regions(circuit: Circuit, smooth: Smooth, junctions: np.ndarray) -> dict[int, Region]:
    """The region of each smooth device on its characteristic, by element, from the junction voltages, V."""
    found = {}
    for k, volts in zip(smooth.elements.tolist(), junctions.tolist()):
        device = circuit.devices[k]
        assert isinstance(device, SmoothDevice)
        found[k] = device.region_at(volts)
    return found


__all__ = ["SmallNewton", "SmoothPoint", "Solved", "smooth_regions"]
