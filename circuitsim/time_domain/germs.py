"""Kernels: the conducting diodes and closed switches just after a time; the first nonzero derivative decides.

A set is right from a time on if every conducting diode's current, every blocking diode's reverse voltage and every
switch's distance from its threshold has a positive first nonzero term among: infinite value, value, first derivative,
second … Violated diodes change at once, those with the lowest order of derivative only; after a repeated set, the one
of least index. Switches change when the diodes are right.
"""

from __future__ import annotations

import math

import numpy as np

from circuitsim.time_domain.part_states import APART, DERIVATIVE, STATE, begun, part_signs, stays_zero
from circuitsim.time_domain.roots import ORDERS, VALUE

NOISE = 1e-10
"""Share of the magnitudes in what loops and cuts miss that counts as zero."""
SHARES = np.array([VALUE, 0.1 * VALUE, 100.0 * VALUE, 1e4 * VALUE])
"""The same, one after the other, until some set is right."""
TRIES = 200
"""Most sets to try at one time."""
FOUND, UNKNOWN, NONE = 0, 1, 2
"""Outcomes of `select`: a mode; a set that is not among the modes yet; no set is right."""


def weigh(rows, many, state, size):
    """Products of the first ``many`` rows with a state (n,), and the magnitudes in their sums: (many,) each."""
    found, magnitude = np.zeros(many), np.zeros(many)
    for i in range(many):
        for j in range(state.size):
            found[i] += rows[i, j] * state[j]
            magnitude[i] += abs(rows[i, j]) * size[j]
    return found, magnitude


def differentiate(system, state, error, moving):
    """The next derivative of a state, and what errors of the state make of it; only entries ``moving`` are not zero."""
    n = state.size
    slope, wrong = np.zeros(n), np.zeros(n)
    for i in range(n):
        for j in moving:
            slope[i] += system[i, j] * state[j]
            wrong[i] += abs(system[i, j]) * (error[j] + STATE * abs(state[j]))
    return slope, wrong


def signs(system, rows, state, size, zero, noise, order, sign):
    """Fill in the first nonzero derivatives of rows · state where ``sign`` (d,) is zero still.

    Parameters
    ----------
    system, rows : float arrays
        Their first n columns count.
    state, size : (n,) float arrays
        The size is what rounding of the state counts against.
    zero : (d,) bool array
        Values that are zero by themselves, unless they are far from it (`APART`).
    noise : float
        Share of the magnitudes in a value that counts as zero.
    order, sign : (d,) arrays
        Order of the first nonzero derivative and its sign; `ORDERS` + 1 and 0 where all are zero.
    """
    error = np.empty(size.size)
    for i in range(size.size):
        error[i] = STATE * size[i]
    for k in range(ORDERS + 1):
        share, all_known = (noise / STATE if k == 0 else DERIVATIVE), True
        moving = np.flatnonzero((state != 0.0) | (error != 0.0))
        for d in range(sign.size):
            if sign[d] != 0.0:
                continue
            found, magnitude = 0.0, 0.0
            for j in moving:
                found += rows[d, j] * state[j]
                magnitude += abs(rows[d, j]) * error[j]
            held = k == 0 and zero[d] and abs(found) <= APART / STATE * magnitude
            if abs(found) > share * magnitude and not held:
                order[d], sign[d] = k, math.copysign(1.0, found)
            else:
                all_known = False
        if all_known or k == ORDERS or moving.size == 0:
            return
        state, error = differentiate(system, state, error, moving)


def germs(modes, decays, carried, m, w, w_size, x, x_size, tied, noise, order, sign):
    """The first nonzero terms of all diodes and switches in mode ``m``; ``tied`` have the value zero.

    ``carried`` are the decaying parts, their errors and those of the states, empty where there are none.

    ``noise`` is the share of the magnitudes in a value that counts as zero.
    """
    found, magnitude = weigh(modes.infinite[m], sign.size, joined(w, x), joined(w_size, x_size))
    for d in range(order.size):
        order[d], sign[d] = ORDERS + 1, 0.0
        if abs(found[d]) > NOISE * magnitude[d]:
            order[d], sign[d] = -1, math.copysign(1.0, found[d])
    if modes.source_many[m] > 0:
        signs(modes.system[m], modes.sources[m], w, w_size, np.zeros(tied.size, np.bool_), NOISE, order, sign)
        for d in range(order.size):
            if sign[d] != 0.0:
                order[d] = -1
    z, z_size = state_of(modes, m, w, x), state_of(modes, m, w_size, x_size)
    y, error, x_error = carried
    if y.size:
        z_error = state_of(modes, m, STATE * w_size, x_error)
        part_signs(decays, modes, m, z, z_error, w.size, y, error, tied, noise, order, sign)
    else:
        signs(modes.system[m], modes.slack[m], z, z_size, tied, noise, order, sign)


