"""Sums in twice the precision of a double: error-free transformations (Dekker 1971; Knuth, TAOCP 2, 4.2.2)."""

from __future__ import annotations

import numpy as np

from circuitsim.kernels import kernel

_SPLIT = 134217729.0
"""2²⁷ + 1 cuts a double into two halves whose products are exact."""


def two_sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """a + b as a rounded sum and its exact rounding error."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def two_product(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A product a · b as the rounded product and its exact rounding error (no overflow within 1e±290)."""
    p = a * b
    a_high = _SPLIT * a - (_SPLIT * a - a)
    b_high = _SPLIT * b - (_SPLIT * b - b)
    a_low, b_low = a - a_high, b - b_high
    return p, ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low


def add_at(high: np.ndarray, low: np.ndarray, index: np.ndarray, amount: np.ndarray) -> None:
    """Add ``amount`` to the unevaluated sums high + low (in place) at ``index``, without losing what rounds off."""
    kernel(_add_at, index.size)(high, low, index, amount)


def _add_at(high, low, index, amount):
    for k in range(index.size):
        i, x = index[k], amount[k]
        a = high[i]
        s = a + x
        t = s - a
        high[i] = s
        low[i] += (a - (s - t)) + (x - t)
