"""Kernel: Chebyshev series of decaying parts on a window, by a recurrence from the last coefficient down."""

from __future__ import annotations

import math

import numpy as np

from circuitsim.time_domain.roots import POINTS

ORDER = 44
"""Coefficients of a series; the first `POINTS` locate roots."""
SIDE = 8
"""Parts whose series are computed side by side."""


def decay(decays, m, first, n, half, w, y, series):
    """Fill in the series of y − y₀ of ẏ = −λ y + b w on a window of 2 ``half``, from w₀ and the series of w − w₀.

    With y′ in place of y the rule 2 k c_k = c′_{k−1} − c′_{k+1} couples neighbours only: c_k = α_k c_{k−1} + β_k from
    the last one down, all divisors positive; the beginning gives c_0.

    Parameters
    ----------
    decays : Decays
    m, first, n : int
        The mode, the first part and the number of parts, side by side: each coefficient waits for the one before.
    half : float
        s.
    w, y : (N,), (c,) float arrays
        At the window's beginning; of w the states of the sources.
    series : (s + c, ORDER) float array
        Of w − w₀, then of y − y₀.
    """
    s = decays.drive.shape[2]
    a, push, alpha, beta = np.empty(n), np.zeros((ORDER + 1, n)), np.zeros((ORDER + 1, n)), np.zeros((ORDER + 1, n))
    for i in range(s):
        for q in range(n):
            a[q] = half * decays.drive[m, first + q, i]
            push[0, q] += a[q] * w[i]
        for k in range(POINTS):
            for q in range(n):
                push[k, q] += a[q] * series[i, k]
    for q in range(n):
        a[q] = decays.rate[m, first + q] * half
        push[0, q] -= a[q] * y[first + q]
        # Beyond the last coefficient those of e^{−λ t} go on: −I_k(a) / I_{k−1}(a), however fast it is.
        alpha[ORDER, q] = -a[q] / (ORDER + math.sqrt(ORDER * ORDER + a[q] * a[q]))
    for k in range(ORDER - 1, 0, -1):
        twice = 2.0 if k == 1 else 1.0
        for q in range(n):
            share = 1.0 / (2.0 * k - a[q] * alpha[k + 1, q])
            beta[k, q] = (twice * push[k - 1, q] - push[k + 1, q] + a[q] * beta[k + 1, q]) * share
            alpha[k, q] = -a[q] * twice * share
    # Values at the left end: of c_0 = 1 alone, and of the rest.
    one, rest, whole, other, sign = np.empty(n), np.zeros(n), np.empty(n), np.zeros(n), 1.0
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
            series[s + first + q, k] = beta[k, q]
