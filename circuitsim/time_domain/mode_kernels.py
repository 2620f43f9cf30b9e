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
        Overwritten; see `circuitsim.time_domain.modes.Mode`, and for `checks`: `mismatches`.

    Returns
    -------
    states, of_sources : arrays
        See `sums_of_currents`.
    """
    s, n, m, kind = of.system.shape[0], waves.system.shape[0], role.size, waves.voltage.dtype
    first, last, l0 = net.tree[C], net.tree[R], net.rest[L]
    given = np.zeros((m, s), kind)
    placed(of.rows, of.sources, given)
    v, drop = np.zeros((net.twigs.size, n), kind), np.zeros((net.links.size, n), kind)
    i, flow = np.zeros(v.shape, kind), np.zeros(drop.shape, kind)
    # The first class of branches has all voltage sources, the last one all current sources.
    fill(given[net.twigs[:first]], v)
    fill(given[net.links[: net.rest[C]]], drop)
    fill(given[net.twigs[net.tree[FREE] :]], i[net.tree[FREE] :])
    fill(given[net.links[net.rest[FREE] :]], flow[net.rest[FREE] :])
    for j in range(last - first):
        v[first + j, s + j] = 1.0
    states, of_sources = sums_of_currents(net, given.real)
    fill(states[0], flow[l0:, s + last - first :])
    fill(of_sources[0], flow[l0:])
    rate = times(of.system.T, given.T).T
    fill(of.system, waves.system)
    outside, own = net.links[net.rest[R] : l0], net.twigs[last : net.tree[L]]
    nodal(net, R, 1.0 / value[outside], 1.0 / value[own], v, drop, i, flow)
    add(net.cut[:last, net.rest[C] : net.rest[R]].T, v[:last], drop[net.rest[C] : net.rest[R]], 1.0)
    capacitors(net, value, rate, i, flow, waves.system)
    if l0 < net.rest[FREE] or net.tree[L] < net.tree[FREE]:
        back = states[1], times(of_sources[1], of.system)
        inductors(net, of.coupling, value, rate, back, v, drop, i, flow, waves.system)
    floating(net, role, shared[0], v, drop)
    loops_of_diodes(net, role, shared[1], i, flow)
    for tree, links, whole in ((v, drop, waves.voltage), (i, flow, waves.current)):
        placed(tree, net.twigs, whole)
        placed(links, net.links, whole)
    mismatches(net, given, checks[0], checks[1])
    for e in of.storing:
        for c in range(n):
            dependent[e, c] = waves.voltage[e, c] if role[e] == CAPACITOR else waves.current[e, c]
    if net.flows.shape[0]:
        windings(net, role, of.turns, waves)
    return states, of_sources


def fill(rows, out):
    """Copy rows to the first rows and columns of ``out``."""
    for i in range(rows.shape[0]):
        for c in range(rows.shape[1]):
            out[i, c] = rows[i, c]


def placed(rows, places, out):
    """Copy rows to the first columns of these rows of ``out``."""
    for i in range(places.size):
        for c in range(rows.shape[1]):
            out[places[i], c] = rows[i, c]


def scaled(rows, weight):
    """Rows times their weights."""
    out = np.empty(rows.shape, rows.dtype)
    for i in range(weight.size):
        for c in range(rows.shape[1]):
            out[i, c] = weight[i] * rows[i, c]
    return out


def add(matrix, rows, out, factor):
    """Add a multiple of the product of a matrix, most of whose entries are zero, and rows to the first columns of
    ``out``."""
    for i in range(matrix.shape[0]):
        for k in range(matrix.shape[1]):
            weight = factor * matrix[i, k]
            if weight != 0.0:
                for c in range(rows.shape[1]):
                    out[i, c] += weight * rows[k, c]


def times(a, b):
    """The product of two matrices."""
    out = np.zeros((a.shape[0], b.shape[1]), b.dtype)
    add(a, b, out, 1.0)
    return out


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
    add(matrix, found, right, -1.0)
    solved(matrix, right)
    right += found


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
    t0, t1, l0, l1 = net.tree[kind], net.tree[kind + 1], net.rest[kind], net.rest[kind + 1]
    cut = net.cut[t0:t1, l0:l1]
    add(net.cut[:t0, l0:l1].T, v[:t0], drop[l0:l1], 1.0)
    fill(scaled(drop[l0:l1], outside), flow[l0:l1])
    add(net.cut[t0:t1, l0:], flow[l0:], v[t0:t1], -1.0)
    solved(np.diag(own) + times(cut, (cut * outside).T), v[t0:t1])
    fill(scaled(v[t0:t1], own), i[t0:t1])
    add(cut.T, v[t0:t1], drop[l0:l1], 1.0)
    fill(scaled(drop[l0:l1], outside), flow[l0:l1])


def capacitors(net, value, rate, i, flow, system):
    """Charges of the tree's capacitors, including those in loops of capacitors and sources."""
    t0, t1, s = net.tree[C], net.tree[R], rate.shape[1]
    slope, drift = np.zeros(i.shape, i.dtype), np.zeros(flow.shape, i.dtype)
    fill(rate[net.twigs[:t0]], slope)
    nodal(net, C, value[net.links[net.rest[C] : net.rest[R]]], value[net.twigs[t0:t1]], slope, drift, i, flow)
    fill(slope[t0:t1], system[s:])


