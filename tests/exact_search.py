"""Search for the conducting diodes of a circuit, and sparse elimination in integers.

The search replaces each diode by the law i = G max(v, 0) and ties every node to ground by a conductance 1/G. The
energy of that circuit is a strictly convex, piecewise quadratic function; Newton's method with an exact line search
minimises it in finitely many steps (Sun, J. Optim. Theory Appl. 1997). For large G the diodes with v > 0 are a right
set for the ideal diodes, wherever the ideal circuit has a steady state: so G grows, and the number of decimal digits
faster, until an exact test accepts the set. No answer rests on these digits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction

Rows = dict[int, dict[int, Fraction]]


def decimal(x: Fraction) -> Decimal:
    """A fraction in the digits of the present context."""
    return Decimal(x.numerator) / Decimal(x.denominator)


def elimination_order(nodes: Sequence[int], pairs: Sequence[tuple[int, int]]) -> list[int]:
    """Minimum-degree order; pairs may name nodes that are not eliminated."""
    around: dict[int, set[int]] = {u: set() for u in nodes}
    for u, w in pairs:
        if u != w and u in around and w in around:
            around[u].add(w)
            around[w].add(u)
    order = []
    while around:
        u = min(around, key=lambda node: (len(around[node]), node))
        near = around.pop(u)
        order.append(u)
        for w in near:
            around[w].discard(u)
            around[w] |= near - {w}
    return order


def solve_rows(rows: Rows, right: dict[int, Fraction]) -> dict[int, Fraction]:
    """Solution of a symmetric positive definite sparse system, by elimination of primitive integer rows."""
    whole: dict[int, dict[int, int]] = {}
    for u, row in rows.items():
        scale = math.lcm(right[u].denominator, *(x.denominator for x in row.values()))
        whole[u] = primitive({c: int(x * scale) for c, x in row.items() if x} | {-1: int(right[u] * scale)})
    pairs = [(u, c) for u, row in whole.items() for c in row if c >= 0]
    order = elimination_order(sorted(whole), pairs)
    for u in order:
        row = whole[u]
        for w in [c for c in row if c not in (u, -1) and u in whole[c]]:
            other = whole[w]
            factor, pivot = other.pop(u), row[u]
            common = math.gcd(factor, pivot)
            factor, pivot = factor // common, pivot // common
            other = {c: x * pivot for c, x in other.items()}
            for c, x in row.items():
                if c != u:
                    other[c] = other.get(c, 0) - factor * x
            whole[w] = primitive(other)
    top: dict[int, int] = {}
    bottom = 1
    for u in reversed(order):
        row = whole[u]
        value = row[-1] * bottom - sum(x * top[c] for c, x in row.items() if c not in (u, -1))
        common = math.gcd(value, row[u])
        pivot = row[u] // common
        if pivot != 1:
            bottom *= pivot
            top = {c: x * pivot for c, x in top.items()}
        top[u] = value // common
    return {u: Fraction(x, bottom) for u, x in top.items()}


def primitive(row: dict[int, int]) -> dict[int, int]:
    """The row without its common factor; the right-hand side is entry −1."""
    common = math.gcd(*row.values())
    return {c: x // common for c, x in row.items()} if common > 1 else row


class Newton:
    """The circuit with diodes of finite conductance, over super-nodes, in the digits of the present context.

    Parameters
    ----------
    root, offset : sequences
        Super-node and offset (V) of each node; ground's super-node is 0.
    resistors, diodes : sequences of edges
    injected : sequence of Fraction
        Net current into each node, A.
    conductance : Decimal
        Of a conducting diode, S; its inverse ties every node to ground.
    """

    def __init__(
        self,
        root: Sequence[int],
        offset: Sequence[Fraction],
        resistors: Sequence,
        diodes: Sequence,
        injected: Sequence[Fraction],
        conductance: Decimal,
    ) -> None:
        self.root, self.strong, self.weak = root, conductance, 1 / conductance
        self.unknown = [u for u in sorted(set(root)) if u]
        self.offset = [decimal(x) for x in offset]
        self.diodes = [(a, b) for _, a, b, _ in diodes]
        self.resistors = [(root[a], root[b], 1 / decimal(ohms)) for _, a, b, ohms in resistors if root[a] != root[b]]
        right = dict.fromkeys(self.unknown, Fraction(0)) | {0: Fraction(0)}
        for u, x in enumerate(injected):
            right[root[u]] += x
        for _, a, b, ohms in resistors:
            right[root[a]] -= (offset[a] - offset[b]) / ohms
            right[root[b]] += (offset[a] - offset[b]) / ohms
        self.right = {u: decimal(x) for u, x in right.items()}
        pairs = [(u, w) for u, w, _ in self.resistors] + [(root[a], root[b]) for a, b in self.diodes]
        self.order = elimination_order(self.unknown, pairs)

    def drops(self, x: dict[int, Decimal]) -> list[Decimal]:
        """Voltage over each diode, without sums below the resolution of the digits."""
        v = [x[r] + o for r, o in zip(self.root, self.offset)]
        return [v[a] - v[b] for a, b in self.diodes]

    def positive(self, drops: Sequence[Decimal], x: dict[int, Decimal], digits: int) -> tuple[int, ...]:
        """The diodes with a positive drop."""
        size = max(map(abs, [*x.values(), *self.offset]))
        least = size.scaleb(-(digits * 4) // 5)
        return tuple(k for k, d in enumerate(drops) if d > least)

    def solve(self, shorted: Sequence[int]) -> dict[int, Decimal]:
        """Potentials of the super-nodes for a set of conducting diodes, by subtraction-free star–mesh elimination."""
        around: dict[int, dict[int, Decimal]] = {u: {0: self.weak} for u in self.unknown}
        around[0] = {}
        right = dict(self.right)
        edges = list(self.resistors)
        for k in shorted:
            a, b = self.diodes[k]
            edges.append((self.root[a], self.root[b], self.strong))
            bias = (self.offset[a] - self.offset[b]) * self.strong
            right[self.root[a]] -= bias
            right[self.root[b]] += bias
        for u, w, g in edges:
            if u != w:
                around[u][w] = around[u].get(w, 0) + g
                around[w][u] = around[w].get(u, 0) + g
        stars = []
        for u in self.order:
            star = [(w, g) for w, g in around.pop(u).items() if g]
            total = sum(g for _, g in star)
            stars.append((u, star, total))
            for k, (w, g) in enumerate(star):
                share = g / total
                mesh = around[w]
                mesh.pop(u, None)
                right[w] += share * right[u]
                for c, h in star[k + 1 :]:
                    mesh[c] = around[c][w] = mesh.get(c, 0) + share * h
        x = {0: Decimal(0)}
        for u, star, total in reversed(stars):
            x[u] = (right[u] + sum(g * x[w] for w, g in star)) / total
        return x

    def step(self, x: dict[int, Decimal], y: dict[int, Decimal], shorted: Sequence[int]) -> dict[int, Decimal]:
        """The minimiser of the energy on the line from x through y, the solution for the diodes positive at x."""
        p = {u: y[u] - x[u] for u in x}
        d = self.drops(x)
        q = [p[self.root[a]] - p[self.root[b]] for a, b in self.diodes]
        inside = set(shorted)
        slope = sum(g * (p[u] - p[w]) ** 2 for u, w, g in self.resistors) + self.weak * sum(z * z for z in p.values())
        slope += self.strong * sum(q[k] ** 2 for k in shorted)
        bends = []
        for k, rate in enumerate(q):
            if rate and (rate < 0) == (k in inside):
                bends.append((max(-d[k] / rate, Decimal(0)), self.strong * rate * rate * (-1 if k in inside else 1)))
        value, t = -slope, Decimal(0)
        for bend, change in sorted(bends):
            ahead = value + slope * (bend - t)
            if ahead >= 0:
                break
            value, t = ahead, bend
            slope += change
        if slope > 0:
            t -= value / slope
        return {u: x[u] + t * p[u] for u in x}

    def minimise(self, guess: Sequence[int], digits: int) -> tuple[int, ...]:
        """The diodes with positive drops at the minimum of the energy."""
        x = self.solve(guess)
        shorted = self.positive(self.drops(x), x, digits)
        if shorted == tuple(sorted(guess)):
            return shorted
        for _ in range(100 + 10 * len(self.diodes)):
            y = self.solve(shorted)
            change = max(abs(y[u] - x[u]) for u in x)
            settled = self.positive(self.drops(y), y, digits)
            if settled == shorted or change <= max(map(abs, y.values())).scaleb(-(digits * 3) // 4):
                return settled
            x = self.step(x, y, shorted)
            shorted = self.positive(self.drops(x), x, digits)
        return shorted


def guesses(
    root: Sequence[int],
    offset: Sequence[Fraction],
    resistors: Sequence,
    diodes: Sequence,
    injected: Sequence[Fraction],
    guess: Sequence[int],
) -> Iterator[tuple[int, ...]]:
    """Sets of conducting diodes for larger and larger conductances of the diodes."""
    sizes = [1, *(abs(r[3].numerator.bit_length() - r[3].denominator.bit_length()) for r in resistors)]
    power, factor = 60 + max(sizes) // 3, 5
    shorted = tuple(sorted(guess))
    while True:
        digits = factor * power
        with localcontext(Context(prec=digits, Emax=MAX_EMAX, Emin=MIN_EMIN)):
            circuit = Newton(root, offset, resistors, diodes, injected, Decimal(10) ** power)
            shorted = circuit.minimise(shorted, digits)
        yield shorted
        power, factor = 2 * power, 2 * factor
