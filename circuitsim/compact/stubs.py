"""Parts of a circuit that hang on one branch: nothing flows there, whatever the values are.

A resistor before a blocking diode is the usual case. Its potentials differ by rounding, which as a current would be
wrong by any scale of its own. As long as conducting diodes stay the same, so do these parts: they are kept in the
workspace.
"""

from __future__ import annotations

import numpy as np

from circuitsim.circuit.elements import CURRENT, DIODE, RESISTOR, VOLTAGE
from circuitsim.compact.settle import copy, same


def join(degree, link, e, a, b):
    """Count a branch at its ends."""
    degree[a] += 1
    degree[b] += 1
    link[a] ^= e
    link[b] ^= e


def take_stubs(plan, space, kind, first, second, value, closed):
    """The nodes beyond which the circuit ends with these diodes conducting, in ``space.stubs``; returns how many.

    Leaves of the graph of conducting branches are taken off one after the other; node 0 and the ends of current sources
    stay.
    """
    stubs = space.stubs
    if stubs.count[0] > 0 and same(stubs.closed, closed):
        return stubs.count[0] - 1
    n, found = stubs.node.size, 0
    # Of each node: its branches, and the exclusive or of their numbers, which for a leaf is its branch.
    degree, link = np.zeros(n, np.int64), np.zeros(n, np.int64)
    for e in range(kind.size):
        a, b = first[e], second[e]
        if kind[e] == CURRENT:
            degree[a] += 2
            degree[b] += 2
        elif kind[e] != DIODE and (kind[e] != RESISTOR or abs(value[e]) < np.inf):
            join(degree, link, e, a, b)
    for d in range(closed.size):
        if closed[d]:
            join(degree, link, plan.diode[d], plan.anode[d], plan.cathode[d])
    degree[0] += 2
    still = stubs.still
    for k in range(n):
        still[k] = False
    for k in range(n):
        u = k
        while degree[u] == 1:
            e = link[u]
            p = first[e] + second[e] - u
            stubs.node[found], stubs.above[found], stubs.edge[found] = u, p, e
            still[u] = True
            found += 1
            degree[u] = 0
            degree[p] -= 1
            link[p] ^= e
            u = p
    stubs.count[0] = found + 1
    copy(closed, stubs.closed)
    return found


def level(stubs, count, kind, first, value, v):
    """Make potentials of the ``count`` nodes follow from the circuit that they hang on, V; all voltages there but those
    of sources are zero."""
    for k in range(count - 1, -1, -1):
        u, p, e = stubs.node[k], stubs.above[k], stubs.edge[k]
        held = 0.0
        if kind[e] == VOLTAGE:
            held = value[e] if first[e] == u else -value[e]
        v[u] = v[p] + held
