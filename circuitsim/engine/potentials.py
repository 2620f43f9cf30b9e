"""Node voltages as sums of two doubles, the resulting branch currents, and a bound on all their errors.

The node voltages of the last active-set iteration leave residual currents. One step of iterative refinement with the
nodal factor reduces them to some 1e-30 of the currents. That is a proof: in a passive network an injected current
changes no current by more than itself, and no potential by more than itself times the resistance of a path to ground.

Currents are sums of two doubles too, with a running bound on the rounding of their sums. Elements of fixed voltage and
conducting diodes carry the remaining node currents (leaf elimination along their trees), so that a residual remains at
only one super-node of each group that they join.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.circuit.elements import CAPACITOR, CURRENT, DIODE
from circuitsim.engine.double_double import CANCELLED, accumulate, add, divide
from circuitsim.engine.steps import contract_diodes

ACCURATE = 1e-9
"""Largest relative error of a current or potential for which branch currents need no refinement."""

CLOSING = 1e-9
"""A sum of source voltages below this fraction of the largest of them may be rounding."""

ULP = 2.0**-53
"""Unit roundoff of doubles."""


class Elements(NamedTuple):
    """A circuit's elements at their values; see `circuitsim.engine.network.Network`."""

    kind: np.ndarray
    first: np.ndarray
    second: np.ndarray
    ohms: np.ndarray
    emf: np.ndarray
    source: np.ndarray
    sources: np.ndarray
    diode: np.ndarray


class Pairs(NamedTuple):
    """Sums of two doubles.

    Attributes
    ----------
    v, v_low : (n_nodes,) float arrays
        Node voltages, V.
    current, current_low : (m,) float arrays
        Branch currents, A.
    need, need_low : (n_nodes,) float arrays
        Current that must leave each node through fixed voltages and diodes, A.
    left, left_low : (n + 1,) float arrays
        Residual at one super-node of each group joined by conducting diodes, A; 0 at others.
    """

    v: np.ndarray
    v_low: np.ndarray
    current: np.ndarray
    current_low: np.ndarray
    need: np.ndarray
    need_low: np.ndarray
    left: np.ndarray
    left_low: np.ndarray


def residual_currents(plan, elements, state, on, pairs):
    """Fill in the residuals of the super-node voltages ``state.x``, with the diodes ``on`` (d,) conducting.

    Returns a bound on the rounding of all sums together, A; infinite where a diode will conduct backwards after any
    correction, which changes no current by more than the residual.
    """
    forest = contract_diodes(plan, state, on)
    spread(plan, elements, forest, state.x, pairs)
    rounding = drive(plan, elements, state.g, pairs) + balance(plan, elements, forest, pairs)
    most = 0.0
    for j in range(plan.n):
        most += abs(pairs.left[j])
    for k in range(forest.diode.size):
        if pairs.current[elements.diode[forest.diode[k]]] < -(most + rounding):
            return np.inf
    return rounding


def correct(plan, elements, state, on, change, rounding, pairs, drop, tight):
    """Correct the potentials and prove the resulting currents.

    Parameters
    ----------
    change : (n_nodes,) float array
        Corrections of the potentials, V; equal at both ends of conducting diodes and fixed voltages.
    rounding : float
        The result of `residual_currents`.
    drop : (m,) float array
        Filled: branch voltages, V.
    tight : (d,) bool array
        Filled: diodes of 0 V, which may carry a current.

    Returns
    -------
    float
        Total residual with rounding, A, a bound on the error of each current. Infinite where it does not prove all
        currents, potentials and diode states.
    """
    forest = contract_diodes(plan, state, on)
    total = rounding + shift(plan, state.g, change, pairs) + balance(plan, elements, forest, pairs)
    total += fix(plan, elements, forest, pairs)
    for j in range(plan.n):
        total += abs(pairs.left[j])
    total += idle(elements, forest, total, pairs)
    carries = np.zeros(plan.coordinate.size, np.bool_)
    if not (total < np.inf and accurate(plan, elements, forest, state.root, pairs.current, total, carries)):
        return np.inf
    if not level(plan, state.root, pairs, carries):
        return np.inf
    apart = 0.0  # error of the potentials: no path has more resistance than all resistors in series
    for r in range(plan.resistor.size):
        apart += total * elements.ohms[plan.resistor[r]]
    if not held(plan, state.root, pairs.v, apart):
        return np.inf
    if not states(plan, elements, state.root, on, pairs, apart, drop, tight):
        return np.inf
    for e in range(drop.size):
        if elements.kind[e] == CURRENT or elements.kind[e] == CAPACITOR:
            drop[e] = between(elements.first[e], elements.second[e], pairs)
        elif elements.kind[e] != DIODE:
            drop[e] = elements.ohms[e] * pairs.current[e] + elements.emf[e]
    return total


