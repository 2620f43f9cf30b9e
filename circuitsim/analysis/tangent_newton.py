"""Kernel: Newton's method for one stage with controlled sources, with ideal diodes in given states; the steps are those
of `circuitsim.analysis.smooth_controlled`.
"""

from __future__ import annotations

import math

import numpy as np

from circuitsim.analysis.newton import CLOSE, PATIENT
from circuitsim.controlled.linear import CORRECTIONS, FINE, POOR, corrected
from circuitsim.newton.steps import (
    CONDUCTANCE,
    CURRENT,
    FIXED,
    OPEN,
    RESISTANCE,
    VOLTAGE,
    begin_at,
    distances,
    move,
    put_across,
    put_tangents,
)


def tangent_newton(made, laws, column, right, same, start, tolerance, own, branch, node):
    """Iterate from an initial guess until all devices are on their curves.

    Parameters
    ----------
    made : StageMatrix
    laws : LawArrays
    column : (m,) float array
        Values of the elements; those of the companion models are overwritten.
    right : (size,) float array
        Right-hand side without the companion models.
    same : (n_nodes,) int array
        For each node the lowest node of equal potential.
    start : (KEPT, s) float array
        Voltages, V, and currents, A, of the devices in rows ``VOLTAGE`` and ``CURRENT``.
    tolerance : float
    own : (KEPT, s) float array
        Overwritten: see `circuitsim.newton.steps`.
    branch : (2, m) float array
        Overwritten: currents, A, and drops, V.
    node : (2, n_nodes) float array
        Overwritten: potentials, and their low-order parts, V.

    Returns
    -------
    int
        The number of steps; 0 without convergence.
    """
    size, rows = made.left.size, made.rows
    at_node = np.empty((2, same.size))
    value, lu, scale = made.terms.value.copy(), np.empty((size, size)), np.empty(size)
    pivot, high, low, change = np.empty(size, np.int64), np.empty(size), np.empty(size), np.empty(size)
    side, residual = np.empty(size), np.empty(size)
    own[VOLTAGE], own[CURRENT] = start[VOLTAGE], start[CURRENT]
    if not begin_at(rows, own):
        return 0
    best = np.inf
    for step in range(1, PATIENT + 1):
        put_tangents(made.places, own, column, OPEN)
        put_right_side(made, column, right, side)
        if not put_factor(made, column, value, lu, scale, pivot):
            return 0
        if not put_solution(made, value, lu, scale, pivot, side, high, low, change, residual):
            return 0
        put_branches(made, laws, column, same, high, low, branch, node)
        put_across(made.arrays.first, made.arrays.second, made.places, own, node[0], node[1])
        worst = distances(
            made.arrays.first,
            made.arrays.second,
            column,
            made.places,
            made.role,
            rows,
            own,
            node[0],
            1.0,
            branch[0],
            at_node,
        )
        if not worst < np.inf:
            return 0
        if worst <= CLOSE or (worst <= 0.5 * tolerance and worst > 0.25 * best):
            return step
        best = min(best, worst)
        put_port_resistances(made, lu, scale, pivot, change, own[CONDUCTANCE], own[RESISTANCE])
        if not move(rows, own):
            return 0
    return 0


def put_right_side(made, column, right, side):
    """The right-hand side with the companion models' sources."""
    for k in range(side.size):
        side[k] = right[k]
    for d in range(made.places.shape[1]):
        rest = made.places[2, d]
        side[made.eq.own[made.places[1, d]]] = column[made.places[1, d]]
        if made.arrays.first[rest] > 0:
            side[made.arrays.first[rest] - 1] -= column[rest]
        if made.arrays.second[rest] > 0:
            side[made.arrays.second[rest] - 1] += column[rest]
    for k in range(made.eq.pinned.size):
        side[made.eq.pinned[k] - 1] = 0.0


def put_factor(made, column, value, lu, scale, pivot):
    """Factors of the scaled matrix with the tangents' resistances, transposed so that its columns are contiguous;
    returns False if it is singular."""
    size = scale.size
    for b in range(size):
        scale[b] = made.right[b]
        for a in range(size):
            lu[b, a] = made.matrix[a, b]
    for d in range(made.places.shape[1]):
        own, ohms = made.eq.own[made.places[0, d]], column[made.places[0, d]]
        value[made.place[d]] = -ohms
        # A larger resistance has a smaller current.
        less = math.ldexp(1.0, -(math.frexp(max(ohms, 1.0))[1] - 1))
        for a in range(size):
            lu[own, a] *= less
        scale[own] *= less
        lu[own, own] = -ohms * made.left[own] * scale[own]
    for k in range(size):
        best, row = 0.0, -1
        for a in range(k, size):
            if abs(lu[k, a]) > best:
                best, row = abs(lu[k, a]), a
        if row < 0 or not best < np.inf:
            return False
        pivot[k] = row
        if row != k:
            for b in range(size):
                lu[b, k], lu[b, row] = lu[b, row], lu[b, k]
        for a in range(k + 1, size):
            lu[k, a] /= lu[k, k]
        for b in range(k + 1, size):
            if lu[b, k] != 0.0:
                subtract(lu[b], lu[b, k], lu[k], k + 1, size)
    return True


