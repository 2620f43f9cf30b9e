"""Cards of sources that others may control: E, F, G, H and B.

After the two nodes comes a formula (``V=``, ``I=``, ``VALUE=``, ``TABLE …``), which extends to the next ``name=``, or
the controls and a gain, or ``POLY(n)``. The kind of source is decided when the deck is expanded
(`circuitsim.netlist.controlled_laws`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import chain, combinations_with_replacement, islice, repeat
from itertools import count as count_from
from typing import Any, NamedTuple

from circuitsim.circuit.elements import (
    AFFINE_CURRENT,
    AFFINE_VOLTAGE,
    BY_CURRENT_F,
    BY_CURRENT_H,
    BY_VOLTAGE_E,
    BY_VOLTAGE_G,
    CURRENT,
    NULLOR,
    RESISTOR,
    VOLTAGE,
)
from circuitsim.netlist import dialect
from circuitsim.netlist.cards import MARK, WORD, Card, CardError, Place, Token, delimited, fields, tokens
from circuitsim.netlist.expression import CALL, NUMBER, SIGNAL, Code, Node, Signal
from circuitsim.netlist.parts import ElementReader
from circuitsim.netlist.scope import ControlledSource, Count, ElementCard, Value, constant, formula, of_token
from circuitsim.units import short

LETTERS = frozenset("efghb")

_PLAIN = {"e": BY_VOLTAGE_E, "f": BY_CURRENT_F, "g": BY_VOLTAGE_G, "h": BY_CURRENT_H}
_FORM = "Bname first second V={formula}, Ename and Gname first second VALUE={formula}"
_OWN_NAMES = frozenset(("vcvs", "vccs", "cccs", "ccvs"))
_HEAD = re.compile(r"[\s(),]*([^\s(),={}'\"]+)")
_POLY = re.compile(r"[\s(),]*poly\s*\(\s*(\d+)\s*\)", re.IGNORECASE)
_KEY = re.compile(r"([^\W\d]\w*)\s*=(?!=)\s*|(value|vol|cur|table|laplace)\b\s*(?=[{'])", re.IGNORECASE)
_STEP = re.compile(r"[\w.]+|.", re.DOTALL)
_FORMULAS = {
    "b": ("v", "i", "r"),
    "e": ("value", "vol", "v", "table", "laplace"),
    "f": ("value", "cur", "i"),
    "g": ("value", "cur", "i", "table", "laplace"),
    "h": ("value", "vol", "v"),
}
"""Letter → the names of its formula."""

_NAMES = frozenset(word for words in _FORMULAS.values() for word in words)
_DETAILS = frozenset(("m", "tc1", "tc2", "temp", "dtemp"))
"""Number of sources in parallel, and their temperature."""


class Section(NamedTuple):
    """``name=text`` on a card, with the offsets of the text."""

    name: Token
    start: int
    stop: int

    @property
    def word(self) -> str:
        """The name in lower case."""
        return self.name.word


def sections(card: Card, at: int) -> list[Section]:
    """The sections of ``card`` from ``at`` on; each ends where the next begins.

    Raises
    ------
    CardError
        An unmatched brace or quote.
    """
    found: list[re.Match[str]] = []
    text, depth = card.text, 0
    while at < len(text):
        key = _KEY.match(text, at) if depth == 0 else None
        if key is not None:
            found.append(key)
            at = key.end()
        elif text[at] in "{'\"":
            at = delimited(card, at).end
        else:
            depth += (text[at] == "(") - (text[at] == ")")
            at = _STEP.match(text, at).end()  # type: ignore[union-attr]
    stops = [*(key.start() for key in found[1:]), len(text)]
    names = [Token(key[1] or key[2], key.start(), WORD, key.end(key.lastindex or 0), card) for key in found]
    return [Section(name, key.end(), stop) for name, key, stop in zip(names, found, stops)]


class SourceCard(ElementReader):
    """Parser of a source that may be controlled.

    Attributes
    ----------
    name : Token
    letter : str
        In lower case.
    shown : str
        The name for messages.
    after : int
        The offset after the two nodes.
    """

    def __init__(self, reader: Any, card: Card) -> None:
        super().__init__(reader, card)
        self.letter = self.name.text[0].lower()
        heads = [*islice((t for t in tokens(card, self.name.end) if t.kind != MARK or t.text == "="), 2)]
        nodes = [reader.node(token) for token in heads]
        if len(nodes) < 2:
            raise CardError(
                f"{self.shown} needs two output nodes", card.last, f"{self.letter.upper()}name first second …"
            )
        self.nodes, self.after = (nodes[0], nodes[1]), heads[1].end

    def take(self) -> None:
        """Add the element to the scope.

        Raises
        ------
        CardError, ExpressionError
            The card has an error or an unsupported form.
        """
        text, card, letter, after = self.card.text, self.card, self.letter, self.after
        word = _HEAD.match(text, after)
        if word is not None and word[1].lower() in dialect.SOURCES:
            raise self.refused(card.at(word.start(1)), "is", *dialect.SOURCES[word[1].lower()])
        stated = sections(card, after)
        formulas = [section for section in stated if section.word in _NAMES and (section.word != "r" or letter == "b")]
        if formulas:
            if len(formulas) > 1:
                raise CardError(f"{self.shown} has a second formula", formulas[1].name, "leave one of them out")
            before = tokens(card, after, min(section.name.offset for section in stated))
            words = [token for token in before if token.kind != MARK]
            self.formula(words, formulas[0], self.details([one for one in stated if one is not formulas[0]]))
            return
        if letter == "b":
            raise CardError(
                f"{self.shown} needs V=… or I=…",
                card.at(after),
                "Bname first second V={2*v(a,b)}; other forms are not affine",
                "unsupported" if "=" in text else "syntax",
            )
        self.controlled(_POLY.match(text, after))

    def put(self, kind: int, fixable: bool, law: Code, at: Place, **stated: Any) -> None:
        """Append an element of a kind with a formula, possibly as an independent source."""
        own = kind
        if fixable:
            own = VOLTAGE if kind in (AFFINE_VOLTAGE, BY_VOLTAGE_E) else CURRENT
        source = ControlledSource(kind, law, fixable)
        self.scope.state(own, self.name.text, *self.nodes, ElementCard(at, source=source, **stated))

    def refused(self, at: Token, verb: str, what: str, why: str) -> CardError:
        """The error for a known but unsupported form."""
        return CardError(f"{self.shown} {verb} {what}, which is not supported", at, why, "unsupported")

    def formula(self, words: list[Token], section: Section, details: dict[str, Count]) -> None:
        """Parse a source or resistor given by a formula."""
        word, letter = section.word, self.letter
        if word not in _FORMULAS[letter]:
            raise CardError(f"{self.shown} has no {short(word)}=", section.name)
        if word == "laplace":
            raise self.refused(section.name, "has", *dialect.OF_SOURCES[word])
        if words:
            raise CardError(f"{self.shown}: {short(words[0].text)!r} does not belong here", words[0], _FORM)
        m = details.pop("m", None)
        multiplier = 1.0 if m is None else m.value
        if word == "table":
            code = self.polygon(section)
        else:
            code = formula(self.card, section.start, self.scope, (), section.stop, True)
        if word == "r" and (code.signals or details):
            raise CardError(
                f"{self.shown}: {'the resistance depends on the solution' if code.signals else 'R= takes only m='}",
                code,
                "build its I–V curve from diodes" if code.signals else "write a resistor",
                "unsupported",
            )
        for signal in code.signals:
            if signal.kind == "v":
                for node in filter(None, signal[1:]):
                    self.scope.node(node)
        current = letter in "fg" or word == "i"
        kind = RESISTOR if word == "r" else CURRENT if current else VOLTAGE
        if word == "r" or (letter in "beg" and not code.signals and not details):  # a plain element
            value = ElementCard(code, constant(code), multiplier=1.0 if kind == VOLTAGE else multiplier)
            self.scope.state(kind, self.name.text, *self.nodes, value)
            return
        law = AFFINE_CURRENT if current else AFFINE_VOLTAGE
        self.put(law, letter in "beg", code, code, multiplier=multiplier, numbers=details)

    def of_terms(self, at: int, terms: Iterable[tuple[Value, Sequence[Signal], int]]) -> Code:
        """The formula Σ coefficient · product of signals, each at an offset."""
        code, total = Code(self.card, self.scope, at), None
        for coefficient, signals, place in terms:
            term = Node(NUMBER, coefficient, at)
            if isinstance(coefficient, Code):
                term = coefficient.tree
                code.names |= coefficient.names
            for signal in signals:
                code.signals.append(signal)
                term = Node("*", None, place, (term, Node(SIGNAL, signal, at)))
            total = term if total is None else Node("+", None, at, (total, term))
        code.tree = total or code.tree
        return code

    def polygon(self, section: Section) -> Code:
        """``TABLE {formula} = (x1,y1) (x2,y2) …`` as the formula table(formula, x1, y1, …)."""
        if self.card.text[section.start] not in "{'":
            raise self.refused(section.name, "has", *dialect.OF_SOURCES["table"])
        token = delimited(self.card, section.start)
        code = of_token(token, self.scope, (), True)
        found = [*tokens(self.card, token.end, section.stop)]
        numbers = [t for t in found if t.kind != MARK]
        for mark in [t for t in found[1:] if t.kind == MARK and t.text == "="]:
            raise CardError(f"{self.shown}: '=' does not belong between the points", mark)
        points = []
        for number in numbers:
            value = self.value(number)
            if isinstance(value, Code):
                raise CardError("the points of TABLE must be numbers", number, "write the numbers", "unsupported")
            points.append(Node(NUMBER, value, number.offset))
        code.tree = Node(CALL, "table", section.start, (code.tree, *points))
        return code

    def details(self, stated: list[Section]) -> dict[str, Count]:
        """The further numbers of a formula, by name."""
        details: dict[str, Count] = {}
        for section in stated:
            word, at, shown = section.word, section.name, short(section.name.text)
            if word in dialect.OF_SOURCES:
                raise self.refused(at, "has", *dialect.OF_SOURCES[word])
            found = [*tokens(self.card, section.start, section.stop)]
            if word not in _DETAILS or word in details:
                raise CardError(
                    f"{self.shown} {'repeats' if word in details else 'has no parameter'} {shown!r}",
                    at,
                    f"known: {', '.join(sorted(_DETAILS))}",
                )
            if len(found) != 1:
                at = found[1] if found else at
                raise CardError(f"{self.shown}: {shown}= takes one number", at)
            details[word] = Count(found[0], self.value(found[0]))
        return details

    def controlled(self, poly: re.Match[str] | None) -> None:
        """Controls and a gain, ``OPAMP``, or ``POLY(n)``: one product of controls for each coefficient, in SPICE's
        order."""
        count, at = (1, self.name.offset) if poly is None else (int(poly.group(1)), poly.end())
        words, letter = fields(self.card, self.after if poly is None else at), self.letter
        self.words = words
        if poly is not None and not 1 <= count <= 100:
            wrong = self.card.at(poly.start(1))
            raise CardError(f"POLY({short(poly.group(1))}): one to 100 controls", wrong, kind="range")
        if poly is None and words.words and words.words[0].word in _OWN_NAMES:
            words.take(1)
        if poly is None and letter == "e" and words.words and words.words[0].word == "opamp":
            words.take(1)
            self.put(NULLOR, False, self.of_terms(at, [(1.0, self.controls(1), at)]), self.name)
            return
        for key, _ in words.pairs.values():
            if key.word in dialect.OF_SOURCES:
                raise self.refused(key, "has", *dialect.OF_SOURCES[key.word])
        multiplier, signals = self.pairs(("gain",)), self.controls(count)
        terms = words.take()
        if poly is None:
            terms += [token for _, token in words.named()]
            if len(terms) != 1:
                wrong = terms[1] if terms else self.card.last
                raise CardError(f"{self.shown} needs one gain", wrong, "an expression goes in braces: {…}")
        numbers: list[Value] = [self.value(token) for token in terms]
        if not numbers:
            raise CardError(f"{self.shown}: POLY needs its coefficients", self.card.last, "p0 p1 …")
        if count == len(numbers) == 1:
            numbers.insert(0, 0.0)  # a gain, and in SPICE a single coefficient, is that of first order
        numbers += [0.0] * (count + 1 - len(numbers))
        affine = all(number == 0.0 for number in numbers[count + 1 :])
        places = chain((token.offset for token in terms), repeat(at))
        products = chain.from_iterable(combinations_with_replacement(signals, order) for order in count_from(0))
        law = self.of_terms(at, zip(numbers[: count + 1] if affine else numbers, products, places))
        if poly is None:
            self.put(_PLAIN[letter], letter in "eg" and multiplier == 1.0, law, terms[0], multiplier=multiplier)
        else:
            kind = AFFINE_VOLTAGE if letter in "eh" else AFFINE_CURRENT
            self.put(kind, not affine, law, law, multiplier=multiplier)

    def controls(self, count: int) -> list[Signal]:
        """Take ``count`` control pairs of nodes (E, G) or controlling elements (F, H)."""
        each = 2 if self.letter in "eg" else 1
        given = self.words.take(each * count)
        if len(given) < each * count or any(token.kind != WORD for token in given):
            what = "two control nodes" if each == 2 else "the name of the element whose current controls it"
            raise CardError(
                f"{self.shown} needs {what}",
                given[-1] if given else self.card.last,
                "Ename out ref plus minus gain" if each == 2 else "Fname first second Vname gain",
            )
        if each == 1:
            return [Signal("i", token.text) for token in given]
        nodes = [self.scope.node_names[self.reader.node(token)] for token in given]
        return [Signal("v", plus, minus) for plus, minus in zip(nodes[::2], nodes[1::2])]
