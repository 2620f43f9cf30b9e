"""Currents where conducting diodes close loops: of all that are possible, those of least norm.

They are what wires of equal, vanishing resistance would carry: the operating point of a circuit in which each diode on
a loop is 1 Ω in series with an ideal diode. Such circuits are small as a rule: planned and solved at once.
"""

from __future__ import annotations

import numpy as np

from circuitsim._graphs import find
from circuitsim.circuit.elements import CURRENT, DIODE, RESISTOR
from circuitsim.engine.small.active_set import MAX_ITERATIONS, NOISE
from circuitsim.engine.small.plan import UPDATES, plan
from circuitsim.engine.small.samples import solve_samples
from circuitsim.engine.steps import gather

IDLE, CARRIES, ON_LOOP = 0, 1, 2
"""What a diode does: nothing, carries a current that is more than rounding; its ends are on a loop of equal potentials
(added to the others)."""
MOST = 300
"""Most diodes on loops that are worth a try."""
PASSES = 8
"""Most passes over the currents of loops; each resolves twelve decades more."""
ACCURATE = 1e-9
"""A pass counts if its certificate holds to this; what is left over is the next one's business."""


def loop_diodes(made, space, on_loop):
    """Mark the diodes on loops, given the forest at hand of all whose ends are equal.

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
    """Number the coordinates on loops from 1, the one of largest ``scale`` of each connected part 0.

    Parameters
    ----------
    part : (n + 1,) int array
        Filled: the root of each coordinate's part.
    number : (n + 1,) int array
        Filled; −1 off the loops.

    Returns
    -------
    int
        Numbers given, 0 included.
    """
    for k in range(part.size):
        part[k], number[k] = k, -1
    for d in range(on_loop.size):
        if on_loop[d]:
            a, c = made.coordinate[made.anode[d]], made.coordinate[made.cathode[d]]
            number[a] = number[c] = 0
            a, c = find(part, a), find(part, c)
            # The larger scale stands for both; of equals, the later one.
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


def share(made, space, state):
    """Replace the currents of diodes on loops by those of least norm.

    Parameters
    ----------
    made : Plan
    space : Workspace
        As `solve_sample` left it: the zero-voltage diodes, a forest that spans them, what the nodes need, and currents
        on that forest, which are changed.
    state : (d,) float array
        What each diode does on that forest, `IDLE` or `CARRIES`; changed for those on loops, with `ON_LOOP` added.

    Returns
    -------
    bool
        Whether that is done; False where loops are many, or go through voltage constraints.
    """
    equal, flow, on_loop = space.equal, space.flow, np.zeros(state.size, np.bool_)
    if not loop_diodes(made, space, on_loop):
        return False
    need, scale = space.change, space.w
    gather(made, space.need, need)
    gather(made, space.size, scale)
    edges = 0
    for d in range(equal.size):
        if on_loop[d] or state[d] == IDLE:
            edges += on_loop[d]
            flow[d] = 0.0
        else:
            need[made.coordinate[made.anode[d]]] -= flow[d]
            need[made.coordinate[made.cathode[d]]] += flow[d]
    if edges > MOST:
        return False
    part, number = np.empty(made.n + 1, np.int64), np.empty(made.n + 1, np.int64)
    left = np.zeros(number_loops(made, on_loop, scale, part, number))
    for k in range(number.size):
        if number[k] > 0 and abs(need[k]) > NOISE * scale[k]:
            left[number[k]] = need[k]
    chosen = np.empty(edges, np.int64)
    first, second = np.empty(edges, np.int64), np.empty(edges, np.int64)
    p = 0
    for d in range(equal.size):
        if on_loop[d]:
            chosen[p] = d
            first[p], second[p] = number[made.coordinate[made.anode[d]]], number[made.coordinate[made.cathode[d]]]
            p += 1
    carried = np.zeros(edges)
    if not carry_away(first, second, np.ones(edges, np.bool_), left, carried):
        return False
    for p in range(edges):
        d = chosen[p]
        flow[d] = carried[p]
        noise = NOISE * scale[part[made.coordinate[made.anode[d]]]]
        state[d] = ON_LOOP + (CARRIES if flow[d] > noise else IDLE)
    return True


def carry_away(first, second, one_way, need, carried):
    """Currents of least norm, in ``carried``, that carry ``need`` (A, by node; node 0 takes what is left) away; in
    edges ``one_way`` they are ≥ 0. False where that fails."""
    idle = np.empty(carried.size, np.bool_)
    for _ in range(PASSES):
        rest, through = need.copy(), np.zeros(need.size)
        for e in range(carried.size):
            rest[first[e]] -= carried[e]
            rest[second[e]] += carried[e]
            through[first[e]] += abs(carried[e])
            through[second[e]] += abs(carried[e])
        done = True
        for k in range(1, need.size):
            if abs(rest[k]) <= 10.0 * NOISE * max(through[k], abs(need[k])):
                rest[k] = 0.0
            else:
                done = False
        if done:
            return True
        for e in range(carried.size):
            idle[e] = one_way[e] and carried[e] <= 0.0
        good, found = least_norm(first, second, idle, rest)
        if not good:
            return False
        largest = 0.0
        for e in range(found.size):
            largest = max(largest, abs(found[e]))
        for e in range(found.size):
            if abs(found[e]) > NOISE * largest:
                carried[e] += found[e]
                if one_way[e]:
                    carried[e] = max(carried[e], 0.0)
    return True


def least_norm(first, second, one_way, need):
    """Currents of least norm that carry away ``need``, and whether they could be found.

    Parameters
    ----------
    first, second : (m,) int arrays
        Ends of the edges.
    one_way : (m,) bool array
        Edges whose currents first → second must be ≥ 0.
    need : (nodes,) float array
        Current that leaves each node through the edges, A; node 0 (of every connected part) takes what is left.

    Returns
    -------
    good : bool
    current : (m,) float array
        A.
    """
    m, count = first.size, need.size
    diodes, fed = 0, 0
    for e in range(m):
        diodes += one_way[e]
    for k in range(1, count):
        fed += need[k] != 0.0
    kind, value = np.empty(m + diodes + fed, np.int8), np.ones(m + diodes + fed)
    a, b = np.zeros(kind.size, np.int64), np.zeros(kind.size, np.int64)
    p = m
    for e in range(m):
        kind[e], a[e], b[e] = RESISTOR, first[e], second[e]
        if one_way[e]:
            middle = count + p - m
            kind[p], value[p], a[p], b[p] = DIODE, np.nan, middle, second[e]
            b[e] = middle
            p += 1
    for k in range(1, count):
        if need[k] != 0.0:
            kind[p], value[p], b[p] = CURRENT, need[k], k
            p += 1
    n_nodes = count + diodes
    made = plan(kind, a, b, value, n_nodes, np.zeros(n_nodes, np.bool_), UPDATES)
    v, current = np.empty((1, n_nodes)), np.empty((1, kind.size))
    worst, relative = np.empty((1, 7)), np.zeros((1, 8))
    status, iterations = np.empty(1, np.int64), np.empty(1, np.int64)
    good = made.resistor.size == m
    if good:
        solve_samples(
            made, kind, a, b, value, np.zeros(0, np.int64), np.zeros((1, 0)), MAX_ITERATIONS, False, 0, 1,
            np.zeros((1, diodes), np.bool_), v, current, worst, relative, status, iterations,
        )  # fmt: skip
    for k in range(7):
        # Potentials may be open where only idle diodes hold a node, but with a resistor in each edge its current is
        # unique.
        good = good and relative[0, k] <= ACCURATE
    return good, current[0, :m]
