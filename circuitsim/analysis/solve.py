"""Circuit → certified operating point, or an error. Nothing in between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from circuitsim.analysis.amplified import PreparedAmplified
from circuitsim.analysis.expanded import PreparedExpanded
from circuitsim.analysis.freedom import intervals
from circuitsim.analysis.operating_point import OperatingPoint, open_ended
from circuitsim.analysis.quick import RESTLESS, Claim, Quick, quick
from circuitsim.analysis.recovery import Branches, recover
from circuitsim.analysis.remarks import remarks
from circuitsim.certificate import TOLERANCE, Certificate, certify
from circuitsim.circuit import Circuit, CircuitArrays
from circuitsim.circuit.amplifiers import without_amplifiers
from circuitsim.circuit.circuit import checked_value
from circuitsim.circuit.elements import RESISTOR
from circuitsim.circuit.expansion import expanded
from circuitsim.compact.kernels import compiled
from circuitsim.errors import ConvergenceError, TopologyError
from circuitsim.kernels import COMPILED, keep_memory
from circuitsim.program import (
    QuadraticProgram,
    Structure,
    analyse,
    check_bounded,
    feasible_program,
    quadratic_program,
)
from circuitsim.program.components import component_labels
from circuitsim.solvers import Solution, Solver, choose

QUICK = ("auto", "active-set")
"""Solvers whose work the compact kernel does where it can."""

TIGHT = 1e-12
"""Ends of a diode that differ by less than this share of their potentials may carry current between them."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """A circuit whose structure is analysed: solve it for many source values and resistances.

    Attributes
    ----------
    circuit : Circuit
    solver : str
        ``"auto"`` or the name of a method.
    tolerance : float
        What the certificate is held to, relative to local scales.
    quick : Quick or str
        For circuits small enough for one compiled kernel, else why there is none.
    """

    circuit: Circuit
    solver: str
    tolerance: float
    quick: Quick | str

    @cached_property
    def structure(self) -> Structure:
        """The topology as the general solver sees it, analysed when first needed."""
        return analyse(self.circuit)

    def solve(
        self,
        values: Mapping[str, float] | Sequence[float] | np.ndarray | None = None,
        start: OperatingPoint | None = None,
    ) -> OperatingPoint:
        """The operating point with other element values.

        Parameters
        ----------
        values : mapping or (m,) array, optional
            New values (Ω, V, A): some by element name, or those of all elements in the order of ``circuit.names``
            (as ``circuit.arrays().value``, entries of diodes ignored), which costs least. An array is copied.
        start : OperatingPoint, optional
            Of the same circuit with other values: its conducting diodes are the first guess.

        Raises
        ------
        InfeasibleError, UnboundedError
            No steady state exists; the error names the cycle or cut.
        ConvergenceError
            The method stopped without a solution that its certificate proves.
        TopologyError
            Unknown names, values out of range, an array of another length.
        """
        quick = self.quick
        value = self._column(values)
        if isinstance(quick, str):
            return self._general(value, start, quick)
        found = quick.solve(value, start)
        if isinstance(found, OperatingPoint):
            return found
        point = self._general(value, start, found)
        if start is None and found == RESTLESS:
            # From where the rounds began; the answer is to be that from any other beginning.
            again = quick.confirm(value, point)
            if isinstance(again, Claim):
                return self._general(value, None, again)
            return point if again is None else again
        return point

    def _column(self, values: Mapping[str, float] | Sequence[float] | np.ndarray | None) -> np.ndarray:
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

    def _general(self, value: np.ndarray, start: OperatingPoint | None, found: Claim | str) -> OperatingPoint:
        """The general solver's answer, or the proof of what the kernel claims."""
        if value.size > COMPILED:
            keep_memory()
        circuit = self.circuit.with_column(value)
        structure = self.structure
        if circuit is not self.circuit:
            arrays = circuit.arrays()
            # A resistance that became zero, or ceased to be, changes the nodes that are one.
            if (((arrays.value == 0.0) != (structure.arrays.value == 0.0)) & (arrays.kind == RESISTOR)).any():
                return prepared(circuit, self.solver, self.tolerance).solve()
            structure = structure._replace(circuit=circuit, arrays=arrays)
        on = np.zeros(value.size, dtype=bool) if start is None else start.currents > 0.0
        return _operating_point(structure, choose(self.solver, structure), self.tolerance, found, on)


