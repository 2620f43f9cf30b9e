"""Pendant nodes (one neighbour in the conducting graph): their resistors carry no current, whatever their values.

The usual case is a resistor in series with a blocking diode. Rounding makes the two node voltages differ, and the
current of that difference would be wrong at any scale. Nodes joined by conducting diodes or shorts count as one. The
result depends only on the set of conducting diodes and is kept in the workspace.
"""

from __future__ import annotations

import numpy as np

from circuitsim._graphs import unite
from circuitsim.circuit.elements import CURRENT, RESISTOR, VOLTAGE
from circuitsim.engine.steps import copy, same

BLOCKED = -(1 << 40)
"""Offset of a node's resistor count that exempts it from removal."""


def neighbours(plan, kind, first, second, value, closed, leader, count, total, squares):
    """Fill in, for each node, the smallest node of its class (nodes joined by conducting diodes and shorts), and for
    each class the number of resistors, the sum of the classes at their other ends, and the sum of the squares of these.

    `BLOCKED` exempts terminals of sources, ground, and classes of several nodes.
    """
    for k in range(leader.size):
        leader[k] = k
    for d in range(closed.size):
        if closed[d]:
            unite(leader, plan.anode[d], plan.cathode[d])
    for k in range(plan.tree_edge.size):
        e = plan.tree_edge[k]
        if kind[e] != VOLTAGE:
            unite(leader, first[e], second[e])
    for k in range(leader.size):  # a leader is never above its class
        leader[k] = leader[leader[k]]
    count[0] = BLOCKED
    for k in range(leader.size):
        if leader[k] != k:
            count[leader[k]] += BLOCKED
    for e in range(kind.size):
        a, b = leader[first[e]], leader[second[e]]
        if kind[e] == RESISTOR:
            if a != b and abs(value[e]) < np.inf:
                count[a] += 1
                count[b] += 1
                total[a] += b
                total[b] += a
                squares[a] += b * b
                squares[b] += a * a
        elif kind[e] == CURRENT or kind[e] == VOLTAGE:
            count[a] += BLOCKED
            count[b] += BLOCKED


def find_pendant(plan, space, kind, first, second, value, closed):
    """Find the pendant nodes for these conducting diodes, in ``space.pendant``; returns their number.

    Leaves are removed one after another. All neighbours of a node are the same iff (Σ x)² = n Σ x² (Cauchy–Schwarz).
    """
    pendant = space.pendant
    if pendant.found[0] > 0 and same(pendant.closed, closed):
        return pendant.found[0] - 1
    n, found, member = pendant.node.size, 0, pendant.member
    leader, count, total, squares = pendant.work[0], pendant.work[1], pendant.work[2], pendant.work[3]
    pendant.work[:] = 0
    neighbours(plan, kind, first, second, value, closed, leader, count, total, squares)
    for k in range(n):
        member[k] = False
    for k in range(n):
        u = k
        while count[u] > 0 and total[u] * total[u] == count[u] * squares[u]:
            p = total[u] // count[u]
            pendant.node[found], pendant.above[found] = u, p
            member[u] = True
            found += 1
            count[p] -= count[u]
            total[p] -= count[u] * u
            squares[p] -= count[u] * u * u
            count[u] = 0
            u = p
    pendant.found[0] = found + 1
    copy(closed, pendant.closed)
    return found


def pendant_nodes(pendant, closed):
    """Whether each node (n,) is pendant, by `find_pendant`; all false where it has not run for these diodes."""
    if pendant.found[0] == 0 or not same(pendant.closed, closed):
        pendant.found[0] = 0
        for k in range(pendant.member.size):
            pendant.member[k] = False
    return pendant.member


def copy_neighbours(pendant, v):
    """Give pendant nodes the voltages of their neighbours, V; returns whether any voltage changed."""
    changed = False
    for k in range(pendant.found[0] - 2, -1, -1):
        changed = changed or v[pendant.node[k]] != v[pendant.above[k]]
        v[pendant.node[k]] = v[pendant.above[k]]
    return changed
