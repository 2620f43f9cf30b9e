"""Kernel: the run through time, window by window and event by event, until something is missing."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from circuitsim._jit import jit
from circuitsim.time_domain.decays import at_first, decay_stretch, first_value, room_of, to_nodes
from circuitsim.time_domain.exponentials import put
from circuitsim.time_domain.germs import FOUND, NOISE, UNKNOWN, germs, joined, select, signs, state_of, weigh
from circuitsim.time_domain.library import LENGTHS
from circuitsim.time_domain.part_states import Carried, aged, currents_of, state_errors
from circuitsim.time_domain.roots import POINTS, VALUE, ZERO, first_root, zero_at
from circuitsim.time_domain.windows import (
    CURRENT,
    ERROR,
    LARGEST,
    LOST,
    SMALLEST,
    TIME,
    VOLTAGE,
    integrate,
    refined,
    state_at,
    stretch,
)

DONE, MODE, WINDOW, CORNERS, ROOM, JUMP, SOURCES, FAST, ENDLESS, NO_SET = range(10)
"""Why the loop ends: the end of the run; a mode, a window, corners of sources or room is missing; states must jump;
sources contradict each other; waveforms faster than any window; events without end; no set of diodes is right."""
NOW, BEFORE, ENTER, CORNER, SEGMENTS, EVENTS, STILL, WANTED = range(8)
"""Of `Walk.mark`: the mode, that before the event at hand; whether a mode is to be selected; the next corner; numbers
of segments and events; events without a step in time; the window that is missing."""
AT_ONCE = 100
"""Events without a step forward in time after which the run is given up."""
FLOOR = 1e-3
"""Scale of currents against the largest voltage in the smallest resistance, of voltages against the largest current in
the largest one."""


class Walk(NamedTuple):
    """Where a run is.

    Attributes
    ----------
    number, mark : arrays
        See `circuitsim.time_domain.windows.TIME` and `NOW`.
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
    parts : Carried
        Decaying parts.
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
    parts: Carried


class Track(NamedTuple):
    """What a run leaves behind: segments (start, mode, state, cause of the end, halvings of the longest window,
    decaying parts), events (time, error, energy lost, mode before, after).

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
    lossy, sources, resistors : int arrays
        Elements.
    decays : bool
        Whether the waveforms are those of decaying parts (`circuitsim.time_domain.decays`).
    system : (s, s) float array
        Generator of the sources' states.
    radius : float
        Its largest absolute eigenvalue, 1/s.
    """

    diodes: int
    capacitor: np.ndarray
    given: np.ndarray
    is_voltage: np.ndarray
    lossy: np.ndarray
    sources: np.ndarray
    resistors: np.ndarray
    decays: bool
    system: np.ndarray
    radius: float


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
def enter(modes, decays, count, fixed, walk, track):
    """Select the mode from here on; an event is recorded where it differs from the one before."""
    x_size = np.empty(walk.x.size)
    sizes(walk, fixed, x_size)
    outcome, m = select(
        modes, decays, walk.parts, count, fixed.diodes, walk.conducting, walk.w, walk.w_size, walk.x, x_size, walk.tied,
        walk.order, walk.sign, walk.found,
    )  # fmt: skip
    if outcome != FOUND:
        return MODE if outcome == UNKNOWN else NO_SET
    many = modes.source_many[m]
    if many > 0:
        order, sign, free = np.zeros(many, np.int64), np.zeros(many), np.zeros(many, np.bool_)
        signs(modes.system[m], modes.source_checks[m], walk.w, walk.w_size, free, NOISE, order, sign)
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
def product(row, state):
    """row · state."""
    found = 0.0
    for j in range(state.size):
        found += row[j] * state[j]
    return found


