"""Kernels: the linear system at one set of conducting diodes, from a normal tree.

Branches are sorted by role, so the classes (sources and conducting diodes; capacitors; resistors; inductors; blocking
diodes and current sources) are ranges of the tree and of its links. The kernels take real and complex numbers.

The normal tree is a spanning forest that takes branches in the order of their roles.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim._graphs import Tracks, find, grow_forest

VOLTAGE, CONDUCTING, CAPACITOR, RESISTOR, INDUCTOR, BLOCKING, CURRENT, WINDING = range(8)
"""Roles of branches: `circuitsim.time_domain.modes.Role`."""
FIXED, C, R, L, FREE = range(5)
"""Classes of branches: class k has the range ``tree[k]`` to ``tree[k + 1]`` in the tree, and likewise in the links."""
FIRST_ROLE = np.array([0, 2, 3, 4, 5, 7])
"""The first role of each class (`circuitsim.time_domain.modes.Role`), and that of windings, which have no class."""


class Wiring(NamedTuple):
    """A normal tree: its branches, the links, the cut-set matrix between them, and the ranges of the classes.

    With ideal couplings the cut-set matrix also holds turns ratios, and windings are neither branches of the tree nor
    links; ``flows`` (windings, m) are their currents as sums over those of all other branches
    (`circuitsim.time_domain.modes`).
    """

    twigs: np.ndarray
    links: np.ndarray
    cut: np.ndarray
    tree: np.ndarray
    rest: np.ndarray
    flows: np.ndarray


def wired(nodes, first, second, role, order):
    """The normal tree of elements with these roles, within one role in the given order: a `Wiring`.

    Windings come last, after the ranges of the classes.
    """
    m = role.size
    twigs, links = np.empty(m, np.int64), np.empty(m, np.int64)
    tree, rest = np.zeros(FIRST_ROLE.size, np.int64), np.zeros(FIRST_ROLE.size, np.int64)
    t = forest(nodes, first, second, role, order, twigs, links, tree, rest)
    cut = np.zeros((t, m - t))
    cut_sets(nodes, first, second, twigs[:t], links[: m - t], cut)
    return Wiring(twigs[:t], links[: m - t], cut, tree, rest, np.zeros((0, 0)))


def forest(nodes, first, second, role, order, twigs, links, tree, rest):
    """Fill in a spanning forest that takes branches in ascending order of role, and within a role in the given order;
    the remaining branches (links); and the ranges of the classes of both.

    Returns the number of branches in the forest.
    """
    root, t, left, kind = np.arange(nodes), 0, 0, 0
    for k in range(FIRST_ROLE[FREE + 1] + 1):
        if k == FIRST_ROLE[kind]:
            tree[kind], rest[kind] = t, left
            kind += 1
        for e in order:
            if role[e] != k:
                continue
            a, b = find(root, first[e]), find(root, second[e])
            if a == b:
                links[left] = e
                left += 1
            else:
                root[b] = a
                twigs[t] = e
                t += 1
    return t


def cut_sets(nodes, first, second, twigs, links, cut):
    """Fill in the cut-set matrix (t, l) of a forest, from the tree path between the ends of each link."""
    t, one, two = twigs.size, first[twigs], second[twigs]
    of = np.full((8, nodes), -1)
    tracks = Tracks(np.empty(nodes + 1, np.int64), of[0], np.empty(2 * t, np.int64), of[1])
    node, parent, edge, root, above, by = of[2], of[3], of[4], of[5], of[6], of[7]
    depth = np.zeros(nodes)  # at first no node is preferred as a root
    for k in range(grow_forest(nodes, t, one, two, 0, depth, tracks, node, parent, edge, root)):
        above[node[k]], by[node[k]], depth[node[k]] = parent[k], edge[k], depth[parent[k]] + 1.0
    for k in range(links.size):
        a, b = first[links[k]], second[links[k]]
        while a != b:
            if depth[a] >= depth[b]:
                cut[by[a], k] += 1.0 if one[by[a]] == a else -1.0
                a = above[a]
            else:
                cut[by[b], k] -= 1.0 if one[by[b]] == b else -1.0
                b = above[b]


CANCELLED = 1e-15
"""Relative magnitude below which a sum counts as zero."""


class Given(NamedTuple):
    """Data common to all modes.

    Attributes
    ----------
    storing : (q,) int array
        Capacitors and inductors.
    sources : (p,) int array
    system : (s, s) float array
        Generator of the sources' states.
    rows : (p, s) array
        Source values over these states.
    coupling : (m, m) array
        Mutual inductances, H; (0, 0) where there are none.
    turns : (w, m) float array
        See `circuitsim.time_domain.modes.Parts`.
    """

    storing: np.ndarray
    sources: np.ndarray
    system: np.ndarray
    rows: np.ndarray
    coupling: np.ndarray
    turns: np.ndarray


class Waves(NamedTuple):
    """Branch voltages and currents as rows over z = (states of the sources, states), and the system matrix."""

    voltage: np.ndarray
    current: np.ndarray
    system: np.ndarray


def equations(net, role, of, value, shared, waves, dependent, checks):
    """The equations of a mode.

    Parameters
    ----------
    net : Wiring
    role : (m,) int array
    of : Given
    value : (m,) array
        Ω, F, H.
    shared : tuple of two arrays
        Matrices of least squares for potentials and loop currents, empty where no current source is in the tree, and no
        voltage source outside it.
    waves, dependent, checks
        Overwritten; see `circuitsim.time_domain.modes.Mode`, `checks` are `source_loops` and `source_cuts`.

    Returns
    -------
    states, of_sources : arrays
        See `sums_of_currents`.
    """
    s, n, m, kind = of.system.shape[0], waves.system.shape[0], role.size, waves.voltage.dtype
    k, many, given = n - s, net.tree[R] - net.tree[C], np.zeros((m, s), kind)
    for j in range(of.sources.size):
        for c in range(s):
            given[of.sources[j], c] = of.rows[j, c]
    v, drop = np.zeros((net.twigs.size, n), kind), np.zeros((net.links.size, n), kind)
    i, flow = np.zeros(v.shape, kind), np.zeros(drop.shape, kind)
    # The first class of branches has all voltage sources, the last one all current sources.
    put_sources(net.twigs[: net.tree[C]], given, v)
    put_sources(net.links[: net.rest[C]], given, drop)
    put_sources(net.twigs[net.tree[FREE] :], given, i[net.tree[FREE] :])
    put_sources(net.links[net.rest[FREE] :], given, flow[net.rest[FREE] :])
    for j in range(many):
        v[net.tree[C] + j, s + j] = 1.0
    states, of_sources = sums_of_currents(net, given.real)
    for j in range(k - many):
        for c in range(k - many):
            flow[net.rest[L] + j, s + many + c] = states[0, j, c]
        for c in range(s):
            flow[net.rest[L] + j, c] = of_sources[0, j, c]
    rate = times(of.system.T, given.T).T
    waves.system[:s, :s] = of.system
    resistors(net, value, v, drop, i, flow)
    across(net.cut, 0, net.tree[R], net.rest[C], net.rest[R], v, 1.0, drop[net.rest[C] : net.rest[R]])
    capacitors(net, value, rate, i, flow, waves.system)
    if net.rest[L] < net.rest[FREE] or net.tree[L] < net.tree[FREE]:
        back = states[1], times(of_sources[1], of.system)
        inductors(net, of.coupling, value, rate, back, v, drop, i, flow, waves.system)
    floating(net, role, shared[0], v, drop)
    loops_of_diodes(net, role, shared[1], i, flow)
    put_back(net, v, drop, waves.voltage)
    put_back(net, i, flow, waves.current)
    mismatches(net, given, checks[0], checks[1])
    for e in of.storing:
        for c in range(n):
            dependent[e, c] = waves.voltage[e, c] if role[e] == CAPACITOR else waves.current[e, c]
    if net.flows.shape[0]:
        windings(net, role, of.turns, waves)
    return states, of_sources


def put_sources(branches, given, out):
    """Fill in the values of sources among branches, in the first columns."""
    for j in range(branches.size):
        for c in range(given.shape[1]):
            out[j, c] = given[branches[j], c]


def put_back(net, inside, outside, whole):
    """Fill in the rows of elements from those of the tree and of the links."""
    for c in range(whole.shape[1]):
        for t in range(net.twigs.size):
            whole[net.twigs[t], c] = inside[t, c]
        for k in range(net.links.size):
            whole[net.links[k], c] = outside[k, c]


def across(cut, t0, t1, l0, l1, v, share, out):
    """Add a fraction of the voltages of a range of the tree (rows of ``v``) to those of a range of links, ``out``."""
    for t in range(t0, t1):
        for k in range(l0, l1):
            weight = share * cut[t, k]
            if weight != 0.0:
                for c in range(out.shape[1]):
                    out[k - l0, c] += weight * v[t, c]


def into(cut, t0, t1, l0, l1, flow, share, out):
    """Add a fraction of the currents of a range of links (rows of ``flow``) into the cuts of a range of the tree."""
    for t in range(t0, t1):
        for k in range(l0, l1):
            weight = share * cut[t, k]
            if weight != 0.0:
                for c in range(out.shape[1]):
                    out[t - t0, c] += weight * flow[k, c]


def gram(cut, t0, t1, l0, l1, weight, matrix):
    """Add F w Fᵀ for a range of the tree and a range of the links with these weights."""
    for k in range(l0, l1):
        for i in range(t0, t1):
            if cut[i, k] != 0.0:
                for j in range(t0, t1):
                    matrix[i - t0, j - t0] += cut[i, k] * weight[k - l0] * cut[j, k]


def scaled(rows, weight, out):
    """``out`` = rows times weights (rows,)."""
    for j in range(weight.size):
        for c in range(out.shape[1]):
            out[j, c] = weight[j] * rows[j, c]


def solved(matrix, right):
    """Overwrite ``right`` by the solution for a symmetric positive definite ``matrix``, which is overwritten too
    (LDLᵀ)."""
    n, columns = right.shape
    for j in range(n):
        for i in range(j + 1, n):
            if matrix[i, j] != 0.0:
                share = matrix[i, j] / matrix[j, j]
                for k in range(j + 1, i + 1):
                    matrix[i, k] -= share * matrix[k, j]
                for c in range(columns):
                    right[i, c] -= share * right[j, c]
    for j in range(n - 1, -1, -1):
        for c in range(columns):
            right[j, c] = right[j, c] / matrix[j, j]
        for i in range(j):
            share = matrix[j, i]
            if share != 0.0:
                for c in range(columns):
                    right[i, c] -= share * right[j, c]


def twice_solved(matrix, right):
    """As `solved`, with one step of refinement; ``matrix`` is real."""
    factor, found = matrix.copy(), right.copy()
    solved(factor, found)
    right -= times(matrix, found)
    solved(matrix, right)
    right += found


def times(a, b):
    """The product of two matrices."""
    out = np.zeros((a.shape[0], b.shape[1]), b.dtype)
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            if a[i, k] != 0.0:
                for j in range(b.shape[1]):
                    out[i, j] += a[i, k] * b[k, j]
    return out


def nodal(net, kind, outside, own, v, drop, i, flow):
    """Voltages and currents of a class of branches: nodal analysis, potentials of the tree's branches from the currents
    into their cuts; for capacitors these voltages are slopes.

    Parameters
    ----------
    net : Wiring
    kind : int
        `R` or `C`.
    outside, own : float arrays
        Conductances of the links, of the tree's branches; for capacitors F.
    v, drop, i, flow
        Voltages and currents of tree and links, filled in; those of the classes before, and the currents of the links
        after, are there.
    """
    cut, t0, t1, l0, l1 = net.cut, net.tree[kind], net.tree[kind + 1], net.rest[kind], net.rest[kind + 1]
    across(cut, 0, t0, l0, l1, v, 1.0, drop[l0:l1])
    scaled(drop[l0:l1], outside, flow[l0:l1])
    into(cut, t0, t1, l0, net.links.size, flow, -1.0, v[t0:t1])
    matrix = np.diag(own)
    gram(cut, t0, t1, l0, l1, outside, matrix)
    solved(matrix, v[t0:t1])
    scaled(v[t0:t1], own, i[t0:t1])
    across(cut, t0, t1, l0, l1, v, 1.0, drop[l0:l1])
    scaled(drop[l0:l1], outside, flow[l0:l1])


def resistors(net, value, v, drop, i, flow):
    """Voltages and currents of resistors."""
    outside, own = net.links[net.rest[R] : net.rest[L]], net.twigs[net.tree[R] : net.tree[L]]
    nodal(net, R, 1.0 / value[outside], 1.0 / value[own], v, drop, i, flow)


def capacitors(net, value, rate, i, flow, system):
    """Charges of the tree's capacitors, including those in loops of capacitors and sources."""
    t0, t1 = net.tree[C], net.tree[R]
    slope, drift = np.zeros(i.shape, i.dtype), np.zeros(flow.shape, i.dtype)
    for t in range(t0):
        for c in range(rate.shape[1]):
            slope[t, c] = rate[net.twigs[t], c]
    nodal(net, C, value[net.links[net.rest[C] : net.rest[R]]], value[net.twigs[t0:t1]], slope, drift, i, flow)
    system[rate.shape[1] : rate.shape[1] + t1 - t0] = slope[t0:t1]


