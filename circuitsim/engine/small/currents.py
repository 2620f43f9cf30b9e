"""Branch currents of a sample from its potentials, in one pass, and one step of iterative refinement.

Potentials in doubles do not resolve the drop across a wire with a small current. One correction, for the residual
currents at the nodes, does; potentials are then sums of two doubles.

Pendant nodes have one neighbour in the conducting graph: their resistors carry no current, whatever their values. The
usual case is a resistor in series with a blocking diode. Rounding makes the two node voltages differ, and the current
of that difference would be wrong at any scale. Nodes joined by conducting diodes or shorts count as one. The result
depends only on the set of conducting diodes and is kept in the workspace.
"""

from __future__ import annotations

import numpy as np

from circuitsim._graphs import unite
from circuitsim.certificate import ROUNDING, branch_violations, current_scale, net_currents
from circuitsim.circuit.elements import CURRENT, RESISTOR, VOLTAGE
from circuitsim.engine.small.active_set import refactor
from circuitsim.engine.small.elimination import substitute
from circuitsim.engine.steps import contract_diodes, copy, demands, gather, same
from circuitsim.program.precise import add, two_product

BLOCKED = -(1 << 40)
"""Offset of a node's resistor count that exempts it from removal."""


def neighbours(plan, closed, leader, count, total, squares):
    """Fill in, for each node, the smallest node of its class (nodes joined by conducting diodes and shorts), and for
    each class the number of resistors, the sum of the classes at their other ends, and the sum of the squares of these.

    `BLOCKED` exempts terminals of sources, ground, and classes of several nodes.
    """
    kind, first, second = plan.kind, plan.first, plan.second
    for k in range(leader.size):
        leader[k] = k
    for d in range(closed.size):
        if closed[d]:
            unite(leader, plan.anode[d], plan.cathode[d])
    for e in plan.tree_edge:
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
            if a != b:
                count[a] += 1
                count[b] += 1
                total[a] += b
                total[b] += a
                squares[a] += b * b
                squares[b] += a * a
        elif kind[e] == CURRENT or kind[e] == VOLTAGE:
            count[a] += BLOCKED
            count[b] += BLOCKED


def find_pendant(plan, space):
    """Find the pendant nodes for these conducting diodes, in ``space.pendant``; returns their number.

    Leaves are removed one after another. All neighbours of a node are the same iff (Σ x)² = n Σ x² (Cauchy–Schwarz).
    """
    pendant, closed = space.pendant, space.closed
    if pendant.found[0] > 0 and same(pendant.closed, closed):
        return pendant.found[0] - 1
    n, found, member = pendant.node.size, 0, pendant.member
    leader, count, total, squares = pendant.work[0], pendant.work[1], pendant.work[2], pendant.work[3]
    pendant.work[:] = 0
    neighbours(plan, closed, leader, count, total, squares)
    member[:] = False
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


def pendant_nodes(space):
    """Whether each node (n,) is pendant, by `find_pendant`; all false where it has not run for these diodes."""
    pendant = space.pendant
    if pendant.found[0] == 0 or not same(pendant.closed, space.closed):
        pendant.found[0] = 0
        pendant.member[:] = False
    return pendant.member


def copy_neighbours(pendant, v):
    """Give pendant nodes the voltages of their neighbours, V; returns whether any voltage changed."""
    changed = False
    for k in range(pendant.found[0] - 2, -1, -1):
        changed = changed or v[pendant.node[k]] != v[pendant.above[k]]
        v[pendant.node[k]] = v[pendant.above[k]]
    return changed


ACCURATE = 1e-9
"""Largest bound on the error of a current, relative to the largest one at its ends, that needs no refinement."""

STRAY = 0.5
"""The residual of a pendant node is all of its current: at least this fraction of the largest current there."""


