"""Marches of `implicit_method.py`: ESDIRK methods and Radau IIA(5), with the errors of waveforms carried forward."""

from __future__ import annotations

import math

import numpy as np
from implicit_method_kernels import (
    BETWEEN,
    FACTORS,
    ITERATIONS,
    REJECTED,
    ROUNDING,
    SOLVES,
    STEPS,
    add_slopes,
    factor,
    flow,
    fresh,
    growth,
    newton,
    norm,
    show,
    sizes,
    slopes_times,
    solve,
    tangent,
    times,
)
from numba import njit

R6 = math.sqrt(6.0)
RA = np.array(
    [
        [(88 - 7 * R6) / 360, (296 - 169 * R6) / 1800, (-2 + 3 * R6) / 225],
        [(296 + 169 * R6) / 1800, (88 + 7 * R6) / 360, (-2 - 3 * R6) / 225],
        [(16 - R6) / 36, (16 + R6) / 36, 1 / 9],
    ]
)
RI, RC = np.linalg.inv(RA), RA.sum(axis=1)
_values, _vectors = np.linalg.eig(RI)
_own = np.argsort(-_values.imag)  # α + iβ, real, α − iβ
REAL, COMPLEX = float(_values[_own[1]].real), complex(_values[_own[0]])
_inverse = np.linalg.inv(_vectors)
TR, TC = np.real(_vectors[:, _own[1]] * _inverse[_own[1], 0]), _vectors[:, _own[0]].copy()
LR, LC = np.real(_inverse[_own[1]] / _inverse[_own[1], 0]), _inverse[_own[0]].copy()
RE = np.array([-(13 + 7 * R6) / 3, (-13 + 7 * R6) / 3, -1 / 3])
RD = np.linalg.inv(np.array([RC, RC**2, RC**3]).T)  # of Z: the powers of θ
NODES3, INVERSE3, POWERS3 = RC, RI, RD


@njit(cache=True)
def march_esdirk(ct, begin, a, weights, low, full, carry, gaps, order, tol, wanted, most):
    s, n, band = a.shape[0], begin.size, ct.band
    count = np.zeros(5, dtype=np.int64)
    shown, stated = np.zeros((wanted.size, ct.probes.shape[0])), np.zeros((wanted.size, 2, ct.probes.shape[0]))
    m, swaps = np.empty((s, n, n)), np.empty((s, n), dtype=np.int64)
    xs, fs, ks, wa = np.empty((s, n)), np.empty((s, n)), np.empty((s, n)), np.empty((2, s, n))
    c, gamma, at, t = a.sum(axis=1), a[1, 1], 0, 0.0
    x, e, size, largest = begin.copy(), np.zeros((2, n)), np.ones(n), np.zeros(n)
    sizes(ct, x, largest, size)
    h, before, close = 1e-4 * (ct.marks[1] - ct.marks[0]), 1.0, 1e-3 * tol
    while at < wanted.size and wanted[at] <= 0.0:
        shown[at] = ct.probes @ x
        at += 1
    for seg in range(len(ct.marks) - 1):
        end = ct.marks[seg + 1]
        good, x, fs[0], ks[0], m[0], swaps[0] = fresh(ct, x, t, seg, size, count)
        if not good:
            return count, shown, stated, t
        for w in range(2):
            e[w] = tangent(ct, e[w], np.zeros(n), 1e-13, x, seg, m[0], swaps[0], count)
            wa[w, 0] = -slopes_times(ct, x, seg, e[w])
        h = min(h, 1e-2 * (end - t)) if seg else h
        before, rejected = 1.0, False
        while t < end:
            if count[STEPS] + count[REJECTED] > most or h < 1e-15 * end:
                return count, shown, stated, t
            last = t + h * 1.001 >= end
            if last:
                h = end - t
            elif t + 2.0 * h > end:
                h = 0.5 * (end - t)
            share, good = h * gamma, True
            for i in range(1, s):
                base, guess = np.zeros(n), x.copy()
                for j in range(i):
                    base -= h * a[i, j] * fs[j]
                    guess += h * a[i, j] * ks[j]
                xs[i] = guess + share * ks[i - 1]
                if i > 1:
                    m[i], swaps[i] = m[i - 1], swaps[i - 1]
                at_stage = t + c[i] * h
                good = newton(ct, x, base, share, at_stage, seg, xs[i], m[i], swaps[i], i > 1, size, close, count)
                if not good:
                    break
                fs[i] = (times(ct.c, xs[i] - x, band) + base) / share
                ks[i] = (xs[i] - guess) / share
            off, d, between = 1e10, np.zeros(n), np.zeros(n)
            if good:
                for i in range(s):
                    d += h * (low[i] - a[s - 1, i]) * ks[i]
                off = norm(ct, d, size) / tol
                for gap in gaps:
                    value, slope = x.copy(), np.zeros(n)
                    for p in range(order):
                        for i in range(s):
                            value += h * weights[p, i] * gap ** (p + 1) * ks[i]
                            slope += (p + 1) * weights[p, i] * gap**p * ks[i]
                    r = share * (times(ct.c, slope, band) + flow(ct, value, t + gap * h, seg, np.zeros(1), False))
                    solve(m[s - 1], swaps[s - 1], band, r)
                    count[SOLVES] += 1
                    between = np.maximum(between, np.abs(r))
                off = max(off, norm(ct, between, size) / (BETWEEN * tol))
            if not off <= 1.0:
                count[REJECTED] += 1
                h *= growth(off, 1.0, order, True) if good else 0.25
                rejected = True
                continue
            ends = np.zeros((2, n))
            for w in range(2 if carry else 0):
                for i in range(1, s):
                    pull = w * h * (a[i, 0] - full[i, 0]) * wa[w, 0]
                    for j in range(s):
                        if j < i:
                            pull -= h * a[i, j] * wa[w, j]
                        if w == 1:
                            pull -= h * (a[i, j] - full[i, j]) * fs[j]
                    ends[w] = tangent(ct, e[w], pull, share, xs[i], seg, m[i], swaps[i], count)
                    wa[w, i] = (times(ct.c, ends[w] - e[w], band) + pull) / share
                ends[w] += (1 - w) * d
                wa[w, 0] = -slopes_times(ct, xs[s - 1], seg, ends[w])
            at = show(ct, wanted, at, t, h, weights, order, x, ks, e, ends, between, shown, stated)
            e[:] = ends
            x, fs[0], ks[0], t = xs[s - 1].copy(), fs[s - 1], ks[s - 1], (end if last else t + h)
            sizes(ct, x, largest, size)
            count[STEPS] += 1
            h *= min(1.0, growth(off, before, order, False)) if rejected else growth(off, before, order, False)
            before, rejected = max(off, 1e-4), False
    return count, shown, stated, t


