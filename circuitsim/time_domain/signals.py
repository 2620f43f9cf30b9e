"""A quantity of a run over time: values, extremes, crossings, integrals, and measurements (``.meas tran``).

On each segment a signal is its Chebyshev interpolant; extremes and crossings are roots, integrals its quadrature.
Output times play no role.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import chebyshev

from circuitsim.analysis.probes import Formula, Probe
from circuitsim.arguments import checked
from circuitsim.measurements import Abscissa, Curve, Measurement, Reader, run_of
from circuitsim.time_domain.formula_sources import changes
from circuitsim.time_domain.implicit_result import ImplicitResult
from circuitsim.time_domain.result import RESULT, TransientResult, columns, of_probe, of_waves

ROUNDING = 1e-12
"""Fraction of a signal's size below which it is zero."""
SAMPLES, SAMPLES_OF_STEPS, ALL_SAMPLES = 17, 3, 4000
"""Minimum number of samples of a formula's decisions: in a segment of an exact run, in a step of an implicit one, and
in all segments of an exact run together."""
BESIDE = 1e-9
"""Distance of the first and the last sample from the ends, as a fraction."""
MOST_CHANGES = 16
"""Maximum number of changes of decisions between two samples."""
NEAREST = 1e-13
"""Crossings closer than this fraction of the run are one."""


class _Pieces(NamedTuple):
    """A signal on intervals: their ends (p, 2), s, and its Chebyshev coefficients there (p, points)."""

    ends: np.ndarray
    coefficients: np.ndarray


WavesAt = Callable[[bytes], tuple[np.ndarray, np.ndarray]]
"""Waveforms at times (n,), s, as bytes: V and A (n, m)."""


def waves_at(result: TransientResult) -> WavesAt:
    """Waveforms of a run; the last ones are cached, since several measurements often share an interval."""
    return lru_cache(1)(lambda times: result.at(np.frombuffer(times)))


