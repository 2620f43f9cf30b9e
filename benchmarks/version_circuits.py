"""Circuits for `versions.py`, as netlist text: the families of ``circuitsim bench``, made here from a seed alone.

Nothing of circuitsim is imported, so that two versions whose modules differ get the same characters.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class Cards(NamedTuple):
    """A circuit as netlist text.

    Attributes
    ----------
    text : str
    value : (m,) float array
        Ω, V, A in the order of the cards; 0 for diodes.
    source : (m,) bool array
        Voltage and current sources.
    names : list of str
        Names of the elements.
    """

    text: str
    value: np.ndarray
    source: np.ndarray
    names: list[str]


class Sheet:
    """Cards under construction; nodes are numbers, 0 is ground."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng, self.count = rng, 1
        self._letter: list[str] = []
        self._columns: list[tuple[np.ndarray, ...]] = []

    def nodes(self, count: int) -> np.ndarray:
        """Numbers of new nodes."""
        self.count += count
        return np.arange(self.count - count, self.count)

    def add(self, letter: str, first: object, second: object, value: object = 0.0) -> None:
        """Elements of a letter; values in Ω, V, A."""
        row = np.broadcast_arrays(np.atleast_1d(first), np.atleast_1d(second), np.asarray(value, dtype=float))
        self._columns.append(tuple(row))
        self._letter += [letter] * row[0].size

    def resistors(self, first: object, second: object, conductance: object) -> None:
        """Resistors of conductances, S."""
        self.add("R", first, second, 1.0 / np.asarray(conductance, dtype=float))

    def usual(self, count: int) -> np.ndarray:
        """Conductances e^{0.5 N(0, 1)} S."""
        return np.exp(0.5 * self.rng.standard_normal(count))

    def edges(self, first: np.ndarray, second: np.ndarray, conductance: np.ndarray) -> None:
        """Resistive edges; 30 % carry a diode of random direction in parallel."""
        self.resistors(first, second, conductance)
        chosen = self.rng.permutation(first.size)[: round(0.3 * first.size)]
        swap = self.rng.random(chosen.size) < 0.5
        a, b = first[chosen], second[chosen]
        self.add("D", np.where(swap, b, a), np.where(swap, a, b))

    def fed(self, nodes: np.ndarray, count: int) -> None:
        """Current sources of at most 0.1 A into random nodes."""
        chosen = self.rng.permutation(nodes.size)[: max(1, count)]
        self.add("I", 0, nodes[chosen], self.rng.uniform(-0.1, 0.1, chosen.size))

    def driven(self, inputs: np.ndarray, outputs: np.ndarray) -> None:
        """1 V through 1 S each; loads of 1 S."""
        rail = self.nodes(1)
        self.add("V", rail, 0, 1.0)
        self.resistors(rail, inputs, np.ones(inputs.size))
        self.resistors(outputs, 0, np.ones(outputs.size))

    def cards(self) -> Cards:
        """The finished text."""
        first, second, value = (np.concatenate(column) for column in zip(*self._columns))
        names = [f"{letter}{k}" for k, letter in enumerate(self._letter)]
        rows = [
            f"{name} {a} {b}" if name[0] == "D" else f"{name} {a} {b} {v!r}"
            for name, a, b, v in zip(names, first.tolist(), second.tolist(), value.tolist())
        ]
        source = np.isin(np.array(self._letter), ("V", "I"))
        return Cards("\n".join(["circuit of benchmarks/versions.py", *rows, ".op", ".end", ""]), value, source, names)


