"""An independent oracle: all operating points of a circuit with controlled sources, in exact rational arithmetic.

Potentials and branch currents are eliminated from Kirchhoff's laws and the laws of the elements; what is left are
equations in the voltages and currents of the diodes and piecewise-linear devices, which are solved for each choice of a
straight piece of each curve (an ideal diode has two). Where a choice leaves unknowns open, its inequalities are
eliminated one unknown at a time (Fourier and Motzkin): they have no solution, one, or a continuum. Nothing is shared
with circuitsim but the meaning of its columns, parameters and laws.
"""

import enum
from fractions import Fraction
from itertools import pairwise, product
from typing import NamedTuple

from circuitsim import Circuit
from circuitsim.circuit.elements import ELEMENTS
from circuitsim.circuit.laws import Quantity
from circuitsim.models import Device
from circuitsim.models.piecewise_diode import PiecewiseLinearDiode
from circuitsim.models.table import Table

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


class Piece(NamedTuple):
    """A straight piece of a curve: the points (v, i) + t (dv, di), V and A, for 0 ≤ t, and t ≤ 1 where it ends."""

    v: Fraction
    i: Fraction
    dv: Fraction
    di: Fraction
    ends: bool = False


Range = tuple[Fraction | None, Fraction | None]
"""Least and largest value; None: no limit."""


class AllPoints(NamedTuple):
    """Isolated operating points, whether others form a continuum, and the ranges of all potentials if asked for."""

    points: list[Point]
    open: bool
    ranges: list[Range] | None = None

    @property
    def count(self) -> Count:
        """How many there are."""
        if self.open:
            return Count.CONTINUUM
        return (Count.NONE, Count.UNIQUE, Count.SEVERAL)[min(len(self.points), 2)]


def all_points(circuit: Circuit, decimal: bool = False, ranges: bool = False) -> AllPoints | None:
    """All operating points of a circuit without smooth devices but tables; potentials of a part without ground, to
    which no law refers, are relative to its lowest node. Values are doubles, or the shortest decimals that these stand
    for. None where too many inequalities arise."""
    curves = _curves(circuit, decimal)
    rows, n, m = _rows(circuit, decimal, [*curves])
    d, ports = len(curves), n + m  # unknowns: potentials, currents, then voltages across curves
    inner = [u for u in range(ports) if u - n not in curves]
    kept, rest = _eliminated(rows, inner)
    open_inside = len(kept) < len(inner)
    rest = [row for row in rest if any(x for c, x in row.items() if c >= 0) or row.get(-1)]
    found, free, along = list[Point](), False, [*range(d)]
    spans: list[list[Range]] = [[] for _ in range(n)]
    for pieces in product(*curves.values()):
        chosen = {n + k: (j, piece.di, piece.i) for j, (k, piece) in enumerate(zip(curves, pieces))}
        chosen |= {ports + j: (j, piece.dv, piece.v) for j, piece in enumerate(pieces)}
        solved, left = _eliminated([_along(row, chosen) for row in rest], along)
        if any(row.get(-1) for row in left):
            continue
        pivots = {pivot for pivot, _ in solved}
        loose = [u for u in along if u not in pivots]
        values = {u: _unit(k, len(loose)) for k, u in enumerate(loose)}
        _back(solved, values, len(loose))
        signs = [values[j] for j in along]
        signs += [[*(-x for x in values[j][:-1]), 1 - values[j][-1]] for j in along if pieces[j].ends]
        limits = [_limits(signs, k, len(loose)) for k in range(len(loose))]
        if None in limits:
            return None
        if () in limits or any(len(loose) == 0 and sign[-1] < 0 for sign in signs):
            continue
        known = {
            u: [step * x + (start if k == len(loose) else 0) for k, x in enumerate(values[j])]
            for u, (j, step, start) in chosen.items()
        }
        _back(kept, known, len(loose))
        if ranges:
            for u in range(n):
                span = _span(known[u], signs)
                if span is None:
                    return None
                spans[u].append(span)
        if open_inside or any(low is None or low != high for low, high in limits):
            free = True
            continue
        at = [*(low for low, _ in limits), Fraction(1)]
        point = tuple([sum(a * x for a, x in zip(known[u], at)) for u in part] for part in (range(n), range(n, n + m)))
        if point not in found:
            found.append(point)
    return AllPoints(found, free, [_together(span) for span in spans] if ranges and spans[0] else None)


