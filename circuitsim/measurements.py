"""Measurements in the syntax of ``.meas`` of ngspice and LTspice, over time, frequency or the values of a DC sweep;
curves and measurements of an analysis at several values of elements and parameters (``.step``).

A `Reader` parses and evaluates one measurement over an `Abscissa`: the variable of a result, over which the result has
a `Curve` of each quantity. Between the points of DC sweeps and AC analyses the circuit is solved again, so that a
crossing is a root of the circuit itself, not of an interpolant.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from circuitsim.analysis.probes import Formula, Probe, parse_probe
from circuitsim.analysis.sweep import Axis, Combinations, Failure, Sort, Sweep, moving_at, sweep
from circuitsim.circuit import Circuit
from circuitsim.circuit.source import circuit_of
from circuitsim.errors import CircuitError, Problem, UsageError
from circuitsim.formats import Table
from circuitsim.netlist.deck import Deck, MeasurementRequest, Vary, lowered, measurements_of
from circuitsim.points import computed
from circuitsim.units import parse

if TYPE_CHECKING:
    from concurrent.futures import Executor


CLOSE = 1e-10
"""Relative accuracy of the places of crossings and extremes."""
STEP = 6e-6
"""Relative step of difference quotients: the cube root of the unit roundoff balances rounding and truncation."""


class Curve:
    """A quantity, less a level, known at some values of its variable; subclasses compute it between them.

    Means and integrals use linear interpolation between the known values.

    Attributes
    ----------
    grid, known : (n,) float arrays
        Values of the variable, in ascending order, and of the quantity there.
    falls : bool
        Whether the variable ran downwards, so that rising and falling swap.
    """

    falls = False

    def __init__(self, grid: np.ndarray, known: np.ndarray) -> None:
        self.grid, self.known = grid, known

    def at(self, places: np.ndarray) -> np.ndarray:
        """Values (n,) at places."""
        return np.interp(places, self.grid, self.known)

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
        x, y = self._within(begin, end)
        found: list[tuple[float, bool]] = []
        for k in np.flatnonzero((y[:-1] < 0.0) & (y[1:] >= 0.0) | (y[:-1] > 0.0) & (y[1:] <= 0.0)):
            from scipy.optimize import brentq

            root = brentq(lambda at: self.at(np.array([at]))[0], x[k], x[k + 1], rtol=CLOSE, xtol=1e-300)
            found.append((float(root), bool(y[k] < y[k + 1]) is not self.falls))
        return found[::-1] if self.falls else found

    def extremes(self, begin: float, end: float) -> tuple[tuple[float, float], tuple[float, float]]:
        """The smallest and the largest value, each with its place."""
        x, y = self._within(begin, end)
        return self._extreme(x, y, 1.0), self._extreme(x, y, -1.0)

    def _extreme(self, x: np.ndarray, y: np.ndarray, sign: float) -> tuple[float, float]:
        k = int(np.argmin(sign * y))
        if np.ptp(y) == 0.0:
            return float(y[k]), float(x[k])
        from scipy.optimize import minimize_scalar

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


class Abscissa(ABC):
    """The variable of a result.

    Attributes
    ----------
    circuit : Circuit
    first, last : float
        Where intervals without FROM and TO begin and end.
    least : float
        The smallest place that a measurement may name.
    where : str
        The places that it may name, for messages.
    """

    def __init__(self, circuit: Circuit, first: float, last: float, least: float, where: str) -> None:
        self.circuit, self.first, self.last, self.least, self.where = circuit, first, last, least, where

    @abstractmethod
    def curve(self, text: str, names: Mapping[str, float], level: float) -> Curve:
        """The curve of a quantity or a formula, less a level.

        Raises
        ------
        UsageError
            There is no such quantity.
        """

    def quantity(self, text: str) -> Probe | Formula:
        """The quantity, or the formula of several, that ``text`` names."""
        formula = "{" not in text and _QUANTITY.fullmatch(text) is None
        stated = "{" + text.strip("'\"") + "}" if formula else text
        found: Probe | Formula = parse_probe(stated, self.circuit, f"{text!r} is not one quantity")
        return found


class OverSweep(Abscissa):
    """The fastest axis of a DC sweep.

    Parameters
    ----------
    source : Circuit or Deck
        The swept circuit.
    found : Sweep
    rows : slice
        Those between which only this axis varies; by default all.
    """

    def __init__(self, source: Circuit | Deck, found: Sweep, rows: slice = slice(None)) -> None:
        self.source, self.found, self.rows = source, found, rows
        self.name, *others = found.axes
        self.values = found.axes[self.name][rows]
        first, last = float(self.values.min()), float(self.values.max())
        super().__init__(circuit_of(source), first, last, first, f"{first:g} to {last:g}")
        self.fixed: Vary = {name: found.axes[name][rows][:1].tolist() for name in others}
        apart = any(np.ptp(found.axes[name][rows]) for name in others)
        failed = any(failure.row in range(len(found))[rows] for failure in found.failures)
        self.measurable = not apart and not failed and self.values.size > 1

    def curve(self, text: str, names: Mapping[str, float], level: float) -> Curve:
        """The curve of a quantity, less a level."""
        if not self.measurable:
            raise UsageError("it takes a sweep of one quantity, of two points or more, each with an operating point")
        return _SweptCurve(self, str(self.quantity(text)), level)


class _SweptCurve(Curve):
    """A quantity over the axis of a sweep, less a level."""

    def __init__(self, over: OverSweep, text: str, level: float) -> None:
        self.over, self.text, self.level = over, text, level
        order = np.argsort(over.values)
        self.falls = bool(order[0] > order[-1])
        self.grid = over.values[order]
        columns = over.found.columns
        self.known = columns[text][over.rows][order] - level if text in columns else self.at(self.grid)

    def at(self, places: np.ndarray) -> np.ndarray:
        """Values (n,) at places."""
        vary: Vary = {self.over.name: places.tolist(), **self.over.fixed}
        return sweep(self.over.source, vary, self.text)[self.text] - self.level


FORMS = (
    "NAME AVG|RMS|INTEG|MIN|MAX|PP|MIN_AT|MAX_AT v(out) [FROM=t] [TO=t]; NAME FIND|DERIV v(out) AT=t; "
    "NAME [FIND|DERIV v(out)] WHEN v(in)=2 [RISE|FALL|CROSS=n|LAST] [TD=t]; "
    "NAME TRIG v(in) VAL=1 RISE=1 TARG v(out) VAL=2 FALL=1; NAME PARAM='2*other'"
)


class Measurement(NamedTuple):
    """A measurement's name and value; None where its event does not happen, and ``why``."""

    name: str
    value: float | None
    why: str = ""


