"""Circuit → `Structure` (what depends on topology only) → `QuadraticProgram` (what depends on values).

The steady state of a circuit of resistors, ideal diodes and sources minimises

    E(x) = ½ Σ g (x_a − x_b + e)² − c·x   subject to   x_tail − x_head ≤ bound   for every diode

over one potential x per *super-node* (a tree of voltage sources and shorts, offsets fixed); Scellier 2024, Theorem 1.
Super-nodes that hold ground, or the reference of a part without ground, are fixed at x = 0 and share the index n.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from circuitsim.circuit import GROUND, Circuit, CircuitArrays
from circuitsim.circuit.elements import CAPACITOR, CURRENT, DIODE, INDUCTOR, RESISTOR, VOLTAGE
from circuitsim.circuit.table import read_only
from circuitsim.errors import InfeasibleError, TopologyError
from circuitsim.program.components import component_labels
from circuitsim.program.precise import two_sum

EPSILON = 2.0**-52
"""Distance between 1 and the next double."""


class VoltageForest(NamedTuple):
    """A spanning forest of the voltage constraints v(first) − v(second) = V, independent of the values.

    Attributes
    ----------
    root : (n_nodes,) int array
        Root node of each node's tree (its own index where no constraint touches it).
    order : int array
        The non-root nodes, parents before children, grouped by depth.
    level : int array
        Start of each depth in ``order``, and its end: depth d is order[level[d]:level[d + 1]].
    parent : (n_nodes,) int array
        Parent node; itself at a root.
    edge : (n_nodes,) int array
        Position (in the edge list) of the constraint to the parent; −1 at a root.
    sign : (n_nodes,) float array
        v(node) = v(parent) + sign · V(edge).
    closing : int array
        Positions of the constraints that close a loop.
    """

    root: np.ndarray
    order: np.ndarray
    level: np.ndarray
    parent: np.ndarray
    edge: np.ndarray
    sign: np.ndarray
    closing: np.ndarray

    def offsets(self, voltage: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Potential of each node relative to its root, V, from the constraint voltages, and its rounding error."""
        offset, low = np.zeros(self.root.size), np.zeros(self.root.size)
        for start, stop in zip(self.level[:-1], self.level[1:]):
            nodes = self.order[start:stop]
            above = self.parent[nodes]
            offset[nodes], error = two_sum(offset[above], self.sign[nodes] * voltage[self.edge[nodes]])
            low[nodes] = low[above] + error
        return offset, low

    def path(self, u: int, v: int) -> list[int]:
        """Constraints (positions in the edge list) along the tree path from node ``u`` to node ``v``."""
        up, down = self._climb(u, v)
        return [int(self.edge[k]) for k in up] + [int(self.edge[k]) for k in reversed(down)]

    def members(self, u: int, v: int, voltage: np.ndarray) -> list[float]:
        """The voltages along the tree path between two nodes, with the signs that add up to v(u) − v(v)."""
        up, down = self._climb(u, v)
        rises = [float(self.sign[k] * voltage[self.edge[k]]) for k in up]
        return rises + [-float(self.sign[k] * voltage[self.edge[k]]) for k in down]

    def _climb(self, u: int, v: int) -> tuple[list[int], list[int]]:
        """The nodes on the paths from ``u`` and from ``v`` to their lowest common ancestor, which is excluded."""
        up, down = [u], [v]
        while self.edge[up[-1]] >= 0:
            up.append(int(self.parent[up[-1]]))
        while self.edge[down[-1]] >= 0:
            down.append(int(self.parent[down[-1]]))
        while len(up) > 1 and len(down) > 1 and up[-2] == down[-2]:
            up.pop()
            down.pop()
        return up[:-1], down[:-1]


def excess_of(members: list[float]) -> float:
    """The correctly rounded sum of n source values; 0 where it is below n · 2⁻⁵² of the largest.

    Then the loop or cut closes.
    """
    total = math.fsum(members)
    return 0.0 if abs(total) <= len(members) * EPSILON * max(map(abs, members), default=0.0) else total


