"""The small driver: primal–dual active sets on a `Plan` over a scalar factor, all in one kernel.

The steps are those of the large driver (`circuitsim.engine.steps`). The certificate decides about the result; where it
fails, and for loops, degeneracies and nonunique potentials, the engine takes over.

The arrays of `Workspace` are shared by the samples of one circuit, allocated once.
"""

from __future__ import annotations

import enum
from functools import partial
from typing import NamedTuple

import numpy as np

from circuitsim._graphs import Tracks, new_tracks, unite
from circuitsim.circuit.elements import CURRENT
from circuitsim.engine.small.elimination import HEAD, NOWHERE, factorise, lower, substitute
from circuitsim.engine.small.pointers import Pinned
from circuitsim.engine.steps import (
    RELAXED,
    SETTLED,
    STEPS,
    Forest,
    alternate,
    begin,
    conductances_between,
    contract_diodes,
    copy,
    finish,
    gather,
    same,
    start,
)

FACTORS, FACTOR_ENTRIES = 6, 1 << 20
"""Maximum number of cached factors (one for each set of conducting diodes), and of numbers in them if there are more
than two factors."""


class Currentless(NamedTuple):
    """What carries no current, whatever the resistances are (`circuitsim.engine.small.single.find_currentless`)."""

    live: np.ndarray  # (m,): resistors and voltage sources that may carry any
    idle: np.ndarray  # (n_nodes,): whether the edge of a spanning tree to the node's parent carries none
    grounded: np.ndarray  # (n_nodes,): whether no edge from there to ground does
    node: np.ndarray  # (n_nodes,): from the roots of the tree outwards
    above: np.ndarray  # (n_nodes,): the parent of each of them
    found: np.ndarray  # (1,): their number, 0: without a tree


class Workspace(NamedTuple):
    """Conductances, cached factors (one per row) and scratch, for n coordinates and ground, f factors, d diodes."""

    g: np.ndarray  # of plan.resistor, S
    ohms: np.ndarray  # of plan.resistor at the last solution, Ω
    base: np.ndarray  # the slots' conductances without diodes, S
    weight: np.ndarray  # (f + 1, slots); the last row: with a conductance in place of each diode (`guess_diodes`)
    multiplier: np.ndarray
    pivot: np.ndarray
    held: np.ndarray  # (f,): whether all its pivots are positive
    tied: np.ndarray  # (f,): whether every part is tied well to the others (`TIED`)
    factored: np.ndarray  # (f, d): the closed diodes of each factor
    stamp: np.ndarray  # when each factor was last used, 0: never; last: the clock
    floating_current: np.ndarray  # (n,)
    strength: np.ndarray  # (n + 1,): sum of conductances at each coordinate, S
    work: np.ndarray
    x: np.ndarray
    change: np.ndarray
    w: np.ndarray
    driven: np.ndarray
    need: np.ndarray  # (n_nodes,)
    size: np.ndarray
    offset: np.ndarray
    injected: np.ndarray
    low: np.ndarray  # low-order parts of the potentials, V
    at_node: np.ndarray  # (2, n_nodes)
    noise: np.ndarray  # (d,)
    flow: np.ndarray
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
    currentless: Currentless
    signed: np.ndarray  # (1,): whether resistances may be negative