class MeasurementError(UsageError):
    """A measurement that cannot be read or computed.

    Attributes
    ----------
    text, why : str
        The measurement and the reason, without forms.
    """

    text = why = ""

    @classmethod
    def of(cls, text: str, why: str, forms: str = "") -> MeasurementError:
        """The error of a measurement."""
        error = cls(f"measurement {text!r}: {why}{forms}")
        error.text, error.why = text, why
        return error


class EventError(MeasurementError):
    """A measurement whose event does not happen: its value is None."""


Failed = Callable[[MeasurementError], None]


def not_measured(source: object, error: MeasurementError) -> Problem:
    """The warning of a measurement that failed, at its card if it is of a deck."""
    cards = source.analyses if isinstance(source, Deck) else ()
    places = (c.location for c in cards if isinstance(c, MeasurementRequest) and c.text == error.text)
    return Problem("measurement", f"{error.text.split()[0]} is not measured: {error.why}", next(places, None))


_WORD = re.compile(r"(?:[^\s{}'\"]|\{[^{}]*\}|'[^']*'|\"[^\"]*\")+")
"""A word; blanks in braces and quotes are part of it."""

_SPACED = re.compile(r"\b(from|to|at|val|rise|fall|cross|td)\s+(?=\S)", re.IGNORECASE)
"""An option whose number follows a blank, as LTspice accepts it."""

_AT_OPERATORS = re.compile(r"\s*([*/^])\s*|\s+([-+])\s+|(?<=\))\s+(?=[-+])")
"""Blanks around operators; those of ``AVG -v(a)`` and ``AT=1m -2`` are kept."""

