"""Circuits without inductors: decaying exponentials, driven by the sources.

In units of √J the states x of such a mode obey ẋ = −Fᵀ F x + B w, F the resistors' voltages in units of √W. The
singular value decomposition of F gives the rates as squares: no eigenvalue is a difference of large numbers, and states
that no resistor affects are conserved. Along each right singular vector ẏ = −λ y + b w; on a window y is a Chebyshev
series, by a recurrence from the last coefficient down. Each y includes the sources' share of the resistors' voltages,
so currents are sums of the y and of the sources alone: a small current is no difference of large voltages.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from circuitsim.time_domain.part_states import RESOLVED, STATE, UNSEEN, at_first
from circuitsim.time_domain.roots import OF_NODES, POINTS, SHARES
from circuitsim.time_domain.small_matrices import exponential, later, put

ORDER = 44
"""Coefficients of a series; the first `POINTS` locate roots."""
WORK = 3 * (ORDER + 1) + 5
"""Rows of memory of `decay`."""
ROUNDING = 1e-17
"""Share of the largest of the first coefficients below which the last ones are left out."""


def decay(decays, m, half, w, y, piece):
    """Fill in the series of y − y₀ of ẏ = −λ y + b w on a window of 2 ``half``, from w₀ and the series of w − w₀.

    With y′ in place of y the rule 2 k c_k = c′_{k−1} − c′_{k+1} couples neighbours only: c_k = α_k c_{k−1} + β_k from
    the last one down, all divisors positive; the beginning gives c_0. All parts side by side: each coefficient waits
    for the one before.

    Parameters
    ----------
    decays : Decays
    m : int
        The mode.
    half : float
        s.
    w, y : (N,), (c,) float arrays
        At the window's beginning; of w the states of the sources.
    piece : Piece
        With the series of w − w₀.
    """
    n, s, n_rows, series, room = decays.size[m], decays.drive.shape[2], ORDER + 1, piece.series, piece.room
    push, alpha, beta = room[:n_rows], room[n_rows : 2 * n_rows], room[2 * n_rows : 3 * n_rows]
    a, one, rest, whole, other = room[-5], room[-4], room[-3], room[-2], room[-1]
    for q in range(n):
        rest[q], other[q], beta[ORDER, q] = 0.0, 0.0, 0.0
        for k in range(ORDER + 1):
            push[k, q] = 0.0
    for i in range(s):
        for q in range(n):
            force = half * decays.drive[m, q, i]
            push[0, q] += force * w[i]
            if force != 0.0:
                for k in range(POINTS):
                    push[k, q] += force * series[i, k]
    for q in range(n):
        a[q] = decays.rate[m, q] * half
        push[0, q] -= a[q] * y[q]
        # Beyond the last coefficient those of e^{−λ t} go on: −I_k(a) / I_{k−1}(a), however fast it is.
        alpha[ORDER, q] = -a[q] / (ORDER + math.sqrt(ORDER * ORDER + a[q] * a[q]))
    for k in range(ORDER - 1, 0, -1):
        twice = 2.0 if k == 1 else 1.0
        for q in range(n):
            share = 1.0 / (2.0 * k - a[q] * alpha[k + 1, q])
            beta[k, q] = (twice * push[k - 1, q] - push[k + 1, q] + a[q] * beta[k + 1, q]) * share
            alpha[k, q] = -a[q] * twice * share
    # Values at the left end: of c_0 = 1 alone, and of the rest.
    sign = 1.0
    for q in range(n):
        one[q], whole[q] = 1.0, 1.0
    for k in range(1, ORDER):
        sign = -sign
        for q in range(n):
            one[q] *= alpha[k, q]
            rest[q] = alpha[k, q] * rest[q] + beta[k, q]
            whole[q] += sign * one[q]
            other[q] += sign * rest[q]
    for q in range(n):
        beta[0, q] = -other[q] / whole[q]
    for k in range(1, ORDER):
        for q in range(n):
            beta[k, q] += alpha[k, q] * beta[k - 1, q]
    for q in range(n):
        for k in range(ORDER):
            series[s + q, k] = beta[k, q]
        summed(piece, s + q)


def summed(piece, j):
    """Fill in the sums of a series, and how many of its coefficients are more than rounding of the first ones."""
    c, many = piece.series[j], ORDER
    rounding = ROUNDING * (abs(c[0]) + abs(c[1]) + abs(c[2]))
    while many > 1 and abs(c[many - 1]) <= rounding:
        many -= 1
    piece.many[j] = many
    # Coefficients of a part that is over before the first node fall no faster than one by one: that many are as large.
    piece.tail[j] = POINTS * max(abs(c[POINTS - 1]), abs(c[POINTS - 2]))
    rest, last = 0.0, c[0]
    for k in range(1, many):
        rest += abs(c[k])
        last += c[k]
    piece.rest[j], piece.last[j] = rest, last


def values_at(piece, count, share, out):
    """Values of the first ``count`` series at a fraction of the window (Clenshaw 1955)."""
    x, series = 2.0 * (2.0 * share - 1.0), piece.series
    for j in range(count):
        one, two = 0.0, 0.0
        for k in range(int(piece.many[j]) - 1, 0, -1):
            one, two = series[j, k] + x * one - two, one
        out[j] = series[j, 0] + 0.5 * x * one - two


LEFT = 0.1
"""Weight of the interpolation error at the left end, where the interpolant extrapolates."""
MOST = 1e30
"""Upper bound on the ratio of last coefficients to their tolerance."""


class Decays(NamedTuple):
    """The decaying parts of all modes, by number: ``c`` parts, ``q`` states, ``s`` states of sources.

    Attributes
    ----------
    size : (n,) int array
        Number of parts.
    rate : (n, c) float array
        λ, 1/s.
    start : (n, c, s + q) float array
        y as sums over the mode's state vector.
    lift : (n, c, m) float array
        y as sums over the currents of resistors.
    weight : (n, m) float array
        `circuitsim.time_domain.decaying_parts.Parting.weight` by element.
    drive : (n, c, s) float array
        b as sums over w.
    states : (n, s + c, q) float array
        Changes of the states as sums over those of w and y.
    voltage, current : (n, s + c, m) float arrays
        Branch voltages and currents as sums over w and y where they are whole; elsewhere their changes as sums over
        those of w and y, added to the initial values. Branches are contiguous: the sums are computed side by side,
        since the terms of one sum depend on each other.
    switching : (n, s + c, d) float array
    """

    size: np.ndarray
    rate: np.ndarray
    start: np.ndarray
    lift: np.ndarray
    weight: np.ndarray
    drive: np.ndarray
    states: np.ndarray
    voltage: np.ndarray
    current: np.ndarray
    switching: np.ndarray


class Piece(NamedTuple):
    """Waveforms on a window.

    Attributes
    ----------
    series : (s + c, ORDER) float array
        Chebyshev coefficients of the changes of w and y since the window's beginning.
    nodes : (s + c, POINTS) float array
        Their values at the window's nodes.
    tail, rest, last : (s + c,) float arrays
        Largest of the last coefficients as seen by the root search; sum of all but the first; value at the right end.
    many : (s + c,) float array
        Number of coefficients above the rounding of the first ones, as a float.
    peak : (s + q,) float array
        Sizes of the sources' states and of the states.
    clear : (d,) bool array
        Switching functions without a zero on the window.
    room : (WORK, s + c) float array
        Workspace of `decay`.
    of_states, of_events : (3, q), (4, d) float arrays
        Workspace for sums of all states, of all switching functions.
    table : (POINTS, POINTS) float array
        `circuitsim.time_domain.windows.polynomials`.
    switching, switching_size : (d, POINTS), (d,) float arrays
        Series of the switching functions, and their magnitudes.
    orders : (d,) int array
        Number of leading Taylor terms that are zero; −1: no zero on the window.
    x_size : (q,) float array
    z_size, size : (N,) float arrays
        `circuitsim.time_domain.windows.state_sizes`.
    begin : (2, m) float array
        Branch voltages and currents at the beginning.
    later : (c,) float array
        Decaying parts at the end.
    """

    series: np.ndarray
    nodes: np.ndarray
    tail: np.ndarray
    rest: np.ndarray
    last: np.ndarray
    many: np.ndarray
    peak: np.ndarray
    clear: np.ndarray
    room: np.ndarray
    of_states: np.ndarray
    of_events: np.ndarray
    table: np.ndarray
    switching: np.ndarray
    switching_size: np.ndarray
    orders: np.ndarray
    x_size: np.ndarray
    z_size: np.ndarray
    size: np.ndarray
    begin: np.ndarray
    later: np.ndarray


def rows_of(modes, decays):
    """The rows of waveforms over the changes of w and of the states, or of the decaying parts."""
    return modes if decays is None else decays


def room_of(modes, n):
    """Workspace for a window of ``n`` series."""
    (N, d), one, q = modes.switching.shape[1:], np.zeros((4, n)), modes.storing.shape[2]
    of_z = np.zeros((3, N))
    return Piece(
        np.zeros((n, ORDER)),
        np.zeros((n, POINTS)),
        one[0],
        one[1],
        one[2],
        one[3],
        of_z[0],
        np.zeros(d, np.bool_),
        np.zeros((WORK, n)),
        np.zeros((3, q)),
        np.zeros((4, d)),
        np.zeros((POINTS, POINTS)),
        np.zeros((d, POINTS)),
        np.zeros(d),
        np.zeros(d, np.int64),
        np.zeros(q),
        of_z[1],
        of_z[2],
        np.zeros((2, modes.voltage.shape[2])),
        np.zeros(n),
    )


def window_series(system, radius, length, found):
    """Fill in the Chebyshev series (n, n, POINTS) of e^{A t} − 1 on a window."""
    n = system.shape[0]
    for i in range(n):
        for j in range(n):
            for k in range(POINTS):
                found[i, j, k] = 0.0
    for p in range(POINTS):
        change = exponential(system, radius, length * SHARES[p])
        for i in range(n):
            for j in range(n):
                if change[i, j] != 0.0:
                    for k in range(POINTS):
                        found[i, j, k] += OF_NODES[p, k] * change[i, j]


def source_series(inside, z, piece):
    """Fill in the series of the changes of the sources' states, and of the others where ``inside`` has them."""
    s = inside.shape[0]
    for i in range(s):
        for k in range(ORDER):
            piece.series[i, k] = 0.0
        for j in range(s):
            # Other sources do not affect this state.
            if z[j] != 0.0 and (inside[i, j, 0] != 0.0 or inside[i, j, 1] != 0.0):
                for k in range(inside.shape[2]):
                    piece.series[i, k] += inside[i, j, k] * z[j]
        summed(piece, i)


