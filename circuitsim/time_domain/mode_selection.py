"""Kernels: selection of the conducting diodes and closed switches just after a time, by first nonzero derivatives.

A set is consistent after a time if every conducting diode's current, every blocking diode's reverse voltage and every
switch's distance from its threshold has a positive first nonzero term among: infinite value, value, first derivative,
second … Violated diodes change at once, only those with the lowest order of derivative; after a repeated set, the one
of smallest index. Switches change once the diodes are consistent.
"""

from __future__ import annotations

import math

import numpy as np

from circuitsim.time_domain.mode_kernels import L, R
from circuitsim.time_domain.part_states import (
    DERIVATIVE,
    STATE,
    begun,
    part_signs,
    settled,
    signs_of_derivatives,
    stays_zero,
    summed_up,
)
from circuitsim.time_domain.roots import ORDERS, VALUE
from circuitsim.time_domain.small_matrices import put, solved, times
from circuitsim.time_domain.windows import NOW, VOLTAGE

NOISE = 1e-10
"""Fraction of the magnitudes in residuals of loops and cuts that counts as zero."""
SHARES = np.array([VALUE, 0.1 * VALUE, 100.0 * VALUE, 1e4 * VALUE])
"""Values for it, tried in turn until some set is consistent."""
TRIES = 200
"""Maximum number of sets to try at one time."""
FOUND, UNKNOWN, NONE = 0, 1, 2
"""Outcomes of `select`: a mode; a set that is not among the modes yet; no consistent set."""


def strained(modes, m, known, loops, cuts):
    """Fill in the residuals of loops of sources, capacitors and conducting diodes (l₁, 1), and of cuts of sources,
    inductors and blocking diodes (t, 1), zero where they are rounding; returns whether any is nonzero.

    ``known`` (2, m): voltages of capacitors and voltage sources, currents of inductors and current sources, and their
    sizes; 0 for all other elements.
    """
    cut, twigs, links, last, many = modes.cut[m], modes.twigs[m], modes.links[m], modes.tree[m, R], loops.shape[0]
    first, begin = modes.tree[m, L], modes.rest[m, L]
    found = unmet(cut[:last, :many].T, 1.0, links[:many], twigs[:last], known, loops)
    return unmet(cut[first:, begin:], -1.0, twigs[first:], links[begin:], known, cuts) or found


def unmet(matrix, sign, own, others, known, out):
    """Fill in what sums over other elements, with a ``sign``, miss of elements' own values, zero where it is rounding;
    returns whether any is nonzero."""
    found = False
    for i in range(own.size):
        value, size = -known[0, own[i]], known[1, own[i]]
        for k in range(others.size):
            if matrix[i, k] != 0.0:
                value += sign * matrix[i, k] * known[0, others[k]]
                size += abs(matrix[i, k]) * known[1, others[k]]
        out[i, 0] = value if abs(value) > NOISE * size else 0.0
        found |= out[i, 0] != 0.0
    return found


def agrees(modes, m, known):
    """Whether sources, capacitor voltages and inductor currents agree with the loops and cuts of a mode."""
    loops, cuts = modes.rest[m, R], modes.twigs.shape[1] - modes.tree[m, L]
    return not strained(modes, m, known, np.zeros((loops, 1)), np.zeros((cuts, 1)))


def infinite(modes, m, known, diodes, order, sign):
    """Mark the diodes with infinite currents, for equal infinitesimal resistances, or infinite voltages, for equal
    infinitesimal conductances."""
    cut, twigs, links = modes.cut[m], modes.twigs[m], modes.links[m]
    last, first, begin = modes.tree[m, R], modes.tree[m, L], modes.rest[m, L]
    loops, cuts = np.zeros((modes.rest[m, R], 1)), np.zeros((twigs.size - first, 1))
    if not strained(modes, m, known, loops, cuts):
        return
    shared(cut[:last, : loops.shape[0]].T, loops)
    shared(cut[first:, begin:], cuts)
    value, most = np.zeros(known.shape[1]), 0.0
    through, across = times(cut[:last, : loops.shape[0]], loops), times(cut[first:, begin:].T, cuts)
    for k in range(loops.shape[0]):
        value[links[k]] = loops[k, 0]
    for k in range(last):
        value[twigs[k]] = -through[k, 0]
    for k in range(cuts.shape[0]):
        value[twigs[first + k]] = -cuts[k, 0]
    for k in range(across.shape[0]):
        value[links[begin + k]] = -across[k, 0]
    for own in value:
        most = max(most, abs(own))
    for d in range(diodes.size):
        if abs(value[diodes[d]]) > NOISE * most:
            order[d], sign[d] = -1, math.copysign(1.0, value[diodes[d]])


