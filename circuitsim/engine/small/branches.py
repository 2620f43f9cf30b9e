"""Branch currents refined in branch variables (`circuitsim.engine.tree`), with an available factor.

Where potentials in doubles do not resolve the drops, currents computed from potentials are wrong. Here the chord
currents of a tree are corrected until they are accurate on their own scale; all others follow from them.
"""

from __future__ import annotations

import numpy as np

from circuitsim.circuit.elements import CURRENT
from circuitsim.engine.small.active_set import refactor
from circuitsim.engine.small.currents import ACCURATE
from circuitsim.engine.small.linear import substitute
from circuitsim.engine.small.proof import AIM, largest, prove_branches
from circuitsim.engine.small.spanning import take_tree
from circuitsim.engine.steps import contract_diodes
from circuitsim.engine.tree import (
    correct_chords,
    loop_residuals,
    node_maxima,
    tree_currents,
    tree_potentials,
)

LOCAL = 1e-12
"""Tolerance of a current relative to the largest current at its ends."""
OVERALL = 1e-22
"""A current below this fraction of the largest, which each correction reduces by `SHRINKS`, is zero."""
SHRINKS = 1e-3
RESOLUTION = 1e-28
"""A sum of currents below this fraction of the largest among them is rounding of pairs of doubles."""
UNRESOLVED = 1e-27
"""A drop below this fraction of its potentials is rounding of pairs of doubles."""
STEPS = 8
"""Maximum number of corrections; circuits that need more are passed to the engine."""


def carry(kind, first, second, value, v, chords, current, carriers):
    """Fill in the currents of chords and current sources, A, zero elsewhere, and the elements with a current.

    Returns the number of these and the largest current.
    """
    current[:] = 0.0
    count, most = 0, 0.0
    for k in range(chords.size):
        e = chords[k]
        carriers[count] = e
        current[e] = (v[first[e]] - v[second[e]]) / value[e]
        most = max(most, abs(current[e]))
        count += 1
    for e in range(kind.size):
        if kind[e] == CURRENT:
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


def correct(plan, space, made, closed, carriers, most, v, current, low, limit):
    """Correct the chord currents until they are accurate on their own scale, at most ``limit`` times.

    Returns whether they are.
    """
    forest, chords, tree, branches = contract_diodes(plan, space, closed), made.chord, made.tree, made.branches
    n, live, factor = v.size, chords.size, refactor(plan, space, closed)
    if factor < 0:
        return False
    before, residual, x, v_low = np.empty(live), np.empty(live), np.empty(plan.n + 1), np.zeros(n)
    last = np.empty(n, np.int64)
    for k in range(n):
        last[k] = forest.last[plan.coordinate[k]]
    v[0] = 0.0
    done, steps = live == 0, 0
    while not done and steps < limit:
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


def accept(plan, space, closed, signs, current, drop):
    """Whether blocking diodes have voltages ≤ 0, and conducting ones currents > 0 if ``signs``.

    Fills in the diode currents in the workspace.
    """
    for d in range(closed.size):
        e = plan.diode[d]
        if closed[d]:
            if signs and not current[e] > 0.0:  # without a current it may leave potentials open
                return False
        elif not drop[e] <= 0.0:
            return False
        space.flow[d] = current[e]
    return True


def passive(plan, value):
    """Whether no conductance is negative."""
    good = True
    for k in range(plan.resistor.size):
        good = good and value[plan.resistor[k]] >= 0.0
    return good


def refine(plan, space, kind, first, second, value, closed, signs, v, current, drop, worst, relative):
    """Refine a sample's currents and potentials at its conducting diodes, and certify them.

    Parameters
    ----------
    closed : (d,) bool array
        Conducting diodes, without loops.
    signs : bool
        Whether the diodes' currents must have the right signs; otherwise they are chosen afterwards.
    v : (n_nodes,) float array
        Initial potentials, V; overwritten.
    current, drop : (m,) float arrays
        Filled: branch currents, A, and branch voltages, V.
    worst, relative : (7,) float arrays
        Filled: see `circuitsim.engine.small.proof.prove_branches`.

    Returns
    -------
    Whether all currents are accurate on their own scale, and the diodes' states correct.
    """
    made = take_tree(plan, kind, first, second, value, closed)
    carriers, low = np.empty(kind.size, np.int64), np.zeros(kind.size)
    if not made.whole:
        return False
    count, most = carry(kind, first, second, value, v, made.chord, current, carriers)
    carriers = carriers[:count]
    follow(made, carriers, current, low, RESOLUTION)
    early = signs and passive(plan, value)
    for attempt in range(0 if early else 2, 3):
        # First with currents computed from potentials, then after one correction: they may be accurate enough.
        if attempt > 0:
            limit = 1 if attempt == 1 else STEPS
            good = correct(plan, space, made, closed, carriers, most, v, current, low, limit)
            if not good and attempt > 1:
                return False
        bound = prove_branches(made, kind, value, current, low, v, drop, space.at_node, worst, relative)
        if early and bound <= ACCURATE and largest(relative) <= AIM:
            break
    return accept(plan, space, closed, signs, current, drop)
