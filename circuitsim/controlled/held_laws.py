"""Kernel: residuals of the equations of controlled elements."""

from __future__ import annotations

import numpy as np


def laws_held(laws, value, voltages, low, currents, drops, worst):
    """Fill in the largest residuals of the equations, and the largest relative to the largest of their terms.

    Parameters
    ----------
    laws : LawArrays
    value : (m,) float array
        Gains, among the values of all elements; nan: 1.
    voltages, low : (n_nodes,) float arrays
        Potentials, and their low-order parts, V.
    currents, drops : (m,) float arrays
        A, V.
    worst : (2, 2) float array
        Absolute (V, A) and relative residuals of voltage laws and nullors, and of current laws; zeros on entry.
    """
    for k in range(laws.element.size):
        at = laws.element[k]
        gain = value[at] if value[at] == value[at] else 1.0
        demanded = laws.constant[k]
        largest, reach = abs(demanded), 0.0
        for c in range(laws.voltage_ends[k], laws.voltage_ends[k + 1]):
            plus, minus = laws.plus[c], laws.minus[c]
            term = gain * laws.voltage_share[c] * ((voltages[plus] - voltages[minus]) + (low[plus] - low[minus]))
            demanded += term
            largest = max(largest, abs(term))
            reach = max(reach, abs(voltages[plus]), abs(voltages[minus]))
        for c in range(laws.current_ends[k], laws.current_ends[k + 1]):
            term = gain * laws.current_share[c] * currents[laws.control[c]]
            demanded += term
            largest = max(largest, abs(term))
        which = 1 if laws.current[k] else 0
        amount, scale = abs(demanded), reach
        if not laws.nullor[k]:
            own = currents[at] if laws.current[k] else drops[at]
            amount, scale = abs(own - demanded), max(abs(own), largest)
        if not amount < np.inf:
            amount = np.inf
        share = 0.0
        if amount > 0.0:
            share = amount / scale if scale > 0.0 and amount < np.inf else np.inf
        worst[which, 0] = max(worst[which, 0], amount)
        worst[which, 1] = max(worst[which, 1], share)
