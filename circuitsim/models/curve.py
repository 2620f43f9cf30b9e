"""Points of a device's curve: where it meets a load line.

A smooth device is a junction, whose current is a function of its own voltage, behind a resistance in series: with the
junction voltage u the curve's points are v = u + rs j(u), i = j(u). A model states ``junction(p, u)``, which returns
current and slope; ``p[0]`` is the resistance in series, the others are its own. It may return infinity beyond the range
of doubles. All functions here run interpreted or compiled, for one model at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from circuitsim import kernels

Junction = Callable[[Any, Any], tuple[Any, Any]]
"""Current (A) and slope (S) of a junction with parameters p at a voltage (V)."""

STEPS = 200
"""Most evaluations of a law on the way to a load line; ten are usual."""

LARGEST = 700.0
"""Exponents above lie beyond the range of doubles."""


class Curves(NamedTuple):
    """Kernels for all devices of one model, each a row of ``p``; the arrays have one entry a device.

    Attributes
    ----------
    project : callable
        ``(p, v, i, r, u, points)``: from the point (v, i) along the load line of resistance r to the curve. ``u``: the
        junction voltage to begin with, V, which is replaced; ``points`` (4, devices): voltage, current, slope and
        current per volt of the junction there.
    """

    project: Callable[..., None]


def load_line(junction, p, c, k, u):
    """The junction voltage u with u + k j(u) = c, from a guess: the slope of the left side is never below 1.

    Newton's method inside a bracket, on the logarithm of the current where that changes much.
    """
    j, g = junction(p, 0.0)
    far = c - k * j
    low, high = min(0.0, far), max(0.0, far)
    if not low < u < high:
        u = far if k * g < 1.0 else 0.5 * far
    for _ in range(STEPS):
        j, g = junction(p, u)
        h = (u - c) + k * j
        if h == 0.0:
            break
        if h > 0.0:
            high = u
        else:
            low = u
        new = 0.5 * (low + high)
        if abs(h) < np.inf:
            left, step = c - u, -h / (1.0 + k * g)
            if j * left > 0.0 and k * j / left > 0.0 and abs(step) * g > 0.5 * abs(j):
                step = -math.log(k * j / left) / (g / j + 1.0 / left)
            if low < u + step < high:
                new = u + step
        if abs(new - u) <= 2e-16 * abs(new):
            u = new
            break
        u = new
    return u


@cache
def _functions(junction: Junction) -> Callable[..., None]:
    """`Curves.project` of one law, as it stands."""

    def project(p, v, i, r, u, points):
        for d in range(u.size):
            own, resistance = p[d], r[d]
            if own[0] + resistance > 0.0:
                u[d] = load_line(junction, own, v[d] + resistance * i[d], own[0] + resistance, u[d])
            else:
                u[d] = v[d]
            j, g = junction(own, u[d])
            off = 0.0
            if own[0] + resistance > 0.0 and g < np.inf:
                # What rounding of the junction's voltage leaves over: of a steep law a large part of the current.
                h = (u[d] - v[d] - resistance * i[d]) + (own[0] + resistance) * j
                off = -h / (1.0 + (own[0] + resistance) * g)
                j += g * off
            points[0, d] = (u[d] + own[0] * j if own[0] > 0.0 else u[d]) + off
            points[1, d], points[3, d] = j, g
            points[2, d] = g / (1.0 + own[0] * g) if g < np.inf else np.inf

    return project


def curves(junction: Junction, devices: int) -> Curves:
    """The kernels of a law for so many devices at a time: interpreted for few, compiled for many."""
    function = _functions(junction)
    chosen = kernels.kernel(function, 20 * devices)
    if chosen is function:
        return Curves(np.errstate(all="ignore")(function))
    _register(junction)
    return Curves(chosen)


@cache
def _register(junction: Junction) -> None:
    """Let compiled kernels call a law, and what is above."""
    from numba.extending import register_jitable

    register_jitable(load_line)
    register_jitable(junction)


__all__ = ["LARGEST", "Curves", "Junction", "curves"]
