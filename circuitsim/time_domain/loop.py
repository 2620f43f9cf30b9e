"""Kernel: the run through time, window by window and event by event, until something is missing."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from circuitsim._jit import jit
from circuitsim.time_domain.exponentials import later, put
from circuitsim.time_domain.germs import FOUND, NOISE, ORDERS, UNKNOWN, germs, joined, select, signs, state_of, weigh
from circuitsim.time_domain.library import LENGTHS
from circuitsim.time_domain.roots import NODES, POINTS, TO_COEFFICIENTS, TO_LEFT, first_root

DONE, MODE, WINDOW, CORNERS, ROOM, JUMP, SOURCES, FAST, ENDLESS, NO_SET = range(10)
"""Why the loop ends: the end of the run; a mode, a window, corners of sources or room is missing; states must jump;
sources contradict each other; waveforms faster than any window; events without end; no set of diodes is right."""
TIME, VOLTAGE, CURRENT, DELIVERED, DISSIPATED, TURNED, ERROR, LOST, SMALLEST, LARGEST = range(10)
"""Of `Walk.number`: s; largest voltage and current so far; energies, J; of the event at hand its error, s, and the
energy lost in jumps, J; smallest and largest resistance, Ω."""
NOW, BEFORE, ENTER, CORNER, SEGMENTS, EVENTS, STILL, WANTED = range(8)
"""Of `Walk.mark`: the mode, that before the event at hand; whether a mode is to be selected; the next corner; numbers
of segments and events; events without a step in time; the window that is missing."""
AT_ONCE = 100
"""Events without a step forward in time after which the run is given up."""
FLOOR = 1e-3
"""Scale of currents against the largest voltage in the smallest resistance, of voltages against the largest current in
the largest one."""
RESOLVED = 1e-12
"""Last coefficients of a resolved window against the largest."""
LEFT = 0.1
"""Weight of what the interpolant misses at the left end, where it extrapolates."""
SPARSE = 4
"""Every so many nodes count for the largest voltage and current."""


class Walk(NamedTuple):
    """Where a run is.

    Attributes
    ----------
    number, mark : arrays
        See `TIME` and `NOW`.
    w, w_size : (s,) float arrays
        States of the sources and their sizes.
    x : (q,) float array
        Capacitor voltages and inductor currents.
    z : (s + q,) float array
        State of the mode.
    conducting, tied : (d,) bool arrays
        The set to begin a selection with, and what has just changed.
    found : (d,) bool array
        The set that a selection ended with.
    order : (d,) int array
    sign : (d,) float array
        Germs.
    """

    number: np.ndarray
    mark: np.ndarray
    w: np.ndarray
    w_size: np.ndarray
    x: np.ndarray
    z: np.ndarray
    conducting: np.ndarray
    tied: np.ndarray
    found: np.ndarray
    order: np.ndarray
    sign: np.ndarray


class Track(NamedTuple):
    """What a run leaves behind: segments (start, mode, state, cause of the end), events (time, error, energy lost, mode
    before, after).

    Attributes
    ----------
    start : (n,) float array
    mode : (n,) int array
    state : (n, N) float array
    cause : (n,) int array
    time, error, lost : (e,) float arrays
    before, after : (e,) int arrays
    """

    start: np.ndarray
    mode: np.ndarray
    state: np.ndarray
    cause: np.ndarray
    time: np.ndarray
    error: np.ndarray
    lost: np.ndarray
    before: np.ndarray
    after: np.ndarray


class Fixed(NamedTuple):
    """What does not change during a run.

    Attributes
    ----------
    diodes : int
        Their number; switches follow.
    capacitor : (q,) bool array
        Whether a storing element is a capacitor.
    given : (sources, s) float array
        Absolute weights of source values over the sources' states.
    is_voltage : (sources,) bool array
    lossy, sources : int arrays
        Elements.
    """

    diodes: int
    capacitor: np.ndarray
    given: np.ndarray
    is_voltage: np.ndarray
    lossy: np.ndarray
    sources: np.ndarray


@jit()
def sizes(walk, fixed, size):
    """Fill in the sizes of capacitor voltages and inductor currents (q,): the largest so far."""
    number = walk.number
    for k in range(fixed.is_voltage.size):
        value = 0.0
        for j in range(walk.w.size):
            value += fixed.given[k, j] * walk.w_size[j]
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


@jit()
def enter(modes, count, fixed, walk, track):
    """Select the mode from here on; an event is recorded where it differs from the one before."""
    x_size = np.empty(walk.x.size)
    sizes(walk, fixed, x_size)
    outcome, m = select(
        modes, count, fixed.diodes, walk.conducting, walk.w, walk.w_size, walk.x, x_size, walk.tied, walk.order,
        walk.sign, walk.found,
    )  # fmt: skip
    if outcome != FOUND:
        return MODE if outcome == UNKNOWN else NO_SET
    many = modes.source_many[m]
    if many > 0:
        order, sign, free = np.zeros(many, np.int64), np.zeros(many), np.zeros(many, np.bool_)
        signs(modes.system[m], modes.source_checks[m], walk.w, walk.w_size, free, order, sign)
        for k in range(many):
            if sign[k] != 0.0:
                return SOURCES
    many = modes.many[m]
    found, magnitude = weigh(modes.checks[m], many, joined(walk.w, walk.x), joined(walk.w_size, x_size))
    for k in range(many):
        if abs(found[k]) > NOISE * magnitude[k]:
            return JUMP
    before, lost, e = walk.mark[BEFORE], walk.number[LOST], walk.mark[EVENTS]
    if before >= 0 and (before != m or lost != 0.0):
        track.time[e], track.error[e], track.lost[e] = walk.number[TIME], walk.number[ERROR], lost
        track.before[e], track.after[e] = before, m
        walk.mark[EVENTS] += 1
    walk.mark[NOW], walk.mark[ENTER], walk.number[LOST] = m, 0, 0.0
    put(state_of(modes, m, walk.w, walk.x), walk.z)
    return DONE


@jit()
def stretch(inside, modes, m, z, z_size, states, slack, slack_size):
    """The waveforms on a window; returns whether they are resolved there.

    A transient that is over before the first node shows at the left end alone: the interpolant misses the state there.
    """
    n, d = z.size, slack_size.size
    for p in range(POINTS):
        for i in range(n):
            states[p, i] = 0.0
    for j in range(n):
        if z[j] != 0.0:
            for p in range(POINTS):
                for i in range(n):
                    states[p, i] += inside[j, p, i] * z[j]
    peak = np.empty(n)
    for i in range(n):
        peak[i] = z_size[i]
    for p in range(POINTS):
        for i in range(n):
            peak[i] = max(peak[i], abs(states[p, i]))
    for i in range(n):
        last, other, gap = 0.0, 0.0, -z[i]
        for p in range(POINTS):
            last += TO_COEFFICIENTS[POINTS - 1, p] * states[p, i]
            other += TO_COEFFICIENTS[POINTS - 2, p] * states[p, i]
            gap += TO_LEFT[p] * states[p, i]
        if max(abs(last), abs(other), LEFT * abs(gap)) > RESOLVED * peak[i]:
            return False
    for k in range(d):
        slack_size[k], last, other, gap = 0.0, 0.0, 0.0, 0.0
        for i in range(n):
            slack_size[k] += abs(modes.slack[m, k, i]) * peak[i]
            gap -= modes.slack[m, k, i] * z[i]
        for p in range(POINTS):
            value = 0.0
            for i in range(n):
                value += modes.slack[m, k, i] * states[p, i]
            slack[k, p] = value
            last += TO_COEFFICIENTS[POINTS - 1, p] * value
            other += TO_COEFFICIENTS[POINTS - 2, p] * value
            gap += TO_LEFT[p] * value
        if max(abs(last), abs(other), LEFT * abs(gap)) > RESOLVED * slack_size[k]:
            return False
    return True


@jit()
def near(modes, m, states, length, since, z):
    """The state ``since`` s after the beginning of a window, from its nearest node; backwards where little grows."""
    p, x = 0, 2.0 * since / length - 1.0
    while p < POINTS and NODES[p] < x:
        p += 1
    after = 0.5 * length * (1.0 + NODES[min(p, POINTS - 1)])
    before = 0.5 * length * (1.0 + NODES[p - 1]) if p > 0 else 0.0
    if p < POINTS and after - since < since - before and modes.radius[m] * (after - since) < 1.0:
        return later(modes.system[m], modes.radius[m], since - after, states[p])
    return later(modes.system[m], modes.radius[m], since - before, states[p - 1] if p > 0 else z)


@jit()
def refined(modes, m, states, length, z, row, time, size, now):
    """A root of row · e^{A t} z by Newton's method from ``time`` s, and the estimate of its error, s."""
    error = 0.0
    for _ in range(3):
        found = near(modes, m, states, length, time, z)
        value, slope = 0.0, 0.0
        for i in range(z.size):
            rate = 0.0
            for j in range(z.size):
                rate += modes.system[m, i, j] * found[j]
            value += row[i] * found[i]
            slope += row[i] * rate
        if slope >= 0.0:
            return time, error
        step = -value / slope
        error = max(-1e-15 * size / slope, 1e-16 * (now + time))
        if not abs(step) <= 1e-3 * time:
            return time, error
        time += step
        if abs(step) <= 1e-15 * (now + time):
            break
    return time, error