_QUANTITY = re.compile(r"[\w@#.:]*\([^()]*\)|[^\s()*/^{}]*[^\s()*/^{}+-]")
"""A quantity that is not a formula: ``v(a,b)``, ``V1#branch``, a node's name."""

_READS = re.compile(r"\b(?:p|[vi](?:m|db|p|r|i)?)\(", re.IGNORECASE)
"""The beginning of a quantity in a formula."""

_PARENTHESES = str.maketrans({"{": "(", "}": ")", "'": None, '"': None})
"""Braces become parentheses and quotes are removed before a formula is evaluated."""


def _words(text: str) -> list[str]:
    """The words of a measurement: its name, its form, quantities and ``option=number``; no blanks in parentheses,
    around operators and around equals signs."""
    depth, found = 0, []
    for sign in re.sub(r"par\s*\(\s*['\"]([^'\"]*)['\"]\s*\)", r"{\1}", text, flags=re.IGNORECASE):
        depth += (sign == "(") - (sign == ")")
        found.append("" if sign.isspace() and depth > 0 else sign)
    joined = _AT_OPERATORS.sub(lambda match: match[1] or match[2] or "", "".join(found))
    name, _, rest = re.sub(" ?= ?", "=", " ".join(joined.split())).partition(" ")
    if rest.lower().startswith("param "):
        return [name, "param=" + rest[len("param ") :].replace(" ", "")]
    return [*filter(None, [name]), *_WORD.findall(_SPACED.sub(r"\1=", rest))]


