"""Currents of sources, and linear responses of one circuit, sample by sample."""

from __future__ import annotations

import numpy as np

from circuitsim.certificate import CLEAR
from circuitsim.circuit.elements import CURRENT
from circuitsim.engine.small.active_set import constraint_currents, solve_active_set, take_conductances
from circuitsim.engine.small.pointers import pointer, retain
from circuitsim.engine.small.workspace import fresh
from circuitsim.engine.steps import copy

CLEAN = 1e-12
"""A sum of source currents below this fraction of its largest term has cancelled."""


def injections(kind, first, second, value, injected):
    """Fill in the currents injected by current sources, A; returns whether none of these sums cancels."""
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


def signed_currents(plan, first, second, value, v, injected, flow, current):
    """Branch currents of a linear response: zero sources, diode currents of either sign, external currents."""
    need = injected.copy()
    current[:] = 0.0
    for r in range(plan.resistor.size):
        e = plan.resistor[r]
        current[e] = (v[first[e]] - v[second[e]]) / value[e]
    for d in range(flow.size):
        current[plan.diode[d]] = flow[d]
    constraint_currents(plan, first, second, need, current)


def respond_samples(plan, kind, first, second, value, injected, begin, end, closed, v, current):
    """Linear responses: zero sources, the given diodes as shorts, currents injected into the nodes.

    Parameters
    ----------
    injected : (samples, n_nodes) float array
        A.
    closed : (samples, d) bool array
        Not modified.
    v, current : (samples, n_nodes), (samples, m) float arrays
        Overwritten: changes of potentials, V, and of the branch currents, A.
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
