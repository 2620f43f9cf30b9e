"""Modified nodal analysis of a circuit with controlled elements: one sparse pattern for all states of its diodes.

Unknowns are the potentials of all nodes except ground, then the currents of voltage sources, shorts, controlled
elements, diodes and of resistors far smaller than their neighbours. The row of a diode is one of three:

    conducting    v = 0
    blocking      i = 0
    loaded        v − ρ i = z      (the port loaded with a resistance ρ: `circuitsim.controlled.states`)

A set of conducting diodes may leave unknowns indeterminate: potentials of parts tied to ground only by blocking
diodes, and currents around loops of conducting ones. Equal infinitesimal conductances of the blocking diodes select
these potentials, equal infinitesimal resistances of the conducting ones these currents (`Ties`). One of Kirchhoff's
equations of such a part is redundant: it receives the sum of the voltages of the diodes at its boundary, which then
vanishes. The equation of one diode of such a loop receives the sum of the currents of its diodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from circuitsim._graphs import make_root
from circuitsim.certificate import largest_at_nodes
from circuitsim.circuit import GROUND, CircuitArrays
from circuitsim.circuit.elements import (
    CAPACITOR,
    CURRENT,
    DIODE,
    FIRST_CONTROLLED,
    INDUCTOR,
    NULLOR,
    RESISTOR,
    VOLTAGE,
)
from circuitsim.circuit.laws import Law, Quantity
from circuitsim.controlled.certificate import LawArrays
from circuitsim.kernels import kernel
from circuitsim.program.components import component_labels, unchangeable
from circuitsim.program.precise import two_sum

SMALL = 1e-6
"""A resistor below this fraction of the largest one at its ends has its current as an unknown of its own."""

OPEN = 1e90
"""Resistances, Ω, above this are open circuits; tangents of flat segments have more."""

GOLDEN = 0.6180339887498949


class RawBlock(NamedTuple):
    """Equations, unknowns and diodes of a block."""

    rows: np.ndarray
    columns: np.ndarray
    diodes: np.ndarray


class Equations(NamedTuple):
    """The triplets of the matrix, the right-hand side, and the indices of unknowns.

    Attributes
    ----------
    size : int
        Number of unknowns and of equations.
    row, column, value : (nnz,) arrays
        Triplets without those of the diodes' rows.
    share, gain, under : (nnz,) arrays
        Structure of the values: a share, times the value of element ``gain``, over that of ``under`` (−1: none).
    own : (m,) int array
        Unknown that is the current of an element, or −1.
    diode : (d,) int array
        Positions of the diodes in the circuit.
    plus, minus : (d,) int arrays
        Unknowns that are the potentials of a diode's ends; −1 for ground.
    load : (d,) float array
        The resistances ρ, Ω.
    pinned : (k,) int array
        Reference nodes of parts without ground, at 0 V.
    """

    size: int
    row: np.ndarray
    column: np.ndarray
    value: np.ndarray
    share: np.ndarray
    gain: np.ndarray
    under: np.ndarray
    own: np.ndarray
    diode: np.ndarray
    plus: np.ndarray
    minus: np.ndarray
    load: np.ndarray
    pinned: np.ndarray


class _Triplets:
    """Collector of rows, columns and values; entries in ground's row or column are dropped."""

    def __init__(self) -> None:
        self.parts: list[tuple[np.ndarray, ...]] = []

    def add(self, row: object, column: object, share: object, gain: object = -1, under: object = -1) -> None:
        whole = (np.asarray(part, dtype=np.int64) for part in (row, column, gain, under))
        columns = np.broadcast_arrays(*whole, np.asarray(share, dtype=float))
        self.parts.append(tuple(part.ravel() for part in columns))

    def joined(self) -> tuple[np.ndarray, ...]:
        row, column, gain, under, share = (np.concatenate(p) for p in zip(*self.parts))
        inside = (row >= 0) & (column >= 0)
        return tuple(part[inside] for part in (row, column, share, gain, under))


def term_values(value: np.ndarray, share: np.ndarray, gain: np.ndarray, under: np.ndarray) -> np.ndarray:
    """The values (nnz,) of triplets for the values (m,) of all elements; see `Equations`."""
    factor = np.where(gain >= 0, value[gain], 1.0)
    return np.asarray(share * np.where(np.isnan(factor), 1.0, factor) / np.where(under >= 0, value[under], 1.0))


def references(arrays: CircuitArrays) -> np.ndarray:
    """The lowest node of each part not connected to ground by elements other than capacitors and current sources."""
    label = parts(arrays)
    lowest = np.unique(label, return_index=True)[1]
    return lowest[label[lowest] != label[GROUND]]


