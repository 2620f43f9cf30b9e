"""Arithmetic on unevaluated sums of two doubles (Dekker 1971; Hida, Li & Bailey 2001).

Every function takes and returns pairs (high, low) with |low| ≤ ulp(high)/2. Products are exact between 1e-290 and
1e290.
"""

from __future__ import annotations

from circuitsim.program.precise import two_product, two_sum

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
