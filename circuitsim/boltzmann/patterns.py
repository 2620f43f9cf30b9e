"""The two small training sets of Bengio & Delalleau (2009) that Fischer & Igel (2011) use."""

from __future__ import annotations

import numpy as np

from circuitsim.errors import UsageError


def diag(units: int) -> np.ndarray:
    """0…0, 10…0, 110…0, …, 1…1: (units + 1, units)."""
    return np.tril(np.ones((units + 1, units)), -1)


def ball(units: int) -> np.ndarray:
    """1DBall: every cyclic shift of ⌊units / 2⌋ ones followed by zeros: (units, units)."""
    start = np.arange(units) < units // 2
    return np.array([np.roll(start, shift) for shift in range(units)], dtype=np.float64)


PATTERNS = {"diag": diag, "1dball": ball}


def pattern_set(name: str, units: int) -> np.ndarray:
    """One of the sets by name.

    Parameters
    ----------
    name : {"diag", "1dball"}
    units : int
        Length of a pattern, at least 1.

    Returns
    -------
    (patterns, units) ndarray
        Zeros and ones: `diag` has ``units`` + 1 patterns, `ball` ``units``.

    Raises
    ------
    UsageError
        No set of this name, or no units.
    """
    if name not in PATTERNS:
        raise UsageError(f"there is no pattern set '{name}'; there are {', '.join(PATTERNS)}")
    if units < 1:
        raise UsageError(f"patterns need at least one unit, not {units}")
    return PATTERNS[name](units)
