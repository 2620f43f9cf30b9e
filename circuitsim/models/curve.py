"""Intersections of a device's I–V curve with a load line.

A smooth device is a junction, whose current is a function of its own voltage, with a resistance in series: with the
junction voltage u, the curve is v = u + rs j(u), i = j(u). A model defines ``junction(p, u)``, which returns current
and slope, infinite on overflow; ``p[0]`` is the series resistance, the rest are the model's own. All functions here run
interpreted or compiled, for one model at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Junction = Callable[[Any, Any], tuple[Any, Any]]
"""Current (A) and slope (S) of a junction with parameters p at a voltage (V)."""

STEPS = 200
"""Maximum number of evaluations per load line; ten are typical."""

ROUNDED = 8e-16
"""Final step as a fraction of the voltage: the rounding of the characteristic."""

SLOW = 0.8
"""If a step leaves more than this fraction of the residual, the bracket is bisected."""

WIDE = 1e6
"""Volts, or ratio of its ends, above which a bracket is bisected in the logarithm."""

LARGEST = 700.0
"""Larger exponents overflow."""


def load_line(junction, p, c, k, u):
    """The junction voltage u with u + k j(u) = c, from a guess, with current and slope there. The slope of the left
    side is at least 1.

    Newton's method inside a bracket, on the logarithm of the current where that changes much. A step that leaves `SLOW`
    of the residual is followed by bisection, because Newton's method alone may cycle across a breakpoint.
    """
    j, g = junction(p, u)
    h = (u - c) + k * j
    low, high = (u, u - h) if h <= 0.0 else (u - h, u)
    if not abs(h) <= abs(c):
        at_zero, slope = junction(p, 0.0)
        far = c - k * at_zero
        low, high = min(0.0, far), max(0.0, far)
        if low < c < high:  # a charge drives a current at 0 V; the sign of j(c) tells the solution's side of c
            if junction(p, c)[0] > 0.0:
                high = c
            else:
                low = c
        if not low < u < high:
            u = far if k * slope < 1.0 and far in (low, high) else 0.5 * (low + high)
            j, g = junction(p, u)
            h = (u - c) + k * j
    slow = False
    for _ in range(STEPS):
        if h == 0.0:
            break
        size = abs(h)
        if h > 0.0:
            high = u
        else:
            low = u
        new = middle(low, high)
        if abs(h) < np.inf:
            left, step = c - u, -h / (1.0 + k * g)
            if j * left > 0.0 and k * j / left > 0.0 and abs(step) * g > 0.5 * abs(j):
                step = -math.log(k * j / left) / (g / j + 1.0 / left)
            if abs(step) <= ROUNDED * abs(u):
                break
            # Where current and voltage across k differ in sign, the curve does not meet the line up to c, where that
            # voltage is zero. Newton's steps down to there, on an exponential law, would be one thermal voltage each.
            at = u + step if j * left >= 0.0 else c
            if not slow and low <= at <= high:
                new = at
        if abs(new - u) <= 2e-16 * abs(new):
            break
        u = new
        j, g = junction(p, u)
        h = (u - c) + k * j
        slow = not slow and not abs(h) <= SLOW * size
    return u, j, g


def middle(low, high):
    """The arithmetic mean of two numbers, or the geometric one if their ratio or voltage exceeds `WIDE`.

    A device driven by a current with a large resistance in parallel starts far away: a bracket of 1e112 V shrinks to
    `WIDE` in five geometric bisections; arithmetic ones would take 350.
    """
    near, far = (low, high) if high >= -low else (high, low)
    least = max(abs(near), 1.0)
    if abs(far) > WIDE * least:
        return math.copysign(math.sqrt(abs(far)) * math.sqrt(least), far)
    return 0.5 * (low + high)


def point(junction, p, v, i, r, u):
    """The intersection of the curve with the load line of resistance r through (v, i).

    Parameters
    ----------
    u : float
        Initial junction voltage, V.

    Returns
    -------
    junction voltage, voltage (V), current (A), slope (S), slope of the junction (S)
    """
    k = p[0] + r
    if not k > 0.0:
        j, g = junction(p, v)
        return v, v, j, g, g
    u, j, g = load_line(junction, p, v + r * i, k, u)
    off = 0.0
    if g < np.inf:
        # Residual from rounding of the junction voltage, a large part of a steep current. No more than
        # that: beside a breakpoint the slope is that of one side.
        h = (u - v - r * i) + k * j
        most = ROUNDED * abs(u)
        off = min(max(-h / (1.0 + k * g), -most), most)
        j += g * off
    return u, (u + p[0] * j if p[0] > 0.0 else u) + off, j, (g / (1.0 + p[0] * g) if g < np.inf else np.inf), g