def branch_currents(plan, space, value, v, current):
    """Branch currents of all elements in SPICE signs, A: resistors by Ohm's law, sources, diodes, and then the voltage
    constraints by leaf elimination along their trees.

    Parameters
    ----------
    space : Workspace
        With the low-order parts of the potentials, V, and the diode currents, A; its ``need`` is filled with the
        residual at the roots of these trees, A.
    v : (n_nodes,) float array
        Potentials, V.

    Returns
    -------
    float
        The smallest |current|, A, excluding blocking diodes and current sources of 0 A.
    """
    kind, first, second, low, flow, need = plan.kind, plan.first, plan.second, space.low, space.flow, space.need
    need[:] = 0.0
    least = np.inf
    for e in range(kind.size):
        a, b, c = first[e], second[e], 0.0
        if kind[e] == RESISTOR and value[e] != 0.0:
            c = ((v[a] - v[b]) + (low[a] - low[b])) / value[e]
            least = min(least, abs(c))
        elif kind[e] == CURRENT:
            c = value[e]
            if c != 0.0:
                least = min(least, abs(c))
        current[e] = c
        need[a] -= c
        need[b] += c
    for d in range(flow.size):
        if flow[d] > 0.0:
            least = min(least, flow[d])
            current[plan.diode[d]] = flow[d]
            need[plan.anode[d]] -= flow[d]
            need[plan.cathode[d]] += flow[d]
    for k in range(plan.tree_node.size - 1, -1, -1):
        u, w, e = plan.tree_parent[k], plan.tree_node[k], plan.tree_edge[k]
        current[e] = need[w] if first[e] == w else -need[w]
        least = min(least, abs(need[w]))
        need[u] += need[w]
        need[w] = 0.0
    return least


def residual_currents(plan, space, value, v):
    """Fill in ``space.need``, the residual currents at the roots of the trees, A, summed in pairs of doubles.
    They exclude the rounding of the currents themselves, which would shift potentials of weakly tied parts.
    """
    kind, first, second, low, flow = plan.kind, plan.first, plan.second, space.low, space.flow
    need, rest = space.need, space.at_node[1]
    need[:] = 0.0
    rest[:] = 0.0
    for e in range(kind.size):
        a, b, c, c_low = first[e], second[e], 0.0, 0.0
        if kind[e] == RESISTOR and value[e] != 0.0:
            drop, drop_low = add(v[a], low[a], -v[b], -low[b])
            c = drop / value[e]
            back, error = two_product(value[e], c)
            c_low = ((drop - back) - error + drop_low) / value[e]
            if not abs(c_low) < np.inf:
                c_low = 0.0
        elif kind[e] == CURRENT:
            c = value[e]
        need[a], rest[a] = add(need[a], rest[a], -c, -c_low)
        need[b], rest[b] = add(need[b], rest[b], c, c_low)
    for d in range(flow.size):
        if flow[d] > 0.0:
            a, b = plan.anode[d], plan.cathode[d]
            need[a], rest[a] = add(need[a], rest[a], -flow[d], 0.0)
            need[b], rest[b] = add(need[b], rest[b], flow[d], 0.0)
    for k in range(plan.tree_node.size - 1, -1, -1):
        u, w = plan.tree_parent[k], plan.tree_node[k]
        need[u], rest[u] = add(need[u], rest[u], need[w], rest[w])
        need[w] = 0.0


def correct(plan, space, value, v, current):
    """Correct the potentials for the residual currents (`residual_currents`): fills in ``space.low``, the diode
    currents in ``space.flow`` and the branch currents; ``v`` becomes the rounded sums.

    Returns whether a factor is available.
    """
    factor = refactor(plan, space, space.closed)
    if factor < 0:
        return False
    forest, change, low = contract_diodes(plan, space), space.change, space.low
    residual_currents(plan, space, value, v)
    gather(plan, space.need, change)
    change[plan.n] = 0.0
    substitute(plan, space.multiplier[factor], space.pivot[factor], change, space.floating_current)
    left = space.at_node[0]
    for k in range(v.size):
        low[k] = change[forest.last[plan.coordinate[k]]]
        left[k] = space.need[k]
    copy_neighbours(space.pendant, low)
    if forest.node.size > 0:
        demands(plan, space.g, low, left, space.need, space.size)
        gather(plan, space.need, change)
    for k in range(forest.node.size - 1, -1, -1):
        d, u, w = forest.diode[k], forest.parent[k], forest.node[k]
        space.flow[d] += change[w] if plan.coordinate[plan.anode[d]] == w else -change[w]
        change[u] += change[w]
    for k in range(v.size):
        total = v[k] + low[k]
        low[k] -= total - v[k]
        v[k] = total
    branch_currents(plan, space, value, v, current)
    return True


