"""Shooting for periodic states: Newton's method with the exact derivative of the states after a period.

x(T; x₀) = x₀ is solved with the monodromy matrix. With ideal diodes and without switches the period map is nonexpansive
in energy, so the mismatch is a monotone function of the states. A step that increases it is shortened to the zero of
their inner product, and after several shortened steps replaced by a plain period.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from circuitsim.errors import ConvergenceError

MOST = 100
"""Maximum number of periods."""
BENDS = 12
"""Maximum number of corrections of Newton's step for the curvature of the mismatch."""
SEARCHES = 3
"""Maximum number of consecutive shortened steps."""
SHORTEST, LONGEST, QUARTER = 0.05, 0.9, 0.25
"""Bounds on the fraction of a shortened step, and its value where the mismatch gives none."""
ONCE = 1e-9
"""Multipliers this close to 1 belong to conserved charges or fluxes, which keep their initial values."""


class Shooting(NamedTuple):
    """How a periodic state was found.

    Attributes
    ----------
    period : float
        s.
    periods : int
        Number of periods computed.
    mismatch : float
        Largest difference between the states at both ends over the largest voltage or current of the period.
    distance : float
        Estimate of the distance from the exact periodic state over the same scale.
    multipliers : (q,) complex array
        Floquet multipliers: the factors of deviations of the states over a period; those below 1 in magnitude decay.
    """

    period: float
    periods: int
    mismatch: float
    distance: float
    multipliers: np.ndarray


class Period(NamedTuple):
    """A run over one period.

    Attributes
    ----------
    run : object
    x : (q,) float array
        Capacitor voltages and inductor currents at its beginning, V, A.
    gap : (q,) float array
        Their change over the period.
    derivative : (q, q) float array
        Of the final states by the initial ones.
    size : (q,) float array
        Largest voltage or current of the period.
    within : float
        Tolerance of the relative distance from the periodic state; 0 where the run is not accurate enough.
    same : bool
        Whether diodes and switches have the same states at both ends.
    """

    run: Any
    x: np.ndarray
    gap: np.ndarray
    derivative: np.ndarray
    size: np.ndarray
    within: float
    same: bool


def shoot(
    go: Callable[[np.ndarray], Period],
    x: np.ndarray,
    energy: np.ndarray,
    length: float,
    progress: Callable[[float, float], bool | None] | None,
) -> tuple[Period, Shooting]:
    """Find the period with equal states at both ends.

    Parameters
    ----------
    go : callable
        From states (q,) to the period that starts there.
    x : (q,) float array
        The initial guess.
    energy : (q,) float array
        Square roots of the capacitances and inductances.
    length : float
        s.
    progress : callable, optional
        Called with the number of periods computed and its maximum.

    Raises
    ------
    ConvergenceError
        There is none within `MOST` periods.
    """
    least, shot, searches, back = np.inf, False, 0, x
    before = now = go(x)
    for count in range(1, MOST + 1):
        step = newton_step(now.derivative, now.gap, energy)
        if shot:
            step = _bent(before, now, energy, step)
        mismatch, distance = (float((np.abs(v) / now.size).max(initial=0.0)) for v in (now.gap, step))
        if max(mismatch, distance) <= now.within and now.same:
            return now, Shooting(length, count, mismatch, distance, np.linalg.eigvals(now.derivative))
        if progress is not None:
            progress(count, MOST)
        norm = float(np.linalg.norm(energy * now.gap))
        if not shot or norm <= least:
            least, back, before, searches = norm, now.x + now.gap, now, 0
            x, shot = now.x + step, True
        elif searches < SEARCHES:
            x, searches = before.x + _share(before, now, energy) * (now.x - before.x), searches + 1
        else:
            x, shot = back, False
        now = go(x)
    raise ConvergenceError(
        f"no periodic state within {MOST} periods: the states after the last differ by {mismatch:.2g} of their size; "
        "it may not exist (charge or flux that grows), or have another period (--period)"
    )


def newton_step(derivative: np.ndarray, gap: np.ndarray, energy: np.ndarray) -> np.ndarray:
    """Newton's step: (1 − M) step = gap, of minimum energy where 1 − M is singular."""
    if not gap.size:
        return gap
    matrix = (np.eye(gap.size) - derivative) * energy[:, None] / energy
    return np.linalg.lstsq(matrix, energy * gap, rcond=ONCE)[0] / energy


def _bent(before: Period, now: Period, energy: np.ndarray, step: np.ndarray) -> np.ndarray:
    """Newton's step corrected for curvature: second and third derivatives along the last step follow from the
    mismatches and their derivatives at its ends (Hermite); uncorrected where it is longer than the last step or
    reverses it.
    """
    last = now.x - before.x
    whole = float((energy * last) @ (energy * last))
    slope = (now.derivative - before.derivative) @ last
    rise = now.gap - before.gap - (before.derivative @ last - last)
    third = 12.0 * (0.5 * slope - rise)
    second = slope + 0.5 * third
    found = step
    for _ in range(BENDS):
        share = float((energy * last) @ (energy * found)) / whole if whole > 0.0 else -1.0
        if not 0.0 < share <= 1.0:
            return step
        bend = 0.5 * share**2 * second + share**3 / 6.0 * third
        found = newton_step(now.derivative, now.gap + bend, energy)
    return found


def _share(before: Period, now: Period, energy: np.ndarray) -> float:
    """Fraction of a step at which the product of mismatch and step is zero: a root of Hermite's cubic."""
    step = now.x - before.x
    weight = energy**2 * step
    begin, end = (float(weight @ one.gap) for one in (before, now))
    rise, fall = (float(weight @ (one.derivative @ step - step)) for one in (before, now))
    second, third = 3.0 * (end - begin) - 2.0 * rise - fall, 2.0 * (begin - end) + rise + fall
    cubic = np.polynomial.Polynomial([begin, rise, second, third])
    roots = cubic.roots()
    real = roots.real[(roots.imag == 0.0) & (roots.real > 0.0) & (roots.real < 1.0)]
    return min(max(float(real.min()), SHORTEST), LONGEST) if real.size else QUARTER