def sources_resolved(n, z, piece):
    """Whether these states are resolved, by their last coefficients and their initial values; fills in their sizes."""
    for i in range(n):
        gap = 0.0
        for k in range(0, POINTS, 2):
            gap += piece.series[i, k] - piece.series[i, k + 1]
        piece.peak[i] = max(piece.z_size[i], abs(z[i]), abs(z[i] + piece.last[i]))
        if max(piece.tail[i], LEFT * abs(gap)) > RESOLVED * piece.peak[i]:
            return False
    return True


def states_resolved(decays, m, s, z, half, piece):
    """As `halvings`, for all states; fills in their sizes on the window, the larger of those of the run and of their
    values at its ends."""
    rows, tail, end, allowed = decays.states[m], piece.of_states[0], piece.of_states[1], piece.of_states[2]
    z_size = piece.z_size
    for i in range(end.size):
        tail[i], end[i], allowed[i] = 0.0, z[s + i], 0.0
    for j in range(s + decays.size[m]):
        if j < s:
            size = z_size[j]
        else:
            size, time = 0.0, min(2.0 * half, 1.0 / max(decays.rate[m, j - s], 1e-300))
            for k in range(s):
                size += abs(decays.drive[m, j - s, k]) * z_size[k] * time
        size = max(size, piece.rest[j])
        for i in range(end.size):
            tail[i] += abs(rows[j, i]) * piece.tail[j]
            end[i] += rows[j, i] * piece.last[j]
            allowed[i] += abs(rows[j, i]) * size
    for i in range(end.size):
        piece.peak[s + i] = max(z_size[s + i], abs(z[s + i]), abs(end[i]), STATE / RESOLVED * allowed[i])
        allowed[i] = RESOLVED * piece.peak[s + i]
    return halvings(decays, m, rows, s, half, piece, tail, allowed)


