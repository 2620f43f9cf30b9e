"""Source waveforms as SPICE defines them: outputs of linear systems whose states change at corners.

A source is row · w with ẇ = S w: lines (PULSE, PWL), damped sines (SIN), exponentials (EXP). So a source is part of the
circuit's linear system, and its derivative is known exactly. S and the row belong to the source; at its corners w takes
another value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from circuitsim.errors import UsageError
from circuitsim.time_domain.sampled import Sampled

MOST_CYCLES = 5_000_000
"""Most periods or corners of a source within a run: each leaves what the waveforms are made of, some 100 bytes."""
PERIODS = 8
"""Periods of a sine after which its state is taken from its formula again: rounding does not add up."""


class Waveform(Protocol):
    """A source value over time: the output of a linear system.

    Attributes
    ----------
    system : (k, k) float array
        S, 1/s.
    row : (k,) float array
        Output weights, V or A.
    """

    system: np.ndarray
    row: np.ndarray

    def corners(self, after: float, until: float, most: int) -> np.ndarray:
        """Times at which w is set anew.

        Parameters
        ----------
        after, until : float
            Open interval of time, s.
        most : int
            Largest number of times.

        Returns
        -------
        (n,) float array
            The first of them in the interval, ascending, s.
        """
        ...

    def cycles(self, until: float) -> float:
        """How many periods or corners, about, there are up to a time, s."""
        ...

    def states(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """w at times (n,), at a corner after it, and the sizes against which its rounding counts: (n, k) each."""
        ...


def value(waveform: Waveform, time: float) -> float:
    """The value at ``time`` (s), V or A; at a step the value after it."""
    return float(waveform.row @ waveform.states(np.array([time]))[0][0])


def slope(waveform: Waveform, time: float) -> float:
    """The derivative at ``time`` (s), V/s or A/s; at a corner that after it."""
    if isinstance(waveform, Sampled):
        return waveform.slope(time)
    return float(waveform.row @ waveform.system @ waveform.states(np.array([time]))[0][0])


def check_cycles(name: str, waveform: Waveform, until: float, most: int = MOST_CYCLES) -> None:
    """Refuse a run up to ``until`` s with more periods of the source ``name`` than it can hold.

    Raises
    ------
    UsageError
    """
    count = waveform.cycles(until)
    if not count <= most:
        raise UsageError(
            f"{name} has {count:.1e} periods or corners in the {until:g} s of the run, which takes at most {most:,}; "
            f"check its numbers, or end the run at {until * most / count:.2g} s"
        )


LINE = np.array([[0.0, 1.0], [0.0, 0.0]])
"""Generator of straight lines, of value and slope."""


def _within(times: np.ndarray, after: float, until: float, most: int) -> np.ndarray:
    """The first ``most`` of some times between two, ascending, each once."""
    return np.unique(times[(times > after) & (times < until)])[:most]


class Constant:
    """A constant value.

    Parameters
    ----------
    level : float
        V or A.
    """

    def __init__(self, level: float) -> None:
        self.level, self.system, self.row = level, np.zeros((1, 1)), np.ones(1)

    def corners(self, after: float, until: float, most: int) -> np.ndarray:
        """None."""
        return np.zeros(0)

    def cycles(self, until: float) -> float:
        """None."""
        return 0.0

    def states(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The constant."""
        state = np.full((times.size, 1), self.level)
        return state, np.abs(state)


