"""Kernels: the equations of a mode as rows of the arrays that the loop reads."""

from __future__ import annotations

import numpy as np

from circuitsim.time_domain.part_currents import over_parts


def ordered_row(row, k, s, out):
    """A row over (k states, s states of sources) as one over the library's state vector."""
    for j in range(s):
        out[j] = row[k + j]
    for j in range(k):
        out[s + j] = row[j]
    for j in range(s + k, out.size):
        out[j] = 0.0


def taken(mode, rows, modes, at, s):
    """Fill in number ``at`` of the modes; see `circuitsim.time_domain.library.Modes`."""
    k, q, d = mode.states.size, rows.storing.size, rows.diodes.size
    for j in range(mode.conducting.size):
        modes.conducting[at, j] = mode.conducting[j]
    modes.size[at] = k
    for j in range(k):
        modes.place[at, j] = np.searchsorted(rows.storing, mode.states[j])
    for i in range(s):
        ordered_row(mode.system[k + i], k, s, modes.system[at, i])
    for i in range(k):
        ordered_row(mode.system[i], k, s, modes.system[at, s + i])
    for e in range(mode.voltage.shape[0]):
        ordered_row(mode.voltage[e], k, s, modes.voltage[at, e])
        ordered_row(mode.current[e], k, s, modes.current[at, e])
    for j in range(q):
        ordered_row(mode.dependent[rows.storing[j]], k, s, modes.storing[at, j])
    for j in range(d):
        e, on = rows.diodes[j], mode.conducting[j]
        for c in range(modes.slack.shape[2]):
            modes.slack[at, j, c] = modes.current[at, e, c] if on else -modes.voltage[at, e, c]
        ordered_row(mode.loops[e] if on else -mode.cuts[e], q, s, modes.infinite[at, j])
        for c in range(s):
            modes.sources[at, j, c] = mode.source_loops[e, c] if on else -mode.source_cuts[e, c]
    for j in range(rows.control.shape[0]):
        by_current, e, on = rows.control[j, 0], rows.control[j, 1], mode.conducting[d + j]
        for c in range(modes.slack.shape[2]):
            value = modes.current[at, e, c] if by_current else modes.voltage[at, e, c]
            modes.slack[at, d + j, c] = value if on else -value
        modes.slack[at, d + j, rows.one] += -rows.off[j] if on else rows.on[j]


def nonzero(first, second, keep):
    """Fill in which rows of two matrices one below the other are not zero; returns their number."""
    found = 0
    for k in range(keep.size):
        row = first[k] if k < first.shape[0] else second[k - first.shape[0]]
        keep[k] = False
        for j in range(row.size):
            keep[k] = keep[k] or row[j] != 0.0
        found += keep[k]
    return found


def checked(first, second, keep, states, out):
    """Fill in these rows, columns of sources before the ``states`` columns."""
    at = 0
    for k in range(keep.size):
        if keep[k]:
            row = first[k] if k < first.shape[0] else second[k - first.shape[0]]
            ordered_row(row, states, row.size - states, out[at])
            at += 1


def parted(mode, rows, parting, modes, decays, at, s):
    """Fill in number ``at`` of the decaying parts of a mode; see `circuitsim.time_domain.decays.Decays`."""
    c, k, d = parting.rate.size, mode.states.size, rows.diodes.size
    decays.many[at] = c
    for p in range(c):
        decays.rate[at, p] = parting.rate[p]
        ordered_row(parting.start[p], k, s, decays.start[at, p])
        for j in range(parting.resistors.size):
            decays.lift[at, p, parting.resistors[j]] = parting.lift[p, j]
        for j in range(s):
            decays.drive[at, p, j] = parting.drive[p, j]
    for j in range(parting.resistors.size):
        decays.weight[at, parting.resistors[j]] = parting.weight[j]
    for i in range(k):
        for p in range(c):
            decays.shape[at, i, p] = parting.shape[i, p]
        for j in range(s):
            decays.along[at, i, j] = parting.along[i, j]
    over_parts(modes.slack[at], parting, c, decays.slack[at])
    over_parts(modes.voltage[at], parting, c, decays.voltage[at])
    if not decays.whole[1].any():
        over_parts(modes.current[at], parting, c, decays.current[at])
        return
    for e in range(parting.current.shape[0]):
        for j in range(s + c):
            decays.current[at, e, j] = parting.current[e, j]
    for e in rows.resistors:
        for j in range(s + c):
            decays.voltage[at, e, j] = parting.value[e] * parting.current[e, j]
    for j in range(mode.conducting.size):
        on, control = mode.conducting[j], j - d
        whole = on if control < 0 else rows.control[control, 0] == 1
        decays.slack_whole[at, j] = whole
        if whole:
            e = rows.diodes[j] if control < 0 else rows.control[control, 1]
            for i in range(s + c):
                decays.slack[at, j, i] = parting.current[e, i] if on else -parting.current[e, i]
            if control >= 0:
                decays.slack[at, j, rows.one] += -rows.off[control] if on else rows.on[control]
