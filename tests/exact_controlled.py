"""An independent oracle: all operating points of a circuit with controlled sources, in exact rational arithmetic.

Potentials and branch currents are eliminated from Kirchhoff's laws and the laws of the elements; what is left are
equations in the voltages and currents of d diodes, which are solved for each of the 2^d states. Where a state leaves
unknowns open, its inequalities are eliminated one unknown at a time (Fourier and Motzkin): they have no solution, one,
or a continuum. Nothing is shared with circuitsim but the meaning of its columns and laws.
"""

from __future__ import annotations

import enum
from fractions import Fraction
from typing import NamedTuple

from circuitsim import Circuit
from circuitsim.circuit.elements import ELEMENTS
from circuitsim.circuit.laws import Quantity

Row = dict[int, Fraction]
"""By unknown; −1 is the right-hand side."""

Inequality = list[Fraction]
"""Coefficients of free unknowns, then a constant: their sum is at least zero."""

Point = tuple[list[Fraction], list[Fraction]]
"""Potentials (n_nodes) and branch currents (m)."""

MOST = 400
"""Most inequalities of one elimination."""


class Count(enum.Enum):
    """How many operating points there are."""

    NONE = "none"
    UNIQUE = "unique"
    SEVERAL = "several"
    CONTINUUM = "continuum"
    """Some potential or current is free within limits, or without any."""


class AllPoints(NamedTuple):
    """Isolated operating points, and whether others form a continuum."""

    points: list[Point]
    open: bool

    @property
    def count(self) -> Count:
        """How many there are."""
        if self.open:
            return Count.CONTINUUM
        return (Count.NONE, Count.UNIQUE, Count.SEVERAL)[min(len(self.points), 2)]


def all_points(circuit: Circuit, decimal: bool = False) -> AllPoints | None:
    """All operating points; potentials of a part without ground, to which no law refers, are relative to its lowest
    node. Values are doubles, or the shortest decimals that these stand for. None where too many inequalities arise."""
    rows, diodes, n, m = _rows(circuit, decimal)
    d, ports = len(diodes), n + m  # unknowns: potentials, currents, then voltages of diodes
    inner = [u for u in range(ports) if u - n not in diodes]
    kept, rest = _eliminated(rows, inner)
    open_inside = len(kept) < len(inner)
    rest = [row for row in rest if any(x for c, x in row.items() if c >= 0) or row.get(-1)]
    found, free = list[Point](), False
    for state in range(2**d):
        conducting = [bool(state >> k & 1) for k in range(d)]
        unknown = [n + diodes[k] if on else ports + k for k, on in enumerate(conducting)]
        solved, left = _eliminated([{c: x for c, x in r.items() if c in unknown or c == -1} for r in rest], unknown)
        if any(row.get(-1) for row in left):
            continue
        pivots = {pivot for pivot, _ in solved}
        loose = [u for u in unknown if u not in pivots]
        values = {u: _unit(k, len(loose)) for k, u in enumerate(loose)}
        _back(solved, values, len(loose))
        signs = [values[u] if on else [-x for x in values[u]] for u, on in zip(unknown, conducting)]
        limits = [_limits(signs, k, len(loose)) for k in range(len(loose))]
        if None in limits:
            return None
        if () in limits or any(len(loose) == 0 and sign[-1] < 0 for sign in signs):
            continue
        if open_inside or any(low is None or low != high for low, high in limits):
            free = True
            continue
        at = [low for low, _ in limits]
        known = {u: [sum((a * t for a, t in zip(v, at)), v[-1])] for u, v in values.items()}
        known |= {n + k: [Fraction(0)] for k in diodes if n + k not in known}
        known |= {ports + k: [Fraction(0)] for k in range(d) if ports + k not in known}
        _back(kept, known, 0)
        point = [known[u][0] for u in range(n)], [known[n + k][0] for k in range(m)]
        if point not in found:
            found.append(point)
    return AllPoints(found, free)


