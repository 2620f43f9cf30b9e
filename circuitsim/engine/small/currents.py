"""Branch currents of a sample from its potentials, in one pass, and one step of iterative refinement.

Potentials in doubles do not resolve the drop of a wire that carries little. What the currents leave over at the nodes
is then solved for once more; the sum of both potentials does.
"""

from __future__ import annotations

import numpy as np

from circuitsim.certificate import ROUNDING, branch_violations, current_scale, net_currents
from circuitsim.circuit.elements import CURRENT, RESISTOR, VOLTAGE
from circuitsim.engine.double_double import CANCELLED, SPLIT, add
from circuitsim.engine.small.active_set import refactor
from circuitsim.engine.small.linear import substitute
from circuitsim.engine.small.stubs import level, still_nodes, take_stubs
from circuitsim.engine.steps import contract_diodes, demands, gather

ACCURATE = 1e-9
"""Largest bound on the error of a current, against the largest one at its ends, of an answer without refinement."""

STRAY = 0.5
"""A node that hangs on one other leaves over all that flows to it: at least this share of the largest current there."""

EPSILON = np.finfo(float).eps
RESOLVED = 4.0 * CANCELLED
"""Share of its terms that a sum in pairs of doubles may be off by."""


def branch_currents(plan, kind, first, second, value, v, low, flow, need, current):
    """Every element's current in SPICE signs, A: Ohm's law, the sources, the diodes; then what is left at the nodes
    flows through the voltage constraints (leaf elimination from the leaves of their trees).

    Parameters
    ----------
    v, low : (n_nodes,) float arrays
        Potentials as sums of two doubles, V.
    flow : (d,) float array
        Of the diodes, A.
    need : (n_nodes,) float array
        Filled: what is left over at the roots of these trees, A.

    Returns
    -------
    float
        The least |current|, A, not counting blocking diodes, open circuits and current sources of 0 A.
    """
    need[:] = 0.0
    least = np.inf
    for e in range(kind.size):
        a, b, c = first[e], second[e], 0.0
        if kind[e] == RESISTOR and value[e] != 0.0:
            c = ((v[a] - v[b]) + (low[a] - low[b])) / value[e]
            if c != 0.0 or abs(value[e]) < np.inf:
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


def left_over(plan, kind, first, second, value, v, low, flow, need, rest):
    """Fill in what `branch_currents` leaves over at the roots of the trees, A, from sums in pairs of doubles ``need`` +
    ``rest``: not the rounding of currents themselves, which moves potentials of parts tied weakly.
    """
    need[:] = 0.0
    rest[:] = 0.0
    for e in range(kind.size):
        a, b, c, c_low = first[e], second[e], 0.0, 0.0
        if kind[e] == RESISTOR and value[e] != 0.0 and abs(value[e]) < np.inf:
            drop, drop_low = add(v[a], low[a], -v[b], -low[b])
            c = drop / value[e]
            # What c drops across the resistor, back − error, from two halves of each factor.
            back, of_ohms, of_c = value[e] * c, SPLIT * value[e], SPLIT * c
            ohms, amperes = of_ohms - (of_ohms - value[e]), of_c - (of_c - c)
            ohms_low, amperes_low = value[e] - ohms, c - amperes
            error = ((back - ohms * amperes) - ohms_low * amperes - ohms * amperes_low) - ohms_low * amperes_low
            c_low = ((drop - back) + error + drop_low) / value[e]
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


def correct(plan, space, kind, first, second, value, closed, v, current, plain):
    """Solve once more for what the currents leave over at the nodes: fills in ``space.low``, the diodes' currents in
    ``space.flow``, the branch currents; ``v`` are the rounded sums afterwards.

    With ``plain`` it is what `branch_currents` has left in ``space.need``, else sums in pairs of doubles (`left_over`).
    Returns whether there is a factor for it.
    """
    factor = refactor(plan, space, closed)
    if factor < 0:
        return False
    forest, change, low = contract_diodes(plan, space, closed), space.change, space.low
    if not plain:
        left_over(plan, kind, first, second, value, v, low, space.flow, space.need, space.at_node[1])
    gather(plan, space.need, change)
    change[plan.n] = 0.0
    substitute(plan, space.multiplier[factor], space.pivot[factor], change, space.floating_current)
    left = space.at_node[0]
    for k in range(v.size):
        low[k] = change[forest.last[plan.coordinate[k]]]
        left[k] = space.need[k]
    level(space.stubs, low)
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
    branch_currents(plan, kind, first, second, value, v, low, space.flow, space.need, current)
    return True


def reach(plan, space, closed):
    """The potentials of the coordinates that 1 A into each node leads to, V, where some part is tied weakly (`TIED`);
    else 0."""
    factor = refactor(plan, space, closed)
    found = space.reach[max(factor, 0)]
    if factor < 0:
        found[:] = np.inf
    elif not space.reached[factor]:
        change = space.change
        change[:] = 0.0
        for k in range(plan.coordinate.size):
            change[plan.coordinate[k]] += 1.0
        change[plan.n] = 0.0
        substitute(plan, space.multiplier[factor], space.pivot[factor], change, space.floating_current)
        for k in range(found.size):
            found[k] = change[k]
        space.reached[factor] = True
    return found


