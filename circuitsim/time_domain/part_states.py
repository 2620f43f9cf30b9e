"""Kernels: decaying parts at a time, with error bounds: at the start of a mode, later, and the resulting signs.

A part follows from the states, with the errors of the voltages, or from the resistors' currents, which are continuous
if the states are: the more accurate one is used. So a small current next to large voltages keeps its digits from one
mode to the next.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from circuitsim.time_domain.roots import ORDERS, VALUE
from circuitsim.time_domain.small_matrices import put

STATE = 1e-14
"""Error of a state relative to its scale."""
RESOLVED = 1e-12
"""Last coefficients of a resolved window relative to the largest."""
UNSEEN = 1e-17
"""The same relative to the magnitudes whose error is `STATE`."""
DERIVATIVE = 100.0
"""Factor on the error of a derivative below which it counts as zero."""
APART = 1e-6
"""Fraction of the magnitudes in a value above which it is nonzero, whatever has just changed: others changed with
it."""
ROUNDING = 3e-16
"""Rounding of the singular vectors by which parts follow from currents."""
AGREE = 10.0
"""Currents that differ from the states' by more than this many error bounds have jumped."""


class Carried(NamedTuple):
    """The current decaying parts of a run; empty where a circuit has none.

    Attributes
    ----------
    y, error : (c,) float arrays
        Of the mode, and their errors.
    current, current_error : (e,) float arrays
        Of the resistors at the end of the previous window, A.
    x_error : (q,) float array
        Errors of capacitor voltages and inductor currents, individual bounds.
    energy : (1,) float array
        Twice the energy of these errors, J: a bound in any direction.
    holds : (1,) bool array
        Whether these are still valid: neither states nor sources have jumped.
    mode : (1,) int array
    resistors : int array
        Elements.
    """

    y: np.ndarray
    error: np.ndarray
    current: np.ndarray
    current_error: np.ndarray
    x_error: np.ndarray
    energy: np.ndarray
    holds: np.ndarray
    mode: np.ndarray
    resistors: np.ndarray


def nothing_carried(parts: int, elements: int, storing: int, resistors: np.ndarray) -> Carried:
    """Workspace for numbers of parts, elements and storing elements; ``resistors`` are elements."""
    (y, error), (current, off) = np.zeros((2, parts)), np.zeros((2, elements))
    x_error, energy, holds, mode = np.zeros(storing), np.zeros(1), np.zeros(1, dtype=bool), np.zeros(1, dtype=np.int64)
    return Carried(y, error, current, off, x_error, energy, holds, mode, resistors)


def at_first(whole, rows, over, many, s, z, y, found):
    """Fill in waveforms (r,) at the start of a window: `first_value` of all columns; where all are ``whole``, ``over``
    may be empty."""
    for r in range(found.size):
        found[r] = 0.0
    for j in range(s + min(many, y.size)):
        state = z[j] if j < s else y[j - s]
        for r in range(found.size):
            found[r] += rows[j, r] * state if whole[r] else 0.0
    for j in range(over.shape[0]):
        if z[j] != 0.0:
            for r in range(found.size):
                found[r] += 0.0 if whole[r] else over[j, r] * z[j]


def first_value(whole, rows, over, r, many, s, z, y):
    """Column ``r`` of the waveforms at the start of a window: over w and y if that is the ``whole`` value, otherwise
    over the state vector."""
    found = 0.0
    if whole[r]:
        for j in range(s):
            found += rows[j, r] * z[j]
        for c in range(many):
            found += rows[s + c, r] * y[c]
    else:
        for j in range(z.size):
            found += over[j, r] * z[j]
    return found