@jit()
def integrate(modes, m, fixed, states, until, length, number):
    """Add the energies of a window up to ``until`` (−1 … 1), and take its largest voltage and current."""
    whole, n = np.empty(POINTS), states.shape[1]
    # ∫ T_k from −1.
    whole[0], whole[1] = until + 1.0, 0.5 * (until * until - 1.0)
    t0, t1 = until, 2.0 * until * until - 1.0
    for k in range(2, POINTS):
        t2 = 2.0 * until * t1 - t0
        odd = 1.0 if k % 2 else -1.0
        whole[k] = 0.5 * ((t2 - odd) / (k + 1.0) - (t0 - odd) / (k - 1.0))
        t0, t1 = t1, t2
    for p in range(POINTS):
        weight = 0.0
        for k in range(POINTS):
            weight += whole[k] * TO_COEFFICIENTS[k, p]
        weight *= 0.5 * length
        for k in range(fixed.lossy.size + fixed.sources.size):
            dissipates = k < fixed.lossy.size
            b = fixed.lossy[k] if dissipates else fixed.sources[k - fixed.lossy.size]
            v, i = 0.0, 0.0
            for j in range(n):
                v += modes.voltage[m, b, j] * states[p, j]
                i += modes.current[m, b, j] * states[p, j]
            number[DISSIPATED if dissipates else DELIVERED] += weight * v * (i if dissipates else -i)
            number[TURNED] += weight * abs(v * i)
    for p in range(0, POINTS, SPARSE):
        for b in range(modes.voltage.shape[1]):
            v, i = 0.0, 0.0
            for j in range(n):
                v += modes.voltage[m, b, j] * states[p, j]
                i += modes.current[m, b, j] * states[p, j]
            number[VOLTAGE], number[CURRENT] = max(number[VOLTAGE], abs(v)), max(number[CURRENT], abs(i))


