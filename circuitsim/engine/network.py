"""A circuit at given element values, as the engine sees it: elements by role, and the pattern of its nodal matrix."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.circuit.elements import CURRENT, VOLTAGE
from circuitsim.program import Structure
from circuitsim.program.components import component_labels
from circuitsim.solvers.linear import Laplacian


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
        Resistors in ascending order of resistance.
    diodes : int array
        Ideal diodes.
    sources : int array
        Current sources of a current other than 0.
    laplacian : Laplacian
        The nodal matrix of resistors and diodes between different super-nodes.
    branch : (m,) int array
        Position of each resistor and diode in the pattern of ``laplacian``; −1 where its ends are one super-node.
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
    laplacian: Laplacian
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


def network(structure: Structure, direct: bool = False) -> Network:
    """The network of a structure at its circuit's values; ``direct`` excludes iterative linear solvers."""
    kind, first, second, value, _ = structure.arrays
    m = kind.size
    resistors, diodes, coordinate, n = structure.resistors, structure.diodes, structure.coordinate, structure.n
    ohms, emf, source = np.zeros(m), np.zeros(m), np.zeros(m)
    ohms[resistors] = value[resistors]
    volts = kind == VOLTAGE
    emf[volts] = value[volts]
    amperes = kind == CURRENT
    source[amperes] = value[amperes]
    outer = resistors[coordinate[first[resistors]] != coordinate[second[resistors]]]
    joining = diodes[coordinate[first[diodes]] != coordinate[second[diodes]]]
    edges = np.concatenate([outer, joining])
    branch = np.full(m, -1, dtype=np.int64)
    branch[edges] = np.arange(edges.size)
    a, b = coordinate[first[edges]], coordinate[second[edges]]
    label = component_labels(n + 1, a[: outer.size], b[: outer.size])
    grounded = bool((label == label[n]).all())
    laplacian = Laplacian.analyse(n, a, b, 1.0 / value[outer], grounded and not direct, structure.memo)
    ascending = resistors[np.argsort(value[resistors], kind="stable")]
    return Network(
        structure, first, second, ohms, emf, source, structure.voltage_edges, ascending, diodes,
        np.flatnonzero(source), laplacian, branch, grounded,
    )  # fmt: skip


