"""Measurements on waveforms, in the syntax of ngspice's ``.meas tran`` and of LTspice."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from circuitsim.analysis.probes import Formula, Probe, parse_probes
from circuitsim.arguments import checked
from circuitsim.circuit import Circuit
from circuitsim.errors import Problem, UsageError
from circuitsim.formats.table import Table
from circuitsim.netlist.deck import Deck, MeasurementRequest, lowered, measurements_of
from circuitsim.time_domain.result import RESULT, TransientResult
from circuitsim.time_domain.signals import LastInterval, Signal
from circuitsim.units import parse

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
    """A measurement whose event does not happen: `measure` gives None."""


def not_measured(source: object, error: MeasurementError) -> Problem:
    """The warning of a measurement that failed, at its card if it is of a deck."""
    cards = source.analyses if isinstance(source, Deck) else ()
    places = (c.location for c in cards if isinstance(c, MeasurementRequest) and c.text == error.text)
    return Problem("measurement", f"{error.text.split()[0]} is not measured: {error.why}", next(places, None))


@checked(result=RESULT)
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
    return Reader(result, text, names or {}, LastInterval()).measurement()


Failed = Callable[[MeasurementError], None]


def measure_all(
    result: TransientResult, texts: Sequence[str], names: Mapping[str, float], failed: Failed | None = None
) -> dict[str, float | None]:
    """Measurements by name; see `in_order`."""
    last = LastInterval()
    return in_order(texts, names, lambda text, known: Reader(result, text, known, last).measurement(), failed)


def name_and_words(text: str) -> tuple[str, set[str]]:
    """The name of a measurement and the words after it, in lower case."""
    name, rest = [*text.lower().split(None, 1), "", ""][:2]
    return name, set(re.findall(r"\w+", rest))


def after_others(texts: Sequence[str]) -> list[str]:
    """Measurements sorted so that each follows those it reads, since ngspice accepts any order."""
    found = {text: name_and_words(text) for text in texts}
    named, known = {own for own, _ in found.values()}, set[str]()
    reads = {text: (words & named) - {own} for text, (own, words) in found.items()}
    order, left = list[str](), list(texts)
    while left:
        later = []
        for text in left:
            if reads[text] <= known:
                order.append(text)
                known.add(found[text][0])
            else:
                later.append(text)
        if len(later) == len(left):
            return order + left  # circular references are refused later
        left = later
    return order


def in_order(
    texts: Sequence[str],
    names: Mapping[str, float],
    read: Callable[[str, Mapping[str, float]], Measurement],
    failed: Failed | None = None,
) -> dict[str, float | None]:
    """Measurements by name, each after those it reads. With ``failed``, which receives the error, a failing measurement
    and those that read it are None; it also receives an `EventError` of each event that does not happen."""
    found: dict[str, float | None] = {}
    for text in after_others(texts):
        known = {name.lower(): value for name, value in found.items() if value is not None}
        try:
            one = read(text, {**names, **known})
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


def measurements_table(found: Mapping[str, float | None], errors: Mapping[str, float | None] | None = None) -> Table:
    """Measurements by name, ``failed`` where an event does not happen; with ``errors``, the error bound of each."""
    rows = [(name, "failed" if value is None else value) for name, value in found.items()]
    if errors is None:
        return Table.of("name, value", rows)
    return Table.of("name, value, error", [(*row, errors.get(row[0])) for row in rows])


_WORD = re.compile(r"(?:[^\s{}'\"]|\{[^{}]*\}|'[^']*'|\"[^\"]*\")+")
"""A word; blanks in braces and quotes are part of it."""


_OPTIONS = frozenset(("from", "to", "at", "val", "rise", "fall", "cross", "td"))
"""Options that take a number, which LTspice also accepts after a blank."""


_AT_OPERATORS = re.compile(r"\s*([*/^])\s*|\s+([-+])\s+|(?<=\))\s+(?=[-+])")
"""Blanks around operators; those of ``AVG -v(a)`` and ``AT=1m -2`` are kept."""

_QUANTITY = re.compile(r"[\w@#.:]*\([^()]*\)|[^\s()*/^{}]*[^\s()*/^{}+-]")
"""A quantity that is not a formula: ``v(a,b)``, ``V1#branch``, a node's name."""


