"""Values of all sources at one time after the other, as the steps of a run ask for them."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from functools import partial

import numpy as np

from circuitsim.time_domain.waveforms import LINE, Sine, Waveform, value

BATCH = 1024
"""Corners that are asked for at a time."""


class Line:
    """A waveform of straight lines (PULSE, PWL): the line of the last time that was asked for is kept until its end.

    Parameters
    ----------
    wave : Waveform
        Whose system is `LINE`.
    """

    def __init__(self, wave: Waveform) -> None:
        self.wave = wave
        self._ends: list[float] = []
        self._begin, self._end = math.inf, -math.inf
        self._level = self._slope = 0.0

    def __call__(self, time: float) -> float:
        return self.at(time)[0]

    def at(self, time: float) -> tuple[float, float]:
        """Value and slope, V or A and V/s or A/s."""
        if not self._begin <= time < self._end:
            self._take(time)
        return self._level + self._slope * (time - self._begin), self._slope

    def _take(self, time: float) -> None:
        """The line at a time, from the corner before it or, where that is not known, from the time itself."""
        k = bisect_right(self._ends, time)
        if k in (0, len(self._ends)):
            corners = self.wave.corners(time, math.inf, BATCH).tolist()
            self._ends, k = [time, *corners], 1
            if len(corners) < BATCH:
                self._ends.append(math.inf)
        self._begin, self._end = self._ends[k - 1], self._ends[k]
        self._level, self._slope = self.wave.states(np.array([self._begin]))[0][0].tolist()


class Sines:
    """Damped sines (SIN) side by side.

    Parameters
    ----------
    waves : sequence of Sine
    """

    def __init__(self, waves: Sequence[Sine]) -> None:
        columns = zip(*((w.offset, w.amplitude, w.frequency, w.delay, w.damping, w.phase, w.end) for w in waves))
        self._parts = [np.array(column) for column in columns]

    def __call__(self, time: float) -> np.ndarray:
        """(n,) values at ``time`` (s)."""
        offset, amplitude, frequency, delay, damping, phase, end = self._parts
        since = np.where(time < end, np.maximum(time - delay, 0.0), 0.0)
        size, angle = amplitude * np.exp(-damping * since), 2.0 * math.pi * frequency * since + phase
        return np.asarray(offset + size * np.sin(angle))


class SourceValues:
    """Values of sources, V or A, at a step those after it.

    Parameters
    ----------
    waves : sequence of Waveform
    """

    def __init__(self, waves: Sequence[Waveform]) -> None:
        sines = [wave for wave in waves if isinstance(wave, Sine)]
        self._size, self._sines = len(waves), Sines(sines) if sines else None
        self._together = np.array([isinstance(wave, Sine) for wave in waves], dtype=bool)
        self._alone = ~self._together
        self._of = [
            Line(wave) if wave.system is LINE else partial(value, wave) for wave in waves if not isinstance(wave, Sine)
        ]

    def __call__(self, time: float) -> np.ndarray:
        """(n,) values at ``time`` (s)."""
        found = np.empty(self._size)
        found[self._alone] = [one(time) for one in self._of]
        if self._sines is not None:
            found[self._together] = self._sines(time)
        return found


__all__ = ["Line", "Sines", "SourceValues"]
