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

from circuitsim.program.flow import spanning_forest


class Role(IntEnum):
    """Roles of the elements, in the order in which the tree takes them."""

    VOLTAGE = 0
    CONDUCTING = 1
    CAPACITOR = 2
    RESISTOR = 3
    INDUCTOR = 4
    BLOCKING = 5
    CURRENT = 6


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
    twigs = spanning_forest(parts.n_nodes - 1, parts.first, parts.second, order)
    taken = np.zeros(role.size, dtype=bool)
    taken[twigs] = True
    twigs, links = order[taken[order]], order[~taken[order]]
    incidence = np.zeros((parts.n_nodes, role.size))
    np.add.at(incidence, (parts.first, np.arange(role.size)), 1.0)
    np.add.at(incidence, (parts.second, np.arange(role.size)), -1.0)
    # One node of each component is redundant: least squares of full column rank need none left out.
    cut = np.rint(np.linalg.lstsq(incidence[:, twigs], incidence[:, links], rcond=None)[0])
    return Tree(twigs, links, cut)


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
    net = _network(parts, role)
    k, s = net.states.size, system.shape[0]
    # Rows over z of source values and their derivatives.
    kind = np.result_type(parts.value, rows)
    value, rate = np.zeros((2, role.size, k + s), kind)
    value[sources, k:] = rows
    rate[sources, k:] = rows @ system
    voltage, current = np.zeros((2, role.size, k + s), kind)
    waves = _Waves(voltage, current, np.zeros((k + s, k + s), kind))
    waves.system[k:, k:] = system
    waves.voltage[net.tied] = value[net.tied]
    waves.current[net.open_links] = value[net.open_links]
    waves.voltage[net.states[: net.ct.size]] = np.eye(net.ct.size, k + s)
    waves.current[net.states[net.ct.size :]] = np.eye(k - net.ct.size, k + s, net.ct.size)
    _resistors(net, parts, waves)
    _capacitors(net, parts, rate, waves)
    _inductors(net, parts, rate, waves)
    _blocking(net, role, waves)
    _conducting(net, role, waves)
    waves.current[net.open_twigs] = value[net.open_twigs]
    dependent = np.where((role == Role.CAPACITOR)[:, None], waves.voltage, 0.0)
    dependent[role == Role.INDUCTOR] = waves.current[role == Role.INDUCTOR]
    loops, cuts = _mismatches(net.tree, role, rows, sources, True)
    own_loops, own_cuts = (found[:, role.size :] for found in _mismatches(net.tree, role, rows, sources, False))
    return Mode(
        conducting.copy(), net.states, waves.system, voltage, current, dependent, loops, cuts, own_loops, own_cuts,
    )  # fmt: skip


class _Network(NamedTuple):
    """Elements by role and place: ``…t`` in the tree, ``…l`` outside of it (c capacitors, r resistors, l inductors);
    ``fixed`` and ``loops`` are sources and conducting diodes in and outside of it, ``free`` and ``opens`` blocking
    diodes and current sources. `states`, `tied` (fixed voltages), `open_…` (fixed currents) are elements themselves."""

    tree: Tree
    fixed: np.ndarray
    loops: np.ndarray
    free: np.ndarray
    opens: np.ndarray
    ct: np.ndarray
    cl: np.ndarray
    rt: np.ndarray
    rl: np.ndarray
    lt: np.ndarray
    ll: np.ndarray

    @property
    def states(self) -> np.ndarray:
        return np.concatenate([self.tree.twigs[self.ct], self.tree.links[self.ll]])

    @property
    def tied(self) -> np.ndarray:
        return np.concatenate([self.tree.twigs[self.fixed], self.tree.links[self.loops]])

    @property
    def open_links(self) -> np.ndarray:
        return self.tree.links[self.opens]

    @property
    def open_twigs(self) -> np.ndarray:
        return self.tree.twigs[self.free]

    def block(self, twigs: np.ndarray, links: np.ndarray) -> np.ndarray:
        """Entries of the cut-set matrix."""
        return self.tree.cut[np.ix_(twigs, links)]


