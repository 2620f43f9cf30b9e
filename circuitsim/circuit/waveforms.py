"""Waveforms of sources: constant, piecewise linear, pulse, sine, exponential, modulated.

All except frequency modulation are outputs of linear systems: the value is row · w with ẇ = S w, and w is reset at some
times. A source is therefore part of the circuit's linear system, and its derivative is exact.

References
----------
ngspice user manual, version 39, chapter 4.1 (independent sources).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from circuitsim.arguments import checked, instance, number, real
from circuitsim.errors import UsageError

MOST_CYCLES = 5_000_000
"""Maximum number of periods or corners of a source in a run; each stores some 100 bytes."""
PERIODS = 8
"""Periods of a sine after which its state is recomputed, to limit rounding."""
FAR = 1e290
"""Time that represents an infinite one, s."""
SLOWEST = 1e-290
"""Frequency that represents 0, Hz."""
SPENT = 300.0
"""Time constants after which an exponential counts as zero: its square underflows."""
LINE = np.array([[0.0, 1.0], [0.0, 0.0]])
"""System matrix of straight lines, for value and slope."""


class Waveform(ABC):
    """A source value over time. At a step, the value is the one after it.

    Attributes
    ----------
    system : (k, k) float array
        S, 1/s.
    row : (k,) float array
        Output weights, V or A.
    periods : sequence of float
        Periods of its components, s: empty for a constant, inf for aperiodic ones.
    recurs_from : float
        Time from which it is periodic, s.
    what : str
        Name, for messages, of a waveform that is not the output of a linear system and not available in exact runs; its
        state is its value.
    """

    system: np.ndarray = np.zeros((1, 1))
    row: np.ndarray = np.ones(1)
    periods: Sequence[float] = (math.inf,)
    recurs_from = 0.0
    what = ""

    @abstractmethod
    def states(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """w at times (n,) (after a corner), and the scales of its rounding: (n, k) each."""

    def breakpoints(self, after: float, until: float, most: int) -> np.ndarray:
        """Times at which the value or its slope jumps.

        Parameters
        ----------
        after, until : float
            Open time interval, s.
        most : int
            Maximum number of times.

        Returns
        -------
        (n,) float array
            The first ones in the interval, ascending, s.
        """
        return np.zeros(0)

    def corners(self, after: float, until: float, most: int) -> np.ndarray:
        """Times at which w is reset: breakpoints, and further ones to limit rounding; the arguments are those of
        `Waveform.breakpoints`."""
        return self.breakpoints(after, until, most)

    def piece(self, time: float) -> int:
        """Number of breakpoints before a time (s), which is the index of the interval between them."""
        return self.breakpoints(-math.inf, time, MOST_CYCLES).size

    def cycles(self, until: float) -> float:
        """Approximate number of periods or corners up to a time, s."""
        return 0.0

    def resolving(self, time: float) -> float:
        """The longest step from ``time`` on that resolves the waveform, if its system does not; s."""
        return math.inf

    def value(self, time: float) -> float:
        """The value at ``time`` (s), V or A."""
        return float(self.at(np.array([time]))[0])

    def at(self, times: np.ndarray) -> np.ndarray:
        """The values at times (n,), V or A."""
        return np.asarray(self.states(times)[0] @ self.row)

    def slope(self, time: float) -> float:
        """The derivative at ``time`` (s), V/s or A/s; at a corner, the one after it."""
        return float(self.row @ self.system @ self.states(np.array([time]))[0][0])


WAVEFORM = instance("a waveform such as Sine(0, 1, 50)", Waveform)
ENDLESS, TIME = number(endless=True), number(0, endless=True)


def check_cycles(name: str, waveform: Waveform, until: float, most: int = MOST_CYCLES) -> None:
    """Refuse a run up to ``until`` s with too many periods of the source ``name``.

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


def _within(times: np.ndarray, after: float, until: float, most: int) -> np.ndarray:
    """The first ``most`` times in an interval, ascending, each once."""
    return np.unique(times[(times > after) & (times < until)])[:most]


