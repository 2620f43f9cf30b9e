"""Solving one circuit at a time, for callers that count microseconds: a plan in few arrays, results in one.

A call of compiled code costs a tenth of a microsecond per array argument, as does making an array. So `prepare` packs a
plan and the circuit's columns; `solve_once` unpacks them (at no cost in compiled code), uses existing memory, and fills
in one block of numbers.
"""

from __future__ import annotations

import numpy as np

from circuitsim.circuit.elements import CURRENT, DIODE, RESISTOR, VOLTAGE
from circuitsim.engine.small.active_set import (
    CARRIES,
    IDLE,
    NOISE,
    ON_LOOP,
    Outcome,
    constraint_currents,
    injections,
    refactor,
    solve_sample,
    take_conductances,
    workspace,
    workspace_size,
)
from circuitsim.engine.small.branches import certify, refine, take_tree
from circuitsim.engine.small.currents import ACCURATE, largest, measure, reach
from circuitsim.engine.small.elimination import Plan, plan
from circuitsim.engine.small.pointers import kept, pointer
from circuitsim.engine.steps import offsets

ARRAYS = 18
"""Arrays of signed integers in a packed circuit: those of a `Plan`, then kind, first and second of the elements."""
N, REGULAR, ENTRIES, MEMORY, PLACES, MARKS, NUMBERS, SIGNED, HEAD = range(ARRAYS + 1, ARRAYS + 10)
"""Entries of its head, after the start of each array and the end of the last one: n, whether it is regular, entries of
the factor, start and size of the memory of a `circuitsim.engine.small.active_set.Workspace`; whether resistances may be
negative."""

PROVE = -1
"""Value of the iterations for which `solve_once` proves its previous result, with currents in loops chosen since."""
ALL, REST, LOOPS = range(3)
"""What `refine_once` refines and proves: all currents; those that are unique, before currents in loops of diodes are
chosen; the result of that choice."""

NO_GUESS = np.zeros(0)
NO_GUESS.flags.writeable = False  # as currents of operating points are: one kind of array, one compilation


def prepare(kind, first, second, value, n_nodes, late_node, limit):
    """The plan of a circuit (see `circuitsim.engine.small.elimination.plan`) and its columns in one block of memory.

    Returns
    -------
    int64 array
        A head, the arrays, room for the plan's arrays of uint32 and for the workspace's ``places`` and ``marks``.
        Empty if one elimination takes more updates than ``limit``.
    """
    made = plan(kind, first, second, value, n_nodes, late_node, limit)
    if made.coordinate.size == 0:
        return np.zeros(0, np.int64)
    arrays = (
        made.coordinate,
        made.tree_node,
        made.tree_parent,
        made.tree_edge,
        made.resistor,
        made.resistor_slot,
        made.resistor_first,
        made.resistor_second,
        made.diode,
        made.diode_slot,
        made.anode,
        made.cathode,
        made.col_ptr,
        made.supernode_end,
        made.row_ptr,
        kind.astype(np.int64),
        first.copy(),
        second.copy(),
    )
    at = HEAD
    for k in range(len(arrays)):
        at += arrays[k].size
    numbers, places, marks = workspace_size(made)
    entries = made.rows.size
    packed = np.zeros(at + uint32_words(3 * entries) + places + bool_words(marks), np.int64)
    packed[N], packed[REGULAR], packed[ENTRIES] = made.n, made.regular, entries
    packed[PLACES], packed[MARKS], packed[NUMBERS] = places, marks, numbers + made.resistor.size
    packed[ARRAYS] = at
    at = HEAD
    for k in range(len(arrays)):
        packed[k] = at
        for e in range(arrays[k].size):
            packed[at + e] = arrays[k][e]
        at += arrays[k].size
    packed[MEMORY] = at + uint32_words(3 * entries)
    fill = packed[at : packed[MEMORY]].view(np.uint32)
    for q in range(entries):
        fill[q], fill[entries + q], fill[2 * entries + q] = made.rows[q], made.row_col[q], made.row_slot[q]
    return packed


def uint32_words(count):
    """Number of eight-byte words that hold a number of four-byte values."""
    return (count + 1) // 2


def bool_words(count):
    """Number of eight-byte words that hold a number of bytes."""
    return (count + 7) // 8


def part(packed, k):
    """The k-th array of a packed circuit."""
    return packed[packed[k] : packed[k + 1]]


def unpack(packed):
    """The plan packed by `prepare`: views of its memory."""
    entries = packed[ENTRIES]
    fill = packed[packed[ARRAYS] : packed[MEMORY]].view(np.uint32)
    return Plan(
        packed[N],
        bool(packed[REGULAR]),
        part(packed, 0),
        part(packed, 1),
        part(packed, 2),
        part(packed, 3),
        part(packed, 4),
        part(packed, 5),
        part(packed, 6),
        part(packed, 7),
        part(packed, 8),
        part(packed, 9),
        part(packed, 10),
        part(packed, 11),
        part(packed, 12),
        fill[:entries],
        part(packed, 13),
        part(packed, 14),
        fill[entries : 2 * entries],
        fill[2 * entries : 3 * entries],
    )


