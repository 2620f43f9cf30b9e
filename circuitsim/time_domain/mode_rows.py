"""Kernels: a mode from its set of conducting diodes, as rows of the arrays that the loop reads."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.engine.small.pointers import pointer
from circuitsim.time_domain.decaying_parts import not_zero
from circuitsim.time_domain.mode_kernels import Given, Waves, equations, states_of
from circuitsim.time_domain.mode_parts import of_capacitors
from circuitsim.time_domain.part_currents import over_parts
from circuitsim.time_domain.trees import BLOCKING, CONDUCTING, CURRENT, FREE, C, L, R, wired

DONE, SHARED, CHECKS = range(3)
"""Outcomes of `entered`."""


class Supply(NamedTuple):
    """What all modes of a run are made from.

    Attributes
    ----------
    nodes : int
        Ground included.
    first, second, role : (m,) int arrays
        Terminals and roles; diodes are `BLOCKING` here.
    of : Given
        Switches have any resistance here.
    diodes, switched, resistors : int arrays
        Elements.
    ohms : (2, switches) float array
        Closed and open, Ω.
    control : (switches, 2) int array
        Element whose voltage (0) or current (1) controls, and which.
    on, off : (switches,) float arrays
        Thresholds of the control, V or A: a switch turns on above one and off below the other.
    one : int
        Place of the constant 1 among the sources' states.
    """

    nodes: int
    first: np.ndarray
    second: np.ndarray
    role: np.ndarray
    of: Given
    diodes: np.ndarray
    switched: np.ndarray
    resistors: np.ndarray
    ohms: np.ndarray
    control: np.ndarray
    on: np.ndarray
    off: np.ndarray
    one: int


def entered(supply, conducting, transformed, shared, known, at, modes, decays):
    """Make the mode of a set of conducting diodes and closed switches, and fill it in as number ``at``.

    Parameters
    ----------
    supply : Supply
        Pinned, as are `modes` and `decays`.
    conducting : (d,) bool array
    transformed : Wiring
        The normal tree of this mode, of a circuit with ideally coupled windings; else empty.
    shared : tuple of two arrays
        See `circuitsim.time_domain.mode_kernels.equations`.
    known : bool
        Whether these are those of this mode.
    at : int
    modes : Modes
    decays : Decays
        Empty where the circuit has inductors.

    Returns
    -------
    `DONE`, or why nothing was filled in: `SHARED` is not known, the mode has more `CHECKS` than there is room for; the
    number of checks.
    """
    supply, modes, decays = pointer(supply), pointer(modes), pointer(decays)
    d, s, m = supply.diodes.size, supply.of.system.shape[0], supply.role.size
    role, value = supply.role.copy(), supply.of.value.copy()
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
        return SHARED, 0
    k = net.tree[R] - net.tree[C] + net.rest[FREE] - net.rest[L]
    waves = Waves(np.zeros((m, k + s)), np.zeros((m, k + s)), np.zeros((k + s, k + s)))
    of = Given(
        supply.of.storing,
        supply.of.sources,
        supply.of.system,
        supply.of.rows,
        value,
        supply.of.coupling,
        supply.of.turns,
    )
    dependent, loops, cuts = np.zeros((m, k + s)), np.zeros((m, s)), np.zeros((m, s))
    equations(net, role, of, shared, waves, dependent, (loops, cuts), modes.current.shape[2] > 0)
    many = not_zero(loops).size + not_zero(cuts).size
    if many > modes.source_checks.shape[2]:
        return CHECKS, many
    modes.source_many[at] = many
    taken(supply, conducting, net, waves, dependent, loops, cuts, modes, at)
    if modes.onto.shape[1] > 0:
        back, of_sources = states_of(net, role, of)
        from_storing(net, back[1], of_sources[1], modes, at)
        cut_conductances(net, role, value, back[1], modes.conductance[at])
    if decays.rate.shape[1] > 0:
        parts = of_capacitors(net, role, of, shared[1], waves, dependent)
        parted(supply, conducting, parts, k, modes, decays, at)
    return DONE, many


def alone(branches, role, kind):
    """Whether branches have no other role."""
    found = True
    for e in branches:
        found &= role[e] == kind
    return found


def ordered_row(row, k, s, out):
    """A row over (k states, s states of sources) as one over the library's state vector, where other entries are 0."""
    for j in range(s):
        out[j] = row[k + j]
    for j in range(k):
        out[s + j] = row[j]


