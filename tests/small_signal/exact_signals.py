"""Random AC circuits of every linear kind over many decades, and their solution with 120 digits.

Nothing is shared with circuitsim but the netlist. Unknowns are the node voltages and all branch currents. Run as a
program, with a number of circuits and a seed, for a campaign.
"""

from __future__ import annotations

import math
import sys
from decimal import Decimal, localcontext
from typing import NamedTuple

import numpy as np

from circuitsim import ac
from circuitsim.errors import CircuitError
from circuitsim.netlist import loads

DIGITS = 120
PI = Decimal(
    "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798214808651328230664709384460955"
)
ZERO, ONE = Decimal(0), Decimal(1)


class Number:
    """A complex number of decimals."""

    __slots__ = ("im", "re")

    def __init__(self, re: Decimal, im: Decimal = ZERO) -> None:
        self.re, self.im = re, im

    def __add__(self, other: Number) -> Number:
        return Number(self.re + other.re, self.im + other.im)

    def __sub__(self, other: Number) -> Number:
        return Number(self.re - other.re, self.im - other.im)

    def __mul__(self, other: Number) -> Number:
        return Number(self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re)

    def __truediv__(self, other: Number) -> Number:
        size = other.re * other.re + other.im * other.im
        found = self * Number(other.re, -other.im)
        return Number(found.re / size, found.im / size)

    def __neg__(self) -> Number:
        return Number(-self.re, -self.im)

    def size(self) -> Decimal:
        return max(abs(self.re), abs(self.im))


class Part(NamedTuple):
    """Letter, name, nodes, value, the controlling nodes or the controlling source."""

    letter: str
    name: str
    a: int
    b: int
    value: float
    control: tuple[int, int] | str | None = None


class Signals(NamedTuple):
    """A circuit, its couplings, and a frequency, Hz."""

    parts: list[Part]
    couplings: dict[tuple[str, str], float]
    hertz: float

    def deck(self) -> str:
        """As a netlist."""
        lines = ["random signals"]
        for p in self.parts:
            nodes = f"{p.name} {name(p.a)} {name(p.b)}"
            if p.letter in "VI":
                lines.append(f"{nodes} DC 0 AC {p.value!r}")
            elif isinstance(p.control, str):
                lines.append(f"{nodes} {p.control} {p.value!r}")
            elif p.control is not None:
                lines.append(f"{nodes} {name(p.control[0])} {name(p.control[1])} {p.value!r}")
            else:
                lines.append(f"{nodes} {p.value!r}")
        lines += [f"K{k} {a} {b} {factor!r}" for k, ((a, b), factor) in enumerate(self.couplings.items())]
        return "\n".join([*lines, f".ac lin 1 {self.hertz!r} {self.hertz!r}", ".end"])


def name(node: int) -> str:
    return f"n{node}" if node else "0"


