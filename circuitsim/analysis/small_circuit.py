"""Small circuits: one kernel from columns to a certified operating point.

It handles circuits with unique potentials that it can certify. Where currents in loops of diodes are not unique and it
cannot find those of least norm (loops through sources, or large ones) it passes on its potentials; in all other cases
(loops of sources, free potentials, no steady state, loss of digits) the active-set engine takes over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from circuitsim.analysis.operating_point import PARTS, OperatingPoint, Status
from circuitsim.analysis.solution_warnings import nonunique_currents
from circuitsim.certificate import CLEAR, Certificate, largest_at_nodes
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CURRENT, DIODE, RESISTOR, VOLTAGE
from circuitsim.circuit.table import read_only
from circuitsim.engine.small.active_set import (
    CARRIES,
    CLEAN,
    IDLE,
    MAX_ITERATIONS,
    ON_LOOP,
    REFINED,
    Outcome,
    memory,
)
from circuitsim.engine.small.elimination import UPDATES, plan, plan_in
from circuitsim.engine.small.least_norm import share_loops
from circuitsim.engine.small.single import (
    ALL,
    LOOPS,
    NO_GUESS,
    PROVE,
    REST,
    refine_once,
    solve_once,
)
from circuitsim.engine.tree import path_voltages, resistive_tree
from circuitsim.errors import Problem
from circuitsim.kernels import NODE, kernel
from circuitsim.program.components import unchangeable

Memory = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""The block of a plan and the memory of one call of its kernels."""

COARSE = 1e-3
"""A voltage below this fraction of the potentials at its ends is computed as a sum of drops instead."""

LARGEST = 20_000
"""Maximum number of nodes for which a plan is tried; larger circuits are rarely sparse enough for scalar
elimination."""

FOUND = (Outcome.CONVERGED, Outcome.NONUNIQUE_CURRENTS, Outcome.CANCELLING_SOURCES, Outcome.CANCELLING_NONUNIQUE)
"""Outcomes with a set of conducting diodes and potentials."""

_CONVERGED, _NONUNIQUE, _SINGULAR = Outcome.CONVERGED, Outcome.NONUNIQUE_CURRENTS, Outcome.SINGULAR
"""Enumeration members looked up once, which saves a tenth of a microsecond."""

MARGIN = 0.1
"""Fraction of the tolerance available to the kernel: a voltage that is a difference of larger ones has a larger
relative error. Beyond it the engine refines."""

WHY = f"one kernel for the whole circuit: one elimination takes at most {UPDATES:,} updates"
WHY_LOOPS = f"{WHY}; conducting diodes close loops, whose currents are those of least norm"
TOO_LARGE = f"active-set engine: more than {LARGEST:,} nodes"
TOO_DENSE = f"active-set engine: one elimination takes more than {UPDATES:,} updates"
_LEFT = {
    Outcome.SINGULAR: "sources close a loop, or only blocking diodes hold some node voltage",
    Outcome.MAX_ITERATIONS: f"{MAX_ITERATIONS} iterations of the kernel were not enough, or there is no steady state",
}
_DIGITS = "branch currents need refinement"


class UncertifiedSolution(NamedTuple):
    """The kernel's uncertified result: conducting diodes (m,), branch currents (m,), A, and the reason."""

    closed: np.ndarray
    current: np.ndarray
    why: str


