"""Linearisation at an operating point: the linearised circuit, its adjoint, and its response in one direction.

In the linearised circuit a conducting diode is a source of 0 V, a blocking one a source of 0 A, a smooth device its
tangent, and all independent sources are zero. By Tellegen's theorem one solution of the adjoint circuit gives the
derivatives of one quantity by all element values (Director & Rohrer 1969). With voltages û and currents ĵ of the
adjoint circuit, v and i of the operating point, they are

    by R: −ĵ i      by V: −ĵ      by I: û      by the gain of a controlled source: −ĵ · control.

It solves the transposed small-signal equations. Where a diode has zero current and voltage, the response in one
direction is that of a circuit in which such diodes are ideal diodes again.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.analysis.solve import prepared
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CURRENT, DIODE, INDUCTOR, RESISTOR, VOLTAGE
from circuitsim.controlled.equations import parts, references
from circuitsim.errors import ConvergenceError
from circuitsim.program.components import spanning_forest
from circuitsim.program.precise import Pairs
from circuitsim.small_signal.equations import (
    Formulation,
    Products,
    SmallSignalEquations,
    Solution,
    nodal,
    of_elements,
    small_signal_equations,
)

if TYPE_CHECKING:
    from circuitsim.analysis.solve import Ready

ACCURATE = 1e-9
"""Largest relative residual of the transposed equations."""


class Weights(NamedTuple):
    """A quantity as a linear form in potentials and currents at the operating point.

    Attributes
    ----------
    potentials : (n_nodes,) float array
    currents : (m,) float array
        Of the elementary elements.
    """

    potentials: np.ndarray
    currents: np.ndarray


class Adjoint(NamedTuple):
    """Potentials (n_nodes,) and branch currents (m,) of the adjoint circuit, and its largest relative residual; for a
    controlled source the multiplier of its equation takes the place of the current."""

    potentials: np.ndarray
    currents: np.ndarray
    error: float


class SmallSignal:
    """The linearisation of an operating point of elementary elements.

    Parameters
    ----------
    point : OperatingPoint
        Of a circuit without devices and amplifiers.
    """

    def __init__(self, point: OperatingPoint) -> None:
        self.point, self.circuit = point, point.circuit
        self.kind, self.first, self.second, self.value, self.n_nodes = point.circuit.arrays()
        diode = self.kind == DIODE
        self.kinks = diode & point.kink
        self.conducting = diode & (point.currents > 0.0)
        """Diodes that become sources of 0 V; of the degenerate ones, those with a positive current."""
        self.short = (self.kind == RESISTOR) & (self.value == 0.0)

    @cached_property
    def controls(self) -> dict[int, float]:
        """For each controlled source with a gain, what the gain multiplies, V or A."""
        return {
            k: sum(c * (self.point.voltages[p] - self.point.voltages[m]) for c, p, m in law.voltages)
            + sum(c * self.point.currents[e] for c, e in law.currents)
            for k, law in self.circuit.laws.items()
            if not np.isnan(self.value[k])
        }

    @cached_property
    def _current_controls(self) -> list[tuple[int, int, float]]:
        """Controlled source, the element whose current controls it, the current's coefficient."""
        gains = {k: 1.0 if np.isnan(self.value[k]) else float(self.value[k]) for k in self.circuit.laws}
        return [(k, e, gains[k] * c) for k, law in self.circuit.laws.items() for c, e in law.currents]

    # ------------------------------------------------------------------ adjoint
    @cached_property
    def _system(self) -> SmallSignalEquations:
        """The small-signal equations at s = 0."""
        inner = of_elements(self.circuit, self.circuit, self.conducting, capacitors=CURRENT)
        kind, first, second, value, n = inner.arrays
        held = np.flatnonzero(self._held)
        order = held[np.argsort(self.conducting[held], kind="stable")]
        # Currents in loops of elements with fixed voltages are not unique; no output depends on them.
        loops = np.setdiff1d(held, spanning_forest(n - 1, first, second, order))
        kind[loops], value[loops] = CURRENT, 0.0
        return small_signal_equations(inner, {})

    @cached_property
    def _dual(self) -> tuple[Formulation, Solution]:
        """The transposed equations, and their factors."""
        left, right, size = self._system.constant
        made = nodal(self._system._replace(constant=Products(right, left, size)))
        return made, Solution(made, 0.0)

    def floats(self, weights: Weights) -> bool:
        """Whether a quantity depends on the potential of a part that only blocking diodes connect to the rest."""
        label = parts(self._system.linear.arrays)
        loose = np.setdiff1d(self._system.pinned, references(self.circuit.arrays(), self.circuit.laws))
        return bool(np.bincount(label, weights.potentials)[label[loose]].any())

    def adjoint(self, weights: Weights) -> Adjoint:
        """The adjoint circuit's solution for a quantity.

        Raises
        ------
        ConvergenceError
            Its equations are singular, or the solution is not accurate.
        """
        through = (self.kind == RESISTOR) & ~self.short & (weights.currents != 0.0)
        potentials, share = weights.potentials.copy(), weights.currents[through] / self.value[through]
        np.add.at(potentials, self.first[through], share)
        np.add.at(potentials, self.second[through], -share)
        try:
            made, solution = self._dual
            inside = made.own >= 0
            currents = np.where(through, 0.0, weights.currents)[inside]
            found, off = solution.of(Pairs.of(made.basis.T @ np.append(potentials, currents) + 0j))
        except ArithmeticError:
            raise ConvergenceError("the tangents at the operating point have no unique solution") from None
        dual = -found.high.real
        largest = np.abs(dual / solution.scale).max(initial=0.0) or 1.0
        error = max(float(np.abs(part.high / solution.scale).max(initial=0.0)) for part in off) / largest
        if not error <= ACCURATE:
            raise ConvergenceError(f"the adjoint equations are off by {error:.1e} of their scale")
        adjoint, flow = made.paths @ dual[: made.voltages], np.zeros(self.kind.size)
        flow[inside] = dual[made.own[inside]]
        ohmic = (self._system.linear.arrays.kind == RESISTOR) & ~inside
        flow[ohmic] = -made.drops(found).real[ohmic] / self.value[ohmic]
        for k, e, gain in self._current_controls:
            if ohmic[e]:
                flow[e] -= flow[k] * gain / self.value[e]
        return Adjoint(adjoint, flow, error)

    @cached_property
    def _held(self) -> np.ndarray:
        """Elements with a fixed voltage in the linearised circuit."""
        return (self.kind == VOLTAGE) | (self.kind == INDUCTOR) | self.short | self.conducting

    def gradient(self, weights: Weights, adjoint: Adjoint) -> np.ndarray:
        """Derivatives of a quantity by all element values (m,); zero for elements without one."""
        current, flow = self.point.currents, adjoint.currents
        by_value = np.zeros(self.kind.size)
        resistor, source = self.kind == RESISTOR, self.kind == CURRENT
        by_value[resistor] = -flow[resistor] * current[resistor]
        carried = resistor & ~self.short & (weights.currents != 0.0)
        by_value[carried] -= weights.currents[carried] * current[carried] / self.value[carried]
        voltage = self.kind == VOLTAGE
        by_value[voltage] = -flow[voltage]
        drop = adjoint.potentials[self.first] - adjoint.potentials[self.second]
        by_value[source] = drop[source] + weights.currents[source]
        for k, control in self.controls.items():
            by_value[k] = -flow[k] * control
        for k, e, share in self._current_controls:
            if source[e]:
                by_value[e] -= flow[k] * share
        return by_value + 0.0

    # ------------------------------------------------------------------ one direction
    def response(self, values: np.ndarray, currents: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Derivatives of all potentials (n_nodes,) and branch currents (m,) in one direction, which decides the states
        of degenerate diodes.

        Parameters
        ----------
        values, currents : (m,) float arrays
            Changes of element values (Ω, V, A, gains), and of currents in parallel to the elements, A.

        Raises
        ------
        NoSteadyStateError
            There is no steady state in that direction.
        """
        circuit, column = self._incremental
        value, laws, m = column.copy(), dict(circuit.laws), self.kind.size
        ohmic, extra = (self.kind == RESISTOR) & ~self.short, np.zeros(self.kind.size)
        extra[ohmic] = -values[ohmic] * self.point.currents[ohmic] / self.value[ohmic]
        value[m:] += extra + currents
        plain = ~ohmic
        plain[list(self.controls)] = False
        value[:m][plain] += (values * np.where(self.short, self.point.currents, 1.0))[plain]
        for k, control in self.controls.items():
            laws[k] = laws[k]._replace(constant=laws[k].constant + values[k] * control)
        for k, e, share in self._current_controls:
            laws[k] = laws[k]._replace(constant=laws[k].constant + share * extra[e])
        if laws:
            found = prepared(Circuit.from_arrays(*circuit.arrays()._replace(value=value), laws=laws)).solve()
        else:
            found = self._ready.solve(value)
        return found.voltages, found.currents[:m] + extra

    @cached_property
    def _incremental(self) -> tuple[Circuit, np.ndarray]:
        """The linearised circuit with ideal diodes where these are degenerate, and a 0 A source parallel to every
        element."""
        m = self.kind.size
        resistor = (self.kind == RESISTOR) & ~self.short
        kind = np.where(self.kinks, DIODE, np.where(resistor, RESISTOR, np.where(self._held, VOLTAGE, CURRENT)))
        value = np.where(self.kinks, np.nan, np.where(resistor, self.value, 0.0))
        laws = {k: law._replace(constant=0.0) for k, law in self.circuit.laws.items()}
        for k in laws:
            kind[k], value[k] = self.kind[k], self.value[k]
        everything = (
            np.concatenate([kind, np.full(m, CURRENT)]),
            np.concatenate([self.first, self.first]),
            np.concatenate([self.second, self.second]),
            np.concatenate([value, np.zeros(m)]),
        )
        return Circuit.from_arrays(*everything, self.n_nodes, laws=laws), everything[3]

    @cached_property
    def _ready(self) -> Ready:
        return prepared(self._incremental[0])


__all__ = ["Adjoint", "SmallSignal", "Weights"]
