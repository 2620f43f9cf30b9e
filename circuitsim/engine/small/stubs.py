"""Pendant nodes, with one neighbour: no current flows in the resistors to it, whatever their values are.

A resistor before a blocking diode is the usual case. Its potentials differ by rounding, which as a current would be
wrong by any scale of its own. Nodes joined by conducting diodes or shorts count as one. As long as the same diodes
conduct, the same nodes hang so: they are kept in the workspace.
"""

from __future__ import annotations

import numpy as np

from circuitsim._graphs import unite
from circuitsim.circuit.elements import CURRENT, RESISTOR, VOLTAGE
from circuitsim.engine.steps import copy, same

BLOCKED = -(1 << 40)
"""Added to the number of branches of a node that stays."""


def neighbours(plan, kind, first, second, value, closed, leader, count, total, squares):
    """Fill in the least node of those that conducting diodes and shorts join, for each node: its class; and how many
    resistors each class has, the sum of the classes at their other ends, and of their squares. `BLOCKED` marks ends of
    sources, ground, and classes of several nodes."""
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


def take_stubs(plan, space, kind, first, second, value, closed):
    """Find the pendant nodes with these diodes conducting, in ``space.stubs``; returns how many.

    They are taken off one after the other. All neighbours of a node are one where (Σ x)² = n Σ x².
    """
    stubs = space.stubs
    if stubs.found[0] > 0 and same(stubs.closed, closed):
        return stubs.found[0] - 1
    n, found, still = stubs.node.size, 0, stubs.still
    leader, count, total, squares = stubs.work[0], stubs.work[1], stubs.work[2], stubs.work[3]
    stubs.work[:] = 0
    neighbours(plan, kind, first, second, value, closed, leader, count, total, squares)
    for k in range(n):
        still[k] = False
    for k in range(n):
        u = k
        while count[u] > 0 and total[u] * total[u] == count[u] * squares[u]:
            p = total[u] // count[u]
            stubs.node[found], stubs.above[found] = u, p
            still[u] = True
            found += 1
            count[p] -= count[u]
            total[p] -= count[u] * u
            squares[p] -= count[u] * u * u
            count[u] = 0
            u = p
    stubs.found[0] = found + 1
    copy(closed, stubs.closed)
    return found


def still_nodes(stubs, closed):
    """Whether each node is one of those that `take_stubs` has found with these diodes conducting; none is where it has
    looked with others, or not at all."""
    if stubs.found[0] == 0 or not same(stubs.closed, closed):
        stubs.found[0] = 0
        for k in range(stubs.still.size):
            stubs.still[k] = False
    return stubs.still


def level(stubs, v):
    """Give pendant nodes the voltages of their neighbours, V; returns whether any had another one."""
    changed = False
    for k in range(stubs.found[0] - 2, -1, -1):
        changed = changed or v[stubs.node[k]] != v[stubs.above[k]]
        v[stubs.node[k]] = v[stubs.above[k]]
    return changed
