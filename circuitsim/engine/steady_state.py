"""From conducting diodes to the steady state: branch currents and drops, node voltages, and what is unique.

Potentials do not determine currents in loops of sources, shorts and conducting diodes: any circulation with positive
diode currents is a steady state too. The result has those of least norm (`circuitsim.engine.loops`).
"""

from __future__ import annotations

from copy import copy
from typing import NamedTuple

import numpy as np

from circuitsim.circuit.elements import CAPACITOR, CURRENT
from circuitsim.engine import tree
from circuitsim.engine.active_set import solve_active_set
from circuitsim.engine.loops import WireLoops, least_norm
from circuitsim.engine.network import Network, forest_of
from circuitsim.engine.refinement import (
    LinearPoint,
    forward_voltages,
    least_currents,
    resolved_voltages,
    solve_linear,
    sources_alone,
    voltages_between,
)
from circuitsim.engine.small.active_set import NOISE
from circuitsim.engine.tree import CLOSES, RESOLUTION
from circuitsim.errors import ConvergenceError
from circuitsim.kernels import MANY, kernel
from circuitsim.program.components import unchangeable
from circuitsim.program.precise import add


class Loops(NamedTuple):
    """Zero-resistance elements on loops.

    Attributes
    ----------
    elements : int array
    current : float array
        Their least-norm currents, A.
    unique : bool array
        Whether each is unique.
    """

    elements: np.ndarray
    current: np.ndarray
    unique: np.ndarray


def loop_currents(net: Network, point: LinearPoint, tight: np.ndarray) -> Loops:
    """The currents in loops of fixed voltages and the diodes ``tight``, whose ends are equal."""
    alone = net.fixed is net.structure.voltage_edges and not net.structure.forest.closing.size
    edges = tight if alone and not tight.size else np.concatenate([net.fixed, tight])
    loops = WireLoops.of(net.structure.arrays, edges)
    elements, one_way = loops.elements, loops.one_way
    if not elements.size:
        return Loops(elements, np.zeros(0), np.ones(0, dtype=bool))
    need, off = _missing(net, point, elements)
    first, second = loops.ends
    need, number = need[:, loops.nodes], loops.numbered(off[loops.nodes])
    found = least_norm(loops, number, need, net.first.size > MANY)
    # Rounding to below zero counts as zero, since a diode's current can only grow.
    size = np.abs(need[0])
    np.maximum.at(size, first, np.abs(found))
    np.maximum.at(size, second, np.abs(found))
    found[one_way & (found <= NOISE * np.minimum(size[first], size[second]))] = 0.0
    unique = unchangeable(loops.nodes.size, first, second, ~one_way | (found > 0.0))
    return Loops(elements, found, unique)


