"""A circuit at given element values in the engine's form: elements by role, and the solver of its nodal matrix."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from circuitsim.circuit.elements import VOLTAGE
from circuitsim.engine.tree import Branches, Tree, spanning_forest
from circuitsim.program import Structure
from circuitsim.program.components import component_labels
from circuitsim.solvers.linear import Dense, Factored, LinearSolver, Supernodal


class Network(NamedTuple):
    """Elements by role at given values.

    Attributes
    ----------
    structure : Structure
    resistances : Resistances
    ohms : (m,) float array
        Resistances, Ω; 0 for all elements that are not resistors, and for shorts.
    emf : (m,) float array
        Voltages of voltage sources, V; 0 for all other elements.
    source : (m,) float array
        Currents of current sources, A; 0 for all other elements.
    fixed : int array
        Elements of fixed voltage: sources and shorts.
    sources : int array
        Current sources of a current other than 0, between different nodes.
    laplacian : LinearSolver
        For the nodal matrix of resistors and diodes between different super-nodes.
    """

    structure: Structure
    resistances: Resistances
    ohms: np.ndarray
    emf: np.ndarray
    source: np.ndarray
    fixed: np.ndarray
    sources: np.ndarray
    laplacian: LinearSolver

    @property
    def first(self) -> np.ndarray:
        """First terminals of the elements (m,)."""
        return self.structure.arrays.first

    @property
    def second(self) -> np.ndarray:
        """Second terminals of the elements (m,)."""
        return self.structure.arrays.second

    @property
    def diodes(self) -> np.ndarray:
        """Ideal diodes."""
        return self.structure.diodes

    @property
    def branch(self) -> np.ndarray:
        """Position of each resistor and diode in the pattern of the nodal matrix (m,); −1 where its ends are one
        super-node."""
        return self.structure.branch

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


@dataclass(frozen=True, eq=False)
class Resistances:
    """What networks of the same topology and resistances share.

    It refers to the structure and never vice versa, so that large arrays are freed after their last use.

    Attributes
    ----------
    structure : Structure
    ohms : (m,) float array
        See `Network.ohms`.
    """

    structure: Structure
    ohms: np.ndarray
    _latest: list[Factored] = field(default_factory=list, init=False)
    """The factor that `keep_factor` stored, at most one."""

    @classmethod
    def of(cls, structure: Structure, value: np.ndarray) -> Resistances:
        """Those among the values (m,) of all elements."""
        ohms = np.zeros(value.size)
        ohms[structure.resistors] = value[structure.resistors]
        return cls(structure, ohms)

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
    def conductances(self) -> np.ndarray:
        """Of the resistors of the nodal matrix, S."""
        return 1.0 / self.ohms[self.structure.branches[0]]

    @cached_property
    def solver(self) -> LinearSolver:
        """The solver of the linear circuits."""
        found = self.structure.pattern.solver(self.conductances)
        return self.direct if found.direct else found

    @cached_property
    def direct(self) -> Dense | Supernodal:
        """The direct solver."""
        return self.structure.pattern.direct(self.conductances)

    @cached_property
    def ascending(self) -> np.ndarray:
        """See `Network.ascending`."""
        r = self.structure.resistors
        # Powers of two are accurate enough for ordering a tree, and sort in linear time.
        return r[np.argsort(np.frexp(self.ohms[r])[1].astype(np.int16), kind="stable")]

    @cached_property
    def siemens(self) -> np.ndarray:
        """Conductances of all resistors except shorts, S."""
        return 1.0 / self.ohms[self.structure.resistors]

    @cached_property
    def strength(self) -> np.ndarray:
        """Sum of the conductances at each coordinate (n + 1,), S."""
        first, second = self.structure.ends[:, self.structure.resistors]
        size = self.structure.n + 1
        return np.bincount(first, self.siemens, size) + np.bincount(second, self.siemens, size)

    @cached_property
    def tree(self) -> Tree:
        """The spanning tree while no diode conducts: fixed voltages, then resistors in ascending order."""
        _, first, second, _, n_nodes = self.structure.arrays
        edges = np.concatenate([self.structure.voltage_edges, self.ascending])
        return spanning_forest(n_nodes, first, second, self.structure.roots, edges)

    def network(self, value: np.ndarray, direct: bool = False) -> Network:
        """The network at the values (m,) of all elements; ``direct`` excludes iterative linear solvers."""
        structure, (kind, first, second, _, _) = self.structure, self.structure.arrays
        held, fed, r = structure.voltage_edges, structure.currents, structure.resistors
        emf, source = np.zeros((2, kind.size))
        emf[held] = np.where(kind[held] == VOLTAGE, value[held], 0.0)
        source[fed] = value[fed]
        made = self if np.array_equal(value[r], self.ohms[r]) else Resistances.of(structure, value)
        sources = fed[(source[fed] != 0.0) & (first[fed] != second[fed])]
        solver = made.direct if direct else made.solver
        return Network(structure, made, made.ohms, emf, source, held, sources, solver)


def network(structure: Structure, direct: bool = False) -> Network:
    """`Resistances.network` for one use, at the values for which a structure was analysed."""
    value = structure.arrays.value
    return Resistances.of(structure, value).network(value, direct)


def spanning_tree(net: Network, closed: np.ndarray) -> Tree:
    """The tree of fixed voltages, then the diodes ``closed`` in the given order, then resistors by resistance."""
    if not closed.size and net.fixed is net.structure.voltage_edges:
        return net.resistances.tree
    return forest_of(net, np.concatenate([net.fixed, closed, net.ascending]))


def forest_of(net: Network, edges: np.ndarray) -> Tree:
    """The spanning forest of ``edges`` that takes them in the order given; ground and references are roots."""
    return spanning_forest(net.n_nodes, net.first, net.second, net.structure.roots, edges)


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
