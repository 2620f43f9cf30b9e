"""Arithmetic on unevaluated sums of two doubles (Dekker 1971; Hida, Li & Bailey 2001).

Every function takes and returns pairs (high, low) with |low| ≤ ulp(high)/2. Products are exact between 1e-290 and
1e290.
"""

from __future__ import annotations

SPLIT = 134217729.0
"""2²⁷ + 1 splits a double into two halves whose products are exact (Veltkamp)."""

CANCELLED = 2.0**-98
"""A sum below this fraction of its terms is rounding: zero."""


def add(a, a_low, b, b_low):
    """The sum of two pairs, accurate to about 2⁻¹⁰⁴ of |a| + |b|; zero where the two cancel (`CANCELLED`)."""
    s = a + b
    t = s - a
    low = (a - (s - t)) + (b - t)
    low += a_low + b_low
    high = s + low
    if abs(high) < CANCELLED * abs(a):
        return 0.0, 0.0
    return high, low - (high - s)


def multiply(a, b, b_low):
    """The product of a double and a pair, accurate to about 2⁻¹⁰⁴ of itself."""
    p = a * b
    t = SPLIT * a
    a_high = t - (t - a)
    a_rest = a - a_high
    t = SPLIT * b
    b_high = t - (t - b)
    b_rest = b - b_high
    low = ((a_high * b_high - p) + a_high * b_rest + a_rest * b_high) + a_rest * b_rest
    low += a * b_low
    high = p + low
    return high, low - (high - p)
