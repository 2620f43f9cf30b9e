"""Kernel: the run through time, window by window and event by event, until something is missing."""

from __future__ import annotations

import math

import numpy as np

from circuitsim.engine.small.pointers import pointer, retain
from circuitsim.time_domain.decays import decay_stretch, room_of, source_window
from circuitsim.time_domain.exponentials import put
from circuitsim.time_domain.germs import FOUND, NOISE, UNKNOWN, agrees, germs, select, signs, state_of
from circuitsim.time_domain.part_states import RESOLVED, at_first, currents_of, first_value, later_errors
from circuitsim.time_domain.roots import POINTS, VALUE, ZERO, first_root, to_coefficients, to_nodes, zero_at
from circuitsim.time_domain.scales import known_of, sizes, state_sizes
from circuitsim.time_domain.trees import C, R
from circuitsim.time_domain.walk import BEFORE, CORNER, ENTER, EVENTS, NOW, SEGMENTS, STILL, TRIES, WANTED, Space
from circuitsim.time_domain.windows import (
    ERROR,
    LENGTHS,
    LOST,
    TIME,
    integrate,
    later_sizes,
    polynomials,
    refined,
    slope_at,
    state_at,
    stretch,
)

DONE, MODE, WINDOW, CORNERS, ROOM, JUMP, SOURCES, FAST, ENDLESS, NO_SET, GOING = range(11)
"""Why the loop ends: the end of the run; a mode, a window, corners of sources or room is missing; states must jump;
sources contradict each other; waveforms faster than any window; events without end; no set of diodes is
right. `GOING`: no end."""
SAME_TIME = 4.0
"""Errors of the time of an event by which another one may be apart from it."""
FALLS = 1e-6
"""Slope, in sizes a window, below which a waveform stays at zero."""
AT_ONCE = 100
"""Events without a step forward in time after which the run is given up."""
FURTHER = 3.0
"""How far to look for the next event, in mean distances of events, and no less than the last one is ago. A window that
is much longer costs halvings of its series; a shorter one is followed by another."""
LEAST_WEIGHT = 1e-6
"""Share of an inductor's current in a diode's from which the former is changed for the latter: less may be rounding."""


def enter(modes, decays, count, fixed, walk, parts, track):
    """Select the mode from here on; an event is recorded where it differs from the one before."""
    x_size = np.empty(walk.x.size)
    sizes(walk, fixed, x_size)
    known = known_of(fixed, walk, x_size, modes.voltage.shape[2])
    outcome, m = select(modes, decays, parts, count, known, fixed.diodes, walk, x_size)
    if outcome != FOUND:
        return MODE if outcome == UNKNOWN else NO_SET
    many = modes.source_many[m]
    if many > 0:
        order, sign, free = np.zeros(many, np.int64), np.zeros(many), np.zeros(many, np.bool_)
        signs(modes.system[m], modes.source_checks[m], walk.w, walk.w_size, free, NOISE, order, sign)
        for k in range(many):
            if sign[k] != 0.0:
                return SOURCES
    if not agrees(modes, m, known):
        return JUMP
    before, lost, e = walk.mark[BEFORE], walk.number[LOST], walk.mark[EVENTS]
    if before >= 0 and (before != m or lost != 0.0):
        track.time[e], track.error[e], track.lost[e] = walk.number[TIME], walk.number[ERROR], lost
        track.before[e], track.after[e] = before, m
        walk.mark[EVENTS] += 1
    walk.mark[ENTER], walk.number[LOST] = 0, 0.0
    return DONE


def meet_corner(schedule, walk, time):
    """Give the sources their states after a corner."""
    k = walk.mark[CORNER]
    while k < schedule.times.size and schedule.times[k] <= time:
        at = schedule.place[k]
        for j in range(schedule.width[k]):
            walk.w[at + j], walk.w_size[at + j] = schedule.states[k, j], schedule.sizes[k, j]
        k += 1
    walk.mark[CORNER] = k


def space_for(modes, walk):
    """Memory for a window."""
    n, d = walk.z.size, walk.tied.size
    return Space(
        np.empty((POINTS, n)),
        np.empty((POINTS, POINTS)),
        np.empty((d, POINTS)),
        np.empty(d),
        np.empty(d, np.int64),
        np.empty(walk.x.size),
        np.empty(n),
        np.zeros((2, modes.voltage.shape[2])),
        np.empty(walk.parts.y.size),
    )


