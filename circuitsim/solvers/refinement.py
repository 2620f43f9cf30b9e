"""Iterative refinement with residuals in twice the precision of a double, and the resistors that carry nothing.

A part that hangs on the rest by little conductance, or by none that carries current, has a potential that is the small
difference of large currents. Its local scale is as small as it is, so it must be right by that measure.
"""

from __future__ import annotations

import numpy as np

from circuitsim.kernels import kernel
from circuitsim.program import QuadraticProgram
from circuitsim.program.blocks import block_labels
from circuitsim.program.flow import RootedForest, rooted_at_earth, spanning_forest, tight_potentials
from circuitsim.program.precise import add_at, flow_residual
from circuitsim.solvers.linear import Factored

LEAKAGE = 1e-60
"""Potentials below this share of what the sources could cause may be leakage past the finite shorts of a factor."""

CLOSE = 1e-10
"""After corrections below this share of the potentials nothing but rounding is left to correct."""


def refine(
    program: QuadraticProgram,
    factored: Factored,
    last: np.ndarray,
    anchor: np.ndarray,
    x: np.ndarray,
    extra: np.ndarray | None,
    thorough: bool,
) -> None:
    """Correct (in place) the potentials of a settled circuit.

    Always until nothing is left of what leaked past shorts, which are finite in the factor: every pass makes such
    potentials smaller by the weight of a short, and leaves real attenuation (long ladders) alone. If ``thorough``,
    also until the corrections are rounding.

    Parameters
    ----------
    program : QuadraticProgram
    factored : Factored
        The circuit with its shorts.
    last : (n + 1,) int array
        For each super-node the one that stands for its group.
    anchor : (n + 1,) int array
        For each super-node one of its part whose potential is right as it is: earth, or where a part without a path to
        earth is held. Corrections are measured from there: next to it the digits are the finest.
    x : (n + 1,) float array
        Potentials, V.
    extra : (n,) float array or None
        Further injected currents, A.
    thorough : bool
    """
    fed = np.abs(program.c).max() + (0.0 if extra is None else np.abs(extra).max())
    reach = max(fed / factored.laplacian.unit, np.abs(program.e).max(initial=0.0))
    for count in range(12):
        size = np.abs(x)
        leaks = bool(((size > 0.0) & (size < LEAKAGE * max(reach, size.max()))).any())
        if not leaks and not thorough:
            return
        net = exact_residual(program, last, x, extra)
        if not np.isfinite(net).all():
            return
        change = factored.solve(net)[last]
        change -= change[anchor]
        x += change
        # The next correction would be smaller by what a solution is accurate to, 1e-6 at the least.
        settled = bool((np.abs(change) <= CLOSE * np.abs(x)).all())
        thorough = thorough and not settled and count < 3


def exact_residual(program: QuadraticProgram, last: np.ndarray, x: np.ndarray, extra: np.ndarray | None) -> np.ndarray:
    """Net current that is missing from each group of shorted super-nodes (n,), A, rounded once at the end."""
    high, low = flow_residual(program.a, program.b, program.g, program.e, x, last)
    for currents in (program.c, program.c_low) if extra is None else (program.c, program.c_low, extra):
        add_at(high, low, last, currents)
    return (high + low)[: program.n]


def dead_resistors(program: QuadraticProgram, last: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Resistors in blocks without any source, given which super-nodes are shorted: they carry no current at all.

    A block is a maximal part in which every two edges share a cycle; current sources count as edges. Whatever hangs on
    a block elsewhere can feed no net current through it.

    Parameters
    ----------
    program : QuadraticProgram
    last : (n + 1,) int array
        For each super-node the one that stands for its group of shorted nodes.
    w : (n + 1,) float array
        Potentials within each group, V.
    """
    n, r = program.n, program.a.size
    label, between, tree, forest = _blocks(program, last)
    fed = np.zeros(label.max(initial=-1) + 1, dtype=bool)
    fed[label[r:][label[r:] >= 0]] = True
    if fed.all():
        return between[:0]
    # Without current sources a block is dead iff its branch offsets add up to nothing around every cycle.
    ends = program.a[tree], program.b[tree]
    e = program.e[tree] + w[ends[0]] - w[ends[1]]
    u = tight_potentials(n, last[ends[0]], last[ends[1]], -e, forest)
    kernel(_feed, r)(program.a, program.b, program.e, w, u, last, between, label, fed)
    return between[~fed[label[between]]]


def _feed(a, b, e, w, u, last, between, label, fed):
    """Mark the blocks around whose cycles offsets add up to something: u does not fit across some edge."""
    for k in between:
        i, j = a[k], b[k]
        offset = e[k] + w[i] - w[j]
        ui, uj = u[last[i]], u[last[j]]
        if abs(ui - uj + offset) > 1e-14 * (abs(ui) + abs(uj) + abs(offset)):
            fed[label[k]] = True


def _blocks(program: QuadraticProgram, last: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, RootedForest]:
    """Block of every resistor and current source between groups of shorted nodes, the resistors that have one, and a
    spanning tree of these. Kept for other source values, as long as the same nodes are shorted.
    """
    memo = {} if program.memo is None else program.memo
    key = (last, program.origin, program.target)
    kept = memo.get("blocks")
    if kept is not None and all(np.array_equal(old, new) for old, new in zip(kept[0], key)):
        return kept[1]
    n, r = program.n, program.a.size
    a, b = last[np.concatenate([program.a, program.origin])], last[np.concatenate([program.b, program.target])]
    label = block_labels(n + 1, a, b)
    between = np.flatnonzero(label[:r] >= 0)
    tree = spanning_forest(n, a[:r], b[:r], between)
    found = label, between, tree, rooted_at_earth(n, a[tree], b[tree])
    memo["blocks"] = key, found
    return found