@jit()
def advance(modes, decays, count, inside, exponent, schedule, fixed, walk, track, stop):
    """Go on until the run's end or until something is missing; returns `DONE`, `MODE` …"""
    n, d = walk.z.size, walk.tied.size
    number, mark, parts = walk.number, walk.mark, walk.parts
    states, slack, slack_size = np.empty((POINTS, n)), np.empty((d, POINTS)), np.empty(d)
    orders, x_size = np.empty(d, np.int64), np.empty(walk.x.size)
    piece, begin, later = room_of(decays), np.zeros((2, modes.voltage.shape[1])), np.empty(parts.y.size)
    while True:
        if mark[SEGMENTS] == track.start.size or mark[EVENTS] == track.time.size:
            return ROOM
        if mark[ENTER]:
            code = enter(modes, decays, count, fixed, walk, track)
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
            w = modes.window[0 if fixed.decays else m, exponent - power]
            if w < 0:
                mark[WANTED] = exponent - power
                return WINDOW
            if fixed.decays:
                half = math.ldexp(0.5, power)
                ready = decay_stretch(
                    inside[w], decays, modes, m, walk.z, parts, z_size, half, piece, slack, slack_size
                )
            else:
                ready = stretch(inside[w], modes, m, walk.z, z_size, states, slack, slack_size)
            power -= not ready
        length = math.ldexp(1.0, power)
        for k in range(d):
            orders[k] = -1 if fixed.decays and piece.clear[k] else max(walk.order[k], 0)
            if orders[k] > 0 and not walk.tied[k]:
                if fixed.decays:
                    many, s = decays.many[m], walk.w.size
                    value = first_value(
                        decays.slack_whole[m, k], decays.slack[m, k], modes.slack[m, k], many, s, walk.z, parts.y
                    )
                else:
                    value = product(modes.slack[m, k], walk.z)
                if value > ZERO * slack_size[k]:
                    orders[k] = 0
        share, event = first_root(slack, orders, slack_size)
        end, number[ERROR] = min(length, left), 0.0
        if share * length < end:
            end, number[ERROR] = refined(
                fixed, modes, decays, m, states, piece, length, walk.z, parts.y, event, share * length,
                slack_size[event], number[TIME],
            )  # fmt: skip
        else:
            event = zero_at(slack, orders, slack_size, left / length) if length >= left and bound == stop else -1
        last = length >= left and end == left
        since = left if last else end
        mark[STILL] = 0 if since > 1e-15 * number[TIME] else mark[STILL] + 1
        if mark[STILL] > AT_ONCE:
            return ENDLESS
        at = mark[SEGMENTS]
        track.start[at], track.mode[at], track.cause[at], track.halvings[at] = number[TIME], m, event, exponent - power
        put(walk.z, track.state[at])
        put(parts.y, track.parts[at])
        mark[SEGMENTS] += 1
        until = 2.0 * since / length - 1.0
        if fixed.decays:
            at_first(decays, modes, m, walk.w.size, walk.z, parts.y, begin)
            many = walk.w.size + decays.many[m]
            to_nodes(many, piece)
            integrate(decays.voltage[m], decays.current[m], begin, many, piece.nodes, fixed, until, length, number)
        else:
            integrate(modes.voltage[m], modes.current[m], begin, n, states.T.copy(), fixed, until, length, number)
        put(state_at(fixed, modes, decays, m, states, piece, length, since, walk.z, parts.y, later), walk.z)
        for k in range(walk.x.size):
            walk.x[k] = 0.0
            for j in range(n):
                walk.x[k] += modes.storing[m, k, j] * walk.z[j]
        put(walk.z, walk.w)
        if fixed.decays:
            state_errors(decays, modes, m, walk.w.size, walk.z, track.state[at], parts.y, later, parts.x_error)
            aged(decays, m, walk.w_size, parts.y, later, parts.error, since)
            put(later, parts.y)
            missed = 0.0
            if event >= 0 and decays.slack_whole[m, event]:
                missed = abs(first_value(
                    True, decays.slack[m, event], modes.slack[m, event], decays.many[m], walk.w.size, walk.z, parts.y
                ))  # fmt: skip
            currents_of(decays, m, fixed.resistors, walk.w, walk.w_size, parts, missed)
            parts.holds[0], parts.mode[0] = decays.whole[1, 0], m
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
        # A waveform that was zero up to rounding may have left that: its time is known to a window.
        number[ERROR] = since
        germs(
            modes, decays, (parts.y, parts.error, parts.x_error), m, walk.w, walk.w_size, walk.x, x_size, walk.tied,
            VALUE, walk.order, walk.sign,
        )  # fmt: skip
        for k in range(d):
            if walk.sign[k] < 0.0:
                mark[ENTER] = 1
