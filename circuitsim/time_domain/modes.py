"""The linear system at one set of conducting diodes: states, and all branch voltages and currents as functions of them.

A normal tree (Bryant 1959) takes sources and conducting diodes first, then capacitors, resistors, inductors, blocking
diodes and current sources. The states are the capacitors in the tree and the inductors outside it; capacitors in loops
with sources and inductors in cuts with sources follow from these and from the sources' derivatives. The cut-set matrix
is an integer matrix, so ranks are exact; with ideally coupled windings it also contains turns ratios.

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

from circuitsim.kernels import PRODUCT, kernel
from circuitsim.time_domain import mode_kernels
from circuitsim.time_domain.mode_kernels import FIRST_ROLE, FREE, WINDING, C, Given, L, R, Waves, Wiring, equations

CANCELLED = 1e-12
"""Relative magnitude below which a sum is zero, since turns ratios are rounded."""


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
    windings, m = np.flatnonzero(role == WINDING), role.size
    over = np.zeros((net.twigs.size, m))
    over[np.arange(net.twigs.size), net.twigs] = 1.0
    over[:, net.links] = net.cut
    # Each winding's equation v_w − Tᵀ v = 0 over the voltages of the tree.
    moved = _without_rounding(over[:, windings], over @ turns.T, np.abs(over) @ np.abs(turns.T))
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
            taken = np.outer(share, rows[p])
            rows[:] = _without_rounding(rows, taken, np.abs(taken))
    return found


def _without_rounding(given: np.ndarray, taken: np.ndarray, size: np.ndarray) -> np.ndarray:
    """A difference of terms of these sizes, zero where it is rounding."""
    found = given - taken
    return np.where(np.abs(found) > CANCELLED * (np.abs(given) + size), found, 0.0)


class Role(IntEnum):
    """Roles of the elements, in the order in which the tree takes them."""

    VOLTAGE = mode_kernels.VOLTAGE
    CONDUCTING = mode_kernels.CONDUCTING
    CAPACITOR = mode_kernels.CAPACITOR
    RESISTOR = mode_kernels.RESISTOR
    INDUCTOR = mode_kernels.INDUCTOR
    BLOCKING = mode_kernels.BLOCKING
    CURRENT = mode_kernels.CURRENT
    WINDING = mode_kernels.WINDING


UNCOUPLED = np.zeros((0, 0))


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


class Mode(NamedTuple):
    """The linear system ż = A z at one set of conducting diodes; z are the states w of the sources, then capacitor
    voltages and inductor currents. All numbers are complex: imaginary parts are derivatives.

    Attributes
    ----------
    states : (k,) int array
        Elements whose voltages (capacitors) and currents (inductors) are the last k entries of z.
    system : (s + k, s + k) array
        A, 1/s.
    voltage, current : (m, s + k) arrays
        Branch voltages and currents are these matrices times z.
    dependent : (m, s + k) array
        The rows of `voltage` for capacitors and of `current` for inductors, including windings that they are ideally
        coupled to (`Parts.turns`); 0 elsewhere.
    """

    states: np.ndarray
    system: np.ndarray
    voltage: np.ndarray
    current: np.ndarray
    dependent: np.ndarray


def normal_tree(parts: Parts, role: np.ndarray) -> Wiring:
    """The normal tree of elements with these roles; twigs and links are each in ascending order of role.

    Small resistances precede large ones: the conductances of twigs are then the large diagonal entries of the nodal
    matrix, and a large resistance beside many small ones costs no digits.
    """
    order = np.argsort(np.where(role == Role.RESISTOR, parts.value.real, 0.0), kind="stable")
    work = len(Role) * role.size + parts.n_nodes * role.size
    net = kernel(mode_kernels.wired, work, PRODUCT)(parts.n_nodes, parts.first, parts.second, role, order)
    made = Wiring(*net)
    return with_transformers(made, role, parts.turns) if parts.turns.size and Role.WINDING in role else made


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
        Source values are these rows times the sources' states. Imaginary parts of elements and rows give those of the
        result (complex step).
    """
    role = parts.role.copy()
    role[diodes[conducting]] = Role.CONDUCTING
    net = normal_tree(parts, role)
    states = np.concatenate([net.twigs[net.tree[C] : net.tree[R]], net.links[net.rest[L] : net.rest[FREE]]])
    m, n, s = role.size, states.size + system.shape[0], system.shape[0]
    voltage, current, dependent = np.zeros((3, m, n), complex)
    waves = Waves(voltage, current, np.zeros((n, n), complex))
    storing = np.flatnonzero((role == Role.CAPACITOR) | (role == Role.INDUCTOR))
    loops, cuts = np.zeros((2, m, s), complex)
    coupling = UNCOUPLED if parts.coupling is None else parts.coupling
    of = Given(storing, sources, system, rows.astype(complex), coupling.astype(complex), parts.turns)
    work, value = 16 * net.cut.size + 4 * voltage.size, parts.value.astype(complex)
    kernel(equations, work, PRODUCT)(net, role, of, value, shared_of(net, role), waves, dependent, (loops, cuts))
    return Mode(states, waves.system, voltage, current, dependent)


def shared_of(net: Wiring, role: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Matrices of least squares for potentials and for loop currents: see `mode_kernels.equations`.

    For potentials of floating parts, if current sources are in the tree, and for currents of conducting diodes, if
    voltage sources are outside it; otherwise empty.
    """
    blocks, conducts, twigs, links = role == Role.BLOCKING, role == Role.CONDUCTING, net.twigs, net.links
    t, k, u, j = net.tree[FREE], net.rest[FREE], net.tree[C], net.rest[C]
    return (
        _least_norm(net.cut[t:, k:], blocks[twigs[t:]], blocks[links[k:]]),
        _least_norm(net.cut[:u, :j].T, conducts[links[:j]], conducts[twigs[:u]]),
    )


def _least_norm(matrix: np.ndarray, own: np.ndarray, beside: np.ndarray) -> np.ndarray:
    """x over b at the minimum of the squares of x for ``own`` rows and of b − matrixᵀ x for columns ``beside``."""
    if own.all():
        return UNCOUPLED
    found = np.zeros(matrix.shape)
    squares = np.vstack([np.eye(own.size)[own], matrix.T[beside]])
    found[:, beside] = np.linalg.pinv(squares, 1e-9)[:, int(own.sum()) :]
    return found
