"""Kernels: scales of the errors of states, the largest values so far."""

from __future__ import annotations

import numpy as np

from circuitsim.time_domain.exponentials import put
from circuitsim.time_domain.windows import CURRENT, LARGEST, SMALLEST, VOLTAGE

FLOOR = 1e-3
"""Scale of currents against the largest voltage in the smallest resistance, of voltages against the largest current in
the largest one."""


def sizes(walk, fixed, size):
    """Fill in the sizes of capacitor voltages and inductor currents (q,): the largest so far."""
    number = walk.number
    for k in range(fixed.is_voltage.size):
        value = 0.0
        for j in range(walk.w.size):
            value += fixed.weights[k, j] * walk.w_size[j]
        which = VOLTAGE if fixed.is_voltage[k] else CURRENT
        number[which] = max(number[which], value)
    for k in range(walk.x.size):
        which = VOLTAGE if fixed.capacitor[k] else CURRENT
        number[which] = max(number[which], abs(walk.x[k]))
    # Where nothing flows yet, currents are the rounding of voltages in the smallest resistance, and vice versa.
    # These floors do not enter the largest values: each would raise the other without end.
    v = max(number[VOLTAGE], FLOOR * number[CURRENT] * number[LARGEST])
    i = max(number[CURRENT], FLOOR * number[VOLTAGE] / number[SMALLEST])
    for k in range(size.size):
        size[k] = v if fixed.capacitor[k] else i


def state_sizes(modes, m, walk, x_size, size):
    """Fill in what the errors of the state are a fraction of (N,): sizes of sources, of capacitor voltages and inductor
    currents, or less where that is known (`Walk.size`)."""
    s = walk.w.size
    put(walk.w_size, size[:s])
    for k in range(s, size.size):
        size[k] = 0.0
    for k in range(modes.size[m]):
        if not modes.onto.shape[1]:
            size[s + k] = x_size[modes.place[m, k]]
            continue
        for i in range(x_size.size):
            size[s + k] += abs(modes.onto[m, k, i]) * x_size[i]
        for j in range(s):
            size[s + k] += abs(modes.onto_sources[m, k, j]) * walk.w_size[j]
        if modes.conductance[m, k] < np.inf:
            least = modes.conductance[m, k] * walk.number[VOLTAGE]
            size[s + k] = min(size[s + k], max(walk.size[s + k], least))


def known_of(fixed, walk, x_size, elements):
    """Values of sources and storing elements by element, and their sizes (2, m): see `germs.strained`."""
    known = np.zeros((2, elements))
    for k in range(fixed.given.size):
        e = fixed.given[k]
        for j in range(walk.w.size):
            known[0, e] += fixed.rows[k, j] * walk.w[j]
            known[1, e] += fixed.weights[k, j] * walk.w_size[j]
    for k in range(fixed.storing.size):
        known[0, fixed.storing[k]], known[1, fixed.storing[k]] = walk.x[k], x_size[k]
    return known