def memory(block: np.ndarray, signed: bool) -> Pinned:
    """A new `Workspace` for the plan in ``block``, without factors; ``signed``: resistances may be negative."""
    nodes, m, _, r, d, n, fill, _ = block[:HEAD].tolist()
    f, c = max(2, min(FACTORS, FACTOR_ENTRIES // (2 * fill + 2 * n + 1))), n + 1
    numbers, places, marks = np.empty, partial(np.zeros, dtype=np.int64), partial(np.zeros, dtype=bool)
    made = (
        *numbers((2, r)),
        numbers(fill + n),
        *(numbers((f + 1, size)) for size in (fill + n, fill, n)),
        *marks((2, f)),
        marks((f, d)),
        places(f + 1),
        numbers(n),
        *numbers((6, c)),
        *numbers((5, nodes)),
        numbers((2, nodes)),
        *numbers((2, d)),
        Forest(*places((4, c))),
        places(2),
        places(c),
        new_tracks(c, d),
        *places((3, d)),
        marks(c),
        *marks((5, d)),
        Currentless._make((marks(m), *marks((2, nodes)), *places((2, nodes)), places(1))),
        np.full(1, signed),
    )
    return Pinned(Workspace._make(made))


class Outcome(enum.IntEnum):
    """Result of one solution; integers, so that kernels can store them in arrays."""

    CONVERGED = 0
    """Potentials and currents are unique."""
    NONUNIQUE_CURRENTS = 1
    """Conducting diodes close loops; their currents are not unique."""
    SINGULAR = 2
    """Potentials are not unique, or voltage constraints close a loop."""
    MAX_ITERATIONS = 3
    """The active set did not become optimal, or a net current has no path to ground."""
    NONCONVEX = 4
    """Negative conductances make the energy concave."""
    TOPOLOGY_CHANGED = 5
    """A resistance changed from or to zero."""
    OUT_OF_RANGE = 6
    """An element value is out of range."""
    CANCELLING_SOURCES = 7
    """Potentials are unique, but current sources cancel at a node, whose sum needs refinement."""


IDLE, CARRIES, ON_LOOP = 0, 1, 2
"""States of a diode: no current; a current above rounding; ends on a loop of equal potentials (added to the others)."""


NOISE = 1e-13
"""Rounding of a sum or difference, relative to its terms."""
TIGHT = 1e-12
"""Relative difference of the ends' potentials below which a blocking diode could also carry current."""
TIED = 1e-2
"""Minimum pivot, relative to the conductances at a coordinate, that keeps amplified rounding below `TIGHT`."""
MAX_ITERATIONS = 40
"""Maximum number of linear circuits to solve before the large driver takes over."""
MANY = 40
"""Minimum number of diodes for which alternating directions make the initial guess: one factor and a few substitutions,
instead of two or three iterations."""
LEVELS = 10
"""Number of powers of four by which an initial guess distinguishes currents."""
FEW = 50
"""Maximum number of nodes for which the residual is always corrected once more: it takes a microsecond, and people read
the last digits of so few numbers (no current flows through the galvanometer of a balanced bridge)."""


def take_conductances(plan, value, space):
    """Fill in the conductances of ``plan.resistor``, S; invalidates cached factors and the forest rooted by the old
    ones."""
    strength = space.strength
    strength[:] = 0.0
    space.base[:] = 0.0
    for r in range(space.g.size):
        g = 1.0 / value[plan.resistor[r]]
        space.g[r] = g
        strength[plan.coordinate[plan.resistor_first[r]]] += g
        strength[plan.coordinate[plan.resistor_second[r]]] += g
        if plan.resistor_slot[r] != NOWHERE:
            space.base[plan.resistor_slot[r]] += g
    space.stamp[:] = 0
    space.grown[:] = 0


def refactor(plan, space, closed):
    """The factor with these diodes closed: a cached one, or an update of the latest one.

    Returns
    -------
    int
        Its number in the workspace; -1 if the energy is not convex.
    """
    stamp = space.stamp
    clock = stamp.size - 1
    latest, oldest = 0, 0
    for f in range(clock):
        if stamp[f] > 0 and same(space.factored[f], closed):
            stamp[clock] += 1
            stamp[f] = stamp[clock]
            return f
        if stamp[f] > stamp[latest]:
            latest = f
        if stamp[f] < stamp[oldest]:
            oldest = f
    dirty, factored = space.dirty, space.factored[oldest]
    if stamp[latest] > 0 and latest != oldest:
        copy(space.weight[latest], space.weight[oldest])
        copy(space.multiplier[latest], space.multiplier[oldest])
        copy(space.pivot[latest], space.pivot[oldest])
        dirty[:] = False
        for e in range(closed.size):
            if closed[e] != space.factored[latest, e]:
                dirty[lower(plan, e)] = True
    else:
        dirty[:] = True
    factored[:] = closed
    stamp[oldest] = 0
    if not factorise(
        plan, space.base, closed, dirty, space.weight[oldest], space.multiplier[oldest], space.pivot[oldest], space.work
    ):
        return -1
    held, tied, pivot = True, True, space.pivot[oldest]
    for k in range(plan.n):
        held = held and pivot[k] > 0.0
        tied = tied and pivot[k] >= TIED * space.strength[k]
    space.held[oldest] = held
    space.tied[oldest] = tied
    stamp[clock] += 1
    stamp[oldest] = stamp[clock]
    return oldest


def floating_net_currents(plan, space, factor):
    """Fill in +1 or −1 for each coordinate of a part driven by a net current, 0 elsewhere."""
    driven = space.driven
    driven[:] = 0.0
    if space.held[factor]:
        return
    fill = plan.rows.size
    weight, multiplier, pivot = space.weight[factor], space.multiplier[factor], space.pivot[factor]
    for k in range(plan.n - 1, -1, -1):
        if pivot[k] == 0.0:
            driven[k] = np.sign(space.floating_current[k])
        elif weight[fill + k] == 0.0:
            for q in range(plan.col_ptr[k], plan.col_ptr[k + 1]):
                if multiplier[q] > 0.0:
                    driven[k] = driven[plan.rows[q]]
                    break


def solve_active_set(plan, max_iterations, space, v):
    """Find which diodes conduct, and the node voltages.

    Parameters
    ----------
    plan : Plan
    max_iterations : int
        Maximum number of linear circuits; 0: one, with the diodes as given.
    space : Workspace
        With conductances (`take_conductances`), offsets and injected currents. ``closed`` is the initial guess; on
        return the diodes of a spanning forest that conduct. ``flow`` is filled with the diode currents, A.
    v : (n_nodes,) float array
        Filled: potentials, V.

    Returns
    -------
    status, iterations : int
        An `Outcome`: ``CONVERGED`` (uniqueness is a separate question: `uniqueness`), ``MAX_ITERATIONS`` or
        ``NONCONVEX``; the number of linear circuits.
    """
    count, closed = 0, space.closed
    while True:
        count += 1
        forest = contract_diodes(plan, space)
        factor = refactor(plan, space, closed)
        if factor < 0:
            return Outcome.NONCONVEX, count
        space.x[:] = 0.0
        begin(plan, forest, space, v)
        refined = False
        while True:
            gather(plan, space.need, space.change)
            space.change[plan.n] = 0.0
            substitute(plan, space.multiplier[factor], space.pivot[factor], space.change, space.floating_current)
            if not refined:
                floating_net_currents(plan, space, factor)
            wrong, rounded = finish(plan, space, v, NOISE)
            rounded = rounded and v.size > FEW
            if refined or rounded or (wrong and count <= max_iterations):
                break
            refined = True
        if not wrong or count > max_iterations:
            break
        copy(space.wanted, closed)
    if max_iterations > 0:
        stray = wrong
        for net in space.driven:
            stray = stray or net != 0.0
        if stray:
            return Outcome.MAX_ITERATIONS, count
    return Outcome.CONVERGED, count


def guess_diodes(plan, space, v):
    """Close the diodes that conduct by alternating directions; all are open initially, and stay open if the factor
    fails."""
    f, siemens, w, drive, closed = space.stamp.size - 1, space.noise, space.flow, space.w, space.closed
    conductances_between(plan, space.strength, siemens)
    if space.grown[1] == 0:
        base = space.weight[0]  # in place of the first cached factor
        space.stamp[0] = 0
        copy(space.base, base)
        for d in range(siemens.size):
            if plan.diode_slot[d] != NOWHERE:
                base[plan.diode_slot[d]] += siemens[d]
        space.dirty[:] = True
        if not factorise(
            plan, base, closed, space.dirty, space.weight[f], space.multiplier[f], space.pivot[f], space.work
        ):
            return
        space.grown[1] = 1
    space.x[:] = 0.0
    w[:] = 0.0
    start(plan, space, v)
    copy(space.change, drive)
    for step in range(STEPS + 1):
        if step > 0:
            space.change[plan.n] = 0.0
            substitute(plan, space.multiplier[f], space.pivot[f], space.change, space.floating_current)
            copy(space.change, space.x)
            copy(drive, space.change)
        relaxed = RELAXED if step > 0 else 0.0
        if alternate(plan, space.offset, siemens, space.x, relaxed, w, space.change) <= SETTLED * w.size and step > 1:
            break
    # Of diodes that close loops, those with the largest currents conduct: approximately ordered, without sorting.
    joined, least = space.tracks.put, 0.0
    for k in range(plan.n + 1):
        joined[k] = k
    for d in range(w.size):
        w[d] *= siemens[d]
        least = max(least, w[d])
    for level in range(LEVELS + 1):
        least = 0.25 * least if level < LEVELS else 0.0
        for d in range(w.size):
            if w[d] > least and not closed[d]:
                closed[d] = unite(joined, plan.coordinate[plan.anode[d]], plan.coordinate[plan.cathode[d]])


def uniqueness(plan, v, space):
    """An `Outcome`: whether other potentials (``SINGULAR``) or other currents (``NONUNIQUE_CURRENTS``) give an
    operating point too.

    Potentials are unique if every coordinate is fixed by resistors and by diodes with a definite current, which
    ``space.carries`` records; currents if the diodes with equal ends (up to rounding) close no loop. The current of
    diodes out of a part fixed by them alone is the sum of the residuals at its nodes, with the rounding of all of
    these.
    """
    if not plan.regular:
        return Outcome.SINGULAR
    carries, closed, total = space.carries, space.closed, 0.0
    for k in range(v.size):
        total += space.size[k]
    for last in range(2):
        for d in range(closed.size):
            carries[d] = closed[d] and abs(space.flow[d]) > NOISE * (space.noise[d] if last else total)
        factor = refactor(plan, space, carries)
        if factor < 0 or not space.held[factor]:
            return Outcome.SINGULAR
    # The closed diodes are a forest, rooted when it was grown: which of the others would join two of its trees?
    joined, reach = space.tracks.put, np.abs(space.offset).max()
    for k in range(plan.n + 1):
        joined[k] = space.root[k]
    for d in range(closed.size):
        if closed[d] or not nearly(plan, space, v, d, TIGHT, reach):
            continue
        a, c = plan.coordinate[plan.anode[d]], plan.coordinate[plan.cathode[d]]
        if not unite(joined, a, c):
            return Outcome.NONUNIQUE_CURRENTS
    return Outcome.CONVERGED


def nearly(plan, space, v, d, share, reach):
    """Whether diode ``d`` blocks, if it does, by less than this fraction of its ends' potentials.

    If voltage constraints join its ends, offsets decide: potentials have the rounding of the rest of the circuit. If
    conducting diodes join them too, or constraints alone, their voltage is a sum of sources: zero up to this
    fraction of the largest offset ``reach``, V. The large driver then checks it against the members of its loop.
    """
    a, c = plan.anode[d], plan.cathode[d]
    high, low = v[a], v[c]
    if plan.coordinate[a] == plan.coordinate[c]:
        high, low = space.offset[a], space.offset[c]
    scale = max(abs(high), abs(low))
    if space.root[plan.coordinate[a]] == space.root[plan.coordinate[c]]:
        scale = max(scale, reach)
    return low - high <= share * scale


def mark_equal(plan, space, v):
    """Mark the diodes whose ends are equal; returns whether some of them join trees of the forest."""
    joins, reach = False, np.abs(space.offset).max()
    for d in range(space.closed.size):
        a, c = plan.coordinate[plan.anode[d]], plan.coordinate[plan.cathode[d]]
        space.equal[d] = space.closed[d] or nearly(plan, space, v, d, NOISE, reach)
        joins = joins or (space.equal[d] and space.root[a] != space.root[c])
    return joins


def solve_sample(plan, max_iterations, space, v, merged):
    """The operating point of one sample, with the sources in the workspace, and there the initial guess ``closed``; if
    the iterations do not terminate they restart with none. On return those of a forest that conduct.

    With ``max_iterations`` 0 the diodes stay as they are. Otherwise those that are closed but carry no current are
    opened at the end. Where conducting diodes close loops, the currents are those of some forest of conducting diodes;
    with ``merged``, for callers that choose currents themselves, those of a forest of all diodes with equal ends
    (``space.equal``).

    Parameters
    ----------
    merged : bool

    Returns
    -------
    status, iterations : int
        An `Outcome`; the linear circuits solved.
    """
    last, status, count, started, closed = max_iterations == 0, Outcome.CONVERGED, 0, False, space.closed
    for conducts in closed:
        started = started or conducts
    if not started and max_iterations > 0 and closed.size >= MANY:
        guess_diodes(plan, space, v)
        started, count = True, 1
    while True:  # a single call of `solve_active_set`, since each call is compiled separately
        limit = 0 if last else max_iterations
        rest, tried = solve_active_set(plan, limit, space, v)
        again = False
        if not last:
            count += tried
            if rest == Outcome.MAX_ITERATIONS and started:
                started = False
                closed[:] = False
                continue
            status = uniqueness(plan, v, space) if rest == Outcome.CONVERGED else rest
            if status == Outcome.CONVERGED or (merged and status == Outcome.NONUNIQUE_CURRENTS):
                again = not same(closed, space.carries)
                copy(space.carries, closed)
        # Ends may turn out equal only once those of the diodes joined before are exactly so.
        if not again and merged and status == Outcome.NONUNIQUE_CURRENTS:
            again = mark_equal(plan, space, v)
            if again:
                copy(space.equal, closed)
        if not again:
            break
        last = True
    return status, count


CLEAN = 1e-12
"""A sum of source currents below this fraction of its largest term has cancelled."""


def injections(kind, first, second, value, injected):
    """Fill in the currents injected by current sources, A; returns whether none of these sums cancels, except at
    ground."""
    injected[:] = 0.0
    for e in range(kind.size):
        if kind[e] == CURRENT:
            injected[first[e]] -= value[e]
            injected[second[e]] += value[e]
    clear = True
    for e in range(kind.size):
        if kind[e] == CURRENT:
            for k in (first[e], second[e]):
                clear = clear and (k == 0 or not abs(injected[k]) < CLEAN * abs(value[e]))
    return clear