def advance(modes, count, inside, exponent, schedule, fixed, walk, track, stop):
    """Go on until the run's end or until something is missing; returns `DONE`, `MODE` … Tuples are pinned."""
    return go_on(pointer(modes), None, count, inside, exponent, schedule, fixed, walk, track, stop)


def advance_decays(modes, decays, count, inside, exponent, schedule, fixed, walk, track, stop):
    """The same with decaying parts."""
    return go_on(pointer(modes), pointer(decays), count, inside, exponent, schedule, fixed, walk, track, stop)


def go_on(modes, decays, count, inside, exponent, schedule, fixed, walk, track, stop):
    """`advance`; without decaying parts ``decays`` is None, and compiled code has none of what deals with them."""
    fixed, schedule, walk, track, code = pointer(fixed), pointer(schedule), pointer(walk), pointer(track), GOING
    own_space, own_piece = space_for(modes, walk), None if decays is None else room_of(decays)
    space, piece, parts = pointer(own_space), pointer(own_piece), pointer(walk.parts)
    while code == GOING:
        code = begin(modes, decays, count, schedule, fixed, walk, parts, track, stop)
        if code == GOING:
            code = window(modes, decays, inside, exponent, schedule, fixed, walk, parts, track, stop, space, piece)
    retain(own_space)
    retain(own_piece)
    return code


def begin(modes, decays, count, schedule, fixed, walk, parts, track, stop):
    """Whether a window can begin, in the mode that holds: `GOING`, or why it cannot."""
    number, mark = walk.number, walk.mark
    if mark[SEGMENTS] == track.start.size or mark[EVENTS] == track.time.size:
        return ROOM
    if mark[ENTER]:
        code = enter(modes, decays, count, fixed, walk, parts, track)
        if code != DONE:
            return code
    if number[TIME] >= stop:
        return DONE
    if mark[CORNER] == schedule.times.size and schedule.until < stop:
        return CORNERS
    return GOING


def window(modes, decays, inside, exponent, schedule, fixed, walk, parts, track, stop, space, piece):
    """Pass one window, to its end or to the first event: `GOING`, or what is missing."""
    number, mark, m = walk.number, walk.mark, walk.mark[NOW]
    bound = schedule.times[mark[CORNER]] if mark[CORNER] < schedule.times.size else stop
    left = bound - number[TIME]
    ahead = left
    if decays is not None and mark[EVENTS] > 0 and number[TIME] > track.time[0]:
        mean, last = (number[TIME] - track.time[0]) / mark[EVENTS], number[TIME] - track.time[mark[EVENTS] - 1]
        ahead = min(left, max(FURTHER * mean, last))
    code, power = resolve(modes, decays, inside, exponent, fixed, walk, parts, space, piece, ahead)
    if code != GOING:
        return code
    length = math.ldexp(1.0, power)
    leading_zeros(modes, decays, m, fixed, walk, parts, space, piece)
    share, event = first_root(space.slack, space.orders, space.slack_size)
    end, number[ERROR] = min(length, left), 0.0
    if share * length < end:
        end, number[ERROR] = refined(
            fixed,
            modes,
            decays,
            m,
            piece,
            length,
            walk.z,
            parts.y,
            event,
            share * length,
            space.slack_size[event],
            number[TIME],
        )
    elif length >= left and bound == stop:
        event = zero_at(space.slack, space.orders, space.slack_size, left / length)
    else:
        event = -1
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
    energies(modes, decays, m, fixed, walk, parts, space, piece, since, length)
    if decays is None:
        later_sizes(
            inside[modes.window[m, exponent - power]],
            walk.w.size,
            since / length,
            walk.z,
            space.z_size,
            walk.size,
        )
    move(modes, decays, m, fixed, walk, parts, space, piece, since, length, track.state[at], event)
    number[TIME] = bound if last else min(number[TIME] + since, bound)
    corner = bound < stop and number[TIME] >= bound
    end_window(modes, decays, m, schedule, fixed, walk, parts, space, piece, since, length, event, corner)
    return GOING


