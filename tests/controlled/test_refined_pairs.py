"""Corrections of solutions: residuals against rational arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from circuitsim.controlled.corrections import corrected

Arguments = tuple[np.ndarray, ...]


def system(seed: int, size: int = 12) -> Arguments:
    """Rows of terms of very different sizes, some of them integers, so that sums cancel or lie between two doubles."""
    rng = np.random.default_rng(seed)
    ends = np.concatenate([[0], np.cumsum(rng.integers(0, 9, size))])
    value = rng.normal(size=ends[-1]) * 10.0 ** rng.uniform(-15.0, 3.0, ends[-1])
    high = rng.normal(size=size) * 10.0 ** rng.uniform(-9.0, 3.0, size)
    low, right = high * 1e-17 * rng.normal(size=size), rng.normal(size=size)
    change = high * 1e-9 * rng.normal(size=size)
    for numbers in (value, high, right, change):
        whole = rng.random(numbers.size) < 0.4
        numbers[whole] = rng.integers(-2, 3, whole.sum())
    return value, rng.integers(0, size, ends[-1]), ends, right, change, high, low, np.empty(size)


@pytest.mark.parametrize("seed", range(40))
def test_residuals_are_right(seed: int) -> None:
    """To the rounding of the result, and 2⁻⁹⁸ of the largest terms."""
    value, column, ends, right, change, high, low, residual = system(seed)
    before = [Fraction(h) + Fraction(rest) + Fraction(c) for h, rest, c in zip(high, low, change)]
    share, largest, most = corrected(value, column, ends, right, change, high, low, residual)
    x = [Fraction(h) + Fraction(rest) for h, rest in zip(high, low)]
    assert all(abs(own - new) <= 2**-104 * max(abs(own), abs(new)) for own, new in zip(before, x) if own)
    for r in range(right.size):
        terms = range(int(ends[r]), int(ends[r + 1]))
        exact = Fraction(right[r]) - sum(Fraction(value[t]) * x[column[t]] for t in terms)
        small = abs(right[r]) + sum(abs(value[t] * high[column[t]]) for t in terms)
        assert abs(float(Fraction(residual[r]) - exact)) <= 2.0**-52 * abs(float(exact)) + 2.0**-98 * small
    assert largest == np.abs(change).max() and most >= 0.0 and share > 0.0