def _rows(circuit: Circuit, decimal: bool) -> tuple[list[Row], list[int], int, int]:
    """Kirchhoff's current law, the elements' laws, the voltages of diodes, and references of floating parts."""
    kind, first, second, value = circuit.columns()
    n, m = len(circuit.node_names), len(kind)

    def exact(x: float) -> Fraction:
        return Fraction(repr(float(x)) if decimal else float(x))

    law_rows: list[Row] = [{0: Fraction(1)}]
    nodal: list[Row] = [{} for _ in range(n)]
    diodes = [k for k in range(m) if ELEMENTS[kind[k]].name == "ideal diode"]
    for k in range(m):
        _add(nodal[first[k]], n + k, 1)
        _add(nodal[second[k]], n + k, -1)
        row: Row = {}
        letter, law = ELEMENTS[kind[k]].letter, circuit.laws.get(k)
        x = Fraction(0) if value[k] != value[k] else exact(value[k])
        if k in diodes:
            _voltage(row, first[k], second[k], 1)
            _add(row, n + m + diodes.index(k), -1)
        elif law is not None:
            gain = Fraction(1) if value[k] != value[k] else x
            if law.quantity is Quantity.VOLTAGE:
                _voltage(row, first[k], second[k], 1)
            elif law.quantity is Quantity.CURRENT:
                _add(row, n + k, 1)
            for c, plus, minus in law.voltages:
                _voltage(row, plus, minus, -gain * exact(c))
            for c, e in law.currents:
                _add(row, n + e, -gain * exact(c))
            row[-1] = exact(law.constant)
        elif letter in "VRL":
            _voltage(row, first[k], second[k], 1)
            if letter == "R":
                _add(row, n + k, -x)
            row[-1] = x if letter == "V" else Fraction(0)
        else:
            row = {n + k: Fraction(1), -1: x if letter == "I" else Fraction(0)}
        law_rows.append(row)
    for part in _parts(circuit):
        # A shift of all potentials of the part that no row sees is no difference.
        if all(sum(row.get(u, 0) for u in part) == 0 for row in law_rows[1:]):
            law_rows.append({min(part): Fraction(1)})
    return [*law_rows, *nodal[1:]], diodes, n, m


def _parts(circuit: Circuit) -> list[list[int]]:
    """Nodes of the parts without ground, which current sources and capacitors do not join."""
    kind, first, second, _ = circuit.columns()
    leader = list(range(len(circuit.node_names)))

    def root(u: int) -> int:
        while leader[u] != u:
            u = leader[u]
        return u

    for k in range(len(kind)):
        if ELEMENTS[kind[k]].letter not in "IC" or k in circuit.laws:
            one, other = root(first[k]), root(second[k])
            leader[max(one, other)] = min(one, other)
    return [[u for u in range(len(leader)) if root(u) == r] for r in range(1, len(leader)) if leader[r] == r]


def _add(row: Row, column: int, amount: Fraction | int) -> None:
    row[column] = row.get(column, Fraction(0)) + amount


def _voltage(row: Row, plus: int, minus: int, amount: Fraction | int) -> None:
    _add(row, plus, amount)
    _add(row, minus, -amount)


def _eliminated(rows: list[Row], unknown: list[int]) -> tuple[list[tuple[int, Row]], list[Row]]:
    """Pivot rows for as many of the unknowns as the rows determine, in order, and what is left of the others."""
    rows = [{c: x for c, x in row.items() if x or c == -1} for row in rows]
    kept, left = [], set(unknown)
    while True:
        fit = [row for row in rows if any(c in left for c in row)]
        if not fit:
            return kept, rows
        row = min(fit, key=len)
        pivot = next(c for c in row if c in left)
        rows = [_without(other, row, pivot) for other in rows if other is not row]
        kept.append((pivot, row))
        left.discard(pivot)


def _without(other: Row, row: Row, pivot: int) -> Row:
    if pivot not in other:
        return other
    factor = other[pivot] / row[pivot]
    result = dict(other)
    for c, x in row.items():
        result[c] = result.get(c, Fraction(0)) - factor * x
    return {c: x for c, x in result.items() if x or c == -1}


def _unit(k: int, size: int) -> Inequality:
    return [Fraction(int(j == k)) for j in range(size + 1)]


def _back(kept: list[tuple[int, Row]], values: dict[int, Inequality], free: int) -> None:
    """Fill in the pivots, affine in ``free`` unknowns; those that nothing determines are zero."""
    zero = [Fraction(0)] * (free + 1)
    for pivot, row in reversed(kept):
        total = [*zero[:-1], row.get(-1, Fraction(0))]
        for c, x in row.items():
            if c not in (pivot, -1):
                total = [a - x * b for a, b in zip(total, values.setdefault(c, zero))]
        values[pivot] = [a / row[pivot] for a in total]


def _limits(
    signs: list[Inequality], kept: int, size: int
) -> tuple[()] | tuple[Fraction | None, Fraction | None] | None:
    """The least and the largest value of one free unknown (None: no limit); () without a solution, None where too many
    inequalities arise."""
    rows = [list(sign) for sign in signs]
    for k in range(size):
        if k == kept:
            continue
        up, down = [r for r in rows if r[k] > 0], [r for r in rows if r[k] < 0]
        rows = [r for r in rows if not r[k]]
        rows += [[a / u[k] - b / w[k] for a, b in zip(u, w)] for u in up for w in down]
        if len(rows) > MOST:
            return None
    if any(not r[kept] and r[-1] < 0 for r in rows):
        return ()
    low = max((-r[-1] / r[kept] for r in rows if r[kept] > 0), default=None)
    high = min((-r[-1] / r[kept] for r in rows if r[kept] < 0), default=None)
    return () if low is not None and high is not None and low > high else (low, high)
