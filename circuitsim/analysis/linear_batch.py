"""Samples that share one linear circuit: one factor, right-hand sides and certificates eight side by side."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from circuitsim.analysis.port_network import PortNetwork, independent_sources
from circuitsim.circuit import CircuitArrays
from circuitsim.circuit.elements import CURRENT, DIODE, RESISTOR, VOLTAGE
from circuitsim.engine.network import Wiring
from circuitsim.engine.small.along_tree import CHORD, NODE, POTENTIALS, Memory, Paths
from circuitsim.engine.small.currents import ACCURATE
from circuitsim.engine.small.kernels import small_kernel
from circuitsim.engine.small.lanes import WIDTH
from circuitsim.engine.small.workspace import Walk
from circuitsim.program.components import component_labels
from circuitsim.solvers.linear import Factored

CORRECTIONS = 3
"""Most corrections of the chords' currents by the factor; each gains some ten digits."""

KERNELS = ("prove_samples", "inject_residuals", "write_samples")
NO_PAIRS = np.zeros((0, 2), dtype=np.int64)


class Samples(NamedTuple):
    """Where results go, one row a sample.

    Attributes
    ----------
    v : (samples, n_nodes) float array
        Node potentials, V.
    current : (samples, m) float array
        Branch currents, A; entries of diodes that block stay as they are.
    worst : (samples, 7) float array
        Violations in the order of `circuitsim.certificate.EQUATIONS`.
    relative : (samples, 8) float array
        The same against their scales; the bound on the errors of the currents last.
    """

    v: np.ndarray
    current: np.ndarray
    worst: np.ndarray
    relative: np.ndarray


