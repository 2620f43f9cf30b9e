"""Values of elements that are evaluated in each call: expressions, time functions, models of passive elements."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from circuitsim.circuit.elements import AFFINE_CURRENT, RESISTOR
from circuitsim.circuit.laws import Law, Quantity, VoltageControl
from circuitsim.netlist import physical
from circuitsim.netlist.attributes import checked, percent, positive
from circuitsim.netlist.deviations import SIGMAS, Distribution
from circuitsim.netlist.expression import Code
from circuitsim.netlist.scope import ElementCard, Model, Value, Wave
from circuitsim.netlist.temperature import checked_temperature
from circuitsim.netlist.tokens import CardError
from circuitsim.netlist.values import value_of
from circuitsim.netlist.waveform import checked_waveform
from circuitsim.units import exact, short

if TYPE_CHECKING:
    from circuitsim.netlist.problems import Reporter
    from circuitsim.netlist.protocols import Elaboration, Frame


TOLERANCE_LAWS = {
    "": (Distribution.UNIFORM, 1.0),
    "uniform": (Distribution.UNIFORM, 1.0),
    "gauss": (Distribution.NORMAL, SIGMAS),
}
"""What may stand behind their slash → distribution, and its largest deviation over the percentage stated."""


def warn_of_unread(reporter: Reporter, model: Model, letter: str) -> None:
    """Warn of what a passive element's model states without meaning."""
    unread = physical.unread(letter, (key.text for key, _ in model.pairs), (token.text for token in model.words))
    if unread:
        reporter.warning(
            "unused-parameter",
            f"model {short(model.name)}: not used: {', '.join(short(word, 20) for word in unread[:12])}",
            model.card,
            None,
            "see docs/netlist.md for what such a model has",
            [model.name],
        )