def shared(rows, missed):
    """Overwrite ``missed`` (n, 1) by the solution for 1 + rows rowsᵀ."""
    solved(np.eye(rows.shape[0]) + times(rows, rows.T), missed)


def signs(system, rows, state, size, zero, noise, order, sign):
    """Fill in the first nonzero derivatives of rowsᵀ state where ``sign`` (d,) is still zero.

    Parameters
    ----------
    system, rows : float arrays
        The first d columns of the rows (n, c) are used.
    state, size : (n,) float arrays
        The size is the scale of the state's rounding.
    zero : (d,) bool array
        Values that are exactly zero, unless they are far from it (`APART`).
    noise : float
        Fraction of the magnitudes in a value that counts as zero.
    order, sign : (d,) arrays
        Order of the first nonzero derivative and its sign; `ORDERS` + 1 and 0 where all are zero.
    """
    error, found, magnitude = STATE * size, np.empty(sign.size), np.empty(sign.size)
    summed_up(rows, state.size, state, error, found, magnitude)
    if not settled(0, found, magnitude, noise / STATE, zero, order, sign):
        signs_of_derivatives(system, np.abs(system), rows, state, error, DERIVATIVE, order, sign)


def leading_terms(modes, decays, parts, m, known, diodes, run, state, tied, noise):
    """Fill in the first nonzero terms of all diodes and switches in mode ``m``; ``tied`` have the value zero.

    Parameters
    ----------
    modes, decays, m, known, diodes, run
        See `selected`.
    parts : tuple of two arrays
        The decaying parts and their errors, empty where there are none.
    state : tuple of two (N,) float arrays
        The state of the mode, and the scale of its errors (`state_of`).
    tied : (d,) bool array
    noise : float
        Fraction of the magnitudes in a value that counts as zero.
    """
    w, w_size, order, sign = run.w, run.w_size, run.order, run.sign
    for d in range(order.size):
        order[d], sign[d] = ORDERS + 1, 0.0
    infinite(modes, m, known, diodes, order, sign)
    if modes.source_checked[m]:
        signs(modes.system[m], modes.sources[m], w, w_size, np.zeros(tied.size, np.bool_), NOISE, order, sign)
        for d in range(order.size):
            if sign[d] != 0.0:
                order[d] = -1
    y, error = parts
    if decays is not None:
        part_signs(decays, modes, m, state[0], state[1], w.size, y, error, tied, noise, order, sign)
    else:
        signs(modes.system[m], modes.switching[m], state[0], state[1], tied, noise, order, sign)


