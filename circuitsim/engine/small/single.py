"""Solving one circuit at a time, for callers that count microseconds: potentials by `solve_sample`, branch currents of
a sample from its potentials in one pass, one step of iterative refinement, and the certificate.

A call of compiled code costs a tenth of a microsecond per array argument, as does making an array: all is in blocks of
memory.

Potentials in doubles do not resolve the drop across a wire with a small current. One correction, for the residual
currents at the nodes, does; potentials are then sums of two doubles.

Elements on no loop with a source carry no current, whatever the resistances are. The usual case is a resistor in
series with a blocking diode. Rounding makes the two node voltages differ, and the current of that difference would be
wrong at any scale.
"""

from __future__ import annotations

import numpy as np

from circuitsim.certificate import ROUNDING, branch_violations, current_scale, net_currents
from circuitsim.circuit.elements import CURRENT, DIODE, RESISTOR, VOLTAGE
from circuitsim.engine.small.active_set import (
    CARRIES,
    IDLE,
    NOISE,
    ON_LOOP,
    Outcome,
    injections,
    refactor,
    solve_sample,
    take_conductances,
)
from circuitsim.engine.small.elimination import plan_in, substitute
from circuitsim.engine.small.pointers import kept, pointer
from circuitsim.engine.steps import contract_diodes, demands, gather, offsets
from circuitsim.engine.tree import Branches, blank, grow_tree, mark_live
from circuitsim.program.precise import add, two_product


def find_currentless(plan, space, value):
    """Mark in ``space.currentless`` the elements on no loop with a source, and grow a spanning tree, to give their ends
    equal potentials. Nothing is marked where a current source joins parts that nothing else does."""
    kind, first, second, m, n = plan.kind, plan.first, plan.second, plan.kind.size, plan.coordinate.size
    live, idle, grounded, node, above, found = space.currentless
    ohms, emf, edges, count = np.zeros(m), np.zeros(m), np.empty(m, np.int64), 0
    for e in plan.tree_edge:
        edges[count] = e
        count += 1
        if kind[e] == VOLTAGE:
            emf[e] = value[e]
    for d in range(space.closed.size):
        if space.closed[d]:
            edges[count] = plan.diode[d]
            count += 1
    for e in plan.resistor:
        edges[count] = e
        count += 1
        ohms[e] = value[e]
    tree, branches = blank(n, m), Branches(first, second, ohms, emf)
    size = grow_tree(first, second, 0, np.zeros(n), edges[:count], tree)
    tree.edge[size:] = -1
    chords, sources, count, fed = np.empty(m, np.int64), np.empty(m, np.int64), 0, 0
    for e in range(m):
        live[e] = ohms[e] != 0.0 or emf[e] != 0.0
        if live[e] and not tree.inside[e]:
            chords[count] = e
            count += 1
        if kind[e] == CURRENT and value[e] != 0.0:
            sources[fed] = e
            fed += 1
            if tree.root_of[first[e]] != tree.root_of[second[e]]:
                live[:] = True
                return
    mark_live(tree, branches, chords[:count], sources[:fed], live)
    found[0] = size
    for k in range(size):
        u, e = tree.order[k], tree.edge[k]
        node[k], above[k] = u, tree.parent[k]
        idle[u] = e >= 0 and ohms[e] != 0.0 and not live[e]
        grounded[u] = u == 0 or (idle[u] and grounded[above[k]])


def level(currentless, v):
    """Give the ends of elements that carry nothing equal potentials, V; those beyond move along."""
    shift = np.zeros(v.size)
    for k in range(currentless.found[0]):
        u, p = currentless.node[k], currentless.above[k]
        if currentless.idle[u]:
            shift[u] = v[p] - v[u]
            v[u] = v[p]
        elif u != p:
            shift[u] = shift[p]
            v[u] += shift[u]


def forget_currentless(space):
    """Take all elements for live."""
    space.currentless.live[:] = True
    space.currentless.grounded[:] = False
    space.currentless.found[0] = 0


ACCURATE = 1e-9
"""Largest bound on the error of a current, relative to the largest one at its ends, that needs no refinement."""
FINE = 1e-12
"""The same that needs no correction, which takes a substitution."""


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
        if flow[d] != 0.0:
            least = min(least, abs(flow[d]))
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
        if flow[d] != 0.0:
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
    level(space.currentless, low)
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


