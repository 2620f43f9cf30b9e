"""The spanning tree of a small circuit for refining branch currents (`circuitsim.engine.tree`).

It holds voltage constraints first, conducting diodes next, then resistors ascending in magnitude.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from circuitsim.circuit.elements import CURRENT, RESISTOR, VOLTAGE
from circuitsim.engine.tree import Branches, Tree, blank, grow, mark_live

LOWEST, HIGHEST = -1080, 1030
"""Range of the binary exponents of doubles."""


class Spanned(NamedTuple):
    """A circuit with its spanning tree from node 0."""

    tree: Tree
    branches: Branches
    live: np.ndarray  # (m,): resistors and sources that may carry current
    chord: np.ndarray  # resistors outside the tree that may carry current
    whole: bool  # whether all nodes are joined to node 0


def by_magnitude(elements, value):
    """Elements ordered by the binary exponents of their values, ascending, without infinite ones."""
    start = np.zeros(HIGHEST - LOWEST + 1, np.int64)
    count = 0
    for k in range(elements.size):
        if abs(value[elements[k]]) < np.inf:
            start[math.frexp(value[elements[k]])[1] - LOWEST + 1] += 1
            count += 1
    for k in range(HIGHEST - LOWEST):
        start[k + 1] += start[k]
    order = np.empty(count, np.int64)
    for k in range(elements.size):
        if abs(value[elements[k]]) < np.inf:
            at = math.frexp(value[elements[k]])[1] - LOWEST
            order[start[at]] = elements[k]
            start[at] += 1
    return order


def candidates(plan, value, closed):
    """Candidate elements of the tree, in order of preference."""
    ascending, fixed, count = by_magnitude(plan.resistor, value), plan.tree_edge, plan.tree_edge.size
    edges = np.empty(count + closed.size + ascending.size, np.int64)
    for k in range(count):
        edges[k] = fixed[k]
    for d in range(closed.size):
        if closed[d]:
            edges[count] = plan.diode[d]
            count += 1
    for k in range(ascending.size):
        edges[count] = ascending[k]
        count += 1
    return edges[:count]


def take_tree(plan, kind, first, second, value, closed):
    """A circuit with the tree for these conducting diodes."""
    m, n = kind.size, plan.coordinate.size
    ohms, emf, live = np.zeros(m), np.zeros(m), np.zeros(m, np.bool_)
    source, count = np.empty(m, np.int64), 0
    for e in range(m):
        if kind[e] == VOLTAGE:
            emf[e] = value[e]
        elif kind[e] == RESISTOR and abs(value[e]) < np.inf:
            ohms[e] = value[e]
        elif kind[e] == CURRENT:
            source[count] = e
            count += 1
        live[e] = ohms[e] != 0.0 or emf[e] != 0.0
    tree, branches = blank(n, m), Branches(first, second, ohms, emf)
    tree.order[0], tree.edge[0], tree.parent[0] = 0, -1, 0  # ground may be the only node
    grow(first, second, 0, np.zeros(n), candidates(plan, value, closed), tree)
    chord, whole = np.empty(m, np.int64), True
    for k in range(n):
        whole = whole and tree.root_of[k] == 0
    if whole:
        chords = outside(tree.inside, ohms, live, chord)
        mark_live(tree, branches, chord[:chords], source[:count], live)
    return Spanned(tree, branches, live, chord[: outside(tree.inside, ohms, live, chord)], whole)


def outside(inside, ohms, live, chord):
    """Fill in the ``live`` resistors outside the tree; returns their number."""
    count = 0
    for e in range(ohms.size):
        if live[e] and ohms[e] != 0.0 and not inside[e]:
            chord[count] = e
            count += 1
    return count
