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
        Source values are these rows times the sources' states.
    """
    role = parts.role.copy()
    role[diodes[conducting]] = Role.CONDUCTING
    tree = normal_tree(parts, role)
    at = [np.flatnonzero(role[tree.twigs] == r) for r in Role]
    al = [np.flatnonzero(role[tree.links] == r) for r in Role]
    fixed, free = np.concatenate(at[:2]), np.concatenate(at[5:])
    loops, opens = np.concatenate(al[:2]), np.concatenate(al[5:])
    f, twigs, links = tree.cut, tree.twigs, tree.links
    ct, rt, lt = at[Role.CAPACITOR], at[Role.RESISTOR], at[Role.INDUCTOR]
    cl, rl, ll = al[Role.CAPACITOR], al[Role.RESISTOR], al[Role.INDUCTOR]
    k, s = ct.size + ll.size, system.shape[0]
    # Rows over z of source values and their derivatives.
    value, rate = np.zeros((2, parts.role.size, k + s))
    value[sources, k:] = rows
    rate[sources, k:] = rows @ system
    vc, il = np.zeros((ct.size, k + s)), np.zeros((ll.size, k + s))
    vc[:, : ct.size] = np.eye(ct.size)
    il[:, ct.size : k] = np.eye(ll.size)
    e, de = value[twigs[fixed]], rate[twigs[fixed]]
    j, dj = value[links[opens]], rate[links[opens]]

    def block(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return f[np.ix_(a, b)]

    # Resistors: potentials of the tree's resistors from the currents into their cuts.
    gl, gt = 1.0 / parts.value[links[rl]], 1.0 / parts.value[twigs[rt]]
    drive = block(fixed, rl).T @ e + block(ct, rl).T @ vc
    known = block(rt, ll) @ il + block(rt, opens) @ j + block(rt, rl) @ (gl[:, None] * drive)
    vr = -_solved(np.diag(gt) + (block(rt, rl) * gl) @ block(rt, rl).T, known)
    vrl = drive + block(rt, rl).T @ vr
    irl = gl[:, None] * vrl
    # Capacitors: charges of the tree's capacitors with those in loops of capacitors and sources.
    cap = parts.value
    b = block(ct, cl)
    matrix = np.diag(cap[twigs[ct]]) + (b * cap[links[cl]]) @ b.T
    into = block(ct, rl) @ irl + block(ct, ll) @ il + block(ct, opens) @ j
    dvc = -_solved(matrix, into + (b * cap[links[cl]]) @ (block(fixed, cl).T @ de))
    vcl = block(fixed, cl).T @ e + b.T @ vc
    icl = cap[links[cl]][:, None] * (block(fixed, cl).T @ de + b.T @ dvc)
    # Inductors: fluxes of those outside the tree with those in cuts of inductors and sources.
    coils = np.concatenate([links[ll], twigs[lt]])
    inductance = np.diag(parts.value[coils])
    if parts.coupling is not None:
        inductance = inductance + parts.coupling[np.ix_(coils, coils)]
    onto = np.vstack([np.eye(ll.size), -block(lt, ll)])
    given = np.vstack([np.zeros((ll.size, opens.size)), -block(lt, opens)])
    push = block(fixed, ll).T @ e + block(ct, ll).T @ vc + block(rt, ll).T @ vr
    di = _solved(onto.T @ inductance @ onto, push - onto.T @ inductance @ given @ dj)
    coil_current = onto @ il + given @ j
    coil_voltage = inductance @ (onto @ di + given @ dj)
    vlt = coil_voltage[ll.size :]
    # Floating parts: equal infinitesimal conductances of blocking diodes choose their potentials.
    across = block(fixed, opens).T @ e + block(ct, opens).T @ vc + block(rt, opens).T @ vr + block(lt, opens).T @ vlt
    of_free = role[twigs[free]] == Role.BLOCKING
    of_open = role[links[opens]] == Role.BLOCKING
    stack = np.vstack([np.eye(free.size)[of_free], block(free, opens).T[of_open]])
    vx = -_least(stack, np.vstack([np.zeros((int(of_free.sum()), k + s)), across[of_open]]))
    voc = across + block(free, opens).T @ vx
    # Loops of conducting diodes: equal infinitesimal resistances share the current.
    carried = -(block(fixed, cl) @ icl + block(fixed, rl) @ irl + block(fixed, ll) @ il + block(fixed, opens) @ j)
    on_fixed = role[twigs[fixed]] == Role.CONDUCTING
    on_loops = role[links[loops]] == Role.CONDUCTING
    g = block(fixed, loops)
    spread = np.vstack([-g[on_fixed], np.eye(loops.size)[on_loops]])
    ix = -_least(spread, np.vstack([carried[on_fixed], np.zeros((int(on_loops.sum()), k + s))]))
    ie = carried - g @ ix
    voltage, current, dependent = np.zeros((3, parts.role.size, k + s))
    for where, v, i in (
        (twigs[fixed], e, ie), (links[loops], value[links[loops]], ix), (twigs[ct], vc, cap[twigs[ct]][:, None] * dvc),
        (links[cl], vcl, icl), (twigs[rt], vr, gt[:, None] * vr), (links[rl], vrl, irl),
        (coils, coil_voltage, coil_current), (twigs[free], vx, value[twigs[free]]), (links[opens], voc, j),
    ):  # fmt: skip
        voltage[where], current[where] = v, i
    dependent[twigs[ct]], dependent[links[cl]], dependent[coils] = vc, vcl, coil_current
    whole = np.vstack([dvc, di, np.hstack([np.zeros((s, k)), system])])
    states = np.concatenate([twigs[ct], links[ll]])
    loops, cuts = _mismatches(tree, role, rows, sources, True)
    own_loops, own_cuts = (found[:, role.size :] for found in _mismatches(tree, role, rows, sources, False))
    return Mode(conducting.copy(), states, whole, voltage, current, dependent, loops, cuts, own_loops, own_cuts)


def _mismatches(
    tree: Tree, role: np.ndarray, rows: np.ndarray, sources: np.ndarray, storing: bool
) -> tuple[np.ndarray, np.ndarray]:
    """`Mode.loops` and `Mode.cuts`; those of sources alone without elements ``storing`` energy."""
    m, (twigs, links, f) = role.size, tree
    given = np.zeros((m, m + rows.shape[1]))
    given[sources, m:] = rows
    states = np.flatnonzero((role == Role.CAPACITOR) | (role == Role.INDUCTOR))
    given[states, states] = 1.0
    loops, cuts = np.zeros((2, m, m + rows.shape[1]))
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