@dataclass(frozen=True, eq=False)
class LinearBatch:
    """A circuit with conducting diodes as shorts, factored, with its spanning tree.

    Attributes
    ----------
    network : PortNetwork
        Its ports are its sources.
    paths : Paths
        Its spanning tree.
    last : (n + 1,) int array
        For each super-node the one whose potential stands for those that diodes join it to.
    """

    network: PortNetwork
    paths: Paths
    last: np.ndarray

    def solve(self, drive: np.ndarray, into: Samples, threads: int = 1, aim: float = ACCURATE) -> None:
        """Fill in samples.

        Parameters
        ----------
        drive : (sources, c) float array
            Source values, V, A, in the order of ``network.sources``.
        into : Samples
            Of c rows.
        threads : int
            Most threads.
        aim : float
            Bound on the errors of the currents up to which they need no correction.
        """
        count = drive.shape[1]
        groups = -(-count // WIDTH)
        parts = max(1, min(threads, groups))
        ends = [groups * k // parts for k in range(parts + 1)]
        assert self.network.factored is not None  # made once, before threads share it

        def part(begin: int, end: int) -> None:
            memory = self._memory()
            for k in range(begin, end):
                self._group(memory, drive, into, k * WIDTH, min((k + 1) * WIDTH, count), aim)

        if parts == 1:
            part(0, groups)
            return
        with ThreadPoolExecutor(parts) as pool:
            list(pool.map(part, ends[:-1], ends[1:]))

    def _memory(self) -> Memory:
        n, chords = self.paths.node.size, self.paths.chord.size
        return Memory(np.empty(n * NODE * WIDTH), np.empty(n * POTENTIALS * WIDTH), np.empty(chords * CHORD * WIDTH))

    def _group(self, memory: Memory, drive: np.ndarray, into: Samples, begin: int, end: int, aim: float) -> None:
        """At most eight samples; a short group is filled up with zeros."""
        count, size = end - begin, self.paths.node.size * WIDTH
        full = np.zeros((drive.shape[0], WIDTH))
        full[:, :count] = drive[:, begin:end]
        response = self.network.respond(full)
        x, offset, given = response.x, np.ascontiguousarray(response.offset).ravel(), full.ravel()
        prove, inject, write = (small_kernel(name, size) for name in KERNELS)
        worst, relative, injected = np.empty((7, WIDTH)), np.empty((8, WIDTH)), np.empty(x.size)
        node, coordinate = self.paths.node, self.network.structure.coordinate
        x_row, offset_row = self.last[coordinate[node]], self.network.row[node]
        for corrections in range(CORRECTIONS + 1):
            flat = np.ascontiguousarray(x).ravel()
            prove(self.paths, memory, flat, offset, x_row, offset_row, given, corrections > 0, worst, relative)
            good = (relative[:7, :count] <= ACCURATE).all() and (relative[7, :count] <= aim).all()
            if good or corrections == CORRECTIONS:
                break
            inject(self.paths, memory, x_row, injected)
            x = self.network.factored.solve(injected.reshape(-1, WIDTH)[:-1])
        write(self.paths, memory, given, begin, end, into.v, into.current)
        into.worst[begin:end], into.relative[begin:end] = worst.T[:count], relative.T[:count]


def linear_batch(
    wiring: Wiring, arrays: CircuitArrays, closed: np.ndarray, signed: bool, before: Factored | None = None
) -> LinearBatch | None:
    """A circuit with some diodes as shorts and all others absent, factored.

    None where it has loops of fixed voltages, or parts that no path leads to ground from.

    Parameters
    ----------
    wiring : Wiring
        Of the topology.
    arrays : CircuitArrays
        At any values.
    closed : int array
        Diodes that conduct.
    signed : bool
        Whether the certificate covers the diodes: positive currents of those, negative voltages of all others.
    before : Factored, optional
        The nodal matrix with other conducting diodes, which is used up.
    """
    kind, first, second, _, n_nodes = arrays
    structure = wiring.structure
    loops = structure.forest.closing.size or structure.references.size or (wiring.branch[closed] < 0).any()
    if loops or not structure.resistors.size or ((kind == CURRENT) & (first == second)).any():
        return None
    fixed = np.concatenate([structure.voltage_edges, closed])
    walk, joined = small_kernel("spanning_tree", n_nodes)(*map(np.array, arrays[:4]), fixed, n_nodes)
    if not joined or (signed and not np.isin(closed, walk[1]).all()):  # currents in loops of diodes are not unique
        return None
    sources = independent_sources(arrays)
    network = PortNetwork(wiring, arrays, sources, NO_PAIRS, closed, before)
    blocked = np.setdiff1d(structure.diodes, closed) if signed else closed[:0]
    paths = _paths(arrays, Walk(*walk), sources, blocked, signed)
    return LinearBatch(network, paths, _representative(wiring, network, closed))


def _representative(wiring: Wiring, network: PortNetwork, closed: np.ndarray) -> np.ndarray:
    """For each super-node (n + 1,) the one of its group of shorted ones that is eliminated last: it has the least
    rounding."""
    last = np.arange(wiring.structure.n + 1)
    if closed.size:
        coordinate, arrays, order = wiring.structure.coordinate, network.arrays, network.solver.order
        group = component_labels(last.size, coordinate[arrays.first[closed]], coordinate[arrays.second[closed]])
        last[group[order]] = order
        last = last[group]
    return last


def _paths(arrays: CircuitArrays, walk: Walk, sources: np.ndarray, blocked: np.ndarray, signed: bool) -> Paths:
    """The tree with nodes by their places in it."""
    kind, first, second, value, n_nodes = arrays
    place = np.empty(n_nodes, dtype=np.int64)
    place[walk.order] = np.arange(n_nodes)
    edge = walk.edge.copy()
    edge[0] = 0  # of the root, never read
    ohm = np.where(kind[edge] == RESISTOR, value[edge], 0.0)
    row = np.full(kind.size, -1, dtype=np.int64)
    row[sources] = np.arange(sources.size)
    chord, currents = walk.chord, sources[kind[sources] == CURRENT]
    inside = np.zeros(kind.size, dtype=bool)
    inside[edge[1:]] = inside[chord] = True
    outside = np.flatnonzero((kind == RESISTOR) & ~inside & np.isfinite(value) & (first != second))
    live = walk.live[walk.order].astype(bool)
    tail, head, along = place[first[chord]], place[second[chord]], _along(place[walk.parent], np.abs(ohm))
    with np.errstate(divide="ignore"):
        ease, chord_ease = 1.0 / np.sqrt(np.abs(ohm)), 1.0 / np.sqrt(np.abs(value[chord]))
    return Paths(
        walk.order,
        place[walk.parent],
        edge,
        np.where(first[edge] == walk.order, 1.0, -1.0),
        ohm,
        ease,
        np.where(kind[edge] == VOLTAGE, row[edge], -1),
        live,
        (kind[edge] == DIODE) & signed,
        chord,
        tail,
        head,
        value[chord],
        chord_ease,
        np.sqrt(along[tail] + along[head]) / np.abs(value[chord]),
        place[first[outside]],
        place[second[outside]],
        currents,
        place[first[currents]],
        place[second[currents]],
        row[currents],
        place[first[blocked]],
        place[second[blocked]],
    )


def _along(up: np.ndarray, ohm: np.ndarray) -> np.ndarray:
    """Resistance between each place of a tree and the root, Ω; each comes after the next one towards the root."""
    total, step = ohm.copy(), up.copy()
    total[0] = 0.0
    while step.any():  # twice as far each time
        total += total[step]
        step = step[step]
    return total