def bounded(plan, space, v, left, total, least, ohms):
    """Whether net currents of at most ``left`` at a node and ``total`` in all, A, and the rounding of currents prove
    all currents and potentials; whether that rounding alone would.

    Each to `ACCURATE`: currents of their `circuitsim.certificate.current_scale`, at least ``least``, potentials of
    themselves. ``ohms`` is the `reach`: potentials grow with all currents into the nodes, so it bounds their errors
    where some part is tied weakly.
    """
    last, largest, most, rounded = space.forest.last, space.at_node[1], 0.0, 0.0
    for k in range(v.size):
        most = max(most, largest[k])
        rounded += ROUNDING * largest[k]
    rest = ROUNDING * most / ACCURATE
    left = left / ACCURATE + rest
    proven, plain = max(total, rounded) <= ACCURATE * least, rounded <= ACCURATE * least
    for k in range(v.size):
        j = last[plan.coordinate[k]]
        if j < plan.n and left * ohms[j] > abs(v[k]) and largest[k] > 0.0:
            proven, plain = False, plain and not rest * ohms[j] > abs(v[k])
    return proven, plain


def least_scale(kind, first, second, value, current, largest):
    """The least `circuitsim.certificate.current_scale` of all currents, A, given the largest at each node; whether some
    resistor carries nothing where nothing flows at either end."""
    least, idle = np.inf, False
    for e in range(current.size):
        local = max(largest[first[e]], largest[second[e]])
        if current[e] != 0.0:
            least = min(least, current_scale(abs(current[e]), local))
        elif local == 0.0 and kind[e] == RESISTOR and value[e] != 0.0 and abs(value[e]) < np.inf:
            idle = True
    return least, idle


def error_bound(plan, space, kind, first, second, value, closed, v, current, pairs):
    """Bound on the error of any current against its `circuitsim.certificate.current_scale`, and of any potential
    against itself, from the net current of each node (``space.at_node``) where it is; with ``pairs`` from what the
    potentials v + ``space.low`` leave over, in pairs of doubles.

    What is left over at the nodes, with one sign, leads to potentials that are bounds on the errors of all of them: no
    entry of the inverse is negative. A resistor's current is off by at most its conductance times those of its ends, by
    at most what is left over in all, and by at most √(P/R) where that has the power P. Errors of conducting diodes and
    voltage constraints are sums of those beyond them. Infinite where some potential is not held, or a conductance
    negative; with ``pairs`` also where the sign of a blocking diode's voltage is not proven, or where a current is zero
    by balance or by rounding.
    """
    factor = refactor(plan, space, closed)
    if factor < 0 or not space.held[factor]:
        return np.inf
    change, each, apart, error = space.change, space.work, space.w, space.need
    forest, low, largest = contract_diodes(plan, space, closed), space.low, space.at_node[1]
    last, still, total, power, bound = forest.last, space.stubs.still, 0.0, 0.0, 0.0
    apart[:] = 0.0
    for k in range(plan.tree_edge.size):  # voltages of sources that rounded potentials miss move all nodes they hold
        e = plan.tree_edge[k]
        a, b = first[e], second[e]
        drop, rest = add(v[a], low[a], -v[b], -low[b])
        apart[last[plan.coordinate[a]]] += abs(drop - (value[e] if kind[e] == VOLTAGE else 0.0) + rest)
    if pairs:  # of what conducting diodes join together, with the rounding of such sums
        left_over(plan, kind, first, second, value, v, low, space.flow, space.need, space.size)
        change[:] = 0.0
        each[:] = 0.0
        for k in range(v.size):
            j = last[plan.coordinate[k]]
            change[j], each[j] = add(change[j], each[j], space.need[k], space.size[k])
        for j in range(plan.n):
            change[j] = abs(change[j])
        for k in range(v.size):
            change[last[plan.coordinate[k]]] += RESOLVED * largest[k]
        for r in range(space.g.size):
            a, b = plan.resistor_first[r], plan.resistor_second[r]
            i, j, reach = last[plan.coordinate[a]], last[plan.coordinate[b]], abs(space.g[r]) * (abs(v[a]) + abs(v[b]))
            if i != j:
                change[i] += RESOLVED * reach
                change[j] += RESOLVED * reach
    for k in range(v.size):
        error[k] = abs(space.at_node[0, k]) + ROUNDING * largest[k]
    if not pairs:
        gather(plan, error, change)
    change[plan.n] = 0.0
    for j in range(plan.n):
        change[j] += space.strength[j] * apart[last[j]]
        each[j] = change[j]
        total += change[j]
    substitute(plan, space.multiplier[factor], space.pivot[factor], change, space.floating_current)
    for j in range(plan.n):
        power += each[j] * change[j]
    if not power < np.inf:
        return np.inf
    for k in range(v.size):
        j = last[plan.coordinate[k]]
        off = change[j] + apart[j]
        if off > bound * abs(v[k]) and largest[k] > 0.0:
            bound = off / abs(v[k]) if v[k] != 0.0 else np.inf
    for r in range(space.g.size):
        a, b, g, c = plan.resistor_first[r], plan.resistor_second[r], space.g[r], abs(current[plan.resistor[r]])
        if g < 0.0:
            return np.inf
        i, j = last[plan.coordinate[a]], last[plan.coordinate[b]]
        off = min(total, g * (change[i] + change[j])) if i != j else 0.0
        if off * off > g * power:
            off = np.sqrt(g * power)
        off += g * (apart[i] + apart[j] + EPSILON * (abs(low[a]) + abs(low[b])))
        error[a] += off
        error[b] += off
        if c > 0.0 and off > bound * c:
            bound = max(bound, off / current_scale(c, max(largest[a], largest[b])))
        if pairs and c == 0.0 and max(largest[a], largest[b]) == 0.0 and not (still[a] or still[b]):
            return np.inf
    for d in range(space.flow.size):
        if pairs and not space.flow[d] > 0.0:
            a, b = plan.anode[d], plan.cathode[d]
            i, j = last[plan.coordinate[a]], last[plan.coordinate[b]]
            drop, _ = add(v[a], low[a], -v[b], -low[b])
            if drop != 0.0 and not -drop > (change[i] + change[j]) + (apart[i] + apart[j]):
                return np.inf
    gather(plan, error, change)
    for k in range(forest.node.size - 1, -1, -1):
        d, u, w = forest.diode[k], forest.parent[k], forest.node[k]
        a, b, off, c = plan.anode[d], plan.cathode[d], change[w], abs(space.flow[d])
        off = off if pairs else min(2.0 * total, off)
        error[a] += off
        error[b] += off
        change[u] += change[w]
        if c > 0.0 and off > bound * c:
            bound = max(bound, off / current_scale(c, max(largest[a], largest[b])))
    for k in range(plan.tree_node.size - 1, -1, -1):
        u, w, c = plan.tree_parent[k], plan.tree_node[k], abs(current[plan.tree_edge[k]])
        off = error[w] if pairs else min(2.0 * total, error[w])
        if pairs and c == 0.0 and max(largest[u], largest[w]) == 0.0 and not (still[u] or still[w]):
            return np.inf
        error[u] += error[w]
        if c > 0.0 and off > bound * c:
            bound = max(bound, off / current_scale(c, max(largest[u], largest[w])))
    return bound


