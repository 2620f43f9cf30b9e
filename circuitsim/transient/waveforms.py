"""Source waveforms as SPICE defines them, each as a sequence of pieces that linear systems generate.

A piece is the output of ẇ = S w: constants and ramps (PULSE, PWL), damped sines (SIN), exponentials (EXP). So a source
is part of the circuit's linear system, and its derivative is known exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from circuitsim.errors import UsageError


class Piece(NamedTuple):
    """A waveform from one time on: output row · w of ẇ = ``system`` w.

    Attributes
    ----------
    end : float
        Time at which another piece follows, s; inf for the last one.
    system : (k, k) float array
        1/s.
    state : (k,) float array
        w at the time asked for.
    row : (k,) float array
        Output weights, V or A.
    scale : (k,) float array
        Sizes against which rounding of w counts.
    """

    end: float
    system: np.ndarray
    state: np.ndarray
    row: np.ndarray
    scale: np.ndarray


class Waveform(Protocol):
    """A source value over time."""

    def piece(self, time: float) -> Piece:
        """The piece that begins at or contains ``time`` (s), its state at that time."""
        ...

    def value(self, time: float) -> float:
        """The value at ``time`` (s), V or A; at a step the value after it."""
        ...


def constant(value: float, end: float = math.inf) -> Piece:
    """A constant until ``end``."""
    return Piece(end, np.zeros((1, 1)), np.array([value]), np.ones(1), np.array([abs(value)]))


def ramp(value: float, slope: float, ends: tuple[float, float], until: float) -> Piece:
    """A straight line between the values ``ends``, now at ``value``, until a time."""
    system = np.array([[0.0, 1.0], [0.0, 0.0]])
    scale = np.array([max(map(abs, ends)), abs(slope)])
    return Piece(until, system, np.array([value, slope]), np.array([1.0, 0.0]), scale)


class _Waveform:
    """What all waveforms share."""

    def piece(self, time: float) -> Piece:
        raise NotImplementedError

    def value(self, time: float) -> float:
        """The value at ``time`` (s); at a step the value after it."""
        piece = self.piece(time)
        return float(piece.row @ piece.state)


class Constant(_Waveform):
    """A constant value.

    Parameters
    ----------
    level : float
        V or A.
    """

    def __init__(self, level: float) -> None:
        self.level = level

    def piece(self, time: float) -> Piece:
        """The constant."""
        return constant(self.level)


class PiecewiseLinear(_Waveform):
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
        if self.times.shape != self.values.shape or not self.times.size or (np.diff(self.times) < 0.0).any():
            raise UsageError("a piecewise-linear waveform needs as many values as times, and times in ascending order")
        self.repeat_from = repeat_from
        if repeat_from is not None and not repeat_from < self.times[-1]:
            raise UsageError("a piecewise-linear waveform repeats from a time before its last corner")

    def piece(self, time: float) -> Piece:
        """The line at ``time``."""
        late = 0.0
        if self.repeat_from is not None and time >= self.times[-1]:
            period = float(self.times[-1]) - self.repeat_from
            late = period * (math.floor((time - float(self.times[-1])) / period) + 1.0)
            late += period if time - late >= self.times[-1] else 0.0
        own = time - late
        k = int(np.searchsorted(self.times, own, side="right"))
        if k == 0:
            return constant(float(self.values[0]), float(self.times[0]) + late)
        if k == self.times.size:
            return constant(float(self.values[-1]))
        t0, t1, y0, y1 = self.times[k - 1], self.times[k], self.values[k - 1], self.values[k]
        slope = (y1 - y0) / (t1 - t0)
        return ramp(float(y0 + slope * (own - t0)), float(slope), (float(y0), float(y1)), float(t1 + late))


class Pulse(_Waveform):
    """SPICE's PULSE(low high delay rise fall width period).

    Parameters
    ----------
    low, high : float
        V or A.
    delay, rise, fall, width, period : float
        s; ``rise`` and ``fall`` of zero are steps; an infinite ``period`` is a single pulse. A pulse longer than its
        period is cut short.

    Raises
    ------
    UsageError
        Negative times, or a period of zero.
    """

    def __init__(
        self, low: float, high: float, delay: float = 0.0, rise: float = 0.0, fall: float = 0.0,
        width: float = math.inf, period: float = math.inf,
    ) -> None:  # fmt: skip
        if min(rise, fall, width) < 0.0 or not period > 0.0:
            raise UsageError("a pulse needs times that are not negative and a positive period")
        self.low, self.high, self.delay, self.rise, self.fall = low, high, delay, rise, fall
        self.width, self.period = width, period

    def piece(self, time: float) -> Piece:
        """The edge or level at ``time``."""
        if time < self.delay:
            return constant(self.low, self.delay)
        count = 0.0
        if not math.isinf(self.period):
            count = math.floor((time - self.delay) / self.period)
            count += time >= self.delay + (count + 1.0) * self.period
        start = self.delay + (count * self.period if count else 0.0)
        top, end = start + self.rise, self.delay + (count + 1.0) * self.period
        down = top + self.width
        bottom = down + self.fall
        levels = (self.low, self.high)
        if time < top:
            slope = (self.high - self.low) / self.rise
            return ramp(self.low + slope * (time - start), slope, levels, min(top, end))
        if time < down:
            return constant(self.high, min(down, end))
        if time < bottom:
            slope = (self.low - self.high) / self.fall
            return ramp(self.high + slope * (time - down), slope, levels, min(bottom, end))
        return constant(self.low, end)


class Sine(_Waveform):
    """SPICE's SIN(offset amplitude frequency delay damping phase).

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
    """

    def __init__(
        self, offset: float, amplitude: float, frequency: float, delay: float = 0.0, damping: float = 0.0,
        phase: float = 0.0,
    ) -> None:  # fmt: skip
        self.offset, self.amplitude, self.frequency = offset, amplitude, frequency
        self.delay, self.damping, self.phase = delay, damping, math.radians(phase)

    def piece(self, time: float) -> Piece:
        """The damped sine at ``time``."""
        if time < self.delay:
            return constant(self.offset + self.amplitude * math.sin(self.phase), self.delay)
        since, omega = time - self.delay, 2.0 * math.pi * self.frequency
        size = self.amplitude * math.exp(-self.damping * since)
        angle = omega * since + self.phase
        a = self.damping
        system = np.array([[0.0, 0.0, 0.0], [0.0, -a, omega], [0.0, -omega, -a]])
        state = np.array([self.offset, size * math.sin(angle), size * math.cos(angle)])
        scale = np.array([abs(self.offset), abs(size), abs(size)])
        return Piece(math.inf, system, state, np.array([1.0, 1.0, 0.0]), scale)


class Exponential(_Waveform):
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
        self.rise_delay, self.rise_constant = rise_delay, rise_constant
        self.fall_delay, self.fall_constant = fall_delay, fall_constant

    def piece(self, time: float) -> Piece:
        """The sum of exponentials at ``time``."""
        if time < self.rise_delay:
            return constant(self.low, self.rise_delay)
        step = self.high - self.low
        rates = [1.0 / self.rise_constant]
        level, parts, end = self.high, [-step * math.exp(-(time - self.rise_delay) * rates[0])], self.fall_delay
        if time >= self.fall_delay:
            rates.append(1.0 / self.fall_constant)
            level, end = self.low, math.inf
            parts.append(step * math.exp(-(time - self.fall_delay) * rates[1]))
        system = np.diag([0.0, *(-rate for rate in rates)])
        state = np.array([level, *parts])
        return Piece(end, system, state, np.ones(1 + len(parts)), np.full(state.size, np.abs(state).max()))


class AmplitudeModulation(_Waveform):
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
        self.amplitude, self.offset = amplitude, offset
        self.signal, self.carrier, self.delay = signal, carrier, delay

    def piece(self, time: float) -> Piece:
        """Three sines: the carrier and its two side bands."""
        if time < self.delay:
            return constant(0.0, self.delay)
        half = 0.5 * self.amplitude
        lines = (
            (self.carrier, self.amplitude * self.offset, 0.0),
            (self.carrier - self.signal, half, 0.5 * math.pi),
            (self.carrier + self.signal, -half, 0.5 * math.pi),
        )
        system, state, scale = np.zeros((6, 6)), np.zeros(6), np.zeros(6)
        for k, (frequency, size, phase) in enumerate(lines):
            omega = 2.0 * math.pi * frequency
            angle = omega * (time - self.delay) + phase
            system[2 * k, 2 * k + 1], system[2 * k + 1, 2 * k] = omega, -omega
            state[2 * k : 2 * k + 2] = size * math.sin(angle), size * math.cos(angle)
            scale[2 * k : 2 * k + 2] = abs(size)
        return Piece(math.inf, system, state, np.array([1.0, 0.0] * 3), scale)
