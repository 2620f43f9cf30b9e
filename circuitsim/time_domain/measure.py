"""Measurements on waveforms, in the words of ngspice's ``.meas tran``: extremes, means, integrals, times of crossings.

On each segment a signal is its Chebyshev interpolant; extremes and crossings are roots of it, integrals its quadrature.
No output times are involved.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev

from circuitsim.analysis.probes import Formula, Probe, parse_probes
from circuitsim.errors import UsageError
from circuitsim.formats.table import Table
from circuitsim.time_domain.implicit_again import StepsAgain
from circuitsim.time_domain.implicit_result import ImplicitResult
from circuitsim.time_domain.implicit_step import NODES
from circuitsim.time_domain.result import TransientResult
from circuitsim.time_domain.table import columns, of_waves
from circuitsim.units import parse

FORMS = (
    "NAME AVG|RMS|INTEG|MIN|MAX|PP|MIN_AT|MAX_AT v(out) [FROM=t] [TO=t]; NAME FIND|DERIV v(out) AT=t; "
    "NAME [FIND|DERIV v(out)] WHEN v(in)=2 [RISE|FALL|CROSS=n|LAST] [TD=t]; "
    "NAME TRIG v(in) VAL=1 RISE=1 TARG v(out) VAL=2 FALL=1; NAME PARAM='2*other'"
)
ROUNDING = 1e-12
"""Share of a signal's size below which it is zero."""
NEAREST = 1e-13
"""Crossings nearer to each other than this share of the run are one."""


class Measurement(NamedTuple):
    """A measurement's name and value; None where its event does not happen."""

    name: str
    value: float | None


class _Pieces(NamedTuple):
    """A signal on stretches of time: their ends (p, 2), s, and its Chebyshev coefficients there (p, points)."""

    ends: np.ndarray
    coefficients: np.ndarray


class _Rough(NamedTuple):
    """A signal on stretches of time, roughly.

    Attributes
    ----------
    ends : (p, 2) float array
        s.
    middle, reach : (p,) float arrays
        It is no further than the reach from the middle.
    exact : callable
        From the number of a stretch to the signal's Chebyshev coefficients there (points,).
    """

    ends: np.ndarray
    middle: np.ndarray
    reach: np.ndarray
    exact: Callable[[int], np.ndarray]


class Signal:
    """A quantity over time, less a level."""

    def __init__(
        self, result: TransientResult, probe: Probe | Formula, names: Mapping[str, float], level: float
    ) -> None:  # fmt: skip
        self.result, self.probe, self.names, self.level = result, probe, names, level

    def at(self, times: np.ndarray) -> np.ndarray:
        """Values at times (n,)."""
        return columns(self.result, [self.probe], self.names, times)[0] - self.level

    def linear(self) -> bool:
        """Whether it is one voltage or current."""
        return isinstance(self.probe, Probe) and self.probe.kind in ("v", "i")

    def _of(self, voltage: np.ndarray, current: np.ndarray) -> np.ndarray:
        """Values (n,) from branch voltages, V, and currents, A (n, m)."""
        return of_waves(self.result, [self.probe], self.names, voltage, current)[0] - self.level

    def pieces(self, begin: float, end: float) -> _Pieces:
        """The signal between two times."""
        ends = self._bounds(begin, end)
        nodes, to_coefficients = _interpolation(self.result.points)
        times = ends[:, :1] + 0.5 * (ends[:, 1:] - ends[:, :1]) * (1.0 + nodes)
        return _Pieces(ends, self.at(times.ravel()).reshape(times.shape) @ to_coefficients.T)

    def rough(self, begin: float, end: float) -> _Rough:
        """The signal between two times; where steps have an outline, its polynomials through the stages of a step with
        their variation twice."""
        if not isinstance(self.result, ImplicitResult):
            ends, c = self.pieces(begin, end)
            return _Rough(ends, c[:, 0], np.abs(c[:, 1:]).sum(axis=1), lambda k: c[k])
        outline = StepsAgain(self.result).outline(begin, end)
        m, last = len(self.result.circuit), NODES.size - 1
        values = [self._of(own.voltage.reshape(-1, m), own.current.reshape(-1, m)) for own in outline]
        to_coefficients = np.linalg.inv(chebyshev.chebvander(2.0 * NODES - 1.0, last))
        c = np.concatenate(values).reshape(-1, last + 1) @ to_coefficients.T
        ends, rest = self._bounds(begin, end), np.abs(c[:, 1:]).sum(axis=1)
        constant = rest <= ROUNDING * np.abs(c[:, 0])

        @cache
        def exact(k: int) -> np.ndarray:
            return c[k] if constant[k] else self.pieces(*ends[k].tolist()).coefficients[0]

        return _Rough(ends, c[:, 0], np.where(constant, 1.0, 2.0) * rest, exact)

    def _bounds(self, begin: float, end: float) -> np.ndarray:
        """The ends (p, 2) of the stretches between two times, s."""
        starts = self.result.segment_starts()
        bounds = np.concatenate([[begin], starts[(starts > begin) & (starts < end)], [end]])
        return np.stack([bounds[:-1], bounds[1:]], axis=1)

    def slope(self, time: float) -> float:
        """The derivative at a time; at a corner that after it, at the end of the run that before it."""
        starts = np.append(self.result.segment_starts(), self.result.stop)
        k = min(max(int(np.searchsorted(starts, time, side="right")), 1), starts.size - 1)
        (ends,), (c,) = self.pieces(float(starts[k - 1]), float(starts[k]))
        half = 0.5 * (ends[1] - ends[0])
        return float(chebyshev.chebval((time - ends[0]) / half - 1.0, chebyshev.chebder(c)) / half)

    def crossings(self, begin: float, end: float) -> list[tuple[float, bool]]:
        """Times at which the signal changes its sign, and whether it rises."""
        ends, middle, reach, exact = self.rough(begin, end)
        open_ = np.abs(middle) <= reach
        found = [ends[:, 0], ends[-1:, 1]]
        for k in np.flatnonzero(open_).tolist():
            a, b = ends[k].tolist()
            found.append(a + 0.5 * (b - a) * (1.0 + _roots(exact(k))))
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
        ends, middle, reach, exact = self.rough(begin, end)
        low, when_low = _largest(ends, reach - middle, lambda k: -exact(k))
        return (-low, when_low), _largest(ends, reach + middle, exact)

    def integral(self, begin: float, end: float, power: int = 1) -> float:
        """∫ of the signal or its square."""
        if isinstance(self.result, ImplicitResult):
            sums = StepsAgain(self.result).sums(begin, end, power == 1 and self.linear())
            return float(sum(own.weights @ self._of(own.voltage, own.current) ** power for own in sums))
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


