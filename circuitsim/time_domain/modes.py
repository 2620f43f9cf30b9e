"""The linear system at one set of conducting diodes: states, and all branch voltages and currents as functions of them.

A normal tree (Bryant 1959) takes sources and conducting diodes first, then capacitors, resistors, inductors, blocking
diodes and current sources. The states are the capacitors in the tree and the inductors outside it; capacitors in loops
with sources and inductors in cuts with sources follow from these and from the sources' derivatives. The cut-set matrix
is an integer matrix, so ranks are exact; with ideally coupled windings it also contains turns ratios.

Branches are sorted by role, so the classes (sources and conducting diodes; capacitors; resistors; inductors; blocking
diodes and current sources) are ranges of the tree and of its links. All numbers may be complex: imaginary parts are
derivatives.

Of windings that store energy only jointly, some are inductors of the current i + Σ T i_w, where i_w are the currents of
the others (role `WINDING`) and T their turns relative to the inductor: v_w = Tᵀ v. A winding is neither a branch of the
tree nor a link. Its equation removes one branch from the tree: the last one it involves, because an ideal transformer
keeps v and i orthogonal and the trees of such a circuit are the bases of a matroid (Bryant 1959; Recski 1989), whose
greedy base in the order of the roles is normal.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from circuitsim.engine.tree import spanning_forest
from circuitsim.kernels import PRODUCT, kernel
from circuitsim.time_domain.mode_kernels import solved

FIXED, C, R, L, FREE = range(5)
"""Classes of branches: class k has the range ``tree[k]`` to ``tree[k + 1]`` in the tree, and likewise in the links."""
FIRST_ROLE = np.array([0, 2, 3, 4, 5, 7])
"""The first role of each class, and that of windings, which have no class."""
CANCELLED = 1e-12
"""Relative magnitude below which a sum is zero, since turns ratios are rounded."""
ROUNDING = 1e-15
"""Relative magnitude below which a sum over the branches of a cut or a loop is zero."""


class Role(IntEnum):
    """Roles of the elements, in the order in which the tree takes them."""

    VOLTAGE = 0
    CONDUCTING = 1
    CAPACITOR = 2
    RESISTOR = 3
    INDUCTOR = 4
    BLOCKING = 5
    CURRENT = 6
    WINDING = 7


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
    coupling : (m, m) float array or None
        Mutual inductances between inductors, H; None without.
    turns : (w, m) float array
        For windings (`Role.WINDING`), ascending, over the inductors that they are ideally coupled to: their voltages
        are these times those of the inductors, and their currents times these are part of the inductors' states.
    """

    n_nodes: int
    first: np.ndarray
    second: np.ndarray
    role: np.ndarray
    value: np.ndarray
    coupling: np.ndarray | None
    turns: np.ndarray