def work_memory(packed):
    """The ``places`` and ``marks`` of a workspace laid out by `prepare`."""
    marks = packed[MEMORY] + packed[PLACES]
    return packed[packed[MEMORY] : marks], packed[marks:].view(np.bool_)


def take_values(plan, kind, values, ohms, signed):
    """Check new element values (``CONVERGED``: valid), and whether the resistances differ from ``ohms``.

    ``signed``: resistances may be negative.
    """
    changed, r = False, 0
    for e in range(kind.size):
        value = values[e]
        if kind[e] == DIODE:
            continue
        below = value < 0.0 and kind[e] != VOLTAGE and kind[e] != CURRENT and not (signed and kind[e] == RESISTOR)
        if below or not abs(value) < np.inf:
            return Outcome.OUT_OF_RANGE, changed
        if kind[e] == RESISTOR:
            if r < ohms.size and plan.resistor[r] == e:
                if value == 0.0:
                    return Outcome.TOPOLOGY_CHANGED, changed
                changed = changed or value != ohms[r]
                ohms[r] = value
                r += 1
            elif value != 0.0:
                return Outcome.TOPOLOGY_CHANGED, changed
    return Outcome.CONVERGED, changed


def views(out, m, n):
    """Views of the block of `solve_once`: element values, potentials, branch currents, largest absolute and relative
    residuals."""
    at = 2 * m + n
    return out[:m], out[m : m + n], out[m + n : at], out[at : at + 7], out[at + 7 : at + 14]


def solve_once(packed, numbers, guess, max_iterations, merged, out):
    """The operating point of a packed circuit for the element values in ``out``, with its certificate.

    Parameters
    ----------
    packed : int64 array
        From `prepare`; not shared during the call, and reusable with the same ``numbers``.
    numbers : (packed[NUMBERS],) float array
        Memory that belongs to ``packed``: the resistances of the cached factors, Ω, then the workspace's.
    guess : (m,) float array
        Branch currents of an operating point whose conducting diodes are the initial guess; empty: no diode conducts.
    max_iterations : int
        Maximum number of linear circuits; 0: one, for a correct guess; `PROVE`.
    merged : bool
        Whether the caller chooses currents in loops of diodes; otherwise they are those of some forest.
    out : (m + n_nodes + m + 15 + d,) float array
        Element values (Ω, V, A; ignored for diodes). The rest is overwritten: potentials, V; if all diode currents are
        unique, branch currents, A, and largest absolute and relative residuals, 7 each
        (`circuitsim.certificate.worst_violations`); number of linear circuits; state of each diode
        (`circuitsim.engine.small.active_set.IDLE`). With
        ``merged`` and `Outcome.NONUNIQUE_CURRENTS` branch currents to the rounding of the potentials, in which the
        diodes of trees that others close to loops, which have the state `ON_LOOP`, carry those of some forest, of
        either sign. With `PROVE` the currents of diodes are given.

    Returns
    -------
    status : int
        An `Outcome`.
    worst : float
        Largest relative residual.
    """
    packed, numbers, out = kept(packed), kept(numbers), kept(out)
    plan = pointer(unpack(packed))
    places, marks = work_memory(packed)
    space = pointer(workspace(plan, numbers[plan.resistor.size :], places, marks))
    status = Outcome.CONVERGED
    if max_iterations == PROVE:
        take_flows(plan, packed, space, out)
    else:
        status = found(plan, packed, space, numbers[: plan.resistor.size], guess, max_iterations, merged, out)
    chosen = not merged and status == Outcome.NONUNIQUE_CURRENTS
    proven = chosen or status == Outcome.CONVERGED or status == Outcome.SINGULAR
    return status.value, prove(plan, packed, space, out) if proven else np.inf


