"""The linear system at one set of conducting diodes: states, and all branch voltages and currents as functions of them.

A normal tree (Bryant 1959) takes sources and conducting diodes first, then capacitors, resistors, inductors, blocking
diodes and current sources. Capacitors of the tree and inductors outside of it are the states; capacitors in loops with
sources and inductors in cuts with sources follow from these and from the sources' derivatives. The cut-set matrix holds
integers, so ranks are exact.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from circuitsim.time_domain.mode_kernels import FIXED, FREE, C, L, R, Waves, Wiring, fill, forest, mismatches


class Role(IntEnum):
    """Roles of the elements, in the order in which the tree takes them."""

    VOLTAGE = 0
    CONDUCTING = 1
    CAPACITOR = 2
    RESISTOR = 3
    INDUCTOR = 4
    BLOCKING = 5
    CURRENT = 6


CLASSES = np.array([Role.VOLTAGE, Role.CAPACITOR, Role.RESISTOR, Role.INDUCTOR, Role.BLOCKING, len(Role)])
"""The first role of each class of branches (`circuitsim.time_domain.mode_kernels`)."""


class Parts(NamedTuple):
    """The elements of a circuit in time.

    Attributes
    ----------
    n_nodes : int
        Ground included.
    first, second : (m,) int arrays
        Terminals.
    role : (m,) int array
        `Role`; diodes are `Role.BLOCKING` here.
    value : (m,) float array
        Ω, F or H; 0 for all others.
    coupling : (m, m) float array or None
        Mutual inductances between inductors, H; None without.
    """

    n_nodes: int
    first: np.ndarray
    second: np.ndarray
    role: np.ndarray
    value: np.ndarray
    coupling: np.ndarray | None


class Mode(NamedTuple):
    """The linear system ż = A z at one set of conducting diodes; z are capacitor voltages, inductor currents, then the
    states w of the sources.

    Attributes
    ----------
    conducting : (d,) bool array
        By diode.
    states : (k,) int array
        Elements whose voltages (capacitors) and currents (inductors) are the first k entries of z.
    system : (k + s, k + s) float array
        A, 1/s.
    voltage, current : (m, k + s) float arrays
        Branch voltages and currents are these matrices times z.
    dependent : (m, k + s) float array
        The rows of `voltage` for capacitors and of `current` for inductors; 0 elsewhere.
    loops, cuts : (m, m + s) float arrays
        What no finite current and voltage meets, as functions of (x, w): x are the voltages of all capacitors and the
        currents of all inductors. `loops` are currents through loops of sources, capacitors and conducting diodes whose
        voltages do not add up, by equal infinitesimal resistances (Ω times A); `cuts` are voltages across cuts of
        sources, inductors and blocking diodes whose currents do not, by equal infinitesimal conductances (S times V).
    source_loops, source_cuts : (m, s) float arrays
        The same of loops and cuts without capacitors and inductors, as functions of w.
    """

    conducting: np.ndarray
    states: np.ndarray
    system: np.ndarray
    voltage: np.ndarray
    current: np.ndarray
    dependent: np.ndarray
    loops: np.ndarray
    cuts: np.ndarray
    source_loops: np.ndarray
    source_cuts: np.ndarray


class Tree(NamedTuple):
    """Branches of a normal tree, the others, and the cut-set matrix F between them: i_twig = −F i_link,
    v_link = Fᵀ v_twig."""

    twigs: np.ndarray
    links: np.ndarray
    cut: np.ndarray


def normal_tree(parts: Parts, role: np.ndarray) -> Tree:
    """The normal tree of elements with these roles, twigs and links each in ascending order of role."""
    order = np.argsort(role, kind="stable")
    twigs, links = np.empty((2, role.size), dtype=np.int64)
    cut = np.zeros((parts.n_nodes - 1, role.size))
    count = forest(parts.n_nodes, parts.first, parts.second, order, twigs, links, cut)
    return Tree(twigs[:count], links[: role.size - count], np.ascontiguousarray(cut[:count, : role.size - count]))


def mode_of(
    parts: Parts, diodes: np.ndarray, conducting: np.ndarray, sources: np.ndarray, system: np.ndarray, rows: np.ndarray
) -> Mode:
    """The linear system at a set of conducting diodes.

    Parameters
    ----------
    parts : Parts
    diodes : (d,) int array
        Diodes among the elements.
    conducting : (d,) bool array
    sources : (q,) int array
        Voltage and current sources among the elements.
    system : (s, s) float array
        Generator of all sources' states.
    rows : (q, s) float array
        Source values are these rows times the sources' states. Complex values of elements and rows make the result
        complex: its imaginary part is a derivative (complex step).
    """
    role = parts.role.copy()
    role[diodes[conducting]] = Role.CONDUCTING
    tree = normal_tree(parts, role)
    t, rest = (np.searchsorted(role[branches], CLASSES) for branches in (tree.twigs, tree.links))
    net = Wiring(*tree, t, rest)
    capacitors, coils = tree.twigs[t[C] : t[R]], tree.links[rest[L] : rest[FREE]]
    states = np.concatenate([capacitors, coils])
    m, k, s = role.size, states.size, system.shape[0]
    kind = np.result_type(parts.value, rows)
    # Rows over z of source values and their derivatives.
    value, rate = np.zeros((2, m, k + s), kind)
    value[sources, k:], rate[sources, k:] = rows, rows @ system
    waves = Waves(np.zeros((m, k + s), kind), np.zeros((m, k + s), kind), np.zeros((k + s, k + s), kind))
    waves.system[k:, k:] = system
    fixed, open_links = np.concatenate([tree.twigs[: t[C]], tree.links[: rest[C]]]), tree.links[rest[FREE] :]
    waves.voltage[fixed], waves.current[open_links] = value[fixed], value[open_links]
    waves.voltage[capacitors, np.arange(capacitors.size)] = 1.0
    waves.current[coils, np.arange(capacitors.size, k)] = 1.0
    conducts, blocks = role == Role.CONDUCTING, role == Role.BLOCKING
    coupling = np.zeros((0, 0)) if parts.coupling is None else parts.coupling
    fill(
        net, parts.value.astype(kind), coupling.astype(kind), rate, (blocks, _potentials(net, blocks)),
        (conducts, _loop_currents(net, conducts)), waves,
    )  # fmt: skip
    open_twigs = tree.twigs[t[FREE] :]
    waves.current[open_twigs] = value[open_twigs]
    dependent = np.where((role == Role.CAPACITOR)[:, None], waves.voltage, 0.0)
    dependent[role == Role.INDUCTOR] = waves.current[role == Role.INDUCTOR]
    given = np.zeros((m, m + s), kind)
    given[sources, m:] = rows
    own_loops, own_cuts, loops, cuts = np.zeros((4, m, m + s), kind)
    mismatches(net, given, FIXED, FREE, own_loops, own_cuts)
    storing = np.flatnonzero((role == Role.CAPACITOR) | (role == Role.INDUCTOR))
    given[storing, storing] = 1.0
    mismatches(net, given, C, L, loops, cuts)
    return Mode(
        conducting.copy(), states, waves.system, waves.voltage, waves.current, dependent, loops, cuts,
        own_loops[:, m:], own_cuts[:, m:],
    )  # fmt: skip


def _potentials(net: Wiring, blocks: np.ndarray) -> np.ndarray:
    """Potentials that blocking diodes choose, where current sources are in the tree: of least norm; else empty."""
    twigs, links = net.twigs[net.tree[FREE] :], net.links[net.rest[FREE] :]
    own, beside = blocks[twigs], blocks[links]
    if own.all():
        return np.zeros((0, 0))
    f = net.cut[net.tree[FREE] :, net.rest[FREE] :]
    found = np.zeros(f.shape)
    found[:, beside] = np.linalg.pinv(np.vstack([np.eye(twigs.size)[own], f.T[beside]]), 1e-9)[:, int(own.sum()) :]
    return found


def _loop_currents(net: Wiring, conducts: np.ndarray) -> np.ndarray:
    """Currents that conducting diodes share, where voltage sources are outside the tree: of least norm; else empty."""
    twigs, links = net.twigs[: net.tree[C]], net.links[: net.rest[C]]
    own, beside = conducts[twigs], conducts[links]
    if beside.all():
        return np.zeros((0, 0))
    g = net.cut[: net.tree[C], : net.rest[C]]
    found = np.zeros(g.T.shape)
    found[:, own] = -np.linalg.pinv(np.vstack([-g[own], np.eye(links.size)[beside]]), 1e-9)[:, : int(own.sum())]
    return found
