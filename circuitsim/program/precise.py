"""Sums with their rounding errors: an error-free transformation (Knuth, TAOCP 2, 4.2.2)."""

from __future__ import annotations

import numpy as np


def two_sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """a + b as a rounded sum and its exact rounding error."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)
