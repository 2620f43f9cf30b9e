"""A circuit at given element values in the engine's form: elements by role, and the solver of its nodal matrix."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from circuitsim.circuit.elements import VOLTAGE
from circuitsim.engine.spanning import grow
from circuitsim.engine.steps import Topology
from circuitsim.engine.tree import Branches, Tree
from circuitsim.kernels import MANY
from circuitsim.program import Structure
from circuitsim.program.components import component_labels
from circuitsim.solvers.linear import Dense, Factored, LinearSolver, NodalPattern, Supernodal


class Network(NamedTuple):
    """Elements by role at given values.

    Attributes
    ----------
    structure : Structure
    resistances : Resistances
    first, second : (m,) int arrays
        Terminals of the elements.
    ohms : (m,) float array
        Resistances, Ω; 0 for all elements that are not resistors, and for shorts.
    emf : (m,) float array
        Voltages of voltage sources, V; 0 for all other elements.
    source : (m,) float array
        Currents of current sources, A; 0 for all other elements.
    fixed : int array
        Elements of fixed voltage: sources and shorts.
    diodes : int array
        Ideal diodes.
    sources : int array
        Current sources of a current other than 0, between different nodes.
    laplacian : LinearSolver
        For the nodal matrix of resistors and diodes between different super-nodes.
    branch : (m,) int array
        Position of each resistor and diode in that pattern; −1 where its ends are one super-node.
    grounded : bool
        Whether resistors and fixed voltages lead from every node to ground or a reference.
    """

    structure: Structure
    resistances: Resistances
    first: np.ndarray
    second: np.ndarray
    ohms: np.ndarray
    emf: np.ndarray
    source: np.ndarray
    fixed: np.ndarray
    diodes: np.ndarray
    sources: np.ndarray
    laplacian: LinearSolver
    branch: np.ndarray
    grounded: bool

    @property
    def branches(self) -> Branches:
        """The elements for kernels."""
        return Branches(self.first, self.second, self.ohms, self.emf)

    @property
    def n_nodes(self) -> int:
        """Number of nodes, ground included."""
        return self.structure.arrays.n_nodes

    @property
    def ascending(self) -> np.ndarray:
        """Resistors in ascending order of resistance, to a factor of two."""
        return self.resistances.ascending

    @property
    def roots(self) -> np.ndarray:
        """Ground and the reference node of each part without ground: their potentials are 0 V."""
        return roots_of(self.structure)


@dataclass(frozen=True, eq=False)
class Resistances:
    """What networks of the same topology and resistances share.

    Attributes
    ----------
    wiring : Wiring
    ohms : (m,) float array
        See `Network.ohms`.
    conductances : (r,) float array
        Of the resistors of the pattern, S.
    """

    wiring: Wiring
    ohms: np.ndarray
    conductances: np.ndarray
    _latest: list[Factored] = field(default_factory=list, init=False)
    """The factor that `keep_factor` stored, at most one."""

    def take_factor(self) -> Factored | None:
        """Take the factored nodal matrix of the latest solve for exclusive use; None while it is taken."""
        try:
            return self._latest.pop()
        except IndexError:
            return None

    def keep_factor(self, factored: Factored) -> None:
        """Store a factored nodal matrix for the next solve, which is faster with it and gives the same bits."""
        self._latest[:] = [factored]

    @cached_property
    def solver(self) -> LinearSolver:
        """The solver of the linear circuits."""
        found = self.wiring.pattern.solver(self.conductances)
        return self.direct if found.direct else found

    @cached_property
    def direct(self) -> Dense | Supernodal:
        """The direct solver."""
        return self.wiring.pattern.direct(self.conductances)

    @cached_property
    def ascending(self) -> np.ndarray:
        """See `Network.ascending`."""
        r = self.wiring.structure.resistors
        # Powers of two are accurate enough for ordering a tree, and sort in linear time.
        return r[np.argsort(np.frexp(self.ohms[r])[1].astype(np.int16), kind="stable")]

    @cached_property
    def of_resistors(self) -> np.ndarray:
        """All resistances except shorts, in the structure's order, Ω."""
        return self.ohms[self.wiring.structure.resistors]

    @cached_property
    def siemens(self) -> np.ndarray:
        """Conductances of all resistors except shorts, in the topology's order, S."""
        return 1.0 / self.ohms[self.wiring.topology.resistor]

    @cached_property
    def strength(self) -> np.ndarray:
        """Sum of the conductances at each coordinate (n + 1,), S."""
        plan, size = self.wiring.topology, self.wiring.structure.n + 1
        first, second = plan.coordinate[plan.resistor_first], plan.coordinate[plan.resistor_second]
        return np.bincount(first, self.siemens, size) + np.bincount(second, self.siemens, size)

    @cached_property
    def tree(self) -> Tree:
        """The spanning tree while no diode conducts: fixed voltages, then resistors in ascending order."""
        structure = self.wiring.structure
        arrays, edges = structure.arrays, np.concatenate([structure.voltage_edges, self.ascending])
        return grow(arrays.n_nodes, arrays.first, arrays.second, roots_of(structure), edges)

    def network(self, structure: Structure, direct: bool = False) -> Network:
        """The network at the values of a structure of this topology; ``direct`` excludes iterative linear solvers."""
        kind, first, second, value, _ = structure.arrays
        emf, source = np.zeros((2, kind.size))
        held, fed = structure.voltage_edges, structure.currents
        emf[held] = np.where(kind[held] == VOLTAGE, value[held], 0.0)
        source[fed] = value[fed]
        made = self
        if not np.array_equal(value[structure.resistors], made.of_resistors):
            made = self.wiring.at(value)
        solver = made.direct if direct else made.solver
        return Network(
            structure,
            made,
            first,
            second,
            made.ohms,
            emf,
            source,
            held,
            structure.diodes,
            fed[(source[fed] != 0.0) & (first[fed] != second[fed])],
            solver,
            self.wiring.branch,
            structure.derived.grounded,
        )


