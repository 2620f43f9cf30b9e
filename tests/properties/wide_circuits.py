"""Seeded random circuits over many decades, in regimes that each stand for one numerical difficulty.

`draw` is a function of regime, seed and size alone. Nodes have hidden potentials that give most voltage sources values
that agree round every loop and turn most diodes the way these allow, so that most circuits have a steady state.
"""

from __future__ import annotations

import enum
from collections.abc import Callable

import numpy as np
from circuits import NODES, Parts, Sketch, sketch_of

SMALL, LARGE = (2, 20), (21, 60)


class Regime(enum.Enum):
    """What is difficult in a circuit."""

    SPREAD = "resistances over 18 decades, sources over 12"
    TIES = "small integers: currents and drops that are exactly zero"
    DECIMALS = "loops of sources with decimal values, closed up to rounding; loops of diodes"
    SHORTS = "zero-ohm resistors, inductors, equal sources and resistors in parallel"
    ISLANDS = "floating parts, joined by diodes or not at all"
    CHAINS = "series chains of tiny resistors between large ones"
    CANCELLING = "current sources that cancel, at nodes far apart in conductance"
    BRIDGES = "nearly balanced bridges with low-ohm detectors; shunts"
    CURRENT_LOOPS = "floating loops of large currents, tied weakly"
    ANYTHING = "all of these in one circuit, sources without agreement"


class Builder:
    """Elements in the making, with the random choices of one circuit.

    Attributes
    ----------
    n : int
        Nodes so far, ground included; never more than ``most``.
    hidden : list of float
        Hidden potential of each node, V.
    """

    def __init__(self, rng: np.random.Generator, most: int, decimals: bool = False) -> None:
        self.rng, self.most, self.decimals = rng, most, decimals
        self.n = 1
        self.hidden = [0.0]
        self.parts: Parts = []

    def chance(self, p: float) -> bool:
        """True with probability p."""
        return bool(self.rng.random() < p)

    def node(self) -> int:
        """Any node."""
        return int(self.rng.integers(self.n))

    def new(self) -> int:
        """A new node, or an old one if there are enough."""
        if self.n == self.most:
            return self.node()
        self.n += 1
        self.hidden.append(float(self.rng.integers(-6, 7)) * (0.1 if self.decimals else 1.0))
        return self.n - 1

    def spread(self, low: float, high: float) -> float:
        """A value between 10^low and 10^high: two digits, two bits or all of a double."""
        x = float(10.0 ** self.rng.uniform(low, high))
        kind = self.rng.integers(4)
        if kind == 0:
            return x
        return float(f"{x:.1e}") if kind == 1 else 2.0 ** round(np.log2(x)) * int(self.rng.choice([1, 1, 3, 5]))

    def ohms(self) -> float:
        """A resistance over 18 decades."""
        return self.spread(-9.0, 9.0)

    def source(self) -> float:
        """The value of a source over 12 decades, either sign."""
        return self.spread(-6.0, 6.0) * (1 if self.chance(0.5) else -1)

    def integer(self) -> float:
        """1 … 4."""
        return float(self.rng.integers(1, 5))

    def r(self, a: int, b: int, ohms: float) -> None:
        """A resistor."""
        self.parts.append(("R", a, b, ohms))

    def i(self, a: int, b: int, amperes: float) -> None:
        """A current source."""
        self.parts.append(("I", a, b, amperes))

    def v(self, a: int, b: int) -> None:
        """A voltage source that agrees with the hidden potentials; in decimals as people write them."""
        drop = self.hidden[a] - self.hidden[b]
        self.parts.append(("V", a, b, float(f"{drop:.6g}") if self.decimals else drop))

    def d(self, a: int, b: int) -> None:
        """A diode, mostly in the direction that the hidden potentials allow."""
        if self.hidden[a] > self.hidden[b] and self.chance(0.9):
            a, b = b, a
        if not (self.decimals and self.hidden[a] == self.hidden[b]):
            self.parts.append(("D", a, b, 0.0))

    def loaded(self, a: int, b: int, ohms: float, amperes: float) -> None:
        """A resistor with a current source across it: the current is never unbalanced."""
        self.r(a, b, ohms)
        self.i(a, b, amperes)

    def tree(self, ohms: Callable[[], float], p_diode: float = 0.2) -> None:
        """The remaining nodes, each tied to an earlier one by a resistor or a diode with a pull to ground."""
        while self.n < self.most:
            a = self.node()
            b = self.new()
            if self.chance(p_diode):
                self.d(a, b)
                self.r(b, 0, ohms())
            else:
                self.r(a, b, ohms())

    def extras(self, ohms: Callable[[], float], amperes: Callable[[], float], share: float = 1.0) -> None:
        """Resistors, driven resistors, diodes and sources between any nodes."""
        for _ in range(int(self.rng.integers(1, 2 + int(share * self.n)))):
            a, b = self.node(), self.node()
            kind = int(self.rng.integers(8))
            if kind < 2:
                self.r(a, b, ohms())
            elif kind < 4:
                self.loaded(a, b, ohms(), amperes())
            elif kind < 7:
                self.d(a, b)
            elif a and self.chance(0.7):
                self.i(0, a, amperes())
            else:
                self.v(a, b)


