"""Analysis cards: ``.op .dc .step .temp .print .save``, evaluated after all parameters and elements."""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Sequence
from typing import Any

from circuitsim.circuit import Circuit
from circuitsim.netlist import limits
from circuitsim.netlist.cards import Card
from circuitsim.netlist.deck import (
    TEMPERATURE,
    Analysis,
    DcRange,
    DcSweep,
    OperatingPointRequest,
    Output,
    ParameterStep,
    Temperature,
    TemperatureStep,
)
from circuitsim.netlist.evaluate import Environment, Evaluator
from circuitsim.netlist.expression import ExpressionError
from circuitsim.netlist.problems import Reporter
from circuitsim.netlist.scope import Scope
from circuitsim.netlist.temperature import Temperatures, checked_temperature
from circuitsim.netlist.tokens import MARK, WORD, CardError, Token, tokens
from circuitsim.netlist.values import value_of
from circuitsim.units import exact, short

_REQUEST = re.compile(r"[^\s(]+(?:\([^()]*\))?")


class Analyses:
    """Evaluates analysis cards against the elaborated circuit."""

    def __init__(
        self, reporter: Reporter, scope: Scope, environment: Environment, circuit: Circuit, temperatures: Temperatures
    ) -> None:
        self.reporter, self.scope, self.environment, self.circuit = reporter, scope, environment, circuit
        self.evaluator = Evaluator(temperatures.constants())
        self._elements: dict[str, int] | None = None

    def read(self, cards: list[Card]) -> tuple[Analysis, ...]:
        """All requests of the deck; what is wrong with one is reported."""
        found: list[Analysis] = []
        for card in cards:
            try:
                found.append(self.one(card))
            except CardError as error:
                self.reporter.error(error.kind, error.message, card, error.offset, error.hint)
            except ExpressionError as error:
                self.reporter.expression(error, card, (), ())
        return tuple(found)

    def one(self, card: Card) -> Analysis:
        start = card.start()
        word = card.text[start : start + 10].split()[0].split("(")[0].lower()
        place = card.place(start)
        if word == ".op":
            return OperatingPointRequest(place)
        if word in (".print", ".save"):
            return Output(word[1:], tuple(_REQUEST.findall(card.text, start + len(word))), place)
        words = [t for t in tokens(card, start + len(word)) if t.kind != MARK]
        if word == ".temp":
            return Temperature(self.temperatures(card, words), place)
        if word == ".dc":
            return DcSweep(self.dc(card, words), place)
        if words and words[0].text.lower() == TEMPERATURE:
            return TemperatureStep(self.temperature_step(card, words), place)
        return ParameterStep(self.step(card, words), place)

    def number(self, card: Card, token: Token) -> float:
        value = value_of(token, card, self.scope)
        return value if isinstance(value, float) else self.evaluator.value(value, self.environment)

    def temperatures(self, card: Card, words: list[Token]) -> tuple[float, ...]:
        """The values of ``.temp``, °C."""
        if not words:
            raise CardError("syntax", ".temp needs a temperature", max(len(card.text) - 1, 0), ".temp 27")
        return tuple(checked_temperature(self.number(card, t), t.offset) for t in words)

    def dc(self, card: Card, words: list[Token]) -> tuple[DcRange, ...]:
        """``.dc V1 start stop step [V2 start stop step]``."""
        if len(words) not in (4, 8):
            at = words[8].offset if len(words) > 8 else max(len(card.text) - 1, 0)
            raise CardError("syntax", ".dc needs a source, start, stop and step, for one source or two", at,
                            ".dc V1 0 5 0.1")  # fmt: skip
        sweeps = []
        for k in range(0, len(words), 4):
            name = words[k].text
            element = self.element(name)
            if element not in ("voltage source", "current source", "resistor") and name.lower() != TEMPERATURE:
                what = "which has no value to sweep" if element else "which is not in the circuit"
                hint = "sweep a voltage source, a current source or a resistor"
                raise CardError("analysis", f".dc sweeps {short(name)}, {what}", words[k].offset, hint)
            sweeps.append(self.sweep(card, name, words[k], words[k + 1 : k + 4]))
            if name.lower() == TEMPERATURE:
                checked_temperature(min(sweeps[-1].start, sweeps[-1].stop), words[k].offset)
        if len(sweeps) == 2 and sweeps[0].name.lower() == sweeps[1].name.lower():
            twice = f".dc sweeps {short(sweeps[0].name)} twice"
            raise CardError("analysis", twice, words[4].offset, "name two sources")
        if math.prod(len(s.values) for s in sweeps) > limits.SWEEP_POINTS:
            many = f".dc has more than {limits.SWEEP_POINTS:,} points"
            raise CardError("limit", many, words[0].offset, "take a larger step")
        low = [s.start for s in sweeps if self.element(s.name) == "resistor" and min(s.start, s.stop) < 0]
        if low:
            raise CardError("range", ".dc sweeps a resistance below zero", words[0].offset, "resistances are positive")
        return tuple(sweeps)

    def element(self, name: str) -> str:
        """The kind of the element called ``name``; empty if there is none."""
        return self.circuit[name].kind if name in self.circuit else ""

    def step(self, card: Card, words: list[Token]) -> DcRange:
        """``.step param NAME start stop step`` or ``.step param NAME list v1 v2 …``."""
        if not words or words[0].text.lower() not in ("param", "params"):
            at = words[0].offset if words else max(len(card.text) - 1, 0)
            raise CardError("analysis", ".step steps a parameter: .step param NAME …", at, "to sweep a source use .dc")
        if len(words) < 3 or words[1].kind != WORD:
            raise CardError("syntax", ".step param needs a name and values", max(len(card.text) - 1, 0),
                            ".step param NAME start stop step, or NAME list v1 v2 …")  # fmt: skip
        name = words[1]
        if name.text.lower() not in self.scope.parameters:
            raise CardError("parameter", f".step: no parameter is called {short(name.text)!r}", name.offset,
                            f"define it: .param {short(name.text)}=…")  # fmt: skip
        return self.stepped(card, words[1:])

    def temperature_step(self, card: Card, words: list[Token]) -> DcRange:
        """``.step temp start stop step`` or ``.step temp list t1 t2 …``."""
        found = self.stepped(card, words)
        for value in (min(found.start, found.stop), *(found.values if found.step == 0.0 else ())):
            checked_temperature(value, words[0].offset)
        return found

    def stepped(self, card: Card, words: list[Token]) -> DcRange:
        """The values of ``NAME start stop step`` or ``NAME list v1 v2 …``."""
        words = [words[0], *words]
        name = words[1]
        if words[2].text.lower() != "list":
            if len(words) != 5:
                at = words[5].offset if len(words) > 5 else max(len(card.text) - 1, 0)
                raise CardError("syntax", ".step param needs start, stop and step", at,
                                ".step param NAME start stop step, or NAME list v1 v2 …")  # fmt: skip
            return self.sweep(card, name.text, name, words[2:5])
        if len(words) == 3:
            raise CardError("syntax", ".step list has no values", max(len(card.text) - 1, 0), "list v1 v2 …")
        if len(words) - 3 > limits.SWEEP_POINTS:
            raise CardError("limit", f".step has more than {limits.SWEEP_POINTS:,} points", name.offset, "list fewer")
        values = array("d", [self.number(card, t) for t in words[3:]])
        return DcRange(name.text, values[0], values[-1], 0.0, values, card.place(name.offset))

    def sweep(self, card: Card, name: str, at: Token, words: list[Token]) -> DcRange:
        start, stop, step = (self.number(card, t) for t in words)
        try:
            values = points(start, stop, step)
        except ValueError as error:
            hint = "the step leads from start to stop"
            raise CardError("analysis", f"{short(name)}: {error}", words[2].offset, hint) from None
        return DcRange(name, start, stop, step, values, card.place(at.offset))


