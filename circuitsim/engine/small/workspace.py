"""The arrays that samples of one circuit share, laid out once in three stretches of memory."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim._graphs import Tracks
from circuitsim.engine.steps import Forest

FACTORS, FACTOR_ENTRIES = 6, 1 << 20
"""Most factors (one for each set of conducting diodes) kept at hand, and most numbers in them if they are more than
two."""


class Walk(NamedTuple):
    """A spanning tree of the nodes, from node 0 outwards (`circuitsim.engine.small.spanning`)."""

    order: np.ndarray  # (n_nodes,)
    edge: np.ndarray  # (n_nodes,): the element to the parent, −1 at the root
    parent: np.ndarray  # (n_nodes,)
    above: np.ndarray  # (n_nodes,): the parent, by node
    depth: np.ndarray  # (n_nodes,): by node
    live: np.ndarray  # (n_nodes,): whether the element to the parent may carry current, by node
    chord: np.ndarray  # (r,): resistors outside the tree that may carry current


class Stubs(NamedTuple):
    """Nodes that hang on one other by resistors, the outermost first (`circuitsim.engine.small.stubs`)."""

    node: np.ndarray  # (n_nodes,)
    above: np.ndarray  # (n_nodes,): the node that each one hangs on
    found: np.ndarray  # (1,): 1 + how many, 0: unknown
    still: np.ndarray  # (n_nodes,): whether a node is one of them
    closed: np.ndarray  # the diodes that conduct
    work: np.ndarray  # (4, n_nodes)


class Workspace(NamedTuple):
    """Conductances, factors at hand (one a row) and scratch; sizes in `workspace`."""

    g: np.ndarray  # of plan.resistor, S
    strength: np.ndarray  # what meets at each coordinate, S
    base: np.ndarray  # the slots' conductances without diodes, S
    weight: np.ndarray  # the last row: with a conductance in place of each diode (`guess_diodes`)
    multiplier: np.ndarray
    pivot: np.ndarray
    factored: np.ndarray  # the diodes that each factor holds closed
    held: np.ndarray  # whether all its pivots are positive
    reach: np.ndarray  # potentials that 1 A into each node leads to, V; 0 where every part is tied well to the others
    reached: np.ndarray  # whether these are known
    stamp: np.ndarray  # when each factor was last used, 0: never; last: the clock
    work: np.ndarray
    x: np.ndarray
    change: np.ndarray
    w: np.ndarray
    driven: np.ndarray
    floating_current: np.ndarray
    need: np.ndarray
    size: np.ndarray
    noise: np.ndarray
    flow: np.ndarray
    offset: np.ndarray
    injected: np.ndarray
    at_node: np.ndarray
    forest: Forest
    grown: np.ndarray  # (2,): 1 + the diodes of the forest at hand, 0 if there is none; whether the last factor is
    root: np.ndarray
    tracks: Tracks
    some: np.ndarray
    a: np.ndarray
    b: np.ndarray
    dirty: np.ndarray
    spanned: np.ndarray  # the diodes of the forest at hand
    closed: np.ndarray
    wanted: np.ndarray
    carries: np.ndarray
    equal: np.ndarray  # the diodes whose ends are equal, where they close loops
    walk: Walk
    walked: np.ndarray  # (2,): whether there is a tree at hand, its chords that may carry current
    walked_with: np.ndarray  # the diodes that conduct in it
    low: np.ndarray  # (n_nodes,): what rounding the potentials to doubles leaves over, V
    stubs: Stubs


def factors(fill, n):
    """How many factors are kept at hand."""
    return max(2, min(FACTORS, FACTOR_ENTRIES // (2 * fill + 2 * n + 1)))


def workspace_size(plan):
    """Numbers (float), places (int) and marks (bool) that a `workspace` needs."""
    nodes, n, fill, r = plan.coordinate.size, plan.n, plan.rows.size, plan.resistor.size
    d, f = plan.diode.size, factors(fill, n)
    numbers = r + fill + n + (f + 1) * (2 * fill + 2 * n) + 6 * (n + 1) + n + 2 * d + 7 * nodes + f * n
    return numbers, f + 1 + 8 * (n + 1) + 5 * d + 3 + 12 * nodes + r + 3, f * d + 2 * f + n + 1 + 7 * d + nodes


def workspace(plan, numbers, places, marks):
    """Work arrays in stretches of memory as large as `workspace_size` says; ``places`` zero (no factors) at first."""
    nodes, n, fill = plan.coordinate.size, plan.n, plan.rows.size
    d, f, r, s, c = plan.diode.size, factors(fill, n), plan.resistor.size, fill + n, n + 1
    b = f + 1
    e = r + s + b * (s + fill + n)
    t = e + 5 * c + n
    k = t + 2 * d
    p = f + 1
    q = p + 8 * c + 1
    m = f * d + f
    h = q + 5 * d + 2
    i = h + 6 * nodes + r
    return Workspace(
        numbers[:r],
        numbers[k + 6 * nodes : k + 6 * nodes + c],
        numbers[r : r + s],
        numbers[r + s : r + s + b * s].reshape(b, s),
        numbers[r + s + b * s : r + s + b * (s + fill)].reshape(b, fill),
        numbers[r + s + b * (s + fill) : e].reshape(b, n),
        marks[: f * d].reshape(f, d),
        marks[f * d : m],
        numbers[k + 7 * nodes + c : k + 7 * nodes + c + f * n].reshape(f, n),
        marks[m + c + 7 * d + nodes : m + c + 7 * d + nodes + f],
        places[:p],
        numbers[e : e + c],
        numbers[e + c : e + 2 * c],
        numbers[e + 2 * c : e + 3 * c],
        numbers[e + 3 * c : e + 4 * c],
        numbers[e + 4 * c : e + 5 * c],
        numbers[e + 5 * c : t],
        numbers[k : k + nodes],
        numbers[k + nodes : k + 2 * nodes],
        numbers[t : t + d],
        numbers[t + d : k],
        numbers[k + 2 * nodes : k + 3 * nodes],
        numbers[k + 3 * nodes : k + 4 * nodes],
        numbers[k + 4 * nodes : k + 6 * nodes].reshape(2, nodes),
        Forest(
            places[p : p + c], places[p + c : p + 2 * c], places[p + 2 * c : p + 3 * c], places[p + 3 * c : p + 4 * c]
        ),
        places[q + 5 * d : h],
        places[p + 4 * c : p + 5 * c],
        Tracks(
            places[p + 5 * c : p + 6 * c + 1],
            places[p + 6 * c + 1 : p + 7 * c + 1],
            places[q : q + 2 * d],
            places[p + 7 * c + 1 : q],
        ),
        places[q + 2 * d : q + 3 * d],
        places[q + 3 * d : q + 4 * d],
        places[q + 4 * d : q + 5 * d],
        marks[m : m + c],
        marks[m + c : m + c + d],
        marks[m + c + d : m + c + 2 * d],
        marks[m + c + 2 * d : m + c + 3 * d],
        marks[m + c + 3 * d : m + c + 4 * d],
        marks[m + c + 4 * d : m + c + 5 * d],
        Walk(
            places[h : h + nodes],
            places[h + nodes : h + 2 * nodes],
            places[h + 2 * nodes : h + 3 * nodes],
            places[h + 3 * nodes : h + 4 * nodes],
            places[h + 4 * nodes : h + 5 * nodes],
            places[h + 5 * nodes : h + 6 * nodes],
            places[h + 6 * nodes : i],
        ),
        places[i : i + 2],
        marks[m + c + 5 * d : m + c + 6 * d],
        numbers[k + 6 * nodes + c : k + 7 * nodes + c],
        Stubs(
            places[i + 2 : i + 2 + nodes],
            places[i + 2 + nodes : i + 2 + 2 * nodes],
            places[i + 2 + 2 * nodes : i + 3 + 2 * nodes],
            marks[m + c + 7 * d : m + c + 7 * d + nodes],
            marks[m + c + 6 * d : m + c + 7 * d],
            places[i + 3 + 2 * nodes : i + 3 + 6 * nodes].reshape(4, nodes),
        ),
    )


def fresh(plan):
    """A workspace of its own."""
    numbers, places, marks = workspace_size(plan)
    return workspace(plan, np.empty(numbers), np.zeros(places, np.int64), np.empty(marks, np.bool_))
