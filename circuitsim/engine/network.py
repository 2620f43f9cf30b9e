"""A circuit at given element values, as the engine sees it: elements by role, and the solver of its nodal matrix."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from circuitsim.circuit.elements import CURRENT, VOLTAGE
from circuitsim.kernels import COMPILED
from circuitsim.program import Structure
from circuitsim.solvers.linear import LinearSolver, NodalPattern


class Network(NamedTuple):
    """Elements by role at given values.

    Attributes
    ----------
    structure : Structure
    first, second : (m,) int arrays
        Terminals of the elements.
    ohms : (m,) float array
        Resistances, Ω; 0 for all elements that are no resistors, and for shorts.
    emf : (m,) float array
        Voltages of voltage sources, V; 0 for all other elements.
    source : (m,) float array
        Currents of current sources, A; 0 for all other elements.
    fixed : int array
        Elements of fixed voltage: sources and shorts.
    ascending : int array
        Resistors in ascending order of resistance, to a factor of two.
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
    first: np.ndarray
    second: np.ndarray
    ohms: np.ndarray
    emf: np.ndarray
    source: np.ndarray
    fixed: np.ndarray
    ascending: np.ndarray
    diodes: np.ndarray
    sources: np.ndarray
    laplacian: LinearSolver
    branch: np.ndarray
    grounded: bool

    @property
    def n_nodes(self) -> int:
        """Number of nodes, ground included."""
        return self.structure.arrays.n_nodes

    @property
    def roots(self) -> np.ndarray:
        """Ground and the reference node of each part without ground: their potentials are 0 V."""
        return np.append(0, self.structure.references)


@dataclass(frozen=True, eq=False)
class Wiring:
    """What networks of one topology have in common.

    Attributes
    ----------
    structure : Structure
        At any values.
    compiled : bool
        Whether compiled kernels are loaded anyway: a small circuit that belongs to a large one.
    """

    structure: Structure
    compiled: bool = False

    @cached_property
    def pattern(self) -> NodalPattern:
        """The pattern of the nodal matrix: resistors, then diodes, between different super-nodes."""
        derived = self.structure.derived
        ends = derived.ends
        a, b = np.concatenate([ends.a, ends.tail]), np.concatenate([ends.b, ends.head])
        large = self.compiled or self.structure.arrays.kind.size > COMPILED
        return NodalPattern(derived.n, a, b, ends.r.size, derived.grounded, large)

    @cached_property
    def branch(self) -> np.ndarray:
        """See `Network.branch`."""
        ends = self.structure.derived.ends
        edges = np.concatenate([ends.r, ends.diode])
        branch = np.full(self.structure.arrays.kind.size, -1, dtype=np.int64)
        branch[edges] = np.arange(edges.size)
        return branch

    def network(self, structure: Structure, direct: bool = False) -> Network:
        """The network at the values of a structure of this topology; ``direct`` excludes iterative linear solvers."""
        kind, first, second, value, _ = structure.arrays
        resistors = structure.resistors
        ohms, emf, source = np.zeros((3, kind.size))
        ohms[resistors] = value[resistors]
        np.copyto(emf, value, where=kind == VOLTAGE)
        np.copyto(source, value, where=kind == CURRENT)
        # Powers of two order resistances well enough for a tree, and are sorted in linear time.
        ascending = resistors[np.argsort(np.frexp(value[resistors])[1].astype(np.int16), kind="stable")]
        solver = self.pattern.solver(1.0 / value[structure.derived.ends.r], direct)
        return Network(
            structure, first, second, ohms, emf, source, structure.voltage_edges, ascending, structure.diodes,
            np.flatnonzero((source != 0.0) & (first != second)), solver, self.branch, structure.derived.grounded,
        )  # fmt: skip


def network(structure: Structure, direct: bool = False, compiled: bool = False) -> Network:
    """`Wiring.network` for one use."""
    return Wiring(structure, compiled).network(structure, direct)
