"""Many samples of one circuit by one factor: diodes as ports of the linear circuit that is left without them.

With all diodes blocking the circuit is linear and the same for every sample. Its response to a unit current through
each diode is found once; what is left per sample is a linear complementarity problem with as many unknowns as there are
diodes: currents i ≥ 0, drops u − Z i ≤ 0, one of each pair zero. Worth it where diodes are few beside what a factor
costs (layered networks); only circuits that stay held by resistors alone have such a response.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.engine.small.active_set import NOISE, refactor, take_conductances
from circuitsim.engine.small.currents import reach
from circuitsim.engine.small.linear import substitute
from circuitsim.engine.small.pointers import pointer, retain
from circuitsim.engine.small.workspace import fresh
from circuitsim.engine.steps import contract_diodes, demands, gather, node_potentials

SINGULAR = 1e-12
"""A port whose resistance is this share of what it was before others were closed hangs on them: a loop of diodes."""


class Ports(NamedTuple):
    """The linear circuit with all diodes blocking, seen from its diodes.

    Attributes
    ----------
    usable : bool
        Whether resistors alone hold every coordinate.
    multiplier, pivot : float arrays
        Its factor (`circuitsim.engine.small.linear.factorise`).
    response : (d, n + 1) float array
        Rise of the coordinates' potentials when one ampere leaves a diode's cathode side for its anode side, Ω.
    resistance : (d, d) float array
        The same as drops of the diodes, Ω; symmetric.
    reach : (n,) float array
        Estimate of `circuitsim.engine.small.currents.reach` with any diodes conducting: twice that with none, V.
    """

    usable: bool
    multiplier: np.ndarray
    pivot: np.ndarray
    response: np.ndarray
    resistance: np.ndarray
    reach: np.ndarray


def ports(plan, value):
    """The ports of a circuit with these element values, Ω."""
    plan, n, d = pointer(plan), plan.n, plan.diode.size
    memory = fresh(plan)
    space = pointer(memory)
    response, resistance = np.zeros((d, n + 1)), np.empty((d, d))
    take_conductances(plan, value, space)
    factor = refactor(plan, space, np.zeros(d, np.bool_)) if plan.regular else -1
    usable = factor >= 0 and space.held[factor]
    factor = max(factor, 0)
    multiplier, pivot = space.multiplier[factor].copy(), space.pivot[factor].copy()
    if usable:
        for e in range(d):
            response[e, plan.coordinate[plan.anode[e]]] += 1.0
            response[e, plan.coordinate[plan.cathode[e]]] -= 1.0
            response[e, n] = 0.0
            substitute(plan, multiplier, pivot, response[e], space.floating_current)
        for e in range(d):
            a, c = plan.coordinate[plan.anode[e]], plan.coordinate[plan.cathode[e]]
            for k in range(d):
                resistance[e, k] = response[k, a] - response[k, c]
    ohms = np.zeros(n)
    if usable:
        ohms += 2.0 * reach(plan, space, np.zeros(d, np.bool_))
    retain(memory)
    return Ports(usable, multiplier, pivot, response, resistance, ohms)


def eliminate_ports(resistance, chosen, count, square):
    """Factor the rows and columns ``chosen[:count]`` into ``square``; False if they hang on each other."""
    for p in range(count):
        row = resistance[chosen[p]]
        for q in range(p, count):
            square[p, q] = row[chosen[q]]
    for p in range(count):
        pivot = square[p, p]
        if not pivot > SINGULAR * resistance[chosen[p], chosen[p]]:
            return False
        source = square[p, p:count]
        for q in range(p + 1, count):
            factor = square[p, q] / pivot
            into = square[q, q:count]
            taken = source[q - p :]
            for t in range(into.size):
                into[t] -= factor * taken[t]
    return True


def substitute_ports(square, count, b):
    """Solve in place with what `eliminate_ports` left."""
    for p in range(count):
        share = b[p] / square[p, p]
        for q in range(p + 1, count):
            b[q] -= square[p, q] * share
    for p in range(count - 1, -1, -1):
        left = b[p]
        for q in range(p + 1, count):
            left -= square[p, q] * b[q]
        b[p] = left / square[p, p]


def complement(resistance, drop, closed, max_iterations, chosen, square, flow, b):
    """Primal–dual active sets on the ports: which diodes conduct, and their currents.

    Parameters
    ----------
    resistance : (d, d) float array
        Ω.
    drop : (d,) float array
        Drops with all diodes blocking, V.
    closed : (d,) bool array
        The first guess; on return the diodes that conduct.
    max_iterations : int
        Most sets to try.
    chosen, square, b : (d,) int, (d, d), (d,) float arrays
        Left with the factor of the last set, for further solves.
    flow : (d,) float array
        Filled: currents, A.

    Returns
    -------
    tried, count : int
        Sets tried (0: gave up), conducting diodes.
    """
    d = drop.size
    after, size = np.empty(d), np.empty(d)
    for tried in range(1, max_iterations + 1):
        count = 0
        for e in range(d):
            if closed[e]:
                chosen[count] = e
                b[count] = drop[e]
                count += 1
        if not eliminate_ports(resistance, chosen, count, square):
            return 0, 0
        substitute_ports(square, count, b)
        flow[:] = 0.0
        for e in range(d):
            after[e] = drop[e]
            size[e] = abs(drop[e])
        for p in range(count):
            current, row = b[p], resistance[chosen[p]]
            flow[chosen[p]] = current
            reach = abs(current)
            for e in range(d):
                after[e] -= current * row[e]
                size[e] += reach * abs(row[e])
        wrong = False
        for e in range(d):
            wanted = flow[e] >= 0.0 if closed[e] else after[e] > NOISE * size[e]
            if wanted != closed[e]:
                wrong = True
                closed[e] = wanted
        if not wrong:
            return tried, count
    return 0, 0


def hold(plan, made, count, chosen, square, b, need, v, space):
    """Add to the workspace's x and flow what currents ``need`` into nodes and the drops of conducting diodes at ``v``
    ask for.

    Linear: the conducting diodes are shorts. With x and v at zero drops this is a solve, later it is a refinement.
    """
    change, x, flow = space.change, space.x, space.flow
    gather(plan, need, change)
    change[plan.n] = 0.0
    substitute(plan, made.multiplier, made.pivot, change, space.floating_current)
    for p in range(count):
        a, c = plan.anode[chosen[p]], plan.cathode[chosen[p]]
        b[p] = v[a] - v[c] + change[plan.coordinate[a]] - change[plan.coordinate[c]]
    substitute_ports(square, count, b)
    for p in range(count):
        flow[chosen[p]] += b[p]
        current, row = b[p], made.response[chosen[p]]
        for k in range(row.size):
            change[k] -= current * row[k]
    for k in range(x.size):
        x[k] += change[k]


def solve_ports(plan, made, injected, offset, max_iterations, space, closed, v):
    """The operating point of one sample by its ports; see `solve_active_set` for the arguments. 0: gave up."""
    d, n_nodes = plan.diode.size, v.size
    need, size, x, flow = space.need, space.size, space.x, space.flow
    chosen, square, b, drop = np.empty(d, np.int64), np.empty((d, d)), np.empty(d), np.empty(d)
    for k in range(v.size):
        v[k] = offset[k]
    demands(plan, space.g, v, injected, need, size)
    gather(plan, need, x)
    x[plan.n] = 0.0
    substitute(plan, made.multiplier, made.pivot, x, space.floating_current)
    for k in range(n_nodes):
        v[k] = x[plan.coordinate[k]] + offset[k]
    for e in range(d):
        drop[e] = v[plan.anode[e]] - v[plan.cathode[e]]
    tried, count = complement(made.resistance, drop, closed, max_iterations, chosen, square, flow, b)
    if tried == 0:
        return 0
    for p in range(count):
        current, row = b[p], made.response[chosen[p]]
        for k in range(row.size):
            x[k] -= current * row[k]
    for k in range(n_nodes):
        v[k] = x[plan.coordinate[k]] + offset[k]
    demands(plan, space.g, v, injected, need, size)
    for p in range(count):
        need[plan.anode[chosen[p]]] -= b[p]
        need[plan.cathode[chosen[p]]] += b[p]
    hold(plan, made, count, chosen, square, b, need, v, space)
    node_potentials(plan, contract_diodes(plan, space, closed), x, offset, v)
    return tried
