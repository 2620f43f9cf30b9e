"""Proof that a formula of one voltage or current does not fall, by interval bisection.

An interval on which the enclosure of the slope is nonnegative is done. If a condition or an enclosure remains undecided
at the smallest width (a breakpoint, a point of zero slope), the values at the ends decide, as they do at the ends of
all intervals, where discontinuities may lie.

Interval arithmetic encloses value and slope on many intervals at once: each stack entry encloses the value and its
derivative with respect to the voltage (Moore, Interval Analysis, 1966). Every operation widens its result by some units
in the last place, except an exact zero. The slope of an undecided condition is unbounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from circuitsim.models.formula_operations import (
    ABSOLUTE,
    ASINH,
    ATAN,
    BINARY,
    CHOOSE,
    CONSTANT,
    COS,
    COSH,
    DIVIDE,
    EXP,
    LOG,
    MAXIMUM,
    MINIMUM,
    NEGATE,
    POWER,
    REACHED,
    ROOTED,
    SIGN,
    SIGNED_POWER,
    SIN,
    SINH,
    SQRT,
    STEP,
    TANH,
    VOLTAGE,
    Tape,
)
from circuitsim.models.formula_tape import binary, evaluate

WIDER = 1e-15
"""Relative widening of each result: 4 units in the last place."""

SIDES = np.array([[-1.0], [1.0]])
"""The direction outwards at both ends of an interval."""

ALL = SIDES * np.inf
"""The ends of an unbounded interval."""


class Interval:
    """Intervals, with their lower and upper ends (2, k)."""

    def __init__(self, ends: Any) -> None:
        self.low, self.high = self.ends = np.asarray(ends)

    def __neg__(self) -> Interval:
        return Interval(-self.ends[::-1])

    def __add__(self, other: Interval) -> Interval:
        return _wider(self.ends + other.ends)

    def __sub__(self, other: Interval) -> Interval:
        return self + -other

    def __truediv__(self, other: Interval) -> Interval:
        return self * Interval(ALL).where(other.around(), other.through(lambda t: 1.0 / t))

    def __mul__(self, other: Interval) -> Interval:
        ends = (self.ends[:, None] * other.ends).reshape(4, -1)
        return _hull(np.where(np.isnan(ends), 0.0, ends))  # 0 · ∞ of an end that is not attained

    def __or__(self, other: Interval) -> Interval:
        """The hull of both."""
        return Interval([np.minimum(self.low, other.low), np.maximum(self.high, other.high)])

    def __abs__(self) -> Interval:
        return Interval([np.maximum(np.maximum(self.low, -self.high), 0.0) + 0.0, np.abs(self.ends).max(axis=0)])

    def around(self) -> np.ndarray:
        """Which intervals contain zero."""
        return (self.low <= 0.0) & (self.high >= 0.0)

    def constant(self, number: float) -> Interval:
        """One number in place of all."""
        return Interval(np.full_like(self.ends, number))

    def through(self, function: Callable[[np.ndarray], np.ndarray]) -> Interval:
        """The image under a monotone function."""
        return _hull(function(self.ends))

    def where(self, condition: np.ndarray, other: Interval) -> Interval:
        """These intervals where a condition holds, others elsewhere."""
        return Interval(np.where(condition, self.ends, other.ends))

    def step(self, below: float, above: float, at: float) -> Interval:
        """One of two numbers by the sign of x in the interval; ``at`` if x is zero."""
        ends = np.where(self.low >= 0.0, above, below), np.where(self.high <= 0.0, below, above)
        return Interval(np.where(self.ends.any(axis=0), ends, at))


class Enclosure(NamedTuple):
    """Enclosure of a value and its slope; ``undefined`` where a function may have no value."""

    value: Interval
    slope: Interval
    undefined: Any = False


def enclose(tape: Tape, low: np.ndarray, high: np.ndarray) -> Enclosure:
    """Enclosures of a formula for voltages from ``low`` to ``high``, V (k,)."""
    voltage = Interval([low, high])
    stack: list[Enclosure] = []
    for op, number in tape:
        if op == CONSTANT:
            stack.append(Enclosure(voltage.constant(number), voltage.constant(0.0)))
        elif op == VOLTAGE:
            stack.append(Enclosure(voltage, voltage.constant(1.0)))
        elif op == CHOOSE:
            stack[-3:] = [_chosen(*stack[-3:])]
        elif op in BINARY:
            stack[-2:] = [_of_two(op, *stack[-2:])]
        else:
            stack[-1] = _of_one(op, number, stack[-1])
    return stack[0]


def _wider(ends: np.ndarray) -> Interval:
    """The interval with its ends moved outwards; a NaN end becomes infinite."""
    wider = ends + SIDES * WIDER * np.abs(ends)
    return Interval(np.where(np.isnan(wider), ALL, wider))


def _hull(values: np.ndarray) -> Interval:
    """The hull of values (n, k), with its ends moved outwards."""
    return _wider(np.array([values.min(axis=0), values.max(axis=0)]))


def _chosen(condition: Enclosure, yes: Enclosure, no: Enclosure) -> Enclosure:
    """One of two enclosures; if the condition is undecided, the hull of their values."""
    sure, never = condition.value.low > 0.5, condition.value.high < 0.5
    value = yes.value.where(sure, no.value.where(never, yes.value | no.value))
    slope = yes.slope.where(sure, no.slope.where(never, Interval(ALL)))
    return Enclosure(value, slope, condition.undefined | (yes.undefined & ~never) | (no.undefined & ~sure))


def _of_two(op: int, x: Enclosure, y: Enclosure) -> Enclosure:
    (u, du, undefined), (v, dv, other) = x, y
    undefined = undefined | other
    if op not in (MINIMUM, MAXIMUM):
        return Enclosure(*binary(op, u, du, v, dv), undefined | v.around() if op == DIVIDE else undefined)
    best: Any = np.minimum
    first, second = u.high <= v.low, v.high <= u.low
    if op == MAXIMUM:
        best, first, second = np.maximum, second, first
    return Enclosure(Interval(best(u.ends, v.ends)), du.where(first, dv.where(second, du | dv)), undefined)


def _of_one(op: int, number: float, of: Enclosure) -> Enclosure:
    """A function of one number, by the chain rule."""
    x, slope, undefined = of
    if op in (SQRT, LOG, ROOTED):
        undefined = undefined | (x.low <= 0.0 if op == LOG else x.low < 0.0)
        x = Interval(np.maximum(x.ends, 0.0))
    if op in (POWER, SIGNED_POWER, ROOTED) and number <= 0.0:
        undefined = undefined | x.around()
    value, rate = _function(op, number, x)
    return Enclosure(value, rate * slope, undefined)


_SMOOTH: dict[int, tuple[Callable[..., np.ndarray], Callable[..., np.ndarray]]] = {
    EXP: (np.exp, np.exp),
    LOG: (np.log, lambda t: 1.0 / t),
    SQRT: (np.sqrt, lambda t: 0.5 / np.sqrt(t)),
    SINH: (np.sinh, np.cosh),
    COSH: (np.cosh, np.sinh),
    TANH: (np.tanh, lambda t: 1.0 / np.cosh(t) ** 2),
    ATAN: (np.arctan, lambda t: 1.0 / (1.0 + t * t)),
    ASINH: (np.arcsinh, lambda t: 1.0 / np.hypot(1.0, t)),
}
"""Functions and their derivatives, which are monotone in |x| except those of exp and cosh; so is cosh."""

_STEPS = {ABSOLUTE: (-1.0, 1.0, 1.0), SIGN: (-1.0, 1.0, 0.0), STEP: (0.0, 1.0, 0.0), REACHED: (0.0, 1.0, 1.0)}
"""Values below, above and at zero of a step, or of the slope of |x|."""


def _function(op: int, number: float, x: Interval) -> tuple[Interval, Interval]:
    """Enclosures of a function and of its derivative."""
    if op == NEGATE:
        return -x, x.constant(-1.0)
    if op in _SMOOTH:
        function, derivative = _SMOOTH[op]
        return (abs(x) if op == COSH else x).through(function), (x if op in (EXP, COSH) else abs(x)).through(derivative)
    if op in (SIN, COS):
        sine, cosine = _wave(np.sin, x), _wave(np.cos, x)
        return (sine, cosine) if op == SIN else (cosine, -sine)
    if op in _STEPS:
        found = x.step(*_STEPS[op])
        around = (x.low < 0.0) & (x.high > 0.0)
        return (abs(x), found) if op == ABSOLUTE else (found, Interval(ALL).where(around, x.constant(0.0)))
    rate = abs(x).through(lambda t: np.power(t, number - 1.0)) * x.constant(number)
    if op == SIGNED_POWER:
        return x.through(lambda t: np.sign(t) * np.power(np.abs(t), number)), rate
    return abs(x).through(lambda t: np.power(t, number)), rate * x.step(*_STEPS[ABSOLUTE])


def _wave(function: Callable[[np.ndarray], np.ndarray], x: Interval) -> Interval:
    """The sine or cosine: within half the width of x from that of its midpoint, and rounding of the argument."""
    middle = function(0.5 * (x.low + x.high))
    off = 0.5 * (x.high - x.low) + 4.0 * WIDER * (1.0 + np.abs(x.ends).max(axis=0))
    return Interval([np.fmax(middle - off, -1.0), np.fmin(middle + off, 1.0)])


POWERS = 2.0 ** np.arange(-20, 41)
"""Voltages and currents at which a search begins, V or A; the last one is the largest of a formula (1.1e12)."""

BELOW = 2.0 ** np.array([-1000.0, -500.0, -250.0, -120.0, -60.0, -40.0, -30.0])
LARGEST_INTERVALS = 40_000
"""Maximum number of intervals at a time."""

FINEST = 2.0**-44
"""Smallest relative width of an interval; one that reaches to `BELOW` is not divided either."""

JUMP, ROUNDING, NOTHING = 1e-9, 1e-12, 1e-100
"""Steps and falls attributed to rounding, relative and in A or V."""

UNDERFLOW = 2.0**-120
"""Arguments below this may have equal values through underflow."""


class Words(NamedTuple):
    """Name and unit of a formula's value and argument, for messages."""

    value: str
    unit: str
    argument: str
    of_unit: str


