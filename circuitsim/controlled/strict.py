"""Uniqueness with devices whose curves rise strictly: pairs of matrices, decided in rational arithmetic.

Two operating points differ by v = P z, ρ i = Q z. At every device of this kind v i > 0 or v = i = 0, so that v = D ρ i
with a positive D; at every ideal diode v i ≥ 0, so that D may be zero or infinite, too. There is no second operating
point if det(P − D Q) vanishes for no such D: its coefficients, one for each choice of rows of P and −Q, have one sign
(Sandberg & Willson 1969), and for each choice at the ideal diodes some coefficient does not vanish.
An op-amp that forces a current through a diode is of this kind; a P-matrix is not there.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np

from circuitsim.controlled.blocks import RawBlock
from circuitsim.controlled.equations import Equations
from circuitsim.controlled.linear import Terms
from circuitsim.controlled.singular import Row, exact_value, less

LARGEST = 80
"""Most unknowns of a block that is eliminated in fractions."""

MOST = 6
"""Most ports of it."""

Matrix = list[list[Fraction]]


def strictly_one(eq: Equations, terms: Terms, block: RawBlock, strict: np.ndarray) -> bool:
    """Whether a block has at most one operating point, whatever its sources and the curves of its devices are.

    Parameters
    ----------
    terms : Terms
        Of the matrix with all ports loaded.
    strict : (d,) bool array
        Which of all diodes stand for strictly monotone devices.
    """
    if block.rows.size > LARGEST or block.diodes.size > MOST:
        return False
    if any(np.isinf(terms.ohm[terms.ends[r] : terms.ends[r + 1]]).any() for r in block.rows.tolist()):
        return False  # quotients that are rounded
    ports = _ports(eq, terms, block)
    return ports is not None and _one_sign(*ports, strict[block.diodes].tolist())


def _one_sign(p: Matrix, q: Matrix, strict: list[bool]) -> bool:
    """Whether the coefficients of det(P − D Q) have one sign, and do not vanish for the choices of ideal diodes."""
    seen: set[int] = set()
    alive: dict[tuple[bool, ...], bool] = {}
    for choice in product((False, True), repeat=len(p)):
        rows = [[-x for x in q[k]] if taken else list(p[k]) for k, taken in enumerate(choice)]
        value = _determinant(rows)
        sign = (value > 0) - (value < 0)
        if sign:
            seen.add(sign)
        key = tuple(taken for taken, own in zip(choice, strict) if not own)
        alive[key] = alive.get(key, False) or bool(sign)
        if len(seen) > 1:
            return False
    return all(alive.values())


def _determinant(rows: Matrix) -> Fraction:
    """By elimination."""
    total, size = Fraction(1), len(rows)
    for k in range(size):
        pivot = next((r for r in range(k, size) if rows[r][k]), None)
        if pivot is None:
            return Fraction(0)
        if pivot != k:
            rows[k], rows[pivot] = rows[pivot], rows[k]
            total = -total
        total *= rows[k][k]
        for r in range(k + 1, size):
            if rows[r][k]:
                factor = rows[r][k] / rows[k][k]
                rows[r] = [a - factor * b for a, b in zip(rows[r], rows[k])]
    return total


def _ports(eq: Equations, terms: Terms, block: RawBlock) -> tuple[Matrix, Matrix] | None:
    """P and Q of the block, exact; None where it is singular."""
    inside, size = set(block.columns.tolist()), eq.size
    unit = {int(eq.own[eq.diode[k]]): size + d for d, k in enumerate(block.diodes.tolist())}
    rows: list[Row] = []
    for r in block.rows.tolist():
        row: Row = {}
        for at in range(terms.ends[r], terms.ends[r + 1]):
            column = int(terms.column[at])
            if column in inside:
                value = exact_value(float(terms.value[at]), float(terms.ohm[at]))
                row[column] = row.get(column, Fraction(0)) + value
        row = {c: v for c, v in row.items() if v}
        if r in unit:
            row[unit[r]] = Fraction(-1)  # the right-hand side, moved to the left
        rows.append(row)
    solved: dict[int, Row] = {}
    left = list(range(len(rows)))
    while left:
        k = min(left, key=lambda k: len(rows[k]))
        pivot = next((c for c in rows[k] if c < size), None)
        if pivot is None:
            return None
        left.remove(k)
        for other in left:
            if pivot in rows[other]:
                rows[other] = less(rows[other], rows[k], rows[other][pivot] / rows[k][pivot])
        solved[pivot] = rows[k]
    answer: dict[int, list[Fraction]] = {}
    for pivot, row in reversed(solved.items()):
        answer[pivot] = [
            (-row.get(size + d, Fraction(0)) - sum(v * answer[c][d] for c, v in row.items() if c < size and c != pivot))
            / row[pivot]
            for d in range(block.diodes.size)
        ]
    zero = [Fraction(0)] * block.diodes.size
    p, q = [], []
    for k in block.diodes.tolist():
        ends = (answer.get(int(eq.plus[k]), zero), answer.get(int(eq.minus[k]), zero))
        p.append([a - b for a, b in zip(*ends)])
        q.append([Fraction(float(eq.load[k])) * x for x in answer.get(int(eq.own[eq.diode[k]]), zero)])
    return p, q


__all__ = ["strictly_one"]