class Reader:
    """Parser and evaluator of one measurement.

    Parameters
    ----------
    over : Abscissa
    text : str
        What follows ``.meas tran``: a name, then one of `FORMS`.
    names : mapping of str to float
        Parameters that may stand for numbers, in lower case.
    unknown : collection of str
        Names whose values are not known yet, in lower case: numbers that depend on them are nan, which lies nowhere.
    """

    why = ""

    def __init__(
        self, over: Abscissa, text: str, names: Mapping[str, float], unknown: Iterable[str] = frozenset()
    ) -> None:
        self.over, self.text, self.names, self.unknown = over, text, names, frozenset(unknown)
        self.words = _words(text)

    def wrong(self, why: str) -> UsageError:
        return MeasurementError.of(self.text, why, f"; the forms are {FORMS}")

    def next(self) -> str:
        if not self.words:
            raise self.wrong("it is incomplete")
        return self.words.pop(0)

    def number(self, text: str) -> float:
        inner = text.strip("{}'\"")
        if not self.unknown.isdisjoint(re.findall(r"\w+", inner.lower())):
            return math.nan
        if inner.lower() in self.names:
            return self.names[inner.lower()]
        if _READS.search(inner):
            raise self.wrong(f"{inner} is not a number; measure it first (FIND, AVG, MAX …)")
        try:
            try:
                return parse(inner)
            except ValueError:
                return Formula(inner, self.over.circuit).value({}, self.names)
        except UsageError as error:
            raise self.wrong(str(error)) from None

    def curve(self, text: str, level: float = 0.0) -> Curve:
        """The curve of a quantity or a formula, less a level."""
        try:
            return self.over.curve(text, self.names, level)
        except UsageError as error:
            raise self.wrong(str(error)) from None

    def options(self, *allowed: str) -> dict[str, str]:
        """Parse words NAME=value up to the first other one."""
        found = {}
        while self.words and (parts := self.words[0].partition("="))[1] and parts[0].lower() in allowed:
            found[parts[0].lower()] = parts[2]
            self.words.pop(0)
        return found

    def place(self, text: str) -> float:
        """A value of the variable within the result."""
        value = self.number(text)
        if value < self.over.least or value > self.over.last:
            raise self.wrong(f"{text} lies outside {self.over.where}")
        return value

    def measurement(self) -> Measurement:
        """The whole measurement."""
        name, kind = self.next(), self.next()
        word, equals, formula = kind.partition("=")
        kinds = {"find": self.find, "deriv": self.derivative, "when": self.when, "trig": self.delay}
        if equals and word.lower() == "param":
            value: float | None = self.number("{" + formula.translate(_PARENTHESES) + "}")
        else:
            value = kinds[kind.lower()]() if kind.lower() in kinds else self.between(kind.lower())
        if self.words:
            raise self.wrong(f"{self.words[0]!r} does not belong here")
        return Measurement(name, value, self.why if value is None else "")

    def between(self, kind: str) -> float | None:
        """A value over an interval, which TRIG and TARG may define; None where one of these does not happen."""
        if kind not in ("avg", "rms", "integ", "integral", "min", "max", "pp", "min_at", "max_at"):
            raise self.wrong(f"{kind.upper()} is not supported")
        curve = self.curve(self.next())
        if self.words and self.words[0].lower() == "trig":
            self.words.pop(0)
            first, last = self.edges()
            return None if first is None or last is None else self.over_interval(kind, curve, *sorted((first, last)))
        chosen = self.options("from", "to")
        begin = self.place(chosen["from"]) if "from" in chosen else self.over.first
        end = self.place(chosen["to"]) if "to" in chosen else self.over.last
        if begin >= end:
            raise self.wrong("it ends before it begins")
        return self.over_interval(kind, curve, begin, end)

    def over_interval(self, kind: str, curve: Curve, begin: float, end: float) -> float | None:
        """The value over an interval; None for an empty one."""
        if not begin < end:
            return None
        if kind in ("avg", "integ", "integral"):
            return curve.integral(begin, end) / (end - begin if kind == "avg" else 1.0)
        if kind == "rms":
            return math.sqrt(curve.integral(begin, end, 2) / (end - begin))
        low, high = curve.extremes(begin, end)
        return {"min": low[0], "max": high[0], "pp": high[0] - low[0], "min_at": low[1], "max_at": high[1]}[kind]

    def find(self) -> float | None:
        """A value at a place or at a crossing."""
        curve, place = self.curve(self.next()), self.moment()
        return None if place is None else self.value(curve, place)

    def value(self, curve: Curve, place: float) -> float:
        """The value at a place."""
        return float(curve.at(np.array([place]))[0])

    def derivative(self) -> float | None:
        """A slope at a place or at a crossing."""
        curve, place = self.curve(self.next()), self.moment()
        return None if place is None else curve.slope(place)

    def named_place(self) -> float | None:
        """The place given by AT=."""
        at = self.options("at").get("at")
        return None if at is None else self.place(at)

    def moment(self) -> float | None:
        """The place given by AT= or WHEN."""
        if (place := self.named_place()) is not None:
            return place
        if self.next().lower() != "when":
            raise self.wrong("FIND and DERIV need AT= or WHEN")
        return self.when()

    def when(self, wrong: str = "WHEN needs quantity=value") -> float | None:
        """The place at which two quantities are equal, or one equals a number."""
        first, equals, second = self.next().rpartition("=")
        if not equals:
            first, second = second, self.options("val").get("val", "")
        if not second:
            raise self.wrong(wrong)
        if _READS.search(second):
            inner = second.strip("{}'\"")
            return self.crossing(self.curve("{" + f"{first}-({inner})" + "}"), first, second)
        level = self.number(second)
        return self.crossing(self.curve(first, level), first, second, level=level)

    def edge(self) -> float | None:
        """The place of TRIG or TARG."""
        place = self.named_place()
        return self.when("TRIG and TARG need VAL=") if place is None else place

    def crossing(self, curve: Curve, first: str, second: str, *, level: float = math.nan) -> float | None:
        """The crossing selected by the options, at which ``first`` equals ``second``, a ``level`` if it is a number."""
        last = False
        chosen = self.options("td", "rise", "fall", "cross", "from", "to")
        if self.words and self.words[0].lower() == "last":
            last = bool(self.words.pop(0))
        begin = max([self.place(chosen[word]) for word in ("td", "from") if word in chosen], default=self.over.first)
        end = self.place(chosen["to"]) if "to" in chosen else self.over.last
        found = curve.crossings(begin, end)
        which, way = "1", "crosses"
        for key, rising, verb in (("rise", True, "rises to"), ("fall", False, "falls to"), ("cross", None, way)):
            if key in chosen:
                which, way = chosen[key], verb
                found = [(place, rises) for place, rises in found if rising is None or rises is rising]
        last = last or which.lower() == "last"
        number = -1.0 if last else self.number(which) - 1.0
        if not last and (number < 0.0 or number % 1.0 > 0.0):
            raise self.wrong(f"{which} is neither LAST nor a number from 1")
        if -len(found) <= number < len(found):
            return found[int(number)][0]
        self.why = f"{first} {way} {second} {len(found)} time{'s' * (len(found) > 1)}, not {which}"
        if not found:
            self.why = f"{first} never {way} {second}"
            if level == level and begin < end:
                (low, _), (high, _) = curve.extremes(begin, end)
                self.why += f": its maximum is {high + level:g}" if high < 0.0 else ""
                self.why += f": its minimum is {low + level:g}" if low > 0.0 else ""
        return None

    def edges(self) -> tuple[float | None, float | None]:
        """The places of TRIG and TARG."""
        begin = self.edge()
        if self.next().lower() != "targ":
            raise self.wrong("TRIG needs TARG")
        return begin, self.edge()

    def delay(self) -> float | None:
        """From TRIG to TARG."""
        begin, end = self.edges()
        return None if begin is None or end is None else end - begin


