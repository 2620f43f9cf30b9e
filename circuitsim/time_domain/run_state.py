"""State of an exact run: the present time, results."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.time_domain.part_states import Carried

NOW, BEFORE, ENTER, CORNER, SEGMENTS, EVENTS, STILL, WANTED, TRIES = range(9)
"""Entries of `Run.mark`: the mode (−1: the states do not follow from those of one), that before the current event;
whether a mode must be selected; the next corner; numbers of segments and events; consecutive events without a step in
time; the missing window; windows tried."""


class Run(NamedTuple):
    """The current state of a run.

    Attributes
    ----------
    number, mark : arrays
        See `circuitsim.time_domain.windows.TIME` and `NOW`.
    w, w_size : (s,) float arrays
        States of the sources and their sizes.
    x : (q,) float array
        Capacitor voltages and inductor currents.
    z, size : (s + q,) float arrays
        State of the mode, and the scale of its errors (`circuitsim.time_domain.part_states.STATE`); those of the
        previous mode (`mark`) until the next one is selected.
    conducting, tied : (d,) bool arrays
        The first set of a selection, and what has just changed.
    found : (d,) bool array
        The set found by a selection.
    order : (d,) int array
    sign : (d,) float array
        Orders and signs of the leading terms.
    parts : Carried
        Decaying parts.
    """

    number: np.ndarray
    mark: np.ndarray
    w: np.ndarray
    w_size: np.ndarray
    x: np.ndarray
    z: np.ndarray
    size: np.ndarray
    conducting: np.ndarray
    tied: np.ndarray
    found: np.ndarray
    order: np.ndarray
    sign: np.ndarray
    parts: Carried


class Record(NamedTuple):
    """Results of a run: segments (start, mode, state, cause of the end, halvings of the longest window, decaying
    parts), events (time, error, energy lost, mode before, after).

    Attributes
    ----------
    start : (n,) float array
    mode : (n,) int array
    state : (n, N) float array
    cause, halvings : (n,) int arrays
    parts : (n, c) float array
    time, error, lost : (e,) float arrays
    before, after : (e,) int arrays
    """

    start: np.ndarray
    mode: np.ndarray
    state: np.ndarray
    cause: np.ndarray
    halvings: np.ndarray
    parts: np.ndarray
    time: np.ndarray
    error: np.ndarray
    lost: np.ndarray
    before: np.ndarray
    after: np.ndarray


class Fixed(NamedTuple):
    """Constant data of a run.

    Attributes
    ----------
    diodes : (d₀,) int array
        Elements.
    capacitor : (q,) bool array
        Whether a storing element is a capacitor.
    storing : (q,) int array
        Elements.
    given : (sources,) int array
        All sources; `sources` are those that are not parts of devices.
    rows, weights : (sources, s) float arrays
        Source values as sums over the sources' states, and absolute values of the coefficients.
    is_voltage : (sources,) bool array
    lossy, sources : int arrays
        Elements.
    system : (s, s) float array
        Generator of the sources' states.
    radius : float
        Its largest absolute eigenvalue, 1/s.
    storage : (q,) float array
        Capacitances and inductances, plus absolute mutual inductances: twice the energy is at most the sum of these
        times the squares of voltages and currents.
    """

    diodes: np.ndarray
    capacitor: np.ndarray
    storing: np.ndarray
    given: np.ndarray
    rows: np.ndarray
    weights: np.ndarray
    is_voltage: np.ndarray
    lossy: np.ndarray
    sources: np.ndarray
    system: np.ndarray
    radius: float
    storage: np.ndarray
