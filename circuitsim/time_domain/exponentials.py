"""Kernels: matrix exponentials, their action on a state, and their Chebyshev series on a window.

Circuits' system matrices are far from normal in units of V and A and nearly normal in units of √J. So the spectral
radius, not a norm, bounds the steps: Taylor's series of e^{A h} converges to rounding within `TERMS` terms if h times
the radius is at most one.
"""

from __future__ import annotations

import math

import numpy as np

from circuitsim.time_domain.small_matrices import times

TERMS = 19
"""Terms of Taylor's series; 1 / 19! is below rounding."""
STEPS = 16
"""Maximum number of steps of Taylor's series on a state; beyond it the matrix exponential is cheaper."""
DEGREE = 16
"""Degree of Taylor's series of a matrix exponential."""
PRODUCTS = 24
"""Number of matrix products of a matrix exponential, approximately."""


def put(values, out):
    """``out`` = values, (n,)."""
    for i in range(out.size):
        out[i] = values[i]


def exponential(system, radius, time):
    """e^{A t} − 1 by Taylor's series and squaring, applied to e^{A h} − 1 so that slow modes keep their digits.

    Parameters
    ----------
    system : (n, n) float array
    radius : float
        Largest absolute eigenvalue, 1/s.
    time : float
        s.
    """
    n = system.shape[0]
    doublings = max(0, math.frexp(radius * time)[1] + 1)
    step = math.ldexp(time, -doublings)
    e = np.zeros((n, n))
    for k in range(DEGREE, 0, -1):
        for i in range(n):
            e[i, i] += 1.0
        e = step / k * times(system, e)
    for _ in range(doublings):
        e = 2.0 * e + times(e, e)
    return e


def later(system, radius, time, z):
    """e^{A t} z."""
    n, out = z.size, z.copy()
    steps = max(1.0, math.ceil(radius * time))
    if steps > STEPS:
        change = exponential(system, radius, time)
        for i in range(n):
            for j in range(n):
                out[i] += change[i, j] * z[j]
        return out
    h = time / steps
    term, image = np.empty(n), np.empty(n)
    for _ in range(int(steps)):
        put(out, term)
        for k in range(1, TERMS + 1):
            share, largest = h / k, 0.0
            for i in range(n):
                found = 0.0
                for j in range(n):
                    found += system[i, j] * term[j]
                image[i] = share * found
                largest = max(largest, abs(image[i]))
            if largest == 0.0:
                break
            for i in range(n):
                term[i] = image[i]
                out[i] += image[i]
    return out


def evaluate(system, radius, voltage, current, mode, start, state, where, times, v, i):
    """Branch voltages and currents at times (n,) in the segments ``where`` (n,), into ``v`` and ``i`` (m, n)."""
    for k in range(times.size):
        s = where[k]
        m = mode[s]
        z = later(system[m], radius[m], times[k] - start[s], state[s])
        for b in range(v.shape[0]):
            drop, flow = 0.0, 0.0
            for j in range(z.size):
                drop += voltage[m, j, b] * z[j]
                flow += current[m, j, b] * z[j]
            v[b, k], i[b, k] = drop, flow