def between(a, b, pairs):
    """v(a) − v(b), V."""
    return add(pairs.v[a], pairs.v_low[a], -pairs.v[b], -pairs.v_low[b])[0]


def spread(plan, elements, forest, x, pairs):
    """Fill in all potentials from those ``x`` of the roots of the trees of conducting diodes."""
    v, v_low = pairs.v, pairs.v_low
    group, group_low, above, above_low = x.copy(), np.zeros(x.size), np.zeros(v.size), np.zeros(v.size)
    for k in range(plan.tree_node.size):  # offsets from the root of each super-node
        u, w, e = plan.tree_parent[k], plan.tree_node[k], plan.tree_edge[k]
        step = elements.emf[e] if elements.first[e] == w else -elements.emf[e]
        above[w], above_low[w] = add(above[u], above_low[u], step, 0.0)
    for k in range(forest.node.size):
        a, c = plan.anode[forest.diode[k]], plan.cathode[forest.diode[k]]
        u, w = forest.parent[k], forest.node[k]
        step, step_low = add(above[c], above_low[c], -above[a], -above_low[a])
        if plan.coordinate[a] != w:
            step, step_low = -step, -step_low
        group[w], group_low[w] = add(group[u], group_low[u], step, step_low)
    for k in range(v.size):
        j = plan.coordinate[k]
        v[k], v_low[k] = add(group[j], group_low[j], above[k], above_low[k])
    for k in range(forest.node.size):
        a, c = plan.anode[forest.diode[k]], plan.cathode[forest.diode[k]]
        if plan.coordinate[a] != forest.node[k]:
            a, c = c, a
        v[a], v_low[a] = v[c], v_low[c]


def drive(plan, elements, g, pairs):
    """Fill in the currents of resistors and sources and the resulting net currents; returns a bound on rounding, A."""
    v, v_low, current, current_low = pairs.v, pairs.v_low, pairs.current, pairs.current_low
    need, need_low, size, rest = pairs.need, pairs.need_low, 0.0, 0.0
    need[:] = 0.0
    need_low[:] = 0.0
    for r in range(plan.resistor.size):
        e, a, b = plan.resistor[r], plan.resistor_first[r], plan.resistor_second[r]
        drop, drop_low = add(v[a], v_low[a], -v[b], -v_low[b])
        c, c_low = divide(drop, drop_low, elements.ohms[e], g[r])
        current[e], current_low[e] = c, c_low
        need[a], need_low[a] = accumulate(need[a], need_low[a], -c, -c_low)
        need[b], need_low[b] = accumulate(need[b], need_low[b], c, c_low)
        size += g[r] * (abs(v[a]) + abs(v[b]))
        rest += abs(need_low[a]) + abs(need_low[b])
    for k in range(elements.sources.size):
        e = elements.sources[k]
        a, b, c = elements.first[e], elements.second[e], elements.source[e]
        need[a], need_low[a] = accumulate(need[a], need_low[a], -c, 0.0)
        need[b], need_low[b] = accumulate(need[b], need_low[b], c, 0.0)
        rest += abs(need_low[a]) + abs(need_low[b])
    # Drops and currents are sums and products of a few pairs each; additions to low parts are rounded.
    return 8.0 * CANCELLED * size + 4.0 * ULP * rest


