"""The primal–dual active-set method (Hintermüller, Ito & Kunisch 2003) on refined currents and potentials.

A conducting diode with a negative current leaves the active set, a blocking diode with a forward voltage enters it, all
at once (`circuitsim.engine.search`); where that cycles, single changes follow, the least index first (Murty 1974). No
proof of termination comes with these: the number of linear circuits is bounded, and reaching the bound is an error.
Currents and voltages are judged by what refinement resolves: `OVERALL` of the largest current in the block, of the
largest drop in the loop.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.engine import nodal, tree
from circuitsim.engine.kernels import kernel
from circuitsim.engine.network import Network
from circuitsim.engine.refinement import OVERALL, LinearPoint, solve_linear
from circuitsim.engine.search import PATIENCE, Change, Search
from circuitsim.errors import ConvergenceError

NODAL = 3 * PATIENCE
"""Most iterations on node potentials in doubles."""

CLOSES = 2.0**-52
"""A sum of n source values below n times this share of the largest of them is zero."""


class Violations(NamedTuple):
    """Diodes in the wrong state at a linear point.

    Attributes
    ----------
    leave : int array
        Conducting diodes with a negative current.
    enter : int array
        Blocking diodes with a forward voltage, the largest voltage first.
    """

    leave: np.ndarray
    enter: np.ndarray


def solve_active_set(
    net: Network, closed: np.ndarray, guess: np.ndarray, anchor: np.ndarray, limit: int
) -> tuple[LinearPoint, int]:
    """The steady state from the conducting diodes ``closed``, and the linear circuits solved.

    Parameters
    ----------
    net : Network
    closed : int array
        Diodes to start with, most important first.
    guess : (m,) float array
        Branch currents to start from, A.
    anchor : (n_nodes,) float array
        Potentials that components without a path to ground stay near, V.
    limit : int
        Most linear circuits to solve.

    Raises
    ------
    ConvergenceError
        No steady state was found within ``limit`` linear circuits.
    """
    search, previous, done = Search(closed.size > 0), None, 0
    if nodal.suits(net):
        closed, guess, previous, done = nodal.iterate(net, closed, guess, min(NODAL, limit))
    for count in range(done + 1, done + limit + 1):
        point = solve_linear(net, closed, guess, anchor, previous)
        found = violations(net, point)
        if not (found.leave.size or found.enter.size):
            return point, count
        violated = found.leave.size + found.enter.size
        change = search.next(np.packbits(point.closed[net.diodes]).tobytes(), violated, found.enter.size)
        if change is Change.SINGLE:
            closed = _single_change(net, point, found)
        elif change is Change.ALL_CONDUCT:
            closed = net.diodes
        elif change is Change.NONE_CONDUCTS:
            closed = net.diodes[:0]
        else:
            closed = _all_changes(net, point, found, change is Change.ENTER_ONLY)
        guess, anchor, previous = point.current, point.v, point.factored
    raise ConvergenceError(f"the active set did not become optimal within {done + limit} linear circuits")


def _all_changes(net: Network, point: LinearPoint, found: Violations, enter_only: bool) -> np.ndarray:
    """The active set with all violated diodes changed, or ``enter_only`` the entering ones; negative currents in loops
    of diodes are exchanged first."""
    d, current = net.diodes, point.current
    stay = point.closed.copy()
    stay[found.leave] = False
    if found.leave.size:
        forward = forward_voltages(net, point)
        equal = point.closed[d]
        reach = np.maximum(np.abs(point.v[net.first[d]]), np.abs(point.v[net.second[d]]))
        near = np.flatnonzero(~equal & (np.abs(forward) <= nodal.CLEAR * reach))
        equal[near] = np.abs(forward[near]) <= resolved_voltages(net, point, d[near])[0]
        carriers = np.concatenate([net.structure.resistors, net.sources])
        injected = np.zeros(net.structure.n + 1)
        kernel(nodal.net_currents, carriers.size)(
            carriers, net.first, net.second, net.structure.coordinate, current, injected
        )  # fmt: skip
        flow = nodal.exchanged(net, point.closed, equal, current, injected, point.at_node)
        stay[d] = flow != 0.0 if enter_only else flow > 0.0
        current = current.copy()
        current[d] = flow
    stays = np.flatnonzero(stay)
    return np.concatenate([found.enter, stays[np.argsort(-current[stays], kind="stable")]])


def _single_change(net: Network, point: LinearPoint, found: Violations) -> np.ndarray:
    """The active set with the violated diode of least index changed."""
    stay = point.closed.copy()
    least = int(min(found.leave.min(initial=stay.size), found.enter.min(initial=stay.size)))
    if stay[least]:
        stay[least] = False
        return np.flatnonzero(stay)
    for e in _loop_diodes(net, point, least):
        stay[e] = False
    return np.concatenate([[least], np.flatnonzero(stay)])


def _loop_diodes(net: Network, point: LinearPoint, entering: int) -> list[int]:
    """The conducting diode that leaves when ``entering`` closes a loop of fixed voltages and conducting diodes: that of
    the least current among those which a current round the loop reduces; none where there is no such loop."""
    made = point.tree
    a, b = int(net.first[entering]), int(net.second[entering])
    if made.root_of[a] != made.root_of[b]:
        return []
    # The current flows from a to b through the entering diode and returns from b to a through the tree.
    reduced: list[int] = []
    while a != b:
        low, returns = (a, False) if made.depth[a] >= made.depth[b] else (b, True)
        e = int(made.edge_of[low])
        if net.ohms[e] > 0.0:
            return []
        upwards = int(net.first[e]) == low
        if point.closed[e] and upwards != returns:
            reduced.append(e)
        if returns:
            b = int(made.parent_of[b])
        else:
            a = int(made.parent_of[a])
    return [min(reduced, key=lambda e: (float(point.current[e]), e))] if reduced else []


def violations(net: Network, point: LinearPoint) -> Violations:
    """The diodes in the wrong state."""
    d = net.diodes
    a, c = net.first[d], net.second[d]
    on = point.closed[d]
    closed = d[on]
    noise = np.maximum(4.0 * point.correction[closed], OVERALL * point.in_block[point.block[closed]])
    leave = closed[point.current[closed] < -noise]
    forward = forward_voltages(net, point)
    joined = point.tree.root_of[a] == point.tree.root_of[c]
    reach = np.maximum(np.abs(point.v[a]), np.abs(point.v[c]))
    wrong = ~on & np.where(joined, forward > 0.0, forward > CLOSES * reach)
    candidates = np.flatnonzero(wrong & joined)
    wrong[candidates] = forward[candidates] > resolved_voltages(net, point, d[candidates])[1]
    driven = driven_components(net, point)
    if driven.any():
        wrong |= _first_met(net, point, driven, forward)
    enter = np.flatnonzero(wrong)
    return Violations(leave, d[enter[np.argsort(-forward[enter], kind="stable")]])


def forward_voltages(net: Network, point: LinearPoint) -> np.ndarray:
    """Anode minus cathode potential of each diode, V."""
    return voltages_between(net, point, net.diodes)


def voltages_between(net: Network, point: LinearPoint, elements: np.ndarray) -> np.ndarray:
    """Potential of the first terminal minus that of the second, V."""
    a, b, made = net.first[elements], net.second[elements], point.tree
    found = np.empty(elements.size)
    kernel(tree.differences, elements.size)(a, b, point.v, point.v_low, found)
    coarse = np.flatnonzero(np.abs(found) < tree.COARSE * np.maximum(np.abs(point.v[a]), np.abs(point.v[b])))
    if coarse.size:
        finer = found[coarse]
        kernel(tree.path_voltages, net.first.size)(
            made.depth, made.edge_of, made.parent_of, net.first, net.ohms, net.emf, point.current, point.current_low,
            a[coarse], b[coarse], finer,
        )  # fmt: skip
        found[coarse] = finer
    return found


def resolved_voltages(net: Network, point: LinearPoint, diodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Voltages of blocking diodes that are zero, by the largest drop in the loop through the diode.

    Returns
    -------
    resolved : float array
        What refinement resolves, V.
    closing : float array
        The same or, where the loop consists of n voltage sources and conducting diodes, n · 2⁻⁵² of its largest member,
        V: such a loop closes.
    """
    largest, members = np.zeros(diodes.size), np.zeros(diodes.size, dtype=np.int64)
    made, a, c = point.tree, net.first[diodes], net.second[diodes]
    kernel(tree.loop_scales, net.first.size)(
        made.depth, made.edge_of, made.parent_of, net.first, net.ohms, net.emf, point.current, a, c, largest, members
    )  # fmt: skip
    share = np.maximum(OVERALL, (members + np.sign(members)) * CLOSES)
    return OVERALL * largest, share * largest


