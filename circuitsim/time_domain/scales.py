"""Kernels: scales of the errors of states, the largest values so far."""

from __future__ import annotations

import numpy as np

from circuitsim.time_domain.exponentials import put
from circuitsim.time_domain.part_states import RESOLVED, STATE
from circuitsim.time_domain.windows import CURRENT, LARGEST, SMALLEST, VOLTAGE

FLOOR = 1e-3
"""Scale of currents relative to the largest voltage across the smallest resistance, of voltages relative to the largest
current in the largest resistance."""


def sizes(run, fixed, size):
    """Fill in the sizes of capacitor voltages and inductor currents (q,): the largest so far."""
    number = run.number
    for k in range(fixed.is_voltage.size):
        value = 0.0
        for j in range(run.w.size):
            value += fixed.weights[k, j] * run.w_size[j]
        which = VOLTAGE if fixed.is_voltage[k] else CURRENT
        number[which] = max(number[which], value)
    for k in range(run.x.size):
        which = VOLTAGE if fixed.capacitor[k] else CURRENT
        number[which] = max(number[which], abs(run.x[k]))
    # Before any current flows, currents are the rounding of voltages across the smallest resistance, and vice versa.
    # These floors do not enter the largest values: each would raise the other without end.
    v = max(number[VOLTAGE], FLOOR * number[CURRENT] * number[LARGEST])
    i = max(number[CURRENT], FLOOR * number[VOLTAGE] / number[SMALLEST])
    for k in range(size.size):
        size[k] = v if fixed.capacitor[k] else i


def state_sizes(modes, m, run, piece):
    """Fill in the sizes of the state up to which a window has to resolve it, and the scale of its errors: those of
    sources, of capacitor voltages and inductor currents, or less where known (`Run.size`)."""
    s, z_size, size = run.w.size, piece.z_size, piece.size
    put(run.w_size, z_size[:s])
    put(run.w_size, size[:s])
    for k in range(s, size.size):
        z_size[k], size[k] = 0.0, 0.0
    for k in range(modes.size[m]):
        if not modes.onto.shape[1]:
            size[s + k] = run.parts.x_error[modes.place[m, k]] / STATE
        else:
            for i in range(run.x.size):
                size[s + k] += abs(modes.onto[m, k, i]) * piece.x_size[i]
            for j in range(s):
                size[s + k] += abs(modes.onto_sources[m, k, j]) * run.w_size[j]
            if modes.conductance[m, k] < np.inf:
                least = modes.conductance[m, k] * run.number[VOLTAGE]
                size[s + k] = min(size[s + k], max(run.size[s + k], least))
        z_size[s + k] = STATE / RESOLVED * size[s + k]
        if modes.onto.shape[1]:
            size[s + k] = min(size[s + k], run.size[s + k])


def known_of(fixed, run, x_size, elements):
    """Values of sources and storing elements by element, and their sizes (2, m): see `mode_selection.strained`."""
    known = np.zeros((2, elements))
    for k in range(fixed.given.size):
        e = fixed.given[k]
        for j in range(run.w.size):
            known[0, e] += fixed.rows[k, j] * run.w[j]
            known[1, e] += fixed.weights[k, j] * run.w_size[j]
    for k in range(fixed.storing.size):
        known[0, fixed.storing[k]], known[1, fixed.storing[k]] = run.x[k], x_size[k]
    return known
