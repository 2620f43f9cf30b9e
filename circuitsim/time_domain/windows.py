"""Kernels: the state of an exact run, the roots and energies of waveforms on one window, and the scales of the errors
of states, which are the largest values so far.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.time_domain.decays import rows_of, state_at
from circuitsim.time_domain.part_states import RESOLVED, STATE, Carried, first_value
from circuitsim.time_domain.roots import POINTS
from circuitsim.time_domain.small_matrices import put

NOW, BEFORE, ENTER, CORNER, SEGMENTS, EVENTS, STILL, WANTED, TRIES = range(9)
"""Entries of `Run.mark`: the mode (−1: the states do not follow from those of one), that before the current event;
whether a mode must be selected; the next corner; numbers of segments and events; consecutive events without a step in
time; the missing window; windows tried."""


class Run(NamedTuple):
    """The current state of a run.

    Attributes
    ----------
    number, mark : arrays
        See `circuitsim.time_domain.windows.TIME` and `NOW`.
    w, w_size : (s,) float arrays
        States of the sources and their sizes.
    x : (q,) float array
        Capacitor voltages and inductor currents.
    z, size : (s + q,) float arrays
        State of the mode, and the scale of its errors (`circuitsim.time_domain.part_states.STATE`); those of the
        previous mode (`mark`) until the next one is selected.
    conducting, tied : (d,) bool arrays
        The first set of a selection, and what has just changed.
    found : (d,) bool array
        The set found by a selection.
    order : (d,) int array
    sign : (d,) float array
        Orders and signs of the leading terms.
    parts : Carried
        Decaying parts.
    """

    number: np.ndarray
    mark: np.ndarray
    w: np.ndarray
    w_size: np.ndarray
    x: np.ndarray
    z: np.ndarray
    size: np.ndarray
    conducting: np.ndarray
    tied: np.ndarray
    found: np.ndarray
    order: np.ndarray
    sign: np.ndarray
    parts: Carried


class Record(NamedTuple):
    """Results of a run: segments (start, mode, state, cause of the end, halvings of the longest window, decaying
    parts), events (time, error, energy lost, mode before, after).

    Attributes
    ----------
    start : (n,) float array
    mode : (n,) int array
    state : (n, N) float array
    cause, halvings : (n,) int arrays
    parts : (n, c) float array
    time, error, lost : (e,) float arrays
    before, after : (e,) int arrays
    """

    start: np.ndarray
    mode: np.ndarray
    state: np.ndarray
    cause: np.ndarray
    halvings: np.ndarray
    parts: np.ndarray
    time: np.ndarray
    error: np.ndarray
    lost: np.ndarray
    before: np.ndarray
    after: np.ndarray


class Fixed(NamedTuple):
    """Constant data of a run.

    Attributes
    ----------
    diodes : (d₀,) int array
        Elements.
    capacitor : (q,) bool array
        Whether a storing element is a capacitor.
    storing : (q,) int array
        Elements.
    given : (sources,) int array
        All sources; `sources` are those that are not parts of devices.
    rows, weights : (sources, s) float arrays
        Source values as sums over the sources' states, and absolute values of the coefficients.
    is_voltage : (sources,) bool array
    lossy, sources : int arrays
        Elements.
    system : (s, s) float array
        Generator of the sources' states.
    radius : float
        Its largest absolute eigenvalue, 1/s.
    storage : (q,) float array
        Capacitances and inductances, plus absolute mutual inductances: twice the energy is at most the sum of these
        times the squares of voltages and currents.
    """

    diodes: np.ndarray
    capacitor: np.ndarray
    storing: np.ndarray
    given: np.ndarray
    rows: np.ndarray
    weights: np.ndarray
    is_voltage: np.ndarray
    lossy: np.ndarray
    sources: np.ndarray
    system: np.ndarray
    radius: float
    storage: np.ndarray


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
