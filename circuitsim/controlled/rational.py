"""Small blocks in rational arithmetic: doubles are exact fractions, so there is no rounding.

A loop gain of one, an op-amp without feedback, two sources in a loop of conducting diodes: exact elimination decides
whether a state of the diodes has no solution, one, or a continuum. With z = v − ρ i all ports are described by one
number, z ≤ 0 for a blocking diode (`circuitsim.controlled.states`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations, product
from math import gcd, lcm
from typing import NamedTuple

import numpy as np

from circuitsim.controlled.equations import Equations, RawBlock
from circuitsim.controlled.linear import Terms

LARGEST = 80
"""Maximum number of unknowns of a block: elimination takes at most a second."""

PORTS, STRICT = 12, 6
"""Maximum numbers of ports of a block whose 2^12 states are enumerated, and of one whose 2^6 determinants decide (a
tenth of a second)."""

IDEAL, LEVEL, RISING = 0, 1, 2
"""Curves: any monotone one; the current is a function of the voltage; strictly increasing."""

LIMITS = 2000
"""Maximum number of inequalities of an elimination."""

Read = Callable[[float], Fraction]
"""Exact value of a double: itself, or its shortest decimal."""

Vector = list[Fraction]
Matrix = list[Vector]
Row = dict[int, Fraction]

ZERO, ONE = Fraction(0), Fraction(1)


def decimal(value: float) -> Fraction:
    """The shortest decimal that rounds to a double, so that a loop gain of 0.1 · 10 is one."""
    return Fraction(repr(float(value)))


def binary(value: float) -> Fraction:
    """The exact value of a double."""
    return Fraction(float(value))


class Solutions(NamedTuple):
    """z (d,) of the operating points in one state of the diodes: all, or one of a continuum if ``open``; whether the
    state alone determines them."""

    points: list[Vector]
    open: bool
    determined: bool


class RationalBlock:
    """One block with all ports loaded: its factors, and P and Q of its ports.

    Parameters
    ----------
    eq : Equations
    terms : Terms
        Of the matrix with all ports loaded.
    value : (m,) float array
        Values of the elements.
    raw : RawBlock
        Its equations, unknowns and diodes.
    read : Read

    Raises
    ------
    ArithmeticError
        It is singular.
    """

    def __init__(self, eq: Equations, terms: Terms, value: np.ndarray, raw: RawBlock, read: Read = binary) -> None:
        self.rows, self.columns, diodes = raw.rows.tolist(), raw.columns.tolist(), raw.diodes
        inside, own = set(self.columns), list[Row]()
        self.outside = list[Row]()
        for r in self.rows:
            near, far = Row(), Row()
            for at in range(int(terms.ends[r]), int(terms.ends[r + 1])):
                column = int(terms.column[at])
                part = near if column in inside else far
                part[column] = part.get(column, ZERO) + _entry(terms, at, value, read)
            own.append({c: x for c, x in near.items() if x})
            self.outside.append({c: x for c, x in far.items() if x})
        self._steps = _eliminated(own)
        self.ends = [(int(eq.plus[k]), int(eq.minus[k]), int(eq.own[eq.diode[k]])) for k in diodes.tolist()]
        self.loads = [Fraction(x) for x in eq.load[diodes].tolist()]
        place = {r: k for k, r in enumerate(self.rows)}
        self._port_rows = [place[own_row] for _, _, own_row in self.ends]
        unit = [[Fraction(int(k == r)) for k in range(len(self.rows))] for r in self._port_rows]
        responses = [_solved(self._steps, wanted) for wanted in unit]
        pairs = [self.ports(defaultdict(Fraction, response)) for response in responses]
        self.p = [[pair[0][k] for pair in pairs] for k in range(len(self.ends))]
        self.q = [[pair[1][k] for pair in pairs] for k in range(len(self.ends))]

    def unknowns(self, known: np.ndarray, right: np.ndarray, z: np.ndarray | None = None) -> dict[int, Fraction]:
        """Its unknowns, given those of earlier blocks (size,), the right-hand side (size,), and z of its ports."""
        wanted = [
            right[r] - sum((x * known[c] for c, x in far.items()), ZERO) for r, far in zip(self.rows, self.outside)
        ]
        if z is not None:
            for r, x in zip(self._port_rows, z):
                wanted[r] += x
        return _solved(self._steps, wanted)

    def ports(self, known: np.ndarray | dict[int, Fraction]) -> tuple[Vector, Vector]:
        """Voltages of its diodes, and currents times ρ, from unknowns."""

        def at(unknown: int) -> Fraction:
            return ZERO if unknown < 0 else known[unknown]

        volts = [at(plus) - at(minus) for plus, minus, _ in self.ends]
        return volts, [load * at(own) for load, (_, _, own) in zip(self.loads, self.ends)]

    def in_state(self, v0: Vector, i0: Vector, conducting: Sequence[bool]) -> Solutions:
        """The operating points in one state, from voltages, and currents times ρ, for z = 0."""
        near = [self.p[k] if on else self.q[k] for k, on in enumerate(conducting)]
        size = len(near)
        rows = [[*row, -(v0[k] if on else i0[k])] for k, (on, row) in enumerate(zip(conducting, near))]
        pivots = _reduced(rows, size)
        if any(row[size] for row in rows[len(pivots) :]):
            return Solutions([], False, True)
        free = [k for k in range(size) if k not in pivots]
        if not free:
            z = [rows[pivots.index(k)][size] for k in range(size)]
            return Solutions([z] if all(x <= 0 for x in z) else [], False, True)
        # z in terms of the free ones; −z must be at least zero.
        limits = [[Fraction(-(k == f)) for f in free] + [ZERO] for k in range(size)]
        for k, row in zip(pivots, rows):
            limits[k] = [*(row[f] for f in free), -row[size]]
        chosen = list[Fraction]()
        wide = False
        for f in range(len(free)):
            ends = _ends(limits, f)
            if ends is None:
                return Solutions([], False, True)
            low, high = ends
            wide = wide or low is None or low != high
            chosen.append(_nearest(low, high))
            limits = [[*row[:f], ZERO, *row[f + 1 : -1], row[-1] + row[f] * chosen[f]] for row in limits]
        return Solutions([[-row[-1] for row in limits]], wide, False)

    def one_of_curves(self, curves: Sequence[int]) -> bool:
        """Whether there is at most one operating point for all devices with such curves (`IDEAL`, `LEVEL`, `RISING`).

        Two operating points differ by v = P z, ρ i = Q z. For a strictly increasing curve v i > 0 or v = i = 0, so
        v = D ρ i with a positive D; D may also be infinite for a curve with flat segments, and zero or infinite for an
        ideal diode. There is no second operating point if det(P − D Q) vanishes for no such D. That holds if its
        coefficients, one for each choice of rows of P and −Q, have one sign (Sandberg & Willson 1969) and, for each
        choice at the ideal diodes with rows of −Q at the `LEVEL` curves, some coefficient is nonzero. An op-amp that
        forces a current through a diode, or a voltage across a table, is of this kind, although it has no P-matrix.
        """
        if len(self.p) > STRICT:
            return False
        seen: set[bool] = set()
        alive: dict[tuple[bool, ...], bool] = {}
        for choice in product((False, True), repeat=len(self.p)):
            value = _sign([[-x for x in self.q[k]] if on else self.p[k] for k, on in enumerate(choice)])
            if value:
                seen.add(value > 0)
            if all(on for on, own in zip(choice, curves) if own == LEVEL):
                key = tuple(on for on, own in zip(choice, curves) if own == IDEAL)
                alive[key] = alive.get(key, False) or bool(value)
            if len(seen) > 1:
                return False
        return all(alive.values())


def _entry(terms: Terms, at: int, value: np.ndarray, read: Read) -> Fraction:
    """A term of the matrix as a fraction: a share, times a gain, over a resistance."""
    found = read(terms.share[at])
    gain, under = int(terms.gain[at]), int(terms.under[at])
    if gain >= 0 and value[gain] == value[gain]:
        found *= read(value[gain])
    return found / read(value[under]) if under >= 0 else found


class _Step(NamedTuple):
    """A pivot's row number, column and row, and the multiples of it subtracted from other rows."""

    at: int
    pivot: int
    row: Row
    less: list[tuple[int, Fraction]]


