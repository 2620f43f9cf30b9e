"""Circuit → `Structure` (what depends on topology only) → `QuadraticProgram` (what depends on values).

The steady state of a circuit of resistors, ideal diodes and sources minimises

    E(x) = ½ Σ g (x_a − x_b + e)² − c·x   subject to   x_tail − x_head ≤ bound   for every diode

over one potential x per *super-node* (a tree of voltage sources and shorts, offsets fixed); Scellier 2024, Theorem 1.
Super-nodes that hold ground, or the reference of a part without ground, are fixed at x = 0 and share the index n.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from circuitsim.circuit import GROUND, Circuit, CircuitArrays
from circuitsim.circuit.elements import CAPACITOR, CURRENT, DIODE, RESISTOR, VOLTAGE
from circuitsim.circuit.table import read_only
from circuitsim.errors import InfeasibleError, TopologyError
from circuitsim.kernels import MANY, kernel
from circuitsim.program.components import component_labels, grown_forest
from circuitsim.program.precise import add

if TYPE_CHECKING:
    from circuitsim.solvers.linear import NodalPattern

EPSILON = 2.0**-52
"""Distance between 1 and the next double."""


@dataclass(frozen=True, eq=False)
class VoltageForest:
    """A spanning forest of the voltage constraints v(first) − v(second) = V, independent of the values.

    Attributes
    ----------
    root : (n_nodes,) int array
        Root node of each node's tree (its own index where no constraint touches it).
    node, parent, edge : (k,) int arrays
        The non-root nodes, parents before children; the parent of each; the element between them.
    sign : (k,) float array
        v(node) = v(parent) + sign · V(edge).
    closing : int array
        The constraints that close a loop.
    """

    root: np.ndarray
    node: np.ndarray
    parent: np.ndarray
    edge: np.ndarray
    sign: np.ndarray
    closing: np.ndarray

    def offsets(self, voltage: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Potential of each node relative to its root, V, from the voltages (m,) of the constraints, and its rounding
        error."""
        offset, low = np.zeros((2, self.root.size))
        kernel(_add_drops, self.node.size)(self.node, self.parent, self.sign * voltage[self.edge], offset, low)
        return offset, low

    @cached_property
    def _above(self) -> dict[int, tuple[int, int, float]]:
        """Parent, element and sign of each non-root node."""
        return dict(zip(self.node.tolist(), zip(self.parent.tolist(), self.edge.tolist(), self.sign.tolist())))

    def path(self, u: int, v: int) -> list[tuple[int, float]]:
        """The elements along the tree path from node ``u`` to node ``v``, and the signs with which their voltages add
        up to v(u) − v(v)."""
        up, down = [*self._climb(u)], [*self._climb(v)]
        while up and down and up[-1] == down[-1]:
            up.pop()
            down.pop()
        return up + [(edge, -sign) for edge, sign in reversed(down)]

    def _climb(self, node: int) -> Iterator[tuple[int, float]]:
        """The elements, with their signs, from a node to its root."""
        while node in self._above:
            node, edge, sign = self._above[node]
            yield edge, sign


def _add_drops(node, parent, drop, offset, low):
    """Fill in the potentials of nodes, V, from the drops to their parents, in pairs of doubles."""
    for k in range(node.size):
        above = parent[k]
        offset[node[k]], low[node[k]] = add(offset[above], low[above], drop[k], 0.0)


def excess_of(members: list[float]) -> float:
    """The correctly rounded sum of n source values; 0 where it is below n · 2⁻⁵² of the largest.

    Then the loop or cut closes.
    """
    total = math.fsum(members)
    return 0.0 if abs(total) <= len(members) * EPSILON * max(map(abs, members), default=0.0) else total


ROUNDING = 1e-12
"""A sum of voltages (or currents) below this fraction of the sum of their magnitudes counts as rounding."""