def reach(plan, space):
    """The potentials of the coordinates for 1 A into each node, V, where some part is weakly tied (`TIED`); else 0."""
    factor = refactor(plan, space, space.closed)
    found = space.reach[max(factor, 0)]
    if factor < 0:
        found[:] = np.inf
    elif not space.reached[factor]:
        change = space.change
        change[:] = 0.0
        for k in plan.coordinate:
            change[k] += 1.0
        change[plan.n] = 0.0
        substitute(plan, space.multiplier[factor], space.pivot[factor], change, space.floating_current)
        for k in range(found.size):
            found[k] = change[k]
        space.reached[factor] = True
    return found


def bounded(plan, space, v, left, total, least, ohms):
    """Whether net currents of at most ``left`` at a node and ``total`` in all, A, prove all currents and potentials.

    Each to `ACCURATE`: currents relative to their `circuitsim.certificate.current_scale`, at least ``least``,
    potentials relative to themselves. ``ohms`` is the `reach`, which bounds the potential errors where some part is
    weakly tied, since potentials increase with all node currents.
    """
    last, largest, most = space.forest.last, space.at_node[1], 0.0
    for k in range(v.size):
        most = max(most, largest[k])
    off, proven = (left + ROUNDING * most) / ACCURATE, total <= ACCURATE * least
    for k in range(v.size):
        j = last[plan.coordinate[k]]
        proven = proven and not (j < plan.n and off * ohms[j] > abs(v[k]) and largest[k] > 0.0)
    return proven


def least_scale(plan, value, current, largest):
    """The smallest `circuitsim.certificate.current_scale` of all currents, A, given the largest at each node; whether
    some resistor carries nothing where nothing flows at either end."""
    least, idle = np.inf, False
    for e in range(current.size):
        local = max(largest[plan.first[e]], largest[plan.second[e]])
        if current[e] != 0.0:
            least = min(least, current_scale(abs(current[e]), local))
        elif local == 0.0 and plan.kind[e] == RESISTOR and value[e] != 0.0:
            idle = True
    return least, idle


def measure(plan, space, value, v, current, worst, relative):
    """Fill in a sample's branch currents and residuals, and correct its potentials ``v`` (n_nodes,), V, where they are
    too coarse; returns the bound on the currents' errors (`circuitsim.certificate.branch_violations`)."""
    first, second = plan.first, plan.second
    ohms = reach(plan, space)
    space.low[:] = 0.0
    least = branch_currents(plan, space, value, v, current)
    worst[0], relative[0], total = net_currents(first, second, current, space.at_node)
    proven = total < ACCURATE * least and bounded(plan, space, v, worst[0], total, least, ohms)
    if total < np.inf and not proven:
        least, idle = least_scale(plan, value, current, space.at_node[1])
        if not idle and relative[0] < STRAY:
            space.pendant.found[0] = 0  # nothing is pendant
        else:
            find_pendant(plan, space)
            if copy_neighbours(space.pendant, v):
                branch_currents(plan, space, value, v, current)
                worst[0], relative[0], total = net_currents(first, second, current, space.at_node)
                least, _ = least_scale(plan, value, current, space.at_node[1])
        proven = bounded(plan, space, v, worst[0], total, least, ohms)
        if not proven and correct(plan, space, value, v, current):
            worst[0], relative[0], total = net_currents(first, second, current, space.at_node)
    return branch_violations(
        plan.kind,
        first,
        second,
        value,
        v,
        space.low,
        pendant_nodes(space),
        current,
        space.at_node,
        total,
        worst,
        relative,
    )


def largest(relative):
    """The largest of 7 residuals."""
    error = 0.0
    for k in range(7):
        error = max(error, relative[k])
    return error