def _eliminated(rows: list[Row]) -> list[_Step]:
    """Gaussian elimination, shortest rows first."""
    left, steps = set(range(len(rows))), list[_Step]()
    while left:
        at = min(left, key=lambda k: len(rows[k]))
        left.discard(at)
        pivot, row, less = next(iter(rows[at]), -1), rows[at], list[tuple[int, Fraction]]()
        if pivot < 0:
            raise ArithmeticError("singular")
        for k in left:
            if pivot in rows[k]:
                factor = rows[k].pop(pivot) / row[pivot]
                less.append((k, factor))
                for c, x in row.items():
                    changed = rows[k].get(c, ZERO) - factor * x if c != pivot else ZERO
                    if changed:
                        rows[k][c] = changed
                    else:
                        rows[k].pop(c, None)
        steps.append(_Step(at, pivot, row, less))
    return steps


def _solved(steps: list[_Step], wanted: Vector) -> dict[int, Fraction]:
    """The unknowns for a right-hand side, which is overwritten."""
    for at, _, _, less in steps:
        if wanted[at]:
            for k, factor in less:
                wanted[k] -= factor * wanted[at]
    found = dict[int, Fraction]()
    for at, pivot, row, _ in reversed(steps):
        total = wanted[at]
        for c, x in row.items():
            if c != pivot and found[c]:
                total -= x * found[c]
        found[pivot] = total / row[pivot]
    return found


