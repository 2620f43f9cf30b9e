"""Kernels: the roots and energies of waveforms on one window."""

from __future__ import annotations

import numpy as np

from circuitsim.time_domain.decays import rows_of, state_at
from circuitsim.time_domain.part_states import first_value
from circuitsim.time_domain.roots import POINTS

TIME, VOLTAGE, CURRENT, DELIVERED, DISSIPATED, TURNED, ERROR, LOST, SMALLEST, LARGEST = range(10)
"""Entries of `Run.number`: time, s; largest voltage and current so far; energies, J; error of the event time,
s, and energy lost in jumps, J; smallest and largest resistance, Ω."""
LENGTHS = 192
"""Number of window lengths, each half of the previous one."""
QUADRATIC = 1e-8
"""Largest Newton step times the largest rate whose square is below rounding."""
BOUND = 1.0 + 1e-12
"""Factor that covers the rounding of a sum of absolute values."""
GAUSS = np.stack(np.polynomial.legendre.leggauss(POINTS))
"""Gauss–Legendre nodes and weights, exact for polynomials of degree 2 `POINTS` − 1."""
SPARSE = 4
"""Stride of the nodes at which the largest voltage and current are taken."""


def later_sizes(inside, s, share, z, size, out):
    """Fill in the scale of the errors of a state at a fraction of a window: that at its start, propagated by the matrix
    exponential, plus rounding of the state. The first ``s`` keep their size."""
    at = np.ones(inside.shape[2])
    at[1] = 2.0 * share - 1.0
    for k in range(2, at.size):
        at[k] = 2.0 * at[1] * at[k - 1] - at[k - 2]
    for i in range(z.size):
        out[i] = size[i] if i < s else 0.0
        for j in range(z.size):
            if i >= s and (i == j or inside[i, j, 0] != 0.0 or inside[i, j, 1] != 0.0):
                weight = 1.0 if i == j else 0.0
                for k in range(at.size):
                    weight += inside[i, j, k] * at[k]
                out[i] += abs(weight) * max(size[j], abs(z[j]))


def refined(fixed, modes, decays, m, piece, length, z, y, event, time, size, now):
    """A root of a switching function by Newton's method from ``time`` s after the start, and an estimate of its error,
    s."""
    error, parts = 0.0, np.empty(y.size)
    for _ in range(3):
        found = state_at(fixed, modes, decays, m, piece, length, time, z, y, parts)
        value, slope = slope_at(modes, decays, m, fixed.system.shape[0], event, found, parts)
        if slope >= 0.0:
            return time, error
        step = -value / slope
        error = max(-1e-15 * size / slope, 1e-16 * (now + time))
        if not abs(step) <= 1e-3 * time:
            return time, error
        time += step
        # The remaining error is of second order in the step.
        if abs(step) <= 1e-15 * (now + time) or abs(step) * modes.radius[m] <= QUADRATIC:
            break
    return time, error


def slope_at(modes, decays, m, s, event, z, y):
    """A waveform of events and its slope: from the states, or from the sources' states and the decaying parts."""
    form, slope, count = rows_of(modes, decays), 0.0, z.size
    rows, system = form.switching[m], modes.system[m]
    value = first_value(modes.switching_whole[m], rows, modes.switching[m], event, form.size[m], s, z, y)
    if decays is not None:
        count = s
        for c in range(decays.size[m]):
            rate = -decays.rate[m, c] * y[c]
            for j in range(s):
                rate += decays.drive[m, c, j] * z[j]
            slope += rows[s + c, event] * rate
    for i in range(count):
        for j in range(count):
            slope += rows[i, event] * system[i, j] * z[j]
    return value, slope


def polynomials(until, table):
    """Fill in Chebyshev polynomials (rows) at the Gauss–Legendre nodes between −1 and ``until``."""
    half = 0.5 * (until + 1.0)
    for q in range(table.shape[1]):
        table[0, q], table[1, q] = 1.0, half * (1.0 + GAUSS[0, q]) - 1.0
    for k in range(2, POINTS):
        for q in range(table.shape[1]):
            table[k, q] = 2.0 * table[1, q] * table[k - 1, q] - table[k - 2, q]


def integrate(voltage, current, begin, count, states, fixed, until, length, number):
    """Add the energies of a window up to ``until`` (−1 … 1), and update the largest voltage and current.

    Branch voltages and currents are ``begin`` (2, m) plus these rows times the first ``count`` of ``states`` at the
    Gauss–Legendre nodes: the integral is exact for the product of two interpolants.
    """
    v, i, share = np.empty(states.shape[1]), np.empty(states.shape[1]), 0.25 * (until + 1.0) * length
    for k in range(fixed.lossy.size + fixed.sources.size):
        dissipates, energy, turned = k < fixed.lossy.size, 0.0, 0.0
        b = fixed.lossy[k] if dissipates else fixed.sources[k - fixed.lossy.size]
        at_nodes(voltage, current, b, begin, count, states, v, i)
        for q in range(v.size):
            power = GAUSS[1, q] * v[q] * i[q]
            energy += power
            turned += abs(power)
        number[DISSIPATED if dissipates else DELIVERED] += share * (energy if dissipates else -energy)
        number[TURNED] += share * turned
    largest(voltage, current, begin, count, states, v, i, number)


def largest(voltage, current, begin, count, states, v, i, number):
    """Update the largest voltage and current over a window; values that cannot exceed the maximum are not computed."""
    most = np.zeros(count)
    for j in range(count):
        for p in range(0, POINTS, SPARSE):
            most[j] = max(most[j], abs(states[j, p]))
    drop, flow = np.empty(begin.shape[1]), np.empty(begin.shape[1])
    for b in range(drop.size):
        drop[b], flow[b] = abs(begin[0, b]), abs(begin[1, b])
    for j in range(count):
        for b in range(drop.size):
            drop[b] += abs(voltage[j, b]) * most[j]
            flow[b] += abs(current[j, b]) * most[j]
    for b in range(drop.size):
        if BOUND * drop[b] < number[VOLTAGE] and BOUND * flow[b] < number[CURRENT]:
            continue
        at_nodes(voltage, current, b, begin, count, states, v, i)
        for p in range(0, POINTS, SPARSE):
            number[VOLTAGE], number[CURRENT] = max(number[VOLTAGE], abs(v[p])), max(number[CURRENT], abs(i[p]))


def at_nodes(voltage, current, b, begin, count, states, v, i):
    """Fill in the voltages and currents (p,) of branch ``b`` from rows over the states' changes and from its initial
    values."""
    for p in range(v.size):
        v[p], i[p] = begin[0, b], begin[1, b]
    for j in range(count):
        first, second = voltage[j, b], current[j, b]
        if first != 0.0 or second != 0.0:
            for p in range(v.size):
                v[p] += first * states[j, p]
                i[p] += second * states[j, p]