def random_signals(seed: int) -> Signals:
    """Two to six nodes; values over 12 decades or of a few round numbers, frequencies over 15 decades."""
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(2, 7))
    round_numbers = rng.random() < 0.4

    def value(low: float, high: float) -> float:
        if round_numbers:
            return float(f"{rng.choice([1, 2, 5])}e{int(rng.integers(low, high + 1))}")
        return float(f"{10 ** rng.uniform(low, high):.6g}")

    def pair() -> tuple[int, int]:
        a, b = rng.choice(nodes + 1, 2, replace=False)
        return int(a), int(b)

    kinds = rng.choice(["RLC", "LC", "RC", "RL", "RLCEGFH", "RLCCLG"])
    parts = [Part("V", "V1", *pair(), float(rng.choice([1.0, 7.0])))] if rng.random() < 0.5 else []
    if not parts or rng.random() < 0.4:
        parts.append(Part("I", "I1", *pair(), float(rng.choice([1.0, 7.0, 1e-3]))))
    ranges = {"R": (-3, 9), "L": (-9, 3), "C": (-15, -3), "E": (-2, 3), "G": (-9, 1), "F": (-2, 3), "H": (-3, 6)}
    for k in range(int(rng.integers(nodes, 2 * nodes + 3))):
        letter = str(rng.choice(list(kinds)))
        if letter in "FH":
            source = Part("V", f"Vs{k}", *pair(), 0.0)
            parts += [source, Part(letter, f"{letter}{k}", *pair(), value(*ranges[letter]), source.name)]
        else:
            control = pair() if letter in "EG" else None
            sign = -1.0 if letter in "EG" and rng.random() < 0.5 else 1.0
            parts.append(Part(letter, f"{letter}{k}", *pair(), sign * value(*ranges[letter]), control))
            if letter in "LC" and rng.random() < 0.3:  # a loop of inductors; capacitors side by side
                a, b = parts[-1].a, parts[-1].b
                parts.append(Part(letter, f"{letter}{k}p", b, a, value(*ranges[letter])))
    part = list(range(nodes + 1))
    for p in parts:
        if p.letter != "I":
            part = [part[p.b] if own == part[p.a] else own for own in part]
    used = sorted({n for p in parts for n in (p.a, p.b, *(p.control if isinstance(p.control, tuple) else ()))} - {0})
    for m in used:  # a part without a path to ground has a reference of its own: not here
        if part[m] != part[0]:
            parts.append(Part("R", f"Rg{m}", m, 0, value(-3, 9)))
            part = [part[0] if own == part[m] else own for own in part]
    coils = [p.name for p in parts if p.letter == "L"]
    couplings = {}
    if len(coils) >= 2 and rng.random() < 0.4:
        couplings[coils[0], coils[1]] = float(rng.choice([0.5, -0.9, 0.999, 0.25, 1.0 - 2.0**-20]))
    return Signals(parts, couplings, value(-6, 9))


def exact(circuit: Signals) -> tuple[dict[int, Number], dict[str, Number]] | None:
    """Node voltages and branch currents; None where the equations are singular."""
    with localcontext() as context:
        context.prec = DIGITS
        parts = circuit.parts
        nodes = sorted(
            {n for p in parts for n in (p.a, p.b, *(p.control if isinstance(p.control, tuple) else ()))} - {0}
        )
        place = {n: k for k, n in enumerate(nodes)}
        row_of = {p.name: len(nodes) + j for j, p in enumerate(parts)}
        n = len(nodes) + len(parts)
        rows: list[dict[int, Number]] = [{} for _ in range(n)]
        right = [Number(ZERO)] * n
        s = Number(ZERO, 2 * PI * Decimal(circuit.hertz))

        def add(row: int, column: int, entry: Number) -> None:
            rows[row][column] = rows[row].get(column, Number(ZERO)) + entry

        def drop(row: int, a: int, b: int, factor: Number) -> None:
            if a:
                add(row, place[a], factor)
            if b:
                add(row, place[b], -factor)

        one = Number(ONE)
        for p in parts:
            row, x = row_of[p.name], Number(Decimal(p.value))
            if p.a:
                add(place[p.a], row, one)
            if p.b:
                add(place[p.b], row, -one)
            if p.letter == "I":
                add(row, row, one)
                right[row] = x
            elif p.letter == "C":
                add(row, row, -one)
                drop(row, p.a, p.b, s * x)
            else:
                drop(row, p.a, p.b, one) if p.letter in "RLVEH" else add(row, row, one)
                if p.letter == "V":
                    right[row] = x
                elif p.letter in "RL":
                    add(row, row, -x if p.letter == "R" else -(s * x))
                elif isinstance(p.control, tuple):
                    drop(row, *p.control, -x)
                else:
                    add(row, row_of[str(p.control)], -x)
        value = {p.name: Decimal(p.value) for p in parts}
        for (a, b), factor in circuit.couplings.items():
            mutual = -(s * Number(Decimal(factor) * (value[a] * value[b]).sqrt()))
            add(row_of[a], row_of[b], mutual)
            add(row_of[b], row_of[a], mutual)
        x = solved(rows, right)
        if x is None:
            return None
        return {m: x[k] for m, k in place.items()}, {p.name: x[row_of[p.name]] for p in parts}