def subtract(x, share, other, begin, end):
    """Subtract a multiple of another row from a row, from ``begin`` to ``end``."""
    for a in range(begin, end):
        x[a] -= share * other[a]


def put_rough(made, lu, scale, pivot, x):
    """Replace a right-hand side by the solution in double precision."""
    size = x.size
    for k in range(size):
        x[k] *= made.left[k]
    for k in range(size):
        row = pivot[k]
        x[k], x[row] = x[row], x[k]
    for k in range(size):
        if x[k] != 0.0:
            subtract(x, x[k], lu[k], k + 1, size)
    for j in range(size):
        k = size - 1 - j
        if x[k] != 0.0:
            x[k] /= lu[k, k]
            subtract(x, x[k], lu[k], 0, k)
    for k in range(size):
        x[k] *= scale[k]


def put_solution(made, value, lu, scale, pivot, side, high, low, change, residual):
    """The refined solution; returns False if the matrix is singular to working precision. See `Factor.solve`."""
    for k in range(side.size):
        high[k], low[k], change[k] = 0.0, 0.0, side[k]
    put_rough(made, lu, scale, pivot, change)
    first = before = np.inf
    for turn in range(CORRECTIONS + 1):
        for k in range(change.size):
            if not abs(change[k]) < np.inf:
                return False
        share, largest, most = corrected(value, made.terms.column, made.terms.ends, side, change, high, low, residual)
        if turn == 1:
            first = share
            if largest > POOR * most:
                return False
        if turn > 0 and (share <= FINE or share * first <= FINE or (turn > 4 and share >= before)):
            return True
        before = share if turn > 0 else np.inf
        for k in range(change.size):
            change[k] = residual[k]
        put_rough(made, lu, scale, pivot, change)
    return True


def put_branches(made, laws, column, same, high, low, branch, node):
    """See `circuitsim.analysis.controlled_system.branches`."""
    n = same.size
    for k in range(n):
        lowest = same[k]
        node[0, k] = high[lowest - 1] if lowest > 0 else 0.0
        node[1, k] = low[lowest - 1] if lowest > 0 else 0.0
    for e in range(column.size):
        a, b = made.arrays.first[e], made.arrays.second[e]
        branch[1, e] = (node[0, a] - node[0, b]) + (node[1, a] - node[1, b])
        unknown = made.eq.own[e]
        branch[0, e] = high[unknown] if unknown >= 0 else 0.0
    for k in range(made.roles.nodal.size):
        e = made.roles.nodal[k]
        branch[0, e] = branch[1, e] / column[e]
    for k in range(made.roles.given.size):
        branch[0, made.roles.given[k]] = column[made.roles.given[k]]
    for k in range(made.roles.held.size):
        branch[1, made.roles.held[k]] = column[made.roles.held[k]]
    for d in range(made.eq.diode.size):
        branch[1 if made.conducting[d] else 0, made.eq.diode[d]] = 0.0
    for k in range(made.roles.ohmic.size):
        e = made.roles.ohmic[k]
        branch[1, e] = column[e] * branch[0, e]
    for k in range(made.roles.transfer.size):
        law = made.roles.transfer[k]
        at, demanded = laws.element[law], 0.0
        gain = column[at] if column[at] == column[at] else 1.0
        for c in range(laws.current_ends[law], laws.current_ends[law + 1]):
            demanded += gain * laws.current_share[c] * branch[0, laws.control[c]]
        branch[1, at] = laws.constant[law] + demanded


def put_port_resistances(made, lu, scale, pivot, x, conductance, resistance):
    """Driving-point resistances of the rest of the circuit at the devices."""
    for d in range(made.places.shape[1]):
        for k in range(x.size):
            x[k] = 0.0
        plus, minus = made.arrays.first[made.places[2, d]] - 1, made.arrays.second[made.places[2, d]] - 1
        if plus >= 0:
            x[plus] += 1.0
        if minus >= 0:
            x[minus] -= 1.0
        for k in range(made.eq.pinned.size):
            x[made.eq.pinned[k] - 1] = 0.0
        put_rough(made, lu, scale, pivot, x)
        total = (x[plus] if plus >= 0 else 0.0) - (x[minus] if minus >= 0 else 0.0)
        own = conductance[d]
        rest = 1.0 / total - own if total != 0.0 else np.inf
        resistance[d] = 1.0 / own
        if rest > -FIXED * own:
            ohms = 1.0 / max(rest, FIXED * own)
            if ohms < np.inf:
                resistance[d] = ohms