def halvings(decays, m, rows, s, half, piece, tail, allowed):
    """Approximate number of halvings of a window until waveforms, rows over w and y, are resolved: 0 where their last
    coefficients are within the tolerance."""
    good, most = True, 0.0
    for i in range(tail.size):
        good &= tail[i] <= allowed[i]
    if good:
        return 0
    if decays is None:
        return 1
    for c in range(decays.size[m]):
        excess = 1.0
        for i in range(tail.size):
            if tail[i] > allowed[i] > 0.0:
                excess = max(excess, abs(rows[s + c, i]) * piece.tail[s + c] / allowed[i])
        most = max(most, decays.rate[m, c] * half * math.log(min(excess, MOST)))
    # Coefficients of e^{−a (1 + x)} decay as e^{−n² / 2 a} for large a; a factor of two covers all.
    return 1 + int(math.log2(1.0 + 4.0 * most / POINTS**2))


def switching_resolved(modes, decays, m, run, half, piece):
    """As `halvings`, for all switching functions.

    Fills in their initial values, their first coefficients, sums of the last ones and the tolerances of these (4, d),
    their sizes, and which have no zero on the window.
    """
    form, y, over, s = rows_of(modes, decays), run.parts.y, modes.switching[m], run.w.size
    many, rows = form.size[m], form.switching[m]
    value, fixed, tail, allowed = piece.of_events[0], piece.of_events[1], piece.of_events[2], piece.of_events[3]
    at_first(modes.switching_whole[m], rows, over, many, s, run.z, y, value)
    for d in range(value.size):
        fixed[d], tail[d], allowed[d] = value[d], 0.0, 0.0
    for j in range(s + many):
        for d in range(value.size):
            fixed[d] += rows[j, d] * piece.series[j, 0]
            tail[d] += abs(rows[j, d]) * piece.tail[j]
            allowed[d] += abs(rows[j, d]) * piece.rest[j]
    for d in range(value.size):
        piece.clear[d], allowed[d] = fixed[d] > allowed[d], tail[d]  # more than the sum of all other coefficients
        if piece.clear[d] and tail[d] <= RESOLVED * abs(value[d]):
            continue  # the sizes below are no less than the value
        most, wrong = 0.0, 0.0
        if modes.switching_whole[m, d]:
            for j in range(s):
                most += abs(rows[j, d]) * piece.peak[j]
                wrong += abs(rows[j, d]) * run.w_size[j]
            for c in range(many):
                weight = abs(rows[s + c, d])
                most += weight * max(abs(y[c]), abs(y[c] + piece.last[s + c]))
                wrong += weight * run.parts.error[c] / STATE
        else:
            for i in range(s + modes.size[m]):
                most += abs(over[i, d]) * piece.peak[i]
                wrong += abs(over[i, d]) * piece.size[i]
        allowed[d], piece.switching_size[d] = max(RESOLVED * most, UNSEEN * wrong), wrong
    return halvings(decays, m, rows, s, half, piece, tail, allowed)


