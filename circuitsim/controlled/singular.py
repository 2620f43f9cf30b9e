"""States of the diodes whose linear circuit is singular to rounding, decided in rational arithmetic.

Two sources in a loop of conducting diodes contradict each other whatever the rounding; a loop gain of one in decimals
is near one in doubles, and has a solution far away. Only exact elimination tells these apart.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from circuitsim.controlled.blocks import Block
from circuitsim.controlled.linear import Terms

LARGEST = 80
"""Most unknowns of a block that is eliminated in fractions."""

CLEAR = Fraction(1, 10**9)
"""Share of its terms that a contradiction must be above."""

Row = dict[int, Fraction]


def contradicts(block: Block, terms: Terms, conducting: np.ndarray, x: np.ndarray, right: np.ndarray) -> bool:
    """Whether these states of the block's diodes have no solution, proven.

    Parameters
    ----------
    terms : Terms
        Of the matrix in these states.
    conducting : (d,) bool array
        Of all diodes.
    x, right : (size,) float arrays
        Unknowns of earlier blocks; right-hand side.
    """
    if block.rows.size > LARGEST:
        return False
    if any(np.isinf(terms.ohm[terms.ends[r] : terms.ends[r + 1]]).any() for r in block.rows.tolist()):
        return False
    rows, wanted, sizes = _rows(block, terms, x, right)
    solved: list[tuple[int, Row, Fraction]] = []
    left = list(range(len(rows)))
    while left:
        k = min((k for k in left if rows[k]), key=lambda k: len(rows[k]), default=-1)
        if k < 0:
            return any(abs(wanted[k]) > CLEAR * sizes[k] for k in left)
        left.remove(k)
        pivot = next(iter(rows[k]))
        for other in left:
            if pivot in rows[other]:
                factor = rows[other][pivot] / rows[k][pivot]
                rows[other] = less(rows[other], rows[k], factor)
                wanted[other] -= factor * wanted[k]
                sizes[other] += abs(factor) * sizes[k]
        solved.append((pivot, rows[k], wanted[k]))
    return _wrong_sign(block, conducting, _back(solved), x)


def exact_value(value: float, ohm: float) -> Fraction:
    """A value, or the conductance of a resistance, without rounding."""
    if ohm != ohm:
        return Fraction(value)
    return (1 if value > 0.0 else -1) / Fraction(ohm)


def _rows(
    block: Block, terms: Terms, x: np.ndarray, right: np.ndarray
) -> tuple[list[Row], list[Fraction], list[Fraction]]:
    inside = set(block.columns.tolist())
    rows, wanted, sizes = [], [], []
    for r in block.rows.tolist():
        row: Row = {}
        total = Fraction(float(right[r]))
        size = abs(total)
        for at in range(terms.ends[r], terms.ends[r + 1]):
            column, value = int(terms.column[at]), exact_value(float(terms.value[at]), float(terms.ohm[at]))
            if column in inside:
                row[column] = row.get(column, Fraction(0)) + value
            else:
                total -= value * Fraction(float(x[column]))
                size += abs(value * Fraction(float(x[column])))
        rows.append({c: v for c, v in row.items() if v})
        wanted.append(total)
        sizes.append(size)
    return rows, wanted, sizes


def less(row: Row, other: Row, factor: Fraction) -> Row:
    """row − factor · other."""
    result = dict(row)
    for c, v in other.items():
        result[c] = result.get(c, Fraction(0)) - factor * v
    return {c: v for c, v in result.items() if v}


def _back(solved: list[tuple[int, Row, Fraction]]) -> dict[int, Fraction]:
    values: dict[int, Fraction] = {}
    for pivot, row, total in reversed(solved):
        values[pivot] = (total - sum(v * values[c] for c, v in row.items() if c != pivot)) / row[pivot]
    return values


def _wrong_sign(block: Block, conducting: np.ndarray, values: dict[int, Fraction], x: np.ndarray) -> bool:
    """Whether the only solution has a current or voltage that its diode's state excludes."""
    eq = block.eq

    def at(unknown: int) -> Fraction:
        if unknown < 0:
            return Fraction(0)
        return values[unknown] if unknown in values else Fraction(float(x[unknown]))

    for k in block.diodes.tolist():
        if conducting[k]:
            if at(int(eq.own[eq.diode[k]])) < 0:
                return True
            continue
        plus, minus = at(int(eq.plus[k])), at(int(eq.minus[k]))
        if plus - minus > CLEAR * (abs(plus) + abs(minus)):
            return True
    return False