def floating_controls(arrays: CircuitArrays, laws: Mapping[int, Law]) -> list[int]:
    """Elements controlled by the indeterminate potential of such a part."""
    label = parts(arrays)
    if (label == label[GROUND]).all():
        return []
    found = []
    for k, law in laws.items():
        total: dict[int, Fraction] = {}
        for coefficient, plus, minus in law.voltages:
            for node, sign in ((plus, 1), (minus, -1)):
                part = int(label[node])
                total[part] = total.get(part, Fraction(0)) + sign * Fraction(coefficient)
        if any(share for part, share in total.items() if part != label[GROUND]) and arrays.value[k] != 0.0:
            found.append(k)
    return found


def parts(arrays: CircuitArrays) -> np.ndarray:
    """The part of each node, connected by elements other than capacitors and current sources."""
    kind, first, second, _, n = arrays
    ties = (kind != CAPACITOR) & (kind != CURRENT)
    return component_labels(n, first[ties], second[ties])


def equations(
    arrays: CircuitArrays,
    laws: Mapping[int, Law],
    pinned: np.ndarray | None = None,
    varying: np.ndarray | None = None,
) -> Equations:
    """The equations of a circuit without devices and amplifiers; ``pinned`` nodes (`references`) are at 0 V.

    Resistors whose resistances are ``varying`` (k,), and others at their ends, have their currents as unknowns, so that
    the unknowns are the same for all values.
    """
    kind, first, second, value, n = arrays
    if kind.size == 0:
        raise ValueError("no elements")
    nodal, branch = _roles(arrays, varying)
    own = np.full(kind.size, -1, dtype=np.int64)
    own[branch] = n - 1 + np.arange(branch.size)
    a, b = first - 1, second - 1  # unknowns; −1 is ground
    found, size = _Triplets(), n - 1 + branch.size
    for row, other in ((a[nodal], b[nodal]), (b[nodal], a[nodal])):
        found.add(row, row, 1.0, -1, nodal)
        found.add(row, other, -1.0, -1, nodal)
    column = own[branch]
    found.add(a[branch], column, 1.0)
    found.add(b[branch], column, -1.0)
    held = branch[(kind[branch] == VOLTAGE) | (kind[branch] == INDUCTOR) | (kind[branch] == RESISTOR)]
    found.add(own[held], a[held], 1.0)
    found.add(own[held], b[held], -1.0)
    small = held[(kind[held] == RESISTOR) & (value[held] > 0.0)]
    found.add(own[small], own[small], -1.0, small)
    found.add(*_controlled(arrays, own, laws))
    pinned = references(arrays) if pinned is None else pinned
    triplets = found.joined()
    for node in pinned.tolist():
        outside = triplets[0] != node - 1
        triplets = tuple(t[outside] for t in triplets)
        ends = (node - 1, node - 1, 1.0, -1, -1)
        triplets = tuple(np.append(t, end) for t, end in zip(triplets, ends))
    diode = np.flatnonzero(kind == DIODE)
    loads = _loads(arrays, diode.size)
    rows, columns, share, gain, under = triplets
    values = term_values(value, share, gain, under)
    return Equations(size, rows, columns, values, share, gain, under, own, diode, a[diode], b[diode], loads, pinned)


class RightSide(NamedTuple):
    """Right-hand side: source currents into nodes, A, and values of sources and controlled elements, V or A.

    Attributes
    ----------
    constant : (size,) float array
        Constants of controlled elements.
    row, source, share, gain : (k,) arrays
        Terms: a share, times the value of element ``source``, times that of ``gain`` (−1: none).
    """

    constant: np.ndarray
    row: np.ndarray
    source: np.ndarray
    share: np.ndarray
    gain: np.ndarray

    def of(self, value: np.ndarray) -> np.ndarray:
        """For the values (m,) of all elements: sums and their rounding errors (2, size)."""
        found = np.empty((2, self.constant.size))
        kernel(put_right_side, self.row.size)(self, value, found)
        return found

    def exact(self, value: np.ndarray, read: Callable[[float], Fraction]) -> list[Fraction]:
        """`of` in rational arithmetic."""
        right = [read(constant) for constant in self.constant.tolist()]
        for row, source, share, gain in zip(*(part.tolist() for part in self[1:])):
            term = read(share) * read(value[source])
            right[row] += term * read(value[gain]) if gain >= 0 else term
        return right


