"""Circuits of resistors, sources and ideal diodes: prepared once, solved for many values, each result certified.

For small circuits one kernel goes from columns to a certified operating point. It handles circuits with unique
potentials that it can certify. In all other cases (loops of sources, free potentials, no steady state, loss of digits)
the active-set engine takes over, from its potentials where there are any.

Circuits with bidirectional amplifiers are solved in scaled coordinates without them and certified in volts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from circuitsim.analysis.operating_point import (
    PARTS,
    OperatingPoint,
    Status,
    Values,
    changed_by,
    check_start,
    open_ended,
)
from circuitsim.analysis.solution_warnings import nonunique_currents, nonunique_potentials, solution_warnings
from circuitsim.certificate import CLEAR, Certificate, certify, largest_at_nodes
from circuitsim.circuit import GROUND, Circuit, CircuitArrays
from circuitsim.circuit.amplifiers import Image, without_amplifiers
from circuitsim.circuit.elements import AMPLIFIER, CAPACITOR, CURRENT, DIODE, RESISTOR, VOLTAGE
from circuitsim.circuit.table import checked_value, read_only
from circuitsim.engine.loops import share_loops
from circuitsim.engine.network import Resistances
from circuitsim.engine.small.active_set import CARRIES, CLEAN, IDLE, MAX_ITERATIONS, ON_LOOP, Outcome, memory
from circuitsim.engine.small.elimination import UPDATES, plan, plan_in
from circuitsim.engine.small.pointers import Pinned
from circuitsim.engine.small.single import NO_GUESS, PROVE, solve_once
from circuitsim.engine.steady_state import SteadyState, steady_state
from circuitsim.engine.tree import path_voltages, resistive_tree
from circuitsim.errors import ConvergenceError, NoSteadyStateError, Problem
from circuitsim.kernels import MANY, NODE, keep_memory, kernel
from circuitsim.program import QuadraticProgram, Structure, analyse, check_bounded, feasible_program, quadratic_program
from circuitsim.program.components import unchangeable
from circuitsim.solvers import Solution, Solver, choose

Memory = tuple[np.ndarray, Pinned]
"""The block of a plan and the memory of one call of its kernels."""

COARSE = 1e-3
"""A voltage below this fraction of the potentials at its ends is computed as a sum of drops instead."""

LARGEST = 8_000
"""Maximum number of nodes for which a plan is tried; larger circuits are rarely sparse enough for scalar
elimination."""

FOUND = (Outcome.CONVERGED, Outcome.NONUNIQUE_CURRENTS, Outcome.CANCELLING_SOURCES)
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
        memory, out = self.take(), np.empty(self.size)
        out[: value.size] = value  # a copy, which protects the caller's array and earlier results
        status, worst = kernel(solve_once, self._nodes, NODE)(*memory, guess, MAX_ITERATIONS, not free, out)
        certified = worst <= MARGIN * self.tolerance
        if status == _NONUNIQUE and not free:
            certified = self._share(memory, out) <= CLEAN
        self.give(memory)
        if certified and (status in (_CONVERGED, _NONUNIQUE) or (free and status == _SINGULAR)):
            out.setflags(write=False)
            return LazyOperatingPoint(self, out, float(worst))
        return self._uncertified(out, status)

    def response(self, value: np.ndarray, closed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Node voltages, V, and branch currents, A, for element values (m,), with the diodes ``closed`` (d,) as shorts
        whose currents may have either sign."""
        memory, out, guess = self.take(), np.empty(self.size), np.zeros(value.size)
        out[: value.size], guess[self.diode] = value, closed
        kernel(solve_once, self._nodes, NODE)(*memory, read_only(guess), 0, False, out)
        self.give(memory)
        return out[self.voltages], out[self.currents]

    def _share(self, memory: Memory, out: np.ndarray) -> float:
        """Choose the currents in loops of diodes; returns the largest relative residual, infinite on failure."""
        current, state = out[self.currents], out[self.iterations + 1 :]
        if not share_loops(self.circuit.arrays(), self.diode, plan_in(self._plan).tree_edge, current, state):
            return np.inf
        worst: float = kernel(solve_once, self._nodes, NODE)(*memory, NO_GUESS, PROVE, True, out)[1]
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
        return self._plan, memory(self._plan, self._signed)

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

    def __init__(self, solver: SmallCircuitSolver, out: np.ndarray, worst: float) -> None:
        self._solver, self._out = solver, out
        self.worst, self.iterations = worst, int(out[solver.iterations])
        self.voltages, self.currents, self.intervals = out[solver.voltages], out[solver.currents], {}
        self._state = out[solver.iterations + 1 :]

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
        return read_only(unique)

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