class Constant(Waveform):
    """A constant value.

    Parameters
    ----------
    level : float
        V or A.
    """

    periods = ()

    @checked()
    def __init__(self, level: float) -> None:
        self.level = level

    def states(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The constant."""
        state = np.full((times.size, 1), self.level)
        return state, np.abs(state)


def _slopes(span: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Slopes from each corner to the next; 0 at a step and at the last."""
    return np.append(np.divide(np.diff(values), span, out=np.zeros(span.size), where=span > 0.0), 0.0)


class PiecewiseLinear(Waveform):
    """Straight lines between corners (PWL); constant before the first and after the last.

    Parameters
    ----------
    times : sequence of float
        Ascending, s; two equal times are a step.
    values : sequence of float
        V or A.
    repeat_from : float, optional
        Time from which the corners repeat (SPICE's ``r=``), s.

    Raises
    ------
    UsageError
        Descending times, different numbers of times and values, or no corners to repeat.
    """

    system, row = LINE, np.array([1.0, 0.0])

    @checked(repeat_from=real)
    def __init__(
        self,
        times: Sequence[float] | np.ndarray,
        values: Sequence[float] | np.ndarray,
        repeat_from: float | None = None,
    ) -> None:
        self.times, self.values = t, y = np.asarray(times), np.asarray(values)
        if t.shape != y.shape or (np.diff(t) < 0.0).any():
            raise UsageError("a piecewise-linear waveform needs as many values as times, and times in ascending order")
        self.repeat_from, end = repeat_from, float(t[-1])
        if repeat_from is None:
            self.periods, self.recurs_from = (), end
            self._repeat(FAR, np.zeros((1, 1)), y[-1:], 0)
            return
        if not repeat_from < end:
            raise UsageError("a piecewise-linear waveform repeats from a time before its last corner")
        self.periods, self.recurs_from, again = [end - repeat_from], repeat_from, t > repeat_from
        offsets, first = np.append(repeat_from, t[again]) - repeat_from, np.interp(repeat_from, t, y)
        self._repeat(end - repeat_from, offsets[None], np.append(first, y[again]))

    def _repeat(self, period: float, parts: np.ndarray, values: np.ndarray, count: float = math.inf) -> None:
        """After the given corners, append ``count`` periods (s) with corners at the sums of ``parts`` (p, n) after the
        start of each, the last at its end.

        Corners are numbered consecutively. Number 0 is the infinite past.
        """
        given, early = np.append(-np.inf, self.times), parts.sum(axis=0) < period
        self._given, self._again, self._period = given.size, values.size, period
        self._last = self._given + self._again * count if count < math.inf else 2**62
        self._times = np.append(given, np.where(early, self.times[-1] + parts.sum(axis=0), np.inf))
        self._parts = np.pad(np.where(early, parts, np.inf), ((0, 0), (given.size, 0)))
        self._level = np.concatenate([self.values[:1], self.values, values])
        self._slope = np.append(
            _slopes(np.diff(given), self._level[: given.size]), _slopes(np.diff(parts).sum(axis=0), values)
        )
        size = np.abs(self._level)
        size = np.where(self._slope != 0.0, np.maximum(size, np.roll(size, -1)), size)
        self._sizes = np.stack([size, np.abs(self._slope)], axis=1)
        self._latest = math.inf, math.inf, 0

    def _corners(self, number: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Times of corners by number, inf beyond the last, and their places in the tables."""
        cycle = np.maximum((number - self._given) // self._again, 0)
        place = number - self._again * cycle
        time, end = (self.times[-1] + self._period * turns for turns in (cycle, cycle + 1))
        for part in self._parts:
            time = time + part[place]
        time = np.where(number < self._given, self._times[place], np.minimum(time, end))
        return np.where(number < self._last, time, np.inf), place

    def _last_before(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Numbers of the last corners at or before times, their times and places."""
        cycle = np.maximum(np.floor((times - self.times[-1]) / self._period), 0.0)
        place = np.searchsorted(self._times, times - self._period * cycle, side="right") - 1
        number = np.minimum(self._again * cycle + place, self._last - 1).astype(np.int64)
        while True:
            (begin, end), (place, _) = self._corners(np.stack([number, number + 1]))
            move = 1 * (times >= end) - (times < begin)
            if not move.any():
                return number, begin, place
            number = number + move

    def breakpoints(self, after: float, until: float, most: int) -> np.ndarray:
        """The corners of all periods; the arguments are those of `Waveform.breakpoints`."""
        first, last = self._last_before(np.array([after, until]))[0].tolist()
        apart = np.unique(self._times[self._given :]).size
        many = max(self._given - first, 0) + self._again * (most // max(apart - 1, 1) + 2)
        return _within(self._corners(np.arange(first, min(last, first + many) + 1))[0], after, until, most)

    def piece(self, time: float) -> int:
        """The number of the last corner; see `Waveform.piece`."""
        return int(self._last_before(np.array([time]))[0][0])

    def cycles(self, until: float) -> float:
        """The corners; see `Waveform.cycles`."""
        again = max(until - float(self.times[-1]), 0.0) / self._period * self._again
        return float(np.searchsorted(self.times, until)) + again

    def states(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values and slopes."""
        _, begin, place = self._last_before(times)
        slope = self._slope[place]
        since = np.subtract(times, begin, out=np.zeros(times.size), where=slope != 0.0)
        return np.stack([self._level[place] + slope * since, slope], axis=1), self._sizes[place]

    def at(self, times: np.ndarray) -> np.ndarray:
        """See `Waveform.at`. Successive calls are mostly within one interval between corners, which is kept."""
        if not times.size:
            return np.zeros(0)
        first, last, (begin, end, place) = float(times.min()), float(times.max()), self._latest
        if not begin <= first < end:
            number, _, (place,) = self._last_before(np.array([first]))
            begin, end = self._corners(number + [0, 1])[0].tolist()
            self._latest = begin, end, place
        if not last < end:
            return super().at(times)
        slope = self._slope[place]
        return np.asarray(self._level[place] + (slope * (times - begin) if slope else np.zeros(times.size)))


class Pulse(PiecewiseLinear):
    """SPICE's PULSE(low high delay rise fall width period count).

    Parameters
    ----------
    low, high : float
        V or A.
    delay, rise, fall, width, period : float
        s; ``rise`` and ``fall`` of zero are steps; an infinite ``period`` is a single pulse. A pulse longer than its
        period is truncated.
    count : float
        Number of pulses; 0: unlimited.

    Raises
    ------
    UsageError
        Negative times, or a period of zero.
    """

    @checked(rise=TIME, fall=TIME, width=TIME, period=number(0, between=True, endless=True), count=ENDLESS)
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
        self.low, self.high, self.delay, self.rise, self.fall = low, high, delay, rise, fall
        self.width, self.period, self.count = width, period, count if count > 0.0 else math.inf
        super().__init__([delay], [low])
        self.periods = [period if math.isinf(self.count) else math.inf]
        period, values = min(period, FAR), np.array([low, high, high, low])
        parts = np.where(np.tri(4, 3, -1).T > 0.0, [[rise], [width], [fall]], 0.0)
        times = parts.sum(axis=0)
        k = int(np.searchsorted(times, period))
        last = np.interp(period, times[k - 1 : k + 1], values[k - 1 : k + 1])
        end = np.array([[period] * 2, [0.0] * 2, [0.0] * 2])
        self._repeat(period, np.hstack([parts[:, :k], end]), np.append(values[:k], [last, low]), self.count)

    def cycles(self, until: float) -> float:
        """The pulses; see `Waveform.cycles`."""
        return min(self.count, max(until - self.delay, 0.0) / self.period)


class _Sines(Waveform):
    """Damped sines between two times, plus a level; constant before and after.

    Parameters
    ----------
    level, rest : float
        V or A.
    lines : sequence of (float, float, float)
        Frequency, Hz, amplitude and phase, radians, of each.
    delay, end : float
        s.
    damping : float
        1/s.
    """

    def __init__(
        self,
        level: float,
        rest: float,
        lines: Sequence[tuple[float, float, float]],
        delay: float,
        end: float = math.inf,
        damping: float = 0.0,
    ) -> None:
        self.delay, self.end = delay, end
        self._level, self._rest = level, rest
        frequency, self._size, self._phase = np.array(lines).T
        self._rate, n = 2j * math.pi * frequency - damping, frequency.size
        self._fastest = float(np.abs(frequency).max()) or SLOWEST
        self.recurs_from, self.periods = delay, [1.0 / abs(f) for f, size, _ in lines if f and size]
        if math.isfinite(end):
            self.recurs_from, self.periods = end, ()
        elif damping and self._size.any():
            self.periods = [math.inf]
        self.row, self.system = np.append(1.0, np.tile([1.0, 0.0], n)), np.zeros((1 + 2 * n, 1 + 2 * n))
        self.system[1:, 1:] = np.kron(np.diag(self._rate.imag), [[0.0, -1.0], [1.0, 0.0]]) - damping * np.eye(2 * n)

    def breakpoints(self, after: float, until: float, most: int) -> np.ndarray:
        """The delay and the end; the arguments are those of `Waveform.breakpoints`."""
        return _within(np.array([self.delay, self.end]), after, until, most)

    def corners(self, after: float, until: float, most: int) -> np.ndarray:
        """The breakpoints, and the ends of every `PERIODS` periods of the fastest line."""
        span = PERIODS / self._fastest
        first = max(0.0, math.floor((after - self.delay) / span) - 1.0)
        found = self.delay + span * (first + np.arange(most + 4))
        return _within(np.append(found[found < self.end], self.end), after, until, most)

    def cycles(self, until: float) -> float:
        """The periods of the fastest line; see `Waveform.cycles`."""
        return self._fastest * max(min(self.end, until) - self.delay, 0.0)

    def states(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The level, sine and negative cosine of each line."""
        (outside, angles, line), level = self._lines(times), np.full((times.size, 1), self._level)
        state = np.hstack([level, (-1j * line).view(float)])
        sizes = np.abs(np.hstack([level, np.repeat(line, 2, axis=1)]))
        # A small angle has a small rounding error, and so does its sine.
        sizes[:, 1::2] *= np.minimum(np.abs(angles.imag), 1.0)
        state[outside], state[outside, 0] = 0.0, self._rest
        sizes[outside] = np.abs(state[outside])
        return state, sizes

    def at(self, times: np.ndarray) -> np.ndarray:
        """See `Waveform.at`."""
        outside, _, line = self._lines(times)
        return np.where(outside, self._rest, self._level + line.imag.sum(axis=1))

    def _lines(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Whether times (n,) are before the delay or after the end; angles (n, k) and lines, complex."""
        outside = (times < self.delay) | (times >= self.end)
        since = np.where(outside, 0.0, times - self.delay)
        angles = np.multiply.outer(since, self._rate) + 1j * self._phase
        return outside, angles, self._size * np.exp(angles)


class Sine(_Sines):
    """SPICE's SIN(offset amplitude frequency delay damping phase), and LTspice's number of cycles.

    Parameters
    ----------
    offset, amplitude : float
        V or A.
    frequency : float
        Hz.
    delay : float
        s; the value is constant before.
    damping : float
        1/s.
    phase : float
        Degrees.
    cycles : float
        Number of cycles, after which the value is that at the delay; 0: unlimited.
    """

    @checked(cycles=ENDLESS)
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
        self.offset, self.amplitude, self.frequency, self.damping = offset, amplitude, frequency, damping
        angle, end = math.radians(phase), delay + cycles / abs(frequency) if frequency and cycles > 0.0 else math.inf
        super().__init__(
            offset, offset + amplitude * math.sin(angle), [(frequency, amplitude, angle)], delay, end, damping
        )


class AmplitudeModulation(_Sines):
    """SPICE's AM(amplitude offset signal carrier delay): amplitude · (offset + sin 2πf_s t) · sin 2πf_c t.

    Parameters
    ----------
    amplitude : float
        V or A.
    offset : float
    signal, carrier : float
        Hz.
    delay : float
        s; the value is zero before.
    """

    @checked()
    def __init__(self, amplitude: float, offset: float, signal: float, carrier: float, delay: float = 0.0) -> None:
        # The carrier and its two sidebands.
        bands = [(carrier + sign * signal, -0.5 * sign * amplitude, 0.5 * math.pi) for sign in (-1.0, 1.0)]
        super().__init__(0.0, 0.0, [(carrier, amplitude * offset, 0.0), *bands], delay)
        self._fastest = max(abs(carrier), abs(signal))


class Exponential(Waveform):
    """SPICE's EXP(low high rise_delay rise_constant fall_delay fall_constant).

    Parameters
    ----------
    low, high : float
        V or A.
    rise_delay, rise_constant, fall_delay, fall_constant : float
        s.
    """

    row = np.ones(3)

    @checked(rise_delay=ENDLESS, rise_constant=ENDLESS, fall_delay=ENDLESS, fall_constant=ENDLESS)
    def __init__(
        self, low: float, high: float, rise_delay: float, rise_constant: float, fall_delay: float, fall_constant: float
    ) -> None:
        self.low, self.high = low, high
        self._delays, self._constants = np.array([rise_delay, fall_delay]), np.array([rise_constant, fall_constant])
        if not self._constants.all():
            raise UsageError("rise_constant and fall_constant must not be 0")
        self._steps = np.array([high - low, low - high])
        self.system = np.diag(np.append(0.0, -1.0 / self._constants))

    def breakpoints(self, after: float, until: float, most: int) -> np.ndarray:
        """Both delays; the arguments are those of `Waveform.breakpoints`."""
        return _within(self._delays, after, until, most)

    def states(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The level and the difference from it."""
        since = times[:, None] - self._delays
        steps = np.where(since >= 0.0, self._steps, 0.0)
        missing = -steps * np.exp(-np.maximum(since, 0.0) / self._constants)
        missing[since > SPENT * np.abs(self._constants)] = 0.0
        state = np.column_stack([self.low + steps.sum(axis=1), missing])
        return state, np.broadcast_to(np.abs(state).max(axis=1, keepdims=True), state.shape)


class FrequencyModulation(Waveform):
    """SPICE's SFFM(offset amplitude carrier index signal): not the output of a linear system, so not available in exact
    runs.

    Its value is offset + amplitude · sin(2πf_c t + φ_c + index · sin(2πf_s t + φ_s)).

    Parameters
    ----------
    offset, amplitude : float
        V or A.
    carrier : float
        Hz.
    index : float
    signal : float
        Hz.
    carrier_phase, signal_phase : float
        Degrees.
    """

    what = "frequency modulated"

    @checked()
    def __init__(
        self,
        offset: float,
        amplitude: float,
        carrier: float,
        index: float,
        signal: float,
        carrier_phase: float = 0.0,
        signal_phase: float = 0.0,
    ) -> None:
        self.offset, self.amplitude, self.index = offset, amplitude, index
        self.carrier, self.signal = 2.0 * math.pi * carrier, 2.0 * math.pi * signal
        self.phases = math.radians(carrier_phase), math.radians(signal_phase)

    def cycles(self, until: float) -> float:
        """The periods at the highest frequency; see `Waveform.cycles`."""
        return until * (abs(self.carrier) + abs(self.index * self.signal)) / (2.0 * math.pi)

    def _value(self, time: np.ndarray) -> np.ndarray:
        angle = self.carrier * time + self.phases[0] + self.index * np.sin(self.signal * time + self.phases[1])
        return np.asarray(self.offset + self.amplitude * np.sin(angle))

    def states(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The value."""
        state = self._value(times)[:, None]
        return state, np.full_like(state, abs(self.offset) + abs(self.amplitude))

    def slope(self, time: float) -> float:
        """The derivative at ``time`` (s), V/s or A/s, by a complex step."""
        return float(self._value(np.array(time + 1e-30j)).imag) / 1e-30
