"""Sources given by a formula of time and of voltages and currents: those that other sources fix, and those that a run
has determined before.

The times at which the branches taken in a formula change are found by bisection between samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from circuitsim.analysis.probes import Probe
from circuitsim.circuit.waveforms import PiecewiseLinear, Waveform
from circuitsim.errors import UsageError
from circuitsim.netlist.functional import FollowingSources
from circuitsim.netlist.functions import Grid
from circuitsim.time_domain.result import TransientResult, columns
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


SAMPLES, STEPS = 1_000, 100
"""Minimum numbers of samples of a formula's decisions and of cells in a run."""
PLACES = np.array([0.0, 0.23, 0.5, 0.81, 1.0])
"""Places of the samples in a cell, as fractions: irregular, so that no period fits them."""
INTERPOLATION = 0.02
"""Largest difference from a line in a cell, relative to the formula's range."""
SAMPLES_A_PERIOD = 257
"""Samples that decide whether a formula depends on time."""
SPAN = 1e-4
"""Spacing of the values in a difference quotient relative to that of two samples: balances truncation and rounding."""
MOST_SAMPLES = 200_000
"""Maximum number of samples of a formula that may be piecewise linear, and of cells."""
ROUNDING = 1e-12
"""Relative rounding of a formula's value."""
BETWEEN = np.linspace(0.1, 0.9, 5)[:, None]
"""Samples between two corners that decide whether a formula is a line there."""
OF_TIME = 4e-16
"""Relative rounding of a time."""
RESOLUTION = 1e-16
"""Minimum distance of a corner after the requested time, relative to the run."""


class FormulaLines(PiecewiseLinear):
    """A source given by a formula, as a piecewise-linear waveform; ``determined``: see `FormulaOfTime`."""

    determined = False