def driven_components(net: Network, point: LinearPoint) -> np.ndarray:
    """Sign of the net current into the component of each node that no path leads to ground (n_nodes,), 0 where it
    balances."""
    made = point.tree
    free = (made.root_of == np.arange(net.n_nodes)) & (point.need != 0.0)
    free[net.roots] = False
    if not free.any():
        return np.zeros(net.n_nodes)
    s = net.sources
    ra, rb = made.root_of[net.first[s]], made.root_of[net.second[s]]
    s, ra, rb = s[ra != rb], ra[ra != rb], rb[ra != rb]
    largest, count = np.zeros(net.n_nodes), np.zeros(net.n_nodes)
    for end in (ra, rb):
        np.maximum.at(largest, end, np.abs(net.source[s]))
        np.add.at(count, end, 1.0)
    net_current = np.where(np.abs(point.need) > count * CLOSES * largest, np.sign(point.need), 0.0)
    net_current[~free] = 0.0
    return net_current[made.root_of]


def _first_met(net: Network, point: LinearPoint, driven: np.ndarray, forward: np.ndarray) -> np.ndarray:
    """For each driven component the blocking diode that stops its potential first (d,)."""
    d, root = net.diodes, point.tree.root_of
    a, c = net.first[d], net.second[d]
    crossing = ~point.closed[d] & (root[a] != root[c])
    found = np.zeros(d.size, dtype=bool)
    for sign, inside in ((1.0, a), (-1.0, c)):
        k = np.flatnonzero(crossing & (driven[inside] == sign))
        order = k[np.lexsort((k, -forward[k], root[inside[k]]))]
        first = np.append(True, root[inside[order[1:]]] != root[inside[order[:-1]]]) if order.size else order
        found[order[first]] = True
    return found