def solved(rows: list[dict[int, Number]], right: list[Number]) -> list[Number] | None:
    """Gauss–Jordan elimination with full pivoting on scaled rows."""
    n, order = len(rows), list[tuple[int, int]]()
    left = [dict(row) for row in rows]
    b = list(right)
    for k, row in enumerate(left):
        size = max((x.size() for x in row.values()), default=ONE)
        left[k] = {c: Number(x.re / size, x.im / size) for c, x in row.items()}
        b[k] = Number(b[k].re / size, b[k].im / size)
    waiting = set(range(n))
    for _ in range(n):
        best, where = Decimal("1e-70"), None
        for r in waiting:
            for c, x in left[r].items():
                if x.size() > best:
                    best, where = x.size(), (r, c)
        if where is None:
            return None
        r, c = where
        waiting.remove(r)
        order.append(where)
        pivot = left[r][c]
        for other in range(n):
            if other != r and c in left[other]:
                factor = left[other].pop(c) / pivot
                for column, x in left[r].items():
                    if column != c:
                        left[other][column] = left[other].get(column, Number(ZERO)) - factor * x
                b[other] = b[other] - factor * b[r]
    found = [Number(ZERO)] * n
    for r, c in order:
        found[c] = b[r] / left[r][c]
    return found


def misses(circuit: Signals) -> tuple[str, float]:
    """``right``, ``refused`` or ``singular`` (and refused), ``false`` (certified, but singular), and the largest error
    of a node voltage, a drop or a current against the largest at its own nodes."""
    truth = exact(circuit)
    try:
        found = ac(loads(circuit.deck()))
    except CircuitError:
        return ("singular" if truth is None else "refused"), 0.0
    if truth is None:
        return "false", math.inf
    potentials, currents = truth
    potentials[0] = Number(ZERO)

    def off(got: complex, want: Number) -> float:
        return float((Number(Decimal(got.real), Decimal(got.imag)) - want).size())

    across = {p.name: potentials[p.a] - potentials[p.b] for p in circuit.parts}
    at_node = {m: float(v.size()) for m, v in potentials.items()}
    meets, through = dict.fromkeys(potentials, 0.0), dict.fromkeys(potentials, 0.0)
    for p in circuit.parts:
        for node in (p.a, p.b):
            meets[node] = max(meets[node], float(across[p.name].size()))
            through[node] = max(through[node], float(currents[p.name].size()))
    errors = []
    for node in set(potentials) - {0}:
        scale = max(at_node[node], meets[node])
        errors.append((off(complex(found[name(node)][0]), potentials[node]), scale))
    for p in circuit.parts:
        got = complex(found.voltage(name(p.a), name(p.b))[0])
        errors.append((off(got, across[p.name]), max(meets[p.a], meets[p.b])))
        got = complex(found.current(p.name)[0])
        errors.append((off(got, currents[p.name]), max(through[p.a], through[p.b])))
    largest = max((float(x.size()) for x in (*potentials.values(), *currents.values())), default=0.0)
    worst = max((e / s if s > 1e-40 * largest else (0.0 if e <= 1e-20 * largest else math.inf) for e, s in errors))
    return "right", worst


if __name__ == "__main__":
    counts: dict[str, int] = {}
    count, first = int(sys.argv[1]), int(sys.argv[2])
    for seed in range(first, first + count):
        verdict, worst = misses(random_signals(seed))
        if verdict == "right" and worst > 1e-9:
            verdict = "wrong"
        counts[verdict] = counts.get(verdict, 0) + 1
        if verdict in ("wrong", "false", "refused"):
            print(seed, verdict, worst, flush=True)
    print(counts)