class Signal(Curve):
    """A quantity over time, minus a level."""

    def __init__(
        self,
        result: TransientResult,
        probe: Probe | Formula,
        names: Mapping[str, float],
        level: float,
        waves: WavesAt | None = None,
    ) -> None:
        self.result, self.probe, self.names, self.level = result, probe, names, level
        self._waves = waves or waves_at(result)
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._decides = isinstance(probe, Formula) and probe.decides

    def at(self, times: np.ndarray) -> np.ndarray:
        """Values at times (n,)."""
        return columns(self.result, [self.probe], self.names, times)[0] - self.level

    def _of(self, voltage: np.ndarray, current: np.ndarray) -> np.ndarray:
        """Values (n,) from branch voltages, V, and currents, A (n, m)."""
        return of_waves(self.result, [self.probe], self.names, voltage, current)[0] - self.level

    def pieces(self, begin: float, end: float) -> _Pieces:
        """The signal between two times."""
        ends = self.bounds(begin, end)
        nodes, to_coefficients = _interpolation(self.result.points)
        times = ends[:, :1] + 0.5 * (ends[:, 1:] - ends[:, :1]) * (1.0 + nodes)
        waves = self._waves(times.tobytes())
        return _Pieces(ends, self._of(*waves).reshape(times.shape) @ to_coefficients.T)

    def bounds(self, begin: float, end: float) -> np.ndarray:
        """The ends (p, 2) of the intervals between two times on which the signal is smooth, s."""
        starts = self.result.segment_starts()
        bounds = np.concatenate([[begin], starts[(starts > begin) & (starts < end)], [end]])
        if self._decides:
            found = self._changes(bounds)
            place = np.minimum(np.searchsorted(bounds, found), bounds.size - 1)
            beside = np.minimum(np.abs(bounds[place] - found), np.abs(found - bounds[place - 1]))
            apart = np.diff(found, prepend=-np.inf) > NEAREST * self.result.stop
            bounds = np.unique(np.concatenate([bounds, found[apart & (beside > NEAREST * self.result.stop)]]))
        return np.stack([bounds[:-1], bounds[1:]], axis=1)

    def _changes(self, bounds: np.ndarray) -> np.ndarray:
        """Times at which the decisions of a formula change, s, by bisection between samples.

        Raises
        ------
        UsageError
            They change too often.
        """
        samples = max(SAMPLES, -(-ALL_SAMPLES // (bounds.size - 1)))
        samples = SAMPLES_OF_STEPS if isinstance(self.result, ImplicitResult) else samples
        times = bounds[:-1, None] + np.diff(bounds)[:, None] * np.linspace(BESIDE, 1.0 - BESIDE, samples)
        return changes(self._decisions, times, str(self.probe), MOST_CHANGES)

    def _decisions(self, times: np.ndarray) -> np.ndarray:
        """A number for the decisions of the formula at each time (n,)."""
        assert isinstance(self.probe, Formula)
        waves = self.result.at(times)
        known = {signal: of_probe(self.result, own, *waves) for signal, own in self.probe.probes.items()}
        found = self.probe.decisions(known, self.names)
        return np.array([self._numbers.setdefault(own, len(self._numbers)) for own in found], dtype=np.int64)

    def slope(self, time: float) -> float:
        """The derivative at a time; at a corner that after it, at the end of the run that before it."""
        starts = np.append(self.result.segment_starts(), self.result.stop)
        k = min(max(int(np.searchsorted(starts, time, side="right")), 1), starts.size - 1)
        found = self.pieces(float(starts[k - 1]), float(starts[k]))
        at = min(max(int(np.searchsorted(found.ends[:, 0], time, side="right")) - 1, 0), len(found.ends) - 1)
        ends, c = found.ends[at], found.coefficients[at]
        half = 0.5 * (ends[1] - ends[0])
        return float(chebyshev.chebval((time - ends[0]) / half - 1.0, chebyshev.chebder(c)) / half)

    def crossings(self, begin: float, end: float) -> list[tuple[float, bool]]:
        """Times at which the signal changes its sign, and whether it rises."""
        ends, c = self.pieces(begin, end)
        middle, reach = c[:, 0], np.abs(c[:, 1:]).sum(axis=1)
        open_ = np.abs(middle) <= reach
        found = [ends[:, 0], ends[-1:, 1]]
        for k in np.flatnonzero(open_).tolist():
            a, b = ends[k].tolist()
            found.append(a + 0.5 * (b - a) * (1.0 + _roots(c[k])))
        times = np.sort(np.concatenate(found))
        times = times[np.append(True, np.diff(times) > NEAREST * self.result.stop)]
        between, crossings, last = 0.5 * (times[:-1] + times[1:]), [], 0.0
        place = np.searchsorted(ends[:, 0], between, side="right") - 1
        values = middle[place]
        values[open_[place]] = self.at(between[open_[place]])
        # A signal that touches zero does not cross it by its rounding.
        size = abs(self.level) + float((np.abs(middle + self.level) + reach).max())
        signs = np.where(np.abs(values) > ROUNDING * size, np.sign(values), 0.0)
        for time, sign in zip(times.tolist(), signs.tolist()):
            if sign and last and sign != last:
                crossings.append((time, sign > 0.0))
            last = sign or last
        return crossings

    def extremes(self, begin: float, end: float) -> tuple[tuple[float, float], tuple[float, float]]:
        """The smallest value and its time, and the largest and its time."""
        ends, c = self.pieces(begin, end)
        low, when_low = _largest(ends, -c)
        return (-low, when_low), _largest(ends, c)

    def integral(self, begin: float, end: float, power: int = 1) -> float:
        """∫ of the signal or its square."""
        ends, c = self.pieces(begin, end)
        if power == 2:
            nodes, to_coefficients = _interpolation(2 * c.shape[1])
            c = (c @ chebyshev.chebvander(nodes, c.shape[1] - 1).T) ** 2 @ to_coefficients.T
        k = np.arange(c.shape[1])
        weights = np.where(k % 2 == 0, 2.0 / (1.0 - k * k + (k == 1)), 0.0)
        return float((0.5 * (ends[:, 1] - ends[:, 0]) * (c @ weights)).sum())


@lru_cache(maxsize=8)
def _interpolation(points: int) -> tuple[np.ndarray, np.ndarray]:
    """Chebyshev nodes in (−1, 1), and the matrix from values there to coefficients."""
    nodes = np.sort(chebyshev.chebpts1(points))
    return nodes, np.linalg.inv(chebyshev.chebvander(nodes, points - 1))


def _largest(ends: np.ndarray, coefficients: np.ndarray) -> tuple[float, float]:
    """The largest value of a signal with these coefficients (p, points) on intervals (p, 2), and its time."""
    best, when = -math.inf, float(ends[0, 0])
    top = coefficients[:, 0] + np.abs(coefficients[:, 1:]).sum(axis=1)
    for k in np.argsort(-top, kind="stable").tolist():
        if top[k] <= best:
            break
        c = coefficients[k]
        x = np.concatenate([[-1.0, 1.0], _roots(chebyshev.chebder(c))])
        values = chebyshev.chebval(x, c)
        if values.max() > best:
            best = float(values.max())
            when = float(ends[k, 0] + 0.5 * (ends[k, 1] - ends[k, 0]) * (1.0 + x[int(values.argmax())]))
    return best, when


def _roots(c: np.ndarray) -> np.ndarray:
    """Real roots of a Chebyshev series within [−1, 1]."""
    size = np.abs(c).max(initial=0.0)
    kept = np.flatnonzero(np.abs(c) > 1e-15 * size)
    if not kept.size or kept[-1] == 0:
        return np.zeros(0)
    roots = chebyshev.chebroots(c[: kept[-1] + 1])
    return np.clip(roots.real[(np.abs(roots.imag) < 1e-7) & (np.abs(roots.real) <= 1.0 + 1e-9)], -1.0, 1.0)


class OverTime(Abscissa):
    """The time of a run, s."""

    def __init__(self, result: TransientResult) -> None:
        super().__init__(result.circuit, float(result.times[0]), result.stop, 0.0, run_of(result.stop))
        self.result, self.waves = result, waves_at(result)

    def curve(self, text: str, names: Mapping[str, float], level: float) -> Curve:
        """The waveform of a quantity, less a level."""
        return Signal(self.result, self.quantity(text), names, level, self.waves)


@checked(result=RESULT)
def measure(result: TransientResult, text: str, names: Mapping[str, float] | None = None) -> Measurement:
    """One measurement.

    Parameters
    ----------
    result : TransientResult
    text : str
        What follows ``.meas tran``: a name, then one of `circuitsim.measurements.FORMS`.
    names : mapping of str to float, optional
        Parameters that may stand for numbers, in lower case.

    Raises
    ------
    UsageError
        Another form, an unknown quantity, times outside the run.

    Examples
    --------
    ``measure(run, "ripple PP v(out) FROM=1m TO=2m").value``
    """
    return Reader(OverTime(result), text, names or {}).measurement()