class SmallCircuitSolver:
    """A circuit planned for the kernel, with its workspace; made by `small_circuit_solver`.

    Attributes
    ----------
    circuit : Circuit
        As it was planned.
    tolerance : float
        Tolerance of certificates.
    """

    def __init__(self, circuit: Circuit, tolerance: float, plan: np.ndarray) -> None:
        self.circuit, self.tolerance = circuit, float(tolerance)
        kind, _, _, self.value, self._nodes = circuit.arrays()
        self._plan, self.diode, self._signed = plan, np.flatnonzero(kind == DIODE), False
        # Layout of the output block of `solve_once`.
        m = self.value.size
        end = m + self._nodes
        self.voltages, self.currents, self.measured = slice(m, end), slice(end, end + m), slice(end + m, end + m + 14)
        self.iterations = end + m + 14
        self.size = self.iterations + 1 + self.diode.size
        # Free workspaces: a call takes one (or makes one) and returns it, so threads never share any.
        self._spare = list[Memory]()

    def __reduce__(self) -> tuple[Any, ...]:
        return small_circuit_solver, (self.circuit, self.tolerance, self._signed)

    def solve(
        self, value: np.ndarray, currents: np.ndarray | None = None, free: bool = False
    ) -> OperatingPoint | UncertifiedSolution:
        """The certified operating point for element values (m,), or an initial guess for the active-set engine.

        Diodes with positive ``currents`` (m,), A, are the initial guess; ``free``: potentials held only by blocking
        diodes may be any feasible ones, currents in loops of diodes those of some forest.
        """
        guess = NO_GUESS if currents is None else read_only(currents)
        memory, out, drops = self.take(), np.empty(self.size), None
        out[: value.size] = value  # a copy, which protects the caller's array and earlier results
        status, worst = kernel(solve_once, self._nodes, NODE)(*memory, guess, MAX_ITERATIONS, not free, out)
        allowed = MARGIN * self.tolerance
        certified = worst <= allowed and (status == _CONVERGED or (free and status in (_NONUNIQUE, _SINGULAR)))
        loops = status == _NONUNIQUE and not free
        if loops:
            certified = self._share(memory, out, None) <= CLEAN
        if not certified and (status in REFINED or (free and status == Outcome.CANCELLING_NONUNIQUE)):
            drops = np.empty(value.size)
            what = REST if loops else ALL
            worst = kernel(refine_once, self._nodes, NODE)(*memory, out, drops, what)
            if loops and worst < np.inf:
                worst = self._share(memory, out, drops)
            certified = worst <= allowed
        self.give(memory)
        if certified:
            out.setflags(write=False)
            return LazyOperatingPoint(self, out, drops, float(worst))
        return self._uncertified(out, status)

    def _share(self, memory: Memory, out: np.ndarray, drops: np.ndarray | None) -> float:
        """Choose the currents in loops of diodes, after a refinement if there are ``drops``; returns the largest
        relative residual, infinite on failure."""
        current, state = out[self.currents], out[self.iterations + 1 :]
        if not share_loops(self.circuit.arrays(), self.diode, plan_in(self._plan).tree_edge, current, state):
            return np.inf
        worst: float
        if drops is None:
            _, worst = kernel(solve_once, self._nodes, NODE)(*memory, NO_GUESS, PROVE, True, out)
        else:
            worst = kernel(refine_once, self._nodes, NODE)(*memory, out, drops, LOOPS)
        return worst

    def allow_negative_resistors(self) -> None:
        """Permit negative resistances while the energy stays convex."""
        self._signed = True
        self._spare.clear()

    def take(self) -> Memory:
        """The plan, and memory for one call of a kernel (with factors), not shared with other calls."""
        try:
            return self._spare.pop()
        except IndexError:  # all are in use
            return self.memory()

    def memory(self) -> Memory:
        """The plan, and new memory for calls of a kernel: no factors yet."""
        return self._plan, *memory(self._plan, self._signed)

    def give(self, memory: Memory) -> None:
        """Return a workspace for later calls."""
        self._spare.append(memory)

    def _uncertified(self, out: np.ndarray, status: int) -> UncertifiedSolution:
        closed, current = np.zeros(self.value.size, dtype=bool), np.zeros(self.value.size)
        why = f"active-set engine: {_LEFT.get(Outcome(status), _DIGITS)}"
        v = out[self.voltages]
        if status in FOUND and np.isfinite(v).all():
            kind, first, second, _, _ = self.circuit.arrays()
            r = np.flatnonzero((kind == RESISTOR) & (out[: kind.size] != 0.0))
            current[r] = (v[first[r]] - v[second[r]]) / out[r]
            closed[self.diode] = out[self.iterations + 1 :] % ON_LOOP == CARRIES
        return UncertifiedSolution(closed, current, why)


class Deferred:
    """An attribute computed on first access (`functools.cached_property`, which may not stand for an attribute that a
    base class assigns)."""

    def __init__(self, make: Callable[[Any], Any]) -> None:
        self._make, self._name = make, make.__name__

    def __get__(self, point: OperatingPoint | None, owner: type | None = None) -> Any:
        if point is None:
            return self
        found = point.__dict__[self._name] = self._make(point)
        return found


