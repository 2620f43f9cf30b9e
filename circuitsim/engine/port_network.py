"""Responses of a linear circuit at its ports, from one factorisation of its nodal matrix.

A port is a voltage source, a current source, or an output pair of nodes (a current source of 0 A). For drives d of the
ports (V, A) the minimum energy of the circuit, E(d) = min ½ Σ g Δv² + Σ I Δv, is a quadratic form ½ dᵀ K d. The
response of port p is ∂E/∂d_p: the current of a voltage source, the voltage across a current source. So K is symmetric,
and ∂K_pq/∂g = Δv_p Δv_q, with the resistor's drops at unit drives of p and of q (Cohn 1950).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from circuitsim.circuit import CircuitArrays
from circuitsim.circuit.elements import CURRENT, VOLTAGE
from circuitsim.engine import port_flows as flows
from circuitsim.engine.network import Wiring
from circuitsim.engine.port_flows import Branches
from circuitsim.kernels import kernel
from circuitsim.program.precise import two_sum
from circuitsim.program.structure import Structure
from circuitsim.solvers.linear import Factored, LinearSolver

GROUP = 8
"""Number of right-hand sides in one substitution (`circuitsim.solvers.laplacian.solve`)."""

ENTRIES = 1_000_000
"""Number of entries (nodes times columns) of one block of responses. Blocks of 3,000,000 take 1.3 times as long,
because their arrays are newly allocated."""
EPSILON = 2.0**-52
SAFETY = 1.01
"""Factor for rounding in bounds, which are accurate sums of positive numbers."""
WEAK = 1e-4
"""Minimum scale of a response, relative to the largest voltage (current) in the circuit."""


class Response(NamedTuple):
    """Potentials for given drives.

    Attributes
    ----------
    drive : (ports, c) float array
        V, A.
    x : (n + 1, c) float array
        Potentials of super-nodes, V.
    offset : (grouped + 1, c) float array
        Potentials of grouped nodes (in super-nodes of several) relative to their super-nodes, V.
    injected : (n + 1, c) float array
        Currents injected into super-nodes by current drives, A.
    """

    drive: np.ndarray
    x: np.ndarray
    offset: np.ndarray
    injected: np.ndarray


class Reading(NamedTuple):
    """Responses at the ports.

    Attributes
    ----------
    value : (ports, c) float array
        Responses, A at voltage sources, V at all other ports.
    size : (ports, c) float array
        Sum of the magnitudes of each one's terms, at least `WEAK` times the largest voltage or current.
    bound : (k, c) float array
        For each column of weights: bound on the sum of the errors of its ports' responses, for exact reading.
    """

    value: np.ndarray
    size: np.ndarray
    bound: np.ndarray


@dataclass(frozen=True, eq=False)
class PortNetwork:
    """A linear circuit with its ports; every node has a path to ground, and fixed voltages form no loop.

    Attributes
    ----------
    wiring : Wiring
        What all values of one topology share.
    arrays : CircuitArrays
        At the present values.
    sources : (s,) int array
        Voltage and current sources: the first ports.
    pairs : (q, 2) int array
        Nodes of the other ports.
    closed : int array
        Conducting diodes, which are shorts. All others are absent.
    """

    wiring: Wiring
    arrays: CircuitArrays
    sources: np.ndarray
    pairs: np.ndarray
    closed: np.ndarray

    @property
    def structure(self) -> Structure:
        """Super-nodes."""
        return self.wiring.structure

    @property
    def n_ports(self) -> int:
        """Number of sources and pairs."""
        return self.sources.size + len(self.pairs)

    @property
    def width(self) -> int:
        """Number of responses to compute at once: a multiple of `GROUP`."""
        return GROUP * min(4, max(1, ENTRIES // GROUP // (self.structure.n + 1)))

    @cached_property
    def is_voltage(self) -> np.ndarray:
        """Which ports are voltage sources (ports,)."""
        found = np.zeros(self.n_ports, dtype=bool)
        found[: self.sources.size] = self.arrays.kind[self.sources] == VOLTAGE
        return found

    @cached_property
    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """First and second node of each port (ports,)."""
        arrays, sources = self.arrays, self.sources
        return (
            np.concatenate([arrays.first[sources], self.pairs[:, 0]]),
            np.concatenate([arrays.second[sources], self.pairs[:, 1]]),
        )

    @cached_property
    def row(self) -> np.ndarray:
        """Row of each node among the grouped nodes; the last, of zeros, for all others."""
        grouped = self.structure.derived.ends.grouped
        row = np.full(self.arrays.n_nodes, grouped.size, dtype=np.int64)
        row[grouped] = np.arange(grouped.size)
        return row

    @cached_property
    def tree_port(self) -> np.ndarray:
        """Port of each voltage constraint; the number of ports for shorts."""
        port = np.full(self.arrays.kind.size, self.n_ports, dtype=np.int64)
        port[self.sources] = np.arange(self.sources.size)
        return port[self.structure.voltage_edges]

    @cached_property
    def branches(self) -> Branches:
        """The resistors, except shorts and self-loops."""
        r = self.resistors
        first, second, coordinate = self.arrays.first[r], self.arrays.second[r], self.structure.coordinate
        g = 1.0 / self.arrays.value[r]
        return Branches(coordinate[first], coordinate[second], self.row[first], self.row[second], g)

    @cached_property
    def resistors(self) -> np.ndarray:
        """Elements of `branches`."""
        r = self.structure.resistors
        return r[self.arrays.first[r] != self.arrays.second[r]]

    @cached_property
    def _held(self) -> Branches:
        """Resistors at grouped nodes, which voltage sources drive."""
        last = self.structure.derived.ends.grouped.size
        return self.branches.subset((self.branches.at_a < last) | (self.branches.at_b < last))

    @cached_property
    def factored(self) -> Factored:
        """The nodal matrix."""
        return self.solver.factor(self.wiring.branch[self.closed])

    @cached_property
    def solver(self) -> LinearSolver:
        """The solver for these resistances."""
        return self.wiring.pattern.direct(1.0 / self.arrays.value[self.structure.derived.ends.r])

    @cached_property
    def _rounding(self) -> np.ndarray:
        """Relative rounding error of a net current to its sum of magnitudes, from the number of its terms (n + 1,)."""
        n = self.structure.n + 1
        degree = np.bincount(self.branches.a, minlength=n) + np.bincount(self.branches.b, minlength=n)
        return EPSILON * (degree + 6.0)

    # ------------------------------------------------------------------ responses
    def respond(self, drive: np.ndarray) -> Response:
        """Potentials for the drives (ports, c), V and A."""
        offset, injected = self._offsets(drive), self._injected(drive)
        return Response(drive, self._solved(injected - self._taken(offset)), offset, injected)

    def read(self, response: Response, weight: np.ndarray) -> Reading:
        """Responses of all ports, with a bound on their errors from the residuals of Kirchhoff's current law.

        An error δ of the potentials with residual currents r changes the response of port p by φ_p · r, where φ_p are
        the potentials at a unit drive of p (reciprocity): Σ_p |φ_p · r| ≤ |r| · ``weight`` for `weights` of the ports.
        """
        drive, x, offset, injected = response
        net, size = np.zeros_like(x), np.zeros_like(x)
        at_net, at_size = np.zeros_like(offset), np.zeros_like(offset)
        count = self.branches.a.size * x.shape[1]
        kernel(flows.net_currents, count)(self.branches, x, offset, net, size, at_net, at_size)
        bound, largest = np.empty((weight.shape[1], x.shape[1])), np.empty((2, x.shape[1]))
        kernel(flows.weighted_residuals, x.size)(injected, net, size, self._rounding, weight, x, bound, largest)
        self._add_currents(drive, at_net, at_size)
        value, magnitude = np.zeros((2, *drive.shape))
        self._voltages(x, offset, value, magnitude)
        port = self.tree_port[self.tree_port < self.n_ports]
        value[port] = self._delivered(at_net)[self.tree_port < self.n_ports]
        magnitude[port] = self._delivered(at_size, magnitudes=True)[self.tree_port < self.n_ports]
        flow, volts = largest[0], largest[1] + np.abs(offset).max(axis=0)
        magnitude = np.maximum(magnitude, WEAK * np.where(self.is_voltage[:, None], flow, volts))
        return Reading(value, magnitude, SAFETY * bound)

    def products(self, one: Response, other: Response, found: np.ndarray) -> None:
        """Add Σ over columns of Δv Δv' of each resistor to ``found`` (resistors,), V²."""
        kernel(flows.drop_products, found.size * one.x.shape[1])(
            self.branches, one.x, one.offset, other.x, other.offset, found
        )

    def weights(self, share: np.ndarray) -> np.ndarray:
        """(n, k) bounds on Σ_p share_p |φ_p| at each super-node, each from one response to shares ≥ 0 (ports, k).

        Potentials at a unit drive of a source at ground lie between 0 and 1 V, and add up; those of a current drive are
        bounded by the sum of those of its two ends as currents from ground; those of a voltage source within a part
        joined to ground only by resistors lie between −1 and 1 V.
        """
        first, second = (self.structure.coordinate[end] for end in self.ends)
        fixed = self.is_voltage & (first == self.structure.n)
        injected = -self._taken(self._offsets(np.where(fixed[:, None], share, 0.0), magnitudes=True))
        driven = ~self.is_voltage & (first != second)
        for end in (first, second):
            np.add.at(injected, end[driven], share[driven])
        return self._solved(injected)[:-1] + share[self.is_voltage & ~fixed].sum(axis=0)

    def states(self, drive: np.ndarray) -> tuple[np.ndarray, ...]:
        """Potentials, their low-order parts, V (n_nodes, c), currents, A, and drops, V (m, c), of all elements for the
        drives (ports, c), corrected once by the residuals of Kirchhoff's current law."""
        _, x, offset, injected = self.respond(drive)
        (kind, first, second, value, _), r, far = self.arrays, self.resistors, self.branches
        net, at_net = self._net_currents(far, x, offset)
        change = self._solved(injected - net)
        at_net += self._net_currents(self._held, change, np.zeros_like(offset))[1]
        self._add_currents(drive, at_net, np.zeros_like(at_net))
        current = np.zeros((kind.size, drive.shape[1]))
        between = (x[far.a] - x[far.b]) + (offset[far.at_a] - offset[far.at_b])
        current[r] = far.g[:, None] * (between + (change[far.a] - change[far.b]))
        current[self.structure.voltage_edges] = -self._delivered(at_net)
        fed = self.sources[~self.is_voltage[: self.sources.size]]
        current[fed] = drive[: self.sources.size][~self.is_voltage[: self.sources.size]]
        v, rounding = two_sum(x[self.structure.coordinate], offset[self.row])
        low = rounding + change[self.structure.coordinate]
        drop = (v[first] - v[second]) + (low[first] - low[second])
        drop[r] = value[r, None] * current[r]
        drop[self.structure.voltage_edges] = np.append(drive, np.zeros((1, drive.shape[1])), axis=0)[self.tree_port]
        return v, low, current, drop

    # ------------------------------------------------------------------ parts of a response
    def _net_currents(self, branches: Branches, x: np.ndarray, offset: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Currents that resistors draw from super-nodes and from grouped nodes, A."""
        net, size = np.zeros_like(x), np.zeros_like(x)
        at_net, at_size = np.zeros_like(offset), np.zeros_like(offset)
        kernel(flows.net_currents, branches.a.size * x.shape[1])(branches, x, offset, net, size, at_net, at_size)
        return net, at_net

    def _solved(self, injected: np.ndarray) -> np.ndarray:
        if not self.structure.n:
            return np.zeros_like(injected)
        return self.factored.solve(injected[:-1])

    def _offsets(self, drive: np.ndarray, magnitudes: bool = False) -> np.ndarray:
        """Potentials of nodes relative to their super-nodes (grouped + 1, c), V; ``magnitudes`` ignores signs."""
        forest, row = self.structure.forest, self.row
        held = np.concatenate([drive, np.zeros((1, drive.shape[1]))])
        offset = np.zeros((self.structure.derived.ends.grouped.size + 1, drive.shape[1]))
        for start, stop in zip(forest.level[:-1], forest.level[1:]):
            nodes = forest.order[start:stop]
            sign = np.ones(nodes.size) if magnitudes else forest.sign[nodes]
            step = sign[:, None] * held[self.tree_port[forest.edge[nodes]]]
            offset[row[nodes]] = offset[row[forest.parent[nodes]]] + step
        return offset

    def _taken(self, offset: np.ndarray) -> np.ndarray:
        """Currents (n + 1, c), A, drawn by resistors from super-nodes of potential zero with these offsets."""
        return self._net_currents(self._held, np.zeros((self.structure.n + 1, offset.shape[1])), offset)[0]

    def _injected(self, drive: np.ndarray) -> np.ndarray:
        """Currents that current drives inject into super-nodes (n + 1, c), A."""
        injected = np.zeros((self.structure.n + 1, drive.shape[1]))
        first, second = self.ends
        current = ~self.is_voltage & drive.any(axis=1)
        np.subtract.at(injected, self.structure.coordinate[first[current]], drive[current])
        np.add.at(injected, self.structure.coordinate[second[current]], drive[current])
        return injected

    def _add_currents(self, drive: np.ndarray, at_net: np.ndarray, at_size: np.ndarray) -> None:
        """Currents drawn by current drives from grouped nodes."""
        current = ~self.is_voltage & drive.any(axis=1)
        for node, sign in zip(self.ends, (1.0, -1.0)):
            np.add.at(at_net, self.row[node[current]], sign * drive[current])
            np.add.at(at_size, self.row[node[current]], np.abs(drive[current]))

    def _voltages(self, x: np.ndarray, offset: np.ndarray, value: np.ndarray, size: np.ndarray) -> None:
        """Voltages across current sources and pairs."""
        a, b = (end[~self.is_voltage] for end in self.ends)
        coordinate, row = self.structure.coordinate, self.row
        between = x[coordinate[a]] - x[coordinate[b]], offset[row[a]] - offset[row[b]]
        value[~self.is_voltage] = between[0] + between[1]
        size[~self.is_voltage] = (
            np.abs(x[coordinate[a]]) + np.abs(x[coordinate[b]]) + np.abs(offset[row[a]]) + np.abs(offset[row[b]])
        )

    def _delivered(self, at_net: np.ndarray, magnitudes: bool = False) -> np.ndarray:
        """Currents of voltage constraints (edges, c), A: what the nodes beyond them draw, accumulated up their trees;
        ``magnitudes`` ignores signs."""
        forest, row = self.structure.forest, self.row
        found = np.zeros((self.structure.voltage_edges.size, at_net.shape[1]))
        for start, stop in zip(forest.level[-2::-1], forest.level[:0:-1]):
            nodes = forest.order[start:stop]
            sign = np.ones(nodes.size) if magnitudes else forest.sign[nodes]
            found[forest.edge[nodes]] = sign[:, None] * at_net[row[nodes]]
            np.add.at(at_net, row[forest.parent[nodes]], at_net[row[nodes]])
        return found


def independent_sources(arrays: CircuitArrays) -> np.ndarray:
    """Elements that are voltage or current sources."""
    return np.flatnonzero((arrays.kind == VOLTAGE) | (arrays.kind == CURRENT))