def proven(plan, space, value, v, current, total, share):
    """Whether the net currents, of which ``total``, A, bounds the sum, prove all currents and potentials.

    Each to ``share``: currents relative to their `circuitsim.certificate.current_scale`, if they have one, potentials
    relative to themselves. Errors of potentials are at most the potentials for the sizes of the net currents, and the
    sizes of the multipliers, of which some are negative with negative resistances.
    """
    net, largest, error = space.at_node[0], space.at_node[1], space.change
    factor, last, good = refactor(plan, space, space.closed), space.forest.last, True
    if factor < 0:
        return False
    multiplier = space.multiplier[factor]
    if space.signed[0]:
        multiplier = np.abs(multiplier)
    for k in range(v.size):
        space.size[k] = abs(net[k]) + ROUNDING * largest[k]
    gather(plan, space.size, error)
    error[plan.n] = 0.0
    substitute(plan, multiplier, space.pivot[factor], error, space.floating_current)
    for k in range(v.size):
        j = last[plan.coordinate[k]]
        good = good and (not error[j] > share * abs(v[k]) or largest[k] == 0.0 or space.currentless.grounded[k])
    for e in range(current.size):
        a, b, off = plan.first[e], plan.second[e], total
        if plan.kind[e] == RESISTOR and value[e] != 0.0:
            off = min(total, (error[last[plan.coordinate[a]]] + error[last[plan.coordinate[b]]]) / abs(value[e]))
        elif plan.kind[e] == CURRENT:
            off = 0.0
        size, local = abs(current[e]), max(largest[a], largest[b])
        if size > 0.0:
            good = good and off <= share * current_scale(size, local)
        elif local == 0.0 and plan.kind[e] == RESISTOR and value[e] != 0.0:
            good = good and not space.currentless.live[e]
    return good


def measure(plan, space, value, v, current, worst, relative):
    """Fill in a sample's branch currents and residuals, and correct its potentials ``v`` (n_nodes,), V, where they are
    too coarse; returns whether all are proven, and rounding changes no sign of a voltage."""
    first, second, factor = plan.first, plan.second, refactor(plan, space, space.closed)
    space.low[:] = 0.0
    forget_currentless(space)
    least = branch_currents(plan, space, value, v, current)
    worst[0], relative[0], total = net_currents(first, second, current, space.at_node)
    good = factor >= 0 and space.tied[factor] and not space.signed[0] and total < ACCURATE * least
    if total < np.inf and not good:
        good = proven(plan, space, value, v, current, total, FINE)
        if not good:
            find_currentless(plan, space, value)
            level(space.currentless, v)
        if not good and correct(plan, space, value, v, current):
            worst[0], relative[0], total = net_currents(first, second, current, space.at_node)
            good = proven(plan, space, value, v, current, total, ACCURATE)
    bound = branch_violations(
        plan.kind,
        first,
        second,
        value,
        v,
        space.low,
        space.currentless.live,
        current,
        space.at_node,
        total,
        worst,
        relative,
    )
    return good and bound < np.inf


def largest(relative):
    """The largest of 7 residuals."""
    error = 0.0
    for k in range(7):
        error = max(error, relative[k])
    return error


PROVE = -1
"""Value of the iterations for which `solve_once` proves its previous result, with currents in loops chosen since."""

NO_GUESS = np.zeros(0)
NO_GUESS.flags.writeable = False  # as currents of operating points are: one kind of array, one compilation


def take_values(plan, values, ohms, signed):
    """Check new element values (``CONVERGED``: valid), and whether the resistances differ from ``ohms``.

    ``signed``: resistances may be negative.
    """
    kind, changed, r = plan.kind, False, 0
    for e in range(kind.size):
        value = values[e]
        if kind[e] == DIODE:
            continue
        below = value < 0.0 and kind[e] != VOLTAGE and kind[e] != CURRENT and not (signed and kind[e] == RESISTOR)
        if below or not abs(value) < np.inf:
            return Outcome.OUT_OF_RANGE, changed
        if kind[e] == RESISTOR:
            if r < ohms.size and plan.resistor[r] == e:
                if value == 0.0:
                    return Outcome.TOPOLOGY_CHANGED, changed
                changed = changed or value != ohms[r]
                ohms[r] = value
                r += 1
            elif value != 0.0:
                return Outcome.TOPOLOGY_CHANGED, changed
    return Outcome.CONVERGED, changed


def views(out, m, n):
    """Views of the block of `solve_once`: element values, potentials, branch currents, largest absolute and relative
    residuals."""
    at = 2 * m + n
    return out[:m], out[m : m + n], out[m + n : at], out[at : at + 7], out[at + 7 : at + 14]