def put_right_side(sources: RightSide, value: np.ndarray, right: np.ndarray) -> None:
    """Fill in the right-hand side for the values (m,) of all elements: sums of terms, and their rounding errors
    (2, size), because a small current may be the difference of large ones."""
    right[0], right[1] = sources.constant, 0.0
    for t in range(sources.row.size):
        term, row = sources.share[t] * value[sources.source[t]], sources.row[t]
        if sources.gain[t] >= 0:
            term *= value[sources.gain[t]]
        right[0, row], error = two_sum(right[0, row], term)
        right[1, row] += error


def right_side(arrays: CircuitArrays, laws: LawArrays, eq: Equations) -> RightSide:
    """The right-hand side of equations."""
    kind, first, second, value, _ = arrays
    source, held, constant = np.flatnonzero(kind == CURRENT), np.flatnonzero(kind == VOLTAGE), np.zeros(eq.size)
    given = kind[laws.control] == CURRENT
    owner = laws.element[laws.owners()[given]]
    constant[eq.own[laws.element]] = laws.constant
    found = _Triplets()
    found.add(first[source] - 1, source, -1.0)
    found.add(second[source] - 1, source, 1.0)
    found.add(eq.own[held], held, 1.0)
    found.add(
        eq.own[owner], laws.control[given], laws.current_share[given], np.where(np.isnan(value[owner]), -1, owner)
    )
    terms = found.joined()
    free = ~np.isin(terms[0], eq.pinned - 1)
    return RightSide(constant, *(part[free] for part in terms[:4]))


