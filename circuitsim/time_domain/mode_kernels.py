"""Kernels: the linear system at one set of conducting diodes, from a normal tree.

Branches are sorted by role, so the classes (sources and conducting diodes; capacitors; resistors; inductors; blocking
diodes and current sources) are ranges of the tree and of its links. The kernels take real and complex numbers.

The normal tree is a spanning forest that takes branches in the order of their roles.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.time_domain.small_matrices import placed, rotated, solved, times, without_rounding

VOLTAGE, CONDUCTING, CAPACITOR, RESISTOR, INDUCTOR, BLOCKING, CURRENT, WINDING = range(8)
"""Roles of branches: `circuitsim.time_domain.modes.Role`."""
FIXED, C, R, L, FREE = range(5)
"""Classes of branches: class k has the range ``tree[k]`` to ``tree[k + 1]`` in the tree, and likewise in the links."""
FIRST_ROLE = np.array([0, 2, 3, 4, 5, 7])
"""The first role of each class (`circuitsim.time_domain.modes.Role`), and that of windings, which have no class."""
ROUNDED = 1e-12
"""Relative magnitude below which a sum is zero, since turns ratios are rounded."""
FAR = 1e300
"""A number beyond all resistances, Ω."""
DEPENDENT = 1e-9
"""Singular values below this fraction of the largest are zero in matrices of zeros and ones."""


class Parts(NamedTuple):
    """The elements of a circuit in transient analysis.

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
    coupling : (m, m) float array
        Mutual inductances between inductors, H.
    turns : (w, m) float array
        For windings (`Role.WINDING`), ascending, over the inductors that they are ideally coupled to: their voltages
        are these times those of the inductors, and their currents times these are part of the inductors' states.
    """

    n_nodes: int
    first: np.ndarray
    second: np.ndarray
    role: np.ndarray
    value: np.ndarray
    coupling: np.ndarray
    turns: np.ndarray


class Wiring(NamedTuple):
    """A normal tree: its branches, the links, the cut-set matrix between them, and the ranges of the classes.

    With ideal couplings the cut-set matrix also holds turns ratios, and windings are neither branches of the tree nor
    links; ``flows`` (windings, links) are their currents as sums over those of the links.
    """

    twigs: np.ndarray
    links: np.ndarray
    cut: np.ndarray
    tree: np.ndarray
    rest: np.ndarray
    flows: np.ndarray


class Mode(NamedTuple):
    """The linear system ż = A z at one set of conducting diodes; z are the states w of the sources, then capacitor
    voltages and inductor currents.

    Attributes
    ----------
    net : Wiring
    role : (m,) int array
    states : (k,) int array
        Elements whose voltages (capacitors) and currents (inductors) are the last k entries of z.
    system : (s + k, s + k) array
        A, 1/s.
    voltage, current : (m, s + k) arrays
        Branch voltages and currents are these matrices times z.
    storing : (q, s + k) array
        Voltages of capacitors and currents of inductors, including windings that they are ideally coupled to.
    onto, onto_sources : (c, c), (c, s) float arrays
        The states of inductors from the currents of those outside the tree and the sources' states.
    loops, cuts : (m, s) arrays
        Contradictions that no finite current and voltage satisfies: currents through loops of sources and conducting
        diodes whose voltages do not add up, for equal infinitesimal resistances (Ω times A), and voltages across cuts
        of sources and blocking diodes whose currents do not, for equal infinitesimal conductances (S times V).
    """

    net: Wiring
    role: np.ndarray
    states: np.ndarray
    system: np.ndarray
    voltage: np.ndarray
    current: np.ndarray
    storing: np.ndarray
    onto: np.ndarray
    onto_sources: np.ndarray
    loops: np.ndarray
    cuts: np.ndarray


def normal_tree(parts, role):
    """The normal tree of elements with these roles; twigs and links are each in ascending order of role.

    Kirchhoff's current law over the currents of windings, then of branches in the order of their roles, is brought to
    reduced row echelon form. Its pivots among the branches are the greedy base: the tree. Small resistances precede
    large ones: the conductances of twigs are then the large diagonal entries of the nodal matrix, and a large
    resistance beside many small ones costs no digits.
    """
    w, m, first, second, key = parts.turns.shape[0], role.size, parts.first, parts.second, np.zeros(role.size)
    for e in range(m):
        kind = role[e] - RESISTOR if role[e] != WINDING else -WINDING
        key[e] = parts.value[e].real if kind == 0 else kind * FAR
    order = np.argsort(key, kind="mergesort")
    rows, pivot = np.zeros((parts.n_nodes, m)), np.zeros(m, np.int64) - 1
    for k in range(m):
        rows[first[order[k]], k] += 1.0
        rows[second[order[k]], k] -= 1.0
    for k in range(w):
        # The law over the inductors' states, which include the windings' currents.
        for e in range(m):
            rows[first[e], k] = difference(rows[first[e], k], parts.turns[k, e])
            rows[second[e], k] = difference(rows[second[e], k], -parts.turns[k, e])
    free = np.ones(parts.n_nodes, np.bool_)
    for k in range(m):
        p = -1
        for i in range(parts.n_nodes):
            if free[i] and abs(rows[i, k]) > (abs(rows[p, k]) if p >= 0 else 0.0):
                p = i
        if p < 0:
            continue
        pivot[k], free[p] = p, False
        rows[p] /= rows[p, k]
        for i in range(parts.n_nodes):
            share = rows[i, k]
            if i != p and share != 0.0:
                for j in range(k, m):
                    if rows[p, j] != 0.0:
                        rows[i, j] = difference(rows[i, j], share * rows[p, j])
    inside = np.flatnonzero(pivot[w:] >= 0) + w
    outside = np.flatnonzero(pivot[w:] < 0) + w
    left, flows = rows[:, outside], np.zeros((w, outside.size))
    for k in range(w):
        # Indeterminate currents of windings (ideally coupled ones in parallel) are zero.
        if pivot[k] >= 0:
            flows[k] = -left[pivot[k]]
    twigs, links = order[inside], order[outside]
    tree, rest = np.searchsorted(role[twigs], FIRST_ROLE), np.searchsorted(role[links], FIRST_ROLE)
    return Wiring(twigs, links, left[pivot[inside]], tree, rest, flows)


def difference(one, other):
    """The difference of two numbers, zero where it is the rounding of turns ratios."""
    left = one - other
    return left if abs(left) > ROUNDED * (abs(one) + abs(other)) else 0.0


def linear_system(parts, supply, conducting):
    """The linear system at a set of conducting diodes: a `Mode`.

    Parameters
    ----------
    parts : Parts
        Imaginary parts of these and of the sources' rows give those of the result (complex step).
    supply : circuitsim.time_domain.mode_rows.Supply
    conducting : (d,) bool array
    """
    storing, system, rows = supply.storing, supply.system, supply.rows
    role = parts.role.copy()
    role[supply.diodes[conducting]] = CONDUCTING
    net = normal_tree(parts, role)
    cut, tree, rest, t = net.cut, net.tree, net.rest, net.twigs.size
    order, inductors = np.concatenate((net.twigs, net.links)), slice(t + rest[L], t + rest[FREE])
    states = np.concatenate((order[tree[C] : tree[R]], order[inductors]))
    m, s, kind = role.size, system.shape[0], rows.dtype
    n, first = s + states.size, s + tree[R] - tree[C]
    given = np.zeros((m, s), kind)
    placed(rows, supply.sources, given)
    # Voltages of the first class of branches and currents of the last one are given.
    v, slope, value = np.zeros((order.size, n), kind), np.zeros((order.size, n), kind), parts.value[order]
    v[:, :s] = given[order]
    i = v.copy()
    for j in range(tree[C], tree[R]):
        v[j, s + j - tree[C]] = 1.0
    found, of_sources = sums_of_currents(net, given.real)
    i[inductors, first:], i[inductors, :s] = found[0], of_sources[0]
    whole = np.zeros((n, n), kind)
    whole[:s, :s] = system
    balanced(net, R, False, np.diag(1.0 / value[of_class(net, R)]), v, i)
    v[t + rest[C] : t + rest[R]] = times(cut[: tree[R], rest[C] : rest[R]].T, v[: tree[R]])
    if supply.slopes:
        slope[:, :s] = times(system.T, given[order].T).T
        balanced(net, C, False, np.diag(value[of_class(net, C)]), slope, i)
        whole[s:first] = slope[tree[C] : tree[R]]
        own = of_class(net, L)
        henries = np.diag(value[own]) + parts.coupling[order[own]][:, order[own]]
        balanced(net, L, True, henries, v, slope)
        whole[first:] = times(found[1], slope[inductors])
        whole[first:, :s] += times(of_sources[1], system)
        i[tree[L] : tree[FREE]] = -times(cut[tree[L] : tree[FREE], rest[L] :], i[t + rest[L] :])
        shared(net, FIXED, True, role[order], v, i)
    shared(net, FREE, False, role[order], v, i)
    v[t + rest[FREE] :] = without_rounding(cut[:, rest[FREE] :].T, v[:t])
    voltage, current = np.zeros((m, n), kind), np.zeros((m, n), kind)
    placed(v, order, voltage)
    placed(i, order, current)
    stored = current[storing]
    for j in range(storing.size):
        if role[storing[j]] == CAPACITOR:
            stored[j] = voltage[storing[j]]
    if net.flows.size:
        # Inductors carry the rest of their states' currents.
        windings, through = np.flatnonzero(role == WINDING), times(net.flows, i[t:])
        current[windings], voltage[windings] = through, times(parts.turns, voltage)
        current -= times(parts.turns.T, through)
    loops, cuts = np.zeros((m, s)), np.zeros((m, s))
    placed(contradictions(net, FIXED, True, given[order].real), order, loops)
    placed(contradictions(net, FREE, False, given[order].real), order, cuts)
    return Mode(net, role, states, whole, voltage, current, stored, found[1], of_sources[1], loops, cuts)


def of_class(net, kind):
    """The places of the branches of a class among those of the tree, then links."""
    links = np.arange(net.rest[kind], net.rest[kind + 1]) + net.twigs.size
    return np.concatenate((np.arange(net.tree[kind], net.tree[kind + 1]), links))


def independent(net, kind, by_loops):
    """The voltages of the branches of a class as sums over those of the tree's, or, ``by_loops``, their currents as
    sums over those of the links."""
    cut = net.cut[net.tree[kind] : net.tree[kind + 1], net.rest[kind] : net.rest[kind + 1]]
    if by_loops:
        return np.concatenate((-cut, np.eye(cut.shape[1])))
    return np.concatenate((np.eye(cut.shape[0]), cut.T))


def unknowns(net, kind, by_loops, v, i):
    """Kirchhoff's laws for a class of branches: nodal analysis, or ``by_loops`` mesh analysis.

    Parameters
    ----------
    net : Wiring
    kind : int
        Class of branches.
    by_loops : bool
    v, i : (b, n) arrays
        Voltages and currents of the branches of the tree, then of the links. Those of the tree in the classes before
        have voltages, and those of the links in the classes after have currents.

    Returns
    -------
    onto, start : (c, u), (c, n) arrays
        Voltages of the class from those of the tree's branches among them, or currents from those of the links:
        ``onto`` times these, plus ``start``.
    push : (u, n) array
        The sums of ``onto`` over the class's currents, or over their voltages.
    """
    t0, t1, l0, l1 = net.tree[kind], net.tree[kind + 1], net.rest[kind], net.rest[kind + 1]
    across = without_rounding(net.cut[:t0, l0:l1].T, v[:t0])
    into = -times(net.cut[t0:t1, l1:], i[net.twigs.size + l1 :])
    start = np.zeros((t1 - t0 + l1 - l0, v.shape[1]), v.dtype)
    if by_loops:
        start[: t1 - t0] = into
    else:
        start[t1 - t0 :] = across
    return independent(net, kind, by_loops), start, across if by_loops else into


def solution(onto, weight, start, push, passes):
    """The sums ``onto`` for which weights times these, plus ``start``, balance ``push``; with one step of refinement in
    2 ``passes``."""
    image, found = times(weight, onto), np.zeros(start.shape, start.dtype)
    for _ in range(passes):
        right = push - times(image.T, start + found)
        solved(times(onto.T, image), right)
        found += times(onto, right)
    return found


def balanced(net, kind, by_loops, weight, v, i):
    """Fill in the voltages of the branches of a class and, as weights (conductances; for slopes capacitances) times
    these, their currents; ``by_loops`` their currents first, and voltages by resistances or inductances. See
    `unknowns`."""
    onto, start, push = unknowns(net, kind, by_loops, v, i)
    found, own = start + solution(onto.astype(weight.dtype), weight, start, push, 1), of_class(net, kind)
    placed(found, own, i if by_loops else v)
    placed(times(weight, found), own, v if by_loops else i)


def shared(net, kind, by_loops, role, v, i):
    """Fill in voltages of floating parts, determined by equal infinitesimal conductances of blocking diodes, or
    currents in loops, by equal infinitesimal resistances of conducting ones; see `unknowns`. Where these do not
    suffice, the smallest."""
    own = of_class(net, kind)
    counted = role[own] == (CONDUCTING if by_loops else BLOCKING)
    onto, start, push = unknowns(net, kind, by_loops, v, i)
    twigs = net.tree[kind + 1] - net.tree[kind]
    if (counted[twigs:] if by_loops else counted[:twigs]).all():
        start += solution(onto, np.diag(counted * 1.0), start, push, 2)
    else:
        rows = np.concatenate((onto[counted].T, np.eye(onto.shape[1])), axis=1)
        many = rows.shape[1] - rows.shape[0]
        rotated(rows, rows.shape[0], many)
        size, right = (rows[:, :many] ** 2).sum(axis=1), times(rows[:, :many], start[counted])
        for j in range(size.size):
            right[j] *= -1.0 / size[j] if size[j] > DEPENDENT**2 * size.max() else 0.0
        start += times(onto, times(rows[:, many:].T, right))
    placed(start, own, i if by_loops else v)


def contradictions(net, kind, by_loops, given):
    """Those of loops of sources and conducting diodes (m, s), or of cuts of sources and blocking ones."""
    own, onto, found = of_class(net, kind), independent(net, kind, by_loops), np.zeros(given.shape)
    placed(solution(onto, np.eye(own.size), given[own], np.zeros((onto.shape[1], given.shape[1])), 2), own, found)
    return found


def sums_of_currents(net, given):
    """Currents of the inductors outside the tree (c,) from state currents and the sources' states, and the inverse:
    matrices (2, c, c) and (2, c, s).

    Where inductors and current sources meet in the cut of a tree resistor, the sum of their currents, which is the
    resistor's current up to other links, replaces one of them as a state: with a large resistance it is many digits
    smaller than they are. Large resistances come first. ``given`` (m, s) are the values of current sources over the
    sources' states; imaginary parts, derivatives, do not change the choice.
    """
    l0, l1, l2, s = net.rest[L], net.rest[FREE], net.rest[FREE + 1], given.shape[1]
    count = l1 - l0
    found, of_sources, taken = np.zeros((2, count, count)), np.zeros((2, count, s)), np.zeros(count, np.bool_)
    found[:] = np.eye(count)
    for t in range(net.tree[L] - 1, net.tree[R] - 1, -1):
        # The cut over the states so far: all entries are −1, 0 or 1, as those of the cut-set matrix, or turns ratios.
        cut = net.cut[t : t + 1, l0:l1]
        row, p = without_rounding(cut, found[0]), -1
        for j in range(count):
            if row[0, j] != 0.0 and not taken[j] and (p < 0 or abs(row[0, j]) >= abs(row[0, p])):
                p = j
        if p < 0:
            continue
        taken[p] = True
        driven = times(net.cut[t : t + 1, l1:l2], given[net.links[l1:l2]])
        of_sources[1, p], found[1, p] = driven[0], cut[0]
        driven += times(cut, of_sources[0])
        of_sum = found[0, :, p : p + 1] / row[0, p]
        found[0] -= times(of_sum, row)
        of_sources[0] -= times(of_sum, driven)
        found[0, :, p] = of_sum[:, 0]
    return found, of_sources
