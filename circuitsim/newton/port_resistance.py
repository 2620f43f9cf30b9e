"""The driving-point resistance of the rest of the circuit at each smooth device, from a factorisation or estimated."""

from __future__ import annotations

import numpy as np

from circuitsim.engine.small.active_set import refactor
from circuitsim.engine.steps import contract_diodes

FIXED = 1e-9
"""Smallest conductance of the rest of the circuit, relative to the device's own, that is resolved."""


def estimate_resistances(plan, space, places, first, second, closed, conductance, resistance):
    """Fill in estimates of the port resistances, Ω: 1/G + 1/G' with the sums G and G' of the other conductances at the
    two nodes. They are lower bounds (Rayleigh's monotonicity law) unless another element joins the two nodes.

    Parameters
    ----------
    places : (3, s) int array
        Elements of the companion models; the last row connects the devices' nodes.
    first, second : (m,) int arrays
        Nodes of all elements.
    closed : (d,) bool array
        Conducting ideal diodes; their ends count as one node.
    conductance : (s,) float array
        Conductances of the companion models, S.
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
            resistance[d] = 1.0 / excluding(total[a], conductance[d]) + 1.0 / excluding(total[b], conductance[d])


def excluding(total, own):
    """The conductance at a node, S, excluding a device's own."""
    return max(total - own, 1e-15 * total + 1e-250)


def mean_resistance(resistance, conductance):
    """Geometric mean of the port resistance and the device's own, Ω (scalars or arrays): the load line where that of
    the port alone made the iteration cycle."""
    own = np.minimum(np.maximum(1.0 / conductance, 1e-6 * resistance), 1e6 * resistance)
    return np.sqrt(resistance) * np.sqrt(own)


def port_resistances(plan, space, places, first, second, closed, conductance, resistance):
    """Replace estimates by the port resistances, Ω, from entries of the inverse by Takahashi's recurrence (Takahashi,
    Fagan & Chen 1973).

    Returns
    -------
    float
        The largest ratio of a port resistance to its estimate.
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
    """Entries of the inverse of a factored matrix, Ω: ``inverse`` on the factor's pattern, ``own`` on the diagonal.

    Column j follows from those of its rows: Z[r, j] = Σ_t m_t Z[r, t] over the rows t of column j with multipliers m,
    and Z[j, j] = 1/pivot + Σ_t m_t Z[t, j]; all terms are positive.

    Parameters
    ----------
    weight, total : (n + 1,) float arrays
        Workspace.
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