class LazyOperatingPoint(OperatingPoint):
    """An operating point from the kernel's output block; its attributes are computed on first access."""

    status = Status.SOLVED

    def __init__(self, solver: SmallCircuitSolver, out: np.ndarray, drops: np.ndarray | None, worst: float) -> None:
        self._solver, self._out = solver, out
        self.worst, self.iterations = worst, int(out[solver.iterations])
        self.voltages, self.currents, self.intervals = out[solver.voltages], out[solver.currents], {}
        self._state = out[solver.iterations + 1 :]
        if drops is not None:
            self.drops = drops + 0.0

    def closed(self) -> np.ndarray:
        """Which ideal diodes conduct (d,)."""
        return self._state != IDLE

    def __reduce__(self) -> tuple[Any, ...]:
        return OperatingPoint, tuple(getattr(self, name) for name in PARTS)

    @Deferred
    def circuit(self) -> Circuit:
        return self._solver.circuit.with_column(self._out[: self._solver.value.size])

    @Deferred
    def drops(self) -> np.ndarray:
        """Branch voltages, V (m,): R i of resistors, which potentials may be too coarse to resolve."""
        arrays, value = self._solver.circuit.arrays(), self._out[: self._solver.value.size]
        reach = np.abs(self.voltages[arrays.first])
        drop = self.voltages[arrays.first] - self.voltages[arrays.second]
        drop = np.where(arrays.kind == RESISTOR, value * self.currents, drop)
        drop = np.where(arrays.kind == VOLTAGE, value, drop) + 0.0
        conducting, size = self._solver.diode[self.closed()], np.abs(drop)
        blocks = arrays.kind == DIODE
        blocks[conducting] = False
        coarse = np.flatnonzero(
            ((arrays.kind == CURRENT) & (size < COARSE * reach)) | (blocks & (drop != 0.0) & (size < CLEAR * reach))
        )
        if coarse.size:
            made, sums = resistive_tree(arrays._replace(value=value), conducting), np.zeros(coarse.size)
            ends, low = (arrays.first[coarse], arrays.second[coarse]), np.zeros(value.size)
            kernel(path_voltages, value.size)(*made, self.currents, low, *ends, sums)
            drop[coarse] = sums
        return drop

    @Deferred
    def unique(self) -> np.ndarray:
        unique, there = np.ones(self._solver.value.size, dtype=bool), self._state >= ON_LOOP
        diodes = self._solver.diode[there]
        if diodes.size:
            arrays, size = self._solver.circuit.arrays(), np.abs(self.currents)
            largest = largest_at_nodes(arrays, size)
            ends = np.minimum(largest[arrays.first[diodes]], largest[arrays.second[diodes]])
            # Those that carry a current: above rounding on their loop, or above the tolerance times the largest current
            # at their ends.
            carry = (self._state[there] == ON_LOOP + CARRIES) | (size[diodes] > self._solver.tolerance * ends)
            unique[diodes] = unchangeable(arrays.n_nodes, arrays.first[diodes], arrays.second[diodes], carry)
        unique.flags.writeable = False
        return unique

    @Deferred
    def certificate(self) -> Certificate:
        return Certificate.of(self._out[self._solver.measured].tolist(), self._solver.tolerance)

    @Deferred
    def solver(self) -> dict[str, object]:
        why = WHY_LOOPS if (self._state >= ON_LOOP).any() else WHY
        return {"name": "active-set", "why": why, "iterations": self.iterations}

    @Deferred
    def warnings(self) -> tuple[Problem, ...]:
        circuit = self._solver.circuit
        return circuit.notes if self.unique.all() else (*circuit.notes, nonunique_currents(circuit, self.unique))


def small_circuit_solver(circuit: Circuit, tolerance: float, signed: bool = False) -> SmallCircuitSolver | str:
    """The plan of a sufficiently small circuit, otherwise the reason why there is none; ``signed``: resistances may be
    negative."""
    kind, first, second, value, n_nodes = circuit.arrays()
    if n_nodes > LARGEST:
        return TOO_LARGE
    # Writable copies, so that the kernels are compiled for one array type only.
    columns = kind.copy(), first.copy(), second.copy(), value.copy()
    made = kernel(plan, n_nodes, NODE)(*columns, n_nodes, UPDATES)
    if not made.size:
        return TOO_DENSE
    found = SmallCircuitSolver(circuit, tolerance, made)
    if signed:
        found.allow_negative_resistors()
    return found