def name_and_words(text: str) -> tuple[str, set[str]]:
    """The name of a measurement and the words after it, in lower case."""
    name, rest = [*text.lower().split(None, 1), "", ""][:2]
    return name, set(re.findall(r"\w+", rest))


def after_others(texts: Sequence[str]) -> list[str]:
    """Measurements sorted so that each follows those it reads, since ngspice accepts any order."""
    found = {text: name_and_words(text) for text in texts}
    named, known = {own for own, _ in found.values()}, set[str]()
    order, left = list[str](), list(texts)
    while left:
        later = []
        for text in left:
            own, words = found[text]
            if (words & named) - {own} <= known:
                order.append(text)
                known.add(own)
            else:
                later.append(text)
        if len(later) == len(left):
            return order + left  # circular references are refused later
        left = later
    return order


def measure_all(
    over: Abscissa, texts: Sequence[str], names: Mapping[str, float], failed: Failed | None = None
) -> dict[str, float | None]:
    """Measurements by name, each after those it reads. With ``failed``, which receives the error, a failing measurement
    and those that read it are None; it also receives an `EventError` of each event that does not happen."""
    found: dict[str, float | None] = {}
    for text in after_others(texts):
        known = {name.lower(): value for name, value in found.items() if value is not None}
        try:
            one = Reader(over, text, {**names, **known}).measurement()
        except UsageError as error:
            if name_and_words(text)[1].isdisjoint(name.lower() for name, value in found.items() if value is None):
                if failed is None:
                    raise
                failed(error if isinstance(error, MeasurementError) else MeasurementError.of(text, str(error)))
            one = Measurement(text.split()[0], None)
        if one.why and failed is not None:
            failed(EventError.of(text, one.why))
        found[one.name] = one.value
    return found


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
    return measure_all(OverSweep(source, found), texts, lowered(source) if isinstance(source, Deck) else {}, failed)


class _NotRun(Abscissa):
    """The time of a run that does not exist yet: every quantity of the circuit is 1."""

    def curve(self, text: str, names: Mapping[str, float], level: float) -> Curve:
        """A placeholder."""
        self.quantity(text)
        return Curve(np.array([self.least, self.last]), np.ones(2))


def check_asked(
    deck: Deck, circuit: Circuit, shown: tuple[float, float], texts: Sequence[str], varied: Sequence[str] = ()
) -> None:
    """Refuse measurements that no run of a deck over time could have, before the run; its own ones they may read.

    Parameters
    ----------
    deck : Deck
    circuit : Circuit
        With its sources.
    shown : (float, float)
        First output time and end of the run, s.
    texts : sequence of str
        Those of the deck among them are not checked.
    varied : sequence of str
        Names that vary from run to run; parameters of the deck then may depend on them.

    Raises
    ------
    UsageError
    """
    (first, last), own = shown, measurements_of(deck, "tran")
    over, names = _NotRun(circuit, first, last, 0.0, run_of(last)), {} if varied else lowered(deck)
    known = [*varied, *(deck.parameters if varied else ()), *(name_and_words(text)[0] for text in own)]
    unknown = {name.lower() for name in known}
    for text in after_others([text for text in texts if text not in own]):
        unknown.add(Reader(over, text, names, unknown).measurement().name.lower())


