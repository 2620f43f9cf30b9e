"""State of the loop through time: the present time, results, memory for a window."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.time_domain.part_states import Carried

NOW, BEFORE, ENTER, CORNER, SEGMENTS, EVENTS, STILL, WANTED, TRIES = range(9)
"""Of `Walk.mark`: the mode (−1: the states do not follow from those of one), that before the event at hand; whether a
mode is to be selected; the next corner; numbers of segments and events; events without a step in time; the window that
is missing; windows that were tried."""


class Walk(NamedTuple):
    """Where a run is.

    Attributes
    ----------
    number, mark : arrays
        See `circuitsim.time_domain.windows.TIME` and `NOW`.
    w, w_size : (s,) float arrays
        States of the sources and their sizes.
    x : (q,) float array
        Capacitor voltages and inductor currents.
    z, size : (s + q,) float arrays
        State of the mode, and what its errors are a share of (`circuitsim.time_domain.part_states.STATE`); the states
        of a mode before, of `mark`, until the next one is selected.
    conducting, tied : (d,) bool arrays
        The set to begin a selection with, and what has just changed.
    found : (d,) bool array
        The set that a selection ended with.
    order : (d,) int array
    sign : (d,) float array
        Germs.
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


class Track(NamedTuple):
    """What a run leaves behind: segments (start, mode, state, cause of the end, halvings of the longest window,
    decaying parts), events (time, error, energy lost, mode before, after).

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
    """What does not change during a run.

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
        Source values over the sources' states, and absolute values of these.
    is_voltage : (sources,) bool array
    lossy, sources : int arrays
        Elements.
    system : (s, s) float array
        Generator of the sources' states.
    radius : float
        Its largest absolute eigenvalue, 1/s.
    storage : (q,) float array
        `circuitsim.time_domain.problem.Problem.storage`.
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


class Space(NamedTuple):
    """Memory for a window.

    Attributes
    ----------
    states : (POINTS, N) float array
        At the nodes.
    table : (POINTS, POINTS) float array
        `circuitsim.time_domain.windows.polynomials`.
    slack, slack_size : (d, POINTS), (d,) float arrays
        Series of the waveforms of events, and their magnitudes.
    orders : (d,) int array
        Leading Taylor terms that are zero; −1: no zero on the window.
    x_size : (q,) float array
    z_size : (N,) float array
    begin : (2, m) float array
        Branch voltages and currents at the beginning.
    later : (c,) float array
        Decaying parts at the end.
    """

    states: np.ndarray
    table: np.ndarray
    slack: np.ndarray
    slack_size: np.ndarray
    orders: np.ndarray
    x_size: np.ndarray
    z_size: np.ndarray
    begin: np.ndarray
    later: np.ndarray
