"""Small changes of an operating point: the circuit of tangents, its adjoint, its response in one direction.

In the circuit of tangents a conducting diode is a source of 0 V, a blocking one a source of 0 A, a smooth device its
tangent, and all independent sources are zero. By Tellegen's theorem one solution of the adjoint circuit gives the
derivatives of one quantity by all element values (Director & Rohrer 1969). With voltages û and currents ĵ of the
adjoint circuit, v and i of the operating point, they are

    by R: −ĵ i      by V: −ĵ      by I: û      by the gain of a controlled source: −ĵ · control.

A circuit of two-terminal elements is its own adjoint, so that solution is a certified operating point; controlled
sources have the transposed equations. At a kink, where a diode has neither current nor voltage, a change of a value in
one direction is a circuit whose diodes at the kink are ideal diodes again.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.analysis.solve import prepared
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CAPACITOR, CURRENT, DIODE, INDUCTOR, RESISTOR, VOLTAGE
from circuitsim.circuit.expansion import expanded
from circuitsim.errors import ConvergenceError, UsageError

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from circuitsim.analysis.sweep_points import Ready

ACCURATE = 1e-9
"""Largest relative residual of the transposed equations."""


class Weights(NamedTuple):
    """A quantity as a sum of potentials and currents near the operating point.

    Attributes
    ----------
    potentials : (n_nodes,) float array
    currents : (m,) float array
        Of the elementary elements.
    """

    potentials: np.ndarray
    currents: np.ndarray


class Adjoint(NamedTuple):
    """Potentials (n_nodes,) and branch currents (m,) of the adjoint circuit, and its worst relative violation; of a
    controlled source the multiplier of its law stands for the current."""

    potentials: np.ndarray
    currents: np.ndarray
    error: float


class Change(NamedTuple):
    """A direction of change: of element values (Ω, V, A, gains), and currents in parallel to elements, A; pairs of an
    element's place and the amount."""

    values: Sequence[tuple[int, float]] = ()
    currents: Sequence[tuple[int, float]] = ()


