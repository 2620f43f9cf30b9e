"""Responses of a linear circuit at its ports, from one factorisation of its nodal matrix.

A port is a voltage source, a current source, or an output pair of nodes (a current source of 0 A). For drives d of the
ports (V, A) the minimum energy of the circuit, E(d) = min ½ Σ g Δv² + Σ I Δv, is a quadratic form ½ dᵀ K d. The
response of port p is ∂E/∂d_p: the current of a voltage source, the voltage across a current source. So K is symmetric,
and ∂K_pq/∂g = Δv_p Δv_q, with the resistor's drops at unit drives of p and of q (Cohn 1950).

Node voltages are sums of a super-node's and of an *offset*, T d for the voltage drives d along the trees of sources.
With the incidence matrices A of the resistors and C of the other ports on z = (super-nodes, offsets), drops are A z.
The responses are C z, and of voltage sources the sums Tᵀ of what Aᵀ G A z + Cᵀ d leaves at the nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array, csr_array, eye_array
from scipy.sparse.linalg import spsolve_triangular

from circuitsim.circuit import CircuitArrays
from circuitsim.circuit.elements import CURRENT, VOLTAGE
from circuitsim.program.precise import two_sum
from circuitsim.program.structure import Structure
from circuitsim.solvers.linear import Factored

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
    z : (n + 1 + k, c) float array
        Potentials of super-nodes, then of the k nodes that sources and shorts join to others, relative to the roots of
        their trees, V.
    drop : (r, c) float array
        Voltages of the resistors, V.
    """

    drive: np.ndarray
    z: np.ndarray
    drop: np.ndarray


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
    structure : Structure
        Super-nodes.
    arrays : CircuitArrays
        At the present values; diodes are absent.
    sources : (s,) int array
        Voltage and current sources: the first ports.
    pairs : (q, 2) int array
        Nodes of the other ports.
    """

    structure: Structure
    arrays: CircuitArrays
    sources: np.ndarray
    pairs: np.ndarray

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
    def resistors(self) -> np.ndarray:
        """The resistors, except shorts and self-loops."""
        r = self.structure.resistors
        return r[self.arrays.first[r] != self.arrays.second[r]]

    @cached_property
    def _siemens(self) -> np.ndarray:
        """Their conductances (r, 1), S."""
        return 1.0 / self.arrays.value[self.resistors, None]

    @cached_property
    def _ports(self) -> csr_array:
        """Incidence of the ports other than voltage sources, whose rows are empty (ports, n + 1 + k)."""
        first, second = self.arrays.first, self.arrays.second
        ends = np.append(first[self.sources], self.pairs[:, 0]), np.append(second[self.sources], self.pairs[:, 1])
        return self._incidence(*ends, ~self.is_voltage)

    @cached_property
    def _branches(self) -> csr_array:
        """Incidence of the resistors (r, n + 1 + k)."""
        r = self.resistors
        return self._incidence(self.arrays.first[r], self.arrays.second[r], np.ones(r.size, dtype=bool))

    @cached_property
    def _sizes(self) -> tuple[csr_array, csr_array]:
        """Both without signs: of resistors, of ports."""
        return abs(self._branches), abs(self._ports)

    def _incidence(self, first: np.ndarray, second: np.ndarray, there: np.ndarray) -> csr_array:
        """+1 at the first end of each branch that is ``there``, −1 at the second."""
        structure, order = self.structure, self.structure.forest.node
        place, size = np.full(self.arrays.n_nodes, -1), structure.n + 1
        place[order] = np.arange(size, size + order.size)
        columns = np.concatenate([column[end] for column in (structure.coordinate, place) for end in (first, second)])
        rows, signs = np.tile(np.arange(first.size), 4), np.tile(np.repeat([1.0, -1.0], first.size), 2)
        inside = np.tile(there, 4) & (columns >= 0)
        entries = signs[inside], (rows[inside], columns[inside])
        return coo_array(entries, shape=(first.size, size + order.size)).tocsr()

    @cached_property
    def _held(self) -> tuple[csr_array, csr_array, np.ndarray]:
        """The trees of fixed voltages: their nodes' offsets o satisfy L o = s V, with the unit lower triangular L, the
        choice s (k, ports) of the drive at the element to each node's parent, with its sign; and these signs (k,)."""
        forest, count = self.structure.forest, self.structure.forest.node.size
        place = np.full(self.arrays.n_nodes, -1)
        place[forest.node] = np.arange(count)
        above = place[forest.parent]
        below = np.flatnonzero(above >= 0)
        links = coo_array((np.ones(below.size), (below, above[below])), shape=(count, count))
        port = np.full(self.arrays.kind.size, -1)
        port[self.sources] = np.arange(self.sources.size)
        column = port[forest.edge]
        driven = np.flatnonzero(column >= 0)
        drives = coo_array((forest.sign[driven], (driven, column[driven])), shape=(count, self.n_ports))
        return (eye_array(count) - links).tocsr(), drives.tocsr(), forest.sign

    @cached_property
    def factored(self) -> Factored:
        """The nodal matrix."""
        siemens = 1.0 / self.arrays.value[self.structure.branches[0]]
        return self.structure.pattern.direct(siemens).factor(np.arange(0))

    @cached_property
    def _rounding(self) -> np.ndarray:
        """Rounding error of a net current relative to its sum of magnitudes, by the number of terms (n, 1)."""
        return EPSILON * (np.asarray(self._sizes[0].sum(axis=0))[: self.structure.n, None] + 6.0)

    # ------------------------------------------------------------------ responses
    def respond(self, drive: np.ndarray) -> Response:
        """Potentials for the drives (ports, c), V and A."""
        tree, drives, _ = self._held
        z = self._completed(-(self._ports.T @ drive), _along(tree, drives @ drive))
        return Response(drive, z, self._branches @ z)

    def read(self, response: Response, weight: np.ndarray) -> Reading:
        """Responses of all ports, with a bound on their errors from the residuals of Kirchhoff's current law.

        An error δ of the potentials with residual currents r changes the response of port p by φ_p · r, where φ_p are
        the potentials at a unit drive of p (reciprocity): Σ_p |φ_p · r| ≤ |r| · ``weight`` for `weights` of the ports.
        """
        (drive, z, drop), (tree, drives, _), n = response, self._held, self.structure.n
        flow, (of_branches, of_ports) = self._siemens * drop, self._sizes
        net = self._branches.T @ flow + self._ports.T @ drive
        size = of_branches.T @ np.abs(flow, out=flow) + of_ports.T @ np.abs(drive)
        left = np.abs(net[:n]) + self._rounding * size[:n]
        value = self._ports @ z + drives.T @ _along(tree, net[n + 1 :], beyond=True)
        magnitude = of_ports @ np.abs(z) + abs(drives).T @ _along(tree, size[n + 1 :], beyond=True)
        volts = np.abs(z[: n + 1]).max(axis=0) + np.abs(z[n + 1 :]).max(axis=0, initial=0.0)
        least = WEAK * np.where(self.is_voltage[:, None], size[: n + 1].max(axis=0), volts)
        return Reading(value, np.maximum(magnitude, least), SAFETY * (weight.T @ left))

    def products(self, one: Response, other: Response) -> np.ndarray:
        """Σ over columns of Δv Δv' of each resistor (r,), V²."""
        return np.einsum("rc,rc->r", one.drop, other.drop)

    def weights(self, share: np.ndarray) -> np.ndarray:
        """(n, k) bounds on Σ_p share_p |φ_p| at each super-node, each from one response to shares ≥ 0 (ports, k).

        Potentials at a unit drive of a source at ground lie between 0 and 1 V, and add up; those of a current drive are
        bounded by the sum of those of its two ends as currents from ground; those of a voltage source within a part
        joined to ground only by resistors lie between −1 and 1 V.
        """
        (tree, drives, _), fixed = self._held, self.is_voltage.copy()
        at = self.arrays.first[self.sources]
        fixed[: self.sources.size] &= self.structure.coordinate[at] == self.structure.n
        offset = _along(tree, abs(drives) @ np.where(fixed[:, None], share, 0.0))
        z = self._completed(self._sizes[1].T @ share, offset)
        return z[: self.structure.n] + share[self.is_voltage & ~fixed].sum(axis=0)

    def states(self, drive: np.ndarray) -> tuple[np.ndarray, ...]:
        """Potentials, their low-order parts, V (n_nodes, c), currents, A, and drops, V (m, c), of all elements for the
        drives (ports, c), corrected once by the residuals of Kirchhoff's current law."""
        _, z, drop = self.respond(drive)
        (kind, first, second, value, n_nodes), r, structure = self.arrays, self.resistors, self.structure
        n, (tree, _, sign), forest = structure.n, self._held, structure.forest
        given = self._ports.T @ drive
        change = self._completed(-given - self._branches.T @ (self._siemens * drop), np.zeros_like(z[n + 1 :]))
        current, offset = np.zeros((kind.size, drive.shape[1])), np.zeros((n_nodes, drive.shape[1]))
        current[r] = self._siemens * (drop + self._branches @ change)
        voltage = self.is_voltage[: self.sources.size]
        current[self.sources[~voltage]] = drive[: self.sources.size][~voltage]
        at_node = (self._branches.T @ current[r] + given)[n + 1 :]
        current[forest.edge] = -sign[:, None] * _along(tree, at_node, beyond=True)
        offset[forest.node] = z[n + 1 :]
        v, rounding = two_sum(z[structure.coordinate], offset)
        low = rounding + change[structure.coordinate]
        drop = (v[first] - v[second]) + (low[first] - low[second])
        drop[r] = value[r, None] * current[r]
        drop[structure.voltage_edges] = 0.0
        drop[self.sources[voltage]] = drive[self.is_voltage]
        return v, low, current, drop

    def _completed(self, injected: np.ndarray, offset: np.ndarray) -> np.ndarray:
        """All potentials for the ``injected`` currents, of which the first n count, A, and offsets (k, c), V."""
        n = self.structure.n
        z = np.zeros((n + 1 + len(offset), offset.shape[1]))
        z[n + 1 :] = offset
        if n:
            z[: n + 1] = self.factored.solve((injected - self._between @ offset)[:n])
        return z

    @cached_property
    def _between(self) -> csr_array:
        """Conductances between all nodes and offsets (n + 1 + k, k), S."""
        scaled = self._branches[:, self.structure.n + 1 :].multiply(self._siemens)
        return (self._branches.T @ scaled).tocsr()


def _along(tree: csr_array, given: np.ndarray, beyond: bool = False) -> np.ndarray:
    """Sums of the amounts ``given`` (k, c) to the nodes of trees along their paths, or ``beyond`` each node."""
    if not given.size:
        return given
    found: np.ndarray = spsolve_triangular(tree.T.tocsr() if beyond else tree, given, not beyond, unit_diagonal=True)
    return found


def independent_sources(arrays: CircuitArrays) -> np.ndarray:
    """Elements that are voltage or current sources."""
    return np.flatnonzero((arrays.kind == VOLTAGE) | (arrays.kind == CURRENT))