SMALL = ("auto", "active-set")
"""Solvers that may use the small driver."""

ITERATIONS = 400
"""Maximum number of linear circuits of the active-set engine."""

CORRECTIONS = 100
"""Maximum number of linear circuits to refine the result of an approximate method."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """A prepared circuit: its structure is analysed once, for many source values and resistances.

    Attributes
    ----------
    circuit : Circuit
    solver : str
        ``"auto"`` or the name of a method.
    tolerance : float
        Tolerance of the certificate, relative to local scales.
    small : SmallCircuitSolver or str
        For circuits small enough for one compiled kernel, otherwise the reason why not.
    """

    circuit: Circuit
    solver: str
    tolerance: float
    small: SmallCircuitSolver | str

    @cached_property
    def structure(self) -> Structure:
        """The topology for the engine, analysed on first use."""
        return analyse(self.circuit)

    @cached_property
    def resistances(self) -> Resistances:
        """What networks with the circuit's own resistances share."""
        return Resistances.of(self.structure, self.circuit.arrays().value)

    def at(self, value: np.ndarray) -> Prepared:
        """The circuit with the values (m,) as its own, sharing this one's analysis; factors of its resistances are
        cached."""
        made = Prepared(self.circuit.with_column(value), self.solver, self.tolerance, self.small)
        if self._same_topology(value):
            made.__dict__["structure"] = self.structure
        return made

    def _same_topology(self, value: np.ndarray) -> bool:
        """Whether the same resistances are zero: if one becomes zero or nonzero, the super-nodes change."""
        kind, _, _, old, _ = self.structure.arrays
        return bool((((value == 0.0) == (old == 0.0)) | (kind != RESISTOR)).all())

    def solve(self, values: Values = None, start: OperatingPoint | None = None) -> OperatingPoint:
        """The operating point with other element values.

        Parameters
        ----------
        values : mapping or (m,) array, optional
            New values (Ω, V, A): some by element name, or, fastest, those of all elements in the order of
            ``circuit.names`` (as ``circuit.arrays().value``, entries of diodes ignored). An array is copied.
        start : OperatingPoint, optional
            For the same circuit with other values: its conducting diodes are the initial guess.

        Raises
        ------
        InfeasibleError, UnboundedError
            No steady state exists; the error names the cycle or cut.
        ConvergenceError
            The method stopped without a certified solution.
        TopologyError
            Unknown names, values out of range, an array of another length.
        """
        if start is not None:
            check_start(start)
        return self.solve_from(self._column(values), None if start is None else start.currents)

    def solve_from(self, value: np.ndarray, currents: np.ndarray | None, free: bool = False) -> OperatingPoint:
        """`solve` for the values of all elements.

        Parameters
        ----------
        value : (m,) float array
            Ω, V, A.
        currents : (m,) float array or None
            Branch currents, A: diodes with positive ones are the initial guess.
        free : bool
            Whether potentials held only by blocking diodes may be any feasible ones, and currents in loops of diodes
            those of some forest.

        Raises
        ------
        InfeasibleError, UnboundedError, ConvergenceError, TopologyError
            As `solve`.
        """
        small = self.small
        if isinstance(small, str):
            on = np.zeros(value.size, dtype=bool)
            if currents is not None:
                on = (self.circuit.arrays().kind == DIODE) & (currents > 0.0)
            return self._general(value, small, on, np.zeros(value.size))
        found = small.solve(value, currents, free)
        if isinstance(found, OperatingPoint):
            return found
        return self._general(value, found.why, found.closed, found.current)

    def _column(self, values: Values) -> np.ndarray:
        """The values of all elements."""
        own = self.circuit.arrays().value
        if values is None:
            return own
        if isinstance(values, np.ndarray) or not isinstance(values, Mapping):
            return self.circuit.column(values)
        value, kind = own.copy(), self.circuit.arrays().kind
        for name, number in values.items():
            k = self.circuit.element_index(name)
            value[k] = checked_value(int(kind[k]), name, number)
        return value

    def _general(self, value: np.ndarray, why: str, on: np.ndarray, guess: np.ndarray) -> OperatingPoint:
        """The result of the active-set engine from the conducting diodes ``on`` and the currents ``guess``."""
        if value.size > MANY:
            keep_memory()
        circuit = self.circuit.with_column(value)
        if circuit is not self.circuit and not self._same_topology(circuit.arrays().value):
            return prepared_unamplified(circuit, self.solver, self.tolerance).solve()
        return _operating_point(self.resistances, circuit, choose(self.solver), self.tolerance, why, on, guess)