def grow_forest(n_nodes: int, first: np.ndarray, second: np.ndarray, preferred_roots: list[int]) -> VoltageForest:
    """Breadth-first spanning forest of the constraint edges.

    Parameters
    ----------
    n_nodes : int
    first, second : (m,) int arrays
        Ends of each constraint, v(first) − v(second) = V.
    preferred_roots : list of int
        Nodes that must be roots of their trees (ground, references), at most one a tree; elsewhere the smallest node.
    """
    root = np.arange(n_nodes)
    parent = np.arange(n_nodes)
    edge = np.full(n_nodes, -1, dtype=np.int64)
    sign = np.zeros(n_nodes)
    adjacent: dict[int, list[tuple[int, int, float]]] = {}
    for e, (u, v) in enumerate(zip(first.tolist(), second.tolist())):
        adjacent.setdefault(u, []).append((v, e, -1.0))
        adjacent.setdefault(v, []).append((u, e, 1.0))
    used = np.zeros(first.size, dtype=bool)
    seen: set[int] = set()
    depths: list[list[int]] = []
    for start in [*(r for r in preferred_roots if r in adjacent), *sorted(adjacent)]:
        if start in seen:
            continue
        seen.add(start)
        frontier, depth = [start], 0
        while frontier:
            reached = []
            for u in frontier:
                for v, e, s in adjacent[u]:
                    if v not in seen:
                        seen.add(v)
                        used[e] = True
                        root[v], parent[v], edge[v], sign[v] = start, u, e, s
                        reached.append(v)
            if reached:
                if depth == len(depths):
                    depths.append([])
                depths[depth].extend(reached)
            frontier, depth = reached, depth + 1
    order = np.array([v for nodes in depths for v in nodes], dtype=np.int64)
    level = np.cumsum([0, *(len(nodes) for nodes in depths)])
    return VoltageForest(root, order, level, parent, edge, sign, np.flatnonzero(~used))


ROUNDING = 1e-12
"""A sum of voltages (or currents) below this fraction of the sum of their magnitudes counts as rounding."""


class Structure(NamedTuple):
    """The topology of a circuit for its program; valid for all values with the same zero-ohm resistors.

    Attributes
    ----------
    circuit : Circuit or None
        For names in messages.
    arrays : CircuitArrays
    voltage_edges : int array
        Elements that fix a voltage: sources, zero-ohm resistors, inductors.
    forest : VoltageForest
        Their spanning forest.
    coordinate : (n_nodes,) int array
        The unknown of each node's super-node; n where its potential is fixed.
    n : int
        Number of unknowns.
    resistors, diodes, currents : int arrays
        Elements of those kinds (zero-ohm resistors apart).
    references : int array
        For each part of the circuit without ground the node whose potential is taken as zero.
    derived : Derived
        Data derived from the topology, computed on first use and shared by all values.
    """

    circuit: Circuit | None
    arrays: CircuitArrays
    voltage_edges: np.ndarray
    forest: VoltageForest
    coordinate: np.ndarray
    n: int
    resistors: np.ndarray
    diodes: np.ndarray
    currents: np.ndarray
    references: np.ndarray
    derived: Derived

    @property
    def named(self) -> Circuit:
        """The circuit, for names in messages; a structure of plain columns has none."""
        if self.circuit is None:
            raise TopologyError("a structure of plain columns has no circuit with names")
        return self.circuit

    def without_resistors(self) -> Structure:
        """The same nodes, sources and diodes: constraints of its program are those of the whole."""
        return self._replace(resistors=self.resistors[:0], derived=self.derived.without_resistors)


class QuadraticProgram(NamedTuple):
    """min ½ Σ g (x_a − x_b + e)² − c·x over x (n,), x[n] = 0, subject to x_tail − x_head ≤ bound.

    Attributes
    ----------
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


def analyse(circuit: Circuit) -> Structure:
    """The value-independent part of a circuit's program: super-nodes, unknowns, references."""
    if circuit.amplified or circuit.devices or circuit.laws:
        raise TopologyError("a program needs a circuit without amplifiers or devices: see circuit.expansion")
    return analyse_arrays(circuit.arrays(), circuit)


