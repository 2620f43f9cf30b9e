"""Circuits with an acyclic control graph: the convex circuit that remains, found level by level."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.circuit import Circuit
from circuitsim.controlled.certificate import LawArrays
from circuitsim.controlled.sections import stages
from circuitsim.errors import NoSteadyStateError

CARRIES = 1e-12
"""A current in a loop that is not unique and below this fraction of the largest is rounding."""


def sectioned(
    circuit: Circuit, laws: LawArrays, level: np.ndarray, solve: Callable[[Circuit], OperatingPoint]
) -> tuple[OperatingPoint, np.ndarray] | None:
    """The operating point with independent sources of the same values in place of controlled ones, and its currents
    (m,), A, without rounding in loops, from the levels of the elements (`circuitsim.controlled.sections`); None where a
    section has none, but another choice in an earlier one may leave it one.

    Raises
    ------
    NoSteadyStateError
        A section has no steady state.
    """
    _, _, _, value, n = circuit.arrays()
    given, state, controls = value.copy(), np.zeros(n + value.size), laws.controls(value, n)
    given[laws.element] = laws.constant
    unique = True
    for own, stage in stages(circuit, level):
        try:
            point = solve(stage.with_column((given + controls @ state)[own]))
        except NoSteadyStateError:
            if unique:
                raise
            return None
        unique, size = bool(point.unique.all()) and not point.intervals, np.abs(point.currents)
        carries = point.unique | (size > CARRIES * size.max())
        state[:n], state[n + own] = point.voltages, np.where(carries, point.currents, 0.0)
    return point, state[n:]


__all__ = ["sectioned"]