def run_of(stop: float) -> str:
    """A run up to ``stop``, s, in words."""
    return f"the run, 0 to {stop:g} s"


def measurements_table(found: Mapping[str, float | None], errors: Mapping[str, float | None] | None = None) -> Table:
    """Measurements by name, ``failed`` where an event does not happen; with ``errors``, the error bound of each."""
    rows = [(name, "failed" if value is None else value) for name, value in found.items()]
    if errors is None:
        return Table.of("name, value", rows)
    return Table.of("name, value, error", [(*row, errors.get(row[0])) for row in rows])


MAX_RUNS = 100_000
MAX_VALUES = 50_000_000
"""Values that the curves of all runs may hold (400 MB)."""


class Run(NamedTuple):
    """What is kept of a run.

    Attributes
    ----------
    curves : Table
        Columns over the variable, the first, up to where the run ended.
    measured : dict of str to float or None
        Measurements by name.
    error : CircuitError or None
        With which the run ended.
    unmeasured : list of MeasurementError
        Why measurements failed.
    events : list of tuple
        Changes of diodes and switches, after the values of the run.
    """

    curves: Table
    measured: Mapping[str, float | None]
    error: CircuitError | None = None
    unmeasured: Sequence[MeasurementError] = ()
    events: Sequence[tuple[Any, ...]] = ()


class Stepped(NamedTuple):
    """Several runs.

    Attributes
    ----------
    curves : Sweep
        A row for each value of the variable in each run: the variable runs fastest, then the varied values; nan from
        where a run ended with an error.
    measured : Sweep
        A row per run: the varied values and the measurements; nan where one failed.
    runs : list of Run
    """

    curves: Sweep
    measured: Sweep
    runs: list[Run]


def combinations(deck: Deck, vary: Vary, refused: str) -> Combinations:
    """The varied values of runs.

    Raises
    ------
    UsageError
        Unknown names, values out of range, the time (``refused`` says why it cannot vary).
    """
    grid = Combinations.of(vary, deck)
    if any(axis.sort is Sort.TIME for axis in grid.axes):
        raise UsageError(refused)
    return grid


def check_size(runs: int, values: int, what: str, columns: int) -> None:
    """Refuse more runs, or values of the variable (``what`` they are) and columns in each, than a result may hold."""
    if runs > MAX_RUNS or runs * values * max(columns, 1) > MAX_VALUES:
        raise UsageError(
            f"{runs:,} runs of {values:,} {what} and {columns:,} columns: at most {MAX_RUNS:,} runs and "
            f"{MAX_VALUES:,} values fit; take larger steps or fewer columns"
        )


def stepped(
    deck: Deck,
    grid: Combinations,
    variable: np.ndarray,
    run: Callable[[Sequence[float]], Run],
    progress: Callable[[int, int], object] | None = None,
    workers: int | None = 1,
    executor: Executor | None = None,
) -> Stepped:
    """The runs of a deck at all combinations of varied values.

    Parameters
    ----------
    deck : Deck
    grid : Combinations
        Without any, one run.
    variable : (n,) float array
        Values of the variable of each run.
    run : callable
        The run at given values of the axes, in any process.
    progress : callable, optional
        Called with the number of runs done and the total; True ends the work there, and the result has the runs done.
    workers, executor
        See `circuitsim.sweep`.
    """
    varied, shape, done = grid.varied() if grid.groups else np.zeros((0, 1)), grid.shape, list[Run]()
    many = varied.shape[1]
    try:
        for one in computed(run, varied.T.tolist(), workers, executor):
            done.append(one)
            if progress is not None and progress(len(done), many):
                break
    except KeyboardInterrupt:  # of a worker process, which Ctrl-C reaches too
        if not done or progress is None or not progress(len(done), many):
            raise
    if len(done) < many:
        varied, shape = varied[:, : len(done)], (len(done),)
    n = variable.size
    (name, *names), (unit, *units), *_ = max((one.curves for one in done), key=lambda curves: len(curves.header))
    ends = [len(one.curves.columns[0]) for one in done]
    whole = np.full((len(names), len(done), n), np.nan)
    for k, one in enumerate(done):
        whole[:, k, : ends[k]] = one.curves.columns[1:]
    errors = [Failure(k, one.error) for k, one in enumerate(done) if one.error is not None]
    failures = [Failure(k * n + row, error) for k, error in errors for row in range(ends[k], n)]
    labels = {axis.label: values for axis, values in zip(grid.axes, varied)}
    own = {axis.label: axis.unit for axis in grid.axes}
    rows = {name: np.tile(variable, len(done))} | {label: np.repeat(values, n) for label, values in labels.items()}
    columns, all_units = dict(zip(names, whole.reshape(len(names), -1))), {name: unit, **own, **dict(zip(names, units))}
    curves = Sweep(deck.title, rows, columns, all_units, failures, [], (n, *shape))
    return Stepped(curves, measurements(deck, labels, own, shape, done, errors), done)