def prepared(
    circuit: Circuit, solver: str = "auto", tolerance: float = TOLERANCE
) -> Prepared | PreparedAmplified | PreparedExpanded:
    """Analyse a circuit once, to solve it many times with other values; see `solve` for the arguments."""
    if not len(circuit):
        raise TopologyError("the circuit has no elements")
    if not 0.0 < tolerance < 1.0:
        raise TopologyError(f"the tolerance must lie between 0 and 1, not {tolerance!r}")
    if circuit.devices:
        expansion = expanded(circuit)
        inner = _elementary(expansion.circuit, solver, float(tolerance))
        return PreparedExpanded(circuit, expansion, inner, solver, float(tolerance))
    return _elementary(circuit, solver, float(tolerance))


def _elementary(circuit: Circuit, solver: str, tolerance: float) -> Prepared | PreparedAmplified:
    if circuit.amplified:
        image = without_amplifiers(circuit)
        return PreparedAmplified(circuit, image, _prepared(image.circuit, solver, tolerance))
    return _prepared(circuit, solver, tolerance)


def _prepared(circuit: Circuit, solver: str, tolerance: float) -> Prepared:
    return Prepared(circuit, solver, tolerance, quick(circuit, tolerance) if solver in QUICK else "asked for by name")


def solve(circuit: Circuit, solver: str = "auto", tolerance: float = TOLERANCE) -> OperatingPoint:
    """The certified steady state of a circuit.

    Parameters
    ----------
    circuit : Circuit
    solver : str
        ``"auto"``, ``"active-set"``, ``"coordinate-descent"`` or ``"cvxpy:NAME"`` (for instance ``cvxpy:CLARABEL``).
    tolerance : float
        What every equation must hold to, relative to its local scale (see `circuitsim.certificate`).

    Returns
    -------
    OperatingPoint

    Raises
    ------
    InfeasibleError, UnboundedError
        No steady state exists; the error names the cycle or cut.
    ConvergenceError
        The method stopped without a solution that its certificate proves.
    TopologyError
        A circuit without elements; an unknown solver.
    """
    return prepared(circuit, solver, tolerance).solve()