class Wiring(NamedTuple):
    """A normal tree: its branches, the links, the cut-set matrix between them, and the ranges of the classes.

    With ideal couplings the cut-set matrix also holds turns ratios, and windings are neither branches of the tree nor
    links; ``flows`` (windings, m) are their currents as sums over those of all other branches.
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
    dependent : (m, s + k) array
        The rows of `voltage` for capacitors and of `current` for inductors, including windings that they are ideally
        coupled to (`Parts.turns`); 0 elsewhere.
    sums : tuple of (c, c) and (c, s) arrays
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
    dependent: np.ndarray
    sums: tuple[np.ndarray, np.ndarray]
    loops: np.ndarray
    cuts: np.ndarray


def normal_tree(parts: Parts, role: np.ndarray) -> Wiring:
    """The normal tree of elements with these roles; twigs and links are each in ascending order of role.

    Small resistances precede large ones: the conductances of twigs are then the large diagonal entries of the nodal
    matrix, and a large resistance beside many small ones costs no digits.
    """
    order = np.lexsort((np.where(role == Role.RESISTOR, parts.value.real, 0.0), role))
    inside = spanning_forest(parts.n_nodes, parts.first, parts.second, np.zeros(1, dtype=np.int64), order).inside[order]
    twigs, links = order[inside], order[~inside]
    incidence = np.zeros((parts.n_nodes, role.size))
    np.add.at(incidence, (parts.first, np.arange(role.size)), 1.0)
    np.add.at(incidence, (parts.second, np.arange(role.size)), -1.0)
    # A link's column is the sum of those of the tree's path between its ends.
    own = incidence[:, twigs]
    cut = np.rint(np.linalg.solve(own.T @ own, own.T @ incidence[:, links])) + 0.0
    tree, rest = (np.searchsorted(role[branches], FIRST_ROLE) for branches in (twigs, links))
    made = Wiring(twigs, links, cut, tree, rest, np.zeros((0, role.size)))
    return with_transformers(made, role, parts.turns) if parts.turns.size and Role.WINDING in role else made


def with_transformers(net: Wiring, role: np.ndarray, turns: np.ndarray) -> Wiring:
    """The normal tree without its windings.

    Kirchhoff's current law over the currents of windings, then of branches in the order of their roles, is brought to
    reduced row echelon form. Its pivots among the branches are the greedy base: the tree.

    Parameters
    ----------
    net : Wiring
        Of the graph, windings last.
    role : (m,) int array
    turns : (w, m) float array
        T of each winding, in ascending order, over the inductors.

    Returns
    -------
    Wiring
    """
    windings, m = np.flatnonzero(role == Role.WINDING), role.size
    over = np.zeros((net.twigs.size, m))
    over[np.arange(net.twigs.size), net.twigs] = 1.0
    over[:, net.links] = net.cut
    # Each winding's equation v_w − Tᵀ v = 0 over the voltages of the tree.
    moved = difference(over[:, windings], over, turns.T)
    elements = np.concatenate([net.twigs, net.links])
    kind = np.searchsorted(FIRST_ROLE, role[elements], side="right") - 1
    order = elements[np.argsort(kind, kind="stable")][: m - windings.size]
    rows = np.concatenate([moved, over[:, order]], axis=1)
    pivot = _echelon(rows)
    inside = np.isin(np.arange(order.size) + windings.size, [*pivot])
    twigs, links, left = order[inside], order[~inside], rows[:, windings.size :][:, ~inside]
    flows = np.zeros((windings.size, m))
    for j in range(windings.size):
        # Indeterminate currents of windings (ideally coupled ones in parallel) are zero.
        if j in pivot:
            flows[j, links] = -left[pivot[j]]
    cut = np.ascontiguousarray(left[[row for column, row in pivot.items() if column >= windings.size]])
    tree, rest = (np.searchsorted(role[own], FIRST_ROLE) for own in (twigs, links))
    return Wiring(twigs, links, cut, tree, rest, flows)


def _echelon(rows: np.ndarray) -> dict[int, int]:
    """Bring a matrix to reduced row echelon form, up to the order of its rows; the row of each pivot by its column."""
    found, free = dict[int, int](), np.ones(len(rows), dtype=bool)
    for column in range(rows.shape[1]):
        p = int(np.argmax(np.abs(rows[:, column]) * free))
        if free[p] and rows[p, column] != 0.0:
            found[column], free[p] = p, False
            rows[p] /= rows[p, column]
            share = np.where(np.arange(len(rows)) == p, 0.0, rows[:, column])
            rows[:] = difference(rows, share[:, None], rows[p : p + 1])
    return found


def difference(given: np.ndarray, matrix: np.ndarray, rows: np.ndarray, least: float = CANCELLED) -> np.ndarray:
    """Given numbers less a product of matrices, zero where that is below a fraction of the terms' sizes."""
    found, size = given - matrix @ rows, np.abs(given) + np.abs(matrix) @ np.abs(rows)
    return np.where(np.abs(found) > least * size, found, 0.0)


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
    rows : (q, s) array
        Source values are these rows times the sources' states. Imaginary parts of elements and rows give those of the
        result (complex step).
    """
    role = parts.role.copy()
    role[diodes[conducting]] = Role.CONDUCTING
    net = normal_tree(parts, role)
    (twigs, links, cut, tree, rest, flows), value, m, s = net, parts.value, role.size, len(system)
    plates, coils = slice(tree[C], tree[R]), slice(rest[L], rest[FREE])
    states = np.concatenate([twigs[plates], links[coils]])
    n, kind = s + states.size, np.result_type(value, rows)
    given = np.zeros((m, s), kind)
    given[sources] = rows
    v, i = np.zeros((2, twigs.size, n), kind)
    drop, flow = np.zeros((2, links.size, n), kind)
    # The first class of branches has all voltage sources, the last one all current sources.
    v[: tree[C], :s], drop[: rest[C], :s] = given[twigs[: tree[C]]], given[links[: rest[C]]]
    i[tree[FREE] :, :s], flow[rest[FREE] :, :s] = given[twigs[tree[FREE] :]], given[links[rest[FREE] :]]
    v[plates, s : s + tree[R] - tree[C]] = np.eye(tree[R] - tree[C])
    (onto, of_sources), sums = sums_of_currents(net, given.real)
    flow[coils, n - len(onto) :], flow[coils, :s] = onto, of_sources
    rate, whole = given @ system, np.zeros((n, n), kind)
    whole[:s, :s] = system
    siemens = 1.0 / np.where(role == Role.RESISTOR, value, 1.0)
    nodal(net, R, siemens, v, drop, i, flow)
    loops = slice(rest[C], rest[R])
    drop[loops] += cut[: tree[R], loops].T @ v[: tree[R]]
    slope, drift = np.zeros(v.shape, kind), np.zeros(drop.shape, kind)
    slope[: tree[C], :s] = rate[twigs[: tree[C]]]
    nodal(net, C, value, slope, drift, i, flow)
    whole[s : s + tree[R] - tree[C]] = slope[plates]
    _inductors(net, parts, rate, sums, v, drop, i, flow, whole)
    _floating(net, role, v, drop)
    loops_of_diodes(net, role, i, flow)
    voltage, current = np.zeros((2, m, n), kind)
    voltage[twigs], voltage[links], current[twigs], current[links] = v, drop, i, flow
    dependent = np.zeros((m, n), kind)
    for own, waves in ((Role.CAPACITOR, voltage), (Role.INDUCTOR, current)):
        dependent[role == own] = waves[role == own]
    if len(flows):
        # Inductors carry the rest of their states' currents.
        windings, through = role == Role.WINDING, flows @ current
        current[windings], voltage[windings] = through, parts.turns @ voltage
        current -= parts.turns.T @ through
    t, k, u, j = tree[FREE], rest[FREE], tree[C], rest[C]
    around = _contradictions(cut[:u, :j], twigs[:u], links[:j], given.real)
    across = _contradictions(-cut[t:, k:].T, links[k:], twigs[t:], given.real)
    return Mode(net, role, states, whole, voltage, current, dependent, sums, around, across)


def _solution(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The solution for a symmetric positive definite matrix, without pivots: each unknown has its own scale."""
    matrix, right = np.array(matrix, right.dtype), right.copy()
    kernel(solved, matrix.size * (len(matrix) + right.shape[1]), PRODUCT)(matrix, right)
    return right