def taken(supply, conducting, net, waves, dependent, loops, cuts, modes, at):
    """Fill in number ``at`` of the modes; see `circuitsim.time_domain.library.Modes`."""
    storing, d, s = supply.of.storing, supply.diodes.size, loops.shape[1]
    k = waves.system.shape[0] - s
    for j in range(conducting.size):
        modes.conducting[at, j] = conducting[j]
    modes.size[at] = k
    many = net.tree[R] - net.tree[C]
    for j in range(k):
        e = net.twigs[net.tree[C] + j] if j < many else net.links[net.rest[L] + j - many]
        modes.place[at, j] = np.searchsorted(storing, e)
    for i in range(modes.system.shape[1]):
        found = modes.system[at, i]
        for j in range(found.size):
            found[j] = 0.0
        if i < s:
            for j in range(s):
                found[j] = waves.system[k + i, k + j]
        elif i < s + k:
            ordered_row(waves.system[i - s], k, s, found)
    for c in range(modes.storing.shape[1]):
        place = k + c if c < s else (c - s if c < s + k else -1)
        over_state(supply, conducting, waves, dependent, place, modes, at, c)
    for j in range(d):
        e = supply.diodes[j]
        for c in range(s):
            modes.sources[at, c, j] = loops[e, c] if conducting[j] else -cuts[e, c]
    for j in range(supply.control.shape[0]):
        modes.slack[at, supply.one, d + j] += -supply.off[j] if conducting[d + j] else supply.on[j]
    column = 0
    for matrix in (loops, cuts):
        for e in not_zero(matrix):
            for c in range(s):
                modes.source_checks[at, c, column] = matrix[e, c]
            column += 1
    wires(net, modes, at)


def over_state(supply, conducting, waves, dependent, place, modes, at, c):
    """Fill in the rows of state ``c`` of the library, which is number ``place`` of the mode's; −1: not there."""
    voltage, slack, storing = modes.voltage[at, c], modes.slack[at, c], modes.storing[at, c]
    inside, d = place >= 0, supply.diodes.size
    for e in range(voltage.size):
        voltage[e] = waves.voltage[e, place] if inside else 0.0
    for e in range(modes.current.shape[2]):
        modes.current[at, c, e] = waves.current[e, place] if inside else 0.0
    for j in range(storing.size):
        storing[j] = dependent[supply.of.storing[j], place] if inside else 0.0
    for j in range(slack.size):
        of_current = conducting[j] if j < d else supply.control[j - d, 0] == 1
        e = supply.diodes[j] if j < d else supply.control[j - d, 1]
        value = 0.0
        if inside:
            value = waves.current[e, place] if of_current else waves.voltage[e, place]
        slack[j] = value if conducting[j] else -value


def from_storing(net, back, of_sources, modes, at):
    """Fill in the states of number ``at`` of the modes from the voltages and currents of all storing elements and from
    the sources' states."""
    many = net.tree[R] - net.tree[C]
    for j in range(many):
        modes.onto[at, j, modes.place[at, j]] = 1.0
    for j in range(back.shape[0]):
        for i in range(back.shape[0]):
            modes.onto[at, many + j, modes.place[at, many + i]] = back[j, i]
        for c in range(of_sources.shape[1]):
            modes.onto_sources[at, many + j, c] = of_sources[j, c]


def cut_conductances(net, role, value, back, conductance):
    """Fill in the conductances of the cuts in which sums of inductor currents are states (`sums_of_currents`)."""
    l0, first = net.rest[L], net.tree[R] - net.tree[C]
    for k in range(conductance.size):
        conductance[k] = np.inf
    for t in range(net.tree[R], net.tree[R + 1]):
        found = 1.0 / value[net.twigs[t]]
        for k in range(net.rest[R], net.links.size):
            if net.cut[t, k] != 0.0 and not l0 <= k < net.rest[FREE]:
                if k < l0:
                    found += 1.0 / value[net.links[k]]
                elif role[net.links[k]] != BLOCKING and role[net.links[k]] != CURRENT:
                    found = np.inf
        for p in range(back.shape[0]):
            same = True
            for k in range(back.shape[0]):
                same &= back[p, k] == net.cut[t, l0 + k]
            if same:
                conductance[first + p] = found


def wires(net, modes, at):
    """Fill in the normal tree of number ``at`` of the modes."""
    for j in range(net.twigs.size):
        modes.twigs[at, j] = net.twigs[j]
        for i in range(net.links.size):
            modes.cut[at, j, i] = net.cut[j, i]
    for i in range(net.links.size):
        modes.links[at, i] = net.links[i]
    for j in range(net.tree.size):
        modes.tree[at, j], modes.rest[at, j] = net.tree[j], net.rest[j]


def parted(supply, conducting, parting, k, modes, decays, at):
    """Fill in number ``at`` of the decaying parts of a mode; see `circuitsim.time_domain.decays.Decays`."""
    c, d, s = parting.rate.size, supply.diodes.size, supply.of.system.shape[0]
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
            decays.states[at, s + p, i] = parting.shape[i, p]
        for j in range(s):
            decays.states[at, j, i] = parting.along[i, j]
    over_parts(modes.slack[at], parting, c, decays.slack[at])
    over_parts(modes.voltage[at], parting, c, decays.voltage[at])
    for j in range(s + c):
        for e in range(parting.current.shape[0]):
            decays.current[at, j, e] = parting.current[e, j]
        for e in supply.resistors:
            decays.voltage[at, j, e] = parting.value[e] * parting.current[e, j]
    for j in range(conducting.size):
        on, control = conducting[j], j - d
        whole = on if control < 0 else supply.control[control, 0] == 1
        decays.slack_whole[at, j] = whole
        if whole:
            e = supply.diodes[j] if control < 0 else supply.control[control, 1]
            for i in range(s + c):
                decays.slack[at, i, j] = parting.current[e, i] if on else -parting.current[e, i]
            if control >= 0:
                decays.slack[at, supply.one, j] += -supply.off[control] if on else supply.on[control]
