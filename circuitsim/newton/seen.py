"""The resistance of the rest of a circuit as each smooth device sees it, from a factor at hand; an estimate of it."""

from __future__ import annotations

import numpy as np

from circuitsim.engine.small.active_set import refactor
from circuitsim.engine.steps import contract_diodes

FIXED = 1e-9
"""Minimum conductance of the rest of a circuit that is resolved beside the device's own, as a fraction of that."""


def estimates(plan, space, places, first, second, closed, conductance, resistance):
    """Fill in estimates, Ω: 1/G + 1/G' with the sums G and G' of the conductances at both nodes, a lower bound
    (Rayleigh) where no other element joins these two.

    Parameters
    ----------
    places : (3, s) int array
        Elements of the tangents; the last ones are between the devices' nodes.
    first, second : (m,) int arrays
        Nodes of all elements.
    closed : (d,) bool array
        Ideal diodes that conduct: the nodes at their ends are one.
    conductance : (s,) float array
        Of the tangents, S.
    """
    last, total = contract_diodes(plan, space, closed).last, space.w
    total[:] = 0.0
    for r in range(space.g.size):
        a = last[plan.coordinate[plan.resistor_first[r]]]
        b = last[plan.coordinate[plan.resistor_second[r]]]
        if a != b:
            total[a] += space.g[r]
            total[b] += space.g[r]
    for d in range(places.shape[1]):
        e = places[2, d]
        a, b = last[plan.coordinate[first[e]]], last[plan.coordinate[second[e]]]
        resistance[d] = 0.0
        if a != b:
            resistance[d] = 1.0 / beside(total[a], conductance[d]) + 1.0 / beside(total[b], conductance[d])


def beside(total, own):
    """The conductance at a node without a device's own, S."""
    return max(total - own, 1e-15 * total + 1e-250)


def between(resistance, conductance):
    """Load lines between those of the circuit and the tangents' own, Ω, where the former led in circles: of one device,
    or of arrays of them."""
    own = np.minimum(np.maximum(1.0 / conductance, 1e-6 * resistance), 1e6 * resistance)
    return np.sqrt(resistance) * np.sqrt(own)


def seen(plan, space, places, first, second, closed, conductance, resistance):
    """Replace estimates by the resistances, Ω; the entries of the inverse that they need follow from the factor by
    Takahashi's recurrence (Takahashi, Fagan & Chen 1973).

    Returns
    -------
    float
        The largest ratio of a resistance to its estimate.
    """
    factor = refactor(plan, space, closed)
    if factor < 0 or not space.held[factor]:
        return 1.0
    last, n = contract_diodes(plan, space, closed).last, plan.n
    inverse, own = np.empty(plan.rows.size), np.empty(n + 1)
    invert(plan, space.multiplier[factor], space.pivot[factor], inverse, own, space.work, space.change)
    largest = 1.0
    for d in range(places.shape[1]):
        e = places[2, d]
        a, b = last[plan.coordinate[first[e]]], last[plan.coordinate[second[e]]]
        if a == b:
            continue
        total = own[a] + own[b]
        low, high = min(a, b), max(a, b)
        if high < n:
            begin, end = plan.col_ptr[low], plan.col_ptr[low + 1]
            q = begin + np.searchsorted(plan.rows[begin:end], high)
            if q < end and plan.rows[q] == high:
                total -= 2.0 * inverse[q]
        rest, least = 1.0 / total - conductance[d], FIXED * conductance[d]
        if rest < np.inf:  # what is not resolved is at most ``least``: a device that a current alone drives sees none
            found = 1.0 / rest if rest > least else max(resistance[d], 1.0 / least)
            largest, resistance[d] = max(largest, found / resistance[d]), found
    return largest


def invert(plan, multiplier, pivot, inverse, own, weight, total):
    """Entries of the inverse of a factored matrix, Ω: ``inverse`` at the places of the factor, ``own`` on the diagonal.

    Column j follows from those of its rows: Z[r, j] = Σ_t m_t Z[r, t] over the rows t of column j with multipliers m,
    and Z[j, j] = 1/pivot + Σ_t m_t Z[t, j]; all terms are positive.

    Parameters
    ----------
    weight, total : (n + 1,) float arrays
        Work space.
    """
    n = plan.n
    own[n] = 0.0
    weight[:] = 0.0
    for j in range(n - 1, -1, -1):
        begin, end = plan.col_ptr[j], plan.col_ptr[j + 1]
        for q in range(begin, end):
            weight[plan.rows[q]] = multiplier[q]
            total[plan.rows[q]] = 0.0
        for q in range(begin, end):
            s = plan.rows[q]
            m, sum_s = weight[s], total[s] + weight[s] * own[s]
            for p in range(plan.col_ptr[s], plan.col_ptr[s + 1]):
                r = plan.rows[p]
                w = weight[r]
                if w != 0.0:
                    sum_s += w * inverse[p]
                    total[r] += m * inverse[p]
            total[s] = sum_s
        diagonal = 1.0 / pivot[j]
        for q in range(begin, end):
            s = plan.rows[q]
            inverse[q] = total[s]
            diagonal += weight[s] * total[s]
            weight[s] = 0.0
        own[j] = diagonal
