"""The conducting diodes just after a time: the first nonzero derivative of each diode's current or voltage decides.

A set of conducting diodes is right from a time on if every conducting diode's current, and every blocking diode's
reverse voltage, has a positive first nonzero term among: infinite value, value, first derivative, second … Violated
diodes change at once, those with the lowest order of derivative only; after a repeated set, the one of least index.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from circuitsim.errors import ConvergenceError
from circuitsim.transient.modes import Mode

NOISE = 1e-10
"""Share of the magnitudes in a sum that counts as zero."""
STATE = 1e-14
"""Error of a state against its scale."""
DERIVATIVE = 100.0
"""A derivative counts as zero up to so many times what the states' errors can make of it."""
ORDERS = 8
"""Highest derivative that decides; diodes of which none is nonzero stay at zero."""
TRIES = 200
"""Most sets to try at one time."""


class State(NamedTuple):
    """A state of the circuit.

    Attributes
    ----------
    x : (m,) float array
        Capacitor voltages, V, and inductor currents, A; 0 elsewhere.
    w : (s,) float array
        States of all sources.
    x_scale, w_scale : float arrays
        Sizes of both so far, by class of element: rounding is judged by them, not by momentary values.
    """

    x: np.ndarray
    w: np.ndarray
    x_scale: np.ndarray
    w_scale: np.ndarray

    def z(self, mode: Mode) -> np.ndarray:
        """The state of the mode's linear system."""
        return np.concatenate([self.x[mode.states], self.w])

    def scale(self, mode: Mode) -> np.ndarray:
        """The sizes of `z`."""
        return np.concatenate([self.x_scale[mode.states], self.w_scale])


class Germs(NamedTuple):
    """The first nonzero terms of all diodes at a time.

    Attributes
    ----------
    order : (d,) int array
        −1: infinite, now or right after, 0: value, 1: first derivative …; `ORDERS` + 1: all zero.
    sign : (d,) float array
        +1: as the state asks, −1: violated, 0: all zero.
    """

    order: np.ndarray
    sign: np.ndarray


def slack_rows(mode: Mode, diodes: np.ndarray) -> np.ndarray:
    """Rows over z that must not be negative (d, k + s): currents of conducting diodes, minus voltages of the others."""
    return np.where(mode.conducting[:, None], mode.current[diodes], -mode.voltage[diodes])


def mismatch(mode: Mode, elements: np.ndarray, at: State) -> tuple[np.ndarray, np.ndarray]:
    """Infinite currents of conducting diodes and minus the infinite voltages of the others, and their magnitudes."""
    rows = np.where(mode.conducting[:, None], mode.loops[elements], -mode.cuts[elements])
    return rows @ np.concatenate([at.x, at.w]), np.abs(rows) @ np.concatenate([at.x_scale, at.w_scale])


def contradicted(mode: Mode, at: State) -> bool:
    """Whether capacitor voltages or inductor currents cannot stay as they are in this mode."""
    both, size = np.concatenate([at.x, at.w]), np.concatenate([at.x_scale, at.w_scale])
    return any(bool((np.abs(rows @ both) > NOISE * (np.abs(rows) @ size)).any()) for rows in (mode.loops, mode.cuts))


def germs(mode: Mode, diodes: np.ndarray, at: State, tied: np.ndarray) -> Germs:
    """The first nonzero terms at a state; diodes ``tied`` (d,) have the value zero."""
    d, z = diodes.size, at.z(mode)
    order, sign = np.full(d, ORDERS + 1), np.zeros(d)
    found, size = mismatch(mode, diodes, at)
    clear = np.abs(found) > NOISE * size
    order[clear], sign[clear] = -1, np.sign(found[clear])
    _leave_zero(mode, diodes, at, order, sign)
    rows, state = slack_rows(mode, diodes), z
    norm, error = np.abs(mode.system), STATE * at.scale(mode)
    for k in range(ORDERS + 1):
        open_ = sign == 0.0
        if not open_.any():
            break
        found, size = rows @ state, np.abs(rows) @ error
        clear = open_ & (np.abs(found) > (NOISE / STATE if k == 0 else DERIVATIVE) * size)
        if k == 0:
            clear &= ~tied
        order[clear], sign[clear] = k, np.sign(found[clear])
        error = norm @ (error + STATE * np.abs(state))
        state = mode.system @ state
    return Germs(order, sign)


def _leave_zero(mode: Mode, diodes: np.ndarray, at: State, order: np.ndarray, sign: np.ndarray) -> None:
    """Fill in the diodes in loops and cuts of sources that add up now and no longer right after."""
    rows = np.where(mode.conducting[:, None], mode.source_loops[diodes], -mode.source_cuts[diodes])
    if not rows.any():
        return
    k = mode.states.size
    system = mode.system[k:, k:]
    state, error, norm = at.w, STATE * at.w_scale, np.abs(system)
    for _ in range(ORDERS):
        error = norm @ (error + STATE * np.abs(state))
        state = system @ state
        found, size = rows @ state, np.abs(rows) @ error
        clear = (sign == 0.0) & (np.abs(found) > DERIVATIVE * size)
        order[clear], sign[clear] = -1, np.sign(found[clear])


def select(
    conducting: np.ndarray, of: Callable[[np.ndarray], Mode], diodes: np.ndarray, at: State, tied: np.ndarray,
    time: float,
) -> tuple[Mode, Germs]:  # fmt: skip
    """The mode that holds just after ``time`` s and its germs, from the set ``conducting`` (d,).

    Diodes ``tied`` (d,) have just changed: in their former state their current or voltage is zero.

    Raises
    ------
    ConvergenceError
        No set among `TRIES` is right.
    """
    seen: set[bytes] = set()
    single, first = False, conducting
    for _ in range(TRIES):
        mode = of(conducting)
        found = germs(mode, diodes, at, tied & (conducting != first))
        wrong = found.sign < 0.0
        if not wrong.any():
            return mode, found
        key = conducting.tobytes()
        single = single or key in seen
        seen.add(key)
        change = wrong & (found.order == found.order[wrong].min())
        if single:
            change = np.arange(wrong.size) == np.flatnonzero(wrong)[0]
        conducting = conducting ^ change
    raise ConvergenceError(f"no set of conducting diodes was found to hold after {time:g} s")
