"""Circuits of resistors, sources and ideal diodes: prepared once, solved for many values, each result certified."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from circuitsim.analysis.operating_point import OperatingPoint, Values, check_start, open_ended
from circuitsim.analysis.small_circuit import SmallCircuitSolver, small_circuit_solver
from circuitsim.analysis.solution_warnings import nonunique_potentials, solution_warnings
from circuitsim.certificate import Certificate, certify
from circuitsim.circuit import Circuit, CircuitArrays
from circuitsim.circuit.elements import DIODE, RESISTOR
from circuitsim.circuit.table import checked_value
from circuitsim.engine.network import Resistances
from circuitsim.engine.steady_state import SteadyState, steady_state
from circuitsim.errors import ConvergenceError
from circuitsim.kernels import MANY, keep_memory
from circuitsim.program import QuadraticProgram, Structure, analyse, check_bounded, feasible_program, quadratic_program
from circuitsim.solvers import Solution, Solver, choose

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
            return prepared_convex(circuit, self.solver, self.tolerance).solve()
        return _operating_point(self.resistances, circuit, choose(self.solver), self.tolerance, why, on, guess)


def prepared_convex(circuit: Circuit, solver: str, tolerance: float) -> Prepared:
    """Analyse a circuit of two-terminal elements without devices."""
    small = small_circuit_solver(circuit, tolerance) if solver in SMALL else "asked for by name"
    return Prepared(circuit, solver, tolerance, small)


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
