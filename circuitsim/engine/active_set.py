"""The primal–dual active-set method (Hintermüller, Ito & Kunisch 2003) on refined currents and potentials.

A conducting diode with a negative current leaves the active set, a blocking diode with a forward voltage enters it, all
at once (`circuitsim.engine.search`). Where that cycles, the dual method follows, which cannot cycle
(`circuitsim.engine.dual`).
"""

from __future__ import annotations

import numpy as np

from circuitsim.engine import nodal, tree
from circuitsim.engine.dual import solve_dual
from circuitsim.engine.exchange import exchange_all
from circuitsim.engine.kernels import kernel
from circuitsim.engine.kkt import Violations, forward_voltages, kkt_violations, resolved_voltages
from circuitsim.engine.network import Network, representative
from circuitsim.engine.refinement import LinearPoint, solve_linear
from circuitsim.engine.search import Change, Search
from circuitsim.errors import ConvergenceError
from circuitsim.solvers.protocol import Factored

PLACES = 4
"""Most linear circuits to solve for potentials of components without a path to ground that are nearer to 0 V."""


def on_potentials(net: Network, closed: np.ndarray, limit: int, factored: Factored | None = None) -> nodal.Start | None:
    """Where iterations on potentials end; None where these do not suit. For the arguments see `solve_active_set`;
    ``factored``, the nodal matrix at any set, is used up."""
    if limit < 1:
        raise ConvergenceError("no linear circuit may be solved")
    return nodal.iterate(net, closed, limit, factored) if nodal.suits(net) else None


def solve_active_set(
    net: Network,
    closed: np.ndarray,
    guess: np.ndarray,
    anchor: np.ndarray,
    limit: int,
    start: nodal.Start | None = None,
    factored: Factored | None = None,
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
        Most linear circuits to solve before the dual method takes over, which may solve more (`solve_dual`).
    start : nodal.Start, optional
        What `on_potentials` has returned, if that was asked before.
    factored : Factored, optional
        The nodal matrix at any set, which is used up.

    Raises
    ------
    ConvergenceError
        The dual method failed too, or ``limit`` is zero.
    """
    start = on_potentials(net, closed, limit, factored) if start is None else start
    given, search, previous, done = anchor, Search(closed.size > 0), factored, 0
    if start is not None:
        closed, guess, previous, done = start.closed, start.currents(net), start.factored, start.iterations
    for count in range(done + 1, done + limit + 1):
        point = solve_linear(net, closed, guess, anchor, previous)
        found = kkt_violations(net, point)
        if not (found.leave.size or found.enter.size):
            point, more = _near(net, point, given)
            return point, count + more
        violated = found.leave.size + found.enter.size
        change = search.next(np.packbits(point.closed[net.diodes]).tobytes(), violated, found.enter.size)
        if change is Change.DUAL:
            break
        if change is Change.PART:
            found = _part(found, search, point.closed.size)
        closed = _next_set(net, point, found, change)
        guess, anchor, previous = point.current, point.v, point.factored
    point, dual = solve_dual(net, np.flatnonzero(point.closed), point.current, limit)
    return point, count + dual


def _near(net: Network, point: LinearPoint, anchor: np.ndarray) -> tuple[LinearPoint, int]:
    """The optimal ``point`` with components without a path to ground at the potentials ``anchor``, or as near as
    blocking diodes allow, and the linear circuits solved.

    Earlier sets may have driven them far away, where doubles do not resolve their drops. A diode that would be violated
    conducts, without a current.
    """
    free = point.tree.root_of == np.arange(net.n_nodes)
    free[net.roots] = False
    if (point.v[free] == anchor[free]).all():
        return point, 0
    near, closed = point, np.flatnonzero(point.closed)
    for count in range(1, PLACES + 1):
        near = solve_linear(net, closed, near.current, anchor, near.factored)
        found = kkt_violations(net, near)
        if not (found.leave.size or found.enter.size):
            return near, count
        closed = _all_changes(net, near, found, True)
    return point, PLACES


def _part(found: Violations, search: Search, m: int) -> Violations:
    """The part of the violated diodes that changes."""
    violated = np.zeros(m, dtype=bool)
    violated[found.leave] = violated[found.enter] = True
    part = search.part(violated)
    return Violations(found.leave[part[found.leave]], found.enter[part[found.enter]])


def _next_set(net: Network, point: LinearPoint, found: Violations, change: Change) -> np.ndarray:
    """The active set after a change."""
    if change in (Change.ALL_CONDUCT, Change.NONE_CONDUCTS):
        return net.diodes if change is Change.ALL_CONDUCT else net.diodes[:0]
    return _all_changes(net, point, found, change is Change.ENTER_ONLY)


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
        flow = _exchanged(net, point, equal)
        stay[d] = flow != 0.0 if enter_only else flow > 0.0
        current = current.copy()
        current[d] = flow
    stays = np.flatnonzero(stay)
    return np.concatenate([found.enter, stays[np.argsort(-current[stays], kind="stable")]])


def _exchanged(net: Network, point: LinearPoint, equal: np.ndarray) -> np.ndarray:
    """Currents of all diodes (d,), A, after exchanges in the trees of conducting ones among the diodes ``equal``."""
    d, size, coordinate = net.diodes, net.structure.n + 1, net.structure.coordinate
    carriers = np.concatenate([net.structure.resistors, net.sources])
    current = point.current[carriers]
    need = np.bincount(coordinate[net.second[carriers]], current, size)
    need -= np.bincount(coordinate[net.first[carriers]], current, size)
    tail, head, flow = coordinate[net.first[d]], coordinate[net.second[d]], point.current[d]
    at_node = np.empty(net.n_nodes)
    kernel(tree.node_maxima, net.first.size)(net.first, net.second, point.current, at_node)
    scale = np.bincount(coordinate, at_node, size)
    group = representative(net, point.closed)
    return exchange_all(tail, head, group, equal, point.closed[d], flow, np.abs(flow), need, scale)
