"""Kernel: the stages of an implicit step, one after the other (`circuitsim.time_domain.implicit_step`)."""

from __future__ import annotations

import numpy as np

from circuitsim.analysis.tangent_newton import put_certificate, put_lowest, put_matrix, tangent_newton
from circuitsim.controlled.equations import put_right_side
from circuitsim.engine.small.pointers import pointer
from circuitsim.models.junction_diode import BASE, RATE, charge, junction
from circuitsim.newton.steps import CURRENT as AMPERES
from circuitsim.newton.steps import NEAR, RESISTANCE
from circuitsim.newton.steps import VOLTAGE as VOLTS

ROUNDING = 1e-14
"""Fraction of the largest voltage or current below which a base counts as zero; see `Companion.solve`."""


def solve_stages(
    made,
    fill,
    laws,
    states,
    first,
    length,
    share,
    before,
    shift,
    tolerance,
    row,
    places,
    values,
    x,
    slopes,
    sizes,
    start,
    columns,
    device,
    branch,
    node,
    state,
    found,
    wave,
):
    """Solve successive stages while ideal diodes keep their states and all equations hold.

    Parameters
    ----------
    made : StageMatrix
        Pinned.
    fill : bool
        Whether its matrix is to be filled in, as that of another step length.
    laws : LawArrays
        Pinned.
    states : StatePlaces
        Pinned.
    first : int
        Number of known stages.
    length, share : float
        Length of the step; coefficient of a stage's own derivative, s.
    before : (k, k) float array
        Coefficients of the derivatives at the start and in earlier stages.
    shift : (k, q) float array
        Added to the states of each stage.
    tolerance : float
    row : (m,) float array
        Values of the elementary elements; those at ``places`` and of bases and companion models are not read.
    places, values : (p,) int array, (k - first, p) float array
        Elements whose values vary, and their values in the unknown stages.
    x : (q,) float array
        States at the start.
    slopes : (k + 1, q) float array
        Their derivatives there and in the known stages; overwritten in the others.
    sizes : (q,) float array
        Largest voltages and currents of the run so far, V, A.
    start : (KEPT, s) float array
        Voltages, V, and currents, A, of the devices in a nearby stage (`circuitsim.newton.steps`).
    columns, device, branch, node, found : float arrays
        Overwritten for each stage: values (m,), and see `tangent_newton` and `put_certificate`.
    state : (k, q) float array
        Overwritten.
    wave : (k, 2, n) float array
        Overwritten: voltages, V, and currents, A, of the circuit's own elements, if its devices are smooth.

    Returns
    -------
    stages, solved : int
        Number of known stages, and whether the next one has a solution that violates some equation.
    """
    made, laws, states = pointer(made), pointer(laws), pointer(states)
    same, right = np.empty(node.shape[2], np.int64), np.empty((2, made.left.size))
    base, guess, times = np.empty(x.size), start.copy(), np.zeros(columns.shape[0] + 1)
    for k in range(columns.shape[0]):
        times[k + 1] = share + length * before[k].sum()
    for k in range(first, columns.shape[0]):
        column = columns[k]
        column[:] = row
        for j in range(places.size):
            column[places[j]] = values[k - first, j]
        if fill and k == first:
            put_matrix(made, column)
        for j in range(x.size):
            total = 0.0
            for earlier in range(k + 1):
                total += before[k, earlier] * slopes[earlier, j]
            base[j] = x[j] + shift[k, j] + length * total
            if j < states.base.size:
                column[states.base[j]] = base[j] if abs(base[j]) > ROUNDING * sizes[j] else 0.0
        for c in range(states.charged.size):
            device_row, j = made.rows[states.charged[c]], states.storing.size + c
            if abs(base[j]) <= ROUNDING * sizes[j]:
                base[j] = 0.0
            device_row[RATE], device_row[BASE] = 1.0 / share, base[j]
        put_right_side(made.sources, column, right)
        put_lowest(made, column, same)
        put_guess(times, first, k, before[k, 0] != 0.0, start, device, guess)
        if not tangent_newton(made, laws, column, right, same, guess, tolerance, device[k], branch[k], node[k]):
            return k, 0
        put_states(made, states, base, share, device[k], branch[k], state[k], slopes[k + 1])
        put_waves(states, branch[k, 1], branch[k, 0], state[k], wave[k])
        for d in range(states.smooth.size):
            wave[k, 0, states.smooth[d]], wave[k, 1, states.smooth[d]] = device[k, VOLTS, d], device[k, AMPERES, d]
        if not put_certificate(made, laws, column, branch[k], node[k], device[k], tolerance, found[k]):
            return k, 1
    return columns.shape[0], 0


def put_waves(places, drop, current, x, wave):
    """Fill in the voltages and currents of the circuit's own elements (2, n), V, A, from those of all elements (m,) of
    the companion circuit, and its states (q,)."""
    places, v, i = pointer(places), wave[0], wave[1]
    for e in range(v.size):
        v[e], i[e] = drop[e], current[e]
    for j in range(places.storing.size):
        (v if places.capacitor[j] else i)[places.storing[j]] = x[j]
    own, series = places.inductors, places.series
    for j in range(own.size):  # each depends on itself and on later ones
        total = 0.0
        for k in range(j, own.size):
            total += places.inverse[j, k] * i[own[k]]
        i[own[j]] = total
    for j in range(series.size):
        if series[j] >= 0:
            v[own[j]] += drop[series[j]]


def put_states(made, states, base, share, device, branch, x, slope):
    """Fill in states and their derivatives."""
    for c in range(states.charged.size):
        row, u = made.rows[states.charged[c]], device[NEAR, states.charged[c]]
        rate, row[RATE] = row[RATE], 0.0
        current, slope_of_law = junction(row, u)
        row[RATE] = rate
        j = states.storing.size + c
        x[j] = charge(row, u, current, slope_of_law)[0]
        slope[j] = (x[j] - base[j]) / share
    for j in range(states.storing.size):
        e = states.storing[j]
        change = branch[1, e] if states.capacitor[j] else branch[0, e]
        x[j], slope[j] = base[j] + change, change / share


def put_guess(times, first, k, smooth, start, device, guess):
    """Fill in a guess of the devices' voltages and currents in stage ``k``, and its load lines: on the straight lines
    through the two stages nearest in time of those from ``first`` on, where ``start`` holds the stage before these and
    counts if the beginning is ``smooth``; for lack of a second one, those of the nearest without load lines."""
    away, share = np.abs(times[first : k + 1] - times[k + 1]), 0.0
    if k > first and not smooth:
        away[0] = np.inf
    near = away.argmin()
    away[near] = np.inf
    other = away.argmin()
    one, two = start if near == 0 else device[first + near - 1], start if other == 0 else device[first + other - 1]
    if away[other] < np.inf:
        share = (times[k + 1] - times[first + near]) / (times[first + other] - times[first + near])
    for row in (VOLTS, AMPERES):
        guess[row] = one[row] + share * (two[row] - one[row])
    guess[RESISTANCE] = one[RESISTANCE] * (away[other] < np.inf)
