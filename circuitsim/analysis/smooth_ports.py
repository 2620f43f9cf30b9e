"""Operating points of small circuits with smooth devices and controlled sources, searched for at their ports.

Seen from its devices and diodes the rest of the circuit is linear: v = v₀ + P z, ρ i = i₀ + Q z with z = v − ρ i
(`circuitsim.controlled.ports`). With the wave w = v + ρ i each curve is a function v(w) of a slope between 0 and 1:

    w = b + S (2 v(w) − w),   b = v₀ + i₀,   S = P + Q,

an equation for as many unknowns as there are ports, solved by Newton's method from many starts. What it finds has the
digits of one elimination: a start for the certified iteration, no operating point.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from circuitsim.analysis.newton import Smooth, Start, State, project

STEPS = 40
"""Most steps from one start."""

HALVINGS = 12
"""Most halvings of a step."""

MOST = 60
"""Most ports of a circuit that is searched in this way."""

CLOSE = 1e-9
"""Share of the terms of an equation that its residual may have at the end."""

SAME = 1e-6
"""Waves that differ by less than this share are one."""


class Waves(NamedTuple):
    """The equation of the waves.

    Attributes
    ----------
    constant : (d,) float array
        b, V.
    scattering : (d, d) float array
        S.
    load : (d,) float array
        ρ, Ω.
    device : (d,) int array
        Which smooth device a port is; −1 for an ideal diode.
    """

    constant: np.ndarray
    scattering: np.ndarray
    load: np.ndarray
    device: np.ndarray

    def curve(self, smooth: Smooth, wave: np.ndarray, guess: np.ndarray) -> _Curves:
        """The points of all curves at these waves, V (d,); ``guess``: voltages of the devices' junctions nearby, V."""
        count, inside = smooth.slope.size, self.device >= 0
        own = self.device[inside]
        v, slope = np.minimum(wave, 0.0), (wave < 0.0).astype(float)
        at, line, series = np.zeros(count), np.ones(count), smooth.rows[:, 0]
        at[own], line[own] = wave[inside], self.load[inside]
        state = project(smooth, at, np.zeros(count), line - series, guess)
        v[inside] = state.junctions[own]
        slope[inside] = 1.0 / (1.0 + self.load[inside] * state.points[3][own])
        return _Curves(v, slope, state)

    def newton(self, smooth: Smooth, wave: np.ndarray) -> tuple[np.ndarray, State] | None:
        """The waves and the points of the devices' curves, by Newton's method with halved steps; None where it does
        not converge."""
        at = self.curve(smooth, wave, np.zeros(smooth.slope.size))
        residual = self._residual(wave, at.v)
        for _ in range(STEPS):
            matrix = np.eye(wave.size) - self.scattering * (2.0 * at.slope - 1.0)
            try:
                step = np.linalg.solve(matrix, -residual)
            except np.linalg.LinAlgError:
                return None
            size, share = float(np.abs(residual).max()), 1.0
            for _ in range(HALVINGS):
                new = wave + share * step
                there = self.curve(smooth, new, at.state.junctions)
                moved = self._residual(new, there.v)
                if np.isfinite(moved).all() and np.abs(moved).max() <= (1.0 - 0.1 * share) * size:
                    break
                share *= 0.5
            else:
                return None
            wave, residual, at = new, moved, there
            terms = np.abs(self.constant) + np.abs(self.scattering) @ np.abs(2.0 * at.v - wave) + np.abs(wave)
            if (np.abs(residual) <= CLOSE * terms).all() and np.abs(share * step).max() <= SAME * np.abs(wave).max():
                return wave, at.state
        return None

    def _residual(self, wave: np.ndarray, v: np.ndarray) -> np.ndarray:
        return np.asarray(wave - self.constant - self.scattering @ (2.0 * v - wave))

    def starts(self, smooth: Smooth, count: int) -> Iterator[Start]:
        """The solutions that are found from ``count`` starts, as starts of the certified iteration."""
        random = np.random.default_rng(0)
        known: list[np.ndarray] = []
        scale = float(np.abs(self.constant).max(initial=0.0)) or 1.0
        for turn in range(count):
            spread = scale * 10.0 ** random.uniform(-2.0, 1.5)
            wave = spread * random.standard_normal(self.load.size) * (turn > 0)
            with np.errstate(all="ignore"):
                found = self.newton(smooth, wave)
            if found is not None and not any(np.abs(found[0] - w).max() <= SAME * np.abs(w).max() for w in known):
                known.append(found[0])
                yield Start(None, found[1].points[0], found[1].points[1])


class _Curves(NamedTuple):
    """Voltages v(w), V, and slopes of v(w) of all ports; the points of the devices' curves."""

    v: np.ndarray
    slope: np.ndarray
    state: State


__all__ = ["MOST", "Waves"]