def begun(decays, m, z, z_size, before, carried, y, error, of_states):
    """Fill in the parts (c,) of mode ``m`` at its start, and their errors.

    Returns whether the previous currents are valid. In the same mode the states take the parts that follow from these:
    otherwise the rounding of large states, and of the time of a steep corner, remains where all has decayed. In another
    one a voltage that a diode held at zero stays zero.

    Parameters
    ----------
    decays : Decays
    m : int
    z, z_size : (N,) float arrays
        State vector, made to agree with the parts, and the scale of its errors.
    before : Carried
    carried : bool
        Whether its currents are valid unless states jump.
    y, error, of_states : (c,) float arrays
        Parts, their errors, and the errors they have if computed from the states.
    """
    carrying, s = 0.0, decays.drive.shape[2]
    for e in before.resistors:
        carrying += decays.weight[m, e] * abs(before.current[e])
    many, by_current, of_current = decays.size[m], np.zeros(y.size), np.zeros(y.size)
    for p in range(many):
        y[p], error[p] = 0.0, 0.0
        for j in range(z.size):
            y[p] += decays.start[m, p, j] * z[j]
            error[p] += abs(decays.start[m, p, j]) * STATE * z_size[j]
        of_states[p] = error[p]
        if not carried:
            continue
        of_current[p] = ROUNDING * carrying / math.sqrt(decays.rate[m, p]) if decays.rate[m, p] > 0.0 else 0.0
        for e in before.resistors:
            flow = before.current[e]
            by_current[p] += decays.lift[m, p, e] * flow
            of_current[p] += abs(decays.lift[m, p, e]) * (before.current_error[e] + STATE * abs(flow))
        if decays.rate[m, p] > 0.0 and abs(by_current[p] - y[p]) > AGREE * (error[p] + of_current[p]):
            carried = False
    if carried:
        for p in range(many):
            if decays.rate[m, p] > 0.0 and of_current[p] < error[p]:
                for i in range(s, z.size if m == before.mode[0] else s):
                    z[i] += decays.states[m, s + p, i - s] * (by_current[p] - y[p])
                y[p], error[p] = by_current[p], of_current[p]
    return carried


def with_sources(w, w_size, y, error):
    """The sources' states and the decaying parts, and their errors."""
    return np.concatenate((w, y)), np.concatenate((STATE * w_size, error))


def stays_zero(rows, d, w, w_size, many, y, error, of_states):
    """Whether a waveform, column ``d`` of rows over w and y, that was zero is still zero within the errors of the
    states; its deviation is added to the errors of the parts, by the smallest change of them."""
    s, value, size, off = w.size, 0.0, 0.0, 0.0
    for j in range(s):
        value += rows[j, d] * w[j]
        off += abs(rows[j, d]) * STATE * w_size[j]
    for p in range(many):
        value += rows[s + p, d] * y[p]
        off += abs(rows[s + p, d]) * of_states[p]
        size += rows[s + p, d] * rows[s + p, d]
    if abs(value) > AGREE * off:
        return False
    if size > 0.0:
        for p in range(many):
            error[p] += abs(value * rows[s + p, d]) / size
    return True


def later_errors(decays, modes, m, storage, w_size, z, later_z, later_y, time, parts):
    """Errors of states and parts ``time`` s later, when they differ from ``z`` and ``parts.y``.

    A state is a sum of parts, with their errors so far and its own rounding. Errors decay as waveforms do, so their
    energy does not grow, and it bounds the error of each state (Cauchy–Schwarz).

    Parameters
    ----------
    storage : (q,) float array
        `circuitsim.time_domain.windows.Fixed.storage`.
    w_size : (s,) float array
        Sizes of the sources' states.
    z, later_z : (N,) float arrays
    later_y : (c,) float array
    parts : Carried
        Its errors become those at the later time.
    """
    s, many = w_size.size, decays.size[m]
    gone, own, begun, added = np.empty(many), np.empty(many), 0.0, 0.0
    for p in range(many):
        rate, driven, pushed = decays.rate[m, p], 0.0, 0.0
        for j in range(s):
            driven += abs(decays.start[m, p, j]) * STATE * w_size[j]
            pushed += abs(decays.drive[m, p, j]) * STATE * w_size[j]
        gone[p] = -math.expm1(-rate * time)
        own[p] = STATE * max(abs(parts.y[p]), abs(later_y[p])) + pushed * (gone[p] / rate if rate > 0.0 else time)
        begun += driven * driven
        added += own[p] * own[p]
    energy, sums = max(parts.energy[0], begun), np.zeros((3, storage.size))
    size, off, wide = sums[0], sums[1], sums[2]
    for i in range(storage.size):
        size[i] = abs(later_z[s + i])
    for j in range(s):
        for i in range(storage.size):
            size[i] += abs(decays.states[m, j, i] * (later_z[j] - z[j]))
    for p in range(many):
        change = abs(later_y[p] - parts.y[p])
        for i in range(storage.size):
            shape = abs(decays.states[m, s + p, i])
            size[i] += shape * change
            off[i] += shape * gone[p] * parts.error[p]
            wide[i] += (shape * gone[p]) * (shape * gone[p])
    for i in range(modes.size[m]):
        place = modes.place[m, i]
        added += storage[place] * (STATE * size[i]) ** 2
        parts.x_error[place] = max(parts.x_error[place], STATE * size[i] + min(off[i], math.sqrt(wide[i] * energy)))
    parts.energy[0] = max(energy, added)
    for p in range(many):
        parts.error[p] += own[p] - gone[p] * parts.error[p]


