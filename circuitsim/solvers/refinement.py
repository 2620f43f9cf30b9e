"""Iterative refinement with residuals in twice the precision of a double, and the resistors that carry nothing.

A part that hangs on the rest by little conductance, or by none that carries current, has a potential that is the small
difference of large currents. Its local scale is as small as it is, so it must be right by that measure.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.kernels import kernel
from circuitsim.program import QuadraticProgram
from circuitsim.program.blocks import block_labels
from circuitsim.program.flow import RootedForest, rooted_at_earth, spanning_forest, tight_potentials
from circuitsim.program.precise import add_at, add_flows
from circuitsim.solvers.linear import Factored

LEAKAGE = 1e-60
"""Potentials below this share of what the sources could cause may be leakage past the finite shorts of a factor."""

CLOSE = 1e-10
"""After corrections below this share of the potentials nothing but rounding is left to correct."""

NEAR = 1e-6
"""Nor after these, where the currents that are still missing are rounding as well."""

CLEAR = 1e-6
"""A voltage above this share of the largest potential is no error of conjugate gradients."""

FIRM = 1e-9
"""Nor is one above this share an error of factors."""

EVEN = 1e8
"""The spread of conductances times the number of unknowns up to which that holds: errors of potentials grow with it."""

ROUNDED = 4 * np.finfo(float).eps
"""Missing currents below this share of a node's scale are what rounding its potentials leaves."""


def refine(
    program: QuadraticProgram,
    factored: Factored,
    last: np.ndarray,
    part: np.ndarray,
    x: np.ndarray,
    extra: np.ndarray | None,
    thorough: bool,
) -> float:
    """Correct (in place) the potentials of a settled circuit.

    Always until nothing is left of what leaked past shorts, which are finite in a factor: every pass makes such
    potentials smaller by the weight of a short, and leaves real attenuation (long ladders) alone. If ``thorough``,
    also until the corrections are rounding. Conjugate gradients know no such leaks, but promise less than a factor:
    they go on until the currents they leave missing are rounding too.

    Parameters
    ----------
    program : QuadraticProgram
    factored : Factored
        The circuit with its shorts.
    last : (n + 1,) int array
        For each super-node the one that stands for its group.
    part : (n + 1,) int array
        For each super-node that of its part whose potential is right as it is where no path leads to earth.
        Corrections are measured from there, or from earth: next to it the digits are the finest.
    x : (n + 1,) float array
        Potentials, V.
    extra : (n,) float array or None
        Further injected currents, A.
    thorough : bool

    Returns
    -------
    float
        The largest current that conjugate gradients left missing, as a share of its node's scale; infinite where there
        were none, or beyond the range of doubles.
    """
    iterative = factored.laplacian.iterative is not None
    if iterative and not thorough:
        return np.inf
    reach = 0.0 if iterative else _reach(program, factored, extra)
    grouped = not np.array_equal(last, np.arange(last.size))
    share = np.inf
    for count in range(12):
        leaks = False if iterative else _leaks(np.abs(x), reach)
        if not leaks and not thorough:
            break
        net, scale = exact_residual(program, last, x, extra, grouped)
        if not np.isfinite(net).all():
            return np.inf
        change, missing = factored.correct(net)
        if grouped:
            change = change[last]
        if not iterative:
            change -= change[np.where(part == part[-1], last.size - 1, part)]
        x += change
        # The next correction would be smaller by what a solution is accurate to, 1e-6 at the least.
        size, moved = np.abs(x), np.abs(change)
        if missing is None:
            done = bool((moved <= CLOSE * size).all())
        else:
            # What a correction leaves is known to it; the sum with x is rounded once.
            share = _largest_share(missing, scale[last] if grouped else scale)
            done = bool(share <= ROUNDED and (moved <= NEAR * size).all())
        thorough = thorough and not done and count < 3
    return share


def _reach(program: QuadraticProgram, factored: Factored, extra: np.ndarray | None) -> float:
    """Potentials that the sources could cause, V."""
    fed = np.abs(program.c).max() + (0.0 if extra is None else np.abs(extra).max())
    return float(max(fed / factored.laplacian.unit, np.abs(program.e).max(initial=0.0)))


def _leaks(size: np.ndarray, reach: float) -> bool:
    """Whether some potentials of this size may be leakage past shorts."""
    return bool(((size > 0.0) & (size < LEAKAGE * max(reach, size.max()))).any())