class Points(Sequence[float]):
    """Equidistant values, computed at access: no cost of reading a sweep of a million points."""

    def __init__(self, start: float, stop: float, step: float, count: int) -> None:
        self._start, self._step, self._count = start, step, count
        largest = max(abs(start), abs(stop))
        self._digits = 14 - math.floor(math.log10(largest)) if largest else 0
        self._stop = stop if abs(self._at(count - 1) - stop) <= 1e-9 * abs(step) else self._at(count - 1)

    def _at(self, k: int) -> float:
        # In quarters, which are exact, so that a sweep across the whole range of doubles does not overflow.
        value = 4 * (self._start / 4 + k * (self._step / 4))
        # To 15 digits of the larger end: 3 × 0.1 is 0.3 as a person writes it, −0.9 + 9 × 0.1 is 0.
        return round(value, self._digits) + 0.0 if k and abs(self._digits) < 290 else value

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, item: Any) -> Any:
        if isinstance(item, slice):
            return [self[k] for k in range(*item.indices(self._count))]
        k = range(self._count)[item]
        return self._stop if k == self._count - 1 else self._at(k)

    def __repr__(self) -> str:
        return f"<{self._count} points from {exact(self[0])} to {exact(self[-1])}>"


def points(start: float, stop: float, step: float) -> Sequence[float]:
    """``start``, ``start + step`` … as far as ``stop``, which belongs to them where a step ends on it.

    Raises
    ------
    ValueError
        A step of zero or of the wrong sign, or too many points; the message names the cause.
    """
    if step == 0:
        raise ValueError("the step is zero")
    if start == stop:
        return Points(start, stop, step, 1)
    steps = stop / step - start / step  # the difference stop − start may overflow
    if steps < 0:
        raise ValueError(f"a step of {exact(step)} never leads from {exact(start)} to {exact(stop)}")
    if not steps < limits.SWEEP_POINTS:
        raise ValueError(f"more than {limits.SWEEP_POINTS:,} points")
    return Points(start, stop, step, math.floor(steps + 1e-9) + 1)
