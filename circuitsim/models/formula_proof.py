"""Proof that a formula of one voltage or current does not fall: enclosures of its slope, halved until each is decided.

An interval on which the enclosure of the slope is not below zero needs no more. Where a condition or an enclosure stays
undecided down to the last digits (a kink, a point of slope zero), the values at its ends decide; so they do at the ends
of all intervals, where jumps may be.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from circuitsim.models.formula_intervals import Enclosure, enclose
from circuitsim.models.formula_operations import HEAD, Tape

FARTHEST = 2.0**40
"""Voltages and currents of more than this (1.1e12 V or A) are beyond every law's range."""

_BELOW = (0.0, *(2.0**k for k in (-1000, -500, -250, -120, -60, -40, -30)))
LARGEST_INTERVALS = 40_000
"""Most intervals at a time."""

FINEST, SMALLEST = 2.0**-44, 2.0**-1000
"""Width of the last intervals, of their place; and V or A."""

STEP, ROUNDING, NOTHING = 1e-9, 1e-12, 1e-100
"""A jump that is none, and a fall that is rounding, of the value; and A or V."""

UNDERFLOW = 2.0**-120
"""Arguments below this may have equal values by underflow alone."""


class Words(NamedTuple):
    """What a formula states and depends on, for messages: name and unit of each."""

    value: str
    unit: str
    argument: str
    of_unit: str


CURRENT, VOLTAGE = Words("current", "A", "voltage v", "V"), Words("voltage", "V", "current i", "A")


class Proof(NamedTuple):
    """Range of arguments in which the formula has finite values, and bounds of its values beyond; whether its slope is
    above zero everywhere. A formula of a voltage, V, states a current, A; one of a current a voltage."""

    low: float
    high: float
    least: float
    most: float
    rises: bool


@lru_cache(maxsize=4096)
def proven(tape: Tape, words: Words = CURRENT) -> Proof:
    """The range of a formula that falls nowhere; of a `VOLTAGE` one that rises everywhere.

    Raises
    ------
    ValueError
        It has no value, jumps or falls somewhere, a voltage also where it stays level, or that is not found out; the
        message states the interval.
    """
    law = _Points(tape, words)
    if not math.isfinite(law.at(0.0)):
        raise ValueError(f"its formula has no value at 0 {words.of_unit}")
    low, high = -law.reach(-1.0), law.reach(1.0)
    places = sorted({low, high, *(s * x for x in (*_BELOW, *(2.0**k for k in range(-20, 41))) for s in (-1.0, 1.0))})
    edges = np.array([x for x in places if low <= x <= high])
    _refuse_undefined(tape, law, edges)
    rises = _search(tape, law, edges)
    least, most = _bound(tape, law, low, -1.0), _bound(tape, law, high, 1.0)
    return Proof(low, high, least, most, rises)


class _Points:
    """Values of a formula at single arguments, with the words for both."""

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
        """How far from zero the values are finite on one side."""
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
    """Refuse formulas whose range ends where a function has no value, not at the end of the range of doubles."""
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
    """Decide all intervals; whether the slope is above zero in each."""
    low, high = edges[:-1], edges[1:]
    falling: list[tuple[float, float]] = []
    level: list[tuple[float, float]] = []
    rises, ends = True, set(edges.tolist())
    while low.size and low.size <= LARGEST_INTERVALS:
        found = enclose(tape, low, high)
        falls = _falls(found)
        falling += zip(low[falls].tolist(), high[falls].tolist())
        good = (found.slope.low >= 0.0) & ~found.undefined & ~found.open
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
            f"its {word.value} falls from {law.at(a):.6g} to {law.at(b):.6g} {word.unit} between "
            f"{_near(a)} and {_near(b)} {word.of_unit}: no monotone law"
        )
    if low.size:
        raise ValueError(
            f"that its {word.value} never falls is not proven between {_near(low.min())} and "
            f"{_near(high.max())} {word.of_unit}: limit({word.argument[-1]}, low, high) in place of the "
            f"{word.argument} bounds where a proof is needed"
        )
    if level and word is VOLTAGE:
        a, b = _joined(level)
        raise ValueError(
            f"its voltage stays at {law.at(a):.6g} V between {_near(a)} and {_near(b)} A: no law with one "
            "current at each voltage; add a resistance, as in + 1u*i"
        )
    for u in sorted(ends)[1:-1]:
        _refuse_jump(law, np.nextafter(u, -np.inf), np.nextafter(u, np.inf))
    return rises


def _near(u: float) -> str:
    """An argument for messages; beside zero it is zero."""
    return f"{u if abs(u) > UNDERFLOW else 0.0:.6g}"


def _falls(found: Enclosure) -> np.ndarray:
    """Intervals on which the slope is surely below zero."""
    falls: np.ndarray = (found.slope.high < 0.0) & ~found.undefined & ~found.open
    return falls


def _middle(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Where to halve: at the geometric mean of ends far apart."""
    far = (low * high > 0.0) & (np.maximum(np.abs(low), np.abs(high)) > 4.0 * np.minimum(np.abs(low), np.abs(high)))
    mean = np.sign(low) * np.sqrt(np.abs(low)) * np.sqrt(np.abs(high))
    return np.where(far, mean, 0.5 * (low + high))


def _decide(law: _Points, a: float, b: float, falling: list[tuple[float, float]]) -> None:
    """An interval of the least width, by the values at its ends."""
    first, second = law.at(a), law.at(b)
    scale = max(abs(first), abs(second))
    if not math.isfinite(scale):
        raise ValueError(f"its formula has no value near {a:.6g} {law.words.of_unit}")
    if second < first - ROUNDING * scale - NOTHING and abs(second - first) <= STEP * scale:
        falling.append((a, b))
    _refuse_jump(law, a, b)


def _refuse_jump(law: _Points, a: float, b: float) -> None:
    """Refuse a step of the value between two neighbours."""
    first, second = law.at(a), law.at(b)
    scale = max(abs(first), abs(second))
    if math.isfinite(scale) and abs(second - first) <= STEP * scale + NOTHING:
        return
    # A zero of the law is passed with its slope.
    wide = max(abs(a), abs(b)) * 1e-3
    beside = abs(law.at(a - wide) - first) + abs(law.at(b + wide) - second)
    if math.isfinite(beside) and abs(second - first) <= STEP * beside:
        return
    word = law.words
    raise ValueError(
        f"its {word.value} jumps from {first:.6g} to {second:.6g} {word.unit} at {_near(b)} "
        f"{word.of_unit}: no continuous law"
    )


def _joined(falling: list[tuple[float, float]]) -> tuple[float, float]:
    """Of intervals that follow each other without a gap, those nearest to zero."""
    found: list[tuple[float, float]] = []
    for a, b in sorted(falling):
        if found and a - found[-1][1] <= 1e-9 * max(abs(a), abs(b)):
            found[-1] = found[-1][0], b
        else:
            found.append((a, b))
    return min(found, key=lambda ends: max(ends[0], -ends[1], 0.0))


def _bound(tape: Tape, law: _Points, end: float, side: float) -> float:
    """What the law does not exceed on one side."""
    if abs(end) < FARTHEST:
        return side * math.inf
    limit = law.at(side * math.inf)
    if math.isfinite(limit):
        return limit
    far = np.array([end]), np.array([side * math.inf])
    value = enclose(tape, *(far if side > 0.0 else far[::-1])).value
    return float((value.high if side > 0.0 else value.low)[0])


__all__ = ["Proof", "proven"]
