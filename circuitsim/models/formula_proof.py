"""Proof that a formula of one voltage or current does not fall, by interval bisection.

An interval on which the enclosure of the slope is nonnegative is done. If a condition or an enclosure remains undecided
at the smallest width (a breakpoint, a point of zero slope), the values at the ends decide, as they do at the ends of
all intervals, where discontinuities may lie.

Interval arithmetic encloses value and slope on many intervals at once: each stack entry encloses the value and its
derivative with respect to the voltage (Moore, Interval Analysis, 1966). Every operation widens its result by some units
in the last place, except an exact zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from circuitsim.models.formula_operations import (
    ABSOLUTE,
    ADD,
    ASINH,
    ATAN,
    BINARY,
    CHOOSE,
    CONSTANT,
    COS,
    COSH,
    DIVIDE,
    EXP,
    HEAD,
    LOG,
    MINIMUM,
    MULTIPLY,
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
    SUBTRACT,
    TANH,
    VOLTAGE,
    Tape,
)

WIDER = 1e-15
"""Relative widening of each result: 4 units in the last place."""


SIDES = np.array([[-1.0], [1.0]])
"""The direction outwards at both ends of an interval."""


class Interval:
    """Intervals, with their lower and upper ends (2, k)."""

    def __init__(self, low: np.ndarray, high: np.ndarray) -> None:
        self.ends = np.array([low, high])
        self.low, self.high = self.ends

    def __neg__(self) -> Interval:
        return Interval(-self.high, -self.low)

    def __add__(self, other: Interval) -> Interval:
        return _wider(self.ends + other.ends)

    def __sub__(self, other: Interval) -> Interval:
        return self + -other

    def __mul__(self, other: Interval) -> Interval:
        ends = (self.ends[:, None] * other.ends).reshape(4, -1)
        return _hull(np.where(np.isnan(ends), 0.0, ends))  # 0 · ∞ of an end that is not attained

    def __or__(self, other: Interval) -> Interval:
        """The hull of both."""
        return Interval(np.minimum(self.low, other.low), np.maximum(self.high, other.high))

    def __and__(self, other: Interval) -> Interval:
        """The intersection of two enclosures."""
        return Interval(np.maximum(self.low, other.low), np.minimum(self.high, other.high))

    def through(self, function: Callable[[np.ndarray], np.ndarray]) -> Interval:
        """The image under a monotone function."""
        return _hull(function(self.ends))

    def size(self) -> Interval:
        """|x|."""
        ends = np.abs(self.ends)
        return Interval(np.where((self.low < 0.0) & (self.high > 0.0), 0.0, ends.min(axis=0)), ends.max(axis=0))

    def step(self, below: float, above: float, at: float) -> Interval:
        """One of two numbers by the sign of x in the interval; ``at`` if x is zero."""
        low, high = np.where(self.low >= 0.0, above, below), np.where(self.high <= 0.0, below, above)
        return Interval(*np.where(self.ends.any(axis=0), (low, high), at))


class Enclosure(NamedTuple):
    """Enclosure of a value and its slope; ``undefined`` where a function may have no value, ``open`` where a condition
    is undecided."""

    value: Interval
    slope: Interval
    undefined: np.ndarray
    open: np.ndarray


def enclose(tape: Tape, low: np.ndarray, high: np.ndarray) -> Enclosure:
    """Enclosures of a formula for voltages from ``low`` to ``high``, V (k,)."""
    none, zero = np.zeros(low.shape, bool), _constant(low, 0.0)
    stack: list[Enclosure] = []
    with np.errstate(all="ignore"):
        for op, number in tape:
            if op == CONSTANT:
                stack.append(Enclosure(_constant(low, number), zero, none, none))
            elif op == VOLTAGE:
                stack.append(Enclosure(Interval(low, high), _constant(low, 1.0), none, none))
            elif op == CHOOSE:
                stack[-3:] = [_chosen(*stack[-3:])]
            elif op in BINARY:
                stack[-2:] = [_of_two(op, *stack[-2:])]
            else:
                stack[-1] = _of_one(op, number, stack[-1])
    return stack[0]


def _constant(like: np.ndarray, number: float) -> Interval:
    return Interval(*np.full((2, *like.shape), number))


def _wider(ends: np.ndarray) -> Interval:
    """The interval with its ends moved outwards; a NaN end becomes infinite."""
    wider = ends + SIDES * WIDER * np.abs(ends)
    return Interval(*np.where(np.isnan(wider), SIDES * np.inf, wider))


def _hull(values: np.ndarray) -> Interval:
    """The hull of values (n, k), with its ends moved outwards."""
    return _wider(np.array([values.min(axis=0), values.max(axis=0)]))


def _pick(condition: np.ndarray, x: Interval, y: Interval) -> Interval:
    return Interval(*np.where(condition, x.ends, y.ends))


def _chosen(condition: Enclosure, yes: Enclosure, no: Enclosure) -> Enclosure:
    """One of two enclosures, or their hull if the condition is undecided."""
    sure, never = condition.value.low > 0.5, condition.value.high < 0.5
    value, slope = (_pick(sure, a, _pick(never, b, a | b)) for a, b in zip(yes[:2], no[:2]))
    undefined, undecided = ((a & ~never) | (b & ~sure) for a, b in zip(yes[2:], no[2:]))
    return Enclosure(value, slope, condition.undefined | undefined, ~(sure | never) | undecided)


def _of_two(op: int, x: Enclosure, y: Enclosure) -> Enclosure:
    undefined, undecided = x.undefined | y.undefined, x.open | y.open
    u, v, du, dv = x.value, y.value, x.slope, y.slope
    if op == ADD:
        value, slope = u + v, du + dv
    elif op == SUBTRACT:
        value, slope = u - v, du - dv
    elif op == MULTIPLY:
        value, slope = u * v, u * dv + du * v
    elif op == DIVIDE:
        around = (v.low <= 0.0) & (v.high >= 0.0)
        part = Interval(*np.where(around, SIDES * np.inf, v.through(lambda t: 1.0 / t).ends))
        value, undefined = u * part, undefined | around
        slope = (du - value * dv) * part & (du * v - u * dv) * part * part
    else:
        first, second = u.high <= v.low, v.high <= u.low
        best: Any = np.minimum
        if op != MINIMUM:
            first, second, best = second, first, np.maximum
        value = Interval(*best(u.ends, v.ends))
        slope = _pick(first, du, _pick(second, dv, du | dv))
    return Enclosure(value, slope, undefined, undecided)


def _of_one(op: int, number: float, of: Enclosure) -> Enclosure:
    """A function of one number, by the chain rule."""
    x, undefined, undecided = of.value, of.undefined, of.open
    if op == NEGATE:
        return Enclosure(-x, -of.slope, undefined, undecided)
    if op in (SQRT, LOG, ROOTED):
        undefined = undefined | (x.low <= 0.0 if op == LOG else x.low < 0.0)
        x = Interval(*np.maximum(x.ends, 0.0))
    if op in (SIGN, STEP, REACHED):
        undecided = undecided | ((x.low < 0.0) & (x.high > 0.0))
    if op in (POWER, SIGNED_POWER, ROOTED) and number <= 0.0:
        undefined = undefined | ((x.low <= 0.0) & (x.high >= 0.0))
    value, rate = _function(op, number, x)
    return Enclosure(value, _pick(np.any(of.slope.ends, axis=0), rate * of.slope, of.slope), undefined, undecided)


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


def _function(op: int, number: float, x: Interval) -> tuple[Interval, Interval]:
    """Enclosures of a function and of its derivative."""
    size, side = x.size(), x.step(-1.0, 1.0, 1.0)
    if op in _SMOOTH:
        function, derivative = _SMOOTH[op]
        return (size if op == COSH else x).through(function), (x if op in (EXP, COSH) else size).through(derivative)
    if op in (SIN, COS):
        sine, cosine = _wave(np.sin, x), _wave(np.cos, x)
        return (sine, cosine) if op == SIN else (cosine, -sine)
    if op == ABSOLUTE:
        return size, side
    if op in (SIGN, STEP, REACHED):
        found = x.step(-1.0, 1.0, 0.0) if op == SIGN else x.step(0.0, 1.0, float(op == REACHED))
        return found, _constant(x.low, 0.0)
    rate = size.through(lambda t: np.power(t, number - 1.0)) * _constant(x.low, number)
    plain = size.through(lambda t: np.power(t, number))
    if op == SIGNED_POWER:
        rising = number > 0.0
        return x.through(lambda t: np.sign(t) * np.power(np.abs(t), number)) if rising else plain * side, rate
    return plain, rate * side if op == POWER else rate


def _wave(function: Callable[[np.ndarray], np.ndarray], x: Interval) -> Interval:
    """The sine or cosine: within half the width of x from that of its midpoint, and rounding of the argument."""
    middle = function(0.5 * (x.low + x.high))
    off = 0.5 * (x.high - x.low) + 4.0 * WIDER * (1.0 + np.maximum(np.abs(x.low), np.abs(x.high)))
    return Interval(np.fmax(middle - off, -1.0), np.fmin(middle + off, 1.0))


FARTHEST = 2.0**40
"""Largest voltage and current of a formula (1.1e12 V or A)."""

_BELOW = (0.0, *(2.0**k for k in (-1000, -500, -250, -120, -60, -40, -30)))
LARGEST_INTERVALS = 40_000
"""Maximum number of intervals at a time."""

FINEST, SMALLEST = 2.0**-44, 2.0**-1000
"""Smallest width of an interval, relative and in V or A."""

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
def proven(tape: Tape, quantity: str) -> Proof:
    """The range of a formula for a current that falls nowhere, or for a voltage that rises everywhere.

    Raises
    ------
    ValueError
        The formula is undefined, discontinuous, falling or (a voltage) constant somewhere, or this remains undecided;
        the message states the interval.
    """
    law = _Points(tape, WORDS[quantity])
    if not math.isfinite(law.at(0.0)):
        raise ValueError(f"its formula has no value at 0 {law.words.of_unit}")
    low, high = -law.reach(-1.0), law.reach(1.0)
    places = sorted({low, high, *(s * x for x in (*_BELOW, *(2.0**k for k in range(-20, 41))) for s in (-1.0, 1.0))})
    edges = np.array([x for x in places if low <= x <= high])
    _refuse_undefined(tape, law, edges)
    rises = _search(tape, law, edges)
    least, most = _bound(tape, law, low, -1.0), _bound(tape, law, high, 1.0)
    return Proof(low, high, least, most, rises)


class _Points:
    """Values of a formula at single arguments, with their names and units."""

    def __init__(self, tape: Tape, words: Words) -> None:
        self.words = words
        flat = [float(number) for instruction in tape for number in instruction]
        self._row = [0.0, float(len(tape)), 0.0, 0.0, 1.0, *flat]
        assert len(self._row) == HEAD + 2 * len(tape)

    def at(self, u: float) -> float:
        """The value at u."""
        from circuitsim.models.formula_tape import evaluate

        with np.errstate(all="ignore"):
            return float(evaluate(self._row, u)[0])

    def reach(self, side: float) -> float:
        """The largest argument with finite values on one side of zero."""
        good, k = 0.0, -20
        while math.isfinite(self.at(side * 2.0**k)):
            good = 2.0**k
            if k == 40:
                return FARTHEST
            k += 1
        bad = 2.0**k
        for _ in range(30):
            middle = 0.5 * (good + bad)
            good, bad = (middle, bad) if math.isfinite(self.at(side * middle)) else (good, middle)
        return good


def _refuse_undefined(tape: Tape, law: _Points, edges: np.ndarray) -> None:
    """Refuse formulas whose range ends at an undefined value rather than by overflow."""
    for end, side in ((edges[0], -1.0), (edges[-1], 1.0)):
        if abs(end) < FARTHEST:
            outside = np.array([end * (1.0 + 1e-6) + side * 1e-6])
            if enclose(tape, outside, outside).undefined[0] or abs(end) < 1e-6:
                beyond = "above" if side > 0.0 else "below"
                raise ValueError(
                    f"its formula has no value {beyond} {end:.6g} {law.words.of_unit}: state one for "
                    "all, as with abs(), max() or a condition"
                )


def _search(tape: Tape, law: _Points, edges: np.ndarray) -> bool:
    """Decide all intervals; returns whether the slope is positive in each."""
    low, high = edges[:-1], edges[1:]
    falling: list[tuple[float, float]] = []
    level: list[tuple[float, float]] = []
    rises, ends = True, set(edges.tolist())
    while low.size and low.size <= LARGEST_INTERVALS:
        found = enclose(tape, low, high)
        known = ~found.undefined & ~found.open
        falls, good = known & (found.slope.high < 0.0), known & (found.slope.low >= 0.0)
        falling += zip(low[falls].tolist(), high[falls].tolist())
        rises = rises and bool((found.slope.low[good] > 0.0).all())
        flat = good & ~(found.slope.low > 0.0) & (np.maximum(np.abs(low), np.abs(high)) > UNDERFLOW)
        level += [(a, b) for a, b in zip(low[flat].tolist(), high[flat].tolist()) if law.at(a) == law.at(b)]
        left = ~good & ~falls
        low, high = low[left], high[left]
        size = np.maximum(np.abs(low), np.abs(high))
        last = (high - low <= FINEST * size) | (size <= SMALLEST)
        for a, b in zip(low[last].tolist(), high[last].tolist()):
            _decide(law, a, b, falling)
        rises = rises and not last.any()
        low, high = low[~last], high[~last]
        middle = _middle(low, high)
        ends.update(middle.tolist())
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
    word = law.words
    if falling:
        a, b = _joined(falling)
        raise ValueError(
            f"its {word.value} decreases from {law.at(a):.6g} to {law.at(b):.6g} {word.unit} between "
            f"{_near(a)} and {_near(b)} {word.of_unit}: the formula must be monotone"
        )
    if low.size:
        raise ValueError(
            f"its {word.value} is not proven to be monotone between {_near(low.min())} and {_near(high.max())} "
            f"{word.of_unit}: limit({word.argument[-1]}, low, high) in place of the {word.argument} restricts the range"
        )
    if level and word.value == "voltage":
        a, b = _joined(level)
        raise ValueError(
            f"its voltage is {law.at(a):.6g} V between {_near(a)} and {_near(b)} A, so the current is not unique; "
            "add a resistance, as in + 1u*i"
        )
    for u in sorted(ends)[1:-1]:
        _refuse_jump(law, np.nextafter(u, -np.inf), np.nextafter(u, np.inf))
    return rises


def _near(u: float) -> str:
    """An argument for messages, rounded to zero near it."""
    return f"{u if abs(u) > UNDERFLOW else 0.0:.6g}"


def _middle(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The midpoint, or the geometric mean of ends far apart."""
    far = (low * high > 0.0) & (np.maximum(np.abs(low), np.abs(high)) > 4.0 * np.minimum(np.abs(low), np.abs(high)))
    mean = np.sign(low) * np.sqrt(np.abs(low)) * np.sqrt(np.abs(high))
    return np.where(far, mean, 0.5 * (low + high))


