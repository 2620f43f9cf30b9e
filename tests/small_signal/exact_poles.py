"""Stability in rational arithmetic: the characteristic polynomial, and Routh–Hurwitz with the roots on the axis apart.

Nothing is shared with circuitsim but the netlist. Run as a program, with a number of circuits and a seed, for a
campaign.
"""

from __future__ import annotations

import itertools
import sys
from fractions import Fraction
from math import lcm

import numpy as np
from exact_signals import Signals, random_signals

from circuitsim.analysis.switched import circuit_at_operating_point
from circuitsim.errors import CircuitError
from circuitsim.netlist import loads
from circuitsim.small_signal import poles

Polynomial = list[Fraction]  # ascending powers


def random_network(seed: int) -> Signals:
    """A random circuit, often without resistors; the mutual inductance of coupled inductors is rational."""
    found = random_signals(seed)
    parts = [p._replace(value=0.0) if p.letter in "VI" else p for p in found.parts]
    if found.couplings:
        ((one, other),) = found.couplings
        rng = np.random.default_rng(seed)
        size = next(p.value for p in parts if p.name == one) * float(rng.choice([1.0, 4.0, 0.25]))
        parts = [p._replace(value=size) if p.name == other else p for p in parts]
    return Signals(parts, found.couplings, found.hertz)


def characteristic(circuit: Signals) -> Polynomial:
    """det (A₀ + s A₁) but for a factor; empty if it is zero for every s."""
    parts = circuit.parts
    nodes = sorted({n for p in parts for n in (p.a, p.b, *(p.control if isinstance(p.control, tuple) else ()))} - {0})
    place = {n: k for k, n in enumerate(nodes)}
    row_of = {p.name: len(nodes) + j for j, p in enumerate(parts)}
    n = len(nodes) + len(parts)
    constant, storage = ([[Fraction(0)] * n for _ in range(n)] for _ in range(2))

    def drop(matrix: list[list[Fraction]], row: int, a: int, b: int, factor: Fraction) -> None:
        if a:
            matrix[row][place[a]] += factor
        if b:
            matrix[row][place[b]] -= factor

    one = Fraction(1)
    for p in parts:
        row, x = row_of[p.name], Fraction(p.value)
        if p.a:
            constant[place[p.a]][row] += one
        if p.b:
            constant[place[p.b]][row] -= one
        if p.letter == "C":
            constant[row][row] -= one
            drop(storage, row, p.a, p.b, x)
            continue
        if p.letter in "RLVEH":
            drop(constant, row, p.a, p.b, one)
        else:
            constant[row][row] += one
        if p.letter == "R":
            constant[row][row] -= x
        elif p.letter == "L":
            storage[row][row] -= x
        elif isinstance(p.control, tuple):
            drop(constant, row, *p.control, -x)
        elif p.control is not None:
            constant[row][row_of[p.control]] -= x
    value = {p.name: Fraction(p.value) for p in parts}
    for (a, b), factor in circuit.couplings.items():
        ratio = value[b] / value[a]
        mutual = Fraction(factor) * value[a] * {1: 1, 4: 2, Fraction(1, 4): Fraction(1, 2)}[ratio]
        storage[row_of[a]][row_of[b]] -= mutual
        storage[row_of[b]][row_of[a]] -= mutual
    degree = sum(p.letter in "LC" for p in parts)
    points = [Fraction(k) for k in range(degree + 1)]
    values = [determinant([[c + x * d for c, d in zip(*rows)] for rows in zip(constant, storage)]) for x in points]
    return trimmed(interpolated(points, values))


