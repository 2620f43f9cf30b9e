"""What ``.dc`` and ``.step`` vary and through which values, in the forms of ngspice, LTspice, Xyce and PSpice.

    [LIN|DEC|OCT] [PARAM] NAME start stop step     NAME LIST v1 v2 …     DATA=table

``NAME`` is an element, its own parameter (``R1:r``), a parameter of the deck, of a model (``DMOD:ron``, ``DMOD(ron)``),
or ``TEMP``.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence

from circuitsim.circuit import ELEMENTS, Circuit
from circuitsim.netlist import limits
from circuitsim.netlist.cards import Card
from circuitsim.netlist.deck import DcRange, Target
from circuitsim.netlist.physical import ACTING, TYPES
from circuitsim.netlist.points import logarithmic, points
from circuitsim.netlist.scope import Model, Scope
from circuitsim.netlist.tokens import MARK, WORD, CardError, Token
from circuitsim.units import short

FORMS = "NAME start stop step, DEC NAME start stop points, NAME LIST v1 v2 …, or DATA=table"
PASSIVE = ("R", "L", "C")
"""Letters of the elements whose models' parameters may be stepped."""

PARAMETER_WORDS = ("param", "params")
TEMPERATURE_WORDS = ("temp", "temper", "temperature")


BASES = {"lin": 0.0, "dec": 10.0, "oct": 2.0}
"""Words for how the values of a range are spaced → what a number of points leads through (0: a step)."""

Varied = tuple[Target, str, tuple[str, ...]]
"""The sort of what varies, its name as in the deck, and the names that vary together (none: the name alone)."""


def merged(found: list[Token]) -> list[Token]:
    """The words among ``found``; ``DMOD(ron)`` is one word, ``DMOD:ron``, other marks are left out."""
    words: list[Token] = []
    k = 0
    while k < len(found):
        token, behind = found[k], found[k + 1 : k + 4]
        closed = len(behind) == 3 and behind[0].text == "(" and behind[1].kind == WORD and behind[2].text == ")"
        if token.kind == WORD and closed and behind[0].offset == token.end and not token.numeric:
            words.append(Token(f"{token.text}:{behind[1].text}", token.offset, WORD, behind[2].end))
            k += 4
            continue
        if token.kind == MARK and token.text == "=" and (not words or words[-1].word != "data"):
            raise CardError("syntax", "'=' does not belong here", token.offset)
        if token.kind != MARK:
            words.append(token)
        k += 1
    return words


def steps(model: Model, parameter: str) -> bool:
    """Whether the elements of a resistor's, capacitor's or inductor's model follow this parameter."""
    letter = next((letter for letter in PASSIVE if model.type in TYPES[letter]), None)
    return letter is not None and parameter.lower() in ACTING[letter]