def shift(plan, g, change, pairs):
    """Change the potentials and update all results of `drive`; returns a bound on rounding, A.

    Changes of 1e-16 in doubles are as accurate as the potentials in sums of two.
    """
    v, v_low, current, current_low, need_low = pairs.v, pairs.v_low, pairs.current, pairs.current_low, pairs.need_low
    size, lost = 0.0, 0.0
    for r in range(plan.resistor.size):
        e, a, b = plan.resistor[r], plan.resistor_first[r], plan.resistor_second[r]
        c = g[r] * (change[a] - change[b])
        need_low[a] -= c
        need_low[b] += c
        size += 4.0 * g[r] * (abs(change[a]) + abs(change[b])) + abs(need_low[a]) + abs(need_low[b])
        c += current_low[e]
        high = current[e] + c
        current[e], current_low[e] = high, c - (high - current[e])
        if abs(high) < CANCELLED * g[r] * max(abs(v[a]), abs(v[b])):
            lost += abs(high)
            current[e], current_low[e] = 0.0, 0.0
    for k in range(v.size):
        v[k], v_low[k] = add(v[k], v_low[k], change[k], 0.0)
    return ULP * size + lost


def balance(plan, elements, forest, pairs):
    """Fill in the currents of conducting diodes and their residuals; returns a bound on rounding, A."""
    left, left_low, size = pairs.left, pairs.left_low, 0.0
    left[:] = 0.0
    left_low[:] = 0.0
    for k in range(plan.coordinate.size):
        j = plan.coordinate[k]
        left[j], left_low[j] = add(left[j], left_low[j], pairs.need[k], pairs.need_low[k])
        size += 2.0 * abs(pairs.need[k]) + abs(left[j])
    for k in range(forest.node.size - 1, -1, -1):
        d, u, w = forest.diode[k], forest.parent[k], forest.node[k]
        e, c, c_low = elements.diode[d], left[w], left_low[w]
        left[u], left_low[u] = add(left[u], left_low[u], c, c_low)
        left[w], left_low[w] = 0.0, 0.0
        size += 2.0 * abs(c) + abs(left[u])
        if plan.coordinate[plan.anode[d]] != w:
            c, c_low = -c, -c_low
        pairs.current[e], pairs.current_low[e] = c, c_low
    return CANCELLED * size


def fix(plan, elements, forest, pairs):
    """Fill in the currents of fixed voltages from the residuals of all other branches; returns a bound on rounding,
    A."""
    if plan.tree_node.size == 0:
        return 0.0
    current, current_low, need, need_low, size = pairs.current, pairs.current_low, pairs.need, pairs.need_low, 0.0
    for k in range(forest.diode.size):
        e = elements.diode[forest.diode[k]]
        a, b = elements.first[e], elements.second[e]
        need[a], need_low[a] = add(need[a], need_low[a], -current[e], -current_low[e])
        need[b], need_low[b] = add(need[b], need_low[b], current[e], current_low[e])
        size += 4.0 * abs(current[e]) + abs(need[a]) + abs(need[b])
    for k in range(plan.tree_node.size - 1, -1, -1):
        u, w, e = plan.tree_parent[k], plan.tree_node[k], plan.tree_edge[k]
        size += 3.0 * abs(need[w])
        c, c_low = add(need[w], need_low[w], 0.0, 0.0)
        need[u], need_low[u] = add(need[u], need_low[u], c, c_low)
        size += abs(need[u])
        if elements.first[e] != w:
            c, c_low = -c, -c_low
        current[e], current_low[e] = c, c_low
    return CANCELLED * size