def analyse_arrays(arrays: CircuitArrays, circuit: Circuit | None = None) -> Structure:
    """`analyse` for plain columns; node 0 is ground."""
    arrays = arrays._replace(first=read_only(arrays.first), second=read_only(arrays.second))
    kind, first, second, value, n_nodes = arrays
    short = (kind == RESISTOR) & (value == 0.0)
    fixes = (kind == VOLTAGE) | (kind == INDUCTOR) | short
    voltage_edges = np.flatnonzero(fixes)
    resistors = np.flatnonzero((kind == RESISTOR) & ~short)
    carries = (kind != CURRENT) & (kind != CAPACITOR)
    part = component_labels(n_nodes, first[carries], second[carries])
    touched = np.zeros(n_nodes, dtype=bool)
    touched[first] = touched[second] = True
    roots = np.flatnonzero((part == np.arange(n_nodes)) & touched)
    references = roots[roots != part[GROUND]]
    forest = grow_forest(n_nodes, first[voltage_edges], second[voltage_edges], [GROUND, *references.tolist()])
    fixed = np.zeros(n_nodes, dtype=bool)
    fixed[references] = True
    fixed[GROUND] = True
    free = (forest.root == np.arange(n_nodes)) & touched & ~fixed
    number = np.full(n_nodes, int(free.sum()), dtype=np.int64)
    number[free] = np.arange(int(free.sum()))
    coordinate, n, diodes = number[forest.root], int(free.sum()), np.flatnonzero(kind == DIODE)
    derived = Derived(first, second, part, forest.root, coordinate, n, resistors, diodes)
    return Structure(
        circuit,
        arrays,
        voltage_edges,
        forest,
        coordinate,
        n,
        resistors,
        diodes,
        np.flatnonzero(kind == CURRENT),
        references,
        derived,
    )


def quadratic_program(structure: Structure) -> QuadraticProgram:
    """The program of a structure at its circuit's element values.

    Raises
    ------
    InfeasibleError
        A loop of voltage sources, or of sources and one diode, that violates Kirchhoff's voltage law; named.
    """
    kind, first, second, value, _ = structure.arrays
    voltage = np.where(kind[structure.voltage_edges] == VOLTAGE, value[structure.voltage_edges], 0.0)
    offset, low = structure.forest.offsets(voltage)
    _check_loops(structure, voltage)
    coordinate, n = structure.coordinate, structure.n
    ends = structure.derived.ends
    g = 1.0 / value[ends.r]
    inside, base = ends.grouped, _base(structure, ends, g)
    # At a node a million volts from the root, microvolts survive the change of base in the low parts.
    offset[inside] = (offset[inside] - offset[base]) + (low[inside] - low[base])
    e, apart = np.zeros(ends.r.size), ends.apart
    e[apart] = offset[ends.first[apart]] - offset[ends.second[apart]]
    i = structure.currents
    i = i[coordinate[first[i]] != coordinate[second[i]]]
    c = np.zeros(n + 1)
    np.subtract.at(c, coordinate[first[i]], value[i])
    np.add.at(c, coordinate[second[i]], value[i])
    d = structure.diodes
    bound = offset[second[d]] - offset[first[d]]
    _check_inner_diodes(structure, d[ends.inner], voltage)
    return QuadraticProgram(n, ends.a, ends.b, g, e, c, ends.tail, ends.head, bound[~ends.inner], ends.diode, offset)


class Ends(NamedTuple):
    """Ends of a program's branches and constraints; the same for all values.

    ``r`` are the resistors between different super-nodes, ``first`` and ``second`` their nodes, ``a`` and ``b`` their
    super-nodes; ``inner`` are the diodes within one, ``diode``, ``tail`` and ``head`` are the others. Nodes in
    super-nodes of several nodes are ``grouped``; the resistors with such an end (positions in ``r``) are ``at_first``
    and ``at_second``, with either ``apart``. Single nodes have no offset, nor do resistors between them.
    """

    r: np.ndarray
    first: np.ndarray
    second: np.ndarray
    a: np.ndarray
    b: np.ndarray
    inner: np.ndarray
    diode: np.ndarray
    tail: np.ndarray
    head: np.ndarray
    grouped: np.ndarray
    at_first: np.ndarray
    at_second: np.ndarray
    apart: np.ndarray