_PARENTHESES = str.maketrans({"{": "(", "}": ")", "'": None, '"': None})
"""Braces become parentheses and quotes are removed before a formula is evaluated."""


def _with_equals(words: list[str]) -> list[str]:
    """Options and the formula of PARAM with an equals sign in place of a blank."""
    if len(words) > 2 and words[1].lower() == "param":
        return [words[0], "param=" + "".join(words[2:])]
    found = words[:1]
    for word in words[1:]:
        joined = len(found) > 1 and found[-1].lower() in _OPTIONS
        found[-1:] = [f"{found[-1]}={word}"] if joined else [found[-1], word]
    return found


def _without_blanks(text: str) -> str:
    """The words of a measurement without blanks in parentheses, around operators and around equals signs."""
    depth, found = 0, []
    for sign in text:
        depth += (sign == "(") - (sign == ")")
        found.append("" if sign.isspace() and depth > 0 else sign)
    joined = _AT_OPERATORS.sub(lambda match: match[1] or match[2] or "", "".join(found))
    return re.sub(r"\s*=\s*", "=", joined)


class Words(ABC):
    """Parser of one measurement.

    Parameters
    ----------
    circuit : Circuit
    shown : (float, float)
        First output time, where intervals without FROM begin, and end of the run, s.
    text, names
        See `measure`.
    """

    why = ""

    def __init__(self, circuit: Circuit, shown: tuple[float, float], text: str, names: Mapping[str, float]) -> None:
        self.circuit, self.text, self.names = circuit, text, names
        self.begin, self.stop = shown
        formulas = re.sub(r"par\s*\(\s*['\"]([^'\"]*)['\"]\s*\)", r"{\1}", text, flags=re.IGNORECASE)
        self.words = _with_equals(_WORD.findall(_without_blanks(formulas)))

    def wrong(self, why: str) -> UsageError:
        return MeasurementError.of(self.text, why, f"; the forms are {FORMS}")

    def next(self) -> str:
        if not self.words:
            raise self.wrong("it is incomplete")
        return self.words.pop(0)

    def number(self, text: str) -> float:
        inner = text.strip("{}'\"")
        if inner.lower() in self.names:
            return self.names[inner.lower()]
        try:
            try:
                return parse(inner)
            except ValueError:
                return Formula(inner, self.circuit).value({}, self.names)
        except UsageError as error:
            raise self.wrong(str(error)) from None

    @abstractmethod
    def signal(self, text: str, level: float = 0.0) -> Signal:
        """The signal of a quantity, less a level."""

    def options(self, *allowed: str) -> dict[str, str]:
        """Parse words NAME=value up to the first other one."""
        found = {}
        while self.words and (parts := self.words[0].partition("="))[1] and parts[0].lower() in allowed:
            found[parts[0].lower()] = parts[2]
            self.words.pop(0)
        return found

    def time(self, text: str) -> float:
        value = self.number(text)
        if not 0.0 <= value <= self.stop:
            raise self.wrong(f"{text} lies outside the run, 0 to {self.stop:g} s")
        return value

    def measurement(self) -> Measurement:
        """The whole measurement."""
        name, kind = self.next(), self.next()
        word, equals, formula = kind.partition("=")
        kinds = {"find": self.find, "deriv": self.derivative, "when": self.when, "trig": self.delay}
        if equals and word.lower() == "param":
            value: float | None = self.number("{" + formula.translate(_PARENTHESES) + "}")
        else:
            value = kinds[kind.lower()]() if kind.lower() in kinds else self.over(kind.lower())
        if self.words:
            raise self.wrong(f"{self.words[0]!r} does not belong here")
        return Measurement(name, value, self.why if value is None else "")

    def interval(self) -> tuple[Signal, float, float]:
        """A signal and an interval, which TRIG and TARG may define; it ends before it begins where one of these does
        not happen."""
        signal = self.signal(self.next())
        if self.words and self.words[0].lower() == "trig":
            self.words.pop(0)
            first, last = self.edges()
            return signal, *((self.stop, 0.0) if first is None or last is None else sorted((first, last)))
        chosen = self.options("from", "to")
        begin = self.time(chosen["from"]) if "from" in chosen else self.begin
        end = self.time(chosen["to"]) if "to" in chosen else self.stop
        if begin >= end:
            raise self.wrong("it ends before it begins")
        return signal, begin, end

    def over(self, kind: str) -> float | None:
        """A value over an interval."""
        if kind not in ("avg", "rms", "integ", "integral", "min", "max", "pp", "min_at", "max_at"):
            raise self.wrong(f"{kind.upper()} is not supported")
        signal, begin, end = self.interval()
        return self.between(kind, signal, begin, end) if begin < end else None

    def between(self, kind: str, signal: Signal, begin: float, end: float) -> float:
        """The value over an interval."""
        if kind in ("avg", "integ", "integral"):
            return signal.integral(begin, end) / (end - begin if kind == "avg" else 1.0)
        if kind == "rms":
            return math.sqrt(signal.integral(begin, end, 2) / (end - begin))
        low, high = signal.extremes(begin, end)
        return {"min": low[0], "max": high[0], "pp": high[0] - low[0], "min_at": low[1], "max_at": high[1]}[kind]

    def find(self) -> float | None:
        """A value at a time or at a crossing."""
        signal, time = self.signal(self.next()), self.moment()
        return None if time is None else self.value(signal, time)

    def value(self, signal: Signal, time: float) -> float:
        """The value at a time."""
        return float(signal.at(np.array([time]))[0])

    def derivative(self) -> float | None:
        """A slope at a time or at a crossing."""
        signal, time = self.signal(self.next()), self.moment()
        return None if time is None else signal.slope(time)

    def moment(self) -> float | None:
        """The time given by AT= or WHEN."""
        at = self.options("at").get("at")
        if at is not None:
            return self.time(at)
        if self.next().lower() != "when":
            raise self.wrong("FIND and DERIV need AT= or WHEN")
        return self.when()

    def when(self) -> float | None:
        """The time at which two quantities are equal, or one equals a number."""
        first, equals, second = self.next().rpartition("=")
        if not equals:
            raise self.wrong("WHEN needs quantity=value")
        return self.meeting(first, second)

    def crossing(self, signal: Signal, first: str, second: str, *, level: float = math.nan) -> float | None:
        """The crossing selected by the options, at which ``first`` equals ``second``, a ``level`` if it is a number."""
        last = False
        chosen = self.options("td", "rise", "fall", "cross", "from", "to")
        if self.words and self.words[0].lower() == "last":
            last = bool(self.words.pop(0))
        begin = max([self.time(chosen[word]) for word in ("td", "from") if word in chosen], default=self.begin)
        end = self.time(chosen["to"]) if "to" in chosen else self.stop
        found = signal.crossings(begin, end)
        which, way = "1", "crosses"
        for key, rising, verb in (("rise", True, "rises to"), ("fall", False, "falls to"), ("cross", None, way)):
            if key in chosen:
                which, way = chosen[key], verb
                found = [(time, rises) for time, rises in found if rising is None or rises is rising]
        number = -1 if last or which.lower() == "last" else int(self.number(which)) - 1
        if -len(found) <= number < len(found):
            return found[number][0]
        self.why = f"{first} {way} {second} {len(found)} time{'s' * (len(found) > 1)}, not {which}"
        if not found:
            self.why = f"{first} never {way} {second}"
            if level == level and begin < end:
                (low, _), (high, _) = signal.extremes(begin, end)
                self.why += f": its maximum is {high + level:g}" if high < 0.0 else ""
                self.why += f": its minimum is {low + level:g}" if low > 0.0 else ""
        return None

    def edge(self) -> float | None:
        """The time of TRIG or TARG."""
        at = self.options("at").get("at")
        if at is not None:
            return self.time(at)
        quantity, equals, level = self.next().rpartition("=")
        if not equals:
            quantity, level = level, self.options("val").get("val", "")
        if not level:
            raise self.wrong("TRIG and TARG need VAL=")
        return self.meeting(quantity, level)

    def meeting(self, first: str, second: str) -> float | None:
        """The crossing at which two quantities are equal, or one equals a number."""
        if "(" in second:
            return self.crossing(self.signal("{" + f"{first}-({second})" + "}"), first, second)
        level = self.number(second)
        return self.crossing(self.signal(first, level), first, second, level=level)

    def edges(self) -> tuple[float | None, float | None]:
        """The times of TRIG and TARG."""
        begin = self.edge()
        if self.next().lower() != "targ":
            raise self.wrong("TRIG needs TARG")
        return begin, self.edge()

    def delay(self) -> float | None:
        """From TRIG to TARG."""
        begin, end = self.edges()
        return None if begin is None or end is None else end - begin