class PiecewiseLinear:
    """Straight lines between corners (PWL); before the first and after the last the value is constant.

    Parameters
    ----------
    times : sequence of float
        Ascending, s; two equal times are a step.
    values : sequence of float
        V or A.
    repeat_from : float, optional
        The corners from this time on repeat for ever (SPICE's ``r=``), s.

    Raises
    ------
    UsageError
        Times that descend, not as many values as times, or nothing that repeats.
    """

    def __init__(self, times: Sequence[float], values: Sequence[float], repeat_from: float | None = None) -> None:
        self.times, self.values = np.asarray(times, dtype=float), np.asarray(values, dtype=float)
        self.system, self.row = LINE, np.array([1.0, 0.0])
        if self.times.shape != self.values.shape or not self.times.size or (np.diff(self.times) < 0.0).any():
            raise UsageError("a piecewise-linear waveform needs as many values as times, and times in ascending order")
        self.repeat_from = repeat_from
        if repeat_from is not None and not repeat_from < self.times[-1]:
            raise UsageError("a piecewise-linear waveform repeats from a time before its last corner")

    def _repetition(self) -> tuple[float, np.ndarray, np.ndarray]:
        """Its length, s, and the corners of each, from the time that it repeats from on: times and values."""
        if self.repeat_from is None:
            return math.inf, np.zeros(0), np.zeros(0)
        period, again = float(self.times[-1]) - self.repeat_from, self.times > self.repeat_from
        first = self._lines(np.array([self.repeat_from]))[0][0, 0]
        return period, np.append(self.repeat_from, self.times[again]), np.append(first, self.values[again])

    def corners(self, after: float, until: float, most: int) -> np.ndarray:
        """The corners, those of later repetitions too; the arguments are those of `Waveform.corners`."""
        if self.repeat_from is None:
            return _within(self.times, after, until, most)
        period, own, _ = self._repetition()
        first = max(1.0, math.floor((after - float(self.times[-1])) / period) - 1.0)
        late = period * (first + np.arange(most // (own.size - 1) + 4))
        return _within(np.concatenate([self.times, (late[:, None] + own[1:]).ravel()]), after, until, most)

    def cycles(self, until: float) -> float:
        """The corners; see `Waveform.cycles`."""
        period, own, _ = self._repetition()
        given = float(np.searchsorted(self.times, until))
        return given + max(until - float(self.times[-1]), 0.0) / period * own.size

    def states(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The lines' values and slopes."""
        state, sizes = self._lines(times)
        late = np.flatnonzero(times >= self.times[-1]) if self.repeat_from is not None else np.zeros(0, np.int64)
        if late.size:
            state[late], sizes[late] = self._repeated(times[late])
        return state, sizes

    def _lines(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values and slopes without repetition, and their sizes."""
        t, y, n = self.times, self.values, self.times.size
        k = np.searchsorted(t, times, side="right")
        first, last = np.maximum(k - 1, 0), np.minimum(k, n - 1)
        return _between(times - t[first], t[last] - t[first], y[first], y[last])

    def _repeated(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The same at times in repetitions. A corner is the sum that `corners` makes, so that it begins the line after
        it; a repetition begins at the last corner of the one before."""
        period, own, y = self._repetition()
        end = own[-1]
        cycle = np.maximum(np.floor((times - end) / period), 0.0)
        cycle += times >= period * (cycle + 1.0) + end
        cycle -= times < period * cycle + end
        late = period * (cycle + 1.0)
        k = np.clip(np.searchsorted(own, times - late, side="right"), 1, own.size - 1)
        for _ in range(2):
            k += (k < own.size - 1) & (times >= late + own[k])
            k -= (k > 1) & (times < late + own[k - 1])
        begin = np.where(k > 1, late + own[k - 1], period * cycle + end)
        return _between(times - begin, own[k] - own[k - 1], y[k - 1], y[k])


def _between(since: np.ndarray, span: np.ndarray, first: np.ndarray, last: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values and slopes of lines from ``first`` to ``last`` within ``span`` s, and their sizes (n, 2)."""
    slope = np.divide(last - first, span, out=np.zeros(span.size), where=span > 0.0)
    state = np.stack([first + slope * np.maximum(since, 0.0), slope], axis=1)
    return state, np.stack([np.maximum(np.abs(first), np.abs(last)), np.abs(slope)], axis=1)


class Pulse:
    """SPICE's PULSE(low high delay rise fall width period count).

    Parameters
    ----------
    low, high : float
        V or A.
    delay, rise, fall, width, period : float
        s; ``rise`` and ``fall`` of zero are steps; an infinite ``period`` is a single pulse. A pulse longer than its
        period is cut short.
    count : float
        Number of pulses.

    Raises
    ------
    UsageError
        Negative times, or a period of zero.
    """

    def __init__(
        self,
        low: float,
        high: float,
        delay: float = 0.0,
        rise: float = 0.0,
        fall: float = 0.0,
        width: float = math.inf,
        period: float = math.inf,
        count: float = math.inf,
    ) -> None:
        if min(rise, fall, width) < 0.0 or not period > 0.0:
            raise UsageError("a pulse needs times that are not negative and a positive period")
        self.low, self.high, self.delay, self.rise, self.fall = low, high, delay, rise, fall
        self.width, self.period, self.count = width, period, count
        self.system, self.row = LINE, np.array([1.0, 0.0])

    def _edges(self, cycle: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Start, top, fall, foot and end of pulses by number."""
        start = self._start(cycle)
        top = start + self.rise
        down = top + self.width
        return start, top, down, down + self.fall, self._start(cycle + 1.0)

    def _start(self, cycle: np.ndarray) -> np.ndarray:
        late = np.multiply(cycle, self.period, out=np.zeros(cycle.size), where=cycle > 0.0)
        return self.delay + late

    def corners(self, after: float, until: float, most: int) -> np.ndarray:
        """The edges' ends; the arguments are those of `Waveform.corners`."""
        first, many = 0.0, 1
        if not math.isinf(self.period):
            first, many = max(0.0, math.floor((after - self.delay) / self.period) - 1.0), most // 4 + 4
        cycle = first + np.arange(many)
        *edges, end = self._edges(cycle[cycle < self.count])
        inside = [np.where(edge < end, edge, end) for edge in edges]
        return _within(np.concatenate([*inside, end]), after, until, most)

    def cycles(self, until: float) -> float:
        """The pulses; see `Waveform.cycles`."""
        return min(self.count, max(until - self.delay, 0.0) / self.period)

    def states(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Levels and slopes."""
        cycle = np.zeros(times.size)
        if not math.isinf(self.period):
            cycle = np.maximum(np.floor((times - self.delay) / self.period), 0.0)
            cycle += times >= self._start(cycle + 1.0)
            cycle -= (cycle > 0.0) & (times < self._start(cycle))
        start, top, down, foot, _ = self._edges(cycle)
        rises = (times >= start) & (times < top)
        falls = (times >= down) & (times < foot)
        level = (times >= top) & (times < down)
        step, done = self.high - self.low, cycle >= self.count
        slope = np.zeros(times.size)
        slope[rises], slope[falls] = step / (self.rise or 1.0), -step / (self.fall or 1.0)
        found = np.where(level | falls, self.high, self.low)
        since = np.subtract(times, np.where(falls, down, start), out=np.zeros(times.size), where=rises | falls)
        found, slope = np.where(done, self.low, found + slope * since), np.where(done, 0.0, slope)
        size = np.where(slope != 0.0, max(abs(self.low), abs(self.high)), np.abs(found))
        return np.stack([found, slope], axis=1), np.stack([size, np.abs(slope)], axis=1)


class Sine:
    """SPICE's SIN(offset amplitude frequency delay damping phase), and LTspice's number of cycles.

    Parameters
    ----------
    offset, amplitude : float
        V or A.
    frequency : float
        Hz.
    delay : float
        s; before it the value is that at the delay.
    damping : float
        1/s.
    phase : float
        Degrees.
    cycles : float
        After so many the value is that at the delay.
    """

    def __init__(
        self,
        offset: float,
        amplitude: float,
        frequency: float,
        delay: float = 0.0,
        damping: float = 0.0,
        phase: float = 0.0,
        cycles: float = math.inf,
    ) -> None:
        self.offset, self.amplitude, self.frequency = offset, amplitude, frequency
        self.delay, self.damping, self.phase = delay, damping, math.radians(phase)
        self.end = delay + cycles / abs(frequency) if frequency else math.inf
        omega = 2.0 * math.pi * frequency
        self.system = np.array([[0.0, 0.0, 0.0], [0.0, -damping, omega], [0.0, -omega, -damping]])
        self.row = np.array([1.0, 1.0, 0.0])

    def corners(self, after: float, until: float, most: int) -> np.ndarray:
        """The delay, the end, and the ends of every `PERIODS` periods; arguments are those of `Waveform.corners`."""
        found = _anchors(self.delay, self.frequency, after, most)
        return _within(np.append(found[found < self.end], self.end), after, until, most)

    def cycles(self, until: float) -> float:
        """The periods; see `Waveform.cycles`."""
        return abs(self.frequency) * max(min(self.end, until) - self.delay, 0.0)

    def states(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Offset, sine and cosine."""
        since, before = times - self.delay, (times < self.delay) | (times >= self.end)
        size = self.amplitude * np.exp(-self.damping * np.maximum(since, 0.0))
        angle = 2.0 * math.pi * self.frequency * since + self.phase
        state = np.stack([np.full(times.size, self.offset), size * np.sin(angle), size * np.cos(angle)], axis=1)
        state[before] = self.offset + self.amplitude * math.sin(self.phase), 0.0, 0.0
        # A small angle has a small rounding error, and so has its sine.
        turned = np.minimum(np.abs(angle), 1.0)
        sizes = np.stack([np.full(times.size, abs(self.offset)), np.abs(size) * turned, np.abs(size)], axis=1)
        sizes[before] = np.abs(state[before])
        return state, sizes


def _anchors(delay: float, frequency: float, after: float, most: int) -> np.ndarray:
    """The delay, and the ends of every `PERIODS` periods of a sine."""
    if frequency == 0.0:
        return np.array([delay])
    span = PERIODS / abs(frequency)
    first = max(0.0, math.floor((after - delay) / span) - 1.0)
    return delay + span * (first + np.arange(most + 4))


class Exponential:
    """SPICE's EXP(low high rise_delay rise_constant fall_delay fall_constant).

    Parameters
    ----------
    low, high : float
        V or A.
    rise_delay, rise_constant, fall_delay, fall_constant : float
        s.
    """

    def __init__(
        self, low: float, high: float, rise_delay: float, rise_constant: float, fall_delay: float, fall_constant: float
    ) -> None:
        self.low, self.high = low, high
        self.edges = ((rise_delay, rise_constant, high - low), (fall_delay, fall_constant, low - high))
        self.system = np.diag([0.0, -1.0 / rise_constant, -1.0 / fall_constant])
        self.row = np.ones(3)

    def corners(self, after: float, until: float, most: int) -> np.ndarray:
        """Both delays; the arguments are those of `Waveform.corners`."""
        return _within(np.array([edge[0] for edge in self.edges]), after, until, most)

    def cycles(self, until: float) -> float:
        """Two; see `Waveform.cycles`."""
        return 2.0

    def states(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The level and what is missing to it."""
        level, missing = np.full(times.size, self.low), []
        for delay, constant, step in self.edges:
            begun = times >= delay
            level = level + np.where(begun, step, 0.0)
            missing.append(np.where(begun, -step * np.exp(-np.maximum(times - delay, 0.0) / constant), 0.0))
        state = np.stack([level, *missing], axis=1)
        return state, np.broadcast_to(np.abs(state).max(axis=1, keepdims=True), state.shape)


class AmplitudeModulation:
    """SPICE's AM(amplitude offset signal carrier delay): amplitude · (offset + sin 2πf_s t) · sin 2πf_c t.

    Parameters
    ----------
    amplitude : float
        V or A.
    offset : float
    signal, carrier : float
        Hz.
    delay : float
        s; before it the value is zero.
    """

    def __init__(self, amplitude: float, offset: float, signal: float, carrier: float, delay: float = 0.0) -> None:
        self.delay, self.fastest = delay, max(abs(carrier), abs(signal))
        # Three sines: the carrier and its two side bands.
        self.lines = (
            (carrier, amplitude * offset, 0.0),
            (carrier - signal, 0.5 * amplitude, 0.5 * math.pi),
            (carrier + signal, -0.5 * amplitude, 0.5 * math.pi),
        )
        self.system, self.row = np.zeros((6, 6)), np.array([1.0, 0.0] * 3)
        for k, (frequency, _, _) in enumerate(self.lines):
            self.system[2 * k, 2 * k + 1] = 2.0 * math.pi * frequency
            self.system[2 * k + 1, 2 * k] = -2.0 * math.pi * frequency

    def corners(self, after: float, until: float, most: int) -> np.ndarray:
        """The delay, and the ends of every `PERIODS` periods of the faster sine."""
        return _within(_anchors(self.delay, self.fastest, after, most), after, until, most)

    def cycles(self, until: float) -> float:
        """The periods of the faster sine; see `Waveform.cycles`."""
        return self.fastest * max(until - self.delay, 0.0)

    def states(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sine and cosine of each line."""
        state, sizes = np.zeros((2, times.size, 6))
        begun = times >= self.delay
        for k, (frequency, size, phase) in enumerate(self.lines):
            angle = 2.0 * math.pi * frequency * (times - self.delay) + phase
            state[:, 2 * k], state[:, 2 * k + 1] = size * np.sin(angle), size * np.cos(angle)
            sizes[:, 2 * k : 2 * k + 2] = abs(size)
        return np.where(begun[:, None], state, 0.0), np.where(begun[:, None], sizes, 0.0)