class Topology(NamedTuple):
    """A circuit's topology for the steps of an active set (`circuitsim.engine.steps`); *coordinates* are super-nodes,
    ground is n.

    Attributes
    ----------
    n : int
    coordinate : (n_nodes,) int array
        Super-node of each node.
    tree_node, tree_parent, tree_edge : int arrays
        Voltage constraints from the roots outwards: node, its parent, the element between them.
    resistor, resistor_first, resistor_second : (r,) int arrays
        Elements, and the nodes they join.
    anode, cathode : (d,) int arrays
        Nodes of the diodes.
    """

    n: int
    coordinate: np.ndarray
    tree_node: np.ndarray
    tree_parent: np.ndarray
    tree_edge: np.ndarray
    resistor: np.ndarray
    resistor_first: np.ndarray
    resistor_second: np.ndarray
    anode: np.ndarray
    cathode: np.ndarray


@dataclass(frozen=True, eq=False)
class Structure:
    """The topology of a circuit with what follows from it, computed on first use and valid for all values with the same
    zero-ohm resistors.

    Attributes
    ----------
    arrays : CircuitArrays
        With the values for which it was analysed.
    circuit : Circuit or None
        For names in messages.
    compiled : bool
        Whether compiled kernels are loaded anyway, as for a small circuit that is part of a large one.
    """

    arrays: CircuitArrays
    circuit: Circuit | None = None
    compiled: bool = False

    @property
    def named(self) -> Circuit:
        """The circuit, for names in messages; a structure of plain columns has none."""
        if self.circuit is None:
            raise TopologyError("a structure of plain columns has no circuit with names")
        return self.circuit

    @cached_property
    def voltage_edges(self) -> np.ndarray:
        """Elements that fix a voltage: sources, zero-ohm resistors, inductors."""
        return np.flatnonzero(self.arrays.fixed_voltages)

    @cached_property
    def resistors(self) -> np.ndarray:
        """Resistors, except those of zero ohm."""
        return np.flatnonzero((self.arrays.kind == RESISTOR) & ~self.arrays.fixed_voltages)

    @cached_property
    def diodes(self) -> np.ndarray:
        """Ideal diodes."""
        return np.flatnonzero(self.arrays.kind == DIODE)

    @cached_property
    def currents(self) -> np.ndarray:
        """Current sources."""
        return np.flatnonzero(self.arrays.kind == CURRENT)

    @cached_property
    def touched(self) -> np.ndarray:
        """Nodes with an element (n_nodes,)."""
        found = np.zeros(self.arrays.n_nodes, dtype=bool)
        found[self.arrays.first] = found[self.arrays.second] = True
        return found

    @cached_property
    def part(self) -> np.ndarray:
        """Smallest node of each node's part (n_nodes,): nodes joined by whatever can carry a direct current."""
        kind, first, second, _, n_nodes = self.arrays
        carries = (kind != CURRENT) & (kind != CAPACITOR)
        return component_labels(n_nodes, first[carries], second[carries])

    @cached_property
    def references(self) -> np.ndarray:
        """For each part of the circuit without ground the node whose potential is taken as zero."""
        roots = np.flatnonzero((self.part == np.arange(self.part.size)) & self.touched)
        return roots[roots != self.part[GROUND]]

    @cached_property
    def roots(self) -> np.ndarray:
        """Ground and the references."""
        return np.append(GROUND, self.references)

    @cached_property
    def forest(self) -> VoltageForest:
        """The spanning forest of the elements that fix a voltage; the roots are those of its trees that hold them."""
        edges, (_, first, second, _, n_nodes) = self.voltage_edges, self.arrays
        node, parent, by, root = grown_forest(n_nodes, first[edges], second[edges], self.roots)
        sign = np.where(first[edges[by]] == node, 1.0, -1.0)
        return VoltageForest(root, node, parent, edges[by], sign, np.delete(edges, by))

    @cached_property
    def coordinate(self) -> np.ndarray:
        """The unknown of each node's super-node (n_nodes,); n where its potential is fixed."""
        root = self.forest.root
        free = (root == np.arange(root.size)) & self.touched
        free[self.roots] = False
        number = np.full(root.size, np.count_nonzero(free), dtype=np.int64)
        number[free] = np.arange(number[GROUND])
        found: np.ndarray = number[root]
        return found

    @property
    def n(self) -> int:
        """Number of unknowns."""
        return int(self.coordinate[GROUND])

    @cached_property
    def ends(self) -> np.ndarray:
        """Super-nodes of the elements' terminals (2, m)."""
        return self.coordinate[np.stack([self.arrays.first, self.arrays.second])]

    def crossing(self, elements: np.ndarray) -> np.ndarray:
        """Those of the elements whose ends are different super-nodes."""
        a, b = self.ends
        return elements[a[elements] != b[elements]]

    @cached_property
    def branches(self) -> tuple[np.ndarray, np.ndarray]:
        """The resistors, and the diodes, between different super-nodes."""
        return self.crossing(self.resistors), self.crossing(self.diodes)

    @cached_property
    def islands(self) -> np.ndarray:
        """Smallest super-node of each part joined by resistors (n + 1,); index n is ground."""
        return component_labels(self.n + 1, *self.ends[:, self.resistors])

    @cached_property
    def grounded(self) -> bool:
        """Whether resistors and fixed voltages connect every node to ground or a reference."""
        return bool((self.islands == self.islands[self.n]).all())

    @cached_property
    def pattern(self) -> NodalPattern:
        """The pattern of the nodal matrix: resistors, then diodes, between different super-nodes."""
        from circuitsim.solvers.linear import NodalPattern

        a, b = self.ends[:, np.concatenate(self.branches)]
        large = self.compiled or self.arrays.kind.size > MANY
        return NodalPattern(self.n, a, b, self.branches[0].size, self.grounded, large)

    @cached_property
    def branch(self) -> np.ndarray:
        """Position of each resistor and diode in that pattern (m,); −1 where its ends are one super-node."""
        found, edges = np.full(self.arrays.kind.size, -1, dtype=np.int64), np.concatenate(self.branches)
        found[edges] = np.arange(edges.size)
        return found

    @cached_property
    def topology(self) -> Topology:
        """The data for the active-set steps."""
        _, first, second, _, _ = self.arrays
        forest, r, d = self.forest, self.resistors, self.diodes
        tree = forest.node, forest.parent, forest.edge
        return Topology(self.n, self.coordinate, *tree, r, first[r], second[r], first[d], second[d])