def mesh(sheet: Sheet, unknowns: int, decades: bool = False) -> None:
    """A square mesh driven from the left; with ``decades`` its conductances are 10^U(−9, 3) S."""
    m = max(2, round(math.sqrt(unknowns)))
    node = sheet.nodes(m * m).reshape(m, m)
    first = np.concatenate([node[:, :-1].ravel(), node[:-1].ravel()])
    second = np.concatenate([node[:, 1:].ravel(), node[1:].ravel()])
    g = 10.0 ** sheet.rng.uniform(-9.0, 3.0, first.size) if decades else sheet.usual(first.size)
    sheet.edges(first, second, g)
    sheet.fed(node.ravel(), m * m // 20)
    sheet.driven(node[:, 0], node[:, -1])


def ladder(sheet: Sheet, unknowns: int) -> None:
    """A chain of resistors with a shunt at every node."""
    n = max(3, unknowns - 1)
    node = sheet.nodes(n)
    sheet.edges(node[:-1], node[1:], sheet.usual(n - 1))
    sheet.resistors(node, 0, 0.05 * sheet.usual(n))
    sheet.fed(node, n // 10)
    sheet.driven(node[:1], node[-1:])


def bridges(sheet: Sheet, unknowns: int) -> None:
    """Full-wave bridges with loads, coupled by resistors."""
    k = max(1, round(unknowns / 5))
    a, b, source, plus, minus = sheet.nodes(5 * k).reshape(5, k)
    sheet.add("V", source, b, sheet.rng.uniform(0.2, 1.0, k) * sheet.rng.choice([-1.0, 1.0], k))
    sheet.resistors(source, a, sheet.usual(k))
    for anode, cathode in ((a, plus), (b, plus), (minus, a), (minus, b)):
        sheet.add("D", anode, cathode)
    sheet.resistors(plus, minus, sheet.usual(k))
    sheet.resistors(minus, 0, 0.05 * sheet.usual(k))
    sheet.resistors(plus[:-1], minus[1:], 0.05 * sheet.usual(k - 1))


def selectors(sheet: Sheet, unknowns: int) -> None:
    """Largest and smallest of four voltages in turn, coupled by resistors."""
    k = max(1, round(unknowns / 9))
    source, tap = sheet.nodes(8 * k).reshape(2, 4 * k)
    out = sheet.nodes(k)
    sheet.add("V", source, 0, sheet.rng.uniform(-1.0, 1.0, 4 * k))
    sheet.resistors(source, tap, sheet.usual(4 * k))
    largest = np.arange(k) % 2 == 0
    to, group = np.repeat(out, 4), np.repeat(largest, 4)
    sheet.add("D", np.where(group, tap, to), np.where(group, to, tap))
    sheet.resistors(out, 0, 0.1 * sheet.usual(k))
    sheet.add("I", 0, out, np.where(largest, -0.3, 0.3))
    sheet.resistors(out[:-1], out[1:], 0.01 * sheet.usual(k - 1))


def random_graph(sheet: Sheet, unknowns: int) -> None:
    """Mean degree 4: a random tree, so that it is connected, and n other random edges."""
    n = max(4, unknowns - 1)
    node = sheet.nodes(n)
    parent = (sheet.rng.random(n - 1) * np.arange(1, n)).astype(int)
    a, b = sheet.rng.integers(0, n, (2, n))
    first, second = np.concatenate([parent, a[a != b]]), np.concatenate([np.arange(1, n), b[a != b]])
    _graph(sheet, node, first, second)


def scale_free(sheet: Sheet, unknowns: int) -> None:
    """Each new node joins two old ends of edges, so that nodes with many edges get more."""
    n = max(4, unknowns - 1)
    node = sheet.nodes(n)
    ends, pairs = [0, 1], [(0, 1)]
    for new in range(2, n):
        old = {ends[int(draw * len(ends))] for draw in sheet.rng.random(2)}
        pairs += [(other, new) for other in sorted(old)]
        ends += [end for other in sorted(old) for end in (other, new)]
    first, second = np.array(pairs).T
    _graph(sheet, node, first, second)


def _graph(sheet: Sheet, node: np.ndarray, first: np.ndarray, second: np.ndarray) -> None:
    sheet.edges(node[first], node[second], sheet.usual(first.size))
    sheet.fed(node, node.size // 20)
    ends, side = node[sheet.rng.permutation(node.size)], max(1, math.isqrt(node.size))
    sheet.driven(ends[:side], ends[side : 2 * side])


def crossbar(sheet: Sheet, unknowns: int, rectifying: bool = False) -> None:
    """m×m cells of 10^U(−6, −4) S between wires; with ``rectifying`` a diode in series with each."""
    m = max(2, round(math.sqrt(unknowns / (3 if rectifying else 2))))
    row, column = sheet.nodes(2 * m * m).reshape(2, m, m)
    rail = sheet.nodes(2)
    sheet.add("V", rail, 0, [0.5, -0.5])
    sheet.resistors(sheet.rng.permutation(rail[np.arange(m) % 2]), row[:, 0], np.ones(m))
    sheet.resistors(row[:, :-1].ravel(), row[:, 1:].ravel(), np.ones(m * (m - 1)))
    sheet.resistors(column[:-1].ravel(), column[1:].ravel(), np.ones(m * (m - 1)))
    sheet.resistors(column[-1], 0, np.ones(m))
    cell = 10.0 ** sheet.rng.uniform(-6.0, -4.0, m * m)
    far = sheet.nodes(m * m) if rectifying else column.ravel()
    sheet.resistors(row.ravel(), far, cell)
    if rectifying:
        sheet.add("D", far, column.ravel())


def layers(sheet: Sheet, unknowns: int) -> None:
    """A layered network: doubled inputs, two hidden layers held by diodes to ground, outputs."""
    sizes = [2 * max(1, round(unknowns / 6)), *(max(1, round(unknowns * share / 12)) for share in (3, 3, 2))]
    half = sheet.rng.uniform(0.0, 1.0, sizes[0] // 2)
    before = sheet.nodes(sizes[0])
    sheet.add("V", before, 0, 4.0 * np.concatenate([half, -half]))
    for depth, size in enumerate(sizes[1:], start=1):
        layer, c = sheet.nodes(size), 1.0 / math.sqrt(before.size)
        g = np.maximum(0.0, sheet.rng.uniform(-c, c, (before.size, size)))
        g[0] = np.maximum(g[0], 0.01 * c)
        a, b = np.nonzero(g)
        sheet.resistors(before[a], layer[b], g[a, b])
        if depth < 3:
            sheet.add("D", 0, layer[: size // 2])
            sheet.add("D", layer[size // 2 :], 0)
            sheet.add("I", 0, layer, sheet.rng.uniform(-0.1, 0.1, size))
        else:
            sheet.resistors(layer, 0, np.full(size, c))
        before = layer


FAMILIES: dict[str, tuple[Callable[[Sheet, int], None], int]] = {
    "grid": (mesh, 10_000),
    "grid-scaled": (lambda sheet, n: mesh(sheet, n, decades=True), 10_000),
    "random-graph": (random_graph, 1_000),
    "scale-free": (scale_free, 10_000),
    "ladder": (ladder, 10_000),
    "bridges": (bridges, 10_000),
    "selectors": (selectors, 10_000),
    "crossbar": (crossbar, 10_000),
    "crossbar-1d1r": (lambda sheet, n: crossbar(sheet, n, rectifying=True), 10_000),
    "drn": (layers, 1_000),
}
"""Family → generator, and the most unknowns that take seconds, not minutes."""


def make(family: str, unknowns: int, seed: int = 0) -> Cards:
    """A circuit of a family; the same arguments give the same text."""
    sheet = Sheet(np.random.default_rng([seed, unknowns, list(FAMILIES).index(family)]))
    FAMILIES[family][0](sheet, unknowns)
    return sheet.cards()