class _Unknown(Signal):
    """A signal of a run that does not exist yet."""

    def __init__(self) -> None:
        """No data."""

    def at(self, times: np.ndarray) -> np.ndarray:
        """Ones (n,)."""
        return np.ones(times.size)

    def slope(self, time: float) -> float:
        """One."""
        return 1.0

    def crossings(self, begin: float, end: float) -> list[tuple[float, bool]]:
        """None."""
        return []

    def extremes(self, begin: float, end: float) -> tuple[tuple[float, float], tuple[float, float]]:
        """One, at the beginning."""
        return (1.0, begin), (1.0, begin)

    def integral(self, begin: float, end: float, power: int = 1) -> float:
        """One."""
        return 1.0


class OverTime(Words):
    """Parser of quantities over time."""

    @abstractmethod
    def of(self, probe: Probe | Formula, level: float) -> Signal:
        """The signal of a probe, less a level."""

    def signal(self, text: str, level: float = 0.0) -> Signal:
        """The signal of a quantity or a formula of several, less a level."""
        formula = "{" not in text and _QUANTITY.fullmatch(text) is None
        try:
            probes = parse_probes("{" + text.strip("'\"") + "}" if formula else text, self.circuit)
        except UsageError as error:
            raise self.wrong(str(error)) from None
        if len(probes) != 1:
            raise self.wrong(f"{text!r} is not one quantity")
        return self.of(probes[0], level)