def window_waveforms(inside, modes, decays, m, run, half, piece):
    """The waveforms on a window: series of the switching functions that may have a zero; returns an estimate of the
    number of halvings until they are resolved; 0: they are.

    ``inside`` (n, n, POINTS) are the series of the changes of the sources' states, and without decaying parts of all
    states.
    """
    form, z, s, more = rows_of(modes, decays), run.z, run.w.size, 0
    many, rows = form.size[m], form.switching[m]
    source_series(inside, z, piece)
    if not sources_resolved(inside.shape[0], z, piece):
        return 1
    if decays is None:
        for i in range(z.size):
            piece.size[i] = max(piece.size[i], max(abs(z[i]), abs(z[i] + piece.last[i])))
    else:
        decay(decays, m, half, z, run.parts.y, piece)
        more = states_resolved(decays, m, s, z, half, piece)
    if more == 0:
        more = switching_resolved(modes, decays, m, run, half, piece)
    for d in range(piece.clear.size):
        if more > 0 or piece.clear[d]:
            continue
        for k in range(POINTS):
            piece.switching[d, k] = 0.0
        for j in range(s + many):
            if rows[j, d] != 0.0:
                for k in range(min(int(piece.many[j]), POINTS)):
                    piece.switching[d, k] += rows[j, d] * piece.series[j, k]
        piece.switching[d, 0] = piece.of_events[1, d]
    return more


