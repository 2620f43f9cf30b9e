"""Arrays shared by the samples of one circuit, allocated once in three blocks of memory."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim._graphs import Tracks
from circuitsim.engine.steps import Forest

FACTORS, FACTOR_ENTRIES = 6, 1 << 20
"""Maximum number of cached factors (one for each set of conducting diodes), and of numbers in them if there are more
than two factors."""


class Pendant(NamedTuple):
    """Pendant nodes, the outermost first (`circuitsim.engine.small.currents`)."""

    node: np.ndarray  # (n_nodes,)
    above: np.ndarray  # (n_nodes,): the neighbour of each pendant node
    found: np.ndarray  # (1,): 1 + their number, 0: unknown
    member: np.ndarray  # (n_nodes,): whether a node is one of them
    closed: np.ndarray  # the diodes that conduct
    work: np.ndarray  # (4, n_nodes)


class Workspace(NamedTuple):
    """Conductances, cached factors (one per row) and scratch; sizes in `workspace`."""

    g: np.ndarray  # of plan.resistor, S
    strength: np.ndarray  # sum of conductances at each coordinate, S
    base: np.ndarray  # the slots' conductances without diodes, S
    weight: np.ndarray  # the last row: with a conductance in place of each diode (`guess_diodes`)
    multiplier: np.ndarray
    pivot: np.ndarray
    factored: np.ndarray  # the closed diodes of each factor
    held: np.ndarray  # whether all its pivots are positive
    reach: np.ndarray  # potentials for 1 A into each node, V; 0 where every part is tied well to the others
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
    grown: np.ndarray  # (2,): 1 + the diodes of the current forest, 0 if there is none; whether the last factor is
    root: np.ndarray
    tracks: Tracks
    some: np.ndarray
    a: np.ndarray
    b: np.ndarray
    dirty: np.ndarray
    spanned: np.ndarray  # the diodes of the current forest
    closed: np.ndarray
    wanted: np.ndarray
    carries: np.ndarray
    equal: np.ndarray  # the diodes whose ends are equal, where they close loops
    low: np.ndarray  # (n_nodes,): low-order parts of the potentials, V
    pendant: Pendant


def factors(fill, n):
    """Number of cached factors."""
    return max(2, min(FACTORS, FACTOR_ENTRIES // (2 * fill + 2 * n + 1)))


def workspace_size(plan):
    """Numbers (float), places (int) and marks (bool) that a `workspace` needs."""
    nodes, n, fill, r = plan.coordinate.size, plan.n, plan.rows.size, plan.resistor.size
    d, f = plan.diode.size, factors(fill, n)
    numbers = r + (f + 2) * (fill + n) + (f + 1) * (fill + n) + (f + 1) * n + 6 * (n + 1) + 7 * nodes + 2 * d
    return numbers, f + 13 + 8 * n + 5 * d + 6 * nodes, (f + 6) * d + 2 * f + n + 1 + nodes


def workspace(plan, numbers, places, marks):
    """Work arrays in blocks of memory with the sizes of `workspace_size`; ``places`` zero (no factors) at first."""
    nodes, n, fill = plan.coordinate.size, plan.n, plan.rows.size
    d, f, r, s, c = plan.diode.size, factors(fill, n), plan.resistor.size, fill + n, n + 1
    # Numbers: of resistors, slots, factors, then rows of equal lengths.
    base, multiplier = r + s, r + s + (f + 1) * s
    pivot = multiplier + (f + 1) * fill
    reach = pivot + (f + 1) * n
    rows = reach + (f + 1) * n
    of_nodes = rows + 6 * c
    of_diodes = of_nodes + 7 * nodes
    x, v, i = numbers[rows:of_nodes].reshape(6, c), numbers[of_nodes:of_diodes].reshape(7, nodes), numbers[of_diodes:]
    held, some = f * d, f * d + 2 * f
    on, other = marks[some : some + 6 * d].reshape(6, d), some + 6 * d
    own = f + 4
    kept = own + 5 * d
    last = kept + 6 * nodes
    end = last + 7 * c
    e, p, k = places[own:kept].reshape(5, d), places[kept:last].reshape(6, nodes), places[last:end].reshape(7, c)
    return Workspace(
        numbers[:r],
        x[0],
        numbers[r:base],
        numbers[base:multiplier].reshape(f + 1, s),
        numbers[multiplier:pivot].reshape(f + 1, fill),
        numbers[pivot:reach].reshape(f + 1, n),
        marks[:held].reshape(f, d),
        marks[held : held + f],
        numbers[reach : rows - n].reshape(f, n),
        marks[held + f : some],
        places[: f + 1],
        x[1],
        x[2],
        x[3],
        x[4],
        x[5],
        numbers[rows - n : rows],
        v[0],
        v[1],
        i[:d],
        i[d:],
        v[2],
        v[3],
        v[4:6],
        Forest(k[0], k[1], k[2], k[3]),
        places[f + 1 : f + 3],
        k[4],
        Tracks(places[end:], k[5], places[own : own + 2 * d], k[6]),
        e[2],
        e[3],
        e[4],
        marks[other : other + c],
        on[0],
        on[1],
        on[2],
        on[3],
        on[4],
        v[6],
        Pendant(p[0], p[1], places[f + 3 : f + 4], marks[other + c :], on[5], p[2:]),
    )


def fresh(plan):
    """A separate workspace."""
    numbers, places, marks = workspace_size(plan)
    return workspace(plan, np.empty(numbers), np.zeros(places, np.int64), np.empty(marks, np.bool_))