class Reader(OverTime):
    """Parser and evaluator of one measurement of a run."""

    def __init__(self, result: TransientResult, text: str, names: Mapping[str, float], last: LastInterval) -> None:
        super().__init__(result.circuit, (float(result.times[0]), result.stop), text, names)
        self.result, self.last = result, last

    def of(self, probe: Probe | Formula, level: float) -> Signal:
        """The signal of a quantity, less a level."""
        return Signal(self.result, probe, self.names, level, self.last)


class _Checker(OverTime):
    """Parser of a measurement before its run; ``unknown`` are names whose values only the run gives."""

    def __init__(
        self, circuit: Circuit, shown: tuple[float, float], text: str, names: Mapping[str, float], unknown: set[str]
    ) -> None:
        super().__init__(circuit, shown, text, names)
        self.unknown = unknown

    def of(self, probe: Probe | Formula, level: float) -> Signal:
        """A placeholder signal."""
        return _Unknown()

    def _depends(self, text: str) -> bool:
        return not self.unknown.isdisjoint(re.findall(r"\w+", text.lower()))

    def number(self, text: str) -> float:
        """One, where it depends on an unknown name."""
        return 1.0 if self._depends(text) else super().number(text)

    def time(self, text: str) -> float:
        """A time within the run; nan where it depends on an unknown name."""
        return math.nan if self._depends(text) else super().time(text)


def check_measurements(
    circuit: Circuit,
    shown: tuple[float, float],
    texts: Sequence[str],
    names: Mapping[str, float],
    varied: Iterable[str] = (),
) -> None:
    """Refuse measurements that no run of a circuit could have, before the run.

    Parameters
    ----------
    circuit, shown
        See `Words`.
    texts, names
        See `measure_all`.
    varied : iterable of str
        Names whose values vary from run to run.

    Raises
    ------
    UsageError
        As `measure`.
    """
    unknown = {name.lower() for name in varied}
    for text in after_others(texts):
        unknown.add(_Checker(circuit, shown, text, names, unknown).measurement().name.lower())


def check_asked(
    deck: Deck, circuit: Circuit, shown: tuple[float, float], texts: Sequence[str], varied: Sequence[str] = ()
) -> None:
    """`check_measurements` of those that are not of the deck, whose own ones they may read.

    Parameters
    ----------
    varied : sequence of str
        Names that vary from run to run; parameters of the deck then may depend on them.
    """
    own = measurements_of(deck, "tran")
    names = {} if varied else lowered(deck)
    unknown = [*varied, *(deck.parameters if varied else ()), *(name_and_words(text)[0] for text in own)]
    check_measurements(circuit, shown, [text for text in texts if text not in own], names, unknown)
