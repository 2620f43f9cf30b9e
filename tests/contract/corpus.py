"""Seeded random circuits of every kind, as decks: a function of family and seed alone, independent of the package.

`FAMILIES` names the families; ``FAMILIES[name].deck(seed)`` is the text of a deck, ``words(seed)`` what the analysis is
asked beside it. The checksum of each deck is frozen with its answer: a generator that draws another circuit is noticed.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

Random = np.random.Generator


def spread(rng: Random, low: float, high: float) -> float:
    """A value between 10^low and 10^high: two digits, few bits, or all of a double."""
    x = float(10.0 ** rng.uniform(low, high))
    kind = int(rng.integers(4))
    if kind == 0:
        return x
    return float(f"{x:.1e}") if kind == 1 else 2.0 ** round(np.log2(x)) * int(rng.choice([1, 1, 3, 5]))


def node(k: int) -> str:
    """The name of node k; 0 is ground."""
    return f"n{k}" if k else "0"


def pair(rng: Random, n: int) -> tuple[str, str]:
    """Two different nodes of n."""
    a, b = rng.choice(n, 2, replace=False)
    return node(int(a)), node(int(b))


# Laws of diodes, as the text behind ``.model NAME``.


def piecewise_model(rng: Random) -> str:
    """A drop, resistances, breakdown, leakage; or a table of points through the origin."""
    if rng.random() < 0.3:
        count = int(rng.integers(2, 8))
        v = np.cumsum(10.0 ** rng.uniform(-1, 1, count)) - rng.uniform(0.0, 10.0)
        i = np.cumsum(np.where(rng.random(count) < 0.3, 0.0, 10.0 ** rng.uniform(-9, 0, count)))
        i -= np.interp(0.0, v, i)
        return f"PWL({' '.join(f'{a:.6g} {b:.17g}' for a, b in zip(v, i))})"
    text = f"D(vfwd={rng.uniform(0.1, 2.0):.6g} ron={10.0 ** rng.uniform(-3, 2):.6g}"
    if rng.random() < 0.5:
        text += f" vrev={rng.uniform(1.0, 50.0):.6g} rrev={10.0 ** rng.uniform(-2, 2):.6g}"
    return text + (f" roff={10.0 ** rng.uniform(4, 9):.6g})" if rng.random() < 0.5 else ")")


def junction_model(rng: Random) -> str:
    """IS from 1e-18 to 1e-6 A, with and without breakdown and series resistance."""
    text = f"D(is={10.0 ** rng.uniform(-18, -6):.6g} n={rng.uniform(1.0, 2.0):.6g}"
    if rng.random() < 0.4:
        text += f" bv={10.0 ** rng.uniform(0.5, 2.0):.6g} ibv={10.0 ** rng.uniform(-6, -2):.6g}"
    return text + (f" rs={10.0 ** rng.uniform(-3, 1):.6g})" if rng.random() < 0.5 else ")")


def smooth_model(rng: Random) -> str:
    """A junction diode half of the time, else one of the other smooth or piecewise-linear laws."""
    kind = int(rng.integers(10))
    if kind < 5:
        return junction_model(rng)
    if kind == 5:
        volts, amperes = 10.0 ** rng.uniform(0, 1.7), 10.0 ** rng.uniform(-6, -1)
        return f"VARISTOR(vnom={volts:.6g} inom={amperes:.6g} alpha={rng.uniform(1.5, 30.0):.6g})"
    if kind == 6:
        siemens, volts = 10.0 ** rng.uniform(-9, -3), 10.0 ** rng.uniform(-1, 0)
        return f"SINH(g={siemens:.6g} v0={volts:.6g} rs={rng.choice([0.0, 10.0])})"
    if kind == 7:
        one, other, ohms = (10.0 ** rng.uniform(*x) for x in ((-6, 1), (-6, 1), (-2, 3)))
        return f"LIMITER(imax={one:.6g} irev={other:.6g} ron={ohms:.6g})"
    if kind == 8:
        volts, ohms, knee = rng.uniform(0.1, 2.0), 10.0 ** rng.uniform(-3, 2), 10.0 ** rng.uniform(-2, -0.3)
        return f"D(vfwd={volts:.6g} ron={ohms:.6g} epsilon={knee:.6g})"
    return piecewise_model(rng)


class Builder:
    """A deck in the making; nodes have hidden voltages that most sources and diodes agree with."""

    def __init__(self, rng: Random, most: int, decimals: bool = False) -> None:
        self.rng, self.most, self.decimals = rng, most, decimals
        self.hidden = [0.0]
        self.parts: list[tuple[str, int, int, float]] = []

    @property
    def n(self) -> int:
        """Nodes so far, ground included."""
        return len(self.hidden)

    def chance(self, p: float) -> bool:
        """True with probability p."""
        return bool(self.rng.random() < p)

    def any(self) -> int:
        """Any node."""
        return int(self.rng.integers(self.n))

    def new(self) -> int:
        """A new node, or an old one if there are enough."""
        if self.n == self.most:
            return self.any()
        self.hidden.append(float(self.rng.integers(-6, 7)) * (0.1 if self.decimals else 1.0))
        return self.n - 1

    def ohms(self) -> float:
        """A resistance over 18 decades."""
        return spread(self.rng, -9.0, 9.0)

    def source(self) -> float:
        """The value of a source over 12 decades, either sign."""
        return spread(self.rng, -6.0, 6.0) * (1 if self.chance(0.5) else -1)

    def integer(self) -> float:
        """1 … 4."""
        return float(self.rng.integers(1, 5))

    def put(self, letter: str, a: int, b: int, value: float = 0.0) -> None:
        """An element."""
        self.parts.append((letter, a, b, value))

    def v(self, a: int, b: int) -> None:
        """A voltage source that agrees with the hidden voltages; in decimals as people write them."""
        drop = self.hidden[a] - self.hidden[b]
        self.put("V", a, b, float(f"{drop:.6g}") if self.decimals else drop)

    def d(self, a: int, b: int) -> None:
        """A diode, mostly in the direction that the hidden voltages allow."""
        if self.hidden[a] > self.hidden[b] and self.chance(0.9):
            a, b = b, a
        if not (self.decimals and self.hidden[a] == self.hidden[b]):
            self.put("D", a, b)

    def loaded(self, a: int, b: int, ohms: float, amperes: float) -> None:
        """A resistor with a current source across it."""
        self.put("R", a, b, ohms)
        self.put("I", a, b, amperes)

    def tree(self, ohms: Callable[[], float], p_diode: float = 0.2) -> None:
        """The remaining nodes, each tied to an earlier one by a resistor, or a diode and a resistor to ground."""
        while self.n < self.most:
            a = self.any()
            b = self.new()
            if self.chance(p_diode):
                self.d(a, b)
                self.put("R", b, 0, ohms())
            else:
                self.put("R", a, b, ohms())

    def extras(self, ohms: Callable[[], float], amperes: Callable[[], float], share: float = 1.0) -> None:
        """Resistors, driven resistors, diodes and sources between any nodes."""
        for _ in range(int(self.rng.integers(1, 2 + int(share * self.n)))):
            a, b, kind = self.any(), self.any(), int(self.rng.integers(8))
            if kind < 2:
                self.put("R", a, b, ohms())
            elif kind < 4:
                self.loaded(a, b, ohms(), amperes())
            elif kind < 7:
                self.d(a, b)
            elif a and self.chance(0.7):
                self.put("I", 0, a, amperes())
            else:
                self.v(a, b)


def decades(b: Builder) -> None:
    """Everything over many decades; hidden voltages too."""
    b.tree(b.ohms)
    b.hidden = [0.0, *(b.source() for _ in range(b.n - 1))]
    b.extras(b.ohms, b.source, 1.5)


def ties(b: Builder) -> None:
    """Small integers: currents and drops that are exactly zero."""
    b.tree(b.integer, 0.3)
    b.extras(b.integer, lambda: float(b.rng.integers(-2, 3)), 2.0)


def decimals(b: Builder) -> None:
    """Loops of sources with decimal values, and rings of diodes between nodes without sources."""
    b.tree(lambda: spread(b.rng, -1.0, 4.0))
    for _ in range(max(2, b.n // 2)):
        b.v(b.any(), b.any())
    ring = [b.any() for _ in range(int(b.rng.integers(2, 5)))]
    if b.chance(0.5):
        ring = [k for k in ring if b.hidden[k] == b.hidden[ring[0]]]
        for k, j in zip(ring, ring[1:] + ring[:1]):
            b.put("D", k, j)
    b.extras(lambda: spread(b.rng, -1.0, 4.0), lambda: round(float(b.rng.normal()), 1), 0.7)


def shorts(b: Builder) -> None:
    """Zero-ohm resistors, inductors, and equal elements in parallel, over many decades."""
    b.tree(b.ohms)
    for _ in range(max(2, b.n // 2)):
        a = b.any()
        c = int(b.rng.choice([k for k in range(b.n) if b.hidden[k] == b.hidden[a]]))
        b.put("L", a, c, 1e-3) if b.chance(0.4) else b.put("R", a, c, 0.0)
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
            if b.n == b.most:
                break
            k = b.new()
            b.loaded(int(b.rng.choice(group)), k, b.ohms(), b.source() if b.chance(0.6) else b.integer())
            group.append(k)
        groups.append(group)
    for _ in range(len(groups) + int(b.rng.integers(3))):
        one, two = (groups[int(b.rng.integers(len(groups)))] for _ in range(2))
        a, c = int(b.rng.choice(one)), int(b.rng.choice(two))
        b.put("C", a, c, 1e-6) if b.chance(0.1) else b.put("D", a, c)
        if b.chance(0.15):
            b.v(a, c)
    for group in groups[1:]:
        if b.chance(0.4):
            b.put("R", group[0], 0, b.ohms())


def chains(b: Builder) -> None:
    """Chains: tiny resistors between large ones, diodes inside."""
    while b.n < b.most:
        start, end = b.any(), b.any()
        at = start
        for _ in range(int(b.rng.integers(2, 7))):
            k = b.new()
            if k == at:
                break
            if b.chance(0.15):
                b.put("D", at, k)
            else:
                b.put("R", at, k, spread(b.rng, -12.0, -6.0) if b.chance(0.5) else spread(b.rng, 0.0, 6.0))
            at = k
        b.put("R", at, end, spread(b.rng, 0.0, 6.0))
        if b.chance(0.5) and not any(part[0] == "V" for part in b.parts):
            b.put("V", b.any(), 0, 5.0)
        if b.chance(0.5):
            b.put("I", start, at, spread(b.rng, -3.0, 2.0))
    b.extras(b.ohms, b.source, 0.3)


def cancelling(b: Builder) -> None:
    """Currents that go in and out again at the same nodes, or round a triangle."""
    ohms = b.ohms if b.chance(0.5) else b.integer
    b.tree(ohms)
    for _ in range(max(2, b.n // 2)):
        a, c, e = b.any(), b.any(), b.any()
        x = b.source() if b.chance(0.5) else b.integer()
        if b.chance(0.5):
            b.put("I", a, c, x), b.put("I", c, a, x)
        elif b.chance(0.5):
            b.put("I", a, c, x), b.put("I", c, e, x), b.put("I", e, a, x)
        else:
            b.put("I", a, c, 0.1 * x), b.put("I", a, c, 0.2 * x), b.put("I", c, a, 0.3 * x)
    b.extras(ohms, lambda: spread(b.rng, -6.0, 3.0), 0.7)


def bridges(b: Builder) -> None:
    """Bridges with a detector of little resistance, and shunts in front of loads."""
    while b.n + 3 < b.most or b.n < min(3, b.most):
        top, left, right, foot = b.any(), b.new(), b.new(), b.any()
        arm, ratio = spread(b.rng, 0.0, 6.0), float(b.rng.choice([1.0, 2.0, 1.0 + 1e-6, 1.0 + 1e-12]))
        for end in (top, foot):
            b.put("R", end, left, arm), b.put("R", end, right, arm * ratio)
        b.put("R", left, right, spread(b.rng, -12.0, 0.0)) if b.chance(0.7) else b.d(left, right)
        if b.n < b.most and b.chance(0.7):
            load = b.new()
            b.put("R", left, load, spread(b.rng, -9.0, -2.0)), b.put("R", load, 0, spread(b.rng, 0.0, 7.0))
        if b.chance(0.6):
            b.put("I", foot, top, spread(b.rng, -3.0, 3.0))
        elif top and not any(part[0] == "V" for part in b.parts):
            b.put("V", top, 0, spread(b.rng, -3.0, 3.0))
    b.tree(b.ohms)
    b.extras(b.ohms, b.source, 0.3)


def rings(b: Builder) -> None:
    """Rings with large currents; resistors between them carry little."""
    last = 0
    while b.n < b.most:
        ring = sorted({b.new() for _ in range(int(b.rng.integers(2, 5)))})
        for a, c in zip(ring, ring[1:] + ring[:1]):
            b.put("D", a, c) if b.chance(0.2) else b.put("R", a, c, spread(b.rng, -6.0, 1.0))
        if len(ring) > 1:
            b.put("I", ring[-1], ring[0], spread(b.rng, 2.0, 6.0))
        for _ in range(int(b.rng.integers(1, 3))):
            b.put("R", last, int(b.rng.choice(ring)), spread(b.rng, 0.0, 9.0) if b.chance(0.5) else 1.0)
        if b.chance(0.3):
            a, c = b.any(), b.any()
            b.put("D", a, c), b.put("D", a, c), b.put("I", c, a, spread(b.rng, -9.0, -5.0))
        last = int(b.rng.choice(ring))
    b.extras(b.ohms, lambda: spread(b.rng, -6.0, 0.0), 0.3)


def anything(b: Builder) -> None:
    """Any element between any nodes; many of these have no operating point."""
    while b.n < b.most:
        b.new()
    for _ in range(int(b.rng.integers(b.n, 3 * b.n + 2))):
        a, c, letter = b.any(), b.any(), "RRRRRRDDDDIVL0C"[int(b.rng.integers(15))]
        whole = b.chance(0.5)
        if letter == "R":
            b.put("R", a, c, b.integer() if whole else b.ohms())
        elif letter == "I":
            b.loaded(a, c, b.ohms(), b.integer() if whole else b.source())
        elif letter == "V":
            b.v(a, c) if b.chance(0.8) else b.put("V", a, c, b.source())
        elif letter == "D":
            b.d(a, c)
        elif b.hidden[a] == b.hidden[c] or b.chance(0.1):
            b.put("R", a, c, 0.0) if letter == "0" else b.put(letter, a, c, 1e-3)


REGIMES = (decades, ties, decimals, shorts, islands, chains, cancelling, bridges, rings, anything)


def point(seed: int) -> str:
    """Ideal diodes, resistors and sources, each regime in turn. Of ten rounds three have piecewise-linear diodes, one
    has 21 to 60 nodes in place of 2 to 20."""
    which, turn = seed % 10, seed // 10 % 10
    rng = np.random.default_rng([1, seed])
    low, high = (21, 60) if turn == 9 else (2, 20)
    builder = Builder(rng, int(rng.integers(low, high + 1)), REGIMES[which] is decimals)
    REGIMES[which](builder)
    laws = [piecewise_model(rng) for _ in range(int(rng.integers(1, 4)))] if turn % 3 == 2 else []
    lines = [f"{REGIMES[which].__name__} {seed}"]
    for k, (letter, a, b, value) in enumerate(builder.parts or [("R", 0, 1, 1.0)]):
        law = f" p{rng.integers(len(laws))}" if laws and rng.random() < 0.6 else ""
        lines.append(f"{letter}{k} {node(a)} {node(b)}{law if letter == 'D' else f' {value!r}'}")
    return "\n".join([*lines, *(f".model p{k} {law}" for k, law in enumerate(laws)), ".end\n"])


OHMS, GAINS = (1e2, 1e3, 4.7e3, 1e4, 1e5), (-1e5, -10.0, -2.0, -0.5, 0.5, 1.0, 2.0, 10.0, 1e5)


def controlled(seed: int, law: Callable[[Random], str] | None = None) -> str:
    """One to five controlled sources or ideal amplifiers among resistors and diodes; odd seeds: diodes with laws."""
    rng = np.random.default_rng([2, seed])
    law = law or (piecewise_model if seed % 2 else None)
    n = int(rng.integers(3, 13))
    lines = [f"V1 n1 0 {rng.choice([-5.0, -1.0, 1.0, 2.0, 5.0])}"]
    lines += [f"R{k} n{k} {node(int(rng.integers(k)))} {rng.choice(OHMS)}" for k in range(2, n)]
    names = [line.split()[0] for line in lines]
    lines += [f"RX{k} {' '.join(pair(rng, n))} {rng.choice(OHMS)}" for k in range(int(rng.integers(0, n)))]
    models = []
    for k in range(int(rng.integers(0, 7))):
        own = law is not None and rng.random() < 0.8
        lines.append(f"D{k} {' '.join(pair(rng, n))}{f' m{len(models)}' if own else ''}")
        if own and law:
            models.append(f".model m{len(models)} {law(rng)}")
    if rng.random() < 0.5:
        lines.append(f"I1 {' '.join(pair(rng, n))} {rng.choice([-1e-3, 1e-3, 2e-3])}")
    held = [f"n{k}" for k in rng.permutation(np.arange(2, n))]
    for k in range(int(rng.integers(1, 6))):
        choice, gain = rng.random(), float(rng.choice(GAINS))
        one, two, sensed = " ".join(pair(rng, n)), " ".join(pair(rng, n)), names[int(rng.integers(len(names)))]
        # Each voltage-like output ties a node of its own to ground: no loops of voltage sources. A current that is
        # sensed in a resistor passes a source of 0 V beside it.
        if choice < 0.4 and held:
            lines.append(f"E{k} {held.pop()} 0 {two} {gain}")
        elif choice < 0.5 and held:
            lines.append(f"E{k} {held.pop()} 0 OPAMP {two}")
        elif choice >= 0.8 or (choice >= 0.5 and choice < 0.6 and held):
            at = next(i for i, line in enumerate(lines) if line.split()[0] == sensed)
            if sensed[0] == "R":
                name, a, b, ohms = lines[at].split()
                lines[at] = f"{name} {a} {name}x {ohms}"
                lines.append(f"V{name} {name}x {b} 0")
                names[names.index(sensed)] = sensed = f"V{name}"
            lines.append(
                f"H{k} {held.pop()} 0 {sensed} {gain * 1e2}" if choice < 0.6 else f"F{k} {one} {sensed} {gain}"
            )
        else:
            lines.append(f"G{k} {one} {two} {rng.choice([-1e-2, -1e-3, 1e-4, 1e-3])}")
    return "\n".join([f"controlled {seed}", *lines, *models, ".end\n"])


def smooth(seed: int) -> str:
    """Devices of all laws among resistors and sources, each node with a path to ground; of four seeds one has
    controlled sources instead."""
    if seed % 4 == 3:
        return controlled(1_000_000 + seed, smooth_model)
    rng = np.random.default_rng([3, seed])
    n = int(np.exp(rng.uniform(np.log(2), np.log(40))))
    low, high = sorted(rng.uniform(-2.0, 8.0, 2))
    lines, models = [f"devices {seed}"], []
    edges = [(node(k), node(int(rng.integers(k)))) for k in range(1, n)]
    edges += [pair(rng, n) for _ in range(int(rng.integers(0, 2 * n)))]
    lines += [f"R{k} {a} {b} {10.0 ** rng.uniform(low, high)!r}" for k, (a, b) in enumerate(edges)]
    for k in range(max(1, int(rng.integers(1, n + 1)))):
        volts = float(rng.choice([-1.0, 1.0])) * 10.0 ** rng.uniform(-2.0, 2.0)
        at, ohms = node(int(rng.integers(1, n))), 10.0 ** rng.uniform(low, high)
        voltage = rng.random() < 0.5
        lines += (
            [f"V{k} s{k} 0 {volts!r}", f"RV{k} s{k} {at} {ohms!r}"] if voltage else [f"I{k} 0 {at} {volts / ohms!r}"]
        )
    for k in range(int(rng.integers(1, 2 * n + 1))):
        own = rng.random() >= 0.1
        lines.append(f"D{k} {' '.join(pair(rng, n))}{f' m{k}' if own else ''}")
        if own:
            models.append(f".model m{k} {smooth_model(rng)}")
    return "\n".join([*lines, *models, ".end\n"])


def size(rng: Random) -> float:
    """A value between 0.1 and 10, often 1."""
    return float(rng.choice([1.0, 1.0, round(10.0 ** rng.uniform(-1.0, 1.0), 2)]))


def initial(rng: Random, largest: float) -> str:
    """The state at time 0."""
    return f"ic={rng.choice([0.0, round(rng.uniform(-largest, largest), 2)])}"


def waveform(seed: int, part: int, switches: bool, windings: bool, junctions: bool) -> str:
    """3 to 7 nodes of resistors, capacitors, inductors, diodes and sources over time, time constants around 1 s."""
    rng = np.random.default_rng([part, seed])
    n, lines, models = int(rng.integers(3, 8)), list[str](), list[str]()
    lines += [f"R{k} n{k} {node(int(rng.integers(k)))} {size(rng)}" for k in range(1, n)]
    for k in range(int(rng.integers(2, 7))):
        lines.append(f"D{k} {' '.join(pair(rng, n))}{f' d{k}' if junctions else ''}")
        models += [f".model d{k} {junction_model(rng)}"] if junctions else []
    capacitors = [pair(rng, n) for _ in range(int(rng.integers(1, 4)))]
    lines += [f"C{k} {a} {b} {size(rng)} {initial(rng, 3.0)}" for k, (a, b) in enumerate(capacitors)]
    lines += [f"L{k} {' '.join(pair(rng, n))} {size(rng)} {initial(rng, 1.0)}" for k in range(int(rng.integers(0, 3)))]
    for k in range(int(rng.integers(1, 3))):
        (a, b), kind = pair(rng, n), int(rng.integers(3))
        if kind == 0:
            wave = f"SIN(0 {rng.uniform(1.0, 10.0)} {rng.uniform(0.1, 1.0)} 0 0 {rng.choice([0, 90])})"
        elif kind == 1:
            wave = f"PULSE(-2 5 0.3 {rng.choice([0.001, 0.2])} {rng.choice([0.001, 0.2])} 0.5 1.7)"
        else:
            wave = "PWL(0 0 1 4 2 -4 3 1)"
        lines += [f"V{k} s{k} {a} {wave}", f"Rs{k} s{k} {b} {size(rng)}"]
    for k in range(int(rng.integers(1, 3)) if switches else 0):
        ends = " ".join(pair(rng, n))
        law = f"RON={rng.choice([0.01, 0.1, 1.0])} ROFF={rng.choice([100.0, 1e4, 1e6])}"
        if rng.random() < 0.5:
            lines.append(f"Vc{k} c{k} 0 SIN(0 1 {rng.uniform(0.5, 3.0)} 0 0 {rng.uniform(0.0, 360.0)})")
            lines += [f"Rc{k} c{k} 0 1", f"S{k} {ends} c{k} 0 w{k}"]
            models.append(f".model w{k} SW(VT={rng.uniform(-0.5, 0.5)} VH={rng.choice([0.0, 0.1])} {law})")
        else:
            lines.append(f"S{k} {ends} {' '.join(capacitors[0])} w{k}")
            models.append(f".model w{k} SW(VT={rng.uniform(-1.0, 1.0)} VH={rng.uniform(0.1, 0.5)} {law})")
    coils = [f"W{k}" for k in range(int(rng.integers(2, 5)) if windings else 0)]
    for coil in coils:
        a, b = pair(rng, n)
        if rng.random() < 0.5:
            lines.append(f"R{coil} {coil}a {node(int(rng.integers(n)))} {size(rng)}")
            a = f"{coil}a"
        lines.append(f"L{coil} {a} {b} {rng.choice([1.0, 1.0, 4.0, 0.25])} {initial(rng, 1.0)}")
        if rng.random() < 0.5:
            lines.append(f"D{coil} {a} {b}")
    factor = rng.choice([1.0, 1.0, 0.9])
    pairs = [(a, b) for k, a in enumerate(coils) for b in coils[k + 1 :]]
    lines += [f"K{a}{b} L{a} L{b} {factor}" for a, b in pairs]
    return "\n".join([f"waveforms {seed}", *lines, *models, ".tran 0.05 2 uic", ".end\n"])


def exact(seed: int) -> str:
    """The exact method: half with switches, a quarter with coupled windings too."""
    return waveform(seed, 4, switches=seed % 4 >= 2, windings=seed % 4 == 3, junctions=False)


def implicit(seed: int) -> str:
    """The implicit method: half with junction diodes, half with switches."""
    return waveform(seed, 5, switches=seed % 2 == 1, windings=False, junctions=seed % 4 >= 2)


def frequencies(seed: int) -> str:
    """Resistors, capacitors, inductors over decades; E and G, couplings, and junction diodes in a part of them."""
    rng = np.random.default_rng([6, seed])
    n = int(rng.integers(2, 11))
    lines = ["V1 n1 0 1 AC 1", f"I1 0 n{n} AC 1m 45"]
    lines += [f"R{k} n{k} {node(int(rng.integers(k)))} {10 ** rng.uniform(0, 4)}" for k in range(1, n + 1)]
    exponents = {"R": (0, 4), "C": (-9, -6), "L": (-6, -3), "E": (-1, 1), "G": (-5, -3)}
    letters, coils = "RRCCL" + ("EG" if seed % 2 else ""), list[str]()
    for k in range(2 * n):
        letter, (a, b) = letters[int(rng.integers(len(letters)))], pair(rng, n + 1)
        value, name = 10 ** rng.uniform(*exponents[letter]), f"{letter}{k}x"
        if letter == "E":  # a node of its own behind a resistor: sources never form loops
            lines.append(f"Re{k} {a} e{k} {10 ** rng.uniform(1, 3)}")
            a = f"e{k}"
        coils += [name] if letter == "L" else []
        lines.append(f"{name} {a} {b} {' '.join(pair(rng, n + 1)) + ' ' if letter in 'EG' else ''}{value}")
    if seed % 4 >= 2:
        flux = rng.normal(size=(len(coils), 1 + len(coils)))
        flux /= np.linalg.norm(flux, axis=1)[:, None]
        factors = np.abs(flux @ flux.T)
        lines += [f"K{i}_{j} {coils[i]} {coils[j]} {factors[i, j]}" for i in range(len(coils)) for j in range(i)]
    if seed % 5 == 0:
        a, b = pair(rng, n + 1)
        lines += [f"D1 {a} d1 d", f"Rd d1 {b} 100", ".model d D(is=1e-12 n=1.5)"]
    return "\n".join([f"frequencies {seed}", *lines, ".ac dec 3 10 1meg", ".end\n"])


def tolerances(seed: int) -> str:
    """3 to 8 nodes of resistors, sources and, half of the time, diodes."""
    rng = np.random.default_rng([7, seed])
    n = int(rng.integers(3, 9))
    lines = [f"R{k} {k} {rng.integers(k)} {10.0 ** rng.uniform(2, 4)}" for k in range(1, n)]
    for k in range(n, n + int(rng.integers(0, n))):
        a, b = rng.choice(n, 2, replace=False)
        lines.append(f"R{k} {a} {b} {10.0 ** rng.uniform(2, 4)}")
    lines += [f"V1 s 0 {rng.uniform(1.0, 10.0)}", f"RS s {rng.integers(1, n)} {10.0 ** rng.uniform(2, 4)}"]
    lines.append(f"I1 0 {rng.integers(1, n)} {rng.uniform(-0.01, 0.01)}")
    for k in range(int(rng.integers(1, n)) if seed // 2 % 2 else 0):
        a, b = rng.choice(n, 2, replace=False)
        lines.append(f"D{k} {a} {b}")
    return "\n".join([f"tolerances {seed}", *lines, ".end\n"])


def tolerance_words(seed: int) -> list[str]:
    """Tolerances of 1 to 50 % of up to six elements; an even seed is a Monte Carlo run, an odd one a worst case."""
    rng = np.random.default_rng([8, seed])
    names = [line.split()[0] for line in tolerances(seed).split("\n")[1:] if line[:1] in "RVI" and line]
    chosen = rng.choice(names, min(1 + seed // 2 % 6, len(names)), replace=False)
    words = [word for name in chosen for word in ("--tol", f"{name}={rng.choice([1, 5, 20, 50])}%")]
    words += ["--tol", "R*=10%,lot"] if rng.random() < 0.25 else []
    return [*words, "--observe", "v(1) v(2,1) i(RS)", *(["--budget", "100"] if seed % 2 else ["--samples", "200"])]


class Family(NamedTuple):
    """Number of circuits, deck of a seed, analysis of a seed with its words, distance of the seeds in the suite."""

    count: int
    deck: Callable[[int], str]
    analysis: Callable[[int], tuple[str, list[str]]]
    stride: int


FAMILIES = {
    "points": Family(20_000, point, lambda _: ("solve", []), 67),
    "controlled": Family(2_000, controlled, lambda _: ("solve", []), 29),
    "smooth": Family(2_000, smooth, lambda _: ("solve", []), 37),
    "exact": Family(1_000, exact, lambda _: ("tran", []), 53),
    "implicit": Family(1_000, implicit, lambda _: ("tran", ["--method", "implicit"]), 97),
    "ac": Family(500, frequencies, lambda _: ("ac", ["--columns", "v(*) i(*)"]), 29),
    "tolerance": Family(
        200, tolerances, lambda seed: ("worst-case" if seed % 2 else "montecarlo", tolerance_words(seed)), 19
    ),
}
