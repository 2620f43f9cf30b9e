"""Samples of a linear circuit whose potentials are known: branch currents along one spanning tree, and their proof.

Chords carry differences of potentials, the tree what is left (`circuitsim.engine.tree`). The tree is the same for all
samples, since conductances are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim._graphs import choose_forest
from circuitsim.circuit.elements import RESISTOR, VOLTAGE
from circuitsim.engine.double_double import add, multiply
from circuitsim.engine.small.branches import carry
from circuitsim.engine.small.currents import ACCURATE
from circuitsim.engine.small.proof import prove_branches
from circuitsim.engine.small.spanning import candidates, find_live, span
from circuitsim.engine.small.workspace import Walk
from circuitsim.engine.tree import tree_currents, tree_potentials

PASSES = 4
"""Most passes along the tree for one sample, each with better currents of the chords."""


class Branches(NamedTuple):
    """What a circuit without diodes has of a `circuitsim.engine.small.plan.Plan`."""

    tree_edge: np.ndarray  # voltage constraints
    resistor: np.ndarray  # of other than zero ohm
    diode: np.ndarray  # none


def spanning_tree(kind, first, second, value, fixed, n_nodes):
    """The spanning tree of a circuit without diodes: voltage constraints first, then resistors in ascending order.

    Parameters
    ----------
    fixed : int array
        Voltage constraints, without loops.

    Returns
    -------
    Walk
        Its last member holds only the chords that may carry current.
    joined : bool
        Whether it reaches all nodes.
    """
    resistor = np.empty(kind.size, np.int64)
    count = 0
    for e in range(kind.size):
        if kind[e] == RESISTOR and value[e] != 0.0:
            resistor[count] = e
            count += 1
    branches = Branches(fixed, resistor[:count], resistor[:0])
    order, edge, parent = np.empty(n_nodes, np.int64), np.empty(n_nodes, np.int64), np.empty(n_nodes, np.int64)
    above, depth, live = np.empty(n_nodes, np.int64), np.empty(n_nodes, np.int64), np.empty(n_nodes, np.int64)
    walk = Walk(order, edge, parent, above, depth, live, np.empty(count, np.int64))
    kept = np.empty(n_nodes, np.int64)
    edges = choose_forest(n_nodes, first, second, candidates(branches, value, np.zeros(0, np.bool_)), kept)
    joined = span(first, second, kept[:edges], walk) == n_nodes
    chords = find_live(branches, kind, first, second, value, walk) if joined else 0
    return Walk(order, edge, parent, above, depth, live, walk.chord[:chords]), joined


def linear_samples(
    walk, kind, first, second, value, inputs, x, coordinate, potential, begin, end, v, current, worst, relative
):  # fmt: skip
    """Branch currents of samples ``begin`` … ``end`` − 1 and their violations, one row of each result a sample.

    Parameters
    ----------
    walk : Walk
        From `spanning_tree`.
    value, inputs, x
        As in `circuitsim.engine.small.samples.solve_samples`.
    coordinate : (n_nodes,) int array
        Super-node of each node.
    potential : (n + 1, end − begin) float array
        Potentials of the super-nodes, V.
    v : (samples, n_nodes) float array
        Potentials of the nodes against their super-nodes, V; on return their potentials.
    current : (samples, m) float array
        Filled, A.
    worst, relative : (samples, 7), (samples, 8) float arrays
        Filled; the bound on the currents' errors comes last.
    """
    m, n = kind.size, v.shape[1]
    own, drop, low, carriers = value.copy(), np.empty(m), np.zeros(m), np.empty(m, np.int64)
    need, need_low, largest, at_node = np.empty(n), np.empty(n), np.empty(n), np.empty((2, n))
    for s in range(begin, end):
        for k in range(inputs.size):
            own[inputs[k]] = x[s, k]
        for k in range(n):
            v[s, k] += potential[coordinate[k], s - begin]
        i = current[s]
        for e in range(m):
            low[e] = 0.0
        count, _ = carry(kind, first, second, own, v[s], walk.chord, i, carriers)
        for attempt in range(PASSES):
            if attempt > 0:
                improve_chords(walk, kind, first, second, own, i, low, v[s])
            tree_currents(
                walk.order, walk.edge, walk.parent, first, second, carriers[:count], i, low, need, need_low, largest,
                0.0,
            )  # fmt: skip
            if attempt == 0:  # rarely good enough
                continue
            relative[s, 7] = prove_branches(
                walk, kind, first, second, own, i, low, v[s], drop, at_node, worst[s], relative[s, :7]
            )
            if relative[s, 7] <= ACCURATE:
                break


def improve_chords(walk, kind, first, second, value, current, low, v):
    """Fill in the chords' currents, A, as pairs of doubles that potentials along the tree ask for: closer to the exact
    ones where the chords' resistances are large against those of the tree."""
    ohms, emf, v_low = np.zeros(kind.size), np.zeros(kind.size), np.zeros(v.size)
    for e in range(kind.size):
        if kind[e] == VOLTAGE:
            emf[e] = value[e]
        elif kind[e] == RESISTOR:
            ohms[e] = value[e]
    tree_potentials(walk.order, walk.edge, walk.parent, first, ohms, emf, current, low, v, v_low)
    for k in range(walk.chord.size):
        e = walk.chord[k]
        a, b = first[e], second[e]
        w, w_low = add(v[a], v_low[a], -v[b], -v_low[b])
        c = w / ohms[e]
        d, d_low = multiply(ohms[e], c, 0.0)
        current[e], low[e] = add(c, 0.0, add(w, w_low, -d, -d_low)[0] / ohms[e], 0.0)
