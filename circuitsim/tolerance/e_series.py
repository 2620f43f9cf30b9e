"""Preferred values of resistors (IEC 60063): E6 … E192."""

from __future__ import annotations

import numpy as np

from circuitsim.errors import UsageError

_E24 = (
    1.0,
    1.1,
    1.2,
    1.3,
    1.5,
    1.6,
    1.8,
    2.0,
    2.2,
    2.4,
    2.7,
    3.0,
    3.3,
    3.6,
    3.9,
    4.3,
    4.7,
    5.1,
    5.6,
    6.2,
    6.8,
    7.5,
    8.2,
    9.1,
)
NAMES = ("E6", "E12", "E24", "E48", "E96", "E192")


def mantissas(name: str) -> np.ndarray:
    """The values of one decade, 1 ≤ value < 10.

    Raises
    ------
    UsageError
        No such series.

    Examples
    --------
    >>> mantissas("E6").tolist()
    [1.0, 1.5, 2.2, 3.3, 4.7, 6.8]
    """
    if name.upper() not in NAMES:
        raise UsageError(f"there is no series {name!r}: {', '.join(NAMES)}")
    count = int(name[1:])
    if count <= 24:
        return np.array(_E24[:: 24 // count])
    values = np.round(10.0 ** (np.arange(count) / count), 2)
    values[values == 9.19] = 9.2  # as the standard has it
    return values


def neighbours(name: str, value: float) -> tuple[float, float]:
    """The largest preferred value ≤ ``value`` and the smallest ≥ ``value`` (> 0)."""
    decade = np.floor(np.log10(value))
    exponents = np.repeat([decade - 1, decade, decade + 1], mantissas(name).size).astype(int)
    found = np.array([float(f"{m:.2f}e{e}") for m, e in zip(np.tile(mantissas(name), 3).tolist(), exponents.tolist())])
    near = value * (1.0 + 1e-12 * np.array([1.0, -1.0]))
    return float(found[found <= near[0]].max()), float(found[found >= near[1]].min())


__all__ = ["NAMES", "mantissas", "neighbours"]