@dataclass(frozen=True, eq=False)
class Wiring:
    """What networks of the same topology share.

    Attributes
    ----------
    structure : Structure
        At any values.
    compiled : bool
        Whether compiled kernels are loaded anyway, as for a small circuit that is part of a large one.
    """

    structure: Structure
    compiled: bool = False

    @cached_property
    def pattern(self) -> NodalPattern:
        """The pattern of the nodal matrix: resistors, then diodes, between different super-nodes."""
        derived = self.structure.derived
        ends = derived.ends
        a, b = np.concatenate([ends.a, ends.tail]), np.concatenate([ends.b, ends.head])
        large = self.compiled or self.structure.arrays.kind.size > MANY
        return NodalPattern(derived.n, a, b, ends.r.size, derived.grounded, large)

    @cached_property
    def topology(self) -> Topology:
        """The data for the active-set steps."""
        structure = self.structure
        forest, (_, first, second, _, _) = structure.forest, structure.arrays
        node, r, d = forest.order, structure.resistors, structure.diodes
        edge = structure.voltage_edges[forest.edge[node]]
        return Topology(
            structure.n,
            structure.coordinate,
            node,
            forest.parent[node],
            edge,
            r,
            first[r],
            second[r],
            first[d],
            second[d],
        )

    @cached_property
    def branch(self) -> np.ndarray:
        """See `Network.branch`."""
        ends = self.structure.derived.ends
        edges = np.concatenate([ends.r, ends.diode])
        branch = np.full(self.structure.arrays.kind.size, -1, dtype=np.int64)
        branch[edges] = np.arange(edges.size)
        return branch

    def at(self, value: np.ndarray) -> Resistances:
        """What networks with the resistances in the values (m,) of all elements share.

        It refers to the wiring and never vice versa, so that large arrays are freed after their last use.
        """
        r = self.structure.resistors
        ohms = np.zeros(value.size)
        ohms[r] = value[r]
        return Resistances(self, ohms, 1.0 / value[self.structure.derived.ends.r])


def roots_of(structure: Structure) -> np.ndarray:
    """Ground and the reference node of each part without ground."""
    return np.append(0, structure.references)


def network(structure: Structure, direct: bool = False, compiled: bool = False) -> Network:
    """`Resistances.network` for one use."""
    return Wiring(structure, compiled).at(structure.arrays.value).network(structure, direct)


def spanning_tree(net: Network, closed: np.ndarray) -> Tree:
    """The tree of fixed voltages, then the diodes ``closed`` in the given order, then resistors by resistance."""
    if not closed.size and net.fixed is net.structure.voltage_edges:
        return net.resistances.tree
    return forest_of(net, np.concatenate([net.fixed, closed, net.ascending]))


def forest_of(net: Network, edges: np.ndarray) -> Tree:
    """The spanning forest of ``edges`` that takes them in the order given; ground and references are roots."""
    return grow(net.n_nodes, net.first, net.second, net.roots, edges)


def representative(net: Network, on: np.ndarray) -> np.ndarray:
    """For each coordinate (n + 1,) the representative of its shorted group: the coordinate eliminated last, whose
    computed voltage has the smallest rounding error."""
    n = net.structure.n
    last = np.arange(n + 1)
    d = np.flatnonzero(on & (net.branch >= 0))
    if d.size:
        coordinate = net.structure.coordinate
        group = component_labels(n + 1, coordinate[net.first[d]], coordinate[net.second[d]])
        order = net.laplacian.order
        last[group[order]] = order
        last = last[group]
    return last
