"""The linear circuit at one set of conducting diodes, refined until branch currents are right by their own scales.

Iterative refinement in branch variables: tree currents and potentials follow from the chord currents in pairs of
doubles (`circuitsim.engine.tree`), the nodal matrix in doubles turns the loops' residuals into corrections. So the
current of a picoohm beside a kiloohm is a sum of currents, never a difference of rounded potentials.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.engine import tree
from circuitsim.engine.kernels import kernel
from circuitsim.engine.network import Network
from circuitsim.program.blocks import block_labels
from circuitsim.program.components import component_labels
from circuitsim.program.flow import rooted, spanning_forest
from circuitsim.solvers.linear import Factored

LOCAL = 1e-12
"""Accuracy of a current against the largest current at its ends."""
OVERALL = 1e-22
"""Accuracy of a current against the largest current in its biconnected component, where that is coarser."""
RESOLUTION = 1e-28
"""A sum of currents below this share of the largest among them is rounding of pairs of doubles."""
STEPS = 60
"""Most corrections; each gains some ten digits but in networks of extreme spread."""


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


class LinearPoint(NamedTuple):
    """Currents and potentials of the linear circuit at one set of conducting diodes.

    Attributes
    ----------
    tree : Tree
    closed : (m,) bool array
        Conducting diodes: those of the tree.
    current, current_low : (m,) float arrays
        Branch currents, A; 0 in elements of fixed voltage outside the tree.
    v, v_low : (n_nodes,) float arrays
        Node potentials, V.
    need : (n_nodes,) float array
        At each root the net current into its component, A.
    at_node : (n_nodes,) float array
        Largest |current| at each node, A.
    block : (m,) int array
        Biconnected component of each element that carries current, −1 elsewhere.
    correction : (m,) float array
        Size of the last change of each current, A.
    in_block : float array
        Largest |current| in each biconnected component, A.
    factored : Factored
        The nodal matrix with the conducting diodes as shorts.
    converged : bool
        Whether the last correction met `LOCAL` or `OVERALL`.
    steps : int
        Corrections made.
    """

    tree: Tree
    closed: np.ndarray
    current: np.ndarray
    current_low: np.ndarray
    v: np.ndarray
    v_low: np.ndarray
    need: np.ndarray
    at_node: np.ndarray
    block: np.ndarray
    correction: np.ndarray
    in_block: np.ndarray
    factored: Factored
    converged: bool
    steps: int


def spanning_tree(net: Network, closed: np.ndarray) -> Tree:
    """The tree of fixed voltages, then the diodes ``closed`` in the order given, then resistors by resistance."""
    return forest_of(net, np.concatenate([net.fixed, closed, net.ascending]))


def forest_of(net: Network, edges: np.ndarray) -> Tree:
    """The spanning forest of ``edges`` that takes them in the order given; ground and references are roots."""
    n, first, second = net.n_nodes, net.first, net.second
    kept = spanning_forest(n - 1, first, second, edges)
    preferred = np.zeros(n)
    preferred[net.roots] = 1.0
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


def solve_linear(
    net: Network,
    closed: np.ndarray,
    guess: np.ndarray,
    anchor: np.ndarray,
    previous: Factored | None = None,
) -> LinearPoint:
    """Solve the linear circuit in which the diodes ``closed`` conduct and all others block.

    Parameters
    ----------
    net : Network
    closed : int array
        Conducting diodes, most important first: one that closes a loop of fixed voltages and earlier ones is left out.
    guess : (m,) float array
        Branch currents to start from, A.
    anchor : (n_nodes,) float array
        Potentials of the roots of components without a path to ground, V.
    previous : Factored, optional
        The nodal matrix at another set, whose memory is used up.
    """
    made = spanning_tree(net, closed)
    m, n = net.first.size, net.n_nodes
    on = np.zeros(m, dtype=bool)
    on[closed] = True
    on &= made.inside
    factored = net.laplacian.factor(net.branch[np.flatnonzero(on & (net.branch >= 0))], previous)
    block, active = _active_blocks(net, on)
    chords = np.flatnonzero((net.ohms > 0.0) & ~made.inside & active)
    last = representative(net, on)[net.structure.coordinate]
    current, current_low = net.source.copy(), np.zeros(m)
    current[chords] = guess[chords]
    v, v_low = np.zeros(n), np.zeros(n)
    free = made.root_of == np.arange(n)
    free[net.roots] = False
    v[free] = anchor[free]
    need, need_low, at_node, before, most = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(m), np.zeros(n)
    in_block, injected = np.zeros(block.max(initial=-1) + 1), np.zeros(net.structure.n + 1)
    residual, old = np.zeros(chords.size), np.zeros(chords.size)
    carrying = np.concatenate([chords, net.sources])
    balance, potentials = kernel(tree.tree_currents, m), kernel(tree.tree_potentials, m)
    measure, correct = kernel(tree.loop_residuals, m), kernel(tree.correct_chords, m)
    at_nodes, in_blocks = kernel(tree.node_maxima, m), kernel(tree.block_maxima, m)
    change = kernel(tree.largest_correction, m)
    walk = made.order, made.edge, made.parent
    converged, steps = False, 0
    while True:
        before[:] = current
        balance(*walk, net.first, net.second, carrying, current, current_low, need, need_low, most, 0.0)
        potentials(*walk, net.first, net.ohms, net.emf, current, current_low, v, v_low)
        at_nodes(net.first, net.second, current, at_node)
        in_blocks(block, current, in_block)
        if steps:
            before[chords] = old
            ratio = change(net.first, net.second, block, current, before, at_node, in_block, LOCAL, OVERALL)
            if converged or not ratio < np.inf:
                break
            converged = ratio <= 1.0
        if not chords.size:
            converged = True
            break
        if steps >= STEPS:
            break
        measure(
            chords, net.first, net.second, net.structure.coordinate, net.ohms, current, current_low, v, v_low,
            residual, injected,
        )  # fmt: skip
        x, _ = factored.correct(injected[:-1])
        old = current[chords].copy()
        correct(chords, net.first, net.second, last, net.ohms, residual, x, current, current_low)
        steps += 1
    correction = np.abs(current - before) if steps else np.zeros(m)
    if steps:
        zero = _rounding(net, chords, current, old, at_node, in_block[block[chords]])
        current[zero] = current_low[zero] = 0.0
    balance(*walk, net.first, net.second, carrying, current, current_low, need, need_low, most, RESOLUTION)
    potentials(*walk, net.first, net.ohms, net.emf, current, current_low, v, v_low)
    at_nodes(net.first, net.second, current, at_node)
    return LinearPoint(
        made, on, current, current_low, v, v_low, need, at_node, block, correction, in_block, factored, converged, steps
    )  # fmt: skip


def _active_blocks(net: Network, on: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Biconnected component of each element that may carry current, and whether a source feeds it (m,)."""
    there = (net.ohms > 0.0) | on
    there[net.fixed] = True
    there[net.sources] = True
    edges = np.flatnonzero(there)
    label = block_labels(net.n_nodes, net.first[edges], net.second[edges])
    block = np.full(there.size, -1, dtype=np.int64)
    block[edges] = label
    fed = np.zeros(label.max(initial=-1) + 1, dtype=bool)
    live = edges[((net.emf[edges] != 0.0) | (net.source[edges] != 0.0)) & (label >= 0)]
    fed[block[live]] = True
    active = np.zeros(there.size, dtype=bool)
    active[edges[label >= 0]] = fed[label[label >= 0]]
    return block, active


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


def _rounding(
    net: Network, chords: np.ndarray, current: np.ndarray, before: np.ndarray, at_node: np.ndarray, largest: np.ndarray
) -> np.ndarray:
    """The chords whose currents are rounding: small, and of no digit that the last two corrections agree on."""
    size = np.abs(current[chords])
    local = np.maximum(at_node[net.first[chords]], at_node[net.second[chords]])
    unsettled = np.abs(current[chords] - before) > 1e-3 * size
    return chords[unsettled & ((size <= 1e-13 * local) | (size <= OVERALL * largest))]