def inductors(net, coupling, value, rate, back, v, drop, i, flow, system):
    """Fluxes of the inductors outside the tree, including those in cuts of inductors and sources.

    ``back`` maps slopes of the states to those of their currents and the sources' states (`sums_of_currents`).
    """
    cut, t0, t1, l0, l1 = net.cut, net.tree[L], net.tree[FREE], net.rest[L], net.rest[FREE]
    outside, k0, n, s = l1 - l0, net.tree[R] - net.tree[C], v.shape[1], rate.shape[1]
    own = np.concatenate((net.links[l0:l1], net.twigs[t0:t1]))
    onto, inductance = np.zeros((own.size, outside), v.dtype), np.zeros((own.size, own.size), v.dtype)
    slope, change = np.zeros((net.links.size, n), v.dtype), np.zeros((own.size, n), v.dtype)
    for k in range(outside):
        onto[k, k] = 1.0
        for t in range(t0, t1):
            onto[outside + t - t0, k] = -cut[t, l0 + k]
    for k in range(l1, net.links.size):
        for c in range(s):
            slope[k, c] = rate[net.links[k], c]
    into(cut, t0, t1, l1, net.links.size, slope, -1.0, change[outside:])
    for a in range(own.size):
        for b in range(own.size):
            inductance[a, b] = coupling[own[a], own[b]] if coupling.size else 0.0
        inductance[a, a] += value[own[a]]
    image = times(inductance, onto)
    push = -times(image.T, change)
    across(cut, 0, t0, l0, l1, v, 1.0, push)
    solved(times(onto.T, image), push)
    found = times(back[0], push)
    for k in range(outside):
        for c in range(n):
            system[s + k0 + k, c] = found[k, c] + (back[1][k, c] if c < s else 0.0)
    flux = times(inductance, change + times(onto, push))
    drop[l0:l1], v[t0:t1] = flux[:outside], flux[outside:]
    into(cut, t0, t1, l0, net.links.size, flow, -1.0, i[t0:t1])


