"""Time functions of sources as ngspice defines them: ``PULSE SIN EXP PWL SFFM AM``; at t = 0 the value at DC.

References
----------
ngspice user manual, version 39, chapter 4.1 (independent sources).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from circuitsim.netlist.tokens import CardError


class Grid(NamedTuple):
    """The step and the stop time of a time sweep (s), which some functions take for numbers that are left out."""

    step: float
    stop: float


STEADY = Grid(math.inf, math.inf)
"""Of an operating point: defaults without meaning, no function reads them at t = 0."""


def _get(x: Sequence[float], k: int, default: float = 0.0) -> float:
    """Number ``k``; ``default`` where it is left out."""
    return x[k] if k < len(x) else default


def _or(x: Sequence[float], k: int, default: float) -> float:
    """Number ``k``; ``default`` where it is left out or zero."""
    return x[k] if k < len(x) and x[k] != 0.0 else default


def _pulse(x: Sequence[float], t: float, grid: Grid) -> float:
    low, high = x[0], x[1]
    t -= _get(x, 2)
    rise, fall = _or(x, 3, grid.step), _or(x, 4, grid.step)
    width, period = _or(x, 5, grid.stop), _or(x, 6, grid.stop)
    if _get(x, 7) > 0 and t > x[7] * period:
        return low
    if t > period:
        t -= period * math.floor(t / period)
    if t <= 0 or t >= rise + width + fall:
        return low
    if t < rise:
        return low + (high - low) * t / rise
    if t <= rise + width:
        return high
    return high + (low - high) * (t - rise - width) / fall


def _sine(x: Sequence[float], t: float, grid: Grid) -> float:
    offset, amplitude, delay, phase = x[0], x[1], _get(x, 3), math.radians(_get(x, 5))
    late, frequency = t - delay, _or(x, 2, 1.0 / grid.stop)
    if late <= 0.0 or (_get(x, 6) > 0.0 and late * abs(frequency) >= x[6]):
        return offset + (amplitude * math.sin(phase) if phase else 0.0)
    angle = math.tau * frequency * late + phase
    return offset + amplitude * math.sin(angle) * math.exp(-late * _get(x, 4))


def _exponential(x: Sequence[float], t: float, grid: Grid) -> float:
    low, high = x[0], x[1]
    rise_at, rise = _or(x, 2, grid.step), _or(x, 3, grid.step)
    fall_at, fall = _or(x, 4, rise_at + grid.step), _or(x, 5, grid.step)
    value = low
    if t > rise_at:
        value += (high - low) * -math.expm1(-(t - rise_at) / rise)
    if t > fall_at:
        value += (low - high) * -math.expm1(-(t - fall_at) / fall)
    return value


def _fm(x: Sequence[float], t: float, grid: Grid) -> float:
    carrier = math.tau * _or(x, 2, 1.0 / grid.stop) * t + math.radians(_get(x, 5))
    signal = math.tau * _or(x, 4, 1.0 / grid.stop) * t + math.radians(_get(x, 6))
    return x[0] + x[1] * math.sin(carrier + _get(x, 3) * math.sin(signal))


def _am(x: Sequence[float], t: float, grid: Grid) -> float:
    t -= _get(x, 4)
    if t <= 0:
        return 0.0
    if _get(x, 5) or _get(x, 6):
        raise ValueError("the phases of AM are not read")
    signal, carrier = _or(x, 2, 1.0 / grid.stop), _get(x, 3)
    return x[0] * (x[1] + math.sin(math.tau * signal * t)) * math.sin(math.tau * carrier * t)


def _points(x: Sequence[float], t: float, grid: Grid) -> float:
    times, values = x[0::2], x[1::2]
    if len(times) != len(values):
        raise ValueError("PWL needs pairs of time and value")
    if any(b <= a for a, b in pairwise(times)):
        raise ValueError("the times of PWL must grow")
    if t <= times[0] or len(times) == 1:
        return values[0]
    k = bisect_right(times, t)
    if k == len(times):
        return values[-1]
    return values[k - 1] + (values[k] - values[k - 1]) * (t - times[k - 1]) / (times[k] - times[k - 1])


MOST = {"pulse": 8, "sin": 7, "exp": 6, "sffm": 7, "am": 7}
"""Most numbers of a function; the last of PULSE and SIN are LTspice's numbers of cycles."""

# Name → (fewest numbers, place of the delay among them or None, value at a time).
FUNCTIONS: dict[str, tuple[int, int | None, Callable[[Sequence[float], float, Grid], float]]] = {
    "pulse": (2, 2, _pulse),
    "sin": (2, 3, _sine),
    "exp": (2, 2, _exponential),
    "pwl": (2, None, _points),
    "sffm": (2, None, _fm),
    "am": (2, 4, _am),
}
ALIASES = {"sine": "sin"}
"""Other names of functions; LTspice writes SINE."""