def inductors(net, coupling, value, rate, back, v, drop, i, flow, system):
    """Fluxes of the inductors outside the tree, including those in cuts of inductors and sources.

    ``back`` maps slopes of the states to those of their currents and the sources' states (`sums_of_currents`).
    """
    t0, t1, l0, l1 = net.tree[L], net.tree[FREE], net.rest[L], net.rest[FREE]
    outside, n = l1 - l0, v.shape[1]
    own = np.concatenate((net.links[l0:l1], net.twigs[t0:t1]))
    onto, inductance = np.zeros((own.size, outside), v.dtype), np.zeros((own.size, own.size), v.dtype)
    slope, change = np.zeros((net.links.size, n), v.dtype), np.zeros((own.size, n), v.dtype)
    fill(np.eye(outside), onto)
    fill(-net.cut[t0:t1, l0:l1], onto[outside:])
    fill(rate[net.links[l1:]], slope[l1:])
    add(net.cut[t0:t1, l1:], slope[l1:], change[outside:], -1.0)
    for a in range(own.size):
        for b in range(own.size):
            inductance[a, b] = coupling[own[a], own[b]] if coupling.size else 0.0
        inductance[a, a] += value[own[a]]
    image = times(inductance, onto)
    push = -times(image.T, change)
    add(net.cut[:t0, l0:l1].T, v[:t0], push, 1.0)
    solved(times(onto.T, image), push)
    fill(times(back[0], push), system[n - outside :])
    add(np.eye(outside), back[1], system[n - outside :], 1.0)
    add(onto, push, change, 1.0)
    flux = times(inductance, change)
    fill(flux[:outside], drop[l0:l1])
    fill(flux[outside:], v[t0:t1])
    add(net.cut[t0:t1, l0:], flow[l0:], i[t0:t1], -1.0)


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
    fill(np.eye(count), found[0])
    fill(np.eye(count), found[1])
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
        fill(driven, of_sources[1, p : p + 1])
        fill(cut, found[1, p : p + 1])
        add(cut, of_sources[0], driven, 1.0)
        of_sum = found[0, :, p : p + 1] / row[0, p]
        add(of_sum, row, found[0], -1.0)
        add(of_sum, driven, of_sources[0], -1.0)
        fill(of_sum, found[0, :, p : p + 1])
    return found, of_sources


