"""Times at which the branches taken in a formula change, by bisection between samples."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from circuitsim.errors import UsageError

HALVINGS = 50
"""Number of bisections between two samples."""


def changes(
    decisions: Callable[[np.ndarray], np.ndarray], times: np.ndarray, name: str, most: float = math.inf
) -> np.ndarray:
    """Times, ascending, s, from which on the decisions differ from those before. A pair of changes between two samples
    that cancels is missed.

    Parameters
    ----------
    decisions : callable
        Maps times (n,), s, to a number for the decisions at each (n,).
    times : (p, looks) float array
        Sample times in intervals, s.
    name : str
        The formula's name, for messages.
    most : float
        Maximum number of changes between two samples.

    Raises
    ------
    UsageError
        Too many changes.
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
