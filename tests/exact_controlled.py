"""An independent oracle: all operating points of a circuit with controlled sources, in exact rational arithmetic.

Potentials and branch currents are eliminated from Kirchhoff's laws and the laws of the elements; what is left are d
equations in the voltages and currents of d diodes, which are solved for each of the 2^d states. Nothing is shared with
circuitsim but the meaning of its columns and laws.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from circuitsim import Circuit
from circuitsim.circuit.elements import ELEMENTS
from circuitsim.circuit.laws import Quantity

Row = dict[int, Fraction]  # by unknown; −1 is the right-hand side


class AllPoints(NamedTuple):
    """Potentials (n_nodes) and currents (m) of each operating point; whether a state leaves them open."""

    points: list[tuple[list[Fraction], list[Fraction]]]
    open: bool


def all_points(circuit: Circuit) -> AllPoints | None:
    """All operating points, or None where the equations do not determine potentials and currents from the diodes'."""
    rows, diodes, n, m = _rows(circuit)
    d = len(diodes)
    ports = n + m  # unknowns: potentials, currents, then voltages of diodes
    inner = [u for u in range(ports) if u - n not in diodes]
    kept, rest = _eliminate(rows, inner)
    if kept is None or len(rest) != d:
        return None
    points: list[tuple[list[Fraction], list[Fraction]]] = []
    undetermined = False
    for state in range(2**d):
        conducting = [bool(state >> k & 1) for k in range(d)]
        unknown = [n + diodes[k] if on else ports + k for k, on in enumerate(conducting)]
        reduced = [{c: x for c, x in row.items() if c in unknown or c == -1} for row in rest]
        solved = _solve(reduced, unknown)
        if solved is None:
            undetermined = undetermined or _consistent(reduced, unknown)
            continue
        if any(solved[n + diodes[k]] < 0 if on else solved[ports + k] > 0 for k, on in enumerate(conducting)):
            continue
        values = {n + k: Fraction(0) for k in diodes} | {ports + k: Fraction(0) for k in range(d)} | solved
        for pivot, row in reversed(kept):
            total = row.get(-1, Fraction(0)) - sum(x * values[c] for c, x in row.items() if c not in (pivot, -1))
            values[pivot] = total / row[pivot]
        point = [values[u] for u in range(n)], [values[n + k] for k in range(m)]
        if point not in points:
            points.append(point)
    return AllPoints(points, undetermined)


def _rows(circuit: Circuit) -> tuple[list[Row], list[int], int, int]:
    """Kirchhoff's current law, the elements' laws, and the voltages of diodes."""
    kind, first, second, value = circuit.columns()
    n, m = len(circuit.node_names), len(kind)
    law_rows: list[Row] = [{0: Fraction(1)}]
    nodal: list[Row] = [{} for _ in range(n)]
    diodes = [k for k in range(m) if ELEMENTS[kind[k]].name == "ideal diode"]
    for k in range(m):
        _add(nodal[first[k]], n + k, 1)
        _add(nodal[second[k]], n + k, -1)
        row: Row = {}
        letter, law = ELEMENTS[kind[k]].letter, circuit.laws.get(k)
        x = Fraction(0) if value[k] != value[k] else Fraction(value[k])
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
                _voltage(row, plus, minus, -gain * Fraction(c))
            for c, e in law.currents:
                _add(row, n + e, -gain * Fraction(c))
            row[-1] = Fraction(law.constant)
        elif letter in "VRL":
            _voltage(row, first[k], second[k], 1)
            if letter == "R":
                _add(row, n + k, -x)
            row[-1] = x if letter == "V" else Fraction(0)
        else:
            row = {n + k: Fraction(1), -1: x if letter == "I" else Fraction(0)}
        law_rows.append(row)
    return [*law_rows, *nodal[1:]], diodes, n, m


def _add(row: Row, column: int, amount: Fraction | int) -> None:
    row[column] = row.get(column, Fraction(0)) + amount


def _voltage(row: Row, plus: int, minus: int, amount: Fraction | int) -> None:
    _add(row, plus, amount)
    _add(row, minus, -amount)


def _eliminate(rows: list[Row], inner: list[int]) -> tuple[list[tuple[int, Row]] | None, list[Row]]:
    """Pivot rows for the inner unknowns in order, and what is left of the others; None: not determined."""
    rows = [{c: x for c, x in row.items() if x or c == -1} for row in rows]
    kept, left = [], set(inner)
    while left:
        best = None
        for row in rows:
            for c in row:
                if c in left and (best is None or len(row) < len(best[1])):
                    best = c, row
        if best is None:
            return None, rows
        pivot, row = best
        rows.remove(row)
        rows = [_without(other, row, pivot) for other in rows]
        kept.append((pivot, row))
        left.discard(pivot)
    return kept, rows


def _without(other: Row, row: Row, pivot: int) -> Row:
    if pivot not in other:
        return other
    factor = other[pivot] / row[pivot]
    result = dict(other)
    for c, x in row.items():
        result[c] = result.get(c, Fraction(0)) - factor * x
    return {c: x for c, x in result.items() if x or c == -1}


def _solve(rows: list[Row], unknown: list[int]) -> dict[int, Fraction] | None:
    kept, rest = _eliminate(rows, unknown)
    if kept is None or any(row.get(-1) for row in rest):
        return None
    values: dict[int, Fraction] = {}
    for pivot, row in reversed(kept):
        values[pivot] = (
            row.get(-1, Fraction(0)) - sum(x * values[c] for c, x in row.items() if c not in (pivot, -1))
        ) / row[pivot]
    return values


def _consistent(rows: list[Row], unknown: list[int]) -> bool:
    """Whether singular equations have solutions at all."""
    rows = [dict(row) for row in rows]
    for c in unknown:
        row = next((row for row in rows if row.get(c)), None)
        if row is not None:
            rows.remove(row)
            rows = [_without(other, row, c) for other in rows]
    return not any(row.get(-1) for row in rows)