def prepared_unamplified(circuit: Circuit, solver: str, tolerance: float) -> Prepared:
    """Analyse a circuit of resistors, sources and ideal diodes."""
    small = small_circuit_solver(circuit, tolerance) if solver in SMALL else "asked for by name"
    return Prepared(circuit, solver, tolerance, small)


def prepared_convex(circuit: Circuit, solver: str, tolerance: float) -> Prepared | PreparedAmplified:
    """Analyse a circuit without devices and controlled sources."""
    if circuit.amplified:
        image = without_amplifiers(circuit)
        return PreparedAmplified(circuit, image, prepared_unamplified(image.circuit, solver, tolerance))
    return prepared_unamplified(circuit, solver, tolerance)


def _operating_point(
    resistances: Resistances,
    circuit: Circuit,
    solver: Solver | None,
    tolerance: float,
    why: str,
    on: np.ndarray,
    guess: np.ndarray,
) -> OperatingPoint:
    """The operating point, starting from the conducting diodes ``on`` (m,) and branch currents ``guess`` (m,), A."""
    structure, arrays = resistances.structure, circuit.arrays()
    with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
        # Active sets need only the constraints, to reject circuits without a steady state.
        program, feasible = feasible_program(structure, quadratic_program(structure, arrays.value, solver is not None))
        check_bounded(structure, program)
        info: dict[str, object] = {"name": "active-set", "why": why}
        start, stopped = _Start(np.flatnonzero(on), guess, np.zeros(arrays.n_nodes), ITERATIONS), ""
        if solver is not None:
            solution = solver.solve(program, feasible)
            info |= {"name": solution.solver, **solution.info}
            start, stopped = _identified(structure, program, solution), solution.stopped
        try:
            found, certificate, linear = _steady_state(resistances, arrays, start, tolerance)
        except ConvergenceError as error:
            if solver is None:
                raise
            raise ConvergenceError(_did_not(str(info["name"]), stopped, f"{error}; use --solver auto")) from error
        info |= {"iterations": found.iterations, "linear": linear}
    if not certificate.certified:
        raise ConvergenceError(_did_not(str(info["name"]), stopped, _failed(certificate, solver is None)))
    carries = (arrays.kind == DIODE) & (found.current > 0.0)
    free = nonunique_potentials(structure, found.voltages, carries)
    warnings = (*circuit.notes, *solution_warnings(structure, free, found.unique))
    named = {circuit.node_names[k]: open_ended(ends) for k, ends in free.items()}
    return OperatingPoint(
        circuit, found.voltages, found.current, named, found.unique, certificate, info, warnings, found.drop
    )


