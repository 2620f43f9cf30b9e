"""Periods of source waveforms, and waveforms from a later time on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from circuitsim.errors import UsageError
from circuitsim.time_domain.waveforms import (
    AmplitudeModulation,
    Constant,
    PiecewiseLinear,
    Pulse,
    Sine,
    Waveform,
)

MOST = 1000
"""Most periods of the slowest source in a common one."""
EXACT = 1e-9
"""Deviation from a whole number of periods that is rounding."""


class Recurrence(NamedTuple):
    """A waveform's period (0: constant; inf: none), and the time since which it recurs, s."""

    period: float
    since: float


def recurrence(wave: Waveform) -> Recurrence:
    """The recurrence of a waveform."""
    if isinstance(wave, Constant):
        return Recurrence(0.0, 0.0)
    if isinstance(wave, Sine):
        if math.isfinite(wave.end):
            return Recurrence(0.0, wave.end)
        if wave.damping != 0.0 and wave.amplitude != 0.0:
            return Recurrence(math.inf, 0.0)
        return Recurrence(1.0 / abs(wave.frequency) if wave.frequency and wave.amplitude else 0.0, wave.delay)
    if isinstance(wave, Pulse) and math.isinf(wave.count):
        return Recurrence(wave.period, wave.delay)
    if isinstance(wave, PiecewiseLinear):
        if wave.repeat_from is None:
            return Recurrence(0.0, float(wave.times[-1]))
        return Recurrence(float(wave.times[-1]) - wave.repeat_from, wave.repeat_from)
    if isinstance(wave, AmplitudeModulation):
        periods = [1.0 / abs(frequency) for frequency, size, _ in wave.lines if frequency and size]
        return Recurrence(common(periods) if periods else 0.0, wave.delay)
    return Recurrence(math.inf, 0.0)


def common(periods: Sequence[float]) -> float:
    """The least common multiple of periods, s.

    Raises
    ------
    UsageError
        None up to `MOST` times the longest of them.
    """
    longest = max(periods)
    for count in range(1, MOST + 1):
        shares = [count * longest / period for period in periods]
        if all(abs(share - round(share)) <= EXACT * share for share in shares):
            return count * longest
    raise UsageError(f"the sources have no common period up to {MOST} times {longest:g} s; state one (--period)")


class Later:
    """A waveform from a later time on.

    Parameters
    ----------
    wave : Waveform
    since : float
        What is time 0, s.
    """

    def __init__(self, wave: Waveform, since: float) -> None:
        self.wave, self.since, self.system, self.row = wave, since, wave.system, wave.row

    def corners(self, after: float, until: float, most: int) -> np.ndarray:
        """The waveform's own corners, less the time before; its states there are those after them."""
        own = self.wave.corners(after + self.since, until + self.since, most)
        found = own - self.since
        found = np.where(found + self.since < own, np.nextafter(found, np.inf), found)
        return found[(found > after) & (found < until)]

    def cycles(self, until: float) -> float:
        """The waveform's own periods."""
        return self.wave.cycles(until + self.since)

    def states(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The waveform's own states."""
        return self.wave.states(times + self.since)


def periodic(waves: dict[str, Waveform], period: float | None) -> tuple[float, dict[str, Waveform]]:
    """The common period, s, and the waveforms from a time on at which all of them recur.

    Raises
    ------
    UsageError
        A waveform that never recurs, or not with the period that is stated; no period at all.
    """
    found = {name: recurrence(wave) for name, wave in waves.items()}
    for name, own in found.items():
        if math.isinf(own.period):
            raise UsageError(f"the waveform of {name} is not periodic: there is no periodic steady state")
    moving = [own.period for own in found.values() if own.period > 0.0]
    if not moving and period is None:
        raise UsageError("no source is periodic; circuitsim solve finds the operating point")
    length = common(moving) if period is None else period
    for name, own in found.items():
        share = length / own.period if own.period else 0.0
        if abs(share - round(share)) > EXACT * max(share, 1.0) or (own.period and share < 0.5):
            raise UsageError(f"{length:g} s are not a whole number of the periods of {name}, {own.period:g} s")
    since = max((own.since for own in found.values()), default=0.0)
    since = length * math.ceil(since / length - EXACT) if since > 0.0 else 0.0
    return length, {name: Later(wave, since) if since else wave for name, wave in waves.items()}