def exact_residual(
    program: QuadraticProgram, last: np.ndarray, x: np.ndarray, extra: np.ndarray | None, grouped: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Net current that is missing from each group of shorted super-nodes (n,), A, rounded once at the end.

    And the scale of its rounding in potentials x, A. If not ``grouped``, no nodes are shorted.
    """
    c, c_low, c_scale = program.c, program.c_low, program.c_scale
    if extra is None and not grouped:
        high, low, scale = c.copy(), c_low.copy(), c_scale.copy()
    else:
        more = np.zeros(c.size) if extra is None else extra
        high, low, scale = np.zeros(c.size), np.zeros(c.size), np.bincount(last, c_scale + np.abs(more), c.size)
        for currents in (c, c_low, more):
            add_at(high, low, last, currents)
    add_flows(program.a, program.b, program.g, program.e, x, last, high, low, scale)
    return (high + low)[: program.n], scale


def _largest_share(amount: np.ndarray, scale: np.ndarray) -> float:
    """Of any amount (n,) in its scale."""
    return float((np.abs(amount) / np.maximum(scale[: amount.size], np.finfo(float).tiny)).max(initial=0.0))


def dead_resistors(
    program: QuadraticProgram, last: np.ndarray, w: np.ndarray, x: np.ndarray, iterative: bool
) -> np.ndarray:
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
    x : (n + 1,) float array
        Potentials that are right to many digits, V: where every resistor's ends clearly differ, none is dead.
    iterative : bool
        Whether they come from conjugate gradients: then blocks in which they clearly differ are not looked at either.
    """
    n, r = program.n, program.a.size
    largest = max(np.abs(x).max(), np.abs(program.e).max(initial=0.0))
    least = (CLEAR if iterative else FIRM) * largest
    weak, strong = program.g.min(initial=np.inf), program.g.max(initial=0.0)
    if strong * n < EVEN * weak and not kernel(_any_alike, r)(program.a, program.b, program.e, x, last, least):
        return np.zeros(0, dtype=np.int64)
    label, between, cross, tree, ends, forest = _blocks(program, last)
    fed = np.zeros(label.max(initial=-1) + 1, dtype=bool)
    fed[label[r:][label[r:] >= 0]] = True
    if iterative and not fed.all():
        alone, nothing = np.arange(n + 1), np.zeros(n + 1)
        kernel(_feed, r)(program.a, program.b, program.e, nothing, x, alone, cross, label, least, fed)
    if not fed.all():
        # Without current sources a block is dead iff its branch offsets add up to nothing around every cycle.
        e = program.e[tree]
        if w.any():
            e += w[program.a[tree]] - w[program.b[tree]]
        u = tight_potentials(n, *ends, -e, forest)
        kernel(_feed, r)(program.a, program.b, program.e, w, u, last, cross, label, 0.0, fed)
    return between[:0] if fed.all() else between[~fed[label[between]]]


def _any_alike(a, b, e, x, last, least):
    """Whether some resistor between groups has ends that differ by less than ``least``."""
    for k in range(a.size):
        i, j = a[k], b[k]
        if abs(x[i] - x[j] + e[k]) <= least and last[i] != last[j]:
            return True
    return False


def _feed(a, b, e, w, u, last, cross, label, least, fed):
    """Mark the blocks in which u misses some edge's offset by more than rounding and than ``least``: around a cycle the
    offsets add up to something.
    """
    left = fed.size - fed.sum()
    for k in cross:
        if left == 0:
            return
        if fed[label[k]]:
            continue
        i, j = a[k], b[k]
        offset = e[k] + w[i] - w[j]
        ui, uj = u[last[i]], u[last[j]]
        if abs(ui - uj + offset) > max(least, 1e-14 * (abs(ui) + abs(uj) + abs(offset))):
            fed[label[k]] = True
            left -= 1


class _Blocks(NamedTuple):
    """Block of every resistor and current source between groups of shorted nodes, as a ``label``.

    ``between`` are the resistors that have one, ``tree`` those of a spanning forest (with their ``ends``, groups, and
    rooted at earth), ``cross`` those that close its cycles.
    """

    label: np.ndarray
    between: np.ndarray
    cross: np.ndarray
    tree: np.ndarray
    ends: tuple[np.ndarray, np.ndarray]
    forest: RootedForest


def _blocks(program: QuadraticProgram, last: np.ndarray) -> _Blocks:
    """The blocks; kept for other source values, as long as the same nodes are shorted."""
    memo = {} if program.memo is None else program.memo
    key = (last, program.origin, program.target)
    kept = memo.get("blocks")
    if kept is not None and all(np.array_equal(old, new) for old, new in zip(kept[0], key)):
        found: _Blocks = kept[1]
        return found
    n, r = program.n, program.a.size
    a, b = last[np.concatenate([program.a, program.origin])], last[np.concatenate([program.b, program.target])]
    label = block_labels(n + 1, a, b)
    between = np.flatnonzero(label[:r] >= 0)
    tree = spanning_forest(n, a[:r], b[:r], between)
    spans = np.zeros(r, dtype=bool)
    spans[tree] = True
    ends = a[tree], b[tree]
    found = _Blocks(label, between, between[~spans[between]], tree, ends, rooted_at_earth(n, *ends))
    memo["blocks"] = key, found
    return found
