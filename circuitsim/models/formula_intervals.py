"""Interval arithmetic for formulas of one voltage: enclosures of value and slope on many intervals at once.

Each entry of the stack is an enclosure of the value and of the derivative by the voltage (Moore, Interval Analysis,
1966). Every operation widens its result by some units in the last place; a result of exactly zero is one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

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
"""By which share each result is widened: 4 units in the last place."""


class Interval(NamedTuple):
    """Lower and upper ends, float arrays of one shape."""

    low: np.ndarray
    high: np.ndarray


class Enclosure(NamedTuple):
    """Of a value, and of its slope; ``undefined`` where a function may have no value, ``open`` where a condition is
    undecided."""

    value: Interval
    slope: Interval
    undefined: np.ndarray
    open: np.ndarray


def enclose(tape: Tape, low: np.ndarray, high: np.ndarray) -> Enclosure:
    """Enclosures of a formula for voltages from ``low`` to ``high``, V (k,)."""
    none, zero = np.zeros(low.shape, bool), Interval(np.zeros(low.shape), np.zeros(low.shape))
    one = Interval(np.ones(low.shape), np.ones(low.shape))
    stack: list[Enclosure] = []
    with np.errstate(all="ignore"):
        for op, number in tape:
            if op == CONSTANT:
                stack.append(Enclosure(Interval(zero.low + number, zero.low + number), zero, none, none))
            elif op == VOLTAGE:
                stack.append(Enclosure(Interval(low, high), one, none, none))
            elif op == CHOOSE:
                stack[-3:] = [_chosen(*stack[-3:])]
            elif op in BINARY:
                stack[-2:] = [_of_two(op, *stack[-2:])]
            else:
                stack[-1] = _of_one(op, number, stack[-1])
    return stack[0]


def _wider(low: np.ndarray, high: np.ndarray) -> Interval:
    """The interval with its ends moved outwards; an end that is no number is infinite."""
    low = np.where(np.isnan(low), -np.inf, low - WIDER * np.abs(low))
    high = np.where(np.isnan(high), np.inf, high + WIDER * np.abs(high))
    # An infinite end minus its share is no number: it stays.
    return Interval(np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high))


def _sum(x: Interval, y: Interval) -> Interval:
    return _wider(x.low + y.low, x.high + y.high)


def _product(x: Interval, y: Interval) -> Interval:
    ends = np.array([x.low * y.low, x.low * y.high, x.high * y.low, x.high * y.high])
    ends = np.where(np.isnan(ends), 0.0, ends)  # 0 · ∞ of an end that is not attained
    return _wider(ends.min(axis=0), ends.max(axis=0))


def _opposite(x: Interval) -> Interval:
    return Interval(-x.high, -x.low)


def _hull(x: Interval, y: Interval) -> Interval:
    return Interval(np.minimum(x.low, y.low), np.maximum(x.high, y.high))


def _both(x: Interval, y: Interval) -> Interval:
    """What two enclosures of the same have in common."""
    return Interval(np.maximum(x.low, y.low), np.minimum(x.high, y.high))


def _pick(condition: np.ndarray, x: Interval, y: Interval) -> Interval:
    return Interval(np.where(condition, x.low, y.low), np.where(condition, x.high, y.high))


def _size(x: Interval) -> Interval:
    """|x|."""
    a, b = np.abs(x.low), np.abs(x.high)
    return Interval(np.where((x.low < 0.0) & (x.high > 0.0), 0.0, np.minimum(a, b)), np.maximum(a, b))


def _side(x: Interval) -> Interval:
    """The sign of x inside the interval."""
    return Interval(np.where(x.low >= 0.0, 1.0, -1.0), np.where((x.high <= 0.0) & (x.low < 0.0), -1.0, 1.0))


def _rising(function: Callable[[np.ndarray], np.ndarray], x: Interval) -> Interval:
    return _wider(function(x.low), function(x.high))


def _falling(function: Callable[[np.ndarray], np.ndarray], x: Interval) -> Interval:
    return _wider(function(x.high), function(x.low))


def _chosen(condition: Enclosure, yes: Enclosure, no: Enclosure) -> Enclosure:
    """One of two, or the hull of both where the condition is undecided."""
    surely, never = condition.value.low > 0.5, condition.value.high < 0.5

    def either(a: Interval, b: Interval) -> Interval:
        return _pick(surely, a, _pick(never, b, _hull(a, b)))

    def at_least_one(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.where(surely, a, np.where(never, b, a | b))

    undecided = ~surely & ~never
    return Enclosure(
        either(yes.value, no.value),
        either(yes.slope, no.slope),
        condition.undefined | at_least_one(yes.undefined, no.undefined),
        undecided | at_least_one(yes.open, no.open),
    )


def _of_two(op: int, x: Enclosure, y: Enclosure) -> Enclosure:
    undefined, undecided = x.undefined | y.undefined, x.open | y.open
    if op in (ADD, SUBTRACT):
        turned = y.value, y.slope
        if op == SUBTRACT:
            turned = _opposite(y.value), _opposite(y.slope)
        return Enclosure(_sum(x.value, turned[0]), _sum(x.slope, turned[1]), undefined, undecided)
    if op == MULTIPLY:
        slope = _sum(_product(x.value, y.slope), _product(x.slope, y.value))
        return Enclosure(_product(x.value, y.value), slope, undefined, undecided)
    if op == DIVIDE:
        around = (y.value.low <= 0.0) & (y.value.high >= 0.0)
        part = _wider(1.0 / y.value.high, 1.0 / y.value.low)
        part = Interval(np.where(around, -np.inf, part.low), np.where(around, np.inf, part.high))
        found = _product(x.value, part)
        over = _sum(_product(x.slope, y.value), _opposite(_product(x.value, y.slope)))
        slope = _both(
            _product(_sum(x.slope, _opposite(_product(found, y.slope))), part), _product(_product(over, part), part)
        )
        return Enclosure(found, slope, undefined | around, undecided)
    if op == MINIMUM:
        first, second = x.value.high <= y.value.low, y.value.high <= x.value.low
        value = Interval(np.minimum(x.value.low, y.value.low), np.minimum(x.value.high, y.value.high))
    else:
        first, second = x.value.low >= y.value.high, y.value.low >= x.value.high
        value = Interval(np.maximum(x.value.low, y.value.low), np.maximum(x.value.high, y.value.high))
    slope = _pick(first, x.slope, _pick(second, y.slope, _hull(x.slope, y.slope)))
    return Enclosure(value, slope, undefined, undecided)


def _of_one(op: int, number: float, of: Enclosure) -> Enclosure:
    """A function of one number, by the chain rule."""
    x, undefined, undecided = of.value, of.undefined, of.open
    if op == NEGATE:
        return Enclosure(_opposite(x), _opposite(of.slope), undefined, undecided)
    if op in (SQRT, LOG, ROOTED):
        undefined = undefined | (x.low <= 0.0 if op == LOG else x.low < 0.0)
        x = Interval(np.maximum(x.low, 0.0), np.maximum(x.high, 0.0))
    if op in (SIGN, STEP, REACHED):
        undecided = undecided | ((x.low < 0.0) & (x.high > 0.0))
    if op in (POWER, SIGNED_POWER, ROOTED) and number <= 0.0:
        undefined = undefined | ((x.low <= 0.0) & (x.high >= 0.0))
    value, rate = _function(op, number, x)
    flat = (of.slope.low == 0.0) & (of.slope.high == 0.0)
    slope = _product(rate, of.slope)
    return Enclosure(value, _pick(flat, of.slope, slope), undefined, undecided)


def _function(op: int, number: float, x: Interval) -> tuple[Interval, Interval]:
    """Enclosures of a function and of its derivative."""
    size, zero = _size(x), Interval(np.zeros(x.low.shape), np.zeros(x.low.shape))
    if op == EXP:
        found = _rising(np.exp, x)
        return found, found
    if op == LOG:
        return _rising(np.log, x), _falling(lambda t: 1.0 / t, x)
    if op == SQRT:
        return _rising(np.sqrt, x), _falling(lambda t: 0.5 / np.sqrt(t), x)
    if op == SINH:
        return _rising(np.sinh, x), _rising(np.cosh, size)
    if op == COSH:
        return _rising(np.cosh, size), _rising(np.sinh, x)
    if op == TANH:
        return _rising(np.tanh, x), _falling(lambda t: 1.0 / np.cosh(t) ** 2, size)
    if op == ATAN:
        return _rising(np.arctan, x), _falling(lambda t: 1.0 / (1.0 + t * t), size)
    if op == ASINH:
        return _rising(np.arcsinh, x), _falling(lambda t: 1.0 / np.hypot(1.0, t), size)
    if op in (SIN, COS):
        sine, cosine = _wave(x, 0.5 * math.pi), _wave(x, 0.0)
        return (sine, cosine) if op == SIN else (cosine, _opposite(sine))
    side = _side(x)
    if op == ABSOLUTE:
        return size, side
    if op == SIGN:
        return _signs(x), zero
    if op in (STEP, REACHED):
        return _steps(x, op == STEP), zero
    return _powers(op, number, x, size, side)


def _signs(x: Interval) -> Interval:
    """The sign of x, in the inside of the interval."""
    nothing = (x.low == 0.0) & (x.high == 0.0)
    side = _side(x)
    return Interval(np.where(nothing, 0.0, side.low), np.where(nothing, 0.0, side.high))


def _steps(x: Interval, strictly: bool) -> Interval:
    """Whether x > 0 (or x ≥ 0), in the inside of the interval."""
    nothing = (x.low == 0.0) & (x.high == 0.0)
    at_zero = 0.0 if strictly else 1.0
    low, high = np.where(x.low >= 0.0, 1.0, 0.0), np.where(x.high <= 0.0, 0.0, 1.0)
    return Interval(np.where(nothing, at_zero, low), np.where(nothing, at_zero, high))


def _powers(op: int, c: float, x: Interval, size: Interval, side: Interval) -> tuple[Interval, Interval]:
    """|x|^c with or without the sign of x."""
    rate = (_rising if c > 1.0 else _falling)(lambda t: np.power(t, c - 1.0), size)
    rate = _product(rate, Interval(np.full(x.low.shape, c), np.full(x.low.shape, c)))
    plain = (_rising if c > 0.0 else _falling)(lambda t: np.power(t, c), size)
    if op == POWER:
        return plain, _product(rate, side)
    if op == ROOTED:
        return plain, rate
    if c > 0.0:
        return _rising(lambda t: np.sign(t) * np.power(np.abs(t), c), x), rate
    return _product(plain, side), rate


def _wave(x: Interval, peak: float) -> Interval:
    """The cosine of x − peak."""
    a, b = x.low - peak, x.high - peak
    ends = np.cos(a), np.cos(b)
    turn, margin = 2.0 * math.pi, 1e-9
    wide = ~(b - a < turn) | ~(np.maximum(np.abs(a), np.abs(b)) < 1e6)
    top = np.floor(b / turn + margin) > np.floor(a / turn - margin)
    bottom = np.floor(b / turn + 0.5 + margin) > np.floor(a / turn + 0.5 - margin)
    low = np.where(wide | bottom, -1.0, np.minimum(*ends))
    high = np.where(wide | top, 1.0, np.maximum(*ends))
    # Rounding of the argument moves the ends by its share.
    off = 4.0 * WIDER * (1.0 + np.maximum(np.abs(a), np.abs(b)))
    return Interval(np.maximum(low - off, -1.0), np.minimum(high + off, 1.0))


__all__ = ["Enclosure", "Interval", "enclose"]