def state_of(modes, m, run, x_size):
    """The state of mode ``m`` and the scale of its errors: (N,).

    From capacitor voltages and inductor currents with their sizes ``x_size``, or, where that is more accurate, from the
    state of the previous mode: a sum of two currents that is a state of both modes keeps its digits.
    """
    s, before, voltage = run.w.size, run.mark[NOW], run.number[VOLTAGE]
    z, size, row = np.zeros(run.z.size), np.zeros(run.z.size), np.empty(run.z.size)
    put(run.w, z[:s])
    put(run.w_size, size[:s])
    for k in range(modes.size[m]):
        if not modes.onto.shape[1]:
            at = modes.place[m, k]
            z[s + k], size[s + k] = run.x[at], run.parts.x_error[at] / STATE
            continue
        for j in range(row.size):
            row[j] = 0.0
        carried = 0.0
        for i in range(x_size.size):
            weight = modes.onto[m, k, i]
            if weight == 0.0:
                continue
            size[s + k] += abs(weight) * x_size[i]
            if before < 0:
                z[s + k] += weight * run.x[i]
                carried += abs(weight) / STATE * run.parts.x_error[i]
                continue
            for j in range(row.size):
                row[j] += weight * modes.storing[before, j, i]
        for j in range(s):
            weight = modes.onto_sources[m, k, j]
            if weight == 0.0:
                continue
            size[s + k] += abs(weight) * run.w_size[j]
            step = run.w[j]
            if before >= 0:
                row[j] += weight
                step -= run.z[j]
            # A source with a corner continues from its present state.
            if before < 0 or abs(step) > STATE * run.w_size[j]:
                z[s + k] += weight * step
                carried += abs(weight) * run.w_size[j]
        if before >= 0:
            for j in range(row.size):
                z[s + k] += row[j] * run.z[j]
                carried += abs(row[j]) * run.size[j]
        if modes.conductance[m, k] < np.inf:
            least = max(abs(z[s + k]), modes.conductance[m, k] * voltage)
            size[s + k] = min(size[s + k], max(carried, least))
        else:
            size[s + k] = min(size[s + k], max(carried, abs(z[s + k])))
    return z, size


def mode_of(modes, count, conducting):
    """The number of a mode; −1: absent."""
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
    """Whether all switches have the same states in both modes."""
    return (modes.conducting[m, diodes:] == modes.conducting[before, diodes:]).all()


def select(modes, decays, before, count, known, diodes, run, x_size):
    """The mode just after a time; see `selected`. If no set is consistent, smaller values are taken as nonzero, then
    only larger ones."""
    outcome, m = NONE, -1
    for noise in SHARES:
        outcome, m = selected(modes, decays, before, count, known, diodes, run, x_size, noise)
        if outcome != NONE:
            break
    return outcome, m


def selected(modes, decays, before, count, known, diodes, run, x_size, noise):
    """The mode just after a time.

    Parameters
    ----------
    modes : Modes
    decays : Decays or None
    before : Carried
        Previous currents of the resistors.
    count : int
        Number of them.
    known : (2, m) float array
        See `strained`.
    diodes : (d₀,) int array
        Elements; switches follow them.
    run : Run
        `conducting` is the first set to try; `tied`, which has just changed, is zero in its former state. Overwritten:
        `order` and `sign`, the leading terms of the mode, and `found`, the set found or not yet among the modes.
    x_size : (q,) float array
        Sizes of capacitor voltages and inductor currents.
    noise : float
        Fraction of the magnitudes in a value that counts as zero.

    Returns
    -------
    outcome, mode : int
    """
    begin_with, tied, order, sign, conducting = run.conducting, run.tied, run.order, run.sign, run.found
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
        state = state_of(modes, m, run, x_size)
        if decays is not None:
            carried = before.holds[0] and same_switches(modes, m, before.mode[0], diodes.size)
            if begun(decays, m, state[0], state[1], before, carried, parts[0], parts[1], parts[2]):
                for d in range(n):
                    if tied[d] and modes.switching_whole[m, d]:
                        former[d] |= stays_zero(
                            decays.switching[m], d, run.w, run.w_size, decays.size[m], parts[0], parts[1], parts[2]
                        )
        leading_terms(modes, decays, (parts[0], parts[1]), m, known, diodes, run, state, former, noise)
        begin, end, lowest = 0, diodes.size, ORDERS + 1
        for d in range(diodes.size):
            if sign[d] < 0.0:
                lowest = min(lowest, order[d])
        if lowest > ORDERS:
            begin, end = diodes.size, n
            for d in range(diodes.size, n):
                if sign[d] < 0.0:
                    lowest = min(lowest, order[d])
        if lowest > ORDERS:
            for p in range(before.y.size):
                before.y[p], before.error[p] = parts[0, p], parts[1, p]
            before.mode[0] = m
            put(state[0], run.z)
            put(state[1], run.size)
            run.mark[NOW] = m
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
