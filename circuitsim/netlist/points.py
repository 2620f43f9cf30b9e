"""Values of a sweep: equidistant, or a number of points in each decade or octave."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence

from circuitsim.netlist import limits
from circuitsim.units import exact

WITHOUT_DIGITS = 290
"""Places behind the point, or before it, to which numbers are not rounded."""


def equidistant(start: float, stop: float, step: float, count: int) -> array[float]:
    """``count`` values from ``start`` on, the last one ``stop`` if a step ends on it."""
    largest = max(abs(start), abs(stop))
    digits = 14 - math.floor(math.log10(largest)) if largest else 0
    # In quarters, which are exact, so that a sweep across the whole range of doubles does not overflow.
    values = (4 * (start / 4 + k * (step / 4)) for k in range(count))
    # To 15 digits of the larger end: 3 × 0.1 is 0.3 as a person writes it, −0.9 + 9 × 0.1 is 0.
    rounded = (round(value, digits) + 0.0 for value in values)
    found = array("d", rounded if abs(digits) < WITHOUT_DIGITS else values)
    found[0] = start
    if abs(found[-1] - stop) <= 1e-9 * abs(step):
        found[-1] = stop
    return found


def points(start: float, stop: float, step: float) -> array[float]:
    """``start``, ``start + step`` … as far as ``stop``, which belongs to them where a step ends on it.

    Raises
    ------
    ValueError
        A step of zero or of the wrong sign, or too many points; the message names the cause.
    """
    if step == 0:
        raise ValueError("the step is zero")
    if start == stop:
        return array("d", [start])
    steps = stop / step - start / step  # the difference stop − start may overflow
    if steps < 0:
        raise ValueError(f"a step of {exact(step)} never leads from {exact(start)} to {exact(stop)}")
    if not steps < limits.SWEEP_POINTS:
        raise ValueError(f"more than {limits.SWEEP_POINTS:,} points")
    return equidistant(start, stop, step, math.floor(steps + 1e-9) + 1)


def logarithmic(start: float, stop: float, per_interval: float, factor: float) -> Sequence[float]:
    """``start``, and ``per_interval`` points in each ``factor`` (10: decade, 2: octave) as far as ``stop``.

    Raises
    ------
    ValueError
        A bound of zero, bounds of different sign, fewer than one point an interval, or too many points.
    """
    if per_interval < 1 or per_interval != math.floor(per_interval):
        raise ValueError(f"the number of points must be 1, 2, 3 …, not {exact(per_interval)}")
    if start == 0 or stop / start <= 0:
        raise ValueError("both bounds must be of one sign and not zero")
    ratio = math.log(stop / start, factor)
    steps = abs(ratio) * per_interval
    if not steps < limits.SWEEP_POINTS:
        raise ValueError(f"more than {limits.SWEEP_POINTS:,} points")
    count = math.floor(steps + 1e-9) + 1
    step = math.copysign(1.0, ratio) / per_interval
    found = [start if k == 0 else float(f"{start * factor ** (k * step):.15g}") for k in range(count)]
    if abs(found[-1] - stop) <= 1e-9 * abs(stop):
        found[-1] = stop
    return array("d", found)
