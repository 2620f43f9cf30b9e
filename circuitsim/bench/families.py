"""Families of benchmark circuits: deterministic, with a steady state, one generator ``(unknowns, seed) -> Circuit``.

In every circuit, resistors connect the unknowns to ground and separate diodes from voltage sources, so a unique steady
state exists whatever the random numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CURRENT, DIODE, RESISTOR, VOLTAGE
from circuitsim.errors import UsageError
from circuitsim.netlist import loads

DIODE_SHARE = 0.3
"""Fraction of the edges that carry a diode in parallel."""
LARGEST_CURRENT = 0.1
"""Bound of the random current sources, A."""
SHUNT = 0.05
"""Conductances from a chain's nodes to ground, S."""
GAIN = 1e5
"""Gain of the operational amplifiers."""


class Sheet:
    """A circuit under construction with its random generator; terminals are node numbers or arrays of them, 0 is
    ground."""

    def __init__(self, *seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.n_nodes = 1
        self._blocks: list[tuple[np.ndarray, ...]] = []

    def nodes(self, *shape: int) -> np.ndarray:
        """Add nodes; returns their numbers."""
        count = math.prod(shape)
        self.n_nodes += count
        return np.arange(self.n_nodes - count, self.n_nodes).reshape(shape)

    def add(self, kind: int, first: ArrayLike, second: ArrayLike, value: ArrayLike = np.nan) -> None:
        """Add elements of a kind: Ω, V, A, or ideal diodes."""
        columns = np.broadcast_arrays(np.int8(kind), first, second, np.asarray(value, dtype=float))
        self._blocks.append(tuple(column.ravel() for column in columns))

    def resistors(self, first: ArrayLike, second: ArrayLike, conductance: ArrayLike) -> None:
        """Add resistors of given conductances, S."""
        self.add(RESISTOR, first, second, 1.0 / np.asarray(conductance, dtype=float))

    def usual(self, count: int) -> np.ndarray:
        """Conductances e^{0.5 N(0, 1)} S."""
        return np.exp(0.5 * self.rng.standard_normal(count))

    def edges(self, first: np.ndarray, second: np.ndarray, conductance: np.ndarray) -> None:
        """Add resistors, a fraction `DIODE_SHARE` of them with a diode of random direction in parallel."""
        self.resistors(first, second, conductance)
        chosen = self.rng.permutation(first.size)[: round(DIODE_SHARE * first.size)]
        swap = self.rng.random(chosen.size) < 0.5
        a, b = first[chosen], second[chosen]
        self.add(DIODE, np.where(swap, b, a), np.where(swap, a, b))

    def currents(self, nodes: np.ndarray, count: int) -> None:
        """Add ``count`` sources (at least one) of at most `LARGEST_CURRENT` into distinct random nodes."""
        chosen = self.rng.permutation(nodes.size)[: max(1, count)]
        self.add(CURRENT, 0, nodes[chosen], self.rng.uniform(-LARGEST_CURRENT, LARGEST_CURRENT, chosen.size))

    def driven(self, inputs: np.ndarray, outputs: np.ndarray) -> None:
        """Connect 1 V through 1 S to each input, and 1 S from each output to ground."""
        rail = self.nodes(1)
        self.add(VOLTAGE, rail, 0, 1.0)
        self.resistors(rail, inputs, np.ones(inputs.size))
        self.resistors(outputs, 0, np.ones(outputs.size))

    def circuit(self, family: str, seed: int) -> Circuit:
        """The finished circuit."""
        kind, first, second, value = (np.concatenate(column) for column in zip(*self._blocks))
        title = f"{family}, {self.n_nodes - 1} unknowns, seed {seed}"
        return Circuit.from_arrays(kind, first, second, value, self.n_nodes, title)


def _neighbours(node: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """End nodes of the edges of a square mesh."""
    return tuple(
        np.concatenate([a.ravel(), b.ravel()]) for a, b in ((node[:, :-1], node[:-1]), (node[:, 1:], node[1:]))
    )  # type: ignore[return-value]


def _grid(unknowns: int, seed: int, wide: bool = False) -> Sheet:
    """1 V through 1 S on the left side, 1 S to ground on the right, one random current source to 20 nodes; ``wide``:
    conductances over twelve decades."""
    m = max(2, round(math.sqrt(unknowns)))
    sheet = Sheet(seed, m, wide)
    node = sheet.nodes(m, m)
    first, second = _neighbours(node)
    g = 10.0 ** sheet.rng.uniform(-9.0, 3.0, first.size) if wide else sheet.usual(first.size)
    sheet.edges(first, second, g)
    sheet.currents(node.ravel(), m * m // 20)
    sheet.driven(node[:, 0], node[:, -1])
    return sheet


def _random_graph(unknowns: int, seed: int, scale_free: bool = False) -> Sheet:
    """A graph of mean degree 4 with values as in the grid; √n random nodes are inputs, √n others outputs.

    The giant component of a random graph (other components would float), or a Barabási–Albert graph, where each new
    node joins two old ones, chosen by their degrees.
    """
    import networkx

    n = max(4, unknowns - 1)
    if scale_free:
        graph = networkx.barabasi_albert_graph(n, 2, seed)
    else:
        graph = networkx.gnm_random_graph(n, 2 * n, seed)
        graph = graph.subgraph(max(networkx.connected_components(graph), key=len))
    first, second = np.array(networkx.convert_node_labels_to_integers(graph).edges).T
    sheet, count = Sheet(seed, n, 2 + scale_free), len(graph)
    node = sheet.nodes(count)
    sheet.edges(node[first], node[second], sheet.usual(first.size))
    sheet.currents(node, count // 20)
    ends, side = node[sheet.rng.permutation(count)], max(1, math.isqrt(count))
    sheet.driven(ends[:side], ends[side : 2 * side])
    return sheet


def _ladder(unknowns: int, seed: int) -> Sheet:
    """A chain of resistors with a shunt at every node, and a source for ten nodes, without which potentials would
    decay."""
    n = max(3, unknowns - 1)
    sheet = Sheet(seed, n, 4)
    node = sheet.nodes(n)
    sheet.edges(node[:-1], node[1:], sheet.usual(n - 1))
    sheet.resistors(node, 0, SHUNT * sheet.usual(n))
    sheet.currents(node, n // 10)
    sheet.driven(node[:1], node[-1:])
    return sheet


def _bridges(unknowns: int, seed: int) -> Sheet:
    """Full-wave bridges: floating sources of random sign with 1 Ω, loads, and a resistor from each bridge to the
    next."""
    k = max(1, round(unknowns / 5))
    sheet = Sheet(seed, k, 5)
    a, b, source, plus, minus = sheet.nodes(5, k)
    sheet.add(VOLTAGE, source, b, sheet.rng.uniform(0.2, 1.0, k) * sheet.rng.choice([-1.0, 1.0], k))
    sheet.resistors(source, a, sheet.usual(k))
    for anode, cathode in ((a, plus), (b, plus), (minus, a), (minus, b)):
        sheet.add(DIODE, anode, cathode)
    sheet.resistors(plus, minus, sheet.usual(k))
    sheet.resistors(minus, 0, SHUNT * sheet.usual(k))
    sheet.resistors(plus[:-1], minus[1:], SHUNT * sheet.usual(k - 1))
    return sheet


def _selectors(unknowns: int, seed: int) -> Sheet:
    """Groups of four random voltages with 1 Ω in series; diodes select the largest or the smallest of each group."""
    k = max(1, round(unknowns / 9))
    sheet = Sheet(seed, k, 6)
    source, tap = sheet.nodes(2, 4 * k)
    out = sheet.nodes(k)
    sheet.add(VOLTAGE, source, 0, sheet.rng.uniform(-1.0, 1.0, 4 * k))
    sheet.resistors(source, tap, sheet.usual(4 * k))
    # Alternating groups: largest, whose output is pulled down, and smallest, pulled up.
    largest = np.arange(k) % 2 == 0
    to, group = np.repeat(out, 4), np.repeat(largest, 4)
    sheet.add(DIODE, np.where(group, tap, to), np.where(group, to, tap))
    sheet.resistors(out, 0, 0.1 * sheet.usual(k))
    sheet.add(CURRENT, 0, out, np.where(largest, -0.3, 0.3))
    sheet.resistors(out[:-1], out[1:], 0.01 * sheet.usual(k - 1))
    return sheet


def _crossbar(unknowns: int, seed: int, rectifying: bool = False) -> Sheet:
    """m×m cells of 10^U(−6, −4) S between row and column wires of 1 S a cell; rows driven by ±½ V at the left, columns
    grounded below; ``rectifying``: a diode in series with every cell, its middle node included."""
    m = max(2, round(math.sqrt(unknowns / (3 if rectifying else 2))))
    sheet, ones = Sheet(seed, m, 7), np.ones(m * (m - 1))
    row, column = sheet.nodes(2, m, m)
    rail = sheet.nodes(2)
    sheet.add(VOLTAGE, rail, 0, [0.5, -0.5])
    # Equal numbers of rows at + and −, so that some diodes of a small crossbar conduct for any seed.
    sheet.resistors(sheet.rng.permutation(rail[np.arange(m) % 2]), row[:, 0], np.ones(m))
    sheet.resistors(row[:, :-1].ravel(), row[:, 1:].ravel(), ones)
    sheet.resistors(column[:-1].ravel(), column[1:].ravel(), ones)
    sheet.resistors(column[-1], 0, np.ones(m))
    cell = 10.0 ** sheet.rng.uniform(-6.0, -4.0, m * m)
    far = sheet.nodes(m * m) if rectifying else column.ravel()
    sheet.resistors(row.ravel(), far, cell)
    if rectifying:
        sheet.add(DIODE, far, column.ravel())
    return sheet


def _drn(unknowns: int, seed: int) -> Circuit:
    """Deep resistive network after Scellier (2024, §3): half of each hidden layer held ≥ 0 V, half ≤ 0 V by diodes.

    Layers, of which the first has inputs and their negatives, have the proportions 4 : 3 : 3 : 2; the number of
    elements grows with the square of the unknowns.
    """
    from circuitsim.layered.network import Architecture, DeepResistiveNetwork

    sizes = [max(2, round(unknowns * share / 12)) for share in (2, 3, 3, 2)]
    rng = np.random.default_rng([seed, *sizes, 8])
    network = DeepResistiveNetwork(Architecture(tuple(sizes), 4.0), rng=rng)
    for name, values in network.parameters.items():
        if name.startswith("conductances"):
            values[0] = np.maximum(values[0], 0.01 / math.sqrt(len(values)))  # every node has a conductance
        else:
            values[:] = rng.uniform(-LARGEST_CURRENT, LARGEST_CURRENT, values.size)
    circuit = network.to_circuit(rng.uniform(0.0, 1.0, sizes[0]))
    circuit.title = f"drn, {len(circuit.node_names) - 1} unknowns, seed {seed}"
    return circuit


def junctions(m: int, share: float = DIODE_SHARE, seed: int = 0) -> Circuit:
    """A mesh of m×m nodes, 1 kΩ e^{0.5 N(0, 1)} an edge, a junction diode (IS 1e-14 A) of random direction beside a
    fraction of them; m V through 1 kΩ on the left side, 1 kΩ to ground on the right."""
    rng = np.random.default_rng([seed, m, 9])
    node = np.array([[f"n{i}_{j}" for j in range(m)] for i in range(m)])
    ends = np.stack(_neighbours(node), axis=1)
    ohms = 1e3 * np.exp(0.5 * rng.standard_normal(len(ends)))
    cards = [f"shockley-grid, {m * m + 1} unknowns, seed {seed}", f"V0 rail 0 {m}", ".model j D(IS=1e-14)"]
    cards += [f"RI{i} rail n{i}_0 1k\nRO{i} n{i}_{m - 1} 0 1k" for i in range(m)]
    cards += [f"R{k} {a} {b} {r!r}" for k, ((a, b), r) in enumerate(zip(ends.tolist(), ohms.tolist()))]
    for k, edge in enumerate(rng.permutation(ohms.size)[: round(share * ohms.size)].tolist()):
        anode, cathode = ends[edge][:: 1 if rng.random() < 0.5 else -1]
        cards.append(f"D{k} {anode} {cathode} j")
    return loads("\n".join(cards)).circuit


def chain(count: int) -> Circuit:
    """A cascade of inverting amplifiers of finite gain, each followed by a rectifier with load."""
    cards = [f"op-amp-stages, {3 * count + 1} unknowns", "V0 o0 0 1"]
    for k in range(1, count + 1):
        feedback = 1e3 * (1.0 + 0.1 * (k % 3 - 1))
        cards += [f"RA{k} o{k - 1} n{k} 1k", f"RB{k} n{k} o{k} {feedback!r}", f"E{k} o{k} 0 0 n{k} {GAIN!r}"]
        cards += [f"D{k} o{k} d{k}", f"RL{k} d{k} 0 10k"]
    return loads("\n".join(cards)).circuit


class Family(NamedTuple):
    """One family.

    Attributes
    ----------
    make : callable
        ``make(unknowns, seed)`` gives the circuit whose number of nodes besides ground is about ``unknowns``.
    linear : bool
        Whether it has no ideal diodes.
    convex_program : bool
        Whether it is a convex quadratic program that other solvers accept: no smooth devices, no controlled sources.
    """

    make: Callable[[int, int], Sheet | Circuit]
    linear: bool = False
    convex_program: bool = True


FAMILIES: dict[str, Family] = {
    "grid": Family(_grid),
    "grid-scaled": Family(partial(_grid, wide=True)),
    "erdos-renyi": Family(_random_graph),
    "scale-free": Family(partial(_random_graph, scale_free=True)),
    "ladder": Family(_ladder),
    "bridges": Family(_bridges),
    "selectors": Family(_selectors),
    "crossbar": Family(_crossbar, linear=True),
    "crossbar-1d1r": Family(partial(_crossbar, rectifying=True)),
    "drn": Family(_drn),
    "shockley-grid": Family(
        lambda unknowns, seed: junctions(max(2, round(math.sqrt(unknowns))), seed=seed),
        linear=True,
        convex_program=False,
    ),
    "op-amp-stages": Family(lambda unknowns, seed: chain(max(1, round(unknowns / 3))), convex_program=False),
}
"""All families by name, in the order of the report."""


def make(name: str, unknowns: int, seed: int) -> Circuit:
    """A deterministic circuit of a family.

    Parameters
    ----------
    name : str
        A name in `FAMILIES`.
    unknowns : int
        Approximate number of unknown voltages; at least 4.
    seed : int
        Seed of its random values.

    Examples
    --------
    >>> from circuitsim.families import make
    >>> make("grid", 100, 0)
    Circuit('grid, 101 unknowns, seed 0': 102 nodes, 260 elements: 200 R, 54 D, 1 V, 5 I)

    Raises
    ------
    UsageError
        No such family; fewer than four unknowns.
    """
    if name not in FAMILIES:
        raise UsageError(f"no family is called {name!r}; known: {', '.join(FAMILIES)}")
    if unknowns < 4:
        raise UsageError(f"a benchmark circuit has at least 4 unknowns, not {unknowns}")
    made = FAMILIES[name].make(unknowns, seed)
    return made.circuit(name, seed) if isinstance(made, Sheet) else made