def check_gradient(waves: Iterable[Waveform], name: str, source: bool) -> None:
    """Refuse a gradient by ``name``, possibly a source, where the formula of another source would not follow.

    Raises
    ------
    UsageError
    """
    if any(getattr(wave, "determined", False) for wave in waves):
        raise UsageError(f"{name}: runs with formulas of the circuit's voltages and currents have no gradients")
    if source and any(isinstance(wave, FormulaLines) for wave in waves):
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
    run : TransientResult, optional
        A run of the circuit up to the end of ``grid`` that determines all voltages and currents it reads.

    Attributes
    ----------
    determined : bool
        Whether it reads a run.
    cells : (n,) float array
        Times, s, from 0 to the end between which it is about a line, or has one corner.

    Raises
    ------
    NetlistError
        The formula has no value at time 0, or reads what no source fixes.
    """

    def __init__(
        self,
        name: str,
        sources: FollowingSources,
        place: int,
        grid: Grid,
        others: Mapping[int, Waveform],
        run: TransientResult | None = None,
    ) -> None:
        self._name, self._sources, self._place, self._grid, self._others = name, sources, place, grid, others.values()
        self.what = "a formula of the time" if run is None else FormulaOfSolution.what
        self.determined = run is not None
        self._run, self._read = run, dict[tuple[int, ...], Probe]()
        if run is not None:
            for read in sources.reads(sources.formulas[place]):
                kind, names = ("v", run.circuit.node_names) if len(read) == 2 else ("i", run.circuit.names)
                self._read[read] = Probe(kind, *(names[k] for k in read))
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._at(0.0)
        self.cells = self._resolved()
        self.recurs_from = max((wave.recurs_from for wave in self._others), default=0.0)

    @property
    def periods(self) -> list[float]:  # type: ignore[override]
        """Periods of the waveforms it may read, s; inf if it depends on time itself."""
        found = [period for wave in self._others for period in wave.periods]
        times = self.recurs_from + np.linspace(0.0, max(found, default=0.0), SAMPLES_A_PERIOD)
        own = math.isinf(times[-1]) or any("time" in self._at(time)[1] for time in times.tolist())
        return [math.inf] if own else found

    def _at(self, time: float) -> tuple[float, tuple[Any, ...]]:
        return self._at_times([time])[0]

    def _at_times(self, times: list[float]) -> list[tuple[float, tuple[Any, ...]]]:
        """The values at times, and the decisions that led to them."""
        if self._run is None:
            return [self._sources.formula_at(self._place, time, self._grid) for time in times]
        read = columns(self._run, [*self._read.values()], {}, times)
        known = [dict(zip(self._read, values)).__getitem__ for values in np.array(read).T.tolist()]
        return [self._sources.formula_at(self._place, time, self._grid, own) for time, own in zip(times, known)]

    def _resolved(self) -> np.ndarray:
        """The cells: halved until a line through their ends resolves the formula at a few places in them, or until they
        are shorter than the samples of decisions where these change."""
        stop, low, high = self._grid.stop, math.inf, -math.inf
        steps = np.zeros(0) if self._run is None else self._run.segment_starts()
        found, even = [np.array([stop])], np.linspace(0.0, stop, STEPS + 1)
        cells = np.unique(np.concatenate([self._knots(0.0, stop, STEPS), steps, even]))
        cells = cells[np.diff(cells, append=math.inf) > ROUNDING * stop]
        begin, end = cells[:-1], cells[1:]
        while begin.size and begin.size + sum(map(np.size, found)) < MOST_SAMPLES:
            values, decisions = self._samples(begin + (end - begin) * PLACES[:, None])
            low, high = min(low, values.min()), max(high, values.max())
            off = np.abs(values - values[0] - (values[-1] - values[0]) * PLACES[:, None]).max(axis=0)
            curved = off > INTERPOLATION * (high - low) + ROUNDING * np.abs(values).max()
            fine = (decisions != decisions[0]).any(axis=0) & (end - begin <= stop / SAMPLES)
            halved = curved & ~fine & (end - begin > OF_TIME * stop)
            found.append(begin[~halved])
            middle = 0.5 * (begin[halved] + end[halved])
            begin, end = np.concatenate([begin[halved], middle]), np.concatenate([middle, end[halved]])
        return np.unique(np.concatenate([*found, begin]))

    def _knots(self, after: float, until: float, most: int) -> np.ndarray:
        """Times between which what it reads is smooth: events, and the first ``most`` corners of each other source."""
        events = [] if self._run is None else [event.time for event in self._run.events]
        corners = (wave.corners(after, until, most) for wave in self._others)
        inside = [time for time in events if after < time < until]
        return np.unique(np.concatenate([[after, until], inside, *corners]))

    def resolving(self, time: float) -> float:
        """To the end of the cell, or that of the next one where it is near; see `Waveform.resolving`."""
        k = int(np.searchsorted(self.cells, time, side="right"))
        ends = self.cells[k : k + 2].tolist()
        if not ends:
            return math.inf
        left = ends[0] - time
        return left if len(ends) == 1 or left > 0.5 * (ends[1] - ends[0]) else ends[1] - time

    def states(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The value."""
        found = self._samples(times)[0][:, None]
        return found, np.abs(found)

    def corners(self, after: float, until: float, most: int) -> np.ndarray:
        """Corners; see `Waveform.corners`."""
        found, until = list[float](), max(after, min(until, self._grid.stop))
        for begin, end in pairwise(self._knots(after, until, most).tolist()):
            if len(found) < most:
                times = np.linspace(begin, end, max(math.ceil((end - begin) / self._grid.stop * SAMPLES), 1) + 1)
                times = np.union1d(times, self.cells[(self.cells > begin) & (self.cells < end)])[None]
                found += [*changes(lambda times: self._samples(times)[1], times, self._name).tolist(), end]
        first = after + RESOLUTION * self._grid.stop
        return np.unique(np.array([time for time in found if first < time < until]))[:most]

    def cycles(self, until: float) -> float:
        """Number of periods of the waveforms it may read; see `Waveform.cycles`."""
        return sum(wave.cycles(until) for wave in self._others)

    def _samples(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The values at times of any shape, and a number for the decisions of each."""
        found = self._at_times(times.ravel().tolist())
        numbers = [self._numbers.setdefault(own, len(self._numbers)) for _, own in found]
        return np.array([value for value, _ in found]).reshape(times.shape), np.array(numbers).reshape(times.shape)

    def straight(self) -> FormulaLines | None:
        """The same waveform up to the end of the run as lines, which exact runs take; None if it is curved."""
        stop, found = self._grid.stop, None
        for until in (float(self.cells[1]), stop):  # most curved ones are so at once
            found = self._lines(np.array([0.0, *self.corners(0.0, until, MOST_SAMPLES).tolist(), until]))
            if found is None:
                break
            found.determined = self.determined
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
        span = SPAN * min(self.resolving(time), self._grid.stop / SAMPLES)
        first, second, third = (self._at(time + k * span)[0] for k in range(3))
        return (4.0 * second - 3.0 * first - third) / (2.0 * span)


class FormulaOfSolution(Waveform):
    """A source whose value is a formula of voltages and currents that do not depend on it, before they are known. Any
    analysis but `circuitsim.transient` refuses it.

    Parameters
    ----------
    name, sources, place, grid, others
        See `FormulaOfTime`.
    """

    what = "a formula of voltages and currents"

    def __init__(
        self, name: str, sources: FollowingSources, place: int, grid: Grid, others: Mapping[int, Waveform]
    ) -> None:
        self._of = name, sources, place, grid, others
        self.level = sources.level[place]

    def after(self, run: TransientResult) -> FormulaOfTime | FormulaLines:
        """The waveform once a run up to the same end has determined what it reads.

        Raises
        ------
        UsageError
            The run was ended.
        """
        if run.stop < self._of[3].stop * (1.0 - ROUNDING):
            raise UsageError(f"the run was ended at {run.stop:g} s, before {self._of[0]} was known")
        found = FormulaOfTime(*self._of, run)
        return found.straight() or found

    @property
    def periods(self) -> list[float]:  # type: ignore[override]
        """Unknown.

        Raises
        ------
        UsageError
        """
        raise UsageError(
            f"{self._of[0]} is {self.what} of the circuit, which this analysis does not follow: circuitsim solve, tran "
            "and ac do"
        )

    def states(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Unknown; see `periods`."""
        return self.periods, self.periods  # type: ignore[return-value]