class ElementValues:
    """The values of one elaboration's elements.

    Attributes
    ----------
    elaborator : Elaboration
        Whose calls are being expanded.
    """

    def __init__(self, elaborator: Elaboration) -> None:
        self.elaborator, self.reporter = elaborator, elaborator.reporter
        self.cards: dict[int, dict[str, tuple[int, Value]]] = {}
        """Model card → the numbers that it states, read once."""

    def value(self, frame: Frame, k: int, stated: ElementCard, position: int) -> float:
        """The value of an element that has to be evaluated, at ``position`` of the circuit; zero where it is wrong,
        which is reported.
        """
        elaborator, name, code = self.elaborator, frame.name(k), frame.scope.kind[k]
        draws = elaborator.draws
        before = len(draws.waiting)
        try:
            value, factor = self.one(frame, k, stated, name)
            if value < 0.0 and code == RESISTOR and stated.model is None and not stated.numbers:
                return self.negative(frame, stated, position, name, value)
            value = checked(code, name, value, stated.offset) + 0.0
            self.smell_of_mega(frame, k, stated)
            if stated.multiplier != 1.0:
                m = elaborator.number(stated.multiplier, frame)
                positive(name, "m", m, stated.offset)
                value, factor = (elaborator.scaled(frame, k, number, m) for number in (value, factor))
            if factor != 1.0:
                elaborator.out.factors[position] = factor
            draws.taken(position, name, value, before)
            self.model_tolerances(frame, stated, name, position, value)
            return value
        except CardError as error:
            _name(error, stated, name)
            self.reporter.failure(error, stated.card, [name], frame.callers())
        return 0.0

    def negative(self, frame: Frame, stated: ElementCard, position: int, name: str, value: float) -> float:
        """A negative resistance: a current controlled by its own voltage, for a passive circuit has none."""
        cells = frame.multiplier * self.elaborator.number(stated.multiplier, frame)
        out = self.elaborator.out
        control = VoltageControl(cells / value, out.first[position], out.second[position])
        out.kind[position], out.laws[position] = AFFINE_CURRENT, Law(Quantity.CURRENT, 0.0, (control,), ())
        message = "a negative resistance is read as a controlled source (%s)"
        self.reporter.gather("altered", message, stated.card, stated.offset, name)
        return math.nan

    def model_tolerances(self, frame: Frame, stated: ElementCard, name: str, position: int, value: float) -> None:
        """``DEV=5%`` and ``LOT=5%`` of a passive element's model: of each element, and of all that name the model."""
        model = frame.scope.find_model(stated.model.model.lower()) if stated.model is not None else None
        for key, token in () if model is None else model.pairs:
            word, _, law = key.word.partition("/")
            if model is None or word not in physical.TOLERANCES:
                continue
            amount, draws = percent(token.text), self.elaborator.draws
            if amount is None or law not in TOLERANCE_LAWS:
                raise CardError(
                    "syntax",
                    f"model {short(model.name)}: {short(key.text)}={short(token.text)} is no tolerance",
                    stated.offset,
                    "write DEV=5%, LOT=5% or DEV/GAUSS=2%",
                )
            distribution, sigmas = TOLERANCE_LAWS[law]
            if word == "dev":
                draws.tolerance(position, name, abs(value), sigmas * amount, distribution)
            else:
                label = f"{model.name} (lot)"
                draws.lot(id(model.card), label, position, abs(value), sigmas * amount, distribution)

    def one(self, frame: Frame, k: int, stated: ElementCard, name: str) -> tuple[float, float]:
        """The value of one element (of one of those that ``m`` counts), and its ratio to the value on the card."""
        if isinstance(stated.value, Wave):
            return checked_waveform(self.elaborator.waveform(frame, stated.value), stated.offset), 1.0
        letter = frame.letter(k)
        model = self.model(frame, stated, letter, name)
        value = None if stated.value is None or (model and stated.bare) else self.elaborator.number(stated.value, frame)
        if value is not None and model is None and not stated.numbers:
            return value, 1.0
        own = {word: self.elaborator.number(count.value, frame) for word, count in stated.numbers.items()}
        if "temp" in own:
            checked_temperature(own["temp"], stated.numbers["temp"].offset)
        values = {} if model is None else self.model_values(frame, model, letter)
        if model is not None and value is not None and "r" in self.stepped(model, letter):
            value *= values.pop("r")  # as in PSpice and Xyce
        if value is not None and letter == "R":
            value = checked(RESISTOR, name, value, stated.offset)
            self.warn_of_product(stated, value, values, name)
        try:
            return physical.element_value(letter, value, own, values, self.elaborator.temperatures)
        except ValueError as error:
            raise CardError("range", f"{short(name)}: {error}", stated.offset, "see docs/netlist.md") from None

    def model(self, frame: Frame, stated: ElementCard, letter: str, name: str) -> Model | None:
        """The model that a passive element names; None where the name is a parameter's.

        Raises
        ------
        CardError
            There is none, or it is of another type.
        """
        use = stated.model
        if use is None:
            return None
        model, types = frame.scope.find_model(use.model.lower()), physical.TYPES[letter]
        if model is None:
            if stated.bare:
                return None
            raise CardError(
                "model",
                f"{short(name)}: no model is called {short(use.model)!r}",
                use.offset,
                f"define it: .model {short(use.model)} {types[0]}, or write one value",
            )
        if model.type not in types:
            raise CardError(
                "model",
                f"{short(name)}: model {short(model.name)} is of type {short(model.type)}, not {types[0]}",
                use.offset,
                f"it needs a model of type {types[0]}",
            )
        return model

    def warn_of_product(self, stated: ElementCard, value: float, model: dict[str, float], name: str) -> None:
        """Programs differ on a resistor whose card and model both state a resistance."""
        other, use = model.get("r", model.get("res", 1.0)), stated.model
        if other not in (1.0, value) and use is not None:
            self.reporter.gather(
                "model-value",
                f"card and model {short(use.model)} ({exact(other)} Ω) both state a resistance: the "
                "card's is taken, as in ngspice; Xyce and PSpice multiply them (%s)",
                stated.card,
                use.offset,
                name,
                "leave one of them out",
            )

    def model_values(self, frame: Frame, model: Model, letter: str) -> dict[str, float]:
        """What the card of a passive element's model states, evaluated where it is defined."""
        key = id(model.card)
        if key not in self.cards:
            self.cards[key] = self.read_model(model, letter)
        evaluate, environment = self.elaborator.evaluator.value, frame.defining(model.scope)
        found = {word: evaluate(value, environment) for word, (_, value) in self.cards[key].items()}
        return found | self.stepped(model, letter)

    def stepped(self, model: Model, letter: str) -> dict[str, float]:
        """The parameters of a model that are stepped (``.step RMOD(R) …``)."""
        values = self.elaborator.environment.values
        names = {word: f"{model.name.lower()}:{word}" for word in physical.ACTING[letter]} if values else {}
        return {word: values[name] for word, name in names.items() if name in values}

    def read_model(self, model: Model, letter: str) -> dict[str, tuple[int, Value]]:
        """The numbers of a model card that are read; the others are noted or warned of."""
        found: dict[str, tuple[int, Value]] = {}
        for key, token in model.pairs:
            word = key.word
            if word in physical.ACTING[letter]:
                with self.reporter.at(model.card):
                    found[word] = token.offset, value_of(token, model.card, model.scope)
        warn_of_unread(self.reporter, model, letter)
        return found

    def smell_of_mega(self, frame: Frame, k: int, stated: ElementCard) -> None:
        """A resistance that is a parameter whose number ends in a capital M: milli, where mega may be meant."""
        value = stated.value
        if frame.scope.kind[k] != RESISTOR or not isinstance(value, Code) or len(value.program) != 1 or not value.names:
            return
        owner = frame.environment.owner(next(iter(value.names)))
        found = owner.binding(next(iter(value.names))) if owner is not None else None
        if found is not None and isinstance(found[0], Code) and found[0].mega:
            digits = found[0].mega.split("M")[0]
            self.reporter.warning(
                "mega",
                f"{short(found[0].mega)} is {digits} milliohm on {short(frame.scope.names[k])}: M is milli in SPICE",
                found[0].card,
                found[0].start,
                f"write {digits}MEG for mega, {digits}m if milli is meant",
            )


def _name(error: CardError, stated: ElementCard, name: str) -> None:
    """A bare word that is no parameter is an error of the value it stands for."""
    value, at = stated.value, stated.offset
    bare = isinstance(value, Code) and error.code is value and stated.card.text[at - 1] not in "{'"
    if error.kind == "parameter" and bare and isinstance(value, Code) and error.offset == at:
        word = next(iter(value.names))
        error.message = f"{short(name)}: {short(word)!r} is neither a number nor a parameter nor a model"
        error.hint = f"write a value such as 4.7k, or define it: .param {short(word)}=…"
