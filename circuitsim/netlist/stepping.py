"""What ``.dc`` and ``.step`` vary and through which values, in the forms of ngspice, LTspice, Xyce and PSpice.

    [LIN|DEC|OCT] [PARAM] NAME start stop step     NAME LIST v1 v2 …     DATA=table

``NAME`` is an element, its own parameter (``R1:r``), a parameter of the deck, of a model (``DMOD:ron``, ``DMOD(ron)``),
or ``TEMP``.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from enum import Enum
from typing import NamedTuple

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


class Scale(Enum):
    """How the values of a range are spaced."""

    LIN = "lin"
    DEC = "dec"
    OCT = "oct"

    @classmethod
    def of(cls, word: str) -> Scale | None:
        """The scale that ``word`` names."""
        return next((scale for scale in cls if scale.value == word.lower()), None)


class Named(NamedTuple):
    """The name of what varies: its token, the parameter behind it (``R1:r``), whether the card says ``PARAM``, and the
    type of the model that stands before it."""

    token: Token
    own: str
    parameter: bool
    type: Token | None = None


def merged(found: list[Token]) -> list[Token]:
    """The words among ``found``; ``DMOD(ron)`` is one word, ``DMOD:ron``, other marks are left out."""
    words: list[Token] = []
    k = 0
    while k < len(found):
        token, behind = found[k], found[k + 1 : k + 4]
        closed = len(behind) == 3 and behind[0].text == "(" and behind[1].kind == WORD and behind[2].text == ")"
        if token.kind == WORD and closed and behind[0].offset == token.end and not _numeric(token):
            words.append(Token(f"{token.text}:{behind[1].text}", token.offset, WORD, behind[2].end))
            k += 4
            continue
        if token.kind == MARK and token.text == "=" and (not words or words[-1].word != "data"):
            raise CardError("syntax", "'=' does not belong here", token.offset)
        if token.kind != MARK:
            words.append(token)
        k += 1
    return words


def _numeric(token: Token) -> bool:
    return token.kind != WORD or token.numeric


class Ranges:
    """Reads the ranges of a card from its words, one after the other.

    Parameters
    ----------
    card : Card
        For the places of errors.
    word : str
        ``.dc`` or ``.step``, for messages.
    words : list of Token
        As `merged` gives them.
    number : callable
        The value of a token.
    """

    def __init__(self, card: Card, word: str, words: list[Token], number: Callable[[Token], float]) -> None:
        self.card, self.word, self.words, self.number = card, word, words, number
        self.at = 0

    def scale(self) -> Scale | None:
        """Take a word that names a scale."""
        if self.at < len(self.words) and self.words[self.at].kind == WORD:
            found = Scale.of(self.words[self.at].text)
            self.at += found is not None
            return found
        return None

    def one(self, resolve: Callable[[Named], tuple[Target, str, tuple[str, ...]]]) -> DcRange:
        """Take one name and its values."""
        scale = self.scale()
        named = self.named()
        target, name, elements = resolve(named)
        at = self.words[self.at].offset if self.at < len(self.words) else self.card.last
        second = self.scale()
        if scale is not None and second is not None:
            raise CardError("syntax", f"{self.word}: {second.value!r} is the second scale", at, "leave one of them out")
        scale = second or scale or Scale.LIN
        if self.at < len(self.words) and self.words[self.at].word == "list":
            values, start, stop, step = self.listed()
        else:
            values, start, stop, step = self.spaced(scale, named)
        return DcRange(name, start, stop, step, values, self.card.place(named.token.offset), target, elements)

    def named(self) -> Named:
        """Take the name of what varies."""
        parameter = self.at < len(self.words) and self.words[self.at].word in PARAMETER_WORDS
        self.at += parameter
        kind: Token | None = None
        if not parameter:
            # PSpice and LTspice write the type of the model before it: .step RES RMOD(R) 1 2 .1
            behind = self.words[self.at + 1 : self.at + 2]
            if behind and ":" in behind[0].text and ":" not in self.words[self.at].text:
                kind = self.words[self.at]
                self.at += 1
            scale = self.scale()
            if scale is not None:
                self.at -= 1
        if self.at >= len(self.words) or self.words[self.at].kind != WORD:
            raise CardError("syntax", f"{self.word} needs a name and values", self.card.last, f"{self.word} {FORMS}")
        token = self.words[self.at]
        self.at += 1
        name, _, own = token.text.partition(":")
        return Named(Token(name, token.offset, WORD, token.end), own, parameter, kind)

    def listed(self) -> tuple[Sequence[float], float, float, float]:
        """Take ``LIST v1 v2 …``."""
        self.at += 1
        words = self.words[self.at :]
        if not words:
            raise CardError("syntax", f"{self.word} list has no values", self.card.last, "list v1 v2 …")
        if len(words) > limits.SWEEP_POINTS:
            many = f"{self.word} has more than {limits.SWEEP_POINTS:,} points"
            raise CardError("limit", many, words[0].offset, "list fewer")
        self.at = len(self.words)
        values = array("d", [self.number(token) for token in words])
        return values, values[0], values[-1], 0.0

    def spaced(self, scale: Scale, named: Named) -> tuple[Sequence[float], float, float, float]:
        """Take ``start stop step``, or for decades and octaves ``start stop points``."""
        words = self.words[self.at : self.at + 3]
        if len(words) < 3:
            last = "step" if scale is Scale.LIN else "the number of points"
            raise CardError(
                "syntax",
                f"{self.word} {short(named.token.text)} needs start, stop and {last}",
                self.card.last,
                f"{self.word} {FORMS}",
            )
        self.at += 3
        start, stop, step = (self.number(token) for token in words)
        try:
            if scale is Scale.LIN:
                return points(start, stop, step), start, stop, step
            return logarithmic(start, stop, step, 10.0 if scale is Scale.DEC else 2.0), start, stop, 0.0
        except ValueError as error:
            hint = "the step leads from start to stop" if scale is Scale.LIN else "write start, stop, points"
            raise CardError("analysis", f"{short(named.token.text)}: {error}", words[2].offset, hint) from None


def steps(model: Model, parameter: str) -> bool:
    """Whether the elements of a resistor's, capacitor's or inductor's model follow this parameter."""
    letter = next((letter for letter in PASSIVE if model.type in TYPES[letter]), None)
    return letter is not None and parameter.lower() in ACTING[letter]


