"""Subtraction-free elimination on a `Plan`: the factor of a weighted graph Laplacian, and solves with it.

Weights are conductances between coordinates and to ground. Each pivot is the *sum* of the weights at its coordinate, so
there is no cancellation, and an ideal short is just a weight larger than all others (Grassmann, Taksar & Heyman 1985).
"""

from __future__ import annotations

import numpy as np

from circuitsim.engine.small.plan import NOWHERE

SHORT = 1e120
"""Weight of a conducting diode, S: absorbs every conductance, and its square is still a double."""


def lower(plan, e):
    """The end of diode ``e`` that is eliminated first: the column of its slot."""
    return min(plan.coordinate[plan.anode[e]], plan.coordinate[plan.cathode[e]])


def factorise(plan, base, closed, dirty, weight, multiplier, pivot, work):
    """Eliminate in order every marked coordinate and all that this affects; the others keep their factors.

    Parameters
    ----------
    base : (fill + n,) float array
        Conductances of the slots without diodes, S.
    closed : (d,) bool array
        Which of ``plan.diode`` are shorts.
    dirty : (n + 1,) bool array
        The coordinates to start from, all of them for a first factor; on return those eliminated.
    weight : (fill + n,) float array
        Overwritten: weights from each coordinate to later ones and to ground when it is eliminated, S.
    multiplier : (fill,) float array
        Overwritten: each entry's weight over its column's pivot.
    pivot : (n,) float array
        Overwritten, S; zero where nothing joins a coordinate to later ones or to ground.
    work : (n + 1,) float array
        Workspace.

    Returns
    -------
    bool
        Whether all pivots are ≥ 0 (negative conductances may make the energy concave).
    """
    fill = plan.rows.size
    for j in range(plan.n):
        if dirty[j]:
            begin, end = plan.col_ptr[j], plan.col_ptr[j + 1]
            for q in range(begin, end):
                weight[q] = base[q]
            weight[fill + j] = base[fill + j]
            if begin < end:
                dirty[plan.rows[begin]] = True  # the first of its rows: all others follow from it
    for e in range(closed.size):
        if closed[e] and plan.diode_slot[e] != NOWHERE and dirty[lower(plan, e)]:
            weight[plan.diode_slot[e]] = SHORT
    for j in range(plan.n):
        if not dirty[j]:
            continue
        ground, before = weight[fill + j], plan.row_ptr[j]
        begin, end, last = plan.col_ptr[j], plan.col_ptr[j + 1], plan.row_ptr[j + 1]
        for q in range(begin, end):
            work[plan.rows[q]] = weight[q]
        while before < last:  # four columns of one supernode at a time, to read each number of ``work`` only once
            k, p = plan.row_col[before], np.int64(plan.row_slot[before])
            g, first, stop = fill + k, p + 1, plan.col_ptr[k + 1]
            m = multiplier[p]
            if min(plan.supernode_end[k], j) >= k + 4:
                p1, p2 = plan.row_slot[before + 1] - p, plan.row_slot[before + 2] - p
                p3 = plan.row_slot[before + 3] - p
                m1, m2, m3 = multiplier[p + p1], multiplier[p + p2], multiplier[p + p3]
                ground += (m * weight[g] + m1 * weight[g + 1]) + (m2 * weight[g + 2] + m3 * weight[g + 3])
                for q in range(first, stop):
                    work[plan.rows[q]] += (m * weight[q] + m1 * weight[q + p1]) + (
                        m2 * weight[q + p2] + m3 * weight[q + p3]
                    )
                before += 4
            else:
                ground += m * weight[g]
                for q in range(first, stop):
                    work[plan.rows[q]] += m * weight[q]
                before += 1
        weight[fill + j] = ground
        total = ground
        for q in range(begin, end):
            weight[q] = work[plan.rows[q]]
            total += weight[q]
        pivot[j] = total
        if total < 0.0:
            return False
        for q in range(begin, end):
            multiplier[q] = weight[q] / total if weight[q] != 0.0 else 0.0
    return True


def substitute(plan, multiplier, pivot, x, floating_current):
    """Solve in place: currents into the coordinates become potentials.

    Parameters
    ----------
    floating_current : (n,) float array
        Overwritten: net current of each part without a path to ground, A, at the part's last coordinate, whose
        potential is 0.
    """
    n = plan.n
    floating_current[:] = 0.0
    for k in range(n):
        current = x[k]
        if current != 0.0:
            for q in range(plan.col_ptr[k], plan.col_ptr[k + 1]):
                x[plan.rows[q]] += multiplier[q] * current
    for k in range(n - 1, -1, -1):
        if pivot[k] > 0.0:
            v = x[k] / pivot[k]
        else:
            floating_current[k] = x[k]
            v = 0.0
        for q in range(plan.col_ptr[k], plan.col_ptr[k + 1]):
            v += multiplier[q] * x[plan.rows[q]]
        x[k] = v
