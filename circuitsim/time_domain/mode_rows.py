"""Kernels: a mode for a set of conducting diodes, as rows of the arrays that the loop reads."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.engine.small.pointers import pointer
from circuitsim.time_domain.decaying_parts import of_capacitors, of_parts, over_parts
from circuitsim.time_domain.mode_kernels import FREE, C, L, Parts, R, linear_system


class Supply(NamedTuple):
    """Data from which all modes of a run are computed.

    Attributes
    ----------
    parts : Parts
        With arbitrary resistances of switches.
    diodes, storing, sources, resistors, switched : int arrays
        Elements.
    system : (s, s) float array
        Generator of the sources' states.
    rows : (p, s) array
        Source values over these states; the last state is 1.
    control : (switches, 2) int array
        Element of the control, and whether its voltage (0) or current (1).
    ohms, thresholds : (2, switches) arrays
        Closed and open, Ω; the control, V or A, above which a switch turns on, and below which off.
    slopes : bool
        Whether a mode has currents and slopes of its states; with decaying parts, which have their own, voltages do.
    """

    parts: Parts
    diodes: np.ndarray
    storing: np.ndarray
    sources: np.ndarray
    resistors: np.ndarray
    switched: np.ndarray
    system: np.ndarray
    rows: np.ndarray
    control: np.ndarray
    ohms: np.ndarray
    thresholds: np.ndarray
    slopes: bool


def mode_of(supply, conducting):
    """The linear system at a set of conducting diodes and closed switches, and the elements' values."""
    parts, d = supply.parts, supply.diodes.size
    value = parts.value.copy()
    for j in range(supply.switched.size):
        value[supply.switched[j]] = supply.ohms[0, j] if conducting[d + j] else supply.ohms[1, j]
    own = Parts(parts.n_nodes, parts.first, parts.second, parts.role, value, parts.coupling, parts.turns)
    return linear_system(own, supply, conducting[:d]), value


def watched(supply, conducting):
    """Of each diode and switch the element whose waveform decides when it changes, and whether that is a current."""
    d, control = supply.diodes.size, supply.control
    return np.concatenate((supply.diodes, control[:, 1])), np.concatenate((conducting[:d], control[:, 0] == 1))


def switching_functions(supply, conducting, voltage, current):
    """The switching functions (d, n): see `circuitsim.time_domain.library.Modes`."""
    of, by_current = watched(supply, conducting)
    d, one, found = supply.diodes.size, supply.system.shape[0] - 1, voltage[of]
    for j in range(of.size):
        if by_current[j]:
            found[j] = current[of[j]]
        if not conducting[j]:
            found[j] = -found[j]
        if j >= d:
            found[j, one] += -supply.thresholds[1, j - d] if conducting[j] else supply.thresholds[0, j - d]
    return found


def entered(supply, conducting, at, modes, decays):
    """Compute the mode of a set of conducting diodes and closed switches, and store it as number ``at``, which is zero.

    Parameters
    ----------
    supply : Supply
        Pinned, as are `modes` and `decays`.
    conducting : (d,) bool array
    at : int
    modes : circuitsim.time_domain.library.Modes
    decays : Decays
        Empty where the circuit has inductors.
    """
    supply, modes, decays = pointer(supply), pointer(modes), pointer(decays)
    mode, value = mode_of(supply, conducting)
    net, n, s, d = mode.net, mode.system.shape[0], supply.system.shape[0], supply.diodes.size
    modes.conducting[at], modes.size[at] = conducting, n - s
    modes.place[at, : n - s] = np.searchsorted(supply.storing, mode.states)
    modes.voltage[at, :n], modes.storing[at, :n] = mode.voltage.T, mode.storing.T
    if supply.slopes:
        modes.system[at, :n, :n], modes.current[at, :n] = mode.system, mode.current.T
    else:
        modes.system[at] = supply.system
    rows = switching_functions(supply, conducting, mode.voltage, mode.current).T
    modes.switching[at, :n] = rows
    for j in range(d):
        e = supply.diodes[j]
        modes.sources[at, :, j] = mode.loops[e] if conducting[j] else -mode.cuts[e]
    modes.source_checks[at] = np.concatenate((mode.loops, mode.cuts)).T
    modes.source_checked[at] = modes.source_checks[at].any()
    modes.twigs[at], modes.links[at], modes.cut[at] = net.twigs, net.links, net.cut
    modes.tree[at], modes.rest[at] = net.tree, net.rest
    if modes.onto.shape[1] > 0:
        from_storing(mode, value, modes, at)
    if decays.rate.shape[1] > 0:
        parted(supply, conducting, mode, value, rows, modes, decays, at)


def from_storing(mode, value, modes, at):
    """Fill in the map from the voltages and currents of all storing elements and the sources' states to the states of
    mode number ``at``, and the conductances of the cuts whose sums of inductor currents are states."""
    net, place, first = mode.net, modes.place[at], mode.net.tree[R] - mode.net.tree[C]
    many, l0, l1 = first + mode.onto.shape[0], net.rest[R], net.rest[L]
    for j in range(first):
        modes.onto[at, j, place[j]] = 1.0
    modes.onto[at, first:many][:, place[first:many]] = mode.onto
    modes.onto_sources[at, first:many] = mode.onto_sources
    modes.conductance[at] = np.inf
    for t in range(net.tree[R], net.tree[L]):
        for p in range(many - first):
            if (mode.onto[p] == net.cut[t, l1 : net.rest[FREE]]).all():
                beside = net.links[l0:l1][net.cut[t, l0:l1] != 0.0]
                modes.conductance[at, first + p] = 1.0 / value[net.twigs[t]] + (1.0 / value[beside]).sum()


def parted(supply, conducting, mode, value, rows, modes, decays, at):
    """Store the decaying parts of mode number ``at``; see `circuitsim.time_domain.decays.Decays`."""
    parts = of_capacitors(mode, value, supply.storing, supply.system)
    c, s, own, n = parts.rate.size, supply.system.shape[0], parts.resistors, mode.system.shape[0]
    decays.size[at], decays.weight[at][own] = c, parts.weight
    decays.rate[at, :c], decays.drive[at, :c], decays.start[at, :c, :n] = parts.rate, parts.drive, parts.start
    decays.lift[at].T[own, :c] = parts.lift.T
    decays.states[at, :s, : n - s], decays.states[at, s : s + c, : n - s] = parts.along.T, parts.shape.T
    decays.current[at, : s + c], decays.voltage[at, : s + c] = parts.current.T, over_parts(mode.voltage.T, parts)
    for e in supply.resistors:
        decays.voltage[at, : s + c, e] = value[e] * parts.current[e]
    by_current, over = watched(supply, conducting)[1], over_parts(rows, parts)
    through = switching_functions(supply, conducting, parts.current, parts.current)
    for j in range(conducting.size):
        whole = by_current[j] or of_parts(rows[:, j], parts.start, s, c, over[:, j])
        modes.switching_whole[at, j] = whole
        decays.switching[at, : s + c, j] = through[j] if by_current[j] else over[:, j]
