"""Rooted spanning forests for computing currents and potentials."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.circuit import CircuitArrays
from circuitsim.circuit.elements import INDUCTOR, RESISTOR, VOLTAGE
from circuitsim.circuit.table import read_only
from circuitsim.engine import tree
from circuitsim.engine.kernels import kernel


class Tree(NamedTuple):
    """A rooted spanning forest of all nodes.

    Attributes
    ----------
    order, edge, parent : int arrays
        Nodes from the roots outwards, the element to each one's parent (−1 at a root), the parent.
    edge_of, parent_of, depth : (n_nodes,) int arrays
        The same by node.
    root_of : (n_nodes,) int array
        Root of each node's component.
    inside : (m,) bool array
        Elements of the forest.
    """

    order: np.ndarray
    edge: np.ndarray
    parent: np.ndarray
    edge_of: np.ndarray
    parent_of: np.ndarray
    depth: np.ndarray
    root_of: np.ndarray
    inside: np.ndarray


def grow(n: int, first: np.ndarray, second: np.ndarray, roots: np.ndarray, edges: np.ndarray) -> Tree:
    """The spanning forest on n nodes of ``edges``, positions in first–second, taken in the given order."""
    preferred = np.zeros(n)
    preferred[roots] = 1.0
    order, edge, parent, depth, edge_of, parent_of, root_of = np.empty((7, n), dtype=np.int64)
    inside = np.zeros(first.size, dtype=bool)
    size = max(n, edges.size)
    ends, trail = map(read_only, (first, second)), (order, edge, parent, edge_of, parent_of, depth, root_of, inside)
    found = kernel(tree.grow, size)(*ends, int(roots[0]), preferred, edges, *trail)
    return Tree(order[:found], edge[:found], parent[:found], edge_of, parent_of, depth, root_of, inside)


def sums_of_drops(
    arrays: CircuitArrays, conducting: np.ndarray, current: np.ndarray, elements: np.ndarray
) -> np.ndarray:
    """Voltages of ``elements``, V, as sums of drops along the spanning tree of fixed voltages, the diodes
    ``conducting`` and the smallest resistances, at branch currents ``current`` (m,), A; zero without a path."""
    kind, first, second, value, n_nodes = arrays
    resistive = (kind == RESISTOR) & (value != 0.0) & np.isfinite(value)
    ohms, emf = np.where(resistive, value, 0.0), np.where(kind == VOLTAGE, value, 0.0)
    fixed = np.flatnonzero((kind == VOLTAGE) | (kind == INDUCTOR) | ((kind == RESISTOR) & (value == 0.0)))
    ascending = np.flatnonzero(resistive)
    ascending = ascending[np.argsort(value[ascending], kind="stable")]
    made = grow(n_nodes, first, second, np.zeros(1, dtype=int), np.concatenate([fixed, conducting, ascending]))
    found = np.zeros(elements.size)
    kernel(tree.path_voltages, first.size)(
        made.depth,
        made.edge_of,
        made.parent_of,
        first,
        ohms,
        emf,
        current,
        np.zeros(first.size),
        first[elements],
        second[elements],
        found,
    )
    return found
