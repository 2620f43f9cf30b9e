"""Sources given by a formula of time and of voltages and currents that other sources fix.

The times at which the branches taken in a formula change are found by bisection between samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from circuitsim.circuit.waveforms import PiecewiseLinear, Waveform
from circuitsim.errors import UsageError
from circuitsim.netlist.functional import FollowingSources
from circuitsim.netlist.waveform import Grid
from circuitsim.units import SMALLEST

HALVINGS = 50
"""Number of bisections between two samples."""


def changes(
    decisions: Callable[[np.ndarray], np.ndarray], times: np.ndarray, name: str, most: float = math.inf
) -> np.ndarray:
    """Times, ascending, s, from which on the decisions differ from those before. A pair of changes between two samples
    that cancels is missed.

    Parameters
    ----------
    decisions : callable
        Maps times (n,), s, to a number for the decisions at each (n,).
    times : (p, looks) float array
        Sample times in intervals, s.
    name : str
        The formula's name, for messages.
    most : float
        Maximum number of changes between two samples.

    Raises
    ------
    UsageError
        Too many changes.
    """
    numbers = decisions(times.ravel()).reshape(times.shape)
    differ = numbers[:, 1:] != numbers[:, :-1]
    low, high = times[:, :-1][differ], times[:, 1:][differ]
    before, after = numbers[:, :-1][differ], numbers[:, 1:][differ]
    found = [np.zeros(0)]
    while low.size:
        if len(found) > most:
            within = float((high - low)[0])
            raise UsageError(
                f"{name}: its conditions change more than {most} times within {within:g} s; measure a shorter interval"
            )
        left, right = low, high
        for _ in range(HALVINGS):
            middle = 0.5 * (left + right)
            same = decisions(middle) == before
            left, right = np.where(same, middle, left), np.where(same, right, middle)
        found.append(right)
        now = decisions(right)
        more = (now != after) & (right < high) & (right > low)
        low, high, before, after = right[more], high[more], now[more], after[more]
    return np.unique(np.concatenate(found))


SAMPLES, STEPS, PLACES = 1_000, 100, 256
"""Minimum numbers of samples of a formula's decisions and of steps in a run; places where the number needed is
determined."""
INTERPOLATION, CHANGING = 0.02, 0.125
"""Interpolation error between two samples, relative to the formula's range, and fraction of intervals in which its
decisions change, up to which samples resolve it."""
SAMPLES_A_PERIOD = 257
"""Samples that decide whether a formula depends on time."""
SPAN = 1e-4
"""Spacing of the values in a difference quotient relative to that of two samples: balances truncation and rounding."""
MOST_SAMPLES = 200_000
"""Maximum number of samples of a formula that may be piecewise linear."""
ROUNDING = 1e-12
"""Relative rounding of a formula's value."""
BETWEEN = np.linspace(0.1, 0.9, 5)[:, None]
"""Samples between two corners that decide whether a formula is a line there."""
OF_TIME = 4e-16
"""Relative rounding of a time."""
RESOLUTION = 1e-16
"""Minimum distance of a corner after the requested time, relative to the run."""


class FormulaLines(PiecewiseLinear):
    """A source given by a formula, as a piecewise-linear waveform."""


def check_by_source(waves: Iterable[Waveform], name: str) -> None:
    """Refuse a gradient by the source ``name`` where another source's formula may read it and would not follow.

    Raises
    ------
    UsageError
    """
    if any(isinstance(wave, FormulaLines) for wave in waves):
        raise UsageError(
            f"{name} may be read by the formula of another source: such runs have gradients by R, C, L and devices"
        )