def idle(elements, forest, total, pairs):
    """Set currents of conducting diodes to zero that may be rounding, up to ``total``, A; returns their sum, A."""
    lost = 0.0
    for k in range(forest.diode.size):
        e = elements.diode[forest.diode[k]]
        if abs(pairs.current[e]) <= total:
            lost += abs(pairs.current[e])
            pairs.current[e], pairs.current_low[e] = 0.0, 0.0
    return lost


def accurate(plan, elements, forest, root, current, total, carries):
    """Whether all currents with an error of up to ``total``, A, are accurate to `ACCURATE` relative to themselves, and
    diodes conduct forwards; zero currents in diodes and fixed voltages relative to the currents at one of their ends.

    Marks the nodes with a current in ``carries`` (n_nodes,).
    """
    good, first, second = True, elements.first, elements.second
    for k in range(elements.sources.size):
        e = elements.sources[k]
        carries[first[e]] = carries[second[e]] = True
    for k in range(forest.diode.size):
        e = elements.diode[forest.diode[k]]
        if current[e] != 0.0:
            good = good and total <= ACCURATE * current[e]
            carries[first[e]] = carries[second[e]] = True
    for edges in (plan.resistor, plan.tree_edge):
        for k in range(edges.size):
            e = edges[k]
            if current[e] != 0.0:
                good = good and total <= ACCURATE * abs(current[e])
                carries[first[e]] = carries[second[e]] = True
    for k in range(forest.diode.size):
        e = elements.diode[forest.diode[k]]
        good = good and (carries[first[e]] or carries[second[e]])
    for k in range(plan.tree_edge.size):
        e = plan.tree_edge[k]
        good = good and (carries[first[e]] or carries[second[e]])
    return good


def level(plan, root, pairs, carries):
    """Whether each node without current has a single neighbouring group, so that its resistors carry nothing; gives it
    that group's potential, removing rounding, and marks it in ``carries``."""
    group, zero, count = np.empty(carries.size, np.int64), np.empty(plan.resistor.size, np.int64), 0
    for k in range(carries.size):
        group[k] = root[plan.coordinate[k]]
    for r in range(plan.resistor.size):
        a, b = plan.resistor_first[r], plan.resistor_second[r]
        if not (carries[a] and carries[b]) and group[a] != group[b]:
            zero[count] = r
            count += 1
    found = True
    while found:
        found = False
        for k in range(count):
            a, b = plan.resistor_first[zero[k]], plan.resistor_second[zero[k]]
            if carries[a] != carries[b]:
                if carries[a]:
                    a, b = b, a
                pairs.v[a], pairs.v_low[a], group[a] = pairs.v[b], pairs.v_low[b], group[b]
                carries[a] = found = True
    good = True
    for k in range(count):
        a, b = plan.resistor_first[zero[k]], plan.resistor_second[zero[k]]
        good = good and carries[a] and group[a] == group[b] and pairs.v[a] == pairs.v[b]
    return good


def held(plan, root, v, apart):
    """Whether potentials with an error of up to ``apart``, V, are accurate to `ACCURATE` relative to themselves, except
    those fixed relative to ground by sources and conducting diodes."""
    good = True
    for k in range(v.size):
        if root[plan.coordinate[k]] != root[plan.n]:
            good = good and apart <= ACCURATE * abs(v[k])
    return good


def states(plan, elements, root, on, pairs, apart, drop, tight):
    """Fill in diode voltages, V, and which are ``tight`` (zero); returns whether every other blocking diode is below 0
    by more than the error ``apart`` of the potentials, V."""
    good, largest = True, 0.0
    for k in range(plan.tree_edge.size):
        largest = max(largest, abs(elements.emf[plan.tree_edge[k]]))
    for d in range(on.size):
        a, c, volts = plan.anode[d], plan.cathode[d], 0.0
        if not on[d]:
            volts = between(a, c, pairs)
        tight[d] = volts == 0.0
        if not tight[d]:
            joined = root[plan.coordinate[a]] == root[plan.coordinate[c]]
            good = good and -volts > (CLOSING * largest if joined else 2.0 * apart)
        drop[elements.diode[d]] = volts
    return good