def state_at(fixed, modes, decays, m, piece, length, since, z, y, later_y):
    """The state ``since`` s after the start of a window; fills in the decaying parts there as ``later_y``."""
    if decays is None:
        return later(modes.system[m], modes.radius[m], since, z)
    s = fixed.system.shape[0]
    change, found = np.empty(s + decays.size[m]), z.copy()
    values_at(piece, change.size, since / length, change)
    put(later(fixed.system, fixed.radius, since, z[:s]), found[:s])
    for c in range(decays.size[m]):
        later_y[c] = y[c] + change[s + c]
    for j in range(change.size):
        for i in range(decays.states.shape[2]):
            found[s + i] += decays.states[m, j, i] * change[j]
    return found


def evaluate_decays(inside, windows, exponent, decays, modes, record, where, times, v, i):
    """As `circuitsim.time_domain.small_matrices.evaluate`, for decaying parts; ``record`` is (mode, start, state,
    parts, halvings) by segment."""
    mode, start, state, parts, halvings = record
    piece, s, before, length = room_of(modes, decays.voltage.shape[1]), inside.shape[1], -1, 1.0
    y, begin, now = np.empty(piece.tail.size), np.zeros((2, v.shape[0])), np.empty((2, v.shape[0]))
    drop, flow = now[0], now[1]
    for k in range(times.size):
        at = where[k]
        m = mode[at]
        if at != before:
            z, before, length = state[at], at, math.ldexp(1.0, int(exponent - halvings[at]))
            source_series(inside[windows[halvings[at]]], z, piece)
            decay(decays, m, 0.5 * length, z, parts[at], piece)
            at_first(modes.whole[0], decays.voltage[m], modes.voltage[m], decays.size[m], s, z, parts[at], begin[0])
            at_first(modes.whole[1], decays.current[m], modes.current[m], decays.size[m], s, z, parts[at], begin[1])
        count = s + decays.size[m]
        values_at(piece, count, (times[k] - start[at]) / length, y)
        for b in range(drop.size):
            drop[b], flow[b] = begin[0, b], begin[1, b]
        for j in range(count):
            for b in range(drop.size):
                drop[b] += decays.voltage[m, j, b] * y[j]
                flow[b] += decays.current[m, j, b] * y[j]
        for b in range(drop.size):
            v[b, k], i[b, k] = drop[b], flow[b]