def determinant(matrix: list[list[Fraction]]) -> Fraction:
    """By fraction-free elimination (Bareiss, 1968)."""
    scale, rows = Fraction(1), []
    for row in matrix:
        common = lcm(*(x.denominator for x in row))
        scale *= common
        rows.append([int(x * common) for x in row])
    n, before, sign = len(rows), 1, 1
    for k in range(n):
        pivot = next((r for r in range(k, n) if rows[r][k]), None)
        if pivot is None:
            return Fraction(0)
        if pivot != k:
            rows[k], rows[pivot], sign = rows[pivot], rows[k], -sign
        top = rows[k]
        for r in range(k + 1, n):
            own = rows[r]
            factor = own[k]
            rows[r] = [0] * (k + 1) + [(own[c] * top[k] - factor * top[c]) // before for c in range(k + 1, n)]
        before = top[k]
    return sign * before / scale


def interpolated(points: list[Fraction], values: list[Fraction]) -> Polynomial:
    """By Newton's divided differences."""
    table, found, basis = list(values), [Fraction(0)] * len(points), [Fraction(1)]
    for k in range(len(points)):
        for j, x in enumerate(basis):
            found[j] += table[0] * x
        table = [(b - a) / (points[i + k + 1] - points[i]) for i, (a, b) in enumerate(itertools.pairwise(table))]
        basis = [a - points[k] * b for a, b in zip([Fraction(0), *basis], [*basis, Fraction(0)])]
    return found


def trimmed(p: Polynomial) -> Polynomial:
    while p and p[-1] == 0:
        p = p[:-1]
    return p


def divided(p: Polynomial, q: Polynomial) -> tuple[Polynomial, Polynomial]:
    quotient, rest = [Fraction(0)] * max(0, len(p) - len(q) + 1), list(p)
    for k in reversed(range(len(quotient))):
        quotient[k] = rest[k + len(q) - 1] / q[-1]
        for j, x in enumerate(q):
            rest[k + j] -= quotient[k] * x
    return quotient, trimmed(rest[: len(q) - 1])


def common(p: Polynomial, q: Polynomial) -> Polynomial:
    """The greatest common divisor, with a leading 1."""
    while q:
        p, q = q, divided(p, q)[1]
    return [x / p[-1] for x in p]


def derivative(p: Polynomial) -> Polynomial:
    return [k * x for k, x in enumerate(p)][1:]


def right_of_axis(p: Polynomial) -> int:
    """Roots with positive real parts of a polynomial without roots in pairs s, −s (Routh, 1877)."""
    above, below = p[::-1][::2], p[::-1][1::2]
    first, changes = above[0], 0
    for _ in range(len(p) - 1):
        below += [Fraction(0)] * (len(above) - len(below))
        if below[0] == 0:  # never for both signs of a random factor s + c
            return right_of_axis(multiplied(p, [Fraction(12345677, 1234), Fraction(1)]))
        ratio = above[0] / below[0]
        changes += (first > 0) != (below[0] > 0)
        first = below[0]
        above, below = below, trimmed_front([a - ratio * b for a, b in zip(above[1:], [*below[1:], Fraction(0)])])
    return changes


def trimmed_front(row: Polynomial) -> Polynomial:
    return row or [Fraction(0)]


def multiplied(p: Polynomial, q: Polynomial) -> Polynomial:
    found = [Fraction(0)] * (len(p) + len(q) - 1)
    for i, x in enumerate(p):
        for j, y in enumerate(q):
            found[i + j] += x * y
    return found


def negative_roots(p: Polynomial) -> int:
    """Distinct real roots below 0, by Sturm's chain."""
    chain = [p, derivative(p)]
    while len(chain[-1]) > 1:
        chain.append([-x for x in divided(chain[-2], chain[-1])[1]])
        if not chain[-1]:
            chain.pop()
            break

    def changes(signs: list[Fraction]) -> int:
        signs = [x for x in signs if x]
        return sum((a > 0) != (b > 0) for a, b in itertools.pairwise(signs))

    return changes([x[-1] * (-1) ** (len(x) - 1) for x in chain]) - changes([x[0] for x in chain])


def stability(p: Polynomial) -> str:
    """``stable``, ``marginal`` or ``unstable``."""
    if len(p) == 1:
        return "stable"
    mirrored = [x * (-1) ** k for k, x in enumerate(p)]
    pairs = common(p, mirrored)  # roots s for which −s is one too: on the axis, or one on each side
    if len(p) > len(pairs) and right_of_axis(divided(p, pairs)[0]):
        return "unstable"
    zeros = next(k for k, x in enumerate(pairs) if x)
    even = pairs[zeros:]
    squares = even[::2]  # in s²
    if len(squares) > 1:
        single = divided(squares, common(squares, derivative(squares)))[0]
        if negative_roots(single) < len(single) - 1:
            return "unstable"
    return "marginal" if len(pairs) > 1 else "stable"


def verdict(circuit: Signals) -> tuple[str, str]:
    """What the oracle says, and what circuitsim says."""
    p = characteristic(circuit)
    try:
        deck = loads(circuit.deck())
        found = poles(circuit_at_operating_point(deck, changed=None), deck.following.couplings)
    except CircuitError as error:
        return stability(p) if p else "singular", f"refused: {error}" if p else "singular"
    if not p:
        return "singular", found.stability
    truth = stability(p)
    if found.values.size != len(p) - 1:
        return f"{truth}, {len(p) - 1} poles", f"{found.stability}, {found.values.size} poles"
    if found.rounding and truth != found.stability:
        return truth, f"{found.stability} within rounding"
    return truth, found.stability


__all__ = ["random_network", "stability", "verdict"]

if __name__ == "__main__":
    counts: dict[tuple[str, str], int] = {}
    count, first = int(sys.argv[1]), int(sys.argv[2])
    for seed in range(first, first + count):
        found = verdict(random_network(seed))
        kind = (found[0].split(",")[0], found[1].split(":")[0].split(",")[0] if found[0] != found[1] else "right")
        counts[kind] = counts.get(kind, 0) + 1
        if found[0] != found[1]:
            print(seed, *found, flush=True)
    print(counts)
