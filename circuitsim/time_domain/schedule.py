"""The corners of all sources in one order, and their states there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from circuitsim.time_domain.waveforms import Waveform


class Schedule(NamedTuple):
    """What all sources' states become at their corners, up to a time.

    Attributes
    ----------
    until : float
        Later corners are not in it, s.
    times : (n,) float array
        Ascending, s.
    place, width : (n,) int arrays
        Where the states begin among those of all sources, and how many there are.
    states, sizes : (n, k) float arrays
        See `Waveform.states`; unused entries are 0.
    """

    until: float
    times: np.ndarray
    place: np.ndarray
    width: np.ndarray
    states: np.ndarray
    sizes: np.ndarray


def schedule(waveforms: Sequence[Waveform], after: float, until: float, most: int = 4096) -> Schedule:
    """The corners of all sources within (``after``, ``until``), about ``most`` of each at a time."""
    begin = np.cumsum([0, *(waveform.row.size for waveform in waveforms)])
    found = [waveform.corners(after, until, most) for waveform in waveforms]
    until = min([until, *(float(times[-1]) for times in found if times.size >= most)])
    widest = max([1, *(waveform.row.size for waveform in waveforms)])
    parts = []
    for k, (waveform, times) in enumerate(zip(waveforms, found)):
        if not times.size:
            continue
        times = times[times <= until]
        states, sizes = np.zeros((2, times.size, widest))
        states[:, : waveform.row.size], sizes[:, : waveform.row.size] = waveform.states(times)
        parts.append((times, np.full(times.size, begin[k]), np.full(times.size, waveform.row.size), states, sizes))
    empty = (np.zeros(0), np.zeros(0, np.int64), np.zeros(0, np.int64), *np.zeros((2, 0, widest)))
    columns = [np.concatenate(column) for column in zip(empty, *parts)]
    order = np.argsort(columns[0], kind="stable")
    return Schedule(until, *(column[order] for column in columns))