def _roles(arrays: CircuitArrays, varying: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Resistors stamped as conductances, and elements whose current is an unknown; see `equations`."""
    kind, first, second, value, _ = arrays
    resistor = kind == RESISTOR
    ohms = np.where(resistor, value, 0.0)
    if varying is not None:
        ohms[varying] = np.inf
    largest = largest_at_nodes(arrays, ohms)
    small = resistor & (value <= SMALL * np.maximum(largest[first], largest[second]))
    branch = small | (kind == VOLTAGE) | (kind == INDUCTOR) | (kind == DIODE)
    branch |= (kind >= FIRST_CONTROLLED) & (kind <= NULLOR)
    return np.flatnonzero(resistor & ~branch), np.flatnonzero(branch)


def _controlled(arrays: CircuitArrays, own: np.ndarray, laws: Mapping[int, Law]) -> tuple[np.ndarray, ...]:
    """Triplets of the rows of controlled elements: own quantity − gain · control = constant."""
    kind, first, second, value, _ = arrays
    found: list[tuple[int, int, float, int, int]] = []

    def voltage(row: int, plus: int, minus: int, share: float, gain: int = -1, under: int = -1) -> None:
        found.append((row, plus - 1, share, gain, under))
        found.append((row, minus - 1, -share, gain, under))

    for k, law in laws.items():
        row, gain = int(own[k]), -1 if np.isnan(value[k]) else k
        if law.quantity is Quantity.VOLTAGE:
            voltage(row, int(first[k]), int(second[k]), 1.0)
        elif law.quantity is Quantity.CURRENT:
            found.append((row, row, 1.0, -1, -1))
        for coefficient, plus, minus in law.voltages:
            voltage(row, plus, minus, -coefficient, gain)
        for coefficient, e in law.currents:
            if own[e] >= 0:
                found.append((row, int(own[e]), -coefficient, gain, -1))
            elif kind[e] == RESISTOR:
                voltage(row, int(first[e]), int(second[e]), -coefficient, gain, int(e))
    return tuple(np.array(part) for part in zip(*found)) if found else (np.zeros(0),) * 5


def _loads(arrays: CircuitArrays, count: int) -> np.ndarray:
    """A typical resistance of the circuit for each diode, all of them different."""
    return arrays.typical_resistance * (0.75 + 0.5 * (GOLDEN * np.arange(1, count + 1) % 1.0))


KEPT = 64
"""Maximum number of sets of conducting diodes whose terms are kept."""


MoreTerms = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Rows, columns and values (k,) of additional terms of a matrix, S or Ω."""

Triplet = tuple[int, int, float]


class Ties:
    """The terms for any states of the diodes.

    Parameters
    ----------
    arrays : CircuitArrays
    laws : LawArrays
    eq : Equations
    """

    def __init__(self, arrays: CircuitArrays, laws: LawArrays, eq: Equations) -> None:
        self.eq, self.n = eq, arrays.n_nodes
        kind, self.first, self.second, _, _ = arrays
        driven = np.zeros(kind.size, dtype=bool)
        driven[laws.element[laws.current]] = True
        self._joins = (kind != CAPACITOR) & (kind != CURRENT) & (kind != DIODE) & ~driven
        short = arrays.fixed_voltages
        controls = np.zeros(kind.size, dtype=bool)
        controls[laws.control] = True
        self._shorts, self._controls = np.flatnonzero(short & ~controls).tolist(), controls[eq.diode]
        held = short & ~controls
        held[laws.element[~laws.current & ~laws.nullor]] = True
        self._held = np.flatnonzero(held & ~controls)
        # A current or a control between two parts is a condition on their potentials.
        self._between = (
            np.concatenate([self.first[driven], laws.plus]),
            np.concatenate([self.second[driven], laws.minus]),
        )
        self._unit = float(np.exp2(np.round(np.log2(eq.load.mean())))) if eq.load.size else 1.0
        self._known = lru_cache(KEPT)(self._terms)

    @property
    def some(self) -> bool:
        """Whether some set of conducting diodes leaves an unknown indeterminate: none of them a part, all of them a
        loop."""
        count = self.eq.diode.size
        return any(self.terms(np.full(count, on)) is not None for on in (False, True))

    def terms(self, conducting: np.ndarray) -> MoreTerms | None:
        """The terms for conducting diodes (d,); None where nothing is indeterminate."""
        return self._known(conducting.tobytes())

    def _terms(self, key: bytes) -> MoreTerms | None:
        conducting = np.frombuffer(key, dtype=bool)
        found = [*self._of_parts(conducting), *self._of_loops(conducting)]
        if not found:
            return None
        row, column, value = (np.array(part) for part in zip(*found))
        return row, column, value

    def wires(self, drops: np.ndarray) -> np.ndarray:
        """Shorts, voltage sources and the diodes of 0 V among branch voltages (m,) that control nothing."""
        return np.concatenate([self._held, self.eq.diode[~self._controls & (drops[self.eq.diode] == 0.0)]])

    def unique(self, currents: np.ndarray, drops: np.ndarray) -> np.ndarray:
        """Elements whose currents (m,) no circulation through loops of `wires` can change."""
        edges = self.wires(drops)
        falling = np.arange(edges.size) < self._held.size
        falling |= currents[edges] > 0.0
        unique = np.ones(currents.size, dtype=bool)
        unique[edges] = unchangeable(self.n, self.first[edges], self.second[edges], falling)
        return unique

    def _of_parts(self, conducting: np.ndarray) -> list[Triplet]:
        """The terms of parts behind blocking diodes."""
        eq, on = self.eq, self._joins.copy()
        on[eq.diode[conducting]] = True
        ends = self.first[on], self.second[on]
        held = np.full(eq.pinned.size, GROUND)
        label = component_labels(self.n, *(np.concatenate(pair) for pair in zip(ends, (eq.pinned, held))))
        one, other = (label[end] for end in self._between)
        fixed = {int(label[GROUND]), *one[one != other].tolist(), *other[one != other].tolist()}
        found, siemens = list[Triplet](), 1.0 / self._unit
        for k in eq.diode[~conducting].tolist():
            a, b = int(self.first[k]), int(self.second[k])
            parts = int(label[a]), int(label[b])
            if parts[0] == parts[1]:
                continue
            for part, own in zip(parts, (siemens, -siemens)):
                if part not in fixed:
                    found += [(part - 1, end - 1, value) for end, value in ((a, own), (b, -own)) if end != GROUND]
        return found

    def _of_loops(self, conducting: np.ndarray) -> list[Triplet]:
        """The terms of loops of conducting diodes, shorts and voltage sources."""
        eq, (parent, edge) = self.eq, np.full((2, self.n), -1)
        found, diodes = list[Triplet](), eq.diode[conducting & ~self._controls].tolist()
        own = set(diodes)
        for k in [*self._shorts, *diodes]:
            a, u, loop = int(self.first[k]), int(self.second[k]), [(k, 1)]
            make_root(a, parent, edge)
            while parent[u] >= 0:
                e, u = int(edge[u]), int(parent[u])
                loop.append((e, 1 if self.second[e] == u else -1))
            if u != a:
                parent[a], edge[a] = self.second[k], k
            elif k in own:
                found += [(int(eq.own[k]), int(eq.own[e]), -sign * self._unit) for e, sign in loop if e in own]
        return found


def lowest_nodes(arrays: CircuitArrays, value: np.ndarray, conducting: np.ndarray) -> np.ndarray:
    """For each node the lowest one (n_nodes,) that shorts, sources of 0 V and conducting diodes join it to, for values
    (m,) and the positions of these diodes, or of other elements without a drop: their potentials are equal without
    rounding."""
    same = (value == 0.0) & ((arrays.kind == VOLTAGE) | (arrays.kind == RESISTOR))
    same[conducting] = True
    return component_labels(arrays.n_nodes, arrays.first[same], arrays.second[same])