@njit
def march_radau(ct, begin, carry, gaps, tol, wanted, most):
    n, band = begin.size, ct.band
    count = np.zeros(5, dtype=np.int64)
    shown, stated = np.zeros((wanted.size, ct.probes.shape[0])), np.zeros((wanted.size, 2, ct.probes.shape[0]))
    mr, sr, mc, sc = (
        np.empty((n, n)),
        np.empty(n, dtype=np.int64),
        np.empty((n, n), np.complex128),
        np.empty(n, np.int64),
    )
    z, r, q, last_q, zero = np.zeros((3, n)), np.zeros((3, n)), np.zeros((3, n)), np.zeros((3, n)), np.zeros(1)
    x, e, size, largest = begin.copy(), np.zeros((2, n)), np.ones(n), np.zeros(n)
    sizes(ct, x, largest, size)
    h, before, close, at, t = 1e-4 * (ct.marks[1] - ct.marks[0]), 1.0, 1e-3 * tol, 0, 0.0
    while at < wanted.size and wanted[at] <= 0.0:
        shown[at] = ct.probes @ x
        at += 1
    for seg in range(len(ct.marks) - 1):
        end, degree = ct.marks[seg + 1], 0
        good, x, f, k, m, swaps = fresh(ct, x, t, seg, size, count)
        if not good:
            return count, shown, stated, t
        for w in range(2):
            e[w] = tangent(ct, e[w], np.zeros(n), 1e-13, x, seg, m, swaps, count)
        h = min(h, 1e-2 * (end - t)) if seg else h
        before, rejected, old = 1.0, False, 1.0
        while t < end:
            if count[STEPS] + count[REJECTED] > most or h < 1e-15 * end:
                return count, shown, stated, t
            last = t + h * 1.001 >= end
            if last:
                h = end - t
            elif t + 2.0 * h > end:
                h = 0.5 * (end - t)
            for i in range(3):
                z[i] = 0.0
                for p in range(3):
                    if degree:
                        shift = (1.0 + NODES3[i] * h / old) ** (p + 1) - 1.0
                        z[i] += shift * q[p]
                    elif p == 0:
                        z[i] = k * NODES3[i] * h
            good, made, previous, place = False, False, 0.0, x + z[2]
            for step in range(15):
                if not made:
                    jac = ct.g[ct.modes[seg]].copy()
                    add_slopes(ct, jac, place, zero, False, 1.0)
                    mr[:] = REAL / h * ct.c + jac
                    mc[:] = COMPLEX / h * ct.c + jac
                    factor(mr, sr, band)
                    factor(mc, sc, band)
                    count[FACTORS] += 1
                    made = True
                for i in range(3):
                    mix = (INVERSE3[i, 0] * z[0] + INVERSE3[i, 1] * z[1] + INVERSE3[i, 2] * z[2]) / h
                    r[i] = times(ct.c, mix, band) + flow(ct, x + z[i], t + NODES3[i] * h, seg, zero, False)
                d = correct(r, mr, sr, mc, sc, band)
                count[ITERATIONS] += 1
                z -= d
                now = max(norm(ct, d[0], size), norm(ct, d[1], size), norm(ct, d[2], size))
                if not now < 1e10:
                    break
                rate = now / previous if previous else 1.0
                if (previous and now * rate < close * (1.0 - rate)) or now < ROUNDING:
                    good = True
                    break
                if step and rate > 0.4:
                    made, place = False, x + z[2] if step % 2 else x + z[1]
                previous = now if made else 0.0
            off, d3, between = 1e10, np.zeros(n), np.zeros(n)
            if good:
                d3 = times(ct.c, (RE[0] * z[0] + RE[1] * z[1] + RE[2] * z[2]) / h, band) + f
                solve(mr, sr, band, d3)
                count[SOLVES] += 1
                off = norm(ct, d3, size) / tol
                if off > 1.0:  # filtered once more, as in the program of Hairer and Wanner
                    d3 = times(ct.c, (RE[0] * z[0] + RE[1] * z[1] + RE[2] * z[2]) / h, band)
                    again = d3 + f
                    solve(mr, sr, band, again)
                    d3 -= flow(ct, x + again, t, seg, zero, False)
                    solve(mr, sr, band, d3)
                    off = norm(ct, d3, size) / tol
                q[:] = POWERS3 @ z
                for gap in gaps:
                    value = x + gap * q[0] + gap**2 * q[1] + gap**3 * q[2]
                    slope = (q[0] + 2.0 * gap * q[1] + 3.0 * gap**2 * q[2]) / h
                    inner = times(ct.c, slope, band) + flow(ct, value, t + gap * h, seg, zero, False)
                    solve(mr, sr, band, inner)
                    count[SOLVES] += 1
                    between = np.maximum(between, np.abs(inner))
                off = max(off, norm(ct, between, size) / (BETWEEN * tol))
            if not off <= 1.0:
                q[:] = last_q
                count[REJECTED] += 1
                h *= growth(off, 1.0, 4.0, True) if good else 0.25
                rejected = True
                continue
            new = x + z[2]
            f = times(ct.c, (INVERSE3[2, 0] * z[0] + INVERSE3[2, 1] * z[1] + INVERSE3[2, 2] * z[2]) / h, band)
            last_q[:] = q
            k = (q[0] + 2.0 * q[1] + 3.0 * q[2]) / h
            degree = 1
            ends = np.zeros((2, n))
            for w in range(1 if carry else 0):
                own, first = np.zeros((3, n)), 0.0
                for step in range(8):
                    for i in range(3):
                        mix = (INVERSE3[i, 0] * own[0] + INVERSE3[i, 1] * own[1] + INVERSE3[i, 2] * own[2]) / h
                        r[i] = times(ct.c, mix, band) + slopes_times(ct, x + z[i], seg, e[w] + own[i])
                    d = correct(r, mr, sr, mc, sc, band)
                    count[SOLVES] += 1
                    own -= d
                    first = max(first, np.abs(d).max())
                    if step and np.abs(d).max() <= 1e-2 * first:
                        break
                ends[w] = e[w] + own[2]
                if w == 0:
                    ends[w] += d3
            at = show(ct, wanted, at, t, h, np.eye(3), 3, x, q / h, e, ends, between, shown, stated)
            e[:] = ends
            x, t, old = new, (end if last else t + h), h
            sizes(ct, x, largest, size)
            count[STEPS] += 1
            h *= min(1.0, growth(off, before, 4.0, False)) if rejected else growth(off, before, 4.0, False)
            before, rejected = max(off, 1e-4), False
    return count, shown, stated, t


@njit
def correct(r, mr, sr, mc, sc, band):
    """Both transformed systems of the three stages."""
    one = LR[0] * r[0] + LR[1] * r[1] + LR[2] * r[2]
    two = LC[0] * r[0] + LC[1] * r[1] + LC[2] * r[2]
    solve(mr, sr, band, one)
    solve(mc, sc, band, two)
    d = np.empty_like(r)
    for i in range(3):
        d[i] = TR[i] * one + 2.0 * (TC[i] * two).real
    return d