def resolve(modes, decays, inside, exponent, fixed, walk, parts, space, piece, left):
    """Fill in the waveforms on the longest window that resolves them; returns `GOING`, or what is missing, and the
    power of two of its length, s. Steps down double until a window is short enough; bisection finds the longest one."""
    m = walk.mark[NOW]
    mantissa, power = math.frexp(min(left, modes.longest[m]))
    power -= mantissa == 0.5
    sizes(walk, fixed, space.x_size)
    state_sizes(modes, m, walk, space.x_size, space.z_size)
    z_size = space.z_size
    if decays is not None:
        s = walk.w.size
        for k in range(modes.size[m]):
            z_size[s + k] = parts.x_error[modes.place[m, k]] / RESOLVED
    least, good, bad, step = exponent - LENGTHS, exponent - LENGTHS, power + 1, 1
    while True:
        walk.mark[TRIES] += 1
        count = exponent - power
        if power <= least:
            return FAST, power
        if decays is not None:
            w = source_window(modes.window[0], inside, fixed, count, math.ldexp(1.0, power))
        else:
            w = modes.window[m, count]
        if w < 0:
            walk.mark[WANTED] = count
            return WINDOW, power
        if decays is not None:
            half = math.ldexp(0.5, power)
            more = decay_stretch(
                inside[w], decays, modes, m, walk.z, parts, z_size, half, piece, space.slack, space.slack_size
            )
            if more == 0:
                return GOING, power
            power -= more
            continue
        size = walk.size
        resolved = stretch(inside[w], modes, m, walk.z, z_size, size, space.states, space.slack, space.slack_size)
        if resolved and power + 1 == bad:
            return GOING, power
        if resolved:
            good = power
        else:
            bad, step = power, 2 * step
        power = (good + bad) // 2 if good > least else max(power - step // 2, min(least + 1, bad - 1))


def leading_zeros(modes, decays, m, fixed, walk, parts, space, piece):
    """Fill in the orders of the waveforms of events: what has left zero since it was last looked at has none."""
    for k in range(space.orders.size):
        space.orders[k] = max(walk.order[k], 0)
        if decays is not None and piece.clear[k]:
            space.orders[k] = -1
        if space.orders[k] <= 0 or walk.tied[k]:
            continue
        if event_value(decays, modes, m, k, walk, parts) > ZERO * space.slack_size[k]:
            space.orders[k] = 0


def event_value(decays, modes, m, k, walk, parts):
    """A waveform of events."""
    whole, rows, many = False, modes.slack[m], 0
    if decays is not None:
        whole, rows, many = decays.slack_whole[m, k], decays.slack[m], decays.many[m]
    return first_value(whole, rows, modes.slack[m], k, many, walk.w.size, walk.z, parts.y)


def energies(modes, decays, m, fixed, walk, parts, space, piece, since, length):
    """Add the energies of a window up to ``since`` s after its beginning."""
    until, n, begin = 2.0 * since / length - 1.0, walk.z.size, space.begin
    polynomials(until, space.table)
    if decays is not None:
        s, many = walk.w.size, decays.many[m]
        at_first(decays.whole[0], decays.voltage[m], modes.voltage[m], many, s, walk.z, parts.y, begin[0])
        at_first(decays.whole[1], decays.current[m], modes.current[m], many, s, walk.z, parts.y, begin[1])
        n = s + many
        for j in range(n):
            to_nodes(piece.series[j], min(int(piece.many[j]), POINTS), space.table, piece.nodes[j])
        integrate(decays.voltage[m], decays.current[m], begin, n, piece.nodes, fixed, until, length, walk.number)
    else:
        nodes, series = space.states.T.copy(), np.empty(space.states.shape[0])
        for j in range(n):
            to_coefficients(nodes[j], series)
            to_nodes(series, POINTS, space.table, nodes[j])
        integrate(modes.voltage[m], modes.current[m], begin, n, nodes, fixed, until, length, walk.number)