_EXPLICIT = {"pulse": (6, (3, 4, 5)), "sin": (3, (2,)), "exp": (6, (3, 5)), "sffm": (5, (2, 4))}
"""Function → numbers that an expression has to state, and places of those that may not be zero: a card takes them from
its ``.tran``."""


def spice_function(name: str) -> Callable[..., float]:
    """``spice_pulse(v1, v2, …)`` of an expression, with the time (s) as its first argument (Xyce)."""
    fewest, nonzero = _EXPLICIT[name]

    def at(time: float, *numbers: float) -> float:
        if len(numbers) < fewest or not all(numbers[k] for k in nonzero):
            raise ValueError(f"spice_{name} needs at least {fewest} numbers, with times that are not zero")
        return FUNCTIONS[name][2](numbers, time, STEADY)

    return at


EXTERNAL = frozenset(("external",))
RANDOM = frozenset(("trnoise", "trrandom"))
"""Time functions that are refused: each run would be another deck."""
MAY_BE_EMPTY = frozenset(("sin", "pulse", "exp", "sffm", "am"))
"""Functions that old decks name without numbers beside AC: they are 0 at DC."""


class Waveform(NamedTuple):
    """The time function of one source.

    Attributes
    ----------
    name : str
        A key of `FUNCTIONS`.
    numbers : tuple of float
        As on the card, V or A and s.
    repeat : float or None
        Of PWL: the time on its own axis from which it repeats (``r=``), s.
    delay : float
        Of PWL: ``td=``, s.
    factor : float
        Sources in parallel.
    """

    name: str
    numbers: tuple[float, ...]
    repeat: float | None = None
    delay: float = 0.0
    factor: float = 1.0

    def at(self, time: float, grid: Grid) -> float:
        """The value at ``time`` (s), V or A.

        Raises
        ------
        ValueError
            Numbers that make no function.
        """
        return self.factor * FUNCTIONS[self.name][2](self.numbers, self.own_time(time), grid)

    def own_time(self, time: float) -> float:
        """``time`` on the axis of the numbers: after the delay, within the repeated part."""
        if self.name != "pwl":
            return time
        time -= self.delay
        last = self.numbers[-2]
        if self.repeat is None or time <= last or last <= self.repeat:
            return time
        return self.repeat + math.fmod(time - last, last - self.repeat)

    def breakpoints(self, grid: Grid) -> Iterator[float]:
        """The times at which the slope changes, up to ``grid.stop``, in order within each period."""
        x = self.numbers
        if self.name == "pulse":
            delay, rise, fall = _get(x, 2), _or(x, 3, grid.step), _or(x, 4, grid.step)
            width, period = _or(x, 5, grid.stop), _or(x, 6, grid.stop)
            corners = (0.0, rise, rise + width, rise + width + fall)
            yield from _repeated([delay + c for c in corners if c <= period], period, grid.stop)
        elif self.name == "pwl":
            times = [self.delay + t for t in x[0::2]]
            yield from (t for t in times if t <= grid.stop)
            if self.repeat is not None and times[-1] - self.delay > self.repeat:
                start = self.delay + self.repeat
                again = [times[-1] + t - start for t in times if t >= start]
                yield from _repeated(again, times[-1] - start, grid.stop)
        elif self.name in ("sin", "am"):
            yield _get(x, 3 if self.name == "sin" else 4)
            if self.name == "sin" and _get(x, 6) > 0.0:
                yield _get(x, 3) + x[6] / abs(_or(x, 2, 1.0 / grid.stop))
        elif self.name == "exp":
            first = _or(x, 2, grid.step)
            yield from (first, _or(x, 4, first + grid.step))


def _repeated(times: Sequence[float], period: float, stop: float) -> Iterator[float]:
    """``times``, and again after each ``period``, up to ``stop``."""
    cycle = 0
    while period > 0 and (cycle == 0 or times[0] + cycle * period <= stop):
        yield from (t + cycle * period for t in times if t + cycle * period <= stop)
        cycle += 1


def checked_waveform(wave: Waveform, offset: int) -> float:
    """The value of ``wave`` at DC.

    Raises
    ------
    CardError
        Too few numbers, or a start before t = 0 (whose value at the operating point is not simply the first one).
    """
    shown = wave.name.upper()
    if wave.name in EXTERNAL:
        raise CardError("unsupported", f"{shown} has no value at the operating point", offset, "write its DC value")
    fewest, delay, _ = FUNCTIONS[wave.name]
    if len(wave.numbers) < fewest:
        raise CardError("syntax", f"{shown} needs at least {fewest} numbers", offset, "or write DC and a value")
    if delay is not None and _get(wave.numbers, delay) < 0:
        raise CardError("range", f"{shown} begins before t = 0", offset, "write its value at t = 0: DC …")
    try:
        value = wave.at(0.0, STEADY)
    except ValueError as error:
        raise CardError("syntax", str(error), offset, "") from None
    if not math.isfinite(value):
        raise CardError("number", f"{shown} has no finite value at t = 0", offset)
    return value
