"""Sources given by a formula of the time and of the voltages and currents that other sources fix."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from circuitsim.errors import UsageError
from circuitsim.netlist.functional import FollowingSources
from circuitsim.netlist.waveform import Grid
from circuitsim.time_domain.sampled import Sampled
from circuitsim.time_domain.waveforms import Waveform

LOOKS = 2
"""Times for each output time at which the decisions of a formula are looked at."""
RESOLUTION = 1e-16
"""Error of a corner, of the whole run."""


class FormulaOfTime(Sampled):
    """A source whose value is a formula: the output of no linear system, so not for exact waveforms.

    Its corners are those of the waveforms that it may read, and the times at which its conditions, ``abs``, ``min``,
    ``max`` and the like change, by bisection. Two changes between two looks (`LOOKS` for
    each output time, and at corners) are missed.

    Parameters
    ----------
    name : str
        Of the source.
    sources : FollowingSources
    place : int
        Its position.
    grid : Grid
        Output times.
    others : sequence of Waveform
        Those of other sources.

    Raises
    ------
    NetlistError
        The formula has no value at time 0, or reads what no source fixes.
    """

    what = "a formula of the time"

    def __init__(
        self, name: str, sources: FollowingSources, place: int, grid: Grid, others: Sequence[Waveform]
    ) -> None:
        super().__init__()
        self._name, self._sources, self._place, self._grid, self._others = name, sources, place, grid, others
        self._look = (grid.step or grid.stop / 1000.0) / LOOKS
        self._at(0.0)

    def _at(self, time: float) -> tuple[float, tuple[Any, ...]]:
        return self._sources.formula_at(self._place, time, self._grid)

    def states(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The value."""
        found = np.array([self._at(time)[0] for time in times.tolist()])[:, None]
        return found, np.abs(found)

    def corners(self, after: float, until: float, most: int) -> np.ndarray:
        """Corners; see `Waveform.corners`."""
        found: list[float] = []
        begin, until = after, min(until, self._grid.stop)
        before = self._at(begin)[1]
        while begin < until and len(found) < most:
            others = [wave.corners(begin, until, 1) for wave in self._others]
            nearest = min([until, *(float(own[0]) for own in others if own.size)])
            count = max(math.ceil((nearest - begin) / self._look), 1)
            for k in range(1, count + 1):
                end = nearest if k == count else begin + (nearest - begin) * k / count
                left = begin if k == 1 else begin + (nearest - begin) * (k - 1) / count
                before = self._changes(left, end, before, found)
            if nearest < until:
                found.append(nearest)
            begin = nearest
        return np.unique(np.array([time for time in found if after < time < until]))[:most]

    def _changes(self, begin: float, end: float, before: tuple[Any, ...], found: list[float]) -> tuple[Any, ...]:
        """Add the times after ``begin``, up to ``end``, at which decisions change; returns those at the end."""
        after = self._at(end)[1]
        while before != after:
            low, high = begin, end
            while low < (middle := 0.5 * (low + high)) < high and high - low > RESOLUTION * self._grid.stop:
                low, high = (middle, high) if self._at(middle)[1] == before else (low, middle)
            found.append(high)
            begin, before = high, self._at(high)[1]
        return after

    def slope(self, time: float) -> float:
        """Not known.

        Raises
        ------
        UsageError
        """
        raise UsageError(f"{self._name} is {self.what}: gradients of such a run are not done")


__all__ = ["FormulaOfTime"]
