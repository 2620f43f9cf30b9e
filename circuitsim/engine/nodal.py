"""Active-set iterations on node potentials in doubles: cheap, and accurate enough to find most conducting diodes.

Only clear violations count here (`CLEAR`); what is left to decide, refined currents and potentials decide
(`circuitsim.engine.active_set`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.engine import tree
from circuitsim.engine.exchange import exchange
from circuitsim.engine.kernels import kernel
from circuitsim.engine.network import Network
from circuitsim.engine.refinement import forest_of, representative
from circuitsim.engine.search import Change, Search
from circuitsim.solvers.linear import Factored

CLEAR = 1e-9
"""A current above this share of the largest at its ends, or a voltage above this share of the potentials, is clear."""

EQUAL = 1e-13
"""Ends of a diode that differ by less than this share of their potentials are equal."""

EVEN = 1e8
"""Largest ratio of resistances for which potentials in doubles tell most of the conducting diodes."""


class Start(NamedTuple):
    """Where refined iterations begin.

    Attributes
    ----------
    closed : int array
        Conducting diodes, the largest current first.
    current : (m,) float array
        Branch currents, A.
    factored : Factored or None
        The nodal matrix of the last iteration.
    iterations : int
        Linear circuits solved.
    """

    closed: np.ndarray
    current: np.ndarray
    factored: Factored | None
    iterations: int


def suits(net: Network) -> bool:
    """Whether resistances are similar enough, and resistors and sources lead from every node to ground."""
    r = net.ascending
    return bool(net.grounded and r.size and net.ohms[r[-1]] <= EVEN * net.ohms[r[0]])


def iterate(net: Network, closed: np.ndarray, guess: np.ndarray, limit: int) -> Start:
    """Active-set iterations until no violation is clear, a set returns or ``limit`` linear circuits are solved."""
    m, n_nodes, d = net.first.size, net.n_nodes, net.diodes
    coordinate, anode, cathode = net.structure.coordinate, net.first[d], net.second[d]
    balance, ohmic, gather = (kernel(f, m) for f in (tree.tree_currents, ohmic_currents, net_currents))
    carriers = np.concatenate([net.ascending, net.sources])
    v, current, low, zero = np.zeros(n_nodes), guess, np.zeros(m), np.zeros(m)
    need, need_low, most, at_node = np.zeros((4, n_nodes))
    injected = np.zeros(net.structure.n + 1)
    factored, count, search = None, 0, Search(closed.size > 0)
    while True:
        count += 1
        grown = forest_of(net, np.concatenate([net.fixed, closed]))
        on = grown.inside.copy()
        on[net.fixed] = False
        factored = net.laplacian.factor(net.branch[np.flatnonzero(on & (net.branch >= 0))], factored)
        within, within_low = np.zeros((2, n_nodes))
        walk = grown.order, grown.edge, grown.parent
        kernel(tree.tree_potentials, m)(*walk, net.first, zero, net.emf, zero, zero, within, within_low)
        v = v[grown.root_of] + within
        current = net.source.copy()
        ohmic(net.ascending, net.first, net.second, net.ohms, v, current)
        gather(carriers, net.first, net.second, coordinate, current, injected)
        v += factored.correct(injected[:-1])[0][representative(net, on)[coordinate]]
        ohmic(net.ascending, net.first, net.second, net.ohms, v, current)
        balance(*walk, net.first, net.second, carriers, current, low, need, need_low, most, 0.0)
        kernel(tree.node_maxima, m)(net.first, net.second, current, at_node)
        forward = v[anode] - v[cathode]
        reach = np.maximum(np.abs(v[anode]), np.abs(v[cathode]))
        enter = ~on[d] & (forward > CLEAR * reach)
        leave = on[d] & (current[d] < -CLEAR * np.maximum(at_node[anode], at_node[cathode]))
        if leave.any():
            gather(carriers, net.first, net.second, coordinate, current, injected)
            flow = exchanged(net, on, np.abs(forward) <= EQUAL * reach, current, injected, at_node)
            on, current[d] = on.copy(), flow
            on[d] = flow != 0.0
            leave = on[d] & (flow < -CLEAR * np.maximum(at_node[anode], at_node[cathode]))
        wrong = int(leave.sum() + enter.sum())
        change = search.next(np.packbits(on[d]).tobytes(), wrong, int(enter.sum()))
        stays = d[on[d] if change is Change.ENTER_ONLY else on[d] & ~leave]
        stays = stays[np.argsort(-current[stays], kind="stable")]
        if not wrong or change is Change.DUAL or count >= limit:
            return Start(stays, current, factored, count)
        entering = np.flatnonzero(enter)
        closed = np.concatenate([d[entering[np.argsort(-forward[entering], kind="stable")]], stays])
        if change in (Change.NONE_CONDUCTS, Change.ALL_CONDUCT):
            closed = d if change is Change.ALL_CONDUCT else d[:0]


def exchanged(
    net: Network, on: np.ndarray, equal: np.ndarray, current: np.ndarray, injected: np.ndarray, at_node: np.ndarray
) -> np.ndarray:
    """Currents of all diodes (d,), A, after exchanges in the trees of conducting ones (`circuitsim.engine.exchange`).

    Parameters
    ----------
    on : (m,) bool array
        Conducting diodes: a forest.
    equal : (d,) bool array
        Diodes whose ends are equal.
    current : (m,) float array
        Branch currents, A.
    injected : (n + 1,) float array
        Net current of all other elements into each coordinate, A.
    at_node : (n_nodes,) float array
        Largest current at each node, A.
    """
    d, coordinate = net.diodes, net.structure.coordinate
    tail, head = coordinate[net.first[d]], coordinate[net.second[d]]
    group = representative(net, on)
    forest = np.flatnonzero(on[d] & (tail != head))
    scale = np.bincount(coordinate, at_node, injected.size)
    flow = current[d[forest]]
    forest, carried, _ = exchange(
        tail, head, group, equal & (group[tail] == group[head]) & (tail != head), forest, flow, np.abs(flow), injected,
        scale,
    )  # fmt: skip
    found = np.zeros(d.size)
    found[forest] = carried
    return found


def ohmic_currents(resistors, first, second, ohms, v, current):
    """Fill in the currents of resistors, A, at node potentials ``v``, V."""
    for k in range(resistors.size):
        e = resistors[k]
        current[e] = (v[first[e]] - v[second[e]]) / ohms[e]


def net_currents(elements, first, second, coordinate, current, injected):
    """Fill in the net current of elements into each coordinate (n + 1,), A."""
    for k in range(injected.size):
        injected[k] = 0.0
    for k in range(elements.size):
        e = elements[k]
        injected[coordinate[first[e]]] -= current[e]
        injected[coordinate[second[e]]] += current[e]
