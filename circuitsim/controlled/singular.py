"""States of the diodes whose linear circuit is singular to rounding, decided in rational arithmetic.

Two sources in a loop of conducting diodes contradict each other whatever the rounding; a loop gain of one in decimals
is near one in doubles, and has a solution far away. An op-amp whose loop is open sets no voltage, and the diodes around
it may leave it a single one. Only exact elimination distinguishes these.
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


Affine = tuple[Fraction, Fraction]
"""A value and its slope along the only direction in which equations leave their unknowns open."""


def only_points(
    block: Block, terms: Terms, conducting: np.ndarray, x: np.ndarray, right: np.ndarray, rounding: np.ndarray
) -> list[np.ndarray] | None:
    """All solutions in these states of the block's diodes, if there is one at most; None where that is not proven.

    Parameters
    ----------
    terms : Terms
        Of the matrix in these states.
    conducting : (d,) bool array
        Of all diodes.
    x, right, rounding : (size,) float arrays
        Unknowns of earlier blocks; right-hand side; possible rounding of the unknowns.

    Returns
    -------
    list of (2, k) float arrays, or None
        Voltages (V) and currents (A) of the block's diodes.
    """
    if block.rows.size > LARGEST:
        return None
    if any(np.isinf(terms.ohm[terms.ends[r] : terms.ends[r + 1]]).any() for r in block.rows.tolist()):
        return None
    rows, wanted, sizes = _rows(block, terms, x, right, rounding)
    solved: list[tuple[int, Row, Fraction]] = []
    left = list(range(len(rows)))
    while left:
        k = min((k for k in left if rows[k]), key=lambda k: len(rows[k]), default=-1)
        if k < 0:
            if any(abs(wanted[k]) > CLEAR * sizes[k] for k in left):
                return []
            break
        left.remove(k)
        pivot = next(iter(rows[k]))
        for other in left:
            if pivot in rows[other]:
                factor = rows[other][pivot] / rows[k][pivot]
                rows[other] = less(rows[other], rows[k], factor)
                wanted[other] -= factor * wanted[k]
                sizes[other] += abs(factor) * sizes[k]
        solved.append((pivot, rows[k], wanted[k]))
    free = sorted(set(block.columns.tolist()) - {pivot for pivot, _, _ in solved})
    if len(free) > 1:
        return None
    ports = _ports(block, _back(solved, free), x)
    along = _range(ports, conducting[block.diodes].tolist())
    if along is None:
        return []
    low, high = along
    if free and (low is None or high is None or high - low > CLEAR * (abs(low) + abs(high))):
        return None
    t = low if low is not None else Fraction(0)
    return [np.array([[float(a + t * b) for a, b in pair] for pair in ports]).reshape(-1, 2).T]


def exact_value(value: float, ohm: float) -> Fraction:
    """A value, or the conductance of a resistance, without rounding."""
    if ohm != ohm:
        return Fraction(value)
    return (1 if value > 0.0 else -1) / Fraction(ohm)


def _rows(
    block: Block, terms: Terms, x: np.ndarray, right: np.ndarray, rounding: np.ndarray
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
                size += abs(value) * (abs(Fraction(float(x[column]))) + Fraction(float(rounding[column])) / CLEAR)
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


def _back(solved: list[tuple[int, Row, Fraction]], free: list[int]) -> dict[int, Affine]:
    """The unknowns; a free one is the parameter."""
    values: dict[int, Affine] = {column: (Fraction(0), Fraction(1)) for column in free}
    for pivot, row, total in reversed(solved):
        known = [(v, values[c]) for c, v in row.items() if c != pivot]
        value, slope = (sum((v * pair[k] for v, pair in known), Fraction(0)) for k in (0, 1))
        values[pivot] = (total - value) / row[pivot], -slope / row[pivot]
    return values


def _ports(block: Block, values: dict[int, Affine], x: np.ndarray) -> list[tuple[Affine, Affine]]:
    """Voltage and current of each diode of the block; a voltage that is zero but for rounding is zero."""
    eq = block.eq

    def at(unknown: int) -> Affine:
        if unknown < 0:
            return Fraction(0), Fraction(0)
        return values[unknown] if unknown in values else (Fraction(float(x[unknown])), Fraction(0))

    found = []
    for k in block.diodes.tolist():
        plus, minus = at(int(eq.plus[k])), at(int(eq.minus[k]))
        volts, slope = plus[0] - minus[0], plus[1] - minus[1]
        if not slope and abs(volts) <= CLEAR * (abs(plus[0]) + abs(minus[0])):
            volts = Fraction(0)
        found.append(((volts, slope), at(int(eq.own[eq.diode[k]]))))
    return found


def _range(
    ports: list[tuple[Affine, Affine]], conducting: list[bool]
) -> tuple[Fraction | None, Fraction | None] | None:
    """Least and largest parameter (None: no bound) for which no diode has a sign that its state excludes; None where
    there is no such parameter."""
    low, high = None, None
    for (volts, amperes), on in zip(ports, conducting):
        value, slope = amperes if on else (-volts[0], -volts[1])  # at least zero
        if not slope:
            if value < 0:
                return None
            continue
        bound = -value / slope
        if slope > 0:
            low = bound if low is None else max(low, bound)
        else:
            high = bound if high is None else min(high, bound)
    if low is not None and high is not None and low - high > CLEAR * (abs(low) + abs(high)):
        return None
    return low, high