def _operating_point(
    structure: Structure, solver: Solver, tolerance: float, found: Claim | str, on: np.ndarray
) -> OperatingPoint:
    """The operating point from potentials found already or, where there is only a reason why not, by a solver.

    ``on`` (m,) is a guess at the diodes that conduct.
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
        attempt = None if isinstance(found, str) else _accept(structure, found, tolerance)
        why = found if isinstance(found, str) else "general solver: the kernel's digits did not satisfy the certificate"
        if attempt is None or not attempt.certificate.ok:
            attempt = _attempt(structure, solver, tolerance, why, None, on)
        if not attempt.certificate.ok and np.isfinite(attempt.voltages).all():
            # Knowing roughly where every node lies, super-nodes can be described without losing digits.
            attempt = _attempt(structure, solver, tolerance, why, attempt.voltages, on)
    voltages, branches, certificate, info, doubt = attempt
    if not np.isfinite(voltages).all():
        raise ConvergenceError("the potentials exceed the range of a double: check the largest sources and resistances")
    if not certificate.ok:
        raise ConvergenceError(_why_not(str(info["name"]), doubt, certificate))
    circuit = structure.circuit
    free = intervals(structure, voltages, branches.carries)
    warnings = (*circuit.notes, *remarks(structure, free, branches.unique))
    named = {circuit.node_names[k]: open_ended(ends) for k, ends in free.items()}
    return OperatingPoint(
        circuit, voltages, branches.current, named, branches.unique, certificate, info, warnings,
    )  # fmt: skip


class _Attempt(NamedTuple):
    """What one run of a solver gave."""

    voltages: np.ndarray
    branches: Branches
    certificate: Certificate
    info: dict[str, object]
    doubt: str


def _attempt(
    structure: Structure, solver: Solver, tolerance: float, why: str, near: np.ndarray | None, on: np.ndarray
) -> _Attempt:
    program, start = feasible_program(structure, quadratic_program(structure, near))
    check_bounded(structure, program)
    solution = solver.solve(program, start, on[program.diode])
    voltages = _node_voltages(structure, program, solution)
    idle = np.zeros(structure.arrays.kind.size, dtype=bool)
    if solution.carrying is not None:
        idle[program.diode[~solution.carrying]] = True
    info = {"name": solution.solver, "why": why, **solution.info}
    return _prove(structure, voltages, idle, max(TIGHT, solution.slack), tolerance, info, solution.doubt)


def _accept(structure: Structure, claim: Claim, tolerance: float) -> _Attempt:
    return _prove(structure, claim.voltages, claim.idle, TIGHT, tolerance, claim.info, "")


def _prove(
    structure: Structure, voltages: np.ndarray, idle: np.ndarray, tight: float, tolerance: float,
    info: dict[str, object], doubt: str,
) -> _Attempt:  # fmt: skip
    """Branch currents for the potentials, and what the certificate says of both."""
    value = structure.arrays.value
    for strict in (False, True):
        branches = recover(structure, value, voltages, tight, idle, strict)
        certificate = _certified(structure.arrays, value, voltages, branches.current, tolerance)
        if certificate.ok or not idle.any():
            break
    return _Attempt(voltages, branches, certificate, info, doubt)


def _certified(
    arrays: CircuitArrays, value: np.ndarray, voltages: np.ndarray, currents: np.ndarray, tolerance: float
) -> Certificate:
    """`certify`, compiled where a circuit is so large that compiled kernels are loaded anyway."""
    kind, first, second, zeroable, n_nodes = arrays
    if kind.size <= COMPILED:
        return certify(arrays, value, voltages, currents, tolerance)
    worst, relative = np.empty(7), np.empty(7)
    compiled("worst_violations")(
        kind, first, second, zeroable, value, voltages, currents, np.empty((2, n_nodes)), worst, relative
    )
    return Certificate.of(worst, relative, tolerance)


def _node_voltages(structure: Structure, program: QuadraticProgram, solution: Solution) -> np.ndarray:
    """Potentials of all nodes, V; the ends of closed diodes exactly equal.

    Where a super-node's potential and a node's offset nearly cancel, the sum has lost digits that the far end of a
    closed diode still has: the node of the finest resolution stands for all.
    """
    x = solution.x[structure.coordinate]
    voltages = x + program.offset
    if solution.closed is not None and solution.closed.any():
        diodes = program.diode[solution.closed]
        first, second = structure.arrays.first[diodes], structure.arrays.second[diodes]
        if (voltages[first] == voltages[second]).all():
            return voltages
        group = component_labels(voltages.size, first, second)
        finest = np.arange(voltages.size)
        several = np.zeros(voltages.size, dtype=bool)
        several[group[group != finest]] = True
        order = np.flatnonzero(several[group])
        order = order[np.argsort(-(np.abs(x[order]) + np.abs(program.offset[order])), kind="stable")]
        finest[group[order]] = order
        voltages = voltages[finest[group]]
    return voltages


def _why_not(solver: str, doubt: str, certificate: Certificate) -> str:
    worst = max(certificate.relative, key=lambda key: certificate.relative[key])
    why = f"{doubt}; " if doubt else ""
    exact = solver == "active-set"
    hint = "the values span more than double precision holds" if exact else "use --solver auto"
    return (
        f"{solver} did not reach a steady state: {why}its certificate fails ({worst} is off by "
        f"{certificate.relative[worst]:.1e} of its local scale, tolerance {certificate.tolerance:.0e}); {hint}, or "
        "accept less with a larger --tolerance"
    )