class _Waves(NamedTuple):
    """Branch voltages and currents as rows over z, and the system matrix: filled in class by class."""

    voltage: np.ndarray
    current: np.ndarray
    system: np.ndarray


def _network(parts: Parts, role: np.ndarray) -> _Network:
    tree = normal_tree(parts, role)
    at = [np.flatnonzero(role[tree.twigs] == r) for r in Role]
    al = [np.flatnonzero(role[tree.links] == r) for r in Role]
    pairs = [group[r] for r in (Role.CAPACITOR, Role.RESISTOR, Role.INDUCTOR) for group in (at, al)]
    ends = [np.concatenate(part) for part in (at[:2], al[:2], at[5:], al[5:])]
    return _Network(tree, *ends, *pairs)


def _resistors(net: _Network, parts: Parts, waves: _Waves) -> None:
    """Potentials of the tree's resistors from the currents into their cuts."""
    twigs, links, block = net.tree.twigs, net.tree.links, net.block
    in_tree, outside = twigs[net.rt], links[net.rl]
    gl, gt = 1.0 / parts.value[outside], 1.0 / parts.value[in_tree]
    drive = block(net.fixed, net.rl).T @ waves.voltage[twigs[net.fixed]]
    drive += block(net.ct, net.rl).T @ waves.voltage[twigs[net.ct]]
    known = block(net.rt, net.ll) @ waves.current[links[net.ll]]
    known += block(net.rt, net.opens) @ waves.current[net.open_links]
    f = block(net.rt, net.rl)
    v = -_solved(np.diag(gt) + (f * gl) @ f.T, known + f @ (gl[:, None] * drive))
    waves.voltage[in_tree], waves.current[in_tree] = v, gt[:, None] * v
    waves.voltage[outside] = drive + f.T @ v
    waves.current[outside] = gl[:, None] * waves.voltage[outside]


def _capacitors(net: _Network, parts: Parts, rate: np.ndarray, waves: _Waves) -> None:
    """Charges of the tree's capacitors with those in loops of capacitors and sources."""
    twigs, links, block = net.tree.twigs, net.tree.links, net.block
    in_tree, outside = twigs[net.ct], links[net.cl]
    ct, cl = parts.value[in_tree], parts.value[outside]
    b, of_sources = block(net.ct, net.cl), block(net.fixed, net.cl).T
    into = block(net.ct, net.rl) @ waves.current[links[net.rl]] + block(net.ct, net.ll) @ waves.current[links[net.ll]]
    into += block(net.ct, net.opens) @ waves.current[net.open_links]
    drift = of_sources @ rate[twigs[net.fixed]]
    slope = -_solved(np.diag(ct) + (b * cl) @ b.T, into + (b * cl) @ drift)
    waves.system[: ct.size] = slope
    waves.current[in_tree] = ct[:, None] * slope
    waves.voltage[outside] = of_sources @ waves.voltage[twigs[net.fixed]] + b.T @ waves.voltage[in_tree]
    waves.current[outside] = cl[:, None] * (drift + b.T @ slope)


def _inductors(net: _Network, parts: Parts, rate: np.ndarray, waves: _Waves) -> None:
    """Fluxes of the inductors outside the tree with those in cuts of inductors and sources."""
    twigs, links, block = net.tree.twigs, net.tree.links, net.block
    outside, in_tree = links[net.ll], twigs[net.lt]
    coils = np.concatenate([outside, in_tree])
    inductance = np.diag(parts.value[coils])
    if parts.coupling is not None:
        inductance = inductance + parts.coupling[np.ix_(coils, coils)]
    onto = np.vstack([np.eye(outside.size), -block(net.lt, net.ll)])
    given = np.vstack([np.zeros((outside.size, net.opens.size)), -block(net.lt, net.opens)])
    push = sum(block(own, net.ll).T @ waves.voltage[twigs[own]] for own in (net.fixed, net.ct, net.rt))
    drift = given @ rate[net.open_links]
    slope = _solved(onto.T @ inductance @ onto, push - onto.T @ (inductance @ drift))
    waves.system[net.ct.size : net.ct.size + outside.size] = slope
    waves.current[coils] = onto @ waves.current[outside] + given @ waves.current[net.open_links]
    waves.voltage[coils] = inductance @ (onto @ slope + drift)


