"""Values of a sweep: equidistant, or a number of points in each decade or octave."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from circuitsim.netlist import limits
from circuitsim.units import exact

if TYPE_CHECKING:
    import numpy as np

EXACT_POWER = 22
"""Powers of ten up to this one are doubles."""
CLEAR = 0.4
"""Distance from an integer up to which rounding of a product, at most a sixteenth, does not change which it is."""


class Points(Sequence[float]):
    """Equidistant values, computed at access: no cost of reading a sweep of a million points."""

    def __init__(self, start: float, stop: float, step: float, count: int) -> None:
        self._start, self._step, self._count = start, step, count
        largest = max(abs(start), abs(stop))
        self._digits = 14 - math.floor(math.log10(largest)) if largest else 0
        self._stop = stop if abs(self._at(count - 1) - stop) <= 1e-9 * abs(step) else self._at(count - 1)

    def _at(self, k: int) -> float:
        # In quarters, which are exact, so that a sweep across the whole range of doubles does not overflow.
        value = 4 * (self._start / 4 + k * (self._step / 4))
        # To 15 digits of the larger end: 3 × 0.1 is 0.3 as a person writes it, −0.9 + 9 × 0.1 is 0.
        return round(value, self._digits) + 0.0 if k and abs(self._digits) < 290 else value

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, item: Any) -> Any:
        if isinstance(item, slice):
            return [self[k] for k in range(*item.indices(self._count))]
        k = range(self._count)[item]
        return self._stop if k == self._count - 1 else self._at(k)

    def __iter__(self) -> Iterator[float]:
        # A value in a row costs a third of one at an index.
        start, step, digits = self._start / 4, self._step / 4, self._digits
        if abs(digits) >= 290 or self._count < 2:
            return (self[k] for k in range(self._count))
        inner = (round(4 * (start + k * step), digits) + 0.0 for k in range(1, self._count - 1))
        return chain((self._at(0),), inner, (self._stop,))

    def array(self) -> np.ndarray:
        """All values (n,): the same numbers at a tenth of the cost."""
        import numpy as np

        k, scale = np.arange(self._count), 10.0 ** max(self._digits, 0)
        if not 0 <= self._digits <= EXACT_POWER or self._count < 2:
            return np.array([*self])
        values = 4 * (self._start / 4 + k * (self._step / 4))
        digits = values * scale
        # An integer over an exact power of ten is the double next to the decimal number.
        whole = np.rint(digits)
        found = whole / scale + 0.0
        for j in np.flatnonzero(np.abs(digits - whole) > CLEAR).tolist():
            found[j] = round(float(values[j]), self._digits) + 0.0
        found[0], found[-1] = self._at(0), self._stop
        return found

    def __repr__(self) -> str:
        return f"<{self._count} points from {exact(self[0])} to {exact(self[-1])}>"


def points(start: float, stop: float, step: float) -> Points:
    """``start``, ``start + step`` … as far as ``stop``, which belongs to them where a step ends on it.

    Raises
    ------
    ValueError
        A step of zero or of the wrong sign, or too many points; the message names the cause.
    """
    if step == 0:
        raise ValueError("the step is zero")
    if start == stop:
        return Points(start, stop, step, 1)
    steps = stop / step - start / step  # the difference stop − start may overflow
    if steps < 0:
        raise ValueError(f"a step of {exact(step)} never leads from {exact(start)} to {exact(stop)}")
    if not steps < limits.SWEEP_POINTS:
        raise ValueError(f"more than {limits.SWEEP_POINTS:,} points")
    return Points(start, stop, step, math.floor(steps + 1e-9) + 1)


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