class Ranges:
    """Reads the ranges of a card from its words, one after the other.

    Parameters
    ----------
    card : Card
        For the places of errors.
    word : str
        ``.dc`` or ``.step``, for messages.
    words : list of Token
        As `merged` gives them; those that are read are taken.
    number : callable
        The value of a token.
    circuit : Circuit
    scope : Scope
        The deck.
    """

    def __init__(
        self,
        card: Card,
        word: str,
        words: list[Token],
        number: Callable[[Token], float],
        circuit: Circuit,
        scope: Scope,
    ) -> None:
        self.card, self.word, self.words, self.number = card, word, words, number
        self.circuit, self.scope = circuit, scope

    def scale(self) -> str:
        """Take a word that names a scale."""
        found = bool(self.words) and self.words[0].kind == WORD and self.words[0].word in BASES
        return self.words.pop(0).word if found else ""

    def one(self) -> DcRange:
        """Take one name and its values."""
        scale, words = self.scale(), self.words
        parameter = bool(words) and words[0].word in PARAMETER_WORDS
        del words[:parameter]
        # PSpice and LTspice write the type of the model before it: .step RES RMOD(R) 1 2 .1
        typed = not parameter and len(words) > 1 and ":" in words[1].text and ":" not in words[0].text
        kind = words.pop(0) if typed else None
        if not words or words[0].kind != WORD:
            raise CardError("syntax", f"{self.word} needs a name and values", self.card.last, f"{self.word} {FORMS}")
        token = words.pop(0)
        target, name, elements = self.meant(token, parameter, kind)
        at = words[0].offset if words else self.card.last
        second = self.scale()
        if scale and second:
            raise CardError("syntax", f"{self.word}: {second!r} is the second scale", at, "leave one of them out")
        if words and words[0].word == "list":
            values = self.listed()
            start, stop, step = values[0], values[-1], 0.0
        else:
            values, start, stop, step = self.spaced(BASES[second or scale or "lin"], token.text.partition(":")[0])
        return DcRange(name, start, stop, step, values, self.card.place(token.offset), target, elements)

    def listed(self) -> Sequence[float]:
        """Take ``LIST v1 v2 …``."""
        words = self.words[1:]
        if not words:
            raise CardError("syntax", f"{self.word} list has no values", self.card.last, "list v1 v2 …")
        if len(words) > limits.SWEEP_POINTS:
            many = f"{self.word} has more than {limits.SWEEP_POINTS:,} points"
            raise CardError("limit", many, words[0].offset, "list fewer")
        self.words.clear()
        return array("d", [self.number(token) for token in words])

    def spaced(self, base: float, name: str) -> tuple[Sequence[float], float, float, float]:
        """Take ``start stop step``, or for decades and octaves ``start stop points``."""
        words = self.words[:3]
        if len(words) < 3:
            last = "the number of points" if base else "step"
            message = f"{self.word} {short(name)} needs start, stop and {last}"
            raise CardError("syntax", message, self.card.last, f"{self.word} {FORMS}")
        del self.words[:3]
        start, stop, step = (self.number(token) for token in words)
        try:
            if not base:
                return points(start, stop, step), start, stop, step
            return logarithmic(start, stop, step, base), start, stop, 0.0
        except ValueError as error:
            hint = "write start, stop, points" if base else "the step leads from start to stop"
            raise CardError("analysis", f"{short(name)}: {error}", words[2].offset, hint) from None

    def meant(self, token: Token, parameter: bool = False, kind: Token | None = None) -> Varied:
        """What a name means: ``R1``, ``R1:r``, a parameter of the deck (which ``PARAM`` says) or of a model, whose type
        may stand before it, or the temperature.

        Raises
        ------
        CardError
            Nothing of that name varies.
        """
        name, _, own = token.text.partition(":")
        scope, circuit, at = self.scope, self.circuit, token.offset
        if kind is not None:
            model = scope.find_model(name.lower())
            if model is None or model.type != kind.text.upper():
                message = f"{self.word}: {short(kind.text)!r} is not the type of a model {short(name)!r}"
                raise CardError("syntax", message, kind.offset, f"{self.word} {FORMS}")
        if own:
            return self.own(name, own, at)
        if name in circuit and not parameter:
            if not ELEMENTS[circuit.columns()[0][circuit.element_index(name)]].parameter:
                message = f"{self.word} sweeps {short(name)}, which has no value to sweep"
                raise CardError("analysis", message, at, "sweep a source, a resistor or a parameter")
            return Target.ELEMENT, name, ()
        if name.lower() in scope.parameters:
            return Target.PARAMETER, name, ()
        if parameter:
            message = f"{self.word}: no parameter is called {short(name)!r}"
            raise CardError("parameter", message, at, f"define it: .param {short(name)}=…")
        if name.lower() in TEMPERATURE_WORDS:
            return Target.TEMPERATURE, "temp", ()
        message = f"{self.word} sweeps {short(name)}, which is not in the circuit"
        raise CardError("analysis", message, at, "name a source, a resistor or a parameter")

    def own(self, name: str, parameter: str, at: int) -> Varied:
        """``R1:r``, ``D1:vfwd``, or the parameter of a model, which varies in all its elements."""
        circuit, word = self.circuit, f"{name}:{parameter}"
        if name in circuit:
            row = ELEMENTS[circuit.columns()[0][circuit.element_index(name)]]
            if row.parameter and parameter.lower() in (*row.keywords, row.letter.lower(), row.parameter, "dc", "dcv0"):
                return Target.ELEMENT, name, ()
            if circuit.device_parameter(f"{name}.{parameter}") is not None:
                return Target.ELEMENT, f"{name}.{parameter}", ()
            message = f"{self.word}: {short(name)} has no parameter {short(parameter)!r} to vary"
            raise CardError("analysis", message, at, f"vary its value: {self.word} {short(name)} …")
        model = self.scope.find_model(name.lower())
        if model is not None and steps(model, parameter):
            return Target.PARAMETER, word, ()
        elements = tuple(
            f"{circuit.names[k]}.{parameter}"
            for k, device in circuit.devices.items()
            if device.label.lower() == name.lower() and device.model.parameter_called(parameter) is not None
        )
        if not elements:
            message = f"{self.word}: no element takes {short(parameter)!r} from a model {short(name)!r}"
            raise CardError("analysis", message, at, "name an element or a parameter of the deck")
        return Target.ELEMENT, word, elements
