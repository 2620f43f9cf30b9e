"""Branch currents refined in branch variables (`circuitsim.engine.tree`), with an available factor, and
their certificate.

Where potentials in doubles do not resolve the drops, currents computed from potentials are wrong. Here the chord
currents of a tree are corrected until they are accurate on their own scale; all others follow from them. The tree holds
voltage constraints first, conducting diodes next, then resistors ascending in magnitude.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from circuitsim.certificate import resolved_violations
from circuitsim.circuit.elements import CURRENT, DIODE, RESISTOR, VOLTAGE
from circuitsim.engine.small.active_set import refactor
from circuitsim.engine.small.elimination import substitute
from circuitsim.engine.steps import contract_diodes
from circuitsim.engine.tree import (
    RESOLUTION,
    Branches,
    Tree,
    blank,
    correct_chords,
    grow_tree,
    loop_residuals,
    mark_live,
    node_maxima,
    tree_currents,
    tree_potentials,
)
from circuitsim.program.precise import add

LOWEST, HIGHEST = -1080, 1030
"""Range of the binary exponents of doubles."""


class Spanned(NamedTuple):
    """A circuit with its spanning tree from node 0."""

    tree: Tree
    branches: Branches
    live: np.ndarray  # (m,): resistors and sources that may carry current
    chord: np.ndarray  # resistors outside the tree that may carry current
    whole: bool  # whether all nodes are joined to node 0


def by_magnitude(elements, value):
    """Elements ordered by the binary exponents of their values, ascending."""
    start, order = np.zeros(HIGHEST - LOWEST + 1, np.int64), np.empty_like(elements)
    for e in elements:
        start[math.frexp(value[e])[1] - LOWEST + 1] += 1
    for k in range(HIGHEST - LOWEST):
        start[k + 1] += start[k]
    for e in elements:
        at = math.frexp(value[e])[1] - LOWEST
        order[start[at]] = e
        start[at] += 1
    return order


def candidates(plan, value, closed):
    """Candidate elements of the tree, in order of preference."""
    ascending, fixed, count = by_magnitude(plan.resistor, value), plan.tree_edge, plan.tree_edge.size
    edges = np.empty(count + closed.size + ascending.size, np.int64)
    edges[:count] = fixed
    for d in range(closed.size):
        if closed[d]:
            edges[count] = plan.diode[d]
            count += 1
    for e in ascending:
        edges[count] = e
        count += 1
    return edges[:count]


def take_tree(plan, value, closed):
    """A circuit with the tree for these conducting diodes."""
    kind, first, second, m, n = plan.kind, plan.first, plan.second, plan.kind.size, plan.coordinate.size
    ohms, emf, live = np.zeros(m), np.zeros(m), np.zeros(m, np.bool_)
    source, count = np.empty(m, np.int64), 0
    for e in range(m):
        if kind[e] == VOLTAGE:
            emf[e] = value[e]
        elif kind[e] == RESISTOR:
            ohms[e] = value[e]
        elif kind[e] == CURRENT:
            source[count] = e
            count += 1
        live[e] = ohms[e] != 0.0 or emf[e] != 0.0
    tree, branches = blank(n, m), Branches(first, second, ohms, emf)
    tree.order[0], tree.edge[0], tree.parent[0] = 0, -1, 0  # ground may be the only node
    grow_tree(first, second, 0, np.zeros(n), candidates(plan, value, closed), tree)
    chord, whole = np.empty(m, np.int64), True
    for k in range(n):
        whole = whole and tree.root_of[k] == 0
    if whole:
        chords = outside(tree.inside, ohms, live, chord)
        mark_live(tree, branches, chord[:chords], source[:count], live)
    return Spanned(tree, branches, live, chord[: outside(tree.inside, ohms, live, chord)], whole)


def outside(inside, ohms, live, chord):
    """Fill in the ``live`` resistors outside the tree; returns their number."""
    count = 0
    for e in range(ohms.size):
        if live[e] and ohms[e] != 0.0 and not inside[e]:
            chord[count] = e
            count += 1
    return count


LOCAL = 1e-12
"""Tolerance of a current relative to the largest current at its ends."""
OVERALL = 1e-22
"""A current below this fraction of the largest, which each correction reduces by `SHRINKS`, is zero."""
SHRINKS = 1e-3
UNRESOLVED = 1e-27
"""A drop below this fraction of its potentials is rounding of pairs of doubles."""
RESOLVED = 1e-12
"""Resolution of every drop by the potentials, relative to itself: a thousandth of the tolerance of certificates."""
STEPS = 8
"""Maximum number of corrections; circuits that need more are passed to the engine."""


def carry(plan, value, v, chords, current, carriers):
    """Fill in the currents of chords and current sources, A, zero elsewhere, and the elements with a current.

    Returns the number of these and the largest current.
    """
    current[:] = 0.0
    count, most = 0, 0.0
    for e in chords:
        carriers[count] = e
        current[e] = (v[plan.first[e]] - v[plan.second[e]]) / value[e]
        most = max(most, abs(current[e]))
        count += 1
    for e in range(plan.kind.size):
        if plan.kind[e] == CURRENT:
            current[e] = value[e]
            carriers[count] = e
            most = max(most, abs(value[e]))
            count += 1
    return count, most


def converged(branches, chords, v, before, most, at_node, steps, current, low):
    """Whether the last correction of the chord currents was small enough; sets those that are rounding to zero."""
    first, second, ohms, _ = branches
    node_maxima(first, second, current, at_node)
    done = steps > 1
    for k in range(chords.size):
        e = chords[k]
        size, change = abs(current[e]), abs(current[e] - before[k])
        local = max(at_node[first[e]], at_node[second[e]])
        shrinks = size <= SHRINKS * abs(before[k]) and (size <= OVERALL * most or size <= LOCAL * 0.1 * local)
        reach = max(abs(v[first[e]]), abs(v[second[e]]))
        if shrinks or (size <= OVERALL * most and ohms[e] * size <= UNRESOLVED * reach):
            if steps > 1:
                current[e] = low[e] = 0.0
            else:
                done = False
        elif not change <= LOCAL * local:
            done = False
    return done


def follow(made, carriers, current, low, share):
    """Fill in the tree currents that follow from those of all ``carriers`` outside it, A, in pairs of doubles; those
    below ``share`` of the largest in their subtree are zero."""
    n, none = made.tree.order.size, np.empty(0)
    block, above = np.zeros(current.size, np.int64), np.zeros(n, np.int64)
    tree_currents(
        made.tree,
        made.branches,
        carriers,
        block,
        above,
        none,
        none,
        current,
        low,
        np.empty(n),
        np.empty(n),
        np.empty(n),
        share,
    )


def correct(plan, space, made, carriers, most, v, current, low):
    """Correct the chord currents until they are accurate on their own scale; returns whether they are."""
    forest, chords, tree, branches = contract_diodes(plan, space), made.chord, made.tree, made.branches
    n, live, factor = v.size, chords.size, refactor(plan, space, space.closed)
    if factor < 0:
        return False
    before, residual, x, v_low = np.empty(live), np.empty(live), np.empty(plan.n + 1), np.zeros(n)
    last = np.empty(n, np.int64)
    for k in range(n):
        last[k] = forest.last[plan.coordinate[k]]
    v[0] = 0.0
    done, steps = live == 0, 0
    while not done and steps < STEPS:
        if steps > 0:
            follow(made, carriers, current, low, 0.0)
        tree_potentials(tree, branches, current, low, v, v_low)
        loop_residuals(chords, tree, branches, plan.coordinate, current, low, v, v_low, residual, x)
        x[plan.n] = 0.0
        substitute(plan, space.multiplier[factor], space.pivot[factor], x, space.floating_current)
        for k in range(live):
            before[k] = current[chords[k]]
        correct_chords(chords, branches, last, residual, x, current, low)
        steps += 1
        done = converged(branches, chords, v, before, most, space.at_node[0], steps, current, low)
    follow(made, carriers, current, low, RESOLUTION)
    return done


def accept(plan, space, signs, current, drop):
    """Whether blocking diodes have voltages ≤ 0, and conducting ones currents > 0 if ``signs``.

    Fills in the diode currents in the workspace.
    """
    for d in range(space.closed.size):
        e = plan.diode[d]
        if space.closed[d]:
            if signs and not current[e] > 0.0:  # without a current it may leave potentials open
                return False
        elif not drop[e] <= 0.0:
            return False
        space.flow[d] = current[e]
    return True


def certify(made, kind, value, current, low, v, drop, at_node, worst, relative):
    """The certificate of branch currents (`circuitsim.certificate`); False where potentials do not resolve all drops.

    Parameters
    ----------
    made : circuitsim.engine.small.spanning.Spanned
        The circuit with its spanning tree.
    current, low : (m,) float arrays
        Branch currents, A, and their low-order parts.
    v : (n_nodes,) float array
        Overwritten, V: node 0 at zero.
    drop : (m,) float array
        Overwritten: branch voltages, V. Those of resistors are R i.
    at_node : (2, n_nodes) float array
        Workspace.
    worst, relative : (7,) float arrays
        Overwritten, in the order of `circuitsim.certificate.EQUATIONS`.
    """
    first, second, ohms, emf = made.branches
    v_low = np.zeros(v.size)
    v[0] = 0.0
    tree_potentials(made.tree, made.branches, current, low, v, v_low)
    for e in range(kind.size):
        a, b = first[e], second[e]
        if kind[e] == CURRENT or (kind[e] == DIODE and current[e] == 0.0):
            drop[e] = add(v[a], v_low[a], -v[b], -v_low[b])[0]
        else:
            drop[e] = emf[e] if ohms[e] == 0.0 else ohms[e] * current[e]
    at_node[:] = 0.0
    worst[:] = 0.0
    relative[:] = 0.0
    return resolved_violations(
        kind, first, second, value, value, v, v_low, current, drop, RESOLVED, at_node, worst, relative
    )


def refine(plan, space, value, signs, v, current, drop, worst, relative):
    """Refine a sample's currents and potentials at its conducting diodes, and certify them.

    Parameters
    ----------
    signs : bool
        Whether the diodes' currents must have the right signs; otherwise they are chosen afterwards.
    v : (n_nodes,) float array
        Initial potentials, V; overwritten.
    current, drop : (m,) float arrays
        Filled: branch currents, A, and branch voltages, V.
    worst, relative : (7,) float arrays
        Filled: see `certify`.

    Returns
    -------
    Whether all currents are accurate on their own scale, and the diodes' states correct.
    """
    kind, made = plan.kind, take_tree(plan, value, space.closed)
    carriers, low = np.empty(kind.size, np.int64), np.zeros(kind.size)
    if not made.whole:
        return False
    count, most = carry(plan, value, v, made.chord, current, carriers)
    carriers = carriers[:count]
    follow(made, carriers, current, low, RESOLUTION)
    good = correct(plan, space, made, carriers, most, v, current, low)
    good = good and certify(made, kind, value, current, low, v, drop, space.at_node, worst, relative)
    return good and accept(plan, space, signs, current, drop)