def currents_of(decays, m, w, w_size, before, missed):
    """Fill in the currents of all resistors, and their errors; ``missed`` is the residual current of a diode that turns
    off."""
    state, wrong = with_sources(w, w_size, before.y, before.error)
    flow, off = np.empty(before.current.size), np.empty(before.current.size)
    summed_up(decays.current[m], w.size + decays.size[m], state, wrong, flow, off)
    for e in before.resistors:
        before.current[e], before.current_error[e] = flow[e], missed + off[e]


def part_signs(decays, modes, m, z, z_size, s, y, error, zero, noise, order, sign):
    """As `circuitsim.time_domain.mode_selection.signs`, from the decaying parts, one derivative at a time."""
    many, n = decays.size[m], s + decays.size[m]
    state, wrong = with_sources(z[:s], z_size[:s], y[:many], error[:many])
    sums = np.zeros((4, sign.size))
    found, magnitude, value, size = sums[0], sums[1], sums[2], sums[3]
    summed_up(decays.switching[m], n, state, wrong, found, magnitude)
    summed_up(modes.switching[m], z.size, z, z_size, value, size)
    for d in range(sign.size):
        if not modes.switching_whole[m, d]:
            found[d], magnitude[d] = value[d], STATE * size[d]
    if settled(0, found, magnitude, noise / STATE, zero, order, sign):
        return
    system, reach = np.zeros((n, n)), np.zeros(s)
    for j in range(s):  # assigning a matrix would take seconds to compile
        put(modes.system[m, j], system[j, :s])
    for p in range(many):
        system[s + p, s + p] = -decays.rate[m, p]
        for j in range(s):
            system[s + p, j] = decays.drive[m, p, j]
            reach[j] = max(reach[j], abs(decays.drive[m, p, j]) * math.sqrt(decays.rate[m, p]))
    rounding = np.abs(system)
    for p in range(many):
        for j in range(s):
            # The drive of a part is a fraction of that of all: their relative errors are equal.
            if decays.rate[m, p] > 0.0:
                rounding[s + p, j] += reach[j] / math.sqrt(decays.rate[m, p])
    share = DERIVATIVE * max(1.0, noise / VALUE)
    signs_of_derivatives(system, rounding, decays.switching[m], state, wrong, share, order, sign)


def signs_of_derivatives(system, rounding, rows, state, error, share, order, sign):
    """Fill in the first nonzero derivatives of rowsᵀ state, without the value, where ``sign`` (d,) is still zero.

    Parameters
    ----------
    system, rounding : (n, n) float arrays
        The state's derivative over it, and that derivative's rounding over the state's.
    rows : float array
        The first d columns of the first n rows are used.
    state, error : (n,) float arrays
    share : float
        Fraction of the magnitudes in a derivative that counts as zero.
    order, sign : (d,) arrays
        See `circuitsim.time_domain.mode_selection.signs`.
    """
    n, found, magnitude, free = state.size, np.empty(sign.size), np.empty(sign.size), np.zeros(sign.size, np.bool_)
    for k in range(1, ORDERS + 1):
        later, wrong = np.zeros(n), np.zeros(n)
        for i in range(n):
            for j in range(n):
                later[i] += system[i, j] * state[j]
                wrong[i] += abs(system[i, j]) * error[j] + rounding[i, j] * STATE * abs(state[j])
        state, error = later, wrong
        summed_up(rows, n, state, error, found, magnitude)
        if settled(k, found, magnitude, share, free, order, sign):
            return


def summed_up(rows, n, state, error, found, magnitude):
    """Fill in sums of the first ``n`` rows times a state, and of the absolute values of the rows times its errors. All
    columns are computed side by side, since the terms of one sum depend on each other."""
    for d in range(found.size):
        found[d], magnitude[d] = 0.0, 0.0
    for j in range(n):
        for d in range(found.size):
            found[d] += rows[j, d] * state[j]
            magnitude[d] += abs(rows[j, d]) * error[j]


def settled(k, found, magnitude, share, zero, order, sign):
    """Fill in the orders and signs of derivatives of order ``k`` above a fraction of their magnitudes; returns whether
    all signs are known. Values (k = 0) marked ``zero`` are zero unless they are far from it."""
    all_known = True
    for d in range(sign.size):
        if sign[d] != 0.0:
            continue
        held = k == 0 and zero[d] and abs(found[d]) <= APART / STATE * magnitude[d]
        if abs(found[d]) > share * magnitude[d] and not held:
            order[d], sign[d] = k, math.copysign(1.0, found[d])
        else:
            all_known = False
    return all_known
