"""The derivative of a run's final states by its initial ones: a product of matrix exponentials, events and jumps.

The time of an event depends on the state before it: δt = −g·δz / g·ż where g·z is the switching function, which adds
(ẋ⁻ − ẋ⁺) δt to the change of the states after it (the saltation matrix of Aizerman and Gantmakher 1958).
"""

from __future__ import annotations

import numpy as np

from circuitsim.time_domain.exponentials import PRODUCTS
from circuitsim.time_domain.jumps import JumpMap, Jumps
from circuitsim.time_domain.kernels import time_kernel
from circuitsim.time_domain.library import Modes
from circuitsim.time_domain.result import Segments

GRAZING = 1e-12
"""Slopes of a switching function at its zero below this fraction of its terms are zero: there is no derivative."""


def embedding(modes: Modes, m: int, s: int) -> np.ndarray:
    """From capacitor voltages and inductor currents (q,) to the state of a mode: (N, q)."""
    n, q = modes.storing.shape[1:]
    found = np.zeros((n, q))
    many = int(modes.size[m])
    if modes.onto.size:
        found[s : s + many] = modes.onto[m, :many]
    else:
        found[s + np.arange(many), modes.place[m, :many]] = 1.0
    return found


def propagator(modes: Modes, m: int, time: float) -> np.ndarray:
    """e^{A t} of a mode: (N, N)."""
    system = modes.system[m]
    found = np.zeros((len(system), 1, len(system)))
    time_kernel("node_exponentials", PRODUCTS * len(system) ** 3)(system, modes.radius[m], np.array([time]), found)
    return found[:, 0].T


def event_row(modes: Modes, m: int, event: int, state: np.ndarray) -> np.ndarray | None:
    """−∂t/∂z (N,) of an event that ends a segment of mode ``m`` in ``state``; None where the waveform only touches
    zero."""
    g, rate = modes.switching[m, :, event], modes.system[m] @ state
    slope = float(g @ rate)
    if abs(slope) <= GRAZING * float(np.abs(g) @ np.abs(rate)):
        return None
    return g / slope


def monodromy(segments: Segments, stop: float, jumps: Jumps) -> np.ndarray:
    """∂x(stop)/∂x(0) (q, q) of capacitor voltages and inductor currents.

    Parameters
    ----------
    segments : Segments
    stop : float
        s.
    jumps : Jumps
    """
    modes = segments.modes
    n, q = modes.storing.shape[1:]
    ends = np.append(segments.start[1:], stop)
    found = jumps.at(0).by_states
    for k, m in enumerate(segments.mode.tolist()):
        power = propagator(modes, m, float(ends[k] - segments.start[k]))
        inner = power @ (embedding(modes, m, n - q) @ found)
        jump = jumps.at(k + 1)
        found = jump.by_states @ (modes.storing[m].T @ inner)
        event = int(segments.cause[k])
        if event >= 0 and k + 1 < segments.mode.size:
            state = power @ segments.state[k]
            row = event_row(modes, m, event, state)
            if row is not None:
                found = found - np.outer(slip(segments, k, state, jump), row @ inner)
    return found


def slip(segments: Segments, k: int, state: np.ndarray, jump: JumpMap) -> np.ndarray:
    """Change of the states after the event that ends segment ``k`` per second of its delay (q,).

    Parameters
    ----------
    segments : Segments
    k : int
    state : (N,) float array
        At the end of the segment.
    jump : JumpMap
        At the event.
    """
    modes, m, after = segments.modes, int(segments.mode[k]), int(segments.mode[k + 1])
    rate = modes.system[m] @ state
    then = modes.storing[after].T @ (modes.system[after] @ segments.state[k + 1])
    s = jump.by_sources.shape[1]
    return np.asarray(jump.by_states @ (modes.storing[m].T @ rate) + jump.by_sources @ rate[:s] - then)