def found(plan, packed, space, ohms, guess, max_iterations, merged, out):
    """The potentials and conducting diodes of `solve_once`; returns an `Outcome`."""
    kind, first, second, stamp = part(packed, 15), part(packed, 16), part(packed, 17), space.stamp
    values, v, current, _, _ = views(out, kind.size, plan.coordinate.size)
    tail = out.size - plan.diode.size
    status, changed = take_values(plan, kind, values, ohms, packed[SIGNED] != 0)
    if status != Outcome.CONVERGED:
        stamp[:] = 0
        return status
    if changed or stamp[-1] == 0:
        take_conductances(plan, values, space)
    closed = space.closed
    for d in range(closed.size):
        closed[d] = guess.size > 0 and guess[plan.diode[d]] > 0.0
    offsets(plan, kind, first, values, space.offset)
    clear = injections(kind, first, second, values, space.injected)
    status, count = solve_sample(plan, max_iterations, space, closed, v, merged)
    out[tail - 1] = count
    for d in range(closed.size):
        carries = closed[d] and space.flow[d] > NOISE * space.noise[d]
        out[tail + d] = CARRIES if carries else IDLE
    if merged and status == Outcome.NONUNIQUE_CURRENTS:
        for e in range(kind.size):  # to the rounding of potentials: for scales
            ohmic = kind[e] == RESISTOR and values[e] != 0.0
            current[e] = (v[first[e]] - v[second[e]]) / values[e] if ohmic else values[e] * (kind[e] == CURRENT)
        looped = np.zeros(plan.n + 1, np.bool_)
        for d in range(closed.size):
            looped[tree_of(plan, space, d)] |= space.equal[d] and not space.spanned[d]
        for d in range(closed.size):
            current[plan.diode[d]] = space.flow[d]
            out[tail + d] += ON_LOOP if space.equal[d] and looped[tree_of(plan, space, d)] else 0
    if not clear and status == Outcome.CONVERGED:
        return Outcome.CANCELLING_SOURCES
    if not clear and status == Outcome.NONUNIQUE_CURRENTS:
        return Outcome.CANCELLING_NONUNIQUE
    return status


def tree_of(plan, space, d):
    """The root of the tree of conducting diodes that holds the anode of diode ``d``."""
    return space.root[plan.coordinate[plan.anode[d]]]


def prove(plan, packed, space, out):
    """Fill in branch currents and their residuals.

    Returns the largest relative one, infinite if the currents may be off by more than `ACCURATE`.
    """
    kind, first, second, closed = part(packed, 15), part(packed, 16), part(packed, 17), space.closed
    values, v, current, worst, relative = views(out, kind.size, plan.coordinate.size)
    ohms = reach(plan, space, closed)
    bound = measure(plan, space, kind, first, second, values, closed, ohms, v, current, worst, relative)
    for k in range(current.size):
        current[k] += 0.0  # no −0.0
    return largest(relative) if bound <= ACCURATE else np.inf


def take_flows(plan, packed, space, out):
    """Take the currents of diodes from ``out``."""
    kind = part(packed, 15)
    _, _, current, _, _ = views(out, kind.size, plan.coordinate.size)
    for d in range(plan.diode.size):
        space.flow[d] = current[plan.diode[d]]


def refine_once(packed, numbers, out, drop, what):
    """Refine the currents and potentials just found by `solve_once`; the same arguments.

    Parameters
    ----------
    drop : (m,) float array
        Branch voltages, V: overwritten, or with `LOOPS` as they were left.
    what : int
        `ALL`, or where `solve_once` ended with `Outcome.NONUNIQUE_CURRENTS` `REST`, and with chosen currents of diodes
        `LOOPS`.

    Returns
    -------
    float
        Largest relative residual; infinite if the engine is needed.
    """
    packed, numbers, out, drop = kept(packed), kept(numbers), kept(out), kept(drop)
    plan = pointer(unpack(packed))
    places, marks = work_memory(packed)
    space = pointer(workspace(plan, numbers[plan.resistor.size :], places, marks))
    kind, first, second, state = part(packed, 15), part(packed, 16), part(packed, 17), out[out.size - plan.diode.size :]
    values, v, current, worst, relative = views(out, kind.size, plan.coordinate.size)
    if what == LOOPS:
        take_flows(plan, packed, space, out)
        good = share(plan, space, first, second, current)
        if good:
            low = np.zeros(kind.size)
            made = take_tree(plan, kind, first, second, values, space.closed)
            good = made.whole
        if good:
            good = certify(made, kind, values, current, low, v, drop, space.at_node, worst, relative)
    else:
        good = refine(
            plan, space, kind, first, second, values, space.closed, what == ALL, v, current, drop, worst, relative
        )
        if good and what == REST:
            good = forward(plan, space.closed, state, current)
    for k in range(v.size):
        v[k] += 0.0  # no −0.0
    for k in range(current.size):
        current[k] += 0.0
    return largest(relative) if good else np.inf


def share(plan, space, first, second, current):
    """Fill in the currents of diodes, given those on loops, and of voltage constraints, A; returns whether these
    determine all potentials."""
    for d in range(plan.diode.size):
        space.carries[d] = space.flow[d] > 0.0
        current[plan.diode[d]] = max(space.flow[d], 0.0)
    factor = refactor(plan, space, space.carries)
    if factor < 0 or not space.held[factor]:  # some potentials may be free
        return False
    for k in range(plan.tree_edge.size):
        current[plan.tree_edge[k]] = 0.0
    space.need[:] = 0.0
    constraint_currents(plan, first, second, space.need, current)
    return True


def forward(plan, closed, state, current):
    """Whether no closed diode outside loops of equal potentials carries a reverse current."""
    good = True
    for d in range(closed.size):
        good = good and (not closed[d] or state[d] >= ON_LOOP or current[plan.diode[d]] >= 0.0)
    return good
