"""Kernels of `implicit_method.py`: linear equations, elements, Newton's method, step control."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

STEPS, REJECTED, ITERATIONS, FACTORS, SOLVES = range(5)
ROUNDING, BETWEEN = 2e-14, 10.0


class Circuit(NamedTuple):
    """C x' + G x + diodes + amplifiers = s0 + wave(t) s1; `kind` 0 volts, 1 amperes, 2 not looked at."""

    c: np.ndarray
    g: np.ndarray
    s0: np.ndarray
    s1: np.ndarray
    marks: np.ndarray
    modes: np.ndarray
    levels: np.ndarray
    sine: np.ndarray
    junctions: np.ndarray
    laws: np.ndarray
    amplifiers: np.ndarray
    limits: np.ndarray
    kind: np.ndarray
    full: np.ndarray
    band: int
    probes: np.ndarray


@njit(cache=True)
def factor(m, swaps, band):
    n = m.shape[0]
    for k in range(n):
        last, p = min(n, k + band + 1), k
        for i in range(k + 1, last):
            if abs(m[i, k]) > abs(m[p, k]):
                p = i
        swaps[k] = p
        far = min(n, k + 2 * band + 1)
        if p != k:
            for j in range(k, far):
                m[k, j], m[p, j] = m[p, j], m[k, j]
        for i in range(k + 1, last):
            if m[i, k] != 0.0:
                m[i, k] /= m[k, k]
                for j in range(k + 1, far):
                    m[i, j] -= m[i, k] * m[k, j]


@njit(cache=True)
def solve(m, swaps, band, b):
    n = m.shape[0]
    for k in range(n):
        p = swaps[k]
        b[k], b[p] = b[p], b[k]
        for i in range(k + 1, min(n, k + band + 1)):
            b[i] -= m[i, k] * b[k]
    for k in range(n - 1, -1, -1):
        for j in range(k + 1, min(n, k + 2 * band + 1)):
            b[k] -= m[k, j] * b[j]
        b[k] /= m[k, k]


@njit(cache=True)
def times(m, x, band):
    n = m.shape[0]
    out = np.zeros(n)
    for i in range(n):
        for j in range(max(0, i - band), min(n, i + band + 1)):
            out[i] += m[i, j] * x[j]
    return out


@njit(cache=True)
def drop(pair, x):
    a, b = pair
    return (x[a] if a >= 0 else 0.0) - (x[b] if b >= 0 else 0.0)


@njit(cache=True)
def junction(law, v):
    """Current and conductance; a straight line beyond 40 thermal voltages above 1 A, that nothing overflows."""
    most = law[1] * math.log(1.0 / law[0]) + 8.0 * law[1]
    e = math.exp(min(v, most) / law[1])
    return law[0] * (e - 1.0) + law[0] * e / law[1] * max(0.0, v - most), law[0] * e / law[1]


@njit(cache=True)
def flow(ct, x, t, seg, near, held):
    """f(x, t); with `held` each junction's law is its tangent at `near`."""
    wave = ct.levels[seg, 0] + ct.levels[seg, 1] * (t - ct.marks[seg]) + ct.sine[0] * math.sin(ct.sine[1] * t)
    f = times(ct.g[ct.modes[seg]], x, ct.band) - ct.s0 - wave * ct.s1
    for k in range(len(ct.junctions)):
        v = drop(ct.junctions[k], x)
        at = near[k] if held else v
        i, g = junction(ct.laws[k], at)
        i += g * (v - at)
        a, b = ct.junctions[k]
        if a >= 0:
            f[a] += i
        if b >= 0:
            f[b] -= i
    for k in range(len(ct.amplifiers)):
        o, p, n = ct.amplifiers[k]
        gain, limit, siemens = ct.limits[k]
        f[o] += siemens * (x[o] - limit * math.tanh(gain * (x[p] - x[n]) / limit))
    return f


@njit(cache=True)
def add_slopes(ct, m, x, near, held, share):
    """m += share × (derivative of f)."""
    for k in range(len(ct.junctions)):
        g = share * junction(ct.laws[k], near[k] if held else drop(ct.junctions[k], x))[1]
        a, b = ct.junctions[k]
        if a >= 0:
            m[a, a] += g
        if b >= 0:
            m[b, b] += g
        if a >= 0 and b >= 0:
            m[a, b] -= g
            m[b, a] -= g
    for k in range(len(ct.amplifiers)):
        o, p, n = ct.amplifiers[k]
        gain, limit, siemens = ct.limits[k]
        slope = share * siemens * gain / math.cosh(min(300.0, abs(gain * (x[p] - x[n]) / limit))) ** 2
        m[o, o] += share * siemens
        m[o, p] -= slope
        m[o, n] += slope


@njit(cache=True)
def slopes_times(ct, x, seg, e):
    """(derivative of f at x) e."""
    f = times(ct.g[ct.modes[seg]], e, ct.band)
    for k in range(len(ct.junctions)):
        i = junction(ct.laws[k], drop(ct.junctions[k], x))[1] * drop(ct.junctions[k], e)
        a, b = ct.junctions[k]
        if a >= 0:
            f[a] += i
        if b >= 0:
            f[b] -= i
    for k in range(len(ct.amplifiers)):
        o, p, n = ct.amplifiers[k]
        gain, limit, siemens = ct.limits[k]
        slope = siemens * gain / math.cosh(min(300.0, abs(gain * (x[p] - x[n]) / limit))) ** 2
        f[o] += siemens * e[o] - slope * (e[p] - e[n])
    return f