def sums_of_currents(net, given):
    """Currents of the inductors outside the tree (c,) from state currents and the sources' states, and the inverse:
    matrices (2, c, c) and (2, c, s).

    Where inductors and current sources meet in the cut of a tree resistor, the sum of their currents, which is the
    resistor's current up to other links, replaces one of them as a state: with a large resistance it is many digits
    smaller than they are. Large resistances come first. ``given`` (m, s) are the values of current sources over the
    sources' states; imaginary parts, derivatives, do not change the choice.
    """
    l0, count, s = net.rest[L], net.rest[L + 1] - net.rest[L], given.shape[1]
    found, taken, row = np.zeros((2, count, count)), np.zeros(count, np.bool_), np.empty(count)
    of_sources, driven = np.zeros((2, count, s)), np.empty(s)
    for k in range(count):
        found[0, k, k] = found[1, k, k] = 1.0
    for t in range(net.tree[R + 1] - 1, net.tree[R] - 1, -1):
        # The cut over the states so far: all entries are −1, 0 or 1, as those of the cut-set matrix, or turns ratios.
        p = -1
        for j in range(count):
            row[j], size = 0.0, 0.0
            for k in range(count):
                row[j] += net.cut[t, l0 + k] * found[0, k, j]
                size += abs(net.cut[t, l0 + k] * found[0, k, j])
            row[j] = row[j] if abs(row[j]) > CANCELLED * size else 0.0
            if row[j] != 0.0 and not taken[j] and (p < 0 or abs(row[j]) >= abs(row[p])):
                p = j
        if p < 0:
            continue
        taken[p] = True
        for c in range(s):
            driven[c] = 0.0
        for k in range(net.rest[FREE], net.rest[FREE + 1]):
            if net.cut[t, k] != 0.0:
                for c in range(s):
                    driven[c] += net.cut[t, k] * given[net.links[k], c]
        for c in range(s):
            of_sources[1, p, c] = driven[c]
            for k in range(count):
                driven[c] += net.cut[t, l0 + k] * of_sources[0, k, c]
        for k in range(count):
            of_sum = found[0, k, p] / row[p]
            for j in range(count):
                found[0, k, j] -= of_sum * row[j]
            for c in range(s):
                of_sources[0, k, c] -= of_sum * driven[c]
            found[0, k, p] = of_sum
            found[1, p, k] = net.cut[t, l0 + k]
    return found, of_sources