class QuadraticProgram(NamedTuple):
    """min ½ Σ g (x_a − x_b + e)² − c·x over x (n,), x[n] = 0, subject to x_tail − x_head ≤ bound.

    Attributes
    ----------
    value : (m,) float array
        Values of all elements, Ω, V, A.
    n : int
        Number of unknown potentials; index n is the fixed potential 0.
    a, b : (r,) int arrays
        Ends of the conductances, in 0…n, a ≠ b.
    g : (r,) float array
        Conductances, S.
    e : (r,) float array
        Voltage offsets of the branches, V.
    c : (n + 1,) float array
        Injected currents, A; those into the fixed potential last.
    tail, head : (d,) int arrays
        Anode and cathode super-node of each diode, tail ≠ head.
    bound : (d,) float array
        Largest allowed x_tail − x_head, V.
    diode : (d,) int array
        The circuit element of each constraint.
    offset : (n_nodes,) float array
        v = append(x, 0)[coordinate] + offset, V.
    """

    value: np.ndarray
    n: int
    a: np.ndarray
    b: np.ndarray
    g: np.ndarray
    e: np.ndarray
    c: np.ndarray
    tail: np.ndarray
    head: np.ndarray
    bound: np.ndarray
    diode: np.ndarray
    offset: np.ndarray


class Solution(NamedTuple):
    """Potentials of a program.

    Attributes
    ----------
    x : (n + 1,) float array
        Super-node voltages, V; x[n] = 0.
    solver : str
        Name of the method.
    info : dict
        Counts of its work (sweeps, iterations …).
    slack : float
        Relative voltage difference allowed at the ends of a conducting diode.
    stopped : str
        Termination status of the method, for the message of a failed certificate.
    current : (d,) float array or None
        Currents of the diodes, A: the multipliers of the constraints, from methods that have them.
    """

    x: np.ndarray
    solver: str
    info: dict[str, object]
    slack: float
    stopped: str = ""
    current: np.ndarray | None = None


class Solver(Protocol):
    """A method: an immutable value that includes its tolerances."""

    def solve(self, program: QuadraticProgram, start: np.ndarray) -> Solution:
        """Minimise a feasible, bounded program from the feasible potentials ``start`` (n + 1,), V."""
        ...