def _missing(net: Network, point: LinearPoint, elements: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Net current into each node of ``elements`` from all others, A, as sums of two doubles (2, n_nodes), zero where it
    is rounding; and the rounding of the high part (n_nodes,), A."""
    at_loops = np.zeros(net.n_nodes, dtype=bool)
    at_loops[net.first[elements]] = at_loops[net.second[elements]] = True
    others = (at_loops[net.first] | at_loops[net.second]) & (point.current != 0.0)
    others[elements] = False
    high, low, largest = np.zeros((3, net.n_nodes))
    e = np.flatnonzero(others)
    # Pairs of doubles resolve currents relative to the largest in their blocks.
    scale = np.maximum(np.abs(point.current), np.append(point.in_block, 0.0)[point.block])
    kernel(_gather, net.first.size)(
        e, net.first, net.second, point.current, point.current_low, scale, high, low, largest
    )
    size, off = np.abs(point.current[e]), np.spacing(np.abs(high))
    for ends in (net.first[e], net.second[e]):
        np.maximum.at(off, ends, RESOLUTION * size)
    return np.where(np.abs(high) < RESOLUTION * largest, 0.0, (high, low)), off


def _gather(elements, first, second, current, current_low, scale, high, low, largest):
    """Accumulate the currents of ``elements`` into each node, A, in pairs of doubles, and the ``largest`` of their
    scales."""
    for e in elements:
        a, b, size = first[e], second[e], scale[e]
        high[a], low[a] = add(high[a], low[a], -current[e], -current_low[e])
        high[b], low[b] = add(high[b], low[b], current[e], current_low[e])
        largest[a] = max(largest[a], size)
        largest[b] = max(largest[b], size)


SMALLEST, LARGEST = 1e-290, 1e290
"""Magnitudes below `SMALLEST` count as zero; above `LARGEST` they are an error."""


class SteadyState(NamedTuple):
    """A steady state in branch and node quantities.

    Attributes
    ----------
    current, drop : (m,) float arrays
        Branch currents, A, and voltages first − second, V.
    voltages, low : (n_nodes,) float arrays
        Node voltages, V, and their low-order parts, V.
    unique : (m,) bool array
        Whether the branch current is unique.
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


def steady_state(net: Network, closed: np.ndarray, guess: np.ndarray, anchor: np.ndarray, limit: int) -> SteadyState:
    """The steady state found from the conducting diodes ``closed``; see `solve_active_set` for the arguments."""
    point, iterations = solve_active_set(net, closed, guess, anchor, limit, net.resistances.take_factor())
    net.resistances.keep_factor(point.factored)
    point, forward, tight, loops = _with_closed_loops(net, point)
    current, unique = _with_loops(net, point.current.copy(), loops)
    drop = _drops(net, point, forward, tight, current)
    end = _with_potentials(net, point, drop)
    kind = net.structure.arrays.kind
    free = np.concatenate([net.structure.currents, np.flatnonzero(kind == CAPACITOR)])
    drop[free] = voltages_between(end, free)
    return _in_range(net, SteadyState(current, drop, end.v, end.v_low, unique, iterations, point.converged))


def _with_loops(net: Network, current: np.ndarray, loops: Loops) -> tuple[np.ndarray, np.ndarray]:
    """Branch currents including those of the loops, A, and which of them are unique."""
    unique, d = np.ones(current.size, dtype=bool), net.diodes
    current[loops.elements], unique[loops.elements] = loops.current, loops.unique
    # A source, short or diode from a node to itself has an indeterminate current; 0 is shown.
    unique[net.fixed] &= net.first[net.fixed] != net.second[net.fixed]
    unique[d] &= net.first[d] != net.second[d]
    current[d] = np.maximum(current[d], 0.0)
    return current, unique


def _in_range(net: Network, found: SteadyState) -> SteadyState:
    """The steady state, small numbers as zero; an error where numbers are too large."""
    for quantity in (found.current, found.drop, found.voltages):
        size = np.abs(quantity)
        if not size.max(initial=0.0) <= LARGEST:  # nor where it is nan
            raise ConvergenceError(_out_of_range(net, found.current, found.drop))
        np.copyto(quantity, 0.0, where=size < SMALLEST)
    found.drop[net.fixed] = net.emf[net.fixed]  # given, however small
    return found


def _with_closed_loops(net: Network, point: LinearPoint) -> tuple[LinearPoint, np.ndarray, np.ndarray, Loops]:
    """The point, the voltages of all diodes (d,), V, which of these are zero (d,), and currents in loops, with loops of
    sources closed.

    The sources of a loop through a diode or short outside the tree add up to zero up to rounding, but the potentials at
    its ends differ. Then the diode or short replaces the largest source of the loop in the tree, which takes conducting
    diodes before sources. So its ends have one potential, and parallel resistors carry nothing. Each such element joins
    trees of shorts and such elements into one; so there are fewer replacements than nodes.

    A sum of sources may change its sign by that, and with it the current of a diode outside these loops, which then
    blocks.
    """
    d = net.diodes
    closing, blocking = np.zeros((2, net.first.size), dtype=bool)
    while True:
        forward = forward_voltages(point)
        tight = _tight(net, point, forward)
        new = _rounded(net, point, d[tight])
        new = new[~blocking[new]]
        if not new.size:
            loops = loop_currents(net, point, d[tight])
            reverse = point.closed & (point.current < -least_currents(point))
            reverse[loops.elements] = False
            if not reverse.any():
                return point, forward, tight, loops
            blocking |= reverse
        closing[new] = True
        ascending = net.fixed[np.argsort(np.abs(net.emf[net.fixed]), kind="stable")]
        shorts = int(np.count_nonzero(net.emf[ascending] == 0.0))
        conducting = d[(closing[d] | point.closed[d]) & ~blocking[d]]
        ordered = net._replace(fixed=np.concatenate([ascending[:shorts], conducting, ascending[shorts:]]))
        point = solve_linear(ordered, conducting, point.current, point.v)


def _rounded(net: Network, point: LinearPoint, tight: np.ndarray) -> np.ndarray:
    """Zero-voltage elements outside the tree, the diodes ``tight`` among them, whose ends the tree joins by sources and
    conducting diodes that add up to rounding instead of zero."""
    made = point.tree
    level = np.concatenate([net.fixed[net.emf[net.fixed] == 0.0], tight])
    a, b = net.first[level], net.second[level]
    off = ~made.inside[level] & (made.root_of[a] == made.root_of[b])
    off &= (point.v[a] != point.v[b]) | (point.v_low[a] != point.v_low[b])
    level = level[off]
    return level[sources_alone(net, point, level)] if level.size else level


def _tight(net: Network, point: LinearPoint, forward: np.ndarray) -> np.ndarray:
    """Diodes with equal ends (d,): conducting ones, and blocking ones whose voltage is zero at its scale, or that close
    a loop of sources."""
    d = net.diodes
    tight = point.closed[d]
    a, c = net.first[d], net.second[d]
    reach = np.maximum(np.abs(point.v[a]), np.abs(point.v[c]))
    most = np.maximum(reach, np.abs(net.emf).max(initial=0.0))
    near = np.flatnonzero(~tight & (forward >= -1e-9 * most))
    _, closing = resolved_voltages(point, d[near])
    # Potentials of components that no path joins are known to doubles only.
    root = point.tree.root_of
    apart = root[a[near]] != root[c[near]]
    tight[near] = -forward[near] <= np.where(apart, CLOSES * reach[near], closing)
    return tight


def _drops(net: Network, point: LinearPoint, forward: np.ndarray, tight: np.ndarray, current: np.ndarray) -> np.ndarray:
    """Voltages first − second, V, of all elements that set one; zero at tight diodes with a current, which may have
    been chosen in a loop."""
    drop, d = net.ohms * current + net.emf, net.diodes
    drop[d] = np.where(point.closed[d] | (tight & ((forward > 0.0) | (current[d] > 0.0))), 0.0, forward)
    return drop


def _with_potentials(net: Network, point: LinearPoint, drop: np.ndarray) -> LinearPoint:
    """The circuit with the node voltages that are shown.

    In a loop of sources and zero-voltage elements that closes up to rounding, ends of such an element may differ by it.
    Then potentials are sums of drops along a forest that takes it first, then the tree's zero-voltage elements.
    """
    v, low, made, kind = point.v, point.v_low, point.tree, net.structure.arrays.kind
    level = np.flatnonzero((drop == 0.0) & ~made.inside & (kind != CURRENT) & (kind != CAPACITOR))
    a, b = net.first[level], net.second[level]
    level = level[(made.root_of[a] == made.root_of[b]) & ((v[a] != v[b]) | (low[a] != low[b]))]
    flat = net._replace(ohms=np.where(drop == 0.0, 0.0, net.ohms))
    closing = level[sources_alone(flat, point, level)] if level.size else level
    if not closing.size:
        return point
    edges = made.edge[made.edge >= 0]
    forest = forest_of(net, np.concatenate([closing, edges[drop[edges] == 0.0], edges[drop[edges] != 0.0]]))
    v, low = v.copy(), low.copy()
    kernel(tree.tree_potentials, net.first.size)(forest, net.branches, point.current, point.current_low, v, low)
    shown = copy(point)
    shown.tree, shown.v, shown.v_low = forest, v, low
    return shown


def _out_of_range(net: Network, current: np.ndarray, drop: np.ndarray) -> str:
    size = np.maximum(np.abs(np.nan_to_num(current, nan=np.inf)), np.abs(np.nan_to_num(drop, nan=np.inf)))
    k = int(np.argmax(size))
    circuit = net.structure.circuit
    where = f" at {circuit.names[k]}" if circuit is not None else ""
    return (
        f"a current or voltage{where} exceeds the range of a double (1e290): check the largest sources and resistances"
    )