@jit()
def meet_corner(schedule, walk, time):
    """Give the sources their states after a corner."""
    k = walk.mark[CORNER]
    while k < schedule.times.size and schedule.times[k] <= time:
        at = schedule.place[k]
        for j in range(schedule.width[k]):
            walk.w[at + j], walk.w_size[at + j] = schedule.states[k, j], schedule.sizes[k, j]
        k += 1
    walk.mark[CORNER] = k


@jit()
def advance(modes, count, inside, exponent, schedule, fixed, walk, track, stop):
    """Go on until the run's end or until something is missing; returns `DONE`, `MODE` …"""
    n, d = walk.z.size, walk.tied.size
    number, mark = walk.number, walk.mark
    states, slack, slack_size = np.empty((POINTS, n)), np.empty((d, POINTS)), np.empty(d)
    orders, x_size = np.empty(d, np.int64), np.empty(walk.x.size)
    while True:
        if mark[SEGMENTS] == track.start.size or mark[EVENTS] == track.time.size:
            return ROOM
        if mark[ENTER]:
            code = enter(modes, count, fixed, walk, track)
            if code != DONE:
                return code
        if number[TIME] >= stop:
            return DONE
        if mark[CORNER] == schedule.times.size and schedule.until < stop:
            return CORNERS
        bound = schedule.times[mark[CORNER]] if mark[CORNER] < schedule.times.size else stop
        m, left = mark[NOW], bound - number[TIME]
        mantissa, power = math.frexp(min(left, modes.longest[m]))
        power -= mantissa == 0.5
        sizes(walk, fixed, x_size)
        z_size = state_of(modes, m, walk.w_size, x_size)
        ready = False
        while not ready:
            if exponent - power >= LENGTHS:
                return FAST
            w = modes.window[m, exponent - power]
            if w < 0:
                mark[WANTED] = exponent - power
                return WINDOW
            ready = stretch(inside[w], modes, m, walk.z, z_size, states, slack, slack_size)
            power -= not ready
        length = math.ldexp(1.0, power)
        for k in range(d):
            orders[k] = -1 if walk.order[k] > ORDERS else max(walk.order[k], 0)
        share, event = first_root(slack, orders, slack_size)
        end, number[ERROR] = min(length, left), 0.0
        if share * length < end:
            end, number[ERROR] = refined(
                modes, m, states, length, walk.z, modes.slack[m, event], share * length, slack_size[event], number[TIME]
            )  # fmt: skip
        else:
            event = -1
        last = event < 0 and length >= left
        since = left if last else end
        mark[STILL] = 0 if since > 1e-15 * number[TIME] else mark[STILL] + 1
        if mark[STILL] > AT_ONCE:
            return ENDLESS
        at = mark[SEGMENTS]
        track.start[at], track.mode[at], track.cause[at] = number[TIME], m, event
        put(walk.z, track.state[at])
        mark[SEGMENTS] += 1
        integrate(modes, m, fixed, states, 2.0 * since / length - 1.0, length, number)
        put(near(modes, m, states, length, since, walk.z), walk.z)
        for k in range(walk.x.size):
            walk.x[k] = 0.0
            for j in range(n):
                walk.x[k] += modes.storing[m, k, j] * walk.z[j]
        put(walk.z, walk.w)
        number[TIME] = bound if last else min(number[TIME] + since, bound)
        for k in range(d):
            walk.conducting[k], walk.tied[k] = modes.conducting[m, k], False
        mark[BEFORE] = m
        if event >= 0:
            walk.tied[event], walk.conducting[event] = True, not walk.conducting[event]
        corner = bound < stop and number[TIME] >= bound
        if corner:
            meet_corner(schedule, walk, number[TIME])
        if corner or event >= 0:
            mark[ENTER] = 1
            continue
        sizes(walk, fixed, x_size)
        germs(modes, m, walk.w, walk.w_size, walk.x, x_size, walk.tied, walk.order, walk.sign)