def solve_once(block, space, guess, max_iterations, merged, out):
    """The operating point of a planned circuit for the element values in ``out``, with its certificate.

    Parameters
    ----------
    block : int array
        The plan's (`circuitsim.engine.small.elimination.plan`).
    space : Pinned
        The plan's `circuitsim.engine.small.active_set.memory`, not shared during the call.
    guess : (m,) float array
        Branch currents of an operating point whose conducting diodes are the initial guess; empty: no diode conducts.
    max_iterations : int
        Maximum number of linear circuits; 0: one, with the diodes of the guess as shorts, without a proof; `PROVE`.
    merged : bool
        Whether the caller chooses currents in loops of diodes; otherwise they are those of some forest.
    out : (m + n_nodes + m + 15 + d,) float array
        Element values (Ω, V, A; ignored for diodes). The rest is overwritten: potentials, V; if all diode currents are
        unique, branch currents, A, and largest absolute and relative residuals, 7 each
        (`circuitsim.certificate.branch_violations`); number of linear circuits; state of each diode
        (`circuitsim.engine.small.active_set.IDLE`). With
        ``merged`` and `Outcome.NONUNIQUE_CURRENTS` branch currents to the rounding of the potentials, in which the
        diodes of trees that others close to loops, which have the state `ON_LOOP`, carry those of some forest, of
        either sign. With `PROVE` the currents of diodes are given.

    Returns
    -------
    status : int
        An `Outcome`.
    worst : float
        Largest relative residual.
    """
    plan, space, out = pointer(plan_in(kept(block))), pointer(space), kept(out)
    status = Outcome.CONVERGED
    if max_iterations == PROVE:
        take_flows(plan, space, out)
    else:
        status = found(plan, space, guess, max_iterations, merged, out)
    chosen = not merged and status == Outcome.NONUNIQUE_CURRENTS
    proven = chosen or status == Outcome.CONVERGED or status == Outcome.SINGULAR
    if max_iterations == 0:
        values, v, current, _, _ = views(out, plan.kind.size, plan.coordinate.size)
        space.low[:] = 0.0
        branch_currents(plan, space, values, v, current)
        proven = False
    return status.value, prove(plan, space, out) if proven else np.inf


def found(plan, space, guess, max_iterations, merged, out):
    """The potentials and conducting diodes of `solve_once`; returns an `Outcome`."""
    kind, first, second, stamp = plan.kind, plan.first, plan.second, space.stamp
    values, v, current, _, _ = views(out, kind.size, plan.coordinate.size)
    tail = out.size - plan.diode.size
    status, changed = take_values(plan, values, space.ohms, space.signed[0])
    if status != Outcome.CONVERGED:
        stamp[:] = 0
        return status
    if changed or stamp[-1] == 0:
        take_conductances(plan, values, space)
    closed = space.closed
    for d in range(closed.size):
        closed[d] = guess.size > 0 and guess[plan.diode[d]] > 0.0
    offsets(plan, kind, first, values, space.offset)
    clear = injections(kind, first, second, values, space.injected)
    status, count = solve_sample(plan, max_iterations, space, v, merged)
    out[tail - 1] = count
    for d in range(closed.size):
        carries = closed[d] and space.flow[d] > NOISE * space.noise[d]
        out[tail + d] = CARRIES if carries else IDLE
    if merged and status == Outcome.NONUNIQUE_CURRENTS:
        for e in range(kind.size):  # to the rounding of potentials: for scales
            ohmic = kind[e] == RESISTOR and values[e] != 0.0
            current[e] = (v[first[e]] - v[second[e]]) / values[e] if ohmic else values[e] * (kind[e] == CURRENT)
        looped = np.zeros(plan.n + 1, np.bool_)
        for d in range(closed.size):
            looped[tree_of(plan, space, d)] |= space.equal[d] and not space.spanned[d]
        for d in range(closed.size):
            current[plan.diode[d]] = space.flow[d]
            out[tail + d] += ON_LOOP if space.equal[d] and looped[tree_of(plan, space, d)] else 0
    cancelling = not clear and (status == Outcome.CONVERGED or status == Outcome.NONUNIQUE_CURRENTS)
    return Outcome.CANCELLING_SOURCES if cancelling else status


def tree_of(plan, space, d):
    """The root of the tree of conducting diodes that holds the anode of diode ``d``."""
    return space.root[plan.coordinate[plan.anode[d]]]


def prove(plan, space, out):
    """Fill in branch currents and their residuals.

    Returns the largest relative one, infinite if the currents may be off by more than `ACCURATE`.
    """
    values, v, current, worst, relative = views(out, plan.kind.size, plan.coordinate.size)
    good = measure(plan, space, values, v, current, worst, relative)
    for k in range(current.size):
        current[k] += 0.0  # no −0.0
    return largest(relative) if good else np.inf


def take_flows(plan, space, out):
    """Take the currents of diodes from ``out``."""
    _, _, current, _, _ = views(out, plan.kind.size, plan.coordinate.size)
    for d in range(plan.diode.size):
        space.flow[d] = current[plan.diode[d]]