class _Start(NamedTuple):
    """Initial guess of the engine: conducting diodes, branch currents (m,), A, potentials of components without a path
    to ground (n_nodes,), V, and the maximum number of linear circuits."""

    closed: np.ndarray
    guess: np.ndarray
    anchor: np.ndarray
    limit: int


def _steady_state(
    resistances: Resistances, arrays: CircuitArrays, start: _Start, tolerance: float
) -> tuple[SteadyState, Certificate, str]:
    """The steady state, its certificate, and the kind of linear solver; direct where iterative ones fail."""
    net = resistances.network(arrays.value)
    try:
        found = steady_state(net, *start)
        certificate = _certificate(arrays, found, tolerance)
        if certificate.certified or net.laplacian.direct:
            return found, certificate, net.laplacian.method_name
    except ConvergenceError:
        if net.laplacian.direct:
            raise
    net = resistances.network(arrays.value, direct=True)
    found = steady_state(net, *start)
    return found, _certificate(arrays, found, tolerance), net.laplacian.method_name


def _certificate(arrays: CircuitArrays, found: SteadyState, tolerance: float) -> Certificate:
    return certify(arrays, arrays.value, found.voltages, found.current, found.drop, tolerance, found.low)


def _identified(structure: Structure, program: QuadraticProgram, solution: Solution) -> _Start:
    """The conducting diodes, the largest current first, and the branch currents from an approximate solution.

    A diode conducts if its ends are nearly equal or, where currents are known, if its current relative to the largest
    exceeds its voltage relative to the largest potential.
    """
    (kind, first, second, _, _), value = structure.arrays, program.value
    voltages = np.append(solution.x, 0.0)[structure.coordinate] + program.offset
    xt, xh = solution.x[program.tail], solution.x[program.head]
    room, reach = program.bound - (xt - xh), np.abs(xt) + np.abs(xh) + np.abs(program.bound)
    near = room <= solution.slack * reach
    guess, r = np.zeros(kind.size), structure.resistors
    guess[r] = (voltages[first[r]] - voltages[second[r]]) / value[r]
    if solution.current is not None and near.size:
        current = np.maximum(solution.current, 0.0)
        near = current * reach.max() > np.maximum(room, 0.0) * current.max()
        guess[program.diode] = current
    closed = program.diode[near]
    return _Start(closed[np.argsort(-guess[closed], kind="stable")], guess, voltages, CORRECTIONS)


def _failed(certificate: Certificate, exact: bool) -> str:
    worst = max(certificate.relative, key=lambda key: certificate.relative[key])
    hint = "the values span more than double precision" if exact else "use --solver auto"
    return (
        f"its certificate fails ({worst}: relative residual {certificate.relative[worst]:.1e}, tolerance "
        f"{certificate.tolerance:.0e}); {hint}, or a larger --tolerance"
    )


def _did_not(solver: str, stopped: str, reason: str) -> str:
    return f"{solver} did not reach a steady state: " + (f"{stopped}; " if stopped else "") + reason


class PreparedAmplified(NamedTuple):
    """A circuit with amplifiers, ready for many solves; same interface as `Prepared`.

    Attributes
    ----------
    circuit : Circuit
    image : Image
        The circuit in coordinates in which amplifiers are wires.
    inner : Prepared
        The image's prepared circuit.
    """

    circuit: Circuit
    image: Image
    inner: Prepared

    def solve(self, values: Values = None, start: OperatingPoint | None = None) -> OperatingPoint:
        """The operating point with other element values (Ω, V, A, gains); see `Prepared.solve`."""
        circuit, image = changed_by(self.circuit, values), self.image
        kind, _, _, value, _ = circuit.arrays()
        amplifier = kind == AMPLIFIER
        if (value != self.circuit.arrays().value)[amplifier].any():
            image = without_amplifiers(circuit)  # other gains change the scaling of every later source
        scaled = np.where((kind == VOLTAGE) | (kind == CURRENT), value / image.element, np.where(amplifier, 0.0, value))
        try:
            point = self.inner.solve(scaled, start)
        except NoSteadyStateError as error:
            if (image.node == 1.0).all():
                raise
            note = " (volts and amperes are divided by the gain of their section)"
            raise type(error)(f"{error}{note}", error.elements, error.nodes) from None
        return _physical(circuit, image, point, self.inner.tolerance)


