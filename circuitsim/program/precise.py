"""Sums in twice the precision of a double: error-free transformations (Dekker 1971; Knuth, TAOCP 2, 4.2.2)."""

from __future__ import annotations

import numpy as np

from circuitsim.kernels import COMPILED, kernel

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


def add_flows(
    a: np.ndarray, b: np.ndarray, g: np.ndarray, e: np.ndarray, x: np.ndarray, last: np.ndarray,
    high: np.ndarray, low: np.ndarray, scale: np.ndarray,
) -> None:  # fmt: skip
    """Add (in place) the current into each node through branches g (x_a − x_b + e) from a to b.

    Currents count at the nodes ``last[a]`` and ``last[b]``, and not at all where these are the same: exactly in the
    unevaluated sums high + low (n + 1,), and by the magnitudes they are differences of in ``scale`` (n + 1,).
    """
    if a.size > COMPILED:
        from circuitsim.program import compensated

        compensated.add_flows(a, b, g, e, x, last, high, low, scale)
        return
    size = g * (np.abs(x[a]) + np.abs(x[b]) + np.abs(e))
    drop, drop_low = two_sum(x[a], -x[b])
    drop, e_low = two_sum(drop, e)
    flow, flow_low = two_product(g, drop)
    flow_low += g * (drop_low + e_low)
    a, b = last[a], last[b]
    between = a != b
    for end, sign in ((a, -1.0), (b, 1.0)):
        add_at(high, low, end[between], sign * flow[between])
        np.add.at(low, end[between], sign * flow_low[between])
        np.add.at(scale, end[between], size[between])


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
