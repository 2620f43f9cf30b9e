"""Points of a device's curve: where it meets a load line.

A smooth device is a junction, whose current is a function of its own voltage, behind a resistance in series: with the
junction voltage u the curve's points are v = u + rs j(u), i = j(u). A model states ``junction(p, u)``, which returns
current and slope; ``p[0]`` is the resistance in series, the others are its own. It may return infinity beyond the range
of doubles. All functions here run interpreted or compiled, for one model at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Junction = Callable[[Any, Any], tuple[Any, Any]]
"""Current (A) and slope (S) of a junction with parameters p at a voltage (V)."""

STEPS = 200
"""Maximum number of evaluations of a law on the way to a load line; ten are usual."""

ROUNDED = 8e-16
"""Fraction of a voltage that a step may have at the end: rounding of the law."""

SLOW = 0.8
"""Fraction of the residual from which on a step is followed by halving the bracket."""

WIDE = 1e6
"""Volts, or ratio of its ends, above which a bracket is halved in its logarithm: none withstands a million volts."""

LARGEST = 700.0
"""Exponents above lie beyond the range of doubles."""


def load_line(junction, p, c, k, u):
    """The junction voltage u with u + k j(u) = c, from a guess, and current and slope there: the slope of the left side
    is never below 1.

    Newton's method inside a bracket, on the logarithm of the current where that changes much; a step that leaves
    `SLOW` of what was left over is followed by halving the bracket: across a kink, steps of Newton's method alone lead
    in circles.
    """
    j, g = junction(p, u)
    h = (u - c) + k * j
    low, high = (u, u - h) if h <= 0.0 else (u - h, u)
    if not abs(h) <= abs(c):
        at_zero, slope = junction(p, 0.0)
        far = c - k * at_zero
        low, high = min(0.0, far), max(0.0, far)
        if low < c < high:  # a charge drives a current at 0 V; the solution lies on the side of c that j(c) tells
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
            # Where current and voltage across k have other signs the curve does not meet the line: above a charge's
            # voltage steps down an exponential law would be one thermal voltage each.
            if not slow and j * left >= 0.0 and low <= u + step <= high:
                new = u + step
        if abs(new - u) <= 2e-16 * abs(new):
            break
        u = new
        j, g = junction(p, u)
        h = (u - c) + k * j
        slow = not slow and not abs(h) <= SLOW * size
    return u, j, g


def middle(low, high):
    """A number half-way between two, or between their logarithms where one is beyond `WIDE` times the other, or volts.

    A device that a current alone drives begins as far away as the resistance beside it is large: a bracket of 1e112 V
    is down to `WIDE` after five such halvings, and would need 350 of the others.
    """
    near, far = (low, high) if high >= -low else (high, low)
    least = max(abs(near), 1.0)
    if abs(far) > WIDE * least:
        return math.copysign(math.sqrt(abs(far)) * math.sqrt(least), far)
    return 0.5 * (low + high)


def point(junction, p, v, i, r, u):
    """Where the load line of resistance r through (v, i) meets the curve.

    Parameters
    ----------
    u : float
        The junction voltage to begin with, V.

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
        # What rounding of the junction's voltage leaves over: of a steep law a large part of the current. No more than
        # that: beside a kink the slope is that of one side alone.
        h = (u - v - r * i) + k * j
        most = ROUNDED * abs(u)
        off = min(max(-h / (1.0 + k * g), -most), most)
        j += g * off
    return u, (u + p[0] * j if p[0] > 0.0 else u) + off, j, (g / (1.0 + p[0] * g) if g < np.inf else np.inf), g
