"""Branch currents refined in branch variables (`circuitsim.engine.tree`), with the factor at hand.

Where potentials in doubles do not resolve the drops, currents that are differences of potentials are wrong. Here the
currents of a spanning tree's chords are corrected until they are right by their own scale; all others follow from them.
"""

from __future__ import annotations

import math

import numpy as np

from circuitsim.circuit.elements import CURRENT, VOLTAGE
from circuitsim.compact.linear import substitute
from circuitsim.compact.plan import Tracks, incident
from circuitsim.compact.settle import close, refactor
from circuitsim.engine.tree import (
    correct_chords,
    differences,
    loop_residuals,
    node_maxima,
    tree_currents,
    tree_potentials,
)

LOCAL = 1e-12
"""Accuracy of a current against the largest current at its ends."""
OVERALL = 1e-22
"""A current below this share of the largest of all that each correction shrinks by `SHRINKS` is zero."""
SHRINKS = 1e-3
RESOLUTION = 1e-28
"""A sum of currents below this share of the largest among them is rounding of pairs of doubles."""
STEPS = 8
"""Most corrections; circuits that need more go to the engine."""
LOWEST, HIGHEST = -1080, 1030
"""Range of the binary exponents of doubles."""


def by_magnitude(elements, value):
    """Elements in the order of their values' binary exponents, ascending."""
    start = np.zeros(HIGHEST - LOWEST + 1, np.int64)
    for k in range(elements.size):
        start[math.frexp(value[elements[k]])[1] - LOWEST + 1] += 1
    for k in range(HIGHEST - LOWEST):
        start[k + 1] += start[k]
    order = np.empty(elements.size, np.int64)
    for k in range(elements.size):
        at = math.frexp(value[elements[k]])[1] - LOWEST
        order[start[at]] = elements[k]
        start[at] += 1
    return order


def span(n, first, second, edges, inside):
    """Kruskal's spanning forest of ``edges`` in the order given, marked in ``inside``, walked from node 0.

    Returns
    -------
    order, edge, parent : int arrays
        As in `circuitsim.engine.tree.tree_currents`; shorter than n where not all nodes are joined to node 0.
    """
    leader, kept, count = np.empty(n, np.int64), np.empty(n, np.int64), 0
    for k in range(n):
        leader[k] = k
    for k in range(edges.size):
        e = edges[k]
        a, b = first[e], second[e]
        while leader[a] != a:
            leader[a] = leader[leader[a]]
            a = leader[a]
        while leader[b] != b:
            leader[b] = leader[leader[b]]
            b = leader[b]
        if a != b:
            leader[max(a, b)] = min(a, b)
            kept[count] = e
            inside[e] = True
            count += 1
    a, b = np.empty(count, np.int64), np.empty(count, np.int64)
    for k in range(count):
        a[k], b[k] = first[kept[k]], second[kept[k]]
    tracks = Tracks(np.empty(n + 1, np.int64), np.empty(n, np.int64), np.empty(2 * n, np.int64), np.empty(n, np.int64))
    incident(n, count, a, b, tracks)
    order, edge, parent = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    order[0], edge[0], parent[0] = 0, -1, 0
    visited, found = 0, 1
    while visited < found:
        u = order[visited]
        up = edge[visited]
        visited += 1
        for p in range(tracks.ptr[u], tracks.ptr[u + 1]):
            k = tracks.edge[p]
            if kept[k] != up:
                order[found], edge[found], parent[found] = a[k] + b[k] - u, kept[k], u
                found += 1
    return order[:found], edge[:found], parent[:found]