class FormulaOfTime(Waveform):
    """A source whose value is a formula. It is not the output of a linear system, so it rules out exact waveforms.

    Its corners are those of the waveforms it may read, and the times at which its conditions, ``abs``, ``min``, ``max``
    and the like change, located by bisection. Pairs of changes between two samples are missed.

    Parameters
    ----------
    name : str
        Of the source.
    sources : FollowingSources
    place : int
        Its position.
    grid : Grid
        Output times.
    others : mapping of int to Waveform
        Those of other sources, by position.

    Attributes
    ----------
    longest : float
        Step of the implicit method that resolves it, s.

    Raises
    ------
    NetlistError
        The formula has no value at time 0, or reads what no source fixes.
    """

    what = "a formula of the time"

    def __init__(
        self, name: str, sources: FollowingSources, place: int, grid: Grid, others: Mapping[int, Waveform]
    ) -> None:
        self._name, self._sources, self._place, self._grid, self._others = name, sources, place, grid, others.values()
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._at(0.0)
        self.longest = self._resolution()
        self._interval = min(self.longest, grid.stop / SAMPLES)
        self.recurs_from = max((wave.recurs_from for wave in self._others), default=0.0)

    @property
    def periods(self) -> list[float]:  # type: ignore[override]
        """Periods of the waveforms it may read, s; inf if it depends on time itself."""
        found = [period for wave in self._others for period in wave.periods]
        times = self.recurs_from + np.linspace(0.0, max(found, default=0.0), SAMPLES_A_PERIOD)
        own = math.isinf(times[-1]) or any("time" in self._at(time)[1] for time in times.tolist())
        return [math.inf] if own else found

    def _at(self, time: float) -> tuple[float, tuple[Any, ...]]:
        return self._sources.formula_at(self._place, time, self._grid)

    def _resolution(self) -> float:
        """Distance of samples that resolve the formula wherever it is looked at, s."""
        stop = self._grid.stop
        interval, places = stop / STEPS, np.random.default_rng(0).random(PLACES)
        while interval * MOST_SAMPLES > stop:
            times = (stop - interval) * places + interval * np.array([[0.0], [0.5], [1.0]])
            values, decisions = self._samples(times)
            same = (decisions[1:] == decisions[0]).all(axis=0)
            off = np.abs(values[1] - 0.5 * (values[0] + values[2]))[same]
            allowed = INTERPOLATION * np.ptp(values) + ROUNDING * np.abs(values).max()
            if (off <= allowed).all() and np.mean(~same) <= CHANGING:
                break
            interval *= 0.5
        return interval

    def states(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The value."""
        found = self._samples(times)[0][:, None]
        return found, np.abs(found)

    def corners(self, after: float, until: float, most: int) -> np.ndarray:
        """Corners; see `Waveform.corners`."""
        found, until = list[float](), max(after, min(until, self._grid.stop))
        knots = [wave.corners(after, until, most) for wave in self._others]
        for begin, end in pairwise(np.unique(np.concatenate([[after, until], *knots])).tolist()):
            if len(found) < most:
                times = np.linspace(begin, end, max(math.ceil((end - begin) / self._interval), 1) + 1)[None]
                found += [*changes(lambda times: self._samples(times)[1], times, self._name).tolist(), end]
        first = after + RESOLUTION * self._grid.stop
        return np.unique(np.array([time for time in found if first < time < until]))[:most]

    def cycles(self, until: float) -> float:
        """Number of periods of the waveforms it may read; see `Waveform.cycles`."""
        return sum(wave.cycles(until) for wave in self._others)

    def _samples(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The values at times of any shape, and a number for the decisions of each."""
        found = [self._at(time) for time in times.ravel().tolist()]
        numbers = [self._numbers.setdefault(own, len(self._numbers)) for _, own in found]
        return np.array([value for value, _ in found]).reshape(times.shape), np.array(numbers).reshape(times.shape)

    def straight(self) -> FormulaLines | None:
        """The same waveform up to the end of the run as lines, which exact runs take; None if it is curved."""
        stop, found = self._grid.stop, None
        for until in (self._interval, stop) if stop / self._interval <= MOST_SAMPLES else ():
            found = self._lines(np.array([0.0, *self.corners(0.0, until, MOST_SAMPLES).tolist(), until]))
            if found is None:
                break
        return found

    def _lines(self, corners: np.ndarray) -> FormulaLines | None:
        """The lines between corners (n,), s; None if one is curved. The formula is smooth there: a few values show
        that."""
        ends = np.array([corners[:-1], corners[1:]])
        times = ends[0] + (ends[1] - ends[0]) * BETWEEN
        values = self._samples(times)[0]
        slope = (values[-1] - values[0]) / np.maximum(times[-1] - times[0], SMALLEST)
        off = np.abs(values - values[0] - slope * (times - times[0]))
        if (off > ROUNDING * np.abs(values).max() + OF_TIME * np.abs(slope * times)).any():
            return None
        return FormulaLines(ends.T.ravel(), (values[0] + slope * (ends - times[0])).T.ravel())

    def slope(self, time: float) -> float:
        """The derivative at ``time`` (s) and after it, V/s or A/s, by a difference of second order."""
        span = SPAN * self._interval
        first, second, third = (self._at(time + k * span)[0] for k in range(3))
        return (4.0 * second - 3.0 * first - third) / (2.0 * span)