def _physical(circuit: Circuit, image: Image, point: OperatingPoint, tolerance: float) -> OperatingPoint:
    """The operating point in volts and amperes, with a certificate of its own.

    Raises
    ------
    ConvergenceError
        The amplifiers' equations do not hold to the tolerance.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        voltages, currents = image.node * point.voltages, image.element * point.currents
        kind, first, second, _, _ = circuit.arrays()
        # An element lies within one section, whose gain scales its drop; amplifiers and capacitors may connect two.
        joins = (kind == AMPLIFIER) | (kind == CAPACITOR)
        drops = np.where(joins, voltages[first] - voltages[second], image.element * point.drops)
        certificate = certify_amplified(circuit.arrays(), voltages, currents, drops, tolerance)
    if not certificate.certified:
        raise ConvergenceError(
            f"the gains span more than double precision: relative residual {certificate.worst:.1e}; "
            "accept it with a larger --tolerance"
        )
    gain = {name: float(image.node[circuit.node_index(name)]) for name in point.intervals}

    def volts(name: str, end: float | None) -> float | None:
        return None if end is None else end * gain[name]

    intervals = {name: (volts(name, low), volts(name, high)) for name, (low, high) in point.intervals.items()}
    result = point.changed(
        circuit=circuit,
        voltages=voltages,
        currents=currents,
        intervals=intervals,
        certificate=certificate,
        warnings=(*circuit.notes, *point.warnings),
        drops=drops,
    )
    result.energy, result.transformed = point.energy, point
    return result


def certify_amplified(
    arrays: CircuitArrays, voltages: np.ndarray, currents: np.ndarray, drops: np.ndarray, tolerance: float
) -> Certificate:
    """The certificate of a circuit with amplifiers, in volts and amperes.

    Each amplifier is replaced by sources of the values that its equations prescribe: a current source that draws i_L
    from its left terminal, and at its right terminal a voltage source of a v_L with a current source of a i_L. So
    "source" measures v_R = a v_L, "kcl" measures i_R = a i_L, independently of the coordinates of the solution.

    Parameters
    ----------
    arrays : CircuitArrays
        With amplifiers; no other zero ohms than the circuit's own.
    voltages : (n_nodes,) float array
        V.
    currents : (m,) float array
        A; an amplifier's is i_L, from its left terminal into it.
    drops : (m,) float array
        V; those of amplifiers are ignored.
    tolerance : float
    """
    kind, first, second, value, n_nodes = arrays
    amplifiers = np.flatnonzero(kind == AMPLIFIER)
    gain, left, right = value[amplifiers], first[amplifiers], second[amplifiers]
    drawn = currents[amplifiers]
    ground = np.full(amplifiers.size, GROUND)
    # For each amplifier a source that draws i_L; after all elements those that deliver a i_L at a v_L.
    kind, second, value = kind.copy(), second.copy(), value.copy()
    kind[amplifiers], second[amplifiers], value[amplifiers] = CURRENT, GROUND, drawn
    whole = CircuitArrays(
        np.append(kind, np.full(amplifiers.size, VOLTAGE, kind.dtype)),
        np.append(first, right),
        np.append(second, ground),
        np.append(value, gain * voltages[left]),
        n_nodes,
    )
    drops = np.append(drops, voltages[right])
    drops[amplifiers] = voltages[left]
    return certify(whole, whole.value, voltages, np.append(currents, -gain * drawn), drops, tolerance)