def refine(plan, space, kind, first, second, value, closed, signs, v, current):
    """Refine a sample's currents and potentials at its conducting diodes.

    Parameters
    ----------
    closed : (d,) bool array
        Conducting diodes, without loops.
    signs : bool
        Whether the diodes' currents and voltages must have the right signs.
    v : (n_nodes,) float array
        Potentials to start from, V; filled.
    current : (m,) float array
        Filled: branch currents, A.

    Returns
    -------
    bool
        Whether all currents are right by their own scale, and so are the diodes' states.
    """
    m, n, d = kind.size, v.size, closed.size
    factor = refactor(plan, space, closed)
    if factor < 0:
        return False
    forest = close(plan, space, closed)
    ohms, emf = np.zeros(m), np.zeros(m)
    fixed, resistors = plan.tree_edge, plan.resistor
    edges, count = np.empty(fixed.size + d + resistors.size, np.int64), 0
    for k in range(fixed.size):
        edges[count] = fixed[k]
        count += 1
        if kind[fixed[k]] == VOLTAGE:
            emf[fixed[k]] = value[fixed[k]]
    for k in range(d):
        if closed[k]:
            edges[count] = plan.diode[k]
            count += 1
    ascending = by_magnitude(resistors, value)
    for k in range(resistors.size):
        edges[count] = ascending[k]
        count += 1
        ohms[resistors[k]] = value[resistors[k]]
    inside = np.zeros(m, np.bool_)
    order, edge, parent = span(n, first, second, edges[:count], inside)
    if order.size < n:
        return False
    depth, edge_of, parent_of = np.zeros(n, np.int64), np.full(n, -1, np.int64), np.zeros(n, np.int64)
    for k in range(1, n):
        u = order[k]
        depth[u], edge_of[u], parent_of[u] = depth[parent[k]] + 1, edge[k], parent[k]
    low, carriers, chords = np.zeros(m), np.empty(m, np.int64), np.empty(resistors.size, np.int64)
    count, most = 0, 0.0
    for k in range(resistors.size):
        e = resistors[k]
        if not inside[e] and first[e] != second[e]:
            chords[count] = carriers[count] = e
            current[e] = (v[first[e]] - v[second[e]]) / value[e]
            most = max(most, abs(current[e]))
            count += 1
        else:
            current[e] = 0.0
    chords = chords[:count]
    for e in range(m):
        if kind[e] == CURRENT:
            current[e] = value[e]
            carriers[count] = e
            most = max(most, abs(value[e]))
            count += 1
    carriers = carriers[:count]
    last = np.empty(n, np.int64)
    for k in range(n):
        last[k] = forest.last[plan.coordinate[k]]
    need, need_low, largest, at_node = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    v_low, residual, before, x = np.zeros(n), np.empty(chords.size), np.empty(chords.size), np.empty(plan.n + 1)
    v[0] = 0.0
    share, steps, done = 0.0, 0, chords.size == 0
    while True:
        if done:
            share = RESOLUTION
        tree_currents(order, edge, parent, first, second, carriers, current, low, need, need_low, largest, share)
        tree_potentials(order, edge, parent, first, ohms, emf, current, low, v, v_low)
        if done or steps == STEPS:
            break
        loop_residuals(
            chords, first, second, plan.coordinate, ohms, emf, current, low, v, v_low, depth, edge_of, parent_of, residual, x
        )  # fmt: skip
        x[plan.n] = 0.0
        substitute(plan, space.multiplier[factor], space.pivot[factor], x, space.stranded)
        for k in range(chords.size):
            before[k] = current[chords[k]]
        correct_chords(chords, first, second, last, ohms, residual, x, current, low)
        steps += 1
        node_maxima(first, second, current, at_node)
        done = steps > 1
        for k in range(chords.size):
            e = chords[k]
            size, change = abs(current[e]), abs(current[e] - before[k])
            local = max(at_node[first[e]], at_node[second[e]])
            if size <= SHRINKS * abs(before[k]) and (size <= OVERALL * most or size <= LOCAL * 0.1 * local):
                if steps > 1:
                    current[e] = low[e] = 0.0
                else:
                    done = False
            elif not change <= LOCAL * local:
                done = False
    if not done:
        return False
    if signs:
        drop = np.empty(d)
        differences(plan.anode, plan.cathode, v, v_low, drop)
        for k in range(d):
            # A closed diode without a current may leave potentials open.
            if (closed[k] and not current[plan.diode[k]] > 0.0) or (not closed[k] and not drop[k] <= 0.0):
                return False
    for k in range(d):
        space.flow[k] = current[plan.diode[k]] if closed[k] else 0.0
        if not closed[k]:
            current[plan.diode[k]] = 0.0
    return True
