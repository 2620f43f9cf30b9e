"""Subtraction-free elimination on a `Plan`: the factor of a weighted graph Laplacian, and solves with it.

Weights are conductances between coordinates and to ground. Each pivot is the *sum* of what its coordinate is joined to,
so nothing cancels, and an ideal short is just a weight beyond all others (Grassmann, Taksar & Heyman 1985).
"""

from __future__ import annotations

from circuitsim.engine.small.plan import NOWHERE

SHORT = 1e120
"""Weight of a conducting diode, S: absorbs every conductance, and its square is still a double."""


def lower(plan, e):
    """The end of diode ``e`` that is eliminated first: the column of its slot."""
    return min(plan.coordinate[plan.anode[e]], plan.coordinate[plan.cathode[e]])


def factorise(plan, base, closed, dirty, weight, multiplier, pivot, work):
    """Eliminate in order every coordinate that is marked, and all that this reaches; the others stand.

    Parameters
    ----------
    base : (fill + n,) float array
        Conductances of the slots without diodes, S.
    closed : (d,) bool array
        Which of ``plan.diode`` are shorts.
    dirty : (n + 1,) bool array
        The coordinates to start from, all of them for a first factor; on return all that were eliminated.
    weight : (fill + n,) float array
        Filled: what joins each coordinate to later ones and to ground when it is eliminated, S.
    multiplier : (fill,) float array
        Filled: each entry's weight over its column's pivot.
    pivot : (n,) float array
        Filled, S; zero where nothing joins a coordinate to what comes later or to ground.
    work : (n + 1,) float array
        Work space.

    Returns
    -------
    bool
        Whether all pivots are ≥ 0 (negative conductances may make the energy concave).
    """
    fill = plan.rows.size
    for j in range(plan.n):
        if dirty[j]:
            for q in range(plan.col_ptr[j], plan.col_ptr[j + 1]):
                weight[q] = base[q]
            weight[fill + j] = base[fill + j]
            if plan.col_ptr[j] < plan.col_ptr[j + 1]:
                dirty[plan.rows[plan.col_ptr[j]]] = True  # the first of its rows: all others follow from it
    for e in range(closed.size):
        if closed[e] and plan.diode_slot[e] != NOWHERE and dirty[lower(plan, e)]:
            weight[plan.diode_slot[e]] = SHORT
    for j in range(plan.n):
        if not dirty[j]:
            continue
        begin, end = plan.col_ptr[j], plan.col_ptr[j + 1]
        ground = weight[fill + j]
        for q in range(begin, end):
            work[plan.rows[q]] = weight[q]
        for t in range(plan.row_ptr[j], plan.row_ptr[j + 1]):
            p = plan.row_slot[t]
            m = multiplier[p]
            if m == 0.0:
                continue
            k = plan.row_col[t]
            ground += m * weight[fill + k]
            begin_run, stop = max(plan.run[k], p + 1), plan.col_ptr[k + 1]
            for q in range(p + 1, begin_run):
                work[plan.rows[q]] += m * weight[q]
            if begin_run < stop:
                begin_row = plan.rows[begin_run]
                into, taken = work[begin_row : begin_row + (stop - begin_run)], weight[begin_run:stop]
                for q in range(taken.size):
                    into[q] += m * taken[q]
        total = ground
        for q in range(begin, end):
            weight[q] = work[plan.rows[q]]
            total += weight[q]
        weight[fill + j] = ground
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
        Filled: net current of each part without a path to ground, A, at the part's last coordinate; its potential there
        is 0.
    """
    n = plan.n
    floating_current[:] = 0.0
    for k in range(n):
        current = x[k]
        if current != 0.0:
            run, stop = plan.run[k], plan.col_ptr[k + 1]
            for q in range(plan.col_ptr[k], run):
                x[plan.rows[q]] += multiplier[q] * current
            if run < stop:
                begin_row = plan.rows[run]
                into, taken = x[begin_row : begin_row + (stop - run)], multiplier[run:stop]
                for q in range(taken.size):
                    into[q] += taken[q] * current
    for k in range(n - 1, -1, -1):
        if pivot[k] > 0.0:
            v = x[k] / pivot[k]
        else:
            floating_current[k] = x[k]
            v = 0.0
        for q in range(plan.col_ptr[k], plan.col_ptr[k + 1]):
            v += multiplier[q] * x[plan.rows[q]]
        x[k] = v
