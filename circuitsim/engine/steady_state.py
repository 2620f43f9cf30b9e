"""From conducting diodes to the steady state: branch currents and drops, node potentials, what of them is unique."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.circuit.elements import CAPACITOR
from circuitsim.engine.active_set import solve_active_set
from circuitsim.engine.kkt import CLOSES, forward_voltages, resolved_voltages, voltages_between
from circuitsim.engine.loops import loop_currents
from circuitsim.engine.network import Network
from circuitsim.engine.refinement import LinearPoint
from circuitsim.errors import ConvergenceError

SMALLEST, LARGEST = 1e-290, 1e290
"""Magnitudes below the first count as zero, above the second are an error."""


class SteadyState(NamedTuple):
    """A steady state in branch and node quantities.

    Attributes
    ----------
    current, drop : (m,) float arrays
        Branch currents, A, and voltages first − second, V.
    voltages, low : (n_nodes,) float arrays
        Node potentials, V, and what rounding them to doubles leaves over, V.
    unique : (m,) bool array
        Where the branch current is the only one possible.
    iterations : int
        Linear circuits solved.
    converged : bool
        Whether the last linear circuit met the accuracy of the refinement.
    """

    current: np.ndarray
    drop: np.ndarray
    voltages: np.ndarray
    low: np.ndarray
    unique: np.ndarray
    iterations: int
    converged: bool


def steady_state(
    net: Network, closed: np.ndarray, guess: np.ndarray, anchor: np.ndarray, limit: int
) -> SteadyState:
    """The steady state found from the conducting diodes ``closed``; see `solve_active_set` for the arguments."""
    point, iterations = solve_active_set(net, closed, guess, anchor, limit)
    m, d = net.first.size, net.diodes
    forward = forward_voltages(net, point)
    tight = _tight(net, point, forward)
    loops = loop_currents(net, point, d[tight])
    current, unique = point.current.copy(), np.ones(m, dtype=bool)
    current[loops.elements], unique[loops.elements] = loops.current, loops.unique
    # What circulates in a source, short or diode between a node and itself is open; 0 is shown.
    unique[net.fixed] &= net.first[net.fixed] != net.second[net.fixed]
    unique[d] &= net.first[d] != net.second[d]
    current[d] = np.maximum(current[d], 0.0)
    voltages, low, zero = _without_rounding(net, point, tight)
    idle = zero[net.first] & zero[net.second]
    current[idle & (net.ohms > 0.0)] = 0.0
    forward[idle[d]] = 0.0
    drop = _drops(net, point, forward, tight, current)
    for quantity in (current, drop, voltages):
        if not (np.abs(quantity) <= LARGEST).all():
            raise ConvergenceError(_out_of_range(net, current, drop))
        quantity[np.abs(quantity) < SMALLEST] = 0.0
    return SteadyState(current, drop, voltages, low, unique, iterations, point.converged)


def _without_rounding(
    net: Network, point: LinearPoint, tight: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Node potentials and what rounding them leaves over, V; nodes that resistors and diodes join without a drop.

    Zero also at nodes that a diode or source of 0 V outside the tree joins to a node of 0 V, where the sources in this
    loop add up to zero but for rounding; at nodes that hang on such ones without a current; and at nodes that such ones
    lift by no more than their own rounding, with currents that are rounding of those at the tree's next node.
    """
    v, low, made, d = point.v.copy(), point.v_low.copy(), point.tree, net.diodes
    shorts = net.fixed[(net.emf[net.fixed] == 0.0) & ~made.inside[net.fixed]]
    equal = np.concatenate([d[tight & ~point.closed[d]], shorts])
    ends = np.concatenate([net.first[equal], net.second[equal]])
    others = np.concatenate([net.second[equal], net.first[equal]])
    zero = set(ends[(v[ends] != 0.0) & (v[others] == 0.0)].tolist())
    lifted = np.abs(v) <= np.abs(v[list(zero)]).max() if zero else np.zeros(v.size, dtype=bool)
    hanging = np.flatnonzero(lifted & (made.edge_of >= 0))
    idle, at_node = np.zeros(v.size, dtype=bool), np.zeros(v.size)
    if zero:
        np.maximum.at(at_node, net.first, np.abs(point.current))
        np.maximum.at(at_node, net.second, np.abs(point.current))
    for u in hanging[np.argsort(made.depth[hanging], kind="stable")].tolist():
        e, parent = made.edge_of[u], made.parent_of[u]
        if parent not in zero or net.emf[e] != 0.0:
            continue
        if net.ohms[e] * point.current[e] == 0.0:
            zero.add(u)
        elif net.ohms[e] > 0.0 and at_node[u] <= CLOSES * at_node[parent]:
            zero.add(u)
            idle[[u, parent]] = True
    idle |= (v == 0.0) if idle.any() else idle
    for u in zero:
        v[u] = low[u] = 0.0
    return v, low, idle


def _tight(net: Network, point: LinearPoint, forward: np.ndarray) -> np.ndarray:
    """Diodes whose ends are equal (d,): conducting ones, and blocking ones whose voltage is zero at its scale."""
    d = net.diodes
    tight = point.closed[d]
    a, c = net.first[d], net.second[d]
    reach = np.maximum(np.abs(point.v[a]), np.abs(point.v[c]))
    near = np.flatnonzero(~tight & (forward >= -1e-9 * reach))
    resolved, _ = resolved_voltages(net, point, d[near])
    # Potentials of components that no path joins are known to doubles only.
    root = point.tree.root_of
    apart = root[a[near]] != root[c[near]]
    tight[near] = -forward[near] <= np.where(apart, CLOSES * reach[near], resolved)
    return tight


def _drops(
    net: Network, point: LinearPoint, forward: np.ndarray, tight: np.ndarray, current: np.ndarray
) -> np.ndarray:
    """Voltages first − second of all elements, V; zero at tight diodes with a current, chosen in a loop perhaps."""
    drop, d = net.ohms * current + net.emf, net.diodes
    drop[d] = np.where(point.closed[d] | (tight & ((forward > 0.0) | (current[d] > 0.0))), 0.0, forward)
    kind = net.structure.arrays.kind
    other = np.concatenate([net.structure.currents, np.flatnonzero(kind == CAPACITOR)])
    drop[other] = voltages_between(net, point, other)
    return drop


def _out_of_range(net: Network, current: np.ndarray, drop: np.ndarray) -> str:
    size = np.maximum(np.abs(np.nan_to_num(current, nan=np.inf)), np.abs(np.nan_to_num(drop, nan=np.inf)))
    k = int(np.argmax(size))
    circuit = net.structure.circuit
    where = f" at {circuit.names[k]}" if circuit is not None else ""
    return (
        f"a current or voltage{where} exceeds the range of a double (1e290): check the largest sources and resistances"
    )
