"""The inverse of a formula of a current: the current at a given voltage (see `circuitsim.models.formula_tape`).

Newton's method inside a bracket; a step that does not halve the residual is followed by bisection, in the exponent
where the ends are far apart.
"""

from __future__ import annotations

import math
from typing import Any

from circuitsim.models.formula_tape import by_count, evaluate

STEPS = 400
"""Maximum number of evaluations of a formula; ten to twenty are typical."""

ROUNDED = 2e-16
"""Final step as a fraction of the current."""

BESIDE = 1e-12
"""Offset from a point of zero slope at which the slope is evaluated instead, A."""

LEAST = 1e-100
"""Minimum slope of a formula, Ω."""

FAR, TINY, JUMP = 16.0, 1e-250, 2.0**-20
"""Ratio of a bracket's ends from which exponents are bisected; a current that counts as zero, A; the fraction of the
far end that is tried if the near one is zero."""


def between(low: Any, high: Any) -> Any:
    """The midpoint of a bracket on one side of zero, A."""
    near, far = (low, high) if abs(low) < abs(high) else (high, low)
    if abs(near) < TINY:
        return JUMP * far if abs(far) > TINY else 0.5 * far
    if abs(far) > FAR * abs(near):
        return math.copysign(math.sqrt(abs(near)) * math.sqrt(abs(far)), far)
    return 0.5 * (low + high)


def inverse(p: Any, u: Any) -> tuple[Any, Any]:
    """The current i, A, between p[2] and p[3], at which the formula has the value u, V, and its slope there, Ω;
    infinite if there is none."""
    i = 0.0
    value, slope = evaluate(p, i)
    left = value - u
    low, high = (0.0, float(p[3])) if left < 0.0 else (float(p[2]), 0.0)
    end = high if left < 0.0 else low
    at_end = evaluate(p, end)[0] - u
    if (left < 0.0 and at_end < 0.0) or (left > 0.0 and at_end > 0.0):
        return (math.inf if left < 0.0 else -math.inf), math.inf
    slow = False
    for _ in range(STEPS):
        if left == 0.0:
            break
        low, high = (i, high) if left < 0.0 else (low, i)
        new = between(low, high)
        if not slow and 0.0 < slope < math.inf:
            step = -left / slope
            if abs(step) <= ROUNDED * abs(i):
                break
            if low < i + step < high:
                new = i + step
        if new == i or not low < new < high:
            break
        before, i = abs(left), new
        value, slope = evaluate(p, i)
        left = value - u
        slow = not slow and not abs(left) <= 0.5 * before
    return i, slope


def junction(p: Any, u: Any) -> tuple[Any, Any]:
    """Current (A) and slope (S) of m devices in parallel at a voltage u, V; p: 0, number of instructions, minimum and
    maximum current of one device, m, then the tape."""
    i, slope = inverse(p, u)
    if not abs(i) < math.inf:
        return i, math.inf
    if not 0.0 < slope < math.inf:
        slope = evaluate(p, i + (BESIDE if i <= 0.0 else -BESIDE))[1]
    return float(p[4]) * i, float(p[4]) / min(max(slope, LEAST), 1.0 / LEAST)


def by_parameters(p: Any, u: Any, out: Any) -> None:
    """Derivatives of the current with respect to p; numbers of the tape are not parameters."""
    by_count(p, junction(p, u)[0], out)
