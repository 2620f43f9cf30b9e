"""Kernels: Chebyshev series of decaying parts on a window, by a recurrence from the last coefficient down; their sums
and values."""

from __future__ import annotations

import math

from circuitsim.time_domain.roots import POINTS

ORDER = 44
"""Coefficients of a series; the first `POINTS` locate roots."""
WORK = 3 * (ORDER + 1) + 5
"""Rows of memory of `decay`."""
ROUNDING = 1e-17
"""Share of the largest of the first coefficients below which the last ones are left out."""


def decay(decays, m, half, w, y, piece):
    """Fill in the series of y − y₀ of ẏ = −λ y + b w on a window of 2 ``half``, from w₀ and the series of w − w₀.

    With y′ in place of y the rule 2 k c_k = c′_{k−1} − c′_{k+1} couples neighbours only: c_k = α_k c_{k−1} + β_k from
    the last one down, all divisors positive; the beginning gives c_0. All parts side by side: each coefficient waits
    for the one before.

    Parameters
    ----------
    decays : Decays
    m : int
        The mode.
    half : float
        s.
    w, y : (N,), (c,) float arrays
        At the window's beginning; of w the states of the sources.
    piece : Piece
        With the series of w − w₀.
    """
    n, s, n_rows, series, room = decays.size[m], decays.drive.shape[2], ORDER + 1, piece.series, piece.room
    push, alpha, beta = room[:n_rows], room[n_rows : 2 * n_rows], room[2 * n_rows : 3 * n_rows]
    a, one, rest, whole, other = room[-5], room[-4], room[-3], room[-2], room[-1]
    for q in range(n):
        rest[q], other[q], beta[ORDER, q] = 0.0, 0.0, 0.0
        for k in range(ORDER + 1):
            push[k, q] = 0.0
    for i in range(s):
        for q in range(n):
            force = half * decays.drive[m, q, i]
            push[0, q] += force * w[i]
            if force != 0.0:
                for k in range(POINTS):
                    push[k, q] += force * series[i, k]
    for q in range(n):
        a[q] = decays.rate[m, q] * half
        push[0, q] -= a[q] * y[q]
        # Beyond the last coefficient those of e^{−λ t} go on: −I_k(a) / I_{k−1}(a), however fast it is.
        alpha[ORDER, q] = -a[q] / (ORDER + math.sqrt(ORDER * ORDER + a[q] * a[q]))
    for k in range(ORDER - 1, 0, -1):
        twice = 2.0 if k == 1 else 1.0
        for q in range(n):
            share = 1.0 / (2.0 * k - a[q] * alpha[k + 1, q])
            beta[k, q] = (twice * push[k - 1, q] - push[k + 1, q] + a[q] * beta[k + 1, q]) * share
            alpha[k, q] = -a[q] * twice * share
    # Values at the left end: of c_0 = 1 alone, and of the rest.
    sign = 1.0
    for q in range(n):
        one[q], whole[q] = 1.0, 1.0
    for k in range(1, ORDER):
        sign = -sign
        for q in range(n):
            one[q] *= alpha[k, q]
            rest[q] = alpha[k, q] * rest[q] + beta[k, q]
            whole[q] += sign * one[q]
            other[q] += sign * rest[q]
    for q in range(n):
        beta[0, q] = -other[q] / whole[q]
    for k in range(1, ORDER):
        for q in range(n):
            beta[k, q] += alpha[k, q] * beta[k - 1, q]
    for q in range(n):
        for k in range(ORDER):
            series[s + q, k] = beta[k, q]
        summed(piece, s + q)


def summed(piece, j):
    """Fill in the sums of a series, and how many of its coefficients are more than rounding of the first ones."""
    c, many = piece.series[j], ORDER
    rounding = ROUNDING * (abs(c[0]) + abs(c[1]) + abs(c[2]))
    while many > 1 and abs(c[many - 1]) <= rounding:
        many -= 1
    piece.many[j] = many
    # Coefficients of a part that is over before the first node fall no faster than one by one: that many are as large.
    piece.tail[j] = POINTS * max(abs(c[POINTS - 1]), abs(c[POINTS - 2]))
    rest, last = 0.0, c[0]
    for k in range(1, many):
        rest += abs(c[k])
        last += c[k]
    piece.rest[j], piece.last[j] = rest, last


def values_at(piece, count, share, out):
    """Values of the first ``count`` series at a fraction of the window (Clenshaw 1955)."""
    x, series = 2.0 * (2.0 * share - 1.0), piece.series
    for j in range(count):
        one, two = 0.0, 0.0
        for k in range(int(piece.many[j]) - 1, 0, -1):
            one, two = series[j, k] + x * one - two, one
        out[j] = series[j, 0] + 0.5 * x * one - two
