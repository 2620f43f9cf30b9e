"""Sums and products with their rounding errors (Knuth, TAOCP 2, 4.2.2; Dekker 1971), and pairs of doubles.

A pair is an unevaluated sum of two arrays, the second at most half a unit in the last place of the first: about 32
digits.

Of numbers (Hida, Li & Bailey 2001): every function takes and returns pairs (high, low) with |low| ≤ ulp(high)/2;
products are exact between 1e-290 and 1e290.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

SPLIT = 134217729.0
"""2²⁷ + 1 splits a double into two halves whose products are exact (Dekker 1971)."""


def two_sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """a + b as a rounded sum and its exact rounding error."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def two_product(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """a b as a rounded product and its exact rounding error."""
    product = a * b
    a_whole, b_whole = SPLIT * a, SPLIT * b
    a_high, b_high = a_whole - (a_whole - a), b_whole - (b_whole - b)
    a_rest, b_rest = a - a_high, b - b_high
    return product, ((a_high * b_high - product) + a_high * b_rest + a_rest * b_high) + a_rest * b_rest


class Pairs(NamedTuple):
    """Arrays high + low."""

    high: np.ndarray
    low: np.ndarray

    @classmethod
    def of(cls, high: np.ndarray) -> Pairs:
        """Doubles as pairs."""
        return cls(high, np.zeros_like(high))

    def plus(self, other: Pairs) -> Pairs:
        """The sum."""
        high, error = two_sum(self.high, other.high)
        return Pairs(*two_sum(high, error + self.low + other.low))

    def minus(self, other: Pairs) -> Pairs:
        """The difference."""
        return self.plus(Pairs(-other.high, -other.low))

    def times(self, other: Pairs) -> Pairs:
        """The product."""
        high, error = two_product(self.high, other.high)
        return Pairs(*two_sum(high, error + self.high * other.low + self.low * other.high))

    def over(self, other: Pairs) -> Pairs:
        """The quotient."""
        high = self.high / other.high
        left = self.minus(Pairs.of(high).times(other))
        return Pairs(*two_sum(high, left.high / other.high))

    def root(self) -> Pairs:
        """The square root."""
        high = np.sqrt(self.high)
        left = self.minus(Pairs(*two_product(high, high)))
        return Pairs(*two_sum(high, np.divide(left.high, 2.0 * high, out=np.zeros_like(high), where=high > 0.0)))

    def at(self, places: Any) -> Pairs:
        """A selection."""
        return Pairs(self.high[places], self.low[places])


CANCELLED = 2.0**-98
"""A sum below this fraction of its terms is rounding: zero."""


def add(a, a_low, b, b_low):
    """The sum of two pairs, accurate to about 2⁻¹⁰⁴ of |a| + |b|; zero where the two cancel (`CANCELLED`)."""
    s, low = two_sum(a, b)
    low += a_low + b_low
    high = s + low
    if abs(high) < CANCELLED * abs(a):
        return 0.0, 0.0
    return high, low - (high - s)


def multiply(a, b, b_low):
    """The product of a double and a pair, accurate to about 2⁻¹⁰⁴ of itself."""
    p, low = two_product(a, b)
    low += a * b_low
    high = p + low
    return high, low - (high - p)