@njit(cache=True)
def norm(ct, d, size):
    most = 0.0
    for i in range(d.size):
        if ct.kind[i] < 2:
            most = max(most, abs(d[i]) / size[i])
    return most


@njit(cache=True)
def sizes(ct, x, largest, size):
    for i in range(x.size):
        largest[i] = max(largest[i], abs(x[i]))
    for kind in range(3):
        most = ct.full[kind]
        for i in range(x.size):
            if ct.kind[i] == kind:
                most = max(most, largest[i])
        for i in range(x.size):
            if ct.kind[i] == kind:
                size[i] = max(largest[i], 1e-3 * most)


@njit(cache=True)
def limited(law, new, old):
    """A junction's voltage after an iteration: logarithmic steps up, as SPICE takes."""
    scale = law[1]
    critical = scale * math.log(scale / (1.4142 * law[0]))
    if new > critical and abs(new - old) > 2.0 * scale:
        if old > 0.0:
            share = 1.0 + (new - old) / scale
            return (old + scale * math.log(share) if share > 0.0 else critical), True
        return scale * math.log(new / scale), True
    return new, False


@njit(cache=True)
def newton(ct, x0, base, share, t, seg, x, m, swaps, made, size, close, count):
    """C (x − x0) + base + share f(x, t) = 0 from x; whether it converged."""
    nd, last = len(ct.junctions), 0.0
    near = np.array([drop(ct.junctions[k], x) for k in range(nd)])
    for step in range(30):
        r = times(ct.c, x - x0, ct.band) + base + share * flow(ct, x, t, seg, near, True)
        if not made:
            m[:] = ct.c + share * ct.g[ct.modes[seg]]
            add_slopes(ct, m, x, near, True, share)
            factor(m, swaps, ct.band)
            count[FACTORS] += 1
            made = True
        solve(m, swaps, ct.band, r)
        count[ITERATIONS] += 1
        x -= r
        bent = False
        for k in range(nd):
            near[k], was = limited(ct.laws[k], drop(ct.junctions[k], x), near[k])
            bent = bent or was
        d = norm(ct, r, size)
        if not d < 1e10:
            return False
        rate = d / last if step and last else 1.0
        if not bent and ((step and d * rate < close * (1.0 - rate)) or d < ROUNDING):
            return True
        if bent or (step and rate > 0.25) or (step == 0 and len(ct.amplifiers)):
            made = False
        last = d
    return False


@njit(cache=True)
def fresh(ct, x, t, seg, size, count):
    """After a discontinuity: charges and fluxes stay, all else and the slopes are found by two steps of 0.1 ps."""
    n, share = x.size, 1e-13
    m, swaps, none = np.empty((n, n)), np.empty(n, dtype=np.int64), np.zeros(n)
    first = x.copy()
    good = newton(ct, x, none, share, t, seg, first, m, swaps, False, size, 1e-10, count)
    second = first.copy()
    good = newton(ct, first, none, share, t, seg, second, m, swaps, False, size, 1e-12, count) and good
    found = 2.0 * first - second
    return good, found, -flow(ct, found, t, seg, none, False), (second - first) / share, m, swaps


@njit(cache=True)
def tangent(ct, x0, base, share, x, seg, m, swaps, count):
    """C (e − x0) + base + share J(x) e = 0, with factors of a matrix nearby."""
    e = x0.copy()
    first = 0.0
    for step in range(8):
        r = times(ct.c, e - x0, ct.band) + base + share * slopes_times(ct, x, seg, e)
        solve(m, swaps, ct.band, r)
        count[SOLVES] += 1
        e -= r
        most = np.abs(r).max()
        first = max(first, most)
        if most <= 1e-2 * first and step:
            break
    return e


@njit(cache=True)
def growth(off, before, order, rejected):
    """PI control of the length of steps."""
    off = max(off, 1e-10)
    if rejected:
        return max(0.2, 0.9 * off ** (-1.0 / order))
    return min(5.0, max(0.2, 0.9 * off ** (-0.7 / order) * before ** (0.4 / order)))


@njit(cache=True)
def show(ct, wanted, at, t, h, weights, powers, x, k, errors, ends, between, shown, stated):
    """Outputs in (t, t + h] from the dense output; carried errors between their values at both ends."""
    while at < wanted.size and wanted[at] <= t + h * (1.0 + 1e-12):
        share, value = (wanted[at] - t) / h, x.copy()
        for p in range(powers):
            for s in range(k.shape[0]):
                value += h * weights[p, s] * share ** (p + 1) * k[s]
        for q in range(ct.probes.shape[0]):
            shown[at, q] = ct.probes[q] @ value
            for w in range(2):
                own = ct.probes[q] @ ((1.0 - share) * errors[w] + share * ends[w])
                stated[at, w, q] = abs(own) + np.abs(ct.probes[q]) @ between
        at += 1
    return at