def joined(a, b):
    """Both vectors as one."""
    found = np.empty(a.size + b.size)
    for i in range(a.size):
        found[i] = a[i]
    for i in range(b.size):
        found[a.size + i] = b[i]
    return found


def state_of(modes, m, w, x):
    """The state of mode ``m`` from those of the sources and of all storing elements."""
    s, z = w.size, np.zeros(w.size + x.size)
    for j in range(s):
        z[j] = w[j]
    for k in range(modes.size[m]):
        z[s + k] = x[modes.place[m, k]]
    return z


def mode_of(modes, count, conducting):
    """The number of a mode; −1: not there."""
    for m in range(count - 1, -1, -1):
        same = True
        for d in range(conducting.size):
            if modes.conducting[m, d] != conducting[d]:
                same = False
                break
        if same:
            return m
    return -1


def same_switches(modes, m, before, diodes):
    """Whether all switches are in both modes as they are in the other."""
    changed = 0
    for d in range(diodes, modes.conducting.shape[1]):
        changed += modes.conducting[m, d] != modes.conducting[before, d]
    return changed == 0


def select(modes, decays, before, count, diodes, begin_with, w, w_size, x, x_size, tied, order, sign, conducting):
    """The mode that holds from a time on; see `selected`. Where no set is right smaller values count, then larger ones
    alone."""
    outcome, m = NONE, -1
    for noise in SHARES:
        outcome, m = selected(
            modes, decays, before, count, diodes, begin_with, w, w_size, x, x_size, tied, noise, order, sign,
            conducting,
        )  # fmt: skip
        if outcome != NONE:
            break
    return outcome, m


def selected(
    modes, decays, before, count, diodes, begin_with, w, w_size, x, x_size, tied, noise, order, sign, conducting
):
    """The mode that holds from a time on.

    Parameters
    ----------
    modes : Modes
    decays : Decays
    before : Carried
        Resistors' currents before.
    count : int
        Number of them.
    diodes : int
        Number of diodes; the others are switches.
    begin_with : (d,) bool array
        The first set to try.
    w, w_size : (s,) float arrays
        States of the sources.
    x, x_size : (q,) float arrays
        Capacitor voltages and inductor currents.
    tied : (d,) bool array
        What has just changed: in its former state its value is zero.
    noise : float
        Share of the magnitudes in a value that counts as zero.
    order, sign : (d,) arrays
        Filled in: germs of the mode.
    conducting : (d,) bool array
        Filled in: the set that was found, or that is not among the modes.

    Returns
    -------
    outcome, mode : int
    """
    n = conducting.size
    for d in range(n):
        conducting[d] = begin_with[d]
    seen, single = np.empty((TRIES, n), np.bool_), False
    former, parts = np.empty(n, np.bool_), np.zeros((3, before.y.size))
    m = -1
    for many in range(TRIES):
        m = mode_of(modes, count, conducting)
        if m < 0:
            return UNKNOWN, m
        for d in range(n):
            former[d] = tied[d] and conducting[d] != begin_with[d]
        if before.y.size:
            z, z_error = state_of(modes, m, w, x), state_of(modes, m, STATE * w_size, before.x_error)
            carried = before.holds[0] and same_switches(modes, m, before.mode[0], diodes)
            if begun(decays, m, z, z_error, before, carried, parts[0], parts[1], parts[2]):
                for d in range(n):
                    if tied[d] and decays.slack_whole[m, d]:
                        row = decays.slack[m, d]
                        former[d] |= stays_zero(row, w, w_size, decays.many[m], parts[0], parts[1], parts[2])
        germs(modes, decays, (parts[0], parts[1], before.x_error), m, w, w_size, x, x_size, former, noise, order, sign)
        begin, end, lowest = 0, diodes, ORDERS + 1
        for d in range(diodes):
            if sign[d] < 0.0:
                lowest = min(lowest, order[d])
        if lowest > ORDERS:
            begin, end = diodes, n
            for d in range(diodes, n):
                if sign[d] < 0.0:
                    lowest = min(lowest, order[d])
        if lowest > ORDERS:
            for p in range(before.y.size):
                before.y[p], before.error[p] = parts[0, p], parts[1, p]
            before.mode[0] = m
            return FOUND, m
        for k in range(many):
            same = True
            for d in range(n):
                same = same and seen[k, d] == conducting[d]
            single = single or same
        for d in range(n):
            seen[many, d] = conducting[d]
        for d in range(begin, end):
            if sign[d] < 0.0 and (single or order[d] == lowest):
                conducting[d] = not conducting[d]
                if single:
                    break
    return NONE, m