class Resolver:
    """Finds what the name on a ``.dc`` or ``.step`` card means."""

    def __init__(self, word: str, circuit: Circuit, scope: Scope) -> None:
        self.word, self.circuit, self.scope = word, circuit, scope

    def __call__(self, named: Named) -> tuple[Target, str, tuple[str, ...]]:
        """The sort, the name as in the deck, and the names that vary together (none: the name alone).

        Raises
        ------
        CardError
            Nothing of that name varies.
        """
        name, at = named.token.text, named.token.offset
        if named.type is not None:
            model = self.scope.find_model(name.lower())
            if model is None or model.type != named.type.text.upper():
                message = f"{self.word}: {short(named.type.text)!r} is not the type of a model {short(name)!r}"
                raise CardError("syntax", message, named.type.offset, f"{self.word} {FORMS}")
        if named.own:
            return self.own(name, named.own, at)
        if not named.parameter:
            if name in self.circuit:
                return self.element(name, at)
            if name.lower() in TEMPERATURE_WORDS and name.lower() not in self.scope.parameters:
                return Target.TEMPERATURE, "temp", ()
        if name.lower() in self.scope.parameters:
            return Target.PARAMETER, name, ()
        if named.parameter:
            raise CardError(
                "parameter",
                f"{self.word}: no parameter is called {short(name)!r}",
                at,
                f"define it: .param {short(name)}=…",
            )
        raise CardError(
            "analysis",
            f"{self.word} sweeps {short(name)}, which is not in the circuit",
            at,
            "name a source, a resistor or a parameter",
        )

    def element(self, name: str, at: int) -> tuple[Target, str, tuple[str, ...]]:
        """An element with a value."""
        index = self.circuit.element_index(name)
        row = ELEMENTS[self.circuit.columns()[0][index]]
        if not row.parameter:
            raise CardError(
                "analysis",
                f"{self.word} sweeps {short(name)}, which has no value to sweep",
                at,
                "sweep a source, a resistor or a parameter",
            )
        return Target.ELEMENT, name, ()

    def own(self, name: str, parameter: str, at: int) -> tuple[Target, str, tuple[str, ...]]:
        """``R1:r``, ``D1:vfwd``, or the parameter of a model, which varies in all its elements."""
        circuit, word = self.circuit, f"{name}:{parameter}"
        if name in circuit:
            index = circuit.element_index(name)
            row = ELEMENTS[circuit.columns()[0][index]]
            if row.parameter and parameter.lower() in (*row.keywords, row.letter.lower(), row.parameter, "dc", "dcv0"):
                return Target.ELEMENT, name, ()
            if circuit.device_parameter(f"{name}.{parameter}") is not None:
                return Target.ELEMENT, f"{name}.{parameter}", ()
            raise CardError(
                "analysis",
                f"{self.word}: {short(name)} has no parameter {short(parameter)!r} to vary",
                at,
                f"vary its value: {self.word} {short(name)} …",
            )
        model = self.scope.find_model(name.lower())
        if model is not None and steps(model, parameter):
            return Target.PARAMETER, word, ()
        elements = tuple(
            f"{circuit.names[k]}.{parameter}"
            for k, device in circuit.devices.items()
            if device.label.lower() == name.lower() and device.model.parameter_called(parameter) is not None
        )
        if not elements:
            raise CardError(
                "analysis",
                f"{self.word}: no element takes {short(parameter)!r} from a model {short(name)!r}",
                at,
                "name an element or a parameter of the deck",
            )
        return Target.ELEMENT, word, elements
