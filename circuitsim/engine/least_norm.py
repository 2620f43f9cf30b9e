"""Currents of least norm in loops without resistance: those for equal, vanishing wire resistances.

With node voltages p, V, and 1 Ω in each edge they are i = p_a − p_b, or max(0, p_a − p_b) in one-way edges, where p
minimises ½ Σ i² − Σ need p. That is convex: semismooth Newton steps with an exact line search. Drops are accumulated by
edge, so that small currents beside large ones keep their digits.
"""

from __future__ import annotations

import numpy as np

from circuitsim.engine.active_set import least_energy
from circuitsim.engine.small.active_set import NOISE
from circuitsim.program.components import component_labels
from circuitsim.solvers.linear import NodalPattern

STEPS = 200
"""Maximum number of Newton steps."""

WEAK, FAR = 1e-9, 1e9
"""Conductance of a blocking edge in Newton steps, S; multiple of a step beyond which no edge will begin to carry a
current: it is rounding."""


def least_norm(
    first: np.ndarray, second: np.ndarray, one_way: np.ndarray, need: np.ndarray, compiled: bool = False
) -> np.ndarray:
    """Currents (m,) of least norm with the given net currents, A.

    Parameters
    ----------
    first, second : (m,) int arrays
        Ends of the edges.
    one_way : (m,) bool array
        Edges whose currents first → second must be ≥ 0.
    need : (2, nodes) float array
        Current that leaves each node through the edges, A, as a sum of two doubles; node 0 takes the rest.
    compiled : bool
        As in `NodalPattern`.
    """
    n, drop, given, factored = need.shape[1], np.zeros(first.size), np.abs(need[0]), None
    a, b = (first - 1) % n, (second - 1) % n
    solver = NodalPattern(n - 1, a, b, 0, False, compiled).direct(drop[:0])
    given[0] = np.inf
    for _ in range(STEPS):
        on = ~one_way | (drop >= 0.0)
        current = np.where(on, drop, 0.0)
        size = np.bincount(first, np.abs(current), n) + np.bincount(second, np.abs(current), n)
        left = (need[0] - np.bincount(first, current, n)) + np.bincount(second, current, n) + need[1]
        left[np.abs(left) <= NOISE * np.maximum(size, given)] = 0.0
        if not left.any():
            break
        factored = solver.with_conductances(np.where(on, 1.0, WEAK), factored)
        step = factored.solve(left[1:])
        change, decrement = step[a] - step[b], float(left[1:] @ step[:-1])
        curvature = float((change[~one_way] ** 2).sum())
        share = least_energy(curvature, decrement, drop[one_way], change[one_way], np.ones(one_way.sum()))
        if share > FAR:
            given[component_labels(n, first[on], second[on]) != 0] = np.inf
            continue
        drop = drop + share * change
    return current