def between(cut, last, l0, l1, v, drop):
    """Fill in the voltages of a range of links from those of the tree before ``last``.

    The residual where the terms of a sum cancel is set to zero; otherwise the sign of a diode's voltage would be that
    of rounding. Derivatives, the imaginary parts, are kept.
    """
    drop[l0:l1] = 0.0
    across(cut, 0, last, l0, l1, v, 1.0, drop[l0:l1])
    for k in range(l0, l1):
        for c in range(drop.shape[1]):
            size = 0.0
            for t in range(last):
                if cut[t, k] != 0.0:
                    size += abs(v[t, c])
            if abs(drop[k, c].real) <= CANCELLED * size:
                drop[k, c] -= drop[k, c].real


def floating(net, role, given, v, drop):
    """Floating parts: equal infinitesimal conductances of blocking diodes determine their potentials.

    ``given`` is empty where all free branches of the tree are such diodes, otherwise the matrix of least squares.
    """
    cut, t0, t1, l0, l1 = net.cut, net.tree[FREE], net.tree[FREE + 1], net.rest[FREE], net.rest[FREE + 1]
    between(cut, t0, l0, l1, v, drop)
    if given.size:
        v[t0:t1] = -times(given, drop[l0:l1])
    else:
        weight = np.zeros(l1 - l0)
        for k in range(l0, l1):
            weight[k - l0] = 1.0 if role[net.links[k]] == BLOCKING else 0.0
        matrix, right = np.eye(t1 - t0), drop[l0:l1].copy()
        gram(cut, t0, t1, l0, l1, weight, matrix)
        gap = np.zeros(drop.shape, drop.dtype)
        scaled(right, weight, gap[l0:l1])
        into(cut, t0, t1, l0, l1, gap, -1.0, v[t0:t1])
        twice_solved(matrix, v[t0:t1])
    between(cut, t1, l0, l1, v, drop)