def _largest(ends: np.ndarray, top: np.ndarray, exact: Callable[[int], np.ndarray]) -> tuple[float, float]:
    """The largest value of a signal that is no larger than ``top`` (p,) on stretches of time, and its time; see
    `_Rough`."""
    best, when = -math.inf, float(ends[0, 0])
    for k in np.argsort(-top, kind="stable").tolist():
        if top[k] <= best:
            break
        c = exact(k)
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


def measure(result: TransientResult, text: str, names: Mapping[str, float] | None = None) -> Measurement:
    """One measurement.

    Parameters
    ----------
    result : TransientResult
    text : str
        What follows ``.meas tran``: a name, then one of `FORMS`.
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
    return Reader(result, text, names or {}).measurement()


def measure_all(
    result: TransientResult, texts: Sequence[str], names: Mapping[str, float]
) -> dict[str, float | None]:
    """Measurements by name, in their order; each may read those before it."""
    found: dict[str, float | None] = {}
    for text in texts:
        known = {name.lower(): value for name, value in found.items() if value is not None}
        one = measure(result, text, dict(names) | known)
        found[one.name] = one.value
    return found


def measurements_table(found: Mapping[str, float | None]) -> Table:
    """Measurements by name; ``failed`` where an event does not happen."""
    values = ["failed" if value is None else value for value in found.values()]
    return Table(("name", "value"), ("", ""), (list(found), values))


_WORD = re.compile(r"(?:[^\s{}'\"]|\{[^{}]*\}|'[^']*'|\"[^\"]*\")+")
"""A word; blanks in braces and quotes are part of it."""


class Reader:
    """Reads the words of one measurement."""

    def __init__(self, result: TransientResult, text: str, names: Mapping[str, float]) -> None:
        self.result, self.text, self.names = result, text, names
        formulas = re.sub(r"par\s*\(\s*['\"]([^'\"]*)['\"]\s*\)", r"{\1}", text, flags=re.IGNORECASE)
        squeezed = re.sub(r"\(([^()]*)\)", lambda m: "(" + m[1].replace(" ", "") + ")", formulas)
        self.words = _WORD.findall(re.sub(r"\s*=\s*", "=", squeezed))

    def wrong(self, why: str) -> UsageError:
        return UsageError(f"measurement {self.text!r}: {why}; the forms are {FORMS}")

    def next(self) -> str:
        if not self.words:
            raise self.wrong("something is missing at its end")
        return self.words.pop(0)

    def number(self, text: str) -> float:
        inner = text.strip("{}'\"")
        if inner.lower() in self.names:
            return self.names[inner.lower()]
        try:
            return parse(inner) if inner == text else Formula(inner, self.result.circuit).value({}, self.names)
        except (ValueError, KeyError, UsageError):
            raise self.wrong(f"{text!r} is no number") from None

    def signal(self, text: str, level: float = 0.0) -> Signal:
        probes = parse_probes(text, self.result.circuit)
        if len(probes) != 1:
            raise self.wrong(f"{text!r} is not one quantity")
        return Signal(self.result, probes[0], self.names, level)

    def options(self, *allowed: str) -> dict[str, str]:
        """The words NAME=value up to one that is none."""
        found = {}
        while self.words and (parts := self.words[0].partition("="))[1] and parts[0].lower() in allowed:
            found[parts[0].lower()] = parts[2]
            self.words.pop(0)
        return found

    def time(self, text: str) -> float:
        value = self.number(text)
        if not 0.0 <= value <= self.result.stop:
            raise self.wrong(f"{text} lies outside the run")
        return value

    def measurement(self) -> Measurement:
        """The whole measurement."""
        name, kind = self.next(), self.next()
        word, equals, formula = kind.partition("=")
        kinds = {"find": self.find, "deriv": self.derivative, "when": self.when, "trig": self.delay}
        if equals and word.lower() == "param":
            value: float | None = self.number("{" + formula.strip("{}'\"") + "}")
        else:
            value = kinds[kind.lower()]() if kind.lower() in kinds else self.over(kind.lower())
        if self.words:
            raise self.wrong(f"{self.words[0]!r} does not belong here")
        return Measurement(name, value)

    def stretch(self) -> tuple[Signal, float, float]:
        """A signal between two times."""
        signal, chosen = self.signal(self.next()), self.options("from", "to")
        begin, end = self.time(chosen.get("from", "0")), self.result.stop
        end = self.time(chosen["to"]) if "to" in chosen else end
        if not begin < end:
            raise self.wrong("it ends before it begins")
        return signal, begin, end

    def over(self, kind: str) -> float:
        """A value over a stretch of time."""
        if kind not in ("avg", "rms", "integ", "integral", "min", "max", "pp", "min_at", "max_at"):
            raise self.wrong(f"{kind.upper()} is not done")
        signal, begin, end = self.stretch()
        if kind in ("avg", "integ", "integral"):
            return signal.integral(begin, end) / (end - begin if kind == "avg" else 1.0)
        if kind == "rms":
            return math.sqrt(signal.integral(begin, end, 2) / (end - begin))
        low, high = signal.extremes(begin, end)
        return {"min": low[0], "max": high[0], "pp": high[0] - low[0], "min_at": low[1], "max_at": high[1]}[kind]

    def find(self) -> float | None:
        """A value at a time or at a crossing."""
        signal, time = self.signal(self.next()), self.moment()
        return None if time is None else float(signal.at(np.array([time]))[0])

    def derivative(self) -> float | None:
        """A slope at a time or at a crossing."""
        signal, time = self.signal(self.next()), self.moment()
        return None if time is None else signal.slope(time)

    def moment(self) -> float | None:
        """The time that AT= or WHEN states."""
        at = self.options("at").get("at")
        if at is not None:
            return self.time(at)
        if self.next().lower() != "when":
            raise self.wrong("FIND and DERIV need AT= or WHEN")
        return self.when()

    def when(self) -> float | None:
        """The time at which two quantities meet, or one a number."""
        first, equals, second = self.next().rpartition("=")
        if not equals:
            raise self.wrong("WHEN needs quantity=value")
        if "(" in second:
            return self.crossing(self.signal("{" + f"{first}-({second})" + "}"))
        return self.crossing(self.signal(first, self.number(second)))

    def crossing(self, signal: Signal) -> float | None:
        """The crossing that the options ask for."""
        last = False
        chosen = self.options("td", "rise", "fall", "cross", "from", "to")
        if self.words and self.words[0].lower() == "last":
            last = bool(self.words.pop(0))
        begin = max(self.time(chosen.get("td", "0")), self.time(chosen.get("from", "0")))
        found = signal.crossings(begin, self.time(chosen["to"]) if "to" in chosen else self.result.stop)
        which = "1"
        for key, rising in (("rise", True), ("fall", False), ("cross", None)):
            if key in chosen:
                which = chosen[key]
                found = [(time, rises) for time, rises in found if rising is None or rises is rising]
        number = -1 if last or which.lower() == "last" else int(self.number(which)) - 1
        return found[number][0] if -len(found) <= number < len(found) else None

    def edge(self) -> float | None:
        """The time of TRIG or TARG."""
        at = self.options("at").get("at")
        if at is not None:
            return self.time(at)
        quantity, level = self.next(), self.options("val").get("val")
        if level is None:
            raise self.wrong("TRIG and TARG need VAL=")
        return self.crossing(self.signal(quantity, self.number(level)))

    def delay(self) -> float | None:
        """From TRIG to TARG."""
        begin = self.edge()
        if self.next().lower() != "targ":
            raise self.wrong("TRIG needs TARG")
        end = self.edge()
        return None if begin is None or end is None else end - begin