def move(modes, decays, m, fixed, walk, parts, space, piece, since, length, before, event):
    """Take the state ``since`` s after a window's beginning, where it was ``before``."""
    later = space.later
    put(state_at(fixed, modes, decays, m, piece, length, since, walk.z, parts.y, later), walk.z)
    if decays is None and event >= 0 and event < fixed.diodes.size and modes.conducting[m, event]:
        without_current(modes, m, event, walk)
    for k in range(walk.x.size):
        walk.x[k] = 0.0
    for j in range(walk.w.size + modes.size[m]):
        # All states side by side: each term of one sum waits for the term before.
        for k in range(walk.x.size):
            walk.x[k] += modes.storing[m, j, k] * walk.z[j]
    put(walk.z, walk.w)
    source_sizes(fixed.system, walk.w, since, walk.w_size)
    if decays is not None:
        later_errors(decays, modes, m, fixed.storage, walk.w_size, before, walk.z, later, since, parts)
        put(later, parts.y)
        missed = 0.0
        if event >= 0 and decays.slack_whole[m, event]:
            missed = abs(event_value(decays, modes, m, event, walk, parts))
        currents_of(decays, m, walk.w, walk.w_size, parts, missed)
        parts.holds[0], parts.mode[0] = True, m


def source_sizes(system, w, since, size):
    """Let the sizes of the sources' states be no less than what they have changed by in ``since`` s: a sine that begins
    at zero is a small difference of nothing at first."""
    for i in range(w.size):
        change, most = 0.0, abs(w[i])
        for j in range(w.size):
            if system[i, j] != 0.0:
                change += abs(system[i, j] * w[j]) * since
                most = max(most, abs(w[j]))
        size[i] = max(size[i], abs(w[i]), min(change, most))


def without_current(modes, m, diode, walk):
    """Change one inductor current, or sum of them, by rounding, such that a diode that turns off carries nothing: a
    large resistance beside it would show that rounding as a voltage."""
    s, at, value, off = walk.w.size, -1, 0.0, 0.0
    for j in range(s + modes.size[m]):
        value += modes.slack[m, j, diode] * walk.z[j]
        off += abs(modes.slack[m, j, diode]) * walk.size[j]
    for j in range(s + modes.tree[m, R] - modes.tree[m, C], s + modes.size[m]):
        if at < 0 or abs(modes.slack[m, j, diode]) > abs(modes.slack[m, at, diode]):
            at = j
    weight = modes.slack[m, at, diode] if at >= 0 else 0.0
    if abs(weight) < LEAST_WEIGHT or abs(value) > VALUE * off:
        return
    walk.z[at] -= value / weight
    walk.size[at] = max(off / abs(weight) - walk.size[at], abs(walk.z[at]))


def changed_with(modes, decays, m, fixed, walk, parts, space, piece, event, length):
    """Diodes and switches whose waveforms fall to zero at the time of an event, but for the error of that time, change
    with it: they may be a little above zero at the time that was found."""
    for k in range(walk.tied.size):
        if k == event or (decays is not None and piece.clear[k]):
            continue
        if abs(event_value(decays, modes, m, k, walk, parts)) > FALLS * space.slack_size[k]:
            continue
        value, slope = slope_at(decays, modes, m, fixed.system, k, walk.z, parts.y)
        falls = -slope * length > FALLS * space.slack_size[k]
        if falls and abs(value) <= SAME_TIME * -slope * walk.number[ERROR]:
            walk.tied[k], walk.conducting[k] = True, not walk.conducting[k]


def end_window(modes, decays, m, schedule, fixed, walk, parts, space, piece, since, length, event, corner):
    """Say whether a mode is to be selected: after an event, a ``corner`` of sources, or where a sign is wrong."""
    number, mark = walk.number, walk.mark
    for k in range(walk.tied.size):
        walk.conducting[k], walk.tied[k] = modes.conducting[m, k], False
    mark[BEFORE] = m
    if event >= 0:
        walk.tied[event], walk.conducting[event] = True, not walk.conducting[event]
        changed_with(modes, decays, m, fixed, walk, parts, space, piece, event, length)
    if corner:
        meet_corner(schedule, walk, number[TIME])
    if corner or event >= 0:
        mark[ENTER] = 1
        return
    sizes(walk, fixed, space.x_size)
    # A waveform that was zero up to rounding may have left that: its time is known to a window.
    number[ERROR] = since
    germs(
        modes,
        decays,
        (parts.y, parts.error),
        m,
        known_of(fixed, walk, space.x_size, modes.voltage.shape[2]),
        fixed.diodes,
        walk,
        state_of(modes, m, walk, space.x_size),
        walk.tied,
        VALUE,
    )
    for k in range(walk.sign.size):
        if walk.sign[k] < 0.0:
            mark[ENTER] = 1
