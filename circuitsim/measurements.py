"""Measurements of DC sweeps and AC analyses, solving the circuit between the points of a result.

`Between` is such a quantity. Measurements of DC sweeps (``.meas dc``) are here, those over frequency in
`circuitsim.small_signal.measure`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from circuitsim.analysis.probes import Formula, Probe
from circuitsim.analysis.sweep import sweep
from circuitsim.analysis.sweep_result import Sweep
from circuitsim.circuit import Circuit
from circuitsim.netlist.deck import Deck, lowered
from circuitsim.time_domain.measure import Failed, Measurement, MeasurementError, OverTime, in_order
from circuitsim.time_domain.signals import Signal

CLOSE = 1e-10
"""Relative accuracy of the places of crossings and extremes."""
STEP = 6e-6
"""Relative step of difference quotients: the cube root of the unit roundoff balances rounding and truncation."""


class Between(Signal):
    """A quantity known at some values of its variable and computed on demand between them.

    Means and integrals use linear interpolation between the known values.

    Attributes
    ----------
    grid, known : (n,) float arrays
        Values of the variable, in ascending order, and of the quantity there.
    falls : bool
        Whether the variable ran downwards, so that rising and falling swap.
    """

    grid: np.ndarray
    known: np.ndarray
    falls = False

    def slope(self, place: float) -> float:
        """The derivative at a place, by central differences within the range."""
        step = STEP * (abs(place) or np.abs(self.grid).max())
        ends = np.clip([place - step, place + step], self.grid[0], self.grid[-1])
        low, high = self.at(ends)
        return float((high - low) / (ends[1] - ends[0]))

    def _within(self, begin: float, end: float) -> tuple[np.ndarray, np.ndarray]:
        """The known places in an interval and its ends, with the values there."""
        inside = (self.grid > begin) & (self.grid < end)
        ends = self.at(np.array([begin, end]))
        return np.concatenate(([begin], self.grid[inside], [end])), np.insert(ends, 1, self.known[inside])

    def crossings(self, begin: float, end: float) -> list[tuple[float, bool]]:
        """Zero crossings, and whether the quantity rises there."""
        from scipy.optimize import brentq

        x, y = self._within(begin, end)
        found: list[tuple[float, bool]] = []
        for k in range(x.size - 1):
            if y[k] < 0.0 <= y[k + 1] or y[k] > 0.0 >= y[k + 1]:
                root = brentq(lambda at: self.at(np.array([at]))[0], x[k], x[k + 1], rtol=CLOSE, xtol=1e-300)
                found.append((float(root), bool(y[k] < y[k + 1]) is not self.falls))
        return found[::-1] if self.falls else found

    def extremes(self, begin: float, end: float) -> tuple[tuple[float, float], tuple[float, float]]:
        """The smallest and the largest value, each with its place."""
        x, y = self._within(begin, end)
        return self._extreme(x, y, 1.0), self._extreme(x, y, -1.0)

    def _extreme(self, x: np.ndarray, y: np.ndarray, sign: float) -> tuple[float, float]:
        from scipy.optimize import minimize_scalar

        k = int(np.argmin(sign * y))
        around = x[max(k - 1, 0)], x[min(k + 1, x.size - 1)]
        width = CLOSE * (around[1] - around[0])
        found = minimize_scalar(
            lambda at: sign * self.at(np.array([at]))[0], bounds=around, method="bounded", options={"xatol": width}
        )
        least, at = min((sign * y[k], x[k]), (found.fun, found.x))
        return float(sign * least), float(at)

    def integral(self, begin: float, end: float, power: int = 1) -> float:
        """The integral of a power, by the trapezoidal rule on the known places."""
        x, y = self._within(begin, end)
        return float(np.diff(x) @ np.convolve(y**power, (0.5, 0.5), "valid"))


class _OverSweep(Between):
    """A quantity over the axis of a sweep, minus a level."""

    def __init__(self, source: Circuit | Deck, found: Sweep, probe: Probe | Formula, level: float) -> None:
        self.source, self.text, self.level = source, str(probe), level
        ((self.name, values),) = found.axes.items()
        order = np.argsort(values)
        self.falls = bool(order[0] > order[-1])
        self.grid = values[order]
        self.known = found[self.text][order] - level if self.text in found.columns else self.at(self.grid)

    def at(self, places: np.ndarray) -> np.ndarray:
        """Values (n,) at places."""
        return sweep(self.source, {self.name: places.tolist()}, self.text)[self.text] - self.level


class _Reader(OverTime):
    """Reads one measurement over a sweep."""

    def __init__(self, source: Circuit | Deck, found: Sweep, text: str, names: Mapping[str, float]) -> None:
        values = next(iter(found.axes.values()))
        circuit = source.operating_circuit if isinstance(source, Deck) else source
        super().__init__(circuit, (float(values.min()), float(values.max())), text, names)
        self.source, self.found = source, found

    def of(self, probe: Probe | Formula, level: float) -> Signal:
        """The quantity of a probe, minus a level."""
        return _OverSweep(self.source, self.found, probe, level)

    def time(self, text: str) -> float:
        """A value of the varied quantity within the sweep."""
        value = self.number(text)
        if not self.begin <= value <= self.stop:
            raise self.wrong(f"{text} lies outside {self.begin:g} to {self.stop:g}")
        return value


def measure_sweep(
    source: Circuit | Deck, found: Sweep, texts: Sequence[str], failed: Failed | None = None
) -> dict[str, float | None]:
    """Measurements over a sweep of one quantity.

    Parameters
    ----------
    source : Circuit or Deck
        The swept circuit.
    found : Sweep
        With one axis of at least two values.
    texts : sequence of str
        What follows ``.meas dc``: ``"vth FIND v(in) WHEN v(out)=1"``, ``"top MAX v(out)"``; each may read others.
    failed : callable, optional
        Called with the error of a failed measurement, whose value is then None.

    Raises
    ------
    UsageError
        Unsupported form, unknown quantity, values outside the sweep, several axes, a point without a solution.

    Examples
    --------
    >>> from circuitsim import loads, sweep
    >>> from circuitsim.measurements import measure_sweep
    >>> deck = loads("divider\\nV1 in 0 0\\nR1 in k 1k\\nR2 k 0 1k\\n.dc V1 0 5 0.1\\n")
    >>> measure_sweep(deck, sweep(deck), ["vth FIND v(in) WHEN v(k)=1.03", "top MAX v(k)"])
    {'vth': 2.06, 'top': 2.5}
    """
    names = lowered(source) if isinstance(source, Deck) else {}

    def read(text: str, known: Mapping[str, float]) -> Measurement:
        if len(found.axes) != 1 or len(found) < 2 or found.failures:
            why = "it takes a sweep of one quantity, of two points or more, each with an operating point"
            raise MeasurementError.of(text, why)
        return _Reader(source, found, text, known).measurement()

    return in_order(texts, names, read, failed)