def without_rounding(matrix, rows):
    """The product of a matrix and rows; the residual where the terms of a sum cancel is zero. Derivatives, the
    imaginary parts, are kept."""
    found, size = np.zeros((matrix.shape[0], rows.shape[1]), rows.dtype), np.empty(rows.shape[1])
    for i in range(found.shape[0]):
        size[:] = 0.0
        for k in range(matrix.shape[1]):
            weight = matrix[i, k]
            if weight != 0.0:
                for c in range(size.size):
                    found[i, c] += weight * rows[k, c]
                    size[c] += abs(weight * rows[k, c])
        for c in range(size.size):
            if abs(found[i, c].real) <= CANCELLED * size[c]:
                found[i, c] -= found[i, c].real
    return found


def floating(net, role, given, v, drop):
    """Floating parts: equal infinitesimal conductances of blocking diodes determine their potentials.

    ``given`` is empty where all free branches of the tree are such diodes, otherwise the matrix of least squares.
    """
    t0, t1, l0, l1 = net.tree[FREE], net.tree[FREE + 1], net.rest[FREE], net.rest[FREE + 1]
    cut = net.cut[t0:t1, l0:l1]
    # Otherwise the sign of a diode's voltage would be that of rounding.
    fill(without_rounding(net.cut[:t0, l0:l1].T, v[:t0]), drop[l0:l1])
    if given.size:
        add(given, drop[l0:l1], v[t0:t1], -1.0)
    else:
        blocking = cut * (role[net.links[l0:l1]] == BLOCKING)
        add(blocking, drop[l0:l1], v[t0:t1], -1.0)
        twice_solved(np.eye(t1 - t0) + times(blocking, cut.T), v[t0:t1])
    fill(without_rounding(net.cut[:t1, l0:l1].T, v[:t1]), drop[l0:l1])


def loops_of_diodes(net, role, given, i, flow):
    """Loops of conducting diodes: equal infinitesimal resistances share the current; ``given`` as in `floating`."""
    t1, l1 = net.tree[C], net.rest[C]
    cut = net.cut[:t1, :l1]
    add(net.cut[:t1, l1:], flow[l1:], i[:t1], -1.0)
    if given.size:
        add(given, i[:t1], flow[:l1], 1.0)
    else:
        conducting = cut.T * (role[net.twigs[:t1]] == CONDUCTING)
        add(conducting, i[:t1], flow[:l1], 1.0)
        twice_solved(np.eye(l1) + times(conducting, cut), flow[:l1])
    add(cut, flow[:l1], i[:t1], -1.0)


def mismatches(net, given, loops, cuts):
    """Fill in the contradictions (m, s) that no finite current and voltage satisfies: currents through loops of sources
    and conducting diodes whose voltages do not add up, for equal infinitesimal resistances (Ω times A), and voltages
    across cuts of sources and blocking diodes whose currents do not, for equal infinitesimal conductances (S times
    V)."""
    t1, l1, t0, l0 = net.tree[FIXED + 1], net.rest[FIXED + 1], net.tree[FREE], net.rest[FREE]
    t2, l2 = net.tree[FREE + 1], net.rest[FREE + 1]
    contradictions(net.cut[:t1, :l1].copy(), net.twigs[:t1], net.links[:l1], given, loops)
    contradictions(-net.cut[t0:t2, l0:l2].T.copy(), net.links[l0:l2], net.twigs[t0:t2], given, cuts)


def contradictions(cut, twigs, links, given, found):
    """Those of loops of ``links`` over ``twigs``, or of cuts with both exchanged and the sign of ``cut`` reversed."""
    gap = -given[links]
    add(cut.T, given[twigs], gap, 1.0)
    twice_solved(np.eye(links.size) + times(cut.T, cut), gap)
    placed(gap, links, found)
    placed(times(-cut, gap), twigs, found)


def windings(net, role, turns, waves):
    """Voltages and currents of ideally coupled windings; inductors carry the rest of their states' currents."""
    flows, own = times(net.flows, waves.current), np.flatnonzero(role == WINDING)
    placed(flows, own, waves.current)
    add(turns.T, flows, waves.current, -1.0)
    placed(times(turns, waves.voltage), own, waves.voltage)
