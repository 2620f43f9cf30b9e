"""Samples of one circuit, one after the other: numbers in, potentials, currents and the certificate's word out."""

from __future__ import annotations

import numpy as np

from circuitsim.certificate import CLEAR
from circuitsim.circuit.elements import CURRENT
from circuitsim.engine.small.active_set import (
    constraint_currents,
    refactor,
    solve_active_set,
    solve_sample,
    take_conductances,
)
from circuitsim.engine.small.branches import refine
from circuitsim.engine.small.currents import ACCURATE, measure, reach
from circuitsim.engine.small.outcome import Outcome
from circuitsim.engine.small.pointers import pointer, retain
from circuitsim.engine.small.workspace import fresh
from circuitsim.engine.steps import copy, offsets

BLOCK = 16
"""Consecutive samples of which each but the first may begin with the diodes of the one before."""
CLEAN = 1e-12
"""A sum of source currents below this share of one of them has cancelled."""


def injections(kind, first, second, value, injected):
    """Fill in the currents that current sources push into the nodes, A; returns whether none of these sums cancels."""
    injected[:] = 0.0
    for e in range(kind.size):
        if kind[e] == CURRENT:
            injected[first[e]] -= value[e]
            injected[second[e]] += value[e]
    clear = True
    for e in range(kind.size):
        if kind[e] == CURRENT:
            least = CLEAR * abs(value[e])
            clear = clear and not (abs(injected[first[e]]) < least or abs(injected[second[e]]) < least)
    return clear


def prove_sample(plan, space, kind, first, second, value, clear, refinable, closed, v, current, drop, worst, relative):
    """Fill in the currents and violations of a sample, refined where they need it.

    Parameters
    ----------
    clear : bool
        Whether currents of sources do not cancel at nodes (`injections`).
    refinable : bool
        Whether it may be refined: the diodes came to rest.
    drop : (m,) float array
        Work space.
    relative : (8,) float array
        Filled; last the bound on the currents' errors, 0 after a refinement.
    """
    ohms = reach(plan, space, closed)
    relative[7] = measure(plan, space, kind, first, second, value, closed, ohms, v, current, worst, relative)
    if not clear:
        relative[7] = np.inf
    good = True
    for k in range(8):
        good = good and relative[k] <= ACCURATE
    if refinable and not good:
        done = refine(plan, space, kind, first, second, value, closed, True, v, current, drop, worst, relative)
        relative[7] = 0.0 if done else np.inf


def solve_samples(
    plan,
    kind,
    first,
    second,
    value,
    inputs,
    x,
    max_iterations,
    warm,
    begin,
    end,
    closed,
    v,
    current,
    worst,
    relative,
    status,
    count,
):
    """Solve samples ``begin`` … ``end`` − 1 of one circuit, filling in one row of each result for every sample.

    Parameters
    ----------
    value : (m,) float array
        Element values that all samples share, Ω, V, A.
    inputs : (k,) int array
        Elements (sources) whose values change from sample to sample.
    x : (samples, k) float array
        Those values, V, A.
    warm : bool
        Whether samples begin with the diodes of the one before, but the first of every `BLOCK`.
    closed : (samples, d) bool array
        Diodes to start with, if not; on return those that conduct.
    v, current : (samples, n_nodes), (samples, m) float arrays
        Filled, V and A.
    worst, relative : (samples, 7), (samples, 8) float arrays
        Filled: see `circuitsim.certificate.worst_violations`; the bound on the currents' errors comes last.
    status, count : (samples,) int arrays
        Filled: see `circuitsim.engine.small.active_set.solve_active_set`.
    """
    plan, own, drop = pointer(plan), value.copy(), np.empty(value.size)
    memory = fresh(plan)
    space = pointer(memory)
    take_conductances(plan, value, space)
    for s in range(begin, end):
        for k in range(inputs.size):
            own[inputs[k]] = x[s, k]
        offsets(plan, kind, first, own, space.offset)
        clear = injections(kind, first, second, own, space.injected)
        if warm and s % BLOCK != 0 and status[s - 1] <= Outcome.NONUNIQUE_CURRENTS:
            copy(closed[s - 1], closed[s])
        status[s], count[s] = solve_sample(plan, max_iterations, space, closed[s], v[s], False)
        rest = status[s] <= Outcome.NONUNIQUE_CURRENTS
        prove_sample(
            plan, space, kind, first, second, own, clear, rest, closed[s], v[s], current[s], drop, worst[s], relative[s]
        )
    retain(memory)


def signed_currents(plan, first, second, value, v, injected, flow, current):
    """Branch currents of a linear response: sources at zero, diodes carry either sign, currents come from outside."""
    need = injected.copy()
    current[:] = 0.0
    for r in range(plan.resistor.size):
        e = plan.resistor[r]
        current[e] = (v[first[e]] - v[second[e]]) / value[e]
    for d in range(flow.size):
        current[plan.diode[d]] = flow[d]
    constraint_currents(plan, first, second, need, current)


def respond_samples(plan, kind, first, second, value, injected, begin, end, closed, v, current):
    """Linear responses: sources at zero, the given diodes shorts, other currents injected into the nodes.

    Parameters
    ----------
    injected : (samples, n_nodes) float array
        A.
    closed : (samples, d) bool array
        Left as it is.
    v, current : (samples, n_nodes), (samples, m) float arrays
        Filled: changes of potentials, V, and of the branch currents, A.
    """
    plan, still = pointer(plan), np.zeros(plan.coordinate.size)
    memory = fresh(plan)
    space = pointer(memory)
    take_conductances(plan, value, space)
    for s in range(begin, end):
        copy(closed[s], space.closed)
        solve_active_set(plan, injected[s], still, 0, space, space.closed, v[s], space.flow)
        signed_currents(plan, first, second, value, v[s], injected[s], space.flow, current[s])
    retain(memory)


def stable(plan, value, closed):
    """Whether the energy is strictly convex with these diodes as shorts: all pivots positive."""
    plan = pointer(plan)
    memory = fresh(plan)
    space = pointer(memory)
    take_conductances(plan, value, space)
    factor = refactor(plan, space, closed)
    convex = factor >= 0 and space.held[factor]
    retain(memory)
    return convex
