"""Kernel: the run, window by window and event by event, until something is missing."""

from __future__ import annotations

import math

import numpy as np

from circuitsim.engine.small.pointers import pointer, retain
from circuitsim.time_domain.decays import room_of, rows_of, state_at, window_waveforms
from circuitsim.time_domain.mode_kernels import C, R
from circuitsim.time_domain.mode_selection import FOUND, NOISE, UNKNOWN, agrees, leading_terms, select, signs, state_of
from circuitsim.time_domain.part_states import at_first, currents_of, first_value, later_errors
from circuitsim.time_domain.roots import FALLS, POINTS, VALUE, ZERO, first_root, to_nodes, zero_at
from circuitsim.time_domain.small_matrices import put
from circuitsim.time_domain.windows import (
    BEFORE,
    CORNER,
    ENTER,
    ERROR,
    EVENTS,
    LENGTHS,
    LOST,
    NOW,
    SEGMENTS,
    STILL,
    TIME,
    TRIES,
    WANTED,
    integrate,
    known_of,
    later_sizes,
    polynomials,
    refined,
    sizes,
    slope_at,
    state_sizes,
)

DONE, MODE, WINDOW, CORNERS, ROOM, JUMP, SOURCES, FAST, ENDLESS, NO_SET, GOING = range(11)
"""Why the loop ends: the end of the run; a mode, a window, corners of sources or room is missing; states must jump;
sources contradict each other; waveforms are faster than any window; endless events; no set of diodes is consistent.
`GOING`: no end."""
SAME_TIME = 4.0
"""Distance within which another event is simultaneous, in errors of the event's time."""
AT_ONCE = 100
"""Maximum number of consecutive events without a step in time."""
FURTHER = 3.0
"""Distance of the search for the next event, in mean distances of events, and at least that since the last one. A much
longer window costs halvings of its series; a shorter one is followed by another."""
EARLY = 1e-3
"""Fraction of a window before which an event makes the window end soon after it: otherwise all that happens until then
has the rounding of the whole window."""
LEAST_WEIGHT = 1e-6
"""Minimum fraction of an inductor's current in a diode's for which the former is adjusted: less may be rounding."""


def enter(modes, decays, count, fixed, run, record):
    """Select the next mode; an event is recorded if it differs from the previous one."""
    x_size = np.empty(run.x.size)
    sizes(run, fixed, x_size)
    known = known_of(fixed, run, x_size, modes.voltage.shape[2])
    outcome, m = select(modes, decays, pointer(run.parts), count, known, fixed.diodes, run, x_size)
    if outcome != FOUND:
        return MODE if outcome == UNKNOWN else NO_SET
    if modes.source_checked[m]:
        many = modes.source_checks.shape[2]
        order, sign, free = np.zeros(many, np.int64), np.zeros(many), np.zeros(many, np.bool_)
        signs(modes.system[m], modes.source_checks[m], run.w, run.w_size, free, NOISE, order, sign)
        for k in range(many):
            if sign[k] != 0.0:
                return SOURCES
    if not agrees(modes, m, known):
        return JUMP
    before, lost, e = run.mark[BEFORE], run.number[LOST], run.mark[EVENTS]
    if before >= 0 and (before != m or lost != 0.0):
        record.time[e], record.error[e], record.lost[e] = run.number[TIME], run.number[ERROR], lost
        record.before[e], record.after[e] = before, m
        run.mark[EVENTS] += 1
    run.mark[ENTER], run.number[LOST] = 0, 0.0
    return DONE


def meet_corner(schedule, run, time):
    """Give the sources their states after a corner."""
    k = run.mark[CORNER]
    while k < schedule.times.size and schedule.times[k] <= time:
        at = schedule.place[k]
        for j in range(schedule.width[k]):
            run.w[at + j], run.w_size[at + j] = schedule.states[k, j], schedule.sizes[k, j]
        k += 1
    run.mark[CORNER] = k


def advance(modes, count, inside, exponent, schedule, fixed, run, record, stop):
    """Continue to the end of the run or until something is missing; returns `DONE`, `MODE` … Tuples are pinned."""
    return go_on(pointer(modes), None, count, inside, exponent, schedule, fixed, run, record, stop)


def advance_decays(modes, decays, count, inside, exponent, schedule, fixed, run, record, stop):
    """The same with decaying parts."""
    return go_on(pointer(modes), pointer(decays), count, inside, exponent, schedule, fixed, run, record, stop)


def go_on(modes, decays, count, inside, exponent, schedule, fixed, run, record, stop):
    """`advance`; without decaying parts ``decays`` is None, and the code for them is not compiled."""
    fixed, schedule, run, record, code = pointer(fixed), pointer(schedule), pointer(run), pointer(record), GOING
    own = room_of(modes, rows_of(modes, decays).voltage.shape[1])
    piece = pointer(own)
    while code == GOING:
        code = begin(modes, decays, count, schedule, fixed, run, record, stop)
        if code == GOING:
            code = window(modes, decays, inside, exponent, schedule, fixed, run, record, stop, piece)
    retain(own)
    return code


