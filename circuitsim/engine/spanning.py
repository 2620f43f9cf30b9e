"""Rooted spanning forests for computing currents and potentials."""

from __future__ import annotations

import numpy as np

from circuitsim.circuit import CircuitArrays
from circuitsim.circuit.elements import RESISTOR, VOLTAGE
from circuitsim.circuit.table import read_only
from circuitsim.engine import tree
from circuitsim.engine.tree import Branches, Tree
from circuitsim.kernels import kernel


def grow(n: int, first: np.ndarray, second: np.ndarray, roots: np.ndarray, edges: np.ndarray) -> Tree:
    """The spanning forest on n nodes of ``edges``, positions in first–second, taken in the given order."""
    preferred = np.zeros(n)
    preferred[roots] = 1.0
    made, ends = tree.blank(n, first.size), map(read_only, (first, second))
    found = kernel(tree.grow, max(n, edges.size))(*ends, int(roots[0]), preferred, edges, made)
    return made._replace(order=made.order[:found], edge=made.edge[:found], parent=made.parent[:found])


def resistive_tree(arrays: CircuitArrays, conducting: np.ndarray) -> tuple[Tree, Branches]:
    """The spanning tree of fixed voltages, the diodes ``conducting`` and the smallest resistances."""
    kind, first, second, value, n_nodes = arrays
    resistive = (kind == RESISTOR) & (value != 0.0) & np.isfinite(value)
    ohms, emf = np.where(resistive, value, 0.0), np.where(kind == VOLTAGE, value, 0.0)
    fixed = np.flatnonzero(arrays.fixed_voltages)
    ascending = np.flatnonzero(resistive)
    ascending = ascending[np.argsort(value[ascending], kind="stable")]
    made = grow(n_nodes, first, second, np.zeros(1, int), np.concatenate([fixed, conducting, ascending]))
    return made, Branches(first, second, ohms, emf)


def loop_scales(
    made: Tree, branches: Branches, current: np.ndarray, elements: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """See `circuitsim.engine.tree.loop_scales`: of the path between the ends of each of ``elements``."""
    largest, members = np.zeros(elements.size), np.zeros(elements.size, np.int64)
    a, b = branches.first[elements], branches.second[elements]
    kernel(tree.loop_scales, current.size)(made, branches, current, a, b, largest, members)
    return largest, members