class SmallSignal:
    """The surroundings of an operating point of elementary elements.

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
        """Diodes that stand for a source of 0 V; of those at a kink, the ones with a positive current."""
        self.short = (self.kind == RESISTOR) & (self.value == 0.0)

    @cached_property
    def controls(self) -> dict[int, float]:
        """Of each controlled source with a gain what the gain multiplies, V or A."""
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

    @cached_property
    def _parts(self) -> tuple[np.ndarray, np.ndarray]:
        """The part of each node, and the lowest node of each part: ground, or the reference of its potentials."""
        from circuitsim.program.components import component_labels

        ties = (self.kind != CAPACITOR) & (self.kind != CURRENT)
        label = component_labels(self.n_nodes, self.first[ties], self.second[ties])
        _, lowest, label = np.unique(label, return_index=True, return_inverse=True)
        return label, lowest

    # ------------------------------------------------------------------ adjoint
    def adjoint(self, weights: Weights) -> Adjoint:
        """The adjoint circuit's solution for a quantity.

        Raises
        ------
        ConvergenceError
            Its equations are singular, or not accurate.
        """
        potentials, currents = weights.potentials.copy(), weights.currents.copy()
        through = (self.kind == RESISTOR) & ~self.short & (currents != 0.0)
        share = currents[through] / self.value[through]
        np.add.at(potentials, self.first[through], share)
        np.add.at(potentials, self.second[through], -share)
        currents[through | (self.kind == CURRENT) | (self.kind == CAPACITOR)] = 0.0
        currents[(self.kind == DIODE) & ~self.conducting] = 0.0
        if self.circuit.laws:
            return self._transposed(potentials, currents)
        label, lowest = self._parts
        potentials[lowest] -= np.bincount(label, potentials, lowest.size)
        column = self._tangent_column(~self._held(), currents)
        injected = np.flatnonzero(potentials[1:]) + 1
        sources = np.full(injected.size, CURRENT)
        circuit = Circuit.from_arrays(
            np.concatenate([column.kind, sources]),
            np.concatenate([self.first, injected]),
            np.concatenate([self.second, np.zeros_like(injected)]),
            np.concatenate([column.value, potentials[injected]]),
            self.n_nodes,
        )
        found = prepared(circuit).solve()
        return Adjoint(found.voltages, found.currents[: self.kind.size], found.certificate.worst)

    def _held(self) -> np.ndarray:
        """Elements that hold their voltage in the circuit of tangents."""
        return (self.kind == VOLTAGE) | (self.kind == INDUCTOR) | self.short | self.conducting

    def _tangent_column(self, open_: np.ndarray, held: np.ndarray) -> _Column:
        """Kinds and values of the circuit of tangents: ``held`` are minus the voltages of what is not ``open_``."""
        resistor = (self.kind == RESISTOR) & ~self.short
        kind = np.where(open_, CURRENT, VOLTAGE)
        kind[resistor] = RESISTOR
        value = np.where(open_, 0.0, -held) + 0.0
        value[resistor] = self.value[resistor]
        return _Column(kind, value)

    def _transposed(self, potentials: np.ndarray, currents: np.ndarray) -> Adjoint:
        """The solution of the transposed nodal equations."""
        from circuitsim.controlled.equations import equations
        from circuitsim.controlled.linear import Factor, Pattern

        eq = equations(self.circuit.arrays(), self.circuit.laws)
        right, inside = np.zeros(eq.size), eq.own >= 0
        right[: self.n_nodes - 1] = potentials[1:]
        right[eq.own[inside]] += currents[inside]
        terms = Pattern(eq).terms(self.conducting[eq.diode])
        try:
            factor = Factor(terms)
        except ArithmeticError:
            raise ConvergenceError("the tangents at the operating point have no unique solution") from None
        dual = factor.transposed(right)
        matrix = terms.matrix().T.tocsr()
        for _ in range(3):
            dual = dual + factor.transposed(right - matrix @ dual)
        error = _backward_error(matrix, dual / factor.left, right, (factor.right, factor.left))
        if not error <= ACCURATE:
            raise ConvergenceError(f"the adjoint equations are off by {error:.1e} of their scale")
        adjoint = np.zeros(self.n_nodes)
        adjoint[1:] = -dual[: self.n_nodes - 1]
        adjoint[eq.pinned] = 0.0
        flow = np.zeros(self.kind.size)
        flow[inside] = -dual[eq.own[inside]]
        ohmic = (self.kind == RESISTOR) & ~inside
        flow[ohmic] = (adjoint[self.first[ohmic]] - adjoint[self.second[ohmic]]) / self.value[ohmic]
        for k, e, share in self._current_controls:
            if ohmic[e]:
                flow[e] -= flow[k] * share / self.value[e]
        return Adjoint(adjoint, flow, error)

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
    def response(self, change: Change) -> tuple[np.ndarray, np.ndarray]:
        """Derivatives of all potentials (n_nodes,) and branch currents (m,) in one direction; diodes at a kink conduct
        or block as that direction has it.

        Raises
        ------
        NoSteadyStateError
            There is no steady state in that direction.
        """
        circuit, column = self._incremental
        value, laws = column.copy(), dict(circuit.laws)
        m = self.kind.size
        extra = np.zeros(m)
        for k, amount in change.values:
            if self.kind[k] == RESISTOR and not self.short[k]:
                value[m + k] -= amount * self.point.currents[k] / self.value[k]
                extra[k] -= amount * self.point.currents[k] / self.value[k]
            elif self.kind[k] == RESISTOR:
                value[k] += amount * self.point.currents[k]
            elif k in self.controls:
                laws[k] = laws[k]._replace(constant=laws[k].constant + amount * self.controls[k])
            else:
                value[k] += amount
        for k, amount in change.currents:
            value[m + k] += amount
        for k, e, share in self._current_controls:
            laws[k] = laws[k]._replace(constant=laws[k].constant + share * extra[e])
        if laws:
            found = prepared(Circuit.from_arrays(*circuit.arrays()._replace(value=value), laws=laws)).solve()
        else:
            found = self._ready.solve(value)
        return found.voltages, found.currents[:m] + extra

    @cached_property
    def _incremental(self) -> tuple[Circuit, np.ndarray]:
        """The circuit of tangents with ideal diodes at the kinks, and a current source of 0 A beside every element."""
        m = self.kind.size
        column = self._tangent_column(~(self._held() & ~self.kinks), np.zeros(m))
        kind = np.where(self.kinks, DIODE, column.kind)
        value = np.where(self.kinks, np.nan, column.value)
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


def _backward_error(
    matrix: csr_matrix, scaled: np.ndarray, right: np.ndarray, scales: tuple[np.ndarray, np.ndarray]
) -> float:
    """The largest residual as a share of the terms of its row, or of the largest unknown where these are its rounding
    (Arioli, Demmel & Duff 1989): an unknown that is zero has no terms."""
    from scipy.sparse import diags

    rows, columns = scales
    size = abs(diags(rows) @ matrix @ diags(columns))
    left = np.abs(rows * (right - matrix @ (columns * scaled)))
    terms, reach = size @ np.abs(scaled) + np.abs(rows * right), size.max(axis=1).toarray()[:, 0]
    reach *= np.abs(scaled).max(initial=0.0)
    rounding = 1000 * right.size * np.finfo(float).eps * (reach + np.abs(rows * right))
    scale = np.where(terms > rounding, terms, terms + reach)
    return float(np.max(left / np.where(scale > 0.0, scale, 1.0), initial=0.0))


class _Column(NamedTuple):
    """Kinds and values of elements."""

    kind: np.ndarray
    value: np.ndarray


def elementary_point(point: OperatingPoint) -> OperatingPoint:
    """The operating point of the elementary elements, smooth devices as their tangents at this point.

    Raises
    ------
    UsageError
        The circuit has amplifiers.
    """
    if point.circuit.amplified:
        raise UsageError(
            "sensitivities of circuits with bidirectional amplifiers are not computed; "
            "circuitsim train circuit --compare has the derivatives of a loss"
        )
    inner = point.elementary
    if inner is None or not point.junctions:
        return point if inner is None else inner
    return _touching(point, inner)


def _touching(point: OperatingPoint, inner: OperatingPoint) -> OperatingPoint:
    """The elementary point with tangents at the devices' own voltages and currents, in place of those of the last step
    of Newton's method, which touch at the step before."""
    from circuitsim.analysis.newton import smooth_devices, tangents

    smooth = smooth_devices(point.circuit, expanded(point.circuit))
    assert smooth is not None
    _, first, second, value, _ = inner.circuit.arrays()
    column, voltages = value.copy(), inner.voltages.copy()
    currents, drops = inner.currents.copy(), inner.drops.copy()
    tangents(smooth.start(point, inner).state(smooth), column, smooth)
    for array, devices in ((currents, point.currents), (drops, point.drops)):
        array[smooth.slope], array[smooth.touch] = 0.0, 0.0
        array[smooth.rest] = devices[smooth.elements]
    drops[smooth.touch] = drops[smooth.rest]
    voltages[first[smooth.touch]] = voltages[second[smooth.touch]] + drops[smooth.touch]
    made = OperatingPoint(
        inner.circuit.with_column(column),
        voltages,
        currents,
        inner.intervals,
        inner.unique.copy(),
        inner.certificate,
        inner.solver,
        inner.warnings,
        drops,
    )
    made.low = inner.low
    return made


__all__ = ["Adjoint", "Change", "SmallSignal", "Weights", "elementary_point"]