def begin(modes, decays, count, schedule, fixed, run, record, stop):
    """Whether a window can begin in the current mode: `GOING`, or why it cannot."""
    number, mark = run.number, run.mark
    if mark[SEGMENTS] == record.start.size or mark[EVENTS] == record.time.size:
        return ROOM
    if mark[ENTER]:
        code = enter(modes, decays, count, fixed, run, record)
        if code != DONE:
            return code
    if number[TIME] >= stop:
        return DONE
    if mark[CORNER] == schedule.times.size and schedule.until < stop:
        return CORNERS
    return GOING


def window(modes, decays, inside, exponent, schedule, fixed, run, record, stop, piece):
    """Advance over one window, to its end or to the first event: `GOING`, or what is missing."""
    number, mark, m = run.number, run.mark, run.mark[NOW]
    bound = schedule.times[mark[CORNER]] if mark[CORNER] < schedule.times.size else stop
    left = bound - number[TIME]
    ahead = left
    if mark[EVENTS] > 0 and number[TIME] > record.time[0]:
        mean, last = (number[TIME] - record.time[0]) / mark[EVENTS], number[TIME] - record.time[mark[EVENTS] - 1]
        ahead = min(left, max(FURTHER * mean, last))
    length, power, share, event = 1.0, 0, 0.0, -1
    for _ in range(2):
        code, power = resolve(modes, decays, inside, exponent, fixed, run, piece, ahead)
        if code != GOING:
            return code
        length = math.ldexp(1.0, power)
        leading_zeros(modes, decays, m, run, piece)
        share, event = first_root(piece.switching, piece.orders, piece.switching_size)
        if not 0.0 < share < EARLY:
            break
        ahead = 2.0 * share * length
    end, number[ERROR] = min(length, left), 0.0
    if share * length < end:
        end, number[ERROR] = refined(
            fixed,
            modes,
            decays,
            m,
            piece,
            length,
            run.z,
            run.parts.y,
            event,
            share * length,
            piece.switching_size[event],
            number[TIME],
        )
    elif length >= left and bound == stop:
        event = zero_at(piece.switching, piece.orders, piece.switching_size, left / length)
    else:
        event = -1
    last = length >= left and end == left
    since = left if last else end
    mark[STILL] = 0 if since > 1e-15 * number[TIME] else mark[STILL] + 1
    if mark[STILL] > AT_ONCE:
        return ENDLESS
    at = mark[SEGMENTS]
    record.start[at], record.mode[at], record.cause[at], record.halvings[at] = number[TIME], m, event, exponent - power
    put(run.z, record.state[at])
    put(run.parts.y, record.parts[at])
    mark[SEGMENTS] += 1
    energies(modes, decays, m, fixed, run, piece, since, length)
    if decays is None:
        later_sizes(
            inside[modes.window[m, exponent - power]],
            run.w.size,
            since / length,
            run.z,
            piece.z_size,
            run.size,
        )
    move(modes, decays, m, fixed, run, piece, since, length, record.state[at], event)
    number[TIME] = bound if last else min(number[TIME] + since, bound)
    corner = bound < stop and number[TIME] >= bound
    end_window(modes, decays, m, schedule, fixed, run, piece, since, length, event, corner)
    return GOING


def resolve(modes, decays, inside, exponent, fixed, run, piece, left):
    """Fill in the waveforms on a window that resolves them; returns `GOING`, or what is missing, and the exponent of
    its length, s, which is a power of two."""
    m = run.mark[NOW]
    mantissa, power = math.frexp(min(left, modes.longest[m]))
    power -= mantissa == 0.5
    sizes(run, fixed, piece.x_size)
    state_sizes(modes, m, run, piece)
    while exponent - power < LENGTHS:
        run.mark[TRIES] += 1
        count = exponent - power
        w = modes.window[m if decays is None else 0, count]
        if w < 0:
            run.mark[WANTED] = count
            return WINDOW, power
        more = window_waveforms(inside[w], modes, decays, m, run, math.ldexp(0.5, power), piece)
        if more == 0:
            return GOING, power
        power -= more
    return FAST, power


def leading_zeros(modes, decays, m, run, piece):
    """Fill in the orders of zero of the switching functions; one that has left zero since the last check has none."""
    for k in range(piece.orders.size):
        piece.orders[k] = max(run.order[k], 0)
        if piece.clear[k]:
            piece.orders[k] = -1
        if piece.orders[k] <= 0 or run.tied[k]:
            continue
        if event_value(decays, modes, m, k, run) > ZERO * piece.switching_size[k]:
            piece.orders[k] = 0


def event_value(decays, modes, m, k, run):
    """A switching function."""
    form, whole = rows_of(modes, decays), modes.switching_whole[m]
    return first_value(whole, form.switching[m], modes.switching[m], k, form.size[m], run.w.size, run.z, run.parts.y)