WORDS = {"current": Words("current", "A", "voltage v", "V"), "voltage": Words("voltage", "V", "current i", "A")}
"""By what a formula states."""


class Proof(NamedTuple):
    """Range of arguments with finite values, bounds of the values beyond, and whether the slope is positive everywhere.
    A formula of a voltage, V, gives a current, A, and vice versa."""

    low: float
    high: float
    least: float
    most: float
    rises: bool


@lru_cache(maxsize=4096)
@np.errstate(all="ignore")
def proven(tape: Tape, quantity: str) -> Proof:
    """The range of a formula for a current that falls nowhere, or for a voltage that rises everywhere.

    Raises
    ------
    ValueError
        The formula is undefined, discontinuous, falling or (a voltage) constant somewhere, or this remains undecided;
        the message states the interval.
    """
    law = _Formula(tape, WORDS[quantity])
    if not math.isfinite(law.at(np.zeros(1))[0]):
        raise ValueError(f"its formula has no value at 0 {law.words.of_unit}")
    (low, least), (high, most) = law.end(-1.0), law.end(1.0)
    places = np.concatenate([[0.0], BELOW, POWERS])
    return Proof(low, high, least, most, law.rises(np.unique(np.clip([-places, places], low, high))))


class _Formula(NamedTuple):
    """A formula, with the names and units of its value and argument."""

    tape: Tape
    words: Words

    def at(self, u: np.ndarray) -> np.ndarray:
        """The values at arguments (k,); not finite where there is none."""
        row = [0.0, len(self.tape), 0.0, 0.0, 1.0, 0.0, *chain.from_iterable(self.tape)]
        return np.array([evaluate(row, x)[0] for x in u.tolist()])

    def end(self, side: float) -> tuple[float, float]:
        """The largest argument with finite values on one side of zero, and the bound of the values beyond.

        Raises
        ------
        ValueError
            The formula is undefined there rather than too large.
        """
        good, places = 0.0, side * POWERS
        for _ in range(11):  # ten times an eighth
            wrong = ~np.isfinite(self.at(places))
            if not wrong.any():
                far = np.sort([places[-1:], [side * np.inf]], axis=0)
                return float(places[-1]), float(enclose(self.tape, *far).value.ends[int(side > 0.0)][0])
            first = int(wrong.argmax())
            good = float(places[first - 1]) if first else 0.0
            places = np.linspace(good, places[first], 9)
        outside = np.array([good * (1.0 + 1e-6) + side * 1e-6])
        if np.any(enclose(self.tape, outside, outside).undefined) or abs(good) < 1e-6:
            raise ValueError(
                f"its formula has no value {'above' if side > 0.0 else 'below'} {good:.6g} {self.words.of_unit}: "
                "state one for all, as with abs(), max(), pow(x, 3) for x^3 or a condition"
            )
        return good, side * math.inf

    def rises(self, ends: np.ndarray) -> bool:
        """Decide all intervals between some ends; returns whether the slope is positive in each.

        Raises
        ------
        ValueError
            As `proven`.
        """
        low, high = ends[:-1], ends[1:]
        rises, falling, level = True, [], []
        while 0 < low.size <= LARGEST_INTERVALS:
            found, size = enclose(self.tape, low, high), np.maximum(np.abs(low), np.abs(high))
            slope = Interval(ALL).where(found.undefined, found.slope)
            falls, good = slope.high < 0.0, slope.low >= 0.0
            last = ~(falls | good) & ((high - low <= FINEST * size) | (size <= BELOW[0]))
            rises = rises and bool((slope.low[good] > 0.0).all()) and not last.any()
            flat = np.flatnonzero(good & (slope.low <= 0.0) & (size > UNDERFLOW))
            first, second = self.at(low[flat]), self.at(high[flat])
            level.append(np.array([low, high])[:, flat[first == second]])
            first, second = self.across(low[last], high[last])
            scale = np.maximum(np.abs(first), np.abs(second))
            falls[last] = (second < first - ROUNDING * scale - NOTHING) & (first - second <= JUMP * scale)
            falling.append(np.array([low, high])[:, falls])
            left = ~(falls | good | last)
            middle = _middle(low[left], high[left])
            ends, low, high = np.append(ends, middle), np.append(low[left], middle), np.append(middle, high[left])
        value, unit, argument, of_unit = self.words
        if (fallen := _run(falling)) is not None:
            first, second = self.at(fallen)
            raise ValueError(
                f"its {value} decreases from {first:.6g} to {second:.6g} {unit} between {_near(fallen[0])} and "
                f"{_near(fallen[1])} {of_unit}: the formula must be monotone"
            )
        if low.size:
            raise ValueError(
                f"its {value} is not proven to be monotone between {_near(low.min())} and {_near(high.max())} "
                f"{of_unit}: limit({argument[-1]}, low, high) in place of the {argument} restricts the range"
            )
        if value == "voltage" and (same := _run(level)) is not None:
            raise ValueError(
                f"its voltage is {self.at(same)[0]:.6g} V between {_near(same[0])} and {_near(same[1])} A, so the "
                "current is not unique; add a resistance, as in + 1u*i"
            )
        inner = np.unique(ends)[1:-1]
        self.across(np.nextafter(inner, -np.inf), np.nextafter(inner, np.inf))
        return rises

    def across(self, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The values at both ends of narrow intervals (k,).

        Raises
        ------
        ValueError
            There is none, or the formula jumps.
        """
        first, second = self.at(a), self.at(b)
        wide = 1e-3 * np.maximum(np.abs(a), np.abs(b))  # the value may cross zero with its slope
        beside = np.abs(self.at(a - wide) - first) + np.abs(self.at(b + wide) - second)
        scale = np.maximum(np.maximum(np.abs(first), np.abs(second)), np.where(np.isfinite(beside), beside, 0.0))
        for k in np.flatnonzero(~(np.abs(second - first) <= JUMP * scale + NOTHING) | ~np.isfinite(scale))[:1]:
            if not np.isfinite(scale[k]):
                raise ValueError(f"its formula has no value near {a[k]:.6g} {self.words.of_unit}")
            raise ValueError(
                f"its {self.words.value} jumps from {first[k]:.6g} to {second[k]:.6g} {self.words.unit} at "
                f"{_near(b[k])} {self.words.of_unit}: the formula must be continuous"
            )
        return first, second


def _near(u: float) -> str:
    """An argument for messages, rounded to zero near it."""
    return f"{u if abs(u) > UNDERFLOW else 0.0:.6g}"


def _middle(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The midpoint, or the geometric mean of ends far apart."""
    small, large = np.sort(np.abs([low, high]), axis=0)
    mean = np.sign(low) * np.sqrt(small) * np.sqrt(large)
    return np.where((low * high > 0.0) & (large > 4.0 * small), mean, 0.5 * (low + high))


def _run(found: list[np.ndarray]) -> np.ndarray | None:
    """The run of adjacent intervals nearest to zero; None without intervals."""
    low, high = np.concatenate(found, axis=1)
    if not low.size:
        return None
    order = np.argsort(low)
    low, high = low[order], high[order]
    apart = low[1:] - high[:-1] > 1e-9 * np.maximum(np.abs(low[1:]), np.abs(high[1:]))
    begin, end = low[np.append(True, apart)], high[np.append(apart, True)]
    nearest = np.argmin(np.maximum(np.maximum(begin, -end), 0.0))
    return np.array([begin[nearest], end[nearest]])