def _decide(law: _Points, a: float, b: float, falling: list[tuple[float, float]]) -> None:
    """Decide an interval of minimum width by the values at its ends."""
    first, second = law.at(a), law.at(b)
    scale = max(abs(first), abs(second))
    if not math.isfinite(scale):
        raise ValueError(f"its formula has no value near {a:.6g} {law.words.of_unit}")
    if second < first - ROUNDING * scale - NOTHING and abs(second - first) <= JUMP * scale:
        falling.append((a, b))
    _refuse_jump(law, a, b)


def _refuse_jump(law: _Points, a: float, b: float) -> None:
    """Refuse a discontinuity between two neighbours."""
    first, second = law.at(a), law.at(b)
    scale = max(abs(first), abs(second))
    if math.isfinite(scale) and abs(second - first) <= JUMP * scale + NOTHING:
        return
    # The value crosses zero with its slope.
    wide = max(abs(a), abs(b)) * 1e-3
    beside = abs(law.at(a - wide) - first) + abs(law.at(b + wide) - second)
    if math.isfinite(beside) and abs(second - first) <= JUMP * beside:
        return
    word = law.words
    raise ValueError(
        f"its {word.value} jumps from {first:.6g} to {second:.6g} {word.unit} at {_near(b)} "
        f"{word.of_unit}: the formula must be continuous"
    )


def _joined(falling: list[tuple[float, float]]) -> tuple[float, float]:
    """The run of adjacent intervals nearest to zero."""
    found: list[tuple[float, float]] = []
    for a, b in sorted(falling):
        if found and a - found[-1][1] <= 1e-9 * max(abs(a), abs(b)):
            found[-1] = found[-1][0], b
        else:
            found.append((a, b))
    return min(found, key=lambda ends: max(ends[0], -ends[1], 0.0))


def _bound(tape: Tape, law: _Points, end: float, side: float) -> float:
    """Bound of the value on one side."""
    if abs(end) < FARTHEST:
        return side * math.inf
    limit = law.at(side * math.inf)
    if math.isfinite(limit):
        return limit
    far = np.array([end]), np.array([side * math.inf])
    value = enclose(tape, *(far if side > 0.0 else far[::-1])).value
    return float((value.high if side > 0.0 else value.low)[0])