def loops_of_diodes(net, role, given, i, flow):
    """Loops of conducting diodes: equal infinitesimal resistances share the current; ``given`` as in `floating`."""
    cut, t1, l1 = net.cut, net.tree[C], net.rest[C]
    into(cut, 0, t1, l1, net.links.size, flow, -1.0, i[:t1])
    if not given.size:
        carried, weight, matrix = np.zeros((t1, i.shape[1]), i.dtype), np.zeros(t1), np.eye(l1)
        for t in range(t1):
            weight[t] = 1.0 if role[net.twigs[t]] == CONDUCTING else 0.0
        scaled(i, weight, carried)
        across(cut, 0, t1, 0, l1, carried, 1.0, flow[:l1])
        gram(cut.T, 0, l1, 0, t1, weight, matrix)
        twice_solved(matrix, flow[:l1])
    else:
        flow[:l1] = times(given, i[:t1])
    into(cut, 0, t1, 0, l1, flow, -1.0, i[:t1])


def mismatches(net, given, loops, cuts):
    """Fill in the contradictions that no finite current and voltage satisfies: in loops of sources and conducting
    diodes, in cuts of sources and blocking diodes."""
    t1, l1, t0, l0 = net.tree[FIXED + 1], net.rest[FIXED + 1], net.tree[FREE], net.rest[FREE]
    t2, l2 = net.tree[FREE + 1], net.rest[FREE + 1]
    contradictions(net.cut[:t1, :l1].copy(), 1.0, net.twigs[:t1], net.links[:l1], given, loops)
    contradictions(net.cut[t0:t2, l0:l2].T.copy(), -1.0, net.links[l0:l2], net.twigs[t0:t2], given, cuts)


def contradictions(cut, sign, twigs, links, given, found):
    """Those of loops of ``links`` over ``twigs``, or of cuts with both exchanged."""
    t, k = cut.shape
    gap, carried, matrix = -given[links], np.zeros((t, given.shape[1]), given.dtype), np.eye(k)
    across(cut, 0, t, 0, k, given[twigs], sign, gap)
    gram(cut.T, 0, k, 0, t, np.ones(t), matrix)
    twice_solved(matrix, gap)
    into(cut, 0, t, 0, k, gap, -sign, carried)
    for c in range(given.shape[1]):
        for i in range(t):
            found[twigs[i], c] = carried[i, c]
        for j in range(k):
            found[links[j], c] = gap[j, c]


def windings(net, role, turns, waves):
    """Voltages and currents of ideally coupled windings; inductors carry the rest of their states' currents."""
    w, m, n = -1, role.size, waves.system.shape[0]
    flows = times(net.flows, waves.current)
    for e in range(m):
        if role[e] != WINDING:
            continue
        w += 1
        for c in range(n):
            waves.current[e, c] = flows[w, c]
        for k in range(m):
            if turns[w, k] != 0.0:
                for c in range(n):
                    waves.voltage[e, c] += turns[w, k] * waves.voltage[k, c]
                    waves.current[k, c] -= turns[w, k] * flows[w, c]