def measurements(
    deck: Deck,
    axes: dict[str, np.ndarray],
    units: Mapping[str, str],
    shape: tuple[int, ...],
    runs: Sequence[Run],
    errors: Sequence[Failure] = (),
) -> Sweep:
    """The measurements of runs at values of ``axes``, with a warning for each that failed in some runs."""
    names = dict.fromkeys((own for run in runs for own in run.measured), "")
    numbers = {own: np.array([run.measured.get(own) for run in runs], dtype=float) for own in names}  # None: nan
    found = Sweep(deck.title, axes, numbers, {**units, **names}, errors, [], shape)
    found.warnings = [*_unmeasured(deck, found, runs)]
    return found


def _unmeasured(deck: Deck, found: Sweep, runs: Sequence[Run]) -> Iterator[Problem]:
    """A warning for each measurement that failed in some runs, with the reason in the first."""
    failing: dict[str, list[tuple[int, MeasurementError]]] = {}
    for k, run in enumerate(runs):
        for error in run.unmeasured:
            failing.setdefault(error.text, []).append((k, error))
    for (first, error), *others in failing.values():
        problem = not_measured(deck, error)
        problem.message += f" (at {found.at(first)}, the first of {1 + len(others)} such runs)" * bool(found.axes)
        yield problem


def measure_each(deck: Deck, found: Sweep, texts: Sequence[str], asked: Sequence[str] = ()) -> Sweep:
    """Measurements over the fastest axis of a DC sweep, for all values of the others (``.dc`` in ``.step``).

    Parameters
    ----------
    deck : Deck
    found : Sweep
        Of the deck.
    texts : sequence of str
        As `circuitsim.measurements.measure_sweep` takes them.
    asked : sequence of str
        Those that are refused if they cannot be computed.

    Returns
    -------
    Sweep
        A row for each combination of the other axes; nan where a measurement failed, with a warning.

    Raises
    ------
    UsageError
        One of ``asked`` cannot be computed.

    Examples
    --------
    >>> from circuitsim import loads, sweep
    >>> from circuitsim.measurements import measure_each
    >>> deck = loads("divider\\nV1 in 0 0\\nR1 in k 1k\\nR2 k 0 1k\\n.dc V1 0 5 1\\n.step R2 list 1k 3k\\n")
    >>> measure_each(deck, sweep(deck), ["x WHEN v(k)=1.5", "top MAX v(k)"])["x"].tolist()
    [3.0, 2.0]
    """
    count, done, unmeasured = found.shape[0], list[Run](), list[MeasurementError]()

    def failed(error: MeasurementError) -> None:
        if error.text in asked and not isinstance(error, EventError):
            raise error
        unmeasured.append(error)

    for first in range(0, len(found), count):
        over = OverSweep(deck, found, slice(first, first + count))
        axes: list[Axis] = Combinations.of(over.fixed, deck).axes
        names = moving_at(deck, axes, [axis.values[0] for axis in axes])[1].names()
        measured = measure_all(over, texts, names, failed)
        done.append(Run(Table((), (), ()), measured, None, [*unmeasured]))
        unmeasured.clear()
    axes_of_runs = {name: values[::count] for name, values in list(found.axes.items())[1:]}
    return measurements(deck, axes_of_runs, {name: found.units[name] for name in axes_of_runs}, found.shape[1:], done)
