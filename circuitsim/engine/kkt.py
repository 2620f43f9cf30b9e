"""Karush–Kuhn–Tucker conditions of ideal diodes at a refined linear circuit: which diodes are in the wrong state.

Tolerances are the resolution of refinement: `OVERALL` times the largest current in the biconnected component, or times
the largest drop in the loop.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.engine import steps, tree
from circuitsim.engine.corrections import OVERALL, LinearPoint
from circuitsim.engine.network import Network
from circuitsim.engine.tree import CLOSES, loop_scales
from circuitsim.kernels import kernel


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


def kkt_violations(point: LinearPoint) -> Violations:
    """The diodes in the wrong state."""
    net, d = point.net, point.net.diodes
    if not d.size:
        return Violations(d, d)
    a, c = net.first[d], net.second[d]
    on = point.closed[d]
    least_current, least_voltage = np.zeros((2, d.size))
    least_current[on] = least_currents(point)[d[on]]
    forward = forward_voltages(point)
    joined = point.tree.root_of[a] == point.tree.root_of[c]
    least_voltage[~joined] = CLOSES * np.maximum(np.abs(point.v[a]), np.abs(point.v[c]))[~joined]
    candidates = np.flatnonzero(~on & joined & (forward > 0.0))
    least_voltage[candidates] = resolved_voltages(point, d[candidates])[1]
    driven = component_net_currents(point)
    away = _first_blocking(point, driven, forward).astype(float) if driven.any() else np.zeros(d.size)
    wanted = steps.conducts(on, point.current[d], least_current, forward, least_voltage, away)
    enter = np.flatnonzero(wanted & ~on)
    return Violations(d[on & ~wanted], d[enter[np.argsort(-forward[enter], kind="stable")]])


def least_currents(point: LinearPoint) -> np.ndarray:
    """Resolution of the branch currents (m,), A: of their last correction, and of the largest current in their
    block."""
    return np.maximum(4.0 * point.correction, tree.RESOLUTION * np.append(point.in_block, 0.0)[point.block])


def forward_voltages(point: LinearPoint) -> np.ndarray:
    """Anode minus cathode potential of each diode, V."""
    return voltages_between(point, point.net.diodes)


def voltages_between(point: LinearPoint, elements: np.ndarray) -> np.ndarray:
    """Potential of the first terminal minus that of the second, V."""
    net = point.net
    a, b = net.first[elements], net.second[elements]
    found = np.empty(elements.size)
    kernel(tree.differences, elements.size)(a, b, point.v, point.v_low, found)
    coarse = np.flatnonzero(np.abs(found) < tree.COARSE * np.maximum(np.abs(point.v[a]), np.abs(point.v[b])))
    if coarse.size:
        finer = found[coarse]
        kernel(tree.path_voltages, net.first.size)(
            point.tree, net.branches, point.current, point.current_low, a[coarse], b[coarse], finer
        )
        found[coarse] = finer
    return found


def resolved_voltages(point: LinearPoint, diodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Resolution of the voltages of blocking diodes, from the largest drop in the loop through each.

    Returns
    -------
    resolved : float array
        Voltages up to this are zero, V.
    closing : float array
        The same or, where the loop consists of n voltage sources and conducting diodes, n · 2⁻⁵² of its largest drop,
        V: such a loop closes.
    """
    largest, members = loop_scales(point.tree, point.net.branches, point.current, diodes)
    share = np.maximum(OVERALL, (members + np.sign(members)) * CLOSES)
    return OVERALL * largest, share * largest


def sources_alone(net: Network, point: LinearPoint, elements: np.ndarray) -> np.ndarray:
    """Whether sources, shorts and conducting diodes of the tree alone connect the ends of each element."""
    return loop_scales(point.tree, net.branches, point.current, elements)[1] > 0


def component_net_currents(point: LinearPoint) -> np.ndarray:
    """Sign of the net current into each node's component if it has no path to ground (n_nodes,), 0 where it
    balances."""
    net, made = point.net, point.tree
    free = (made.root_of == np.arange(net.n_nodes)) & (point.need != 0.0)
    free[net.structure.roots] = False
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


def _first_blocking(point: LinearPoint, driven: np.ndarray, forward: np.ndarray) -> np.ndarray:
    """For each driven component the blocking diode that limits its potential first (d,)."""
    net, d, root = point.net, point.net.diodes, point.tree.root_of
    a, c = net.first[d], net.second[d]
    crossing = ~point.closed[d] & (root[a] != root[c])
    found = np.zeros(d.size, dtype=bool)
    for sign, inside in ((1.0, a), (-1.0, c)):
        k = np.flatnonzero(crossing & (driven[inside] == sign))
        order = k[np.lexsort((k, -forward[k], root[inside[k]]))]
        first = np.append(True, root[inside[order[1:]]] != root[inside[order[:-1]]]) if order.size else order
        found[order[first]] = True
    return found
