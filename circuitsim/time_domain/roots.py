"""Kernels: the first root of a waveform on a window, from its values at Chebyshev nodes.

An interpolant is positive where its mean exceeds the sum of its other coefficients in magnitude, monotone where that
holds for its derivative. Otherwise the window is halved; coefficients on a half are a fixed matrix times those on the
whole.
"""

from __future__ import annotations

import numpy as np
from numpy.polynomial import chebyshev

from circuitsim.time_domain.small_matrices import put

POINTS = 32
"""Chebyshev nodes of a window."""
ORDERS = 8
"""Highest derivative considered; a waveform without a nonzero one remains zero until it falls by `VALUE`."""
VALUE = 1e-12
"""Fraction of the magnitudes in a waveform's value that counts as zero: 100 times the error of the states."""
ZERO = 1e-13
"""Relative magnitude below which a waveform is zero; small ones above it have no zero at the left end."""
FALLS = 1e-6
"""Slope, in sizes per window, below which a waveform remains zero."""
AT_ONCE = 1e-15
"""Fraction of a window at which a waveform becomes negative whose first value is positive and smaller than resolved."""
SHORTLY = 1e-3
"""Distance from the end of a window, in half-windows, within which a waveform that falls to zero does so at the end."""
DEPTH = 44
"""Number of halvings after which a root without a change of sign is discarded."""

NODES = np.sort(chebyshev.chebpts1(POINTS))
"""Chebyshev nodes of the first kind in (−1, 1), ascending: the ends are not among them."""
SHARES = 0.5 * (1.0 + NODES)
"""The nodes as fractions of a window."""
TO_COEFFICIENTS = np.linalg.inv(chebyshev.chebvander(NODES, POINTS - 1))
"""Values at the nodes → coefficients."""
OF_NODES = np.ascontiguousarray(TO_COEFFICIENTS.T)
AT_NODES = np.ascontiguousarray(chebyshev.chebvander(NODES, POINTS - 1).T)
"""Coefficients (rows) → values at the nodes."""
HALVES = np.ascontiguousarray(
    np.stack([(TO_COEFFICIENTS @ chebyshev.chebvander(0.5 * (NODES + side), POINTS - 1)).T for side in (-1.0, 1.0)])
)
"""Coefficients (rows) on a window → on its left and its right half."""


def to_nodes(c, n, table, values):
    """Fill in the values of an interpolant with ``n`` coefficients, from Chebyshev polynomials (rows) at some nodes.

    Here and below, loops over arrays end at array sizes: loops with constant bounds would be unrolled, not vectorised.
    """
    for p in range(values.size):
        values[p] = c[0]
    for k in range(1, n):
        weight = c[k]
        for p in range(values.size):
            values[p] += table[k, p] * weight


def to_coefficients(values, c):
    """Fill in the coefficients of an interpolant from its values at the nodes."""
    for k in range(c.size):
        c[k] = 0.0
    for p in range(values.size):
        value = values[p]
        for k in range(c.size):
            c[k] += OF_NODES[p, k] * value


def one_signed(c, n):
    """Whether the interpolant with ``n`` coefficients has no zero."""
    rest = 0.0
    for k in range(1, n):
        rest += abs(c[k])
    return abs(c[0]) > rest


def falls_or_rises(c, n, slope):
    """Whether the derivative of the interpolant, filled in as ``slope``, has no zero."""
    after, second = 0.0, 0.0
    for k in range(n - 1, 0, -1):
        after, second = second + 2.0 * k * c[k], after
        slope[k - 1] = after
    slope[0] *= 0.5
    return n < 2 or one_signed(slope, n - 1)


def at(c, n, x):
    """The interpolant at x (Clenshaw 1955)."""
    b1, b2 = 0.0, 0.0
    for k in range(n - 1, 0, -1):
        b1, b2 = c[k] + 2.0 * x * b1 - b2, b1
    return c[0] + x * b1 - b2


def between(c, n):
    """The zero of a decreasing interpolant that changes sign, in (−1, 1), by bisection and the Illinois method."""
    low, high = -1.0, 1.0
    above, below, side = at(c, n, low), at(c, n, high), 0
    for _ in range(60):
        x = (low * below - high * above) / (below - above)
        if not low < x < high:
            x = 0.5 * (low + high)
        y = at(c, n, x)
        if abs(y) <= 1e-16 * abs(c[0]) or high - low <= 4e-16:
            return x
        if y > 0.0:
            low, above = x, y
            below *= 0.5 if side > 0 else 1.0
            side = 1
        else:
            high, below = x, y
            above *= 0.5 if side < 0 else 1.0
            side = -1
    return 0.5 * (low + high)


