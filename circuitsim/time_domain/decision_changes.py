"""Times at which the decisions of a formula change, by bisection between looks."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from circuitsim.errors import UsageError

HALVINGS = 50
"""Of the distance of two looks until a change is located."""


def changes(
    decisions: Callable[[np.ndarray], np.ndarray], times: np.ndarray, name: str, most: float = math.inf
) -> np.ndarray:
    """Times, ascending, s, from which on decisions differ from those before; two changes between two looks that lead
    back are missed.

    Parameters
    ----------
    decisions : callable
        From times (n,), s, to a number for the decisions at each (n,).
    times : (p, looks) float array
        Looks in stretches of time, s.
    name : str
        Of the formula, for messages.
    most : float
        Most changes between two looks.

    Raises
    ------
    UsageError
        More changes than these.
    """
    numbers = decisions(times.ravel()).reshape(times.shape)
    differ = numbers[:, 1:] != numbers[:, :-1]
    low, high = times[:, :-1][differ], times[:, 1:][differ]
    before, after = numbers[:, :-1][differ], numbers[:, 1:][differ]
    found = [np.zeros(0)]
    while low.size:
        if len(found) > most:
            within = float((high - low)[0])
            raise UsageError(
                f"{name}: its conditions change more than {most} times within {within:g} s; measure a shorter interval"
            )
        left, right = low, high
        for _ in range(HALVINGS):
            middle = 0.5 * (left + right)
            same = decisions(middle) == before
            left, right = np.where(same, middle, left), np.where(same, right, middle)
        found.append(right)
        now = decisions(right)
        more = (now != after) & (right < high) & (right > low)
        low, high, before, after = right[more], high[more], now[more], after[more]
    return np.unique(np.concatenate(found))


__all__ = ["changes"]
