"""Solving one circuit at a time, for callers that count microseconds, in blocks of memory.

A call of compiled code costs a tenth of a microsecond per array argument, as does making an array.
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
    injections,
    solve_sample,
    take_conductances,
)
from circuitsim.engine.small.currents import largest, measure
from circuitsim.engine.small.elimination import plan_in
from circuitsim.engine.small.pointers import kept, pointer
from circuitsim.engine.steps import offsets

PROVE = -1
"""Value of the iterations for which `solve_once` proves its previous result, with currents in loops chosen since."""

NO_GUESS = np.zeros(0)
NO_GUESS.flags.writeable = False  # as currents of operating points are: one kind of array, one compilation


def take_values(plan, values, ohms, signed):
    """Check new element values (``CONVERGED``: valid), and whether the resistances differ from ``ohms``.

    ``signed``: resistances may be negative.
    """
    kind, changed, r = plan.kind, False, 0
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


def solve_once(block, space, guess, max_iterations, merged, out):
    """The operating point of a planned circuit for the element values in ``out``, with its certificate.

    Parameters
    ----------
    block : int array
        The plan's (`circuitsim.engine.small.elimination.plan`).
    space : Pinned
        The plan's `circuitsim.engine.small.active_set.memory`, not shared during the call.
    guess : (m,) float array
        Branch currents of an operating point whose conducting diodes are the initial guess; empty: no diode conducts.
    max_iterations : int
        Maximum number of linear circuits; 0: one, for a correct guess; `PROVE`.
    merged : bool
        Whether the caller chooses currents in loops of diodes; otherwise they are those of some forest.
    out : (m + n_nodes + m + 15 + d,) float array
        Element values (Ω, V, A; ignored for diodes). The rest is overwritten: potentials, V; if all diode currents are
        unique, branch currents, A, and largest absolute and relative residuals, 7 each
        (`circuitsim.certificate.branch_violations`); number of linear circuits; state of each diode
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
    plan, space, out = pointer(plan_in(kept(block))), pointer(space), kept(out)
    status = Outcome.CONVERGED
    if max_iterations == PROVE:
        take_flows(plan, space, out)
    else:
        status = found(plan, space, guess, max_iterations, merged, out)
    chosen = not merged and status == Outcome.NONUNIQUE_CURRENTS
    proven = chosen or status == Outcome.CONVERGED or status == Outcome.SINGULAR
    return status.value, prove(plan, space, out) if proven else np.inf


def found(plan, space, guess, max_iterations, merged, out):
    """The potentials and conducting diodes of `solve_once`; returns an `Outcome`."""
    kind, first, second, stamp = plan.kind, plan.first, plan.second, space.stamp
    values, v, current, _, _ = views(out, kind.size, plan.coordinate.size)
    tail = out.size - plan.diode.size
    status, changed = take_values(plan, values, space.ohms, space.signed[0])
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
    status, count = solve_sample(plan, max_iterations, space, v, merged)
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
    cancelling = not clear and (status == Outcome.CONVERGED or status == Outcome.NONUNIQUE_CURRENTS)
    return Outcome.CANCELLING_SOURCES if cancelling else status


def tree_of(plan, space, d):
    """The root of the tree of conducting diodes that holds the anode of diode ``d``."""
    return space.root[plan.coordinate[plan.anode[d]]]


def prove(plan, space, out):
    """Fill in branch currents and their residuals.

    Returns the largest relative one, infinite if the currents may be off by more than `ACCURATE`.
    """
    values, v, current, worst, relative = views(out, plan.kind.size, plan.coordinate.size)
    good = measure(plan, space, values, v, current, worst, relative)
    for k in range(current.size):
        current[k] += 0.0  # no −0.0
    return largest(relative) if good else np.inf


def take_flows(plan, space, out):
    """Take the currents of diodes from ``out``."""
    _, _, current, _, _ = views(out, plan.kind.size, plan.coordinate.size)
    for d in range(plan.diode.size):
        space.flow[d] = current[plan.diode[d]]