def _refined(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The solution for a well-conditioned matrix, with one step of refinement."""
    if not right.any():
        return np.zeros(right.shape)
    found = np.linalg.solve(matrix, right)
    return np.asarray(found + np.linalg.solve(matrix, right - matrix @ found))


def nodal(
    net: Wiring, kind: int, weight: np.ndarray, v: np.ndarray, drop: np.ndarray, i: np.ndarray, flow: np.ndarray
) -> None:
    """Voltages and currents of a class of branches: nodal analysis, potentials of the tree's branches from the currents
    into their cuts; for capacitors these voltages are slopes.

    Parameters
    ----------
    net : Wiring
    kind : int
        `R` or `C`.
    weight : (m,) array
        Conductances; for capacitors F.
    v, drop, i, flow
        Voltages and currents of tree and links, filled in; those of the classes before, and the currents of the links
        after, are there.
    """
    t, l = slice(*net.tree[kind : kind + 2]), slice(*net.rest[kind : kind + 2])
    cut, own, outside = net.cut[t, l], weight[net.twigs[t]], weight[net.links[l], None]
    drop[l] = net.cut[: t.start, l].T @ v[: t.start]
    flow[l] = outside * drop[l]
    v[t] = _solution(np.diag(own) + cut @ (outside * cut.T), -net.cut[t, l.start :] @ flow[l.start :])
    i[t] = own[:, None] * v[t]
    drop[l] += cut.T @ v[t]
    flow[l] = outside * drop[l]


def _inductors(
    net: Wiring,
    parts: Parts,
    rate: np.ndarray,
    sums: tuple[np.ndarray, np.ndarray],
    v: np.ndarray,
    drop: np.ndarray,
    i: np.ndarray,
    flow: np.ndarray,
    system: np.ndarray,
) -> None:
    """Fluxes of the inductors outside the tree, including those in cuts of inductors and sources; ``rate`` (m, s) are
    the derivatives of the sources' values."""
    t, l = slice(net.tree[L], net.tree[FREE]), slice(net.rest[L], net.rest[FREE])
    own, outside, s = np.concatenate([net.links[l], net.twigs[t]]), l.stop - l.start, rate.shape[1]
    onto = np.concatenate([np.eye(outside), -net.cut[t, l]])
    inductance = np.diag(parts.value[own])
    if parts.coupling is not None:
        inductance = inductance + parts.coupling[np.ix_(own, own)]
    change = np.zeros((own.size, len(system)), system.dtype)
    change[outside:, :s] = -net.cut[t, l.stop :] @ rate[net.links[l.stop :]]
    image = inductance @ onto
    push = _solution(onto.T @ image, net.cut[: t.start, l].T @ v[: t.start] - image.T @ change)
    back, of_sources = sums
    system[len(system) - outside :] = back @ push
    system[len(system) - outside :, :s] += of_sources @ system[:s, :s]
    flux = inductance @ (change + onto @ push)
    drop[l], v[t] = flux[:outside], flux[outside:]
    i[t] = -net.cut[t, l.start :] @ flow[l.start :]


def sums_of_currents(
    net: Wiring, given: np.ndarray
) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Currents of the inductors outside the tree (c,) from state currents and the sources' states, matrices (c, c) and
    (c, s), and the inverse.

    Where inductors and current sources meet in the cut of a tree resistor, the sum of their currents, which is the
    resistor's current up to other links, replaces one of them as a state: with a large resistance it is many digits
    smaller than they are. Large resistances come first. ``given`` (m, s) are the values of current sources over the
    sources' states.
    """
    coils, fed = slice(net.rest[L], net.rest[FREE]), slice(net.rest[FREE], net.rest[FREE + 1])
    count = coils.stop - coils.start
    onto, back, free = np.eye(count), np.eye(count), np.ones(count, dtype=bool)
    of_sources, back_of_sources = np.zeros((2, count, given.shape[1]))
    for t in range(net.tree[L] - 1, net.tree[R] - 1, -1) if count else ():
        # The cut over the states so far: all entries are −1, 0 or 1, as those of the cut-set matrix, or turns ratios.
        cut = net.cut[t, coils]
        row = without_rounding(cut[None], onto)[0]
        size = np.where(free, np.abs(row), 0.0)
        if not size.any():
            continue
        p = count - 1 - int(size[::-1].argmax())
        free[p] = False
        driven = net.cut[t, fed] @ given[net.links[fed]]
        back[p], back_of_sources[p] = cut, driven
        driven, share = driven + cut @ of_sources, onto[:, p] / row[p]
        onto -= np.outer(share, row)
        of_sources -= np.outer(share, driven)
        onto[:, p] = share
    return (onto, of_sources), (back, back_of_sources)


def without_rounding(matrix: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The product of a matrix and rows; the residual where the terms of a sum cancel is zero. Derivatives, the
    imaginary parts, are kept."""
    found, size = matrix @ rows, np.abs(matrix) @ np.abs(rows)
    return np.asarray(np.where(np.abs(found.real) <= ROUNDING * size, found - found.real, found))


def _floating(net: Wiring, role: np.ndarray, v: np.ndarray, drop: np.ndarray) -> None:
    """Floating parts: equal infinitesimal conductances of blocking diodes determine their potentials."""
    t, l, blocks = net.tree[FREE], net.rest[FREE], role == Role.BLOCKING
    # Otherwise the sign of a diode's voltage would be that of rounding.
    gap = without_rounding(net.cut[:t, l:].T, v[:t])
    v[t:] = -_least_norm(net.cut[t:, l:], blocks[net.twigs[t:]], blocks[net.links[l:]], gap)
    drop[l:] = without_rounding(net.cut[:, l:].T, v)


def loops_of_diodes(net: Wiring, role: np.ndarray, i: np.ndarray, flow: np.ndarray) -> None:
    """Loops of conducting diodes: equal infinitesimal resistances share the current."""
    t, l, conducts = net.tree[C], net.rest[C], role == Role.CONDUCTING
    cut, fed = net.cut[:t, :l], -net.cut[:t, l:] @ flow[l:]
    flow[:l] = _least_norm(cut.T, conducts[net.links[:l]], conducts[net.twigs[:t]], fed)
    i[:t] = fed - cut @ flow[:l]


def _least_norm(matrix: np.ndarray, own: np.ndarray, beside: np.ndarray, right: np.ndarray) -> np.ndarray:
    """x at the minimum of the squares of x for ``own`` rows and of right − matrixᵀ x for columns ``beside``."""
    rows = matrix[:, beside]
    if own.all():
        return _refined(np.eye(own.size) + rows @ rows.T, rows @ right[beside])
    squares = np.vstack([np.eye(own.size)[own], rows.T])
    return np.asarray(np.linalg.pinv(squares, 1e-9)[:, int(own.sum()) :] @ right[beside])


def _contradictions(cut: np.ndarray, twigs: np.ndarray, links: np.ndarray, given: np.ndarray) -> np.ndarray:
    """Those of loops of ``links`` over ``twigs`` (m, s), or of cuts with both exchanged and the sign of ``cut``
    reversed."""
    found = np.zeros(given.shape)
    found[links] = _refined(np.eye(links.size) + cut.T @ cut, cut.T @ given[twigs] - given[links])
    found[twigs] = -cut @ found[links]
    return found