def _reduced(rows: Matrix, columns: int) -> list[int]:
    """Gauss–Jordan elimination in place, in integers without a common divisor; returns the pivot columns, whose rows
    come first."""
    whole = list[list[int]]()
    for row in rows:
        scale = lcm(*(x.denominator for x in row))
        whole.append(_primitive([x.numerator * (scale // x.denominator) for x in row]))
    pivots = list[int]()
    for column in range(columns):
        at = len(pivots)
        able = [k for k in range(at, len(whole)) if whole[k][column]]
        if not able:
            continue
        found = min(able, key=lambda k: sum(map(bool, whole[k])))
        whole[at], whole[found] = whole[found], whole[at]
        own = whole[at]
        for k, other in enumerate(whole):
            if k != at and other[column]:
                common = gcd(own[column], other[column])
                keep, factor = own[column] // common, other[column] // common
                whole[k] = _primitive([keep * a - factor * b if b else keep * a for a, b in zip(other, own)])
        pivots.append(column)
    scales = [line[column] for line, column in zip(whole, pivots)] + [1] * (len(whole) - len(pivots))
    rows[:] = [[Fraction(x, scale) if x else ZERO for x in line] for line, scale in zip(whole, scales)]
    return pivots


def _primitive(row: list[int]) -> list[int]:
    common = gcd(*row)
    return [x // common for x in row] if common > 1 else row


def _sign(rows: Matrix) -> int:
    """The sign of a determinant: of the product of the pivots, and of their permutation."""
    try:
        steps = _eliminated([{c: x for c, x in enumerate(row) if x} for row in rows])
    except ArithmeticError:
        return 0
    negative = sum(step.row[step.pivot] < 0 for step in steps)
    return (-1) ** (negative + sum(a > b for a, b in combinations([step.pivot for step in sorted(steps)], 2)))


def _ends(rows: Matrix, kept: int) -> tuple[Fraction | None, Fraction | None] | None:
    """The smallest and largest value (None: unbounded) of one unknown for which all rows can be at least zero, by
    Fourier–Motzkin elimination of the others; None if infeasible.

    Raises
    ------
    ArithmeticError
        Too many inequalities arise.
    """
    for k in range(len(rows[0]) - 1):
        if k == kept:
            continue
        up, down = [r for r in rows if r[k] > 0], [r for r in rows if r[k] < 0]
        rows = [r for r in rows if not r[k]]
        rows += [[a / u[k] - b / w[k] for a, b in zip(u, w)] for u in up for w in down]
        if len(rows) > LIMITS:
            raise ArithmeticError("too many inequalities")
    if any(not r[kept] and r[-1] < 0 for r in rows):
        return None
    low = max((-r[-1] / r[kept] for r in rows if r[kept] > 0), default=None)
    high = min((-r[-1] / r[kept] for r in rows if r[kept] < 0), default=None)
    return None if low is not None and high is not None and low > high else (low, high)


def _nearest(low: Fraction | None, high: Fraction | None) -> Fraction:
    """The value in an interval that is closest to zero."""
    if low is not None and low > 0:
        return low
    return high if high is not None and high < 0 else ZERO