def energies(modes, decays, m, fixed, run, piece, since, length):
    """Add the energies of a window up to ``since`` s after its start."""
    until, begin, form, s = 2.0 * since / length - 1.0, piece.begin, rows_of(modes, decays), run.w.size
    count, voltage, current = s + form.size[m], form.voltage[m], form.current[m]
    polynomials(until, piece.table)
    at_first(modes.whole[0], voltage, modes.voltage[m], count - s, s, run.z, run.parts.y, begin[0])
    at_first(modes.whole[1], current, modes.current[m], count - s, s, run.z, run.parts.y, begin[1])
    for j in range(count):
        to_nodes(piece.series[j], min(int(piece.many[j]), POINTS), piece.table, piece.nodes[j])
    integrate(voltage, current, begin, count, piece.nodes, fixed, until, length, run.number)


def move(modes, decays, m, fixed, run, piece, since, length, before, event):
    """Advance the state to ``since`` s after a window's start, where it was ``before``."""
    later = piece.later
    put(state_at(fixed, modes, decays, m, piece, length, since, run.z, run.parts.y, later), run.z)
    if decays is None and event >= 0 and event < fixed.diodes.size and modes.conducting[m, event]:
        without_current(modes, m, event, run)
    for k in range(run.x.size):
        run.x[k] = 0.0
    for j in range(run.w.size + modes.size[m]):
        # All states side by side, since the terms of one sum depend on each other.
        for k in range(run.x.size):
            run.x[k] += modes.storing[m, j, k] * run.z[j]
    put(run.z, run.w)
    source_sizes(fixed.system, run.w, since, run.w_size)
    if decays is not None:
        later_errors(decays, modes, m, fixed.storage, run.w_size, before, run.z, later, since, pointer(run.parts))
        put(later, run.parts.y)
        missed = 0.0
        if 0 <= event < fixed.diodes.size and modes.conducting[m, event]:
            missed = abs(event_value(decays, modes, m, event, run))
        currents_of(decays, m, run.w, run.w_size, pointer(run.parts), missed)
        run.parts.holds[0], run.parts.mode[0] = True, m


def source_sizes(system, w, since, size):
    """Raise the sizes of the sources' states to their change in ``since`` s: a sine that starts at zero has no other
    scale at first."""
    for i in range(w.size):
        change, most = 0.0, abs(w[i])
        for j in range(w.size):
            if system[i, j] != 0.0:
                change += abs(system[i, j] * w[j]) * since
                most = max(most, abs(w[j]))
        size[i] = max(size[i], abs(w[i]), min(change, most))


def without_current(modes, m, diode, run):
    """Adjust one inductor current, or sum of them, by rounding, such that a diode that turns off carries nothing: a
    large parallel resistance would turn that rounding into a voltage."""
    s, at, value, off = run.w.size, -1, 0.0, 0.0
    for j in range(s + modes.size[m]):
        value += modes.switching[m, j, diode] * run.z[j]
        off += abs(modes.switching[m, j, diode]) * run.size[j]
    for j in range(s + modes.tree[m, R] - modes.tree[m, C], s + modes.size[m]):
        if at < 0 or abs(modes.switching[m, j, diode]) > abs(modes.switching[m, at, diode]):
            at = j
    weight = modes.switching[m, at, diode] if at >= 0 else 0.0
    if abs(weight) < LEAST_WEIGHT or abs(value) > VALUE * off:
        return
    run.z[at] -= value / weight
    run.size[at] = max(off / abs(weight) - run.size[at], abs(run.z[at]))


def changed_with(modes, decays, m, run, piece, event, length):
    """Diodes and switches whose switching functions fall to zero at the time of an event, within its error, change with
    it: they may be slightly above zero at the time found."""
    for k in range(run.tied.size):
        if k == event or (decays is not None and piece.clear[k]):
            continue
        if abs(event_value(decays, modes, m, k, run)) > FALLS * piece.switching_size[k]:
            continue
        value, slope = slope_at(modes, decays, m, run.w.size, k, run.z, run.parts.y)
        falls = -slope * length > FALLS * piece.switching_size[k]
        if falls and abs(value) <= SAME_TIME * -slope * run.number[ERROR]:
            run.tied[k], run.conducting[k] = True, not run.conducting[k]


def end_window(modes, decays, m, schedule, fixed, run, piece, since, length, event, corner):
    """Decide whether a mode is to be selected: after an event, a ``corner`` of sources, or where a sign is wrong."""
    number, mark = run.number, run.mark
    for k in range(run.tied.size):
        run.conducting[k], run.tied[k] = modes.conducting[m, k], False
    mark[BEFORE] = m
    if event >= 0:
        run.tied[event], run.conducting[event] = True, not run.conducting[event]
        changed_with(modes, decays, m, run, piece, event, length)
    if corner:
        meet_corner(schedule, run, number[TIME])
    if corner or event >= 0:
        mark[ENTER] = 1
        return
    sizes(run, fixed, piece.x_size)
    # A waveform that was zero up to rounding may have left zero; the time of that is known to a window.
    number[ERROR] = since
    leading_terms(
        modes,
        decays,
        (run.parts.y, run.parts.error),
        m,
        known_of(fixed, run, piece.x_size, modes.voltage.shape[2]),
        fixed.diodes,
        run,
        state_of(modes, m, run, piece.x_size),
        run.tied,
        VALUE,
    )
    for k in range(run.sign.size):
        if run.sign[k] < 0.0:
            mark[ENTER] = 1
