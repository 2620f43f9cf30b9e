"""Many samples of one circuit with smooth devices: Newton's method for each, and linear responses at the solutions."""

from __future__ import annotations

import numpy as np

from circuitsim.engine.small.active_set import solve_active_set, take_conductances
from circuitsim.engine.small.pointers import pointer, retain
from circuitsim.engine.small.samples import BLOCK, signed_currents
from circuitsim.engine.small.workspace import fresh
from circuitsim.engine.steps import copy
from circuitsim.models.curve import point
from circuitsim.newton.laws import law
from circuitsim.newton.steps import KEPT, NEAR, NOTHING, TOUCH, newton_sample, put_tangents


def newton_samples(
    plan,
    kind,
    first,
    second,
    value,
    inputs,
    x,
    places,
    role,
    rows,
    zero,
    given,
    tolerance,
    begin,
    end,
    closed,
    v,
    current,
    relative,
    steps,
):
    """Solve samples ``begin`` … ``end`` − 1, filling in one row of each result for every sample.

    Parameters
    ----------
    value : (m,) float array
        Element values that all samples share, Ω, V, A.
    inputs : (k,) int array
        Elements (sources) whose values change from sample to sample.
    x : (samples, k) float array
        Those values, V, A.
    places, role, rows
        See `circuitsim.newton.steps.newton_once`.
    zero : (5, s) float array
        The points of the curves at zero volts (`circuitsim.models.curve.point`).
    given : bool
        Whether ``closed``, ``v`` and ``current`` hold solutions nearby. Else each sample begins at the one before it,
        the first of every `BLOCK` at zero volts.
    closed, v, current : (samples, d) bool, (samples, n_nodes), (samples, m) float arrays
        Filled: ideal diodes that conduct, potentials, V, branch currents, A.
    relative : (samples,) float array
        Filled: the worst relative violation.
    steps : (samples,) int array
        Filled: steps of Newton's method; 0: not found.
    """
    plan, own, values = pointer(plan), np.empty((KEPT, rows.shape[0])), value.copy()
    worst, each = np.empty(7), np.empty(7)
    memory = fresh(plan)
    space = pointer(memory)
    for s in range(begin, end):
        for k in range(inputs.size):
            values[inputs[k]] = x[s, k]
        near = given
        if given:
            touch_solution(first, second, places, rows, v[s], current[s], own)
        elif s % BLOCK != 0 and steps[s - 1] > 0 and relative[s - 1] <= tolerance:
            own[TOUCH : TOUCH + 5] = own[NEAR : NEAR + 5]
            copy(closed[s - 1], closed[s])
            near = True
        else:
            own[TOUCH : TOUCH + 5] = zero
        while True:
            steps[s], relative[s] = newton_sample(
                plan,
                space,
                kind,
                first,
                second,
                values,
                places,
                role,
                rows,
                own,
                0 if near else 1,
                tolerance,
                closed[s],
                v[s],
                current[s],
                worst,
                each,
            )
            if not near or (steps[s] > 0 and relative[s] <= tolerance):
                break
            own[TOUCH : TOUCH + 5] = zero
            closed[s] = False
            near = False
    retain(memory)


def touch_solution(first, second, places, rows, v, current, own):
    """Let the tangents touch at the points of the curves nearest to a solution."""
    for d in range(rows.shape[0]):
        slope, rest = places[0, d], places[2, d]
        volts, amperes = v[first[rest]] - v[second[rest]], current[slope] + current[rest]
        there = point(law, rows[d], volts, amperes, abs(volts) / (abs(amperes) + NOTHING), 0.0)
        for k in range(5):
            own[TOUCH + k, d] = there[k]


def newton_responses(
    plan, kind, first, second, value, places, rows, injected, begin, end, closed, v, current, response, flows
):
    """Linear responses of the circuits of tangents: sources at zero, currents injected into the nodes.

    Parameters
    ----------
    injected : (samples, n_nodes) float array
        A.
    closed, v, current
        Solutions; see `newton_samples`.
    response, flows : (samples, n_nodes), (samples, m) float arrays
        Filled: changes of the potentials, V, and of the branch currents, A.
    """
    plan, own, values = pointer(plan), np.empty((KEPT, rows.shape[0])), value.copy()
    still = np.zeros(plan.coordinate.size)
    memory = fresh(plan)
    space = pointer(memory)
    for s in range(begin, end):
        touch_solution(first, second, places, rows, v[s], current[s], own)
        put_tangents(places, own, values)
        take_conductances(plan, values, space)
        copy(closed[s], space.closed)
        solve_active_set(plan, injected[s], still, 0, space, space.closed, response[s], space.flow)
        signed_currents(plan, first, second, values, response[s], injected[s], space.flow, flows[s])
    retain(memory)
