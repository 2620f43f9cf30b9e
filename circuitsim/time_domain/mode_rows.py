"""Kernels: a mode for a set of conducting diodes, as rows of the arrays that the loop reads."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.engine.small.pointers import pointer
from circuitsim.time_domain.decaying_parts import of_capacitors, of_parts, over_parts
from circuitsim.time_domain.mode_kernels import (
    BLOCKING,
    CONDUCTING,
    FREE,
    C,
    Given,
    L,
    R,
    Waves,
    equations,
    fill,
    placed,
    scaled,
    wired,
)


class Supply(NamedTuple):
    """Data from which all modes of a run are computed.

    Attributes
    ----------
    nodes : int
        Ground included.
    first, second, role : (m,) int arrays
        Terminals and roles; diodes are `BLOCKING` here.
    of : Given
    value : (m,) float array
        Ω, F, H, with arbitrary resistances of switches.
    diodes, switched, resistors : int arrays
        Elements.
    ohms : (2, switches) float array
        Closed and open, Ω.
    control : (switches, 2) int array
        Element of the control, and whether its voltage (0) or current (1).
    on, off : (switches,) float arrays
        Thresholds of the control, V or A: a switch turns on above ``on`` and off below ``off``.
    one : int
        Position of the constant 1 among the sources' states.
    """

    nodes: int
    first: np.ndarray
    second: np.ndarray
    role: np.ndarray
    of: Given
    value: np.ndarray
    diodes: np.ndarray
    switched: np.ndarray
    resistors: np.ndarray
    ohms: np.ndarray
    control: np.ndarray
    on: np.ndarray
    off: np.ndarray
    one: int


def entered(supply, conducting, transformed, shared, known, at, modes, decays):
    """Compute the mode of a set of conducting diodes and closed switches, and store it as number ``at``.

    Parameters
    ----------
    supply : Supply
        Pinned, as are `modes` and `decays`.
    conducting : (d,) bool array
    transformed : Wiring
        The normal tree of this mode for a circuit with ideally coupled windings; otherwise empty.
    shared : tuple of two arrays
        See `circuitsim.time_domain.mode_kernels.equations`.
    known : bool
        Whether these belong to this mode.
    at : int
    modes : Modes
    decays : Decays
        Empty where the circuit has inductors.

    Returns
    -------
    bool
        Whether it is stored; False where ``shared`` must be known.
    """
    supply, modes, decays = pointer(supply), pointer(modes), pointer(decays)
    d, s, m = supply.diodes.size, supply.of.system.shape[0], supply.role.size
    role, value = supply.role.copy(), supply.value.copy()
    for j in range(d):
        if conducting[j]:
            role[supply.diodes[j]] = CONDUCTING
    for j in range(supply.switched.size):
        value[supply.switched[j]] = supply.ohms[0 if conducting[d + j] else 1, j]
    ohms = np.zeros(m)
    for e in supply.resistors:
        ohms[e] = value[e]
    net = transformed
    if not supply.of.turns.size:
        net = wired(supply.nodes, supply.first, supply.second, role, np.argsort(ohms, kind="mergesort"))
    if not known and not (
        alone(net.twigs[net.tree[FREE] :], role, BLOCKING) and alone(net.links[: net.rest[C]], role, CONDUCTING)
    ):
        return False
    k = net.tree[R] - net.tree[C] + net.rest[FREE] - net.rest[L]
    waves = Waves(np.zeros((m, k + s)), np.zeros((m, k + s)), np.zeros((k + s, k + s)))
    dependent, loops, cuts = np.zeros((m, k + s)), np.zeros((m, s)), np.zeros((m, s))
    states, of_sources = equations(net, role, supply.of, value, shared, waves, dependent, (loops, cuts))
    taken(supply, conducting, net, waves, dependent, loops, cuts, modes, at)
    if modes.onto.shape[1] > 0:
        from_storing(net, states[1], of_sources[1], modes, at)
        cut_conductances(net, value, states[1], modes.conductance[at])
    if decays.rate.shape[1] > 0:
        parts = of_capacitors(net, role, supply.of, value, shared[1], waves, dependent)
        parted(supply, conducting, parts, modes, decays, at)
    return True


def alone(branches, role, kind):
    """Whether branches have only this role."""
    return (role[branches] == kind).all()


def watched(supply, conducting, j):
    """Whether the waveform of event ``j`` is a current, and of which element it is that or the voltage."""
    d = supply.diodes.size
    if j < d:
        return conducting[j], supply.diodes[j]
    return supply.control[j - d, 0] == 1, supply.control[j - d, 1]


def taken(supply, conducting, net, waves, dependent, loops, cuts, modes, at):
    """Fill in mode number ``at``, which is zero; see `circuitsim.time_domain.library.Modes`."""
    storing, d, s, n = supply.of.storing, supply.diodes.size, loops.shape[1], waves.system.shape[0]
    modes.conducting[at], modes.size[at] = conducting, n - s
    states = np.concatenate((net.twigs[net.tree[C] : net.tree[R]], net.links[net.rest[L] : net.rest[FREE]]))
    for j in range(n - s):
        modes.place[at, j] = np.searchsorted(storing, states[j])
    modes.system[at, :n, :n] = waves.system
    modes.voltage[at, :n], modes.current[at, :n] = waves.voltage.T, waves.current.T
    modes.storing[at, :n] = dependent[storing].T
    for j in range(conducting.size):
        of_current, e = watched(supply, conducting, j)
        row = waves.current[e] if of_current else waves.voltage[e]
        for i in range(n):
            modes.switching[at, i, j] = row[i] if conducting[j] else -row[i]
        if j >= d:
            modes.switching[at, supply.one, j] += -supply.off[j - d] if conducting[j] else supply.on[j - d]
            continue
        for c in range(s):
            modes.sources[at, c, j] = loops[e, c] if conducting[j] else -cuts[e, c]
    fill(loops.T, modes.source_checks[at])
    fill(cuts.T, modes.source_checks[at, :, loops.shape[0] :])
    modes.source_checked[at] = loops.any() or cuts.any()
    modes.twigs[at], modes.links[at], modes.cut[at] = net.twigs, net.links, net.cut
    modes.tree[at], modes.rest[at] = net.tree, net.rest


def from_storing(net, back, of_sources, modes, at):
    """Fill in the map from the voltages and currents of all storing elements and the sources' states to the states of
    mode number ``at``."""
    many = net.tree[R] - net.tree[C]
    for j in range(many):
        modes.onto[at, j, modes.place[at, j]] = 1.0
    for j in range(back.shape[0]):
        for i in range(back.shape[0]):
            modes.onto[at, many + j, modes.place[at, many + i]] = back[j, i]
    fill(of_sources, modes.onto_sources[at, many:])


def cut_conductances(net, value, back, conductance):
    """Fill in the conductances of the cuts whose sums of inductor currents are states (`sums_of_currents`)."""
    l0, first = net.rest[L], net.tree[R] - net.tree[C]
    conductance[:] = np.inf
    for t in range(net.tree[R], net.tree[R + 1]):
        found = 1.0 / value[net.twigs[t]]
        for k in range(net.rest[R], l0):
            found += 1.0 / value[net.links[k]] if net.cut[t, k] != 0.0 else 0.0
        for p in range(back.shape[0]):
            if (back[p] == net.cut[t, l0 : l0 + back.shape[0]]).all():
                conductance[first + p] = found


def parted(supply, conducting, parting, modes, decays, at):
    """Store the decaying parts of mode number ``at``; see `circuitsim.time_domain.decays.Decays`."""
    c, d, s = parting.rate.size, supply.diodes.size, parting.along.shape[1]
    decays.size[at] = c
    decays.rate[at, :c] = parting.rate
    fill(parting.drive, decays.drive[at])
    fill(parting.start, decays.start[at])
    placed(parting.lift.T, parting.resistors, decays.lift[at].T)
    for j in range(parting.resistors.size):
        decays.weight[at, parting.resistors[j]] = parting.weight[j]
    fill(parting.along.T, decays.states[at])
    fill(parting.shape.T, decays.states[at, s:])
    over_parts(modes.switching[at], parting, decays.switching[at])
    over_parts(modes.voltage[at], parting, decays.voltage[at])
    fill(parting.current.T, decays.current[at])
    ohms, voltage = parting.value[supply.resistors], parting.current[supply.resistors]
    placed(scaled(voltage, ohms), supply.resistors, decays.voltage[at].T)
    for j in range(conducting.size):
        of_current, e = watched(supply, conducting, j)
        modes.switching_whole[at, j] = of_current or of_parts(
            modes.switching[at, :, j], decays.start[at], s, c, decays.switching[at, :, j]
        )
        if of_current:
            for i in range(s + c):
                decays.switching[at, i, j] = parting.current[e, i] if conducting[j] else -parting.current[e, i]
            if j >= d:
                decays.switching[at, supply.one, j] += -supply.off[j - d] if conducting[j] else supply.on[j - d]
