"""Kernels: the waveforms on one window, from matrix exponentials or from decaying parts; roots and energies there."""

from __future__ import annotations

import numpy as np

from circuitsim.time_domain.decays import LEFT, decay_state
from circuitsim.time_domain.exponentials import later, put
from circuitsim.time_domain.part_states import RESOLVED, STATE, first_value
from circuitsim.time_domain.roots import NODES, POINTS, TO_COEFFICIENTS, TO_LEFT, to_coefficients

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


def window_waveforms(inside, modes, m, z, z_size, size, states, switching, switching_size):
    """The states at a window's nodes, and the series of the switching functions; returns whether they are resolved.

    A transient that ends before the first node only shows at the left end, where the interpolant misses the state.
    """
    n, d, values = z.size, switching_size.size, np.empty(switching.shape[1])
    for p in range(POINTS):
        for i in range(n):
            states[p, i] = 0.0
    for j in range(n):
        if z[j] != 0.0:
            for p in range(POINTS):
                for i in range(n):
                    states[p, i] += inside[j, p, i] * z[j]
    peak = np.abs(z)
    for p in range(POINTS):
        for i in range(n):
            peak[i] = max(peak[i], abs(states[p, i]))
    for i in range(n):
        last, other, gap = 0.0, 0.0, -z[i]
        for p in range(POINTS):
            last += TO_COEFFICIENTS[POINTS - 1, p] * states[p, i]
            other += TO_COEFFICIENTS[POINTS - 2, p] * states[p, i]
            gap += TO_LEFT[p] * states[p, i]
        if max(abs(last), abs(other), LEFT * abs(gap)) > max(RESOLVED * peak[i], STATE * z_size[i]):
            return False
    for k in range(d):
        switching_size[k], wide, gap = 0.0, 0.0, 0.0
        for i in range(n):
            switching_size[k] += abs(modes.switching[m, i, k]) * max(peak[i], min(size[i], z_size[i]))
            wide += abs(modes.switching[m, i, k]) * max(peak[i], z_size[i])
            gap -= modes.switching[m, i, k] * z[i]
        for p in range(POINTS):
            value = 0.0
            for i in range(n):
                value += modes.switching[m, i, k] * states[p, i]
            values[p] = value
            gap += TO_LEFT[p] * value
        to_coefficients(values, switching[k])
        last = max(abs(switching[k, POINTS - 1]), abs(switching[k, POINTS - 2]))
        if max(last, LEFT * abs(gap)) > RESOLVED * wide:
            return False
    return True


def later_sizes(inside, s, share, z, size, out):
    """Fill in the scale of the errors of a state at a fraction of a window: that at its start, propagated by the matrix
    exponentials at the neighbouring nodes, plus rounding of the state. The first ``s`` keep their size."""
    p = 0
    while p < POINTS and 0.5 * (1.0 + NODES[p]) < share:
        p += 1
    for i in range(z.size):
        out[i] = size[i]
        if i < s:
            continue
        if p > 0:
            out[i] = 0.0
        for q in range(max(p - 1, 0), min(p + 1, POINTS)):
            found = 0.0
            for j in range(z.size):
                found += abs(inside[j, q, i]) * max(size[j], abs(z[j]))
            out[i] = max(out[i], found)


def state_at(fixed, modes, decays, m, piece, length, since, z, y, parts):
    """The state ``since`` s after the start of a window; fills in the decaying parts there as ``parts``."""
    if decays is None:
        return later(modes.system[m], modes.radius[m], since, z)
    s = fixed.system.shape[0]
    found = decay_state(decays, m, s, z, y, piece, since / length, parts)
    put(later(fixed.system, fixed.radius, since, z[:s]), found[:s])
    return found


def refined(fixed, modes, decays, m, piece, length, z, y, event, time, size, now):
    """A root of a switching function by Newton's method from ``time`` s after the start, and an estimate of its error,
    s."""
    error, parts = 0.0, np.empty(y.size)
    for _ in range(3):
        found = state_at(fixed, modes, decays, m, piece, length, time, z, y, parts)
        value, slope = slope_at(decays, modes, m, fixed.system, event, found, parts)
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


def slope_at(decays, modes, m, system, event, z, y):
    """A waveform of events and its slope: from the states, or from the sources' states and the decaying parts."""
    slope = 0.0
    if decays is None:
        value, rows, system, count = 0.0, modes.switching[m], modes.system[m], z.size
        for i in range(z.size):
            value += rows[i, event] * z[i]
    else:
        rows, count = decays.switching[m], system.shape[0]
        value = first_value(
            decays.switching_whole[m, event], rows, modes.switching[m], event, decays.many[m], count, z, y
        )
        for c in range(decays.many[m]):
            rate = -decays.rate[m, c] * y[c]
            for j in range(count):
                rate += decays.drive[m, c, j] * z[j]
            slope += rows[count + c, event] * rate
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
