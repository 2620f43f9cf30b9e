"""Samples of one linear circuit, eight side by side: branch currents and potentials along one spanning tree.

The tree (`circuitsim.engine.tree`) is the same for all samples, since conductances and conducting diodes are. Chords
carry what potentials say, the tree what is left, in pairs of doubles. Nodes are numbered by their place in the tree, so
that every pass reads memory in its order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim._graphs import choose_forest
from circuitsim.circuit.elements import RESISTOR
from circuitsim.engine.double_double import CANCELLED, multiply
from circuitsim.engine.small.lanes import WIDTH, larger, load, magnitude, spread, store, where_above
from circuitsim.engine.small.proof import AGREES
from circuitsim.engine.small.spanning import candidates, find_live, span
from circuitsim.engine.small.workspace import Walk

FLOW, FLOW_LOW, NET, MOST, NODE = range(5)
"""Rows of a node: current from it towards the root and its low part, net current of the rounded branch currents,
largest branch current, A; how many rows there are."""
VOLT, VOLT_LOW, POTENTIALS = range(3)
"""Rows of a node: potential and its low part, V; how many rows there are."""
CURRENT, CURRENT_LOW, RESIDUAL, CHORD = range(4)
"""Rows of a chord: current and its low part, A, violation of the voltage law in its loop, V; how many there are."""


class Branches(NamedTuple):
    """What a circuit without blocking diodes has of a `circuitsim.engine.small.plan.Plan`."""

    tree_edge: np.ndarray  # voltage constraints, conducting diodes
    resistor: np.ndarray  # of other than zero ohm
    diode: np.ndarray  # none


class Paths(NamedTuple):
    """A spanning tree with its chords; nodes by their place in the tree, the root first.

    Attributes
    ----------
    node, up : (n_nodes,) int arrays
        Node at each place, place of the next one towards the root.
    edge : (n_nodes,) int array
        Element to the next one.
    sign : (n_nodes,) float array
        1 where that element begins at this node, −1 where it ends there.
    ohm, ease : (n_nodes,) float arrays
        Its resistance, Ω, 0 for fixed voltages, and 1/√R, infinite for these.
    given : (n_nodes,) int array
        Row of its voltage among the samples' source values; −1 without one.
    live, diode : (n_nodes,) bool arrays
        Whether it may carry current; whether it is a diode whose current must be positive.
    chord, tail, head : int arrays
        Resistors outside the tree that may carry current, places of their ends.
    chord_ohm, chord_ease, chord_reach : float arrays
        Their resistances, Ω, 1/√R, and √(Σ R of the tree between their ends and the root)/R.
    dead_tail, dead_head : int arrays
        Ends of resistors outside the tree without a current.
    source, source_tail, source_head, source_row : int arrays
        Current sources, their ends, rows of their values.
    blocked_tail, blocked_head : int arrays
        Anodes and cathodes of diodes whose voltages must be negative.
    """

    node: np.ndarray
    up: np.ndarray
    edge: np.ndarray
    sign: np.ndarray
    ohm: np.ndarray
    ease: np.ndarray
    given: np.ndarray
    live: np.ndarray
    diode: np.ndarray
    chord: np.ndarray
    tail: np.ndarray
    head: np.ndarray
    chord_ohm: np.ndarray
    chord_ease: np.ndarray
    chord_reach: np.ndarray
    dead_tail: np.ndarray
    dead_head: np.ndarray
    source: np.ndarray
    source_tail: np.ndarray
    source_head: np.ndarray
    source_row: np.ndarray
    blocked_tail: np.ndarray
    blocked_head: np.ndarray


class Memory(NamedTuple):
    """Eight samples at work, eight numbers a row, rows one after the other (see `FLOW`, `VOLT`, `CURRENT`)."""

    node: np.ndarray
    potential: np.ndarray
    chord: np.ndarray


def spanning_tree(kind, first, second, value, fixed, n_nodes):
    """The spanning tree of a linear circuit: fixed voltages first, then resistors in ascending order.

    Parameters
    ----------
    fixed : int array
        Voltage constraints and conducting diodes, without loops.

    Returns
    -------
    Walk
        Its last member holds only the chords that may carry current.
    joined : bool
        Whether it reaches all nodes.
    """
    resistor = np.empty(kind.size, np.int64)
    count = 0
    for e in range(kind.size):
        if kind[e] == RESISTOR and value[e] != 0.0:
            resistor[count] = e
            count += 1
    branches = Branches(fixed, resistor[:count], resistor[:0])
    order, edge, parent = np.empty(n_nodes, np.int64), np.empty(n_nodes, np.int64), np.empty(n_nodes, np.int64)
    above, depth, live = np.empty(n_nodes, np.int64), np.empty(n_nodes, np.int64), np.empty(n_nodes, np.int64)
    walk = Walk(order, edge, parent, above, depth, live, np.empty(count, np.int64))
    kept = np.empty(n_nodes, np.int64)
    edges = choose_forest(n_nodes, first, second, candidates(branches, value, np.zeros(0, np.bool_)), kept)
    joined = span(first, second, kept[:edges], walk) == n_nodes
    chords = find_live(branches, kind, first, second, value, walk) if joined else 0
    return Walk(order, edge, parent, above, depth, live, walk.chord[:chords]), joined


def add_lanes(a, a_low, b, b_low):
    """`circuitsim.engine.double_double.add` of eight pairs each."""
    s = a + b
    t = s - a
    low = (a - (s - t)) + (b - t)
    low = low + (a_low + b_low)
    high = s + low
    rest = low - (high - s)
    size, least = magnitude(high), CANCELLED * magnitude(a)
    zero = spread(0.0)
    return where_above(least, size, zero, high), where_above(least, size, zero, rest)


def update_maxima(worst, share, amount, scale):
    """The largest amounts so far, absolute and relative to their scales; without a scale any amount is infinite."""
    zero = spread(0.0)
    return larger(amount, worst), larger(where_above(amount, zero, amount / scale, zero), share)


def chord_currents(paths, x, offset, x_row, offset_row, chord):
    """Currents of the chords from potentials."""
    zero = spread(0.0)
    for k in range(paths.tail.size):
        t, h, at = paths.tail[k], paths.head[k], k * CHORD * WIDTH
        between = load(x, x_row[t] * WIDTH) - load(x, x_row[h] * WIDTH)
        between = between + (load(offset, offset_row[t] * WIDTH) - load(offset, offset_row[h] * WIDTH))
        store(chord, at + CURRENT * WIDTH, between / paths.chord_ohm[k])
        store(chord, at + CURRENT_LOW * WIDTH, zero)


def correct_chords(paths, x, x_row, chord):
    """Currents of the chords corrected for their residuals, which ``x`` are the answers to."""
    zero = spread(0.0)
    for k in range(paths.tail.size):
        t, h, at = paths.tail[k], paths.head[k], k * CHORD * WIDTH
        between = load(x, x_row[t] * WIDTH) - load(x, x_row[h] * WIDTH)
        change = (between - load(chord, at + RESIDUAL * WIDTH)) / paths.chord_ohm[k]
        high, low = add_lanes(load(chord, at), load(chord, at + WIDTH), change, zero)
        store(chord, at + CURRENT * WIDTH, high)
        store(chord, at + CURRENT_LOW * WIDTH, low)


def inject_residuals(paths, memory, x_row, injected):
    """Fill in the currents into the super-nodes (rows · 8,), A, whose potentials `correct_chords` asks for."""
    injected[:] = 0.0
    for k in range(paths.tail.size):
        t, h = x_row[paths.tail[k]] * WIDTH, x_row[paths.head[k]] * WIDTH
        current = load(memory.chord, (k * CHORD + RESIDUAL) * WIDTH) / paths.chord_ohm[k]
        store(injected, t, load(injected, t) + current)
        store(injected, h, load(injected, h) - current)


def take(node, k, high, low):
    """Add a current to what leaves node ``k`` by its element towards the root."""
    at = k * NODE * WIDTH
    high_sum, low_sum = add_lanes(load(node, at), load(node, at + FLOW_LOW * WIDTH), high, low)
    store(node, at, high_sum)
    store(node, at + FLOW_LOW * WIDTH, low_sum)
    store(node, at + NET * WIDTH, load(node, at + NET * WIDTH) + high)
    store(node, at + MOST * WIDTH, larger(magnitude(high), load(node, at + MOST * WIDTH)))


def collect(paths, given, chord, node):
    """What chords and current sources bring to the nodes."""
    zero = spread(0.0)
    node[:] = 0.0
    for k in range(paths.tail.size):
        at = k * CHORD * WIDTH
        high, low = load(chord, at + CURRENT * WIDTH), load(chord, at + CURRENT_LOW * WIDTH)
        take(node, paths.tail[k], -high, -low)
        take(node, paths.head[k], high, low)
    for k in range(paths.source.size):
        value = load(given, paths.source_row[k] * WIDTH)
        take(node, paths.source_tail[k], -value, zero)
        take(node, paths.source_head[k], value, zero)


def tree_currents(paths, node):
    """Add up the currents from the leaves to the root.

    Returns the largest net current of a node, A, its largest share of the largest current there, and a sum that is
    finite where all of them are.
    """
    worst, share, total = spread(0.0), spread(0.0), spread(0.0)
    for k in range(paths.up.size - 1, -1, -1):
        at = k * NODE * WIDTH
        net, most = load(node, at + NET * WIDTH), load(node, at + MOST * WIDTH)
        if k > 0:
            high, low = load(node, at), load(node, at + FLOW_LOW * WIDTH)
            take(node, paths.up[k], high, low)
            net, most = net - high, larger(magnitude(high), most)
            store(node, at + MOST * WIDTH, most)
        net = magnitude(net)
        total = total + net
        worst, share = update_maxima(worst, share, net, most)
    return worst, share, total


def tree_potentials(paths, given, node, potential):
    """Add up the drops from the root to the leaves.

    Returns how far drops are off the differences of rounded potentials, V, the same relative to these, and the largest
    potential, V.
    """
    worst, share, reach, zero = spread(0.0), spread(0.0), spread(0.0), spread(0.0)
    store(potential, 0, zero)
    store(potential, VOLT_LOW * WIDTH, zero)
    for k in range(1, paths.up.size):
        at, above = k * NODE * WIDTH, paths.up[k] * POTENTIALS * WIDTH
        drop, low, shown = zero, zero, zero
        if paths.ohm[k] != 0.0:
            high = load(node, at)
            drop, low = multiply(paths.ohm[k], high, load(node, at + FLOW_LOW * WIDTH))
            shown = paths.ohm[k] * high
        elif paths.given[k] >= 0:
            drop = shown = paths.sign[k] * load(given, paths.given[k] * WIDTH)
        v_up = load(potential, above)
        v, v_low = add_lanes(v_up, load(potential, above + VOLT_LOW * WIDTH), drop, low)
        store(potential, k * POTENTIALS * WIDTH, v)
        store(potential, k * POTENTIALS * WIDTH + VOLT_LOW * WIDTH, v_low)
        reach = larger(magnitude(v), reach)
        worst, share = printed(worst, share, shown, v, v_up)
    return worst, share, reach


def printed(worst, share, drop, v, w):
    """Violations by the difference of two rounded potentials that should be a drop, V."""
    size, off = magnitude(drop), magnitude(drop - (v - w))
    off = where_above(off, AGREES * size, off, spread(0.0))
    return update_maxima(worst, share, off, larger(larger(magnitude(v), magnitude(w)), size))


def write_samples(paths, memory, given, begin, end, v, current):
    """Fill in the rows ``begin`` … ``end`` − 1 of potentials (samples, n_nodes), V, and of branch currents
    (samples, m), A, with the first of the eight samples."""
    count = end - begin
    for k in range(paths.node.size):
        at, node, edge = k * NODE * WIDTH, paths.node[k], paths.edge[k]
        for s in range(count):
            v[begin + s, node] = memory.potential[k * POTENTIALS * WIDTH + s] + 0.0
        if k > 0:
            for s in range(count):
                current[begin + s, edge] = paths.sign[k] * memory.node[at + s] + 0.0
    for k in range(paths.chord.size):
        e = paths.chord[k]
        for s in range(count):
            current[begin + s, e] = memory.chord[k * CHORD * WIDTH + s] + 0.0
    for k in range(paths.source.size):
        e = paths.source[k]
        for s in range(count):
            current[begin + s, e] = given[paths.source_row[k] * WIDTH + s]
