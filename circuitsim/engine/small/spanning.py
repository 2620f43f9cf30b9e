"""The spanning tree of a small circuit along which branch currents are refined (`circuitsim.engine.tree`).

It holds voltage constraints first, conducting diodes next, then resistors ascending in magnitude. As long as
conductances and conducting diodes stay the same, so does the tree: it is kept in the workspace.
"""

from __future__ import annotations

import math

import numpy as np

from circuitsim._graphs import Tracks, choose_forest, find, incident
from circuitsim.circuit.elements import CURRENT, RESISTOR, VOLTAGE
from circuitsim.engine.steps import copy, same
from circuitsim.engine.tree import join

LOWEST, HIGHEST = -1080, 1030
"""Range of the binary exponents of doubles."""


def by_magnitude(elements, value):
    """Elements in the order of their values' binary exponents, ascending; infinite ones left out."""
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
    """The elements that the tree may hold, the preferred ones first."""
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


def span(first, second, kept, walk):
    """Root the tree of the edges ``kept`` at node 0: fills in ``walk``, breadth first.

    Returns
    -------
    int
        Nodes that are joined to node 0.
    """
    n, count = walk.above.size, kept.size
    a, b = np.empty(count, np.int64), np.empty(count, np.int64)
    for k in range(count):
        a[k], b[k] = first[kept[k]], second[kept[k]]
    tracks = Tracks(np.empty(n + 1, np.int64), np.empty(n, np.int64), np.empty(2 * n, np.int64), np.empty(n, np.int64))
    incident(n, count, a, b, tracks)
    order, edge, parent = walk.order, walk.edge, walk.parent
    order[0], edge[0], parent[0] = 0, -1, 0
    walk.above[0], walk.depth[0] = 0, 0
    visited, found = 0, 1
    while visited < found:
        u, up = order[visited], edge[visited]
        visited += 1
        for p in range(tracks.ptr[u], tracks.ptr[u + 1]):
            k = tracks.edge[p]
            if kept[k] != up:
                v = a[k] + b[k] - u
                order[found], edge[found], parent[found] = v, kept[k], u
                walk.above[v], walk.depth[v] = u, walk.depth[u] + 1
                found += 1
    return found


def contract(kind, value, walk, node, top, depth):
    """Fill in for each node the one that stands for all joined to it by conducting diodes and shorts, and for these the
    next one above and the number of those above."""
    node[0], top[0], depth[0] = 0, 0, 0
    for j in range(1, node.size):
        u, e, p = walk.order[j], walk.edge[j], node[walk.parent[j]]
        ohmic = kind[e] == RESISTOR and value[e] != 0.0
        node[u] = u if ohmic or kind[e] == VOLTAGE else p
        top[u], depth[u] = p, depth[p] + 1


def find_live(plan, kind, first, second, value, walk):
    """Mark the branches in a biconnected component with a source, where conducting diodes and shorts make nodes one: no
    other resistor carries current. Returns how many resistors outside the tree are among them."""
    n = walk.above.size
    leader, top, inside = np.empty(n, np.int64), np.empty(n, np.int64), np.zeros(kind.size, np.bool_)
    node, depth = np.empty(n, np.int64), np.empty(n, np.int64)
    contract(kind, value, walk, node, top, depth)
    for k in range(n):
        leader[k] = k
    for j in range(1, n):
        inside[walk.edge[j]] = True
    chord, count = walk.chord, 0
    looped, fed = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    for k in range(plan.resistor.size):
        e = plan.resistor[k]
        a, b = node[first[e]], node[second[e]]
        if not inside[e] and a != b and abs(value[e]) < np.inf:
            chord[count] = e
            count += 1
            looped[join(depth, leader, top, a, b)] = True
    for e in range(kind.size):
        a, b = node[first[e]], node[second[e]]
        if kind[e] == CURRENT and a != b:
            name = join(depth, leader, top, a, b)
            looped[name] = fed[name] = True
    for j in range(1, n):
        if kind[walk.edge[j]] == VOLTAGE:
            fed[walk.order[j]] = True
    for k in range(n):  # marks of classes that were joined later
        name = find(leader, k)
        looped[name] = looped[name] or looped[k]
        fed[name] = fed[name] or fed[k]
    for k in range(n):
        name = find(leader, k)
        walk.live[k] = k > 0 and node[k] == k and looped[name] and fed[name]
    live = 0
    for j in range(count):
        a, b = node[first[chord[j]]], node[second[chord[j]]]
        if walk.live[a if depth[a] >= depth[b] else b] != 0:
            chord[live] = chord[j]
            live += 1
    return live


def take_tree(plan, space, kind, first, second, value, closed):
    """The tree with these diodes conducting, in ``space.walk``: the one at hand or a new one.

    Returns
    -------
    int
        Chords that may carry current; −1 where some node is not joined to node 0.
    """
    if space.walked[0] > 0 and same(space.walked_with, closed):
        return space.walked[1]
    n = space.walk.above.size
    kept = np.empty(n, np.int64)
    count = choose_forest(n, first, second, candidates(plan, value, closed), kept)
    found = span(first, second, kept[:count], space.walk)
    space.walked[0] = 1
    space.walked[1] = find_live(plan, kind, first, second, value, space.walk) if found == n else -1
    copy(closed, space.walked_with)
    return space.walked[1]