def _blocking(net: _Network, role: np.ndarray, waves: _Waves) -> None:
    """Floating parts: equal infinitesimal conductances of blocking diodes choose their potentials."""
    twigs, links, block = net.tree.twigs, net.tree.links, net.block
    across = sum(
        block(own, net.opens).T @ waves.voltage[twigs[own]] for own in (net.fixed, net.ct, net.rt, net.lt)
    )  # fmt: skip
    of_free = role[twigs[net.free]] == Role.BLOCKING
    of_open = role[links[net.opens]] == Role.BLOCKING
    f = block(net.free, net.opens)
    stack = np.vstack([np.eye(net.free.size)[of_free], f.T[of_open]])
    v = -_least(stack, np.vstack([np.zeros((int(of_free.sum()), waves.system.shape[0])), across[of_open]]))
    waves.voltage[twigs[net.free]], waves.voltage[links[net.opens]] = v, across + f.T @ v


def _conducting(net: _Network, role: np.ndarray, waves: _Waves) -> None:
    """Loops of conducting diodes: equal infinitesimal resistances share the current."""
    twigs, links, block = net.tree.twigs, net.tree.links, net.block
    carried = -sum(
        block(net.fixed, own) @ waves.current[links[own]] for own in (net.cl, net.rl, net.ll, net.opens)
    )  # fmt: skip
    in_tree = role[twigs[net.fixed]] == Role.CONDUCTING
    outside = role[links[net.loops]] == Role.CONDUCTING
    g = block(net.fixed, net.loops)
    spread = np.vstack([-g[in_tree], np.eye(net.loops.size)[outside]])
    i = -_least(spread, np.vstack([carried[in_tree], np.zeros((int(outside.sum()), waves.system.shape[0]))]))
    waves.current[links[net.loops]], waves.current[twigs[net.fixed]] = i, carried - g @ i


def _mismatches(
    tree: Tree, role: np.ndarray, rows: np.ndarray, sources: np.ndarray, storing: bool
) -> tuple[np.ndarray, np.ndarray]:
    """`Mode.loops` and `Mode.cuts`; those of sources alone without elements ``storing`` energy."""
    m, (twigs, links, f) = role.size, tree
    given = np.zeros((m, m + rows.shape[1]), rows.dtype)
    given[sources, m:] = rows
    states = np.flatnonzero((role == Role.CAPACITOR) | (role == Role.INDUCTOR))
    given[states, states] = 1.0
    loops, cuts = np.zeros((2, m, m + rows.shape[1]), rows.dtype)
    last, first = (Role.CAPACITOR, Role.INDUCTOR) if storing else (Role.CONDUCTING, Role.BLOCKING)
    fixed = np.flatnonzero(role[twigs] <= last)
    closing = np.flatnonzero(role[links] <= last)
    g = f[np.ix_(fixed, closing)]
    gap = given[links[closing]] - g.T @ given[twigs[fixed]]
    loops[links[closing]] = -_solved(np.eye(closing.size) + g.T @ g, gap)
    loops[twigs[fixed]] = -g @ loops[links[closing]]
    free = np.flatnonzero(role[twigs] >= first)
    cutting = np.flatnonzero(role[links] >= first)
    h = f[np.ix_(free, cutting)]
    net = given[twigs[free]] + h @ given[links[cutting]]
    cuts[twigs[free]] = -_solved(np.eye(free.size) + h @ h.T, net)
    cuts[links[cutting]] = h.T @ cuts[twigs[free]]
    return loops, cuts


def _solved(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """``matrix`` \\ ``right`` of a symmetric positive definite matrix, scaled by its diagonal."""
    if not matrix.size:
        return right
    scale = 1.0 / np.sqrt(np.diag(matrix))
    return scale[:, None] * np.linalg.solve(matrix * scale * scale[:, None], scale[:, None] * right)


def _least(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The x of least norm for which |matrix x + …| is least: the least-squares solution of ``matrix`` x = ``right``."""
    if not matrix.size:
        return np.zeros((matrix.shape[1], right.shape[1]))
    return np.linalg.lstsq(matrix, right, rcond=1e-9)[0]