def spread(b: Builder) -> None:
    """Everything over many decades; hidden potentials too."""
    b.hidden[0] = 0.0
    b.tree(b.ohms)
    b.hidden = [0.0, *(b.source() for _ in range(b.n - 1))]
    b.extras(b.ohms, b.source, 1.5)


def ties(b: Builder) -> None:
    """Small integers everywhere."""
    b.tree(b.integer, 0.3)
    b.extras(b.integer, lambda: float(b.rng.integers(-2, 3)), 2.0)


def decimals(b: Builder) -> None:
    """Loops of sources with decimal values, and rings of diodes between nodes without sources."""
    b.tree(lambda: b.spread(-1.0, 4.0))
    for _ in range(max(2, b.n // 2)):
        b.v(b.node(), b.node())
    ring = [b.node() for _ in range(int(b.rng.integers(2, 5)))]
    if b.chance(0.5):
        ring = [b.node() for _ in ring]
        level = b.hidden[ring[0]]
        ring = [k for k in ring if b.hidden[k] == level] or ring[:1]
        b.parts += [("D", k, j, 0.0) for k, j in zip(ring, ring[1:] + ring[:1])]
    b.extras(lambda: b.spread(-1.0, 4.0), lambda: round(float(b.rng.normal()), 1), 0.7)


def shorts(b: Builder) -> None:
    """Zero-ohm resistors, inductors, and equal elements in parallel, over many decades."""
    b.tree(b.ohms)
    for _ in range(max(2, b.n // 2)):
        a = b.node()
        same = [k for k in range(b.n) if b.hidden[k] == b.hidden[a]]
        c = int(b.rng.choice(same))
        b.parts.append(("L", a, c, 1e-3) if b.chance(0.4) else ("R", a, c, 0.0))
    b.extras(b.ohms, b.source)
    for k in b.rng.integers(len(b.parts), size=max(1, b.n // 4)).tolist():
        if b.parts[k][0] in "RVD":
            b.parts.append(b.parts[k])


def islands(b: Builder) -> None:
    """Floating parts with sources of their own, mostly joined by diodes, some by nothing but a capacitor."""
    groups = [[0]]
    while b.n < b.most:
        group = [b.new()]
        for _ in range(int(b.rng.integers(1, 5))):
            k = b.new()
            if k in group or b.n == b.most:
                break
            b.loaded(group[int(b.rng.integers(len(group)))], k, b.ohms(), b.source() if b.chance(0.6) else b.integer())
            group.append(k)
        groups.append(group)
    for _ in range(len(groups) + int(b.rng.integers(3))):
        one, two = (groups[int(b.rng.integers(len(groups)))] for _ in range(2))
        a, c = int(b.rng.choice(one)), int(b.rng.choice(two))
        b.parts.append(("C", a, c, 1e-6) if b.chance(0.1) else ("D", a, c, 0.0))
        if b.chance(0.15):
            b.v(a, c)
    for group in groups[1:]:
        if b.chance(0.4):
            b.r(group[0], 0, b.ohms())


def chains(b: Builder) -> None:
    """Chains fed by a source: tiny resistors between large ones, diodes inside."""
    while b.n < b.most:
        start, end = b.node(), b.node()
        at = start
        for _ in range(int(b.rng.integers(2, 7))):
            k = b.new()
            if k == at:
                break
            if b.chance(0.15):
                b.parts.append(("D", at, k, 0.0))
            else:
                b.r(at, k, b.spread(-12.0, -6.0) if b.chance(0.5) else b.spread(0.0, 6.0))
            at = k
        b.r(at, end, b.spread(0.0, 6.0))
        if b.chance(0.5):
            b.parts.append(("V", b.node(), 0, 5.0)) if not any(p[0] == "V" for p in b.parts) else None
        if b.chance(0.5):
            b.i(start, at, b.spread(-3.0, 2.0))
    b.extras(b.ohms, b.source, 0.3)


def cancelling(b: Builder) -> None:
    """Currents that go in and out again at the same nodes, or round a triangle, by two or three sources."""
    b.tree(b.ohms if b.chance(0.5) else b.integer)
    for _ in range(max(2, b.n // 2)):
        a, c, e = b.node(), b.node(), b.node()
        x = b.source() if b.chance(0.5) else b.integer()
        if b.chance(0.5):
            b.i(a, c, x)
            b.i(c, a, x)
        elif b.chance(0.5):
            b.i(a, c, x), b.i(c, e, x), b.i(e, a, x)
        else:
            b.i(a, c, 0.1 * x), b.i(a, c, 0.2 * x), b.i(c, a, 0.3 * x)
    b.extras(b.ohms if b.chance(0.5) else b.integer, lambda: b.spread(-6.0, 3.0), 0.7)


def bridges(b: Builder) -> None:
    """Bridges with a detector of little resistance in the middle, and shunts in front of loads."""
    while b.n + 3 < b.most or b.n < min(3, b.most):
        top, left, right, foot = b.node(), b.new(), b.new(), b.node()
        arm = b.spread(0.0, 6.0)
        ratio = float(b.rng.choice([1.0, 2.0, 1.0 + 1e-6, 1.0 + 1e-12]))
        b.r(top, left, arm), b.r(top, right, arm * ratio)
        b.r(left, foot, arm), b.r(right, foot, arm)
        b.r(left, right, b.spread(-12.0, 0.0)) if b.chance(0.7) else b.d(left, right)
        if b.n < b.most and b.chance(0.7):
            load = b.new()
            b.r(left, load, b.spread(-9.0, -2.0)), b.r(load, 0, b.spread(0.0, 7.0))
        if b.chance(0.6):
            b.i(foot, top, b.spread(-3.0, 3.0))
        elif top and not any(p[0] == "V" for p in b.parts):
            b.parts.append(("V", top, 0, b.spread(-3.0, 3.0)))
    b.tree(b.ohms)
    b.extras(b.ohms, b.source, 0.3)


def current_loops(b: Builder) -> None:
    """Rings with large currents; chains of ordinary resistors between them carry little."""
    last = 0
    while b.n < b.most:
        ring = sorted({b.new() for _ in range(int(b.rng.integers(2, 5)))})
        amperes = b.spread(2.0, 6.0)
        for a, c in zip(ring, ring[1:] + ring[:1]):
            if b.chance(0.2):
                b.parts.append(("D", a, c, 0.0))
            else:
                b.r(a, c, b.spread(-6.0, 1.0))
        if len(ring) > 1:
            b.i(ring[-1], ring[0], amperes)
        for _ in range(int(b.rng.integers(1, 3))):
            b.r(last, ring[int(b.rng.integers(len(ring)))], b.spread(0.0, 9.0) if b.chance(0.5) else 1.0)
        if b.chance(0.3):
            a, c = b.node(), b.node()
            b.parts += [("D", a, c, 0.0), ("D", a, c, 0.0)]
            b.i(c, a, b.spread(-9.0, -5.0))
        last = ring[int(b.rng.integers(len(ring)))]
    b.extras(b.ohms, lambda: b.spread(-6.0, 0.0), 0.3)


def anything(b: Builder) -> None:
    """Any element between any nodes; many of these have no steady state."""
    while b.n < b.most:
        b.new()
    for _ in range(int(b.rng.integers(b.n, 3 * b.n + 2))):
        a, c = b.node(), b.node()
        letter = "RRRRRRDDDDIVL0C"[int(b.rng.integers(15))]
        whole = b.chance(0.5)
        if letter == "R":
            b.r(a, c, b.integer() if whole else b.ohms())
        elif letter == "I":
            b.loaded(a, c, b.ohms(), b.integer() if whole else b.source())
        elif letter == "V":
            b.v(a, c) if b.chance(0.8) else b.parts.append(("V", a, c, b.source()))
        elif letter == "D":
            b.d(a, c)
        elif b.hidden[a] == b.hidden[c] or b.chance(0.1):
            b.parts.append(("R", a, c, 0.0) if letter == "0" else (letter, a, c, 1e-3))


BUILDERS: dict[Regime, Callable[[Builder], None]] = {
    Regime.SPREAD: spread,
    Regime.TIES: ties,
    Regime.DECIMALS: decimals,
    Regime.SHORTS: shorts,
    Regime.ISLANDS: islands,
    Regime.CHAINS: chains,
    Regime.CANCELLING: cancelling,
    Regime.BRIDGES: bridges,
    Regime.CURRENT_LOOPS: current_loops,
    Regime.ANYTHING: anything,
}


def draw(regime: Regime, seed: int, nodes: tuple[int, int] = SMALL) -> Sketch:
    """The circuit of a regime and a seed, with a number of nodes (ground included) in that range, ends included."""
    low, high = nodes
    rng = np.random.default_rng([list(Regime).index(regime), seed, low, high])
    most = int(rng.integers(low, min(high, len(NODES)) + 1))
    builder = Builder(rng, most, regime is Regime.DECIMALS)
    BUILDERS[regime](builder)
    return sketch_of(builder.parts or [("R", 0, 1, 1.0)])