@dataclass(frozen=True, eq=False)
class Derived:
    """Data derived from a circuit's topology, computed on first use.

    Attributes
    ----------
    first, second : (m,) int arrays
        Nodes of the elements.
    part : (n_nodes,) int array
        Smallest node of each node's part: nodes joined by whatever can carry a direct current.
    root : (n_nodes,) int array
        Root of each node's tree of fixed voltages.
    coordinate, n, resistors, diodes
        As in `Structure`.
    """

    first: np.ndarray
    second: np.ndarray
    part: np.ndarray
    root: np.ndarray
    coordinate: np.ndarray
    n: int
    resistors: np.ndarray
    diodes: np.ndarray

    @cached_property
    def ends(self) -> Ends:
        """Ends of branches and constraints."""
        coordinate, root, first, second = self.coordinate, self.root, self.first, self.second
        r, d = self.resistors, self.diodes
        u, v = first[r], second[r]
        apart = coordinate[u] != coordinate[v]
        if not apart.all():
            r, u, v = r[apart], u[apart], v[apart]
        tail, head = coordinate[first[d]], coordinate[second[d]]
        inner = tail == head
        several = np.zeros(root.size, dtype=bool)
        several[root[root != np.arange(root.size)]] = True
        grouped = several[root]
        at_first, at_second = grouped[u], grouped[v]
        return Ends(
            r,
            u,
            v,
            coordinate[u],
            coordinate[v],
            inner,
            d[~inner],
            tail[~inner],
            head[~inner],
            np.flatnonzero(grouped),
            np.flatnonzero(at_first),
            np.flatnonzero(at_second),
            np.flatnonzero(at_first | at_second),
        )

    @cached_property
    def without_resistors(self) -> Derived:
        """The same without resistors."""
        return replace(self, resistors=self.resistors[:0])

    @cached_property
    def islands(self) -> np.ndarray:
        """Smallest super-node of each part joined by resistors (n + 1,); index n is ground."""
        r, coordinate = self.resistors, self.coordinate
        return component_labels(self.n + 1, coordinate[self.first[r]], coordinate[self.second[r]])

    @cached_property
    def grounded(self) -> bool:
        """Whether resistors and fixed voltages connect every node to ground or a reference."""
        return bool((self.islands == self.islands[self.n]).all())


def _base(structure: Structure, ends: Ends, g: np.ndarray) -> np.ndarray:
    """For each grouped node the node of its super-node whose potential is the unknown; where it is fixed, the root.

    It is the one with the largest conductance g of resistors, whose currents are the most sensitive to rounding.
    """
    n_nodes, grouped = structure.arrays.n_nodes, ends.grouped
    here, there = ends.at_first, ends.at_second
    merit = np.bincount(ends.first[here], g[here], n_nodes) + np.bincount(ends.second[there], g[there], n_nodes)
    root, best = structure.forest.root, np.empty(n_nodes, dtype=np.int64)
    order = grouped[np.argsort(merit[grouped], kind="stable")]
    best[root[order]] = order
    root = root[grouped]
    return np.where(structure.coordinate[grouped] < structure.n, best[root], root)


def _check_loops(structure: Structure, voltage: np.ndarray) -> None:
    """Check that each voltage constraint that closes a loop agrees with the loop's sources."""
    first, second, forest = structure.arrays.first, structure.arrays.second, structure.forest
    for k in forest.closing.tolist():
        element = int(structure.voltage_edges[k])
        u, v = int(first[element]), int(second[element])
        excess = excess_of([*forest.members(u, v, voltage), -float(voltage[k])])
        if excess:
            path = structure.voltage_edges[forest.path(v, u)].tolist()
            raise contradiction(structure, [element, *path], abs(excess))


def _check_inner_diodes(structure: Structure, diodes: np.ndarray, voltage: np.ndarray) -> None:
    """Check that no diode between nodes joined by a tree of sources is forward-biased by them."""
    first, second, forest = structure.arrays.first, structure.arrays.second, structure.forest
    for d in diodes.tolist():
        excess = excess_of(forest.members(int(first[d]), int(second[d]), voltage))
        if excess > 0.0:
            path = structure.voltage_edges[forest.path(int(second[d]), int(first[d]))].tolist()
            raise contradiction(structure, [d, *path], excess)


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