def measure(plan, space, kind, first, second, value, closed, ohms, v, current, worst, relative):
    """Fill in a sample's branch currents and their violations; returns the bound on the currents' errors
    (`circuitsim.certificate.worst_violations`).

    Parameters
    ----------
    closed : (d,) bool array
        Conducting diodes, without loops.
    ohms : (n,) float array
        Their `reach` or an upper bound.
    v : (n_nodes,) float array
        Potentials, V; improved where they are too coarse.
    """
    space.low[:] = 0.0
    bound = np.inf
    least = branch_currents(plan, kind, first, second, value, v, space.low, space.flow, space.need, current)
    worst[0], relative[0], total = net_currents(first, second, current, space.at_node)
    proven = total < ACCURATE * least and bounded(plan, space, v, worst[0], total, least, ohms)[0]
    if total < np.inf and not proven:
        least, idle = least_scale(kind, first, second, value, current, space.at_node[1])
        if not idle and relative[0] < STRAY:
            space.stubs.found[0] = 0  # none is asked for
        else:
            take_stubs(plan, space, kind, first, second, value, closed)
            if level(space.stubs, v):
                branch_currents(plan, kind, first, second, value, v, space.low, space.flow, space.need, current)
                worst[0], relative[0], total = net_currents(first, second, current, space.at_node)
                least, _ = least_scale(kind, first, second, value, current, space.at_node[1])
        proven, plain = bounded(plan, space, v, worst[0], total, least, ohms)
        if not proven:
            if not plain:  # even rounding of the currents is too much: a correction may not do, or not be needed
                bound = error_bound(plan, space, kind, first, second, value, closed, v, current, False)
            if not bound <= ACCURATE and correct(plan, space, kind, first, second, value, closed, v, current, plain):
                worst[0], relative[0], total = net_currents(first, second, current, space.at_node)
    sharp = branch_violations(
        kind,
        first,
        second,
        value,
        value,
        v,
        space.low,
        still_nodes(space.stubs, closed),
        current,
        space.at_node,
        total,
        worst,
        relative,
    )
    if not sharp <= ACCURATE and total < np.inf:
        if not (bound <= ACCURATE and sharp < np.inf):
            bound = error_bound(plan, space, kind, first, second, value, closed, v, current, True)
        sharp = min(sharp, bound)
    return sharp
