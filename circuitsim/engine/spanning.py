"""Rooted spanning forests of a network, which its currents and potentials follow along."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from circuitsim.engine.kernels import kernel
from circuitsim.program.components import component_labels
from circuitsim.program.flow import rooted, spanning_forest

if TYPE_CHECKING:
    from circuitsim.engine.network import Network


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


def spanning_tree(net: Network, closed: np.ndarray) -> Tree:
    """The tree of fixed voltages, then the diodes ``closed`` in the order given, then resistors by resistance."""
    if not closed.size:
        return net.resistances.tree
    return forest_of(net, np.concatenate([net.fixed, closed, net.ascending]))


def forest_of(net: Network, edges: np.ndarray) -> Tree:
    """The spanning forest of ``edges`` that takes them in the order given; ground and references are roots."""
    return grow(net.n_nodes, net.first, net.second, net.roots, edges)


def grow(n: int, first: np.ndarray, second: np.ndarray, roots: np.ndarray, edges: np.ndarray) -> Tree:
    """The spanning forest on n nodes of ``edges``, positions in first–second, that takes them in the order given."""
    kept = spanning_forest(n - 1, first, second, edges)
    preferred = np.zeros(n)
    preferred[roots] = 1.0
    grown = rooted(n - 1, first[kept], second[kept], preferred)
    edge = np.where(grown.edge >= 0, kept[grown.edge], -1)
    edge_of, parent_of, depth = np.full(n, -1, dtype=np.int64), np.arange(n), np.zeros(n, dtype=np.int64)
    edge_of[grown.order], parent_of[grown.order] = edge, grown.parent
    root_of = np.arange(n)
    kernel(_descend, n)(grown.order, edge, grown.parent, depth, root_of)
    inside = np.zeros(first.size, dtype=bool)
    inside[kept] = True
    return Tree(grown.order, edge, grown.parent, edge_of, parent_of, depth, root_of, inside)


def _descend(order, edge, parent, depth, root_of):
    for k in range(order.size):
        if edge[k] >= 0:
            depth[order[k]] = depth[parent[k]] + 1
            root_of[order[k]] = root_of[parent[k]]


def representative(net: Network, on: np.ndarray) -> np.ndarray:
    """For each coordinate (n + 1,) the one whose computed potential stands for its group of shorted ones: the last in
    the order of elimination, which has the least rounding."""
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