def analyse(circuit: Circuit) -> Structure:
    """The value-independent part of a circuit's program: super-nodes, unknowns, references."""
    if circuit.amplified or circuit.devices or circuit.laws:
        raise TopologyError("a program needs a circuit without amplifiers or devices: see circuit.expansion")
    return Structure(circuit.arrays(), circuit)


def analyse_arrays(arrays: CircuitArrays, compiled: bool = False) -> Structure:
    """`analyse` for plain columns; node 0 is ground."""
    return Structure(arrays._replace(first=read_only(arrays.first), second=read_only(arrays.second)), None, compiled)


def source_voltages(structure: Structure, value: np.ndarray) -> np.ndarray:
    """Voltages of the voltage sources among all elements (m,), V; 0 for all others."""
    return np.where(structure.arrays.kind == VOLTAGE, value, 0.0)


def quadratic_program(structure: Structure, value: np.ndarray, energy: bool = True) -> QuadraticProgram:
    """The program of a structure at the values (m,) of all elements; without ``energy``, which takes longer, only its
    constraints, without branches.

    Raises
    ------
    InfeasibleError
        A loop of voltage sources, or of sources and one diode, that violates Kirchhoff's voltage law; named.
    """
    _, first, second, _, n_nodes = structure.arrays
    (r, d), (tail, head), n, forest = structure.branches, structure.ends, structure.n, structure.forest
    r = r if energy else r[:0]
    voltage, g = source_voltages(structure, value), 1.0 / value[r]
    for k in forest.closing.tolist():
        _check_loop(structure, k, voltage, float(voltage[k]))
    offset, low = forest.offsets(voltage)
    if forest.node.size:
        # The unknown is the potential of the node with the largest conductance, whose currents are the most sensitive
        # to rounding. At a node a million volts from the root, microvolts survive the change in the low parts.
        merit = np.bincount(first[r], g, n_nodes) + np.bincount(second[r], g, n_nodes)
        base, grouped = np.arange(n_nodes), np.union1d(forest.node, forest.parent)
        order = grouped[np.argsort(merit[grouped], kind="stable")]
        base[forest.root[order]] = order
        base = np.where(structure.coordinate < n, base[forest.root], forest.root)
        offset = (offset - offset[base]) + (low - low[base])
    i, c = structure.crossing(structure.currents), np.zeros(n + 1)
    np.subtract.at(c, tail[i], value[i])
    np.add.at(c, head[i], value[i])
    inside = tail[structure.diodes] == head[structure.diodes]
    for k in structure.diodes[inside].tolist():
        _check_loop(structure, k, voltage)
    e, bound = offset[first[r]] - offset[second[r]], offset[second[d]] - offset[first[d]]
    return QuadraticProgram(value, n, tail[r], head[r], g, e, c, tail[d], head[d], bound, d, offset)


def _check_loop(structure: Structure, element: int, voltage: np.ndarray, own: float | None = None) -> None:
    """Check that a voltage constraint whose voltage is ``own`` agrees with the sources (m,), V, between its ends; or
    that these do not drive a diode forward."""
    u, v = int(structure.arrays.first[element]), int(structure.arrays.second[element])
    path = structure.forest.path(u, v)
    members = [float(sign * voltage[edge]) for edge, sign in path]
    excess = excess_of(members if own is None else [*members, -own])
    if excess > 0.0 or (excess and own is not None):
        raise contradiction(structure, [element, *(edge for edge, _ in reversed(path))], abs(excess))


def contradiction(structure: Structure, elements: list[int], excess: float) -> InfeasibleError:
    """The error for a loop of elements whose voltages contradict each other by ``excess`` volts; names them."""
    first, second = structure.arrays.first, structure.arrays.second
    names = [structure.named.names[k] for k in dict.fromkeys(elements)]
    nodes = dict.fromkeys(structure.named.node_names[int(end[k])] for k in elements for end in (first, second))
    return InfeasibleError(
        f"no steady state: the loop {', '.join(names)} violates Kirchhoff's voltage law by {excess:.6g} V; "
        "put a resistor in the loop or correct a source",
        elements=names,
        nodes=nodes,
    )