def _span(affine: Inequality, signs: list[Inequality]) -> Range | None:
    """The range of an affine function of free unknowns; None where too many inequalities arise."""
    size = len(affine) - 1
    rows = [[*sign[:-1], Fraction(0), sign[-1]] for sign in signs]
    same = [*affine[:-1], Fraction(-1), affine[-1]]
    found = _limits([*rows, same, [-x for x in same]], size, size + 1)
    return None if found is None or found == () else found


def _together(spans: list[Range]) -> Range:
    """The range that covers all of some."""
    low, high = ([span[k] for span in spans] for k in range(2))
    return None if None in low else min(low), None if None in high else max(high)


def _along(row: Row, chosen: dict[int, tuple[int, Fraction, Fraction]]) -> Row:
    """A row in what is left open along the chosen pieces: each unknown u is start + step t."""
    made: Row = {-1: row.get(-1, Fraction(0))}
    for u, x in row.items():
        if u >= 0:
            j, step, start = chosen[u]
            _add(made, j, x * step)
            made[-1] -= x * start
    return made


def _curves(circuit: Circuit, decimal: bool) -> dict[int, list[Piece]]:
    """The curves of ideal diodes and devices, by element."""
    zero, one = Fraction(0), Fraction(1)
    ideal = [Piece(zero, zero, -one, zero), Piece(zero, zero, zero, one)]
    return {
        k: _pieces(circuit.devices[k], decimal) if k in circuit.devices else ideal
        for k, code in enumerate(circuit.columns()[0])
        if k in circuit.devices or ELEMENTS[code].name == "ideal diode"
    }


def _pieces(device: Device, decimal: bool) -> list[Piece]:
    """The curve of a table, or of a piecewise-linear diode."""
    if isinstance(device, Table):
        points = [(_exact(v, decimal), _exact(i, decimal)) for v, i in device.points()]
        first, last = ([b - a for a, b in zip(*ends)] for ends in (points[:2], points[-2:]))
    else:
        assert isinstance(device, PiecewiseLinearDiode)
        cells, row = _exact(device.m, decimal), _exact(device.n, decimal)
        off = 1 / _exact(device.roff, decimal) if device.roff is not None else Fraction(0)
        forward, reverse = device.vfwd, device.vrev
        ohms = [_exact(device.ron if x is None else x, decimal) for x in (device.ron, device.rrev)]
        knees = [_exact(forward, decimal), *([] if reverse is None else [-_exact(reverse, decimal)])][::-1]
        if reverse is None:
            knees = [min(knees[0], Fraction(0)) - 1, *knees]
        points = [(v * row, v * off * cells) for v in knees]
        last = [ohms[0] * row, cells]
        first = [row, off * cells] if reverse is None else [ohms[1] * row, cells]
    pieces = [Piece(*points[0], *(-x for x in first)), Piece(*points[-1], *last)]
    return pieces + [Piece(*a, b[0] - a[0], b[1] - a[1], True) for a, b in pairwise(points) if a != b]


def _exact(x: float, decimal: bool) -> Fraction:
    """A double, or the shortest decimal that it stands for."""
    return Fraction(repr(float(x)) if decimal else float(x))


def _rows(circuit: Circuit, decimal: bool, curves: list[int]) -> tuple[list[Row], int, int]:
    """Kirchhoff's current law, the elements' laws, the voltages across curves, and references of floating parts."""
    kind, first, second, value = circuit.columns()
    n, m = len(circuit.node_names), len(kind)

    law_rows: list[Row] = [{0: Fraction(1)}]
    nodal: list[Row] = [{} for _ in range(n)]
    for k in range(m):
        _add(nodal[first[k]], n + k, 1)
        _add(nodal[second[k]], n + k, -1)
        row: Row = {}
        letter, law = ELEMENTS[kind[k]].letter, circuit.laws.get(k)
        x = Fraction(0) if value[k] != value[k] else _exact(value[k], decimal)
        if k in curves:
            _voltage(row, first[k], second[k], 1)
            _add(row, n + m + curves.index(k), -1)
        elif law is not None:
            gain = Fraction(1) if value[k] != value[k] else x
            if law.quantity is Quantity.VOLTAGE:
                _voltage(row, first[k], second[k], 1)
            elif law.quantity is Quantity.CURRENT:
                _add(row, n + k, 1)
            for c, plus, minus in law.voltages:
                _voltage(row, plus, minus, -gain * _exact(c, decimal))
            for c, e in law.currents:
                _add(row, n + e, -gain * _exact(c, decimal))
            row[-1] = _exact(law.constant, decimal)
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
    return [*law_rows, *nodal[1:]], n, m


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
