"""Loops of conducting diodes: the diodes on them, and their net currents at the nodes.

The choice among the possible currents: `circuitsim.engine.small.least_norm`.
"""

from __future__ import annotations

import numpy as np

from circuitsim._graphs import find
from circuitsim.engine.small.active_set import NOISE
from circuitsim.engine.steps import gather

IDLE, CARRIES, ON_LOOP = 0, 1, 2
"""States of a diode: no current; a current above rounding; ends on a loop of equal potentials (added to the others)."""
MOST = 300
"""Maximum number of diodes on loops that are handled."""


def loop_diodes(made, space, on_loop):
    """Mark the diodes on loops, given the forest of all diodes with equal ends.

    False where voltage constraints could take part in a loop.
    """
    equal = space.equal
    n, found = made.n, space.grown[0] - 1
    node, parent, edge, _ = space.forest
    above, by, depth = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64), np.zeros(n + 1, np.int64)
    for k in range(found):
        above[node[k]], by[node[k]] = parent[k], edge[k]
        depth[node[k]] = depth[parent[k]] + 1
    nodes = np.zeros(n + 1, np.int64)
    for k in range(made.coordinate.size):
        nodes[made.coordinate[k]] += 1
    on_loop[:] = False
    for d in range(equal.size):
        if not equal[d] or space.spanned[d]:
            continue
        a, c = made.coordinate[made.anode[d]], made.coordinate[made.cathode[d]]
        if a == c or nodes[a] > 1 or nodes[c] > 1:
            return False
        on_loop[d] = True
        while a != c:
            if depth[a] < depth[c]:
                a, c = c, a
            on_loop[by[a]] = True
            a = above[a]
            if nodes[a] > 1:
                return False
    return True


def number_loops(made, on_loop, scale, part, number):
    """Number the coordinates on loops from 1, and from 0 the one of largest ``scale`` in each connected part.

    Parameters
    ----------
    part : (n + 1,) int array
        Overwritten: the root of each coordinate's part.
    number : (n + 1,) int array
        Overwritten; −1 off the loops.

    Returns
    -------
    int
        Number of numbers, 0 included.
    """
    for k in range(part.size):
        part[k], number[k] = k, -1
    for d in range(on_loop.size):
        if on_loop[d]:
            a, c = made.coordinate[made.anode[d]], made.coordinate[made.cathode[d]]
            number[a] = number[c] = 0
            a, c = find(part, a), find(part, c)
            # The larger scale represents both; of equals, the later one.
            if scale[a] < scale[c] or (scale[a] == scale[c] and a < c):
                a, c = c, a
            part[c] = a
    count = 1
    for k in range(part.size):
        part[k] = find(part, k)
        if number[k] == 0 and part[k] != k:
            number[k] = count
            count += 1
    return count


def find_loops(made, space, state):
    """The diodes on loops (``space.wanted``), as edges of a graph, and their net currents at the nodes.

    Parameters
    ----------
    made : Plan
    space : Workspace
        After `solve_sample`: the zero-voltage diodes, a forest that spans them, the needs of the nodes, and currents on
        that forest; those of idle diodes become 0. For diodes on loops ``space.noise`` becomes the current up to which
        they are idle, A.
    state : (d,) float array
        State of each diode on that forest, `IDLE` or `CARRIES`.

    Returns
    -------
    good : bool
        False where loops have more than `MOST` diodes, or contain voltage constraints; the rest is then empty.
    ends : (2, edges) int array
        Their anodes and cathodes, numbered from 0.
    need : float array
        Current that leaves each numbered node through these diodes, A; 0 at node 0, which takes the rest.
    """
    equal, flow, on_loop = space.equal, space.flow, space.wanted
    good, edges = loop_diodes(made, space, on_loop), 0
    for d in range(on_loop.size):
        edges += on_loop[d]
    if edges > MOST or not good:
        good, edges = False, 0
    ends = np.empty((2, edges), np.int64)
    if not good:
        return good, ends, np.zeros(1)
    need, scale = space.change, space.w
    gather(made, space.need, need)
    gather(made, space.size, scale)
    for d in range(equal.size):
        if on_loop[d] or state[d] == IDLE:
            flow[d] = 0.0
        else:
            need[made.coordinate[made.anode[d]]] -= flow[d]
            need[made.coordinate[made.cathode[d]]] += flow[d]
    part, number = np.empty(made.n + 1, np.int64), np.empty(made.n + 1, np.int64)
    left = np.zeros(number_loops(made, on_loop, scale, part, number))
    for k in range(number.size):
        if number[k] > 0 and abs(need[k]) > NOISE * scale[k]:
            left[number[k]] = need[k]
    p = 0
    for d in range(equal.size):
        if on_loop[d]:
            a, c = made.coordinate[made.anode[d]], made.coordinate[made.cathode[d]]
            ends[0, p], ends[1, p] = number[a], number[c]
            space.noise[d] = NOISE * scale[part[a]]
            p += 1
    return good, ends, left


def give(space, state, shares):
    """Assign the ``shares`` (edges,), A, to the diodes chosen by `find_loops`; fills in their ``state``."""
    p = 0
    for d in range(state.size):
        if space.wanted[d]:
            space.flow[d] = shares[p]
            state[d] = ON_LOOP + (CARRIES if shares[p] > space.noise[d] else IDLE)
            p += 1


def add_pass(ends, one_way, need, found, carried, rest):
    """Add the currents of one pass of `circuitsim.engine.small.least_norm.carry_away` to those carried, except
    rounding.

    Parameters
    ----------
    ends : (2 m,) int array
        The nodes where each edge begins, then those where it ends.
    one_way : (m,) bool array
        Edges whose currents must be ≥ 0.
    need : (nodes,) float array
        Current that leaves each node through the edges, A.
    found, carried : (m,) float arrays
        A.
    rest : (nodes,) float array
        Overwritten: the residual of ``need``, 0 where it is rounding.

    Returns
    -------
    bool
        Whether a residual remains, except at node 0.
    """
    m, most, through, left = one_way.size, 0.0, np.zeros(need.size), False
    for e in range(m):
        most = max(most, abs(found[e]))
    for k in range(need.size):
        rest[k] = need[k]
    for e in range(m):
        a, b = ends[e], ends[m + e]
        if abs(found[e]) > NOISE * most:
            carried[e] += found[e]
        if one_way[e] and carried[e] < 0.0:
            carried[e] = 0.0
        rest[a] -= carried[e]
        rest[b] += carried[e]
        through[a] += abs(carried[e])
        through[b] += abs(carried[e])
    for k in range(1, need.size):
        if abs(rest[k]) <= 10.0 * NOISE * max(through[k], abs(need[k])):
            rest[k] = 0.0
        left = left or rest[k] != 0.0
    return left