def first_zero(coefficients, limit, stack, many):
    """The first fraction of the window at which an interpolant that starts positive becomes negative; inf: none below
    ``limit``. ``stack`` (DEPTH + 2, POINTS) and ``many`` (DEPTH + 2,) are workspace: coefficients by the number of
    halvings for the current half-window and all that contain it."""
    put(coefficients, stack[0])
    depth, place, slope = 0, 0, stack[DEPTH + 1]
    while True:
        c, width = stack[depth], 0.5**depth
        left = place * width
        if left >= limit:
            return np.inf
        n, largest = POINTS, 0.0
        for k in range(POINTS):
            largest = max(largest, abs(c[k]))
        while n > 1 and abs(c[n - 1]) <= 1e-17 * largest:
            n -= 1
        many[depth] = n
        if one_signed(c, n):
            if c[0] < 0.0:
                return left
        else:
            monotone = falls_or_rises(c, n, slope)
            if not monotone and depth < DEPTH:
                half_of(c, n, 0, stack[depth + 1])
                depth, place = depth + 1, 2 * place
                continue
            if at(c, n, 1.0) < 0.0:
                if at(c, n, -1.0) <= 0.0 or not monotone:
                    return left
                if limit < left + width and at(c, n, 2.0 * (limit - left) / width - 1.0) > 0.0:
                    return np.inf
                return left + width * 0.5 * (1.0 + between(c, n))
        while place % 2 == 1:
            depth, place = depth - 1, place // 2
        if depth == 0:
            return np.inf
        place += 1
        half_of(stack[depth - 1], many[depth - 1], 1, stack[depth])


def falls(c, size):
    """Whether an interpolant falls at the left end of the window, by more than the rounding of values of this size."""
    slope = 0.0
    for k in range(1, c.size):
        slope += -c[k] * k * k if k % 2 == 0 else c[k] * k * k
    return -2.0 * slope > FALLS * size


def half_of(c, n, side, half):
    """Fill in the coefficients on the left half (``side`` 0) or the right one of an interpolant with ``n``
    coefficients."""
    for k in range(half.size):
        half[k] = 0.0
    for j in range(n):
        weight = c[j]
        for k in range(j + 1):
            half[k] += HALVES[side, j, k] * weight


def first_root(series, orders, size):
    """The first time at which one of several waveforms becomes negative, as a fraction of the window, and its index.

    Parameters
    ----------
    series : (d, POINTS) float array
        Coefficients of the waveforms.
    orders : (d,) int array
        Number of leading Taylor terms that are zero at the left end, more than `ORDERS` where all are; waveforms of
        negative order are skipped.
    size : (d,) float array
        Scales of the waveforms' rounding.

    Returns
    -------
    root, index
        inf, −1 where all stay positive.
    """
    best, which = np.inf, -1
    stack, many, c = np.empty((DEPTH + 2, POINTS)), np.empty(DEPTH + 2, np.int64), np.empty(POINTS)
    for d in range(orders.size):
        if orders[d] < 0:
            continue
        whole = 0.0
        for k in range(POINTS):
            whole += abs(series[d, k])
        if whole <= ZERO * size[d]:
            continue
        if orders[d] == 0 or orders[d] > ORDERS:
            put(series[d], c)
            c[0] += 0.0 if orders[d] == 0 else VALUE * size[d]
        else:
            without_zeros(series[d], orders[d], c)
        found = first_zero(c, best, stack, many)
        if found == 0.0 and orders[d] == 0 and falls(c, size[d]):
            found = AT_ONCE  # a positive value below the rounding of the window
        if 0.0 < found < best:
            best, which = found, d
    return best, which


def zero_at(series, orders, size, share):
    """The first of several waveforms that is zero, up to rounding, at a fraction of the window; −1: none."""
    x = 2.0 * share - 1.0
    for d in range(orders.size):
        if orders[d] >= 0:
            value, noise = at(series[d], POINTS, x), 1e-14 * size[d]
            if abs(value) <= noise and at(series[d], POINTS, x - SHORTLY) > 10.0 * noise:
                return d
    return -1


def without_zeros(series, order, c):
    """Fill in the coefficients of a waveform over t^order, whose first root is the next root of the waveform."""
    values = np.empty(c.size)
    to_nodes(series, POINTS, AT_NODES, values)
    for _ in range(order):
        for p in range(values.size):
            values[p] /= SHARES[p]
    to_coefficients(values, c)
