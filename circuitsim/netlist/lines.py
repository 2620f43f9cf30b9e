"""Transmission lines at DC: ``T`` is a wire, ``O`` ``Y`` ``U`` are resistors between their ends; ``K`` has no effect.

A lossless line is an ideal transformer 1:1 at DC, as in ngspice. Where both ports have one reference node that is a
wire between the other two, else a pair of controlled sources; lossy lines with two reference nodes are refused.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from circuitsim.circuit.elements import BY_CURRENT_F, BY_VOLTAGE_E, RESISTOR
from circuitsim.netlist.cards import Card
from circuitsim.netlist.controlled import Control, Controlled
from circuitsim.netlist.scope import Count, Coupling, Details, ModelUse, Scope, Special
from circuitsim.netlist.tokens import WORD, CardError, Token, Words, fields, tokens
from circuitsim.netlist.values import constant, value_of
from circuitsim.units import short

if TYPE_CHECKING:
    from circuitsim.netlist.parts import Parts
    from circuitsim.netlist.protocols import Reader

FORMS = {
    "t": "Tname a reference b reference Z0=50 TD=1n",
    "o": "Oname a reference b reference model",
    "y": "Yname a reference b reference model LEN=length",
    "u": "Uname a b reference model L=length",
}
"""First letter → how its card reads."""

LETTERS = frozenset(("k", *FORMS))
"""First letters of the cards read here."""

IDEAL = frozenset(("z0", "td", "f", "nl", "ic"))
OWN = {"t": IDEAL, "o": frozenset(("ic",)), "y": frozenset(("len", "length")), "u": frozenset(("l", "n"))}
"""Parameters of each card; the lengths act at DC."""

LINE = "a transmission line"


def line(parts: Parts, scope: Scope, card: Card) -> None:
    """Take a card of a transmission line.

    Raises
    ------
    CardError, ExpressionError
    """
    found = tokens(card)
    name, letter = found[0], found[0].text[0].lower()
    parts.check_name(scope, name, card)
    sorted_ = fields(card, found[1:])
    words = sorted_.take()
    ends = 3 if letter == "u" else 4
    modelled = letter != "t"
    if len(words) < ends + modelled:
        raise CardError(
            "syntax",
            f"{short(name.text)} needs {ends} nodes" + " and a model" * modelled,
            max(sorted_.end - 1, 0),
            FORMS[letter],
        )
    if len(words) > ends + modelled:
        extra = words[ends + modelled]
        raise CardError(
            "syntax", f"{short(name.text)}: {short(extra.text)!r} does not belong here", extra.offset, FORMS[letter]
        )
    nodes = [parts.node(scope, token) for token in words[:ends]]
    numbers = own_numbers(scope, card, name, letter, sorted_)
    if letter == "u":
        first, second = nodes[:2]
    else:
        first, second = nodes[0], nodes[2]
    use, offset = None, words[-1].offset
    if modelled and words[ends].kind != WORD:
        raise CardError("syntax", "the name of a model is expected here", offset, FORMS[letter])
    if modelled:
        use = ModelUse(card, offset, name.text, words[ends].text)
    elif "z0" not in numbers:
        raise CardError("syntax", f"{short(name.text)} needs Z0", max(sorted_.end - 1, 0), FORMS["t"])
    references = () if letter == "u" else (nodes[1], nodes[3])
    if not modelled and nodes[1] != nodes[3]:
        transformer(scope, card, name, nodes)
        return
    position = scope.element(RESISTOR, name.text, first, second, 0.0, card)
    scope.steady[position] = LINE
    details = Details(letter.upper(), numbers, use, references=references)
    scope.specials[position] = Special(card, offset, None, 1.0, details)


def transformer(scope: Scope, card: Card, name: Token, nodes: list[int]) -> None:
    """An ideal transformer 1:1 between two ports: equal voltages; the current into one leaves the other."""
    first, first_reference, second, second_reference = nodes
    there = Control(1.0, second, second_reference)
    gains = Controlled(card, name.offset, 0.0, (there,), 1.0, None, 1.0, BY_VOLTAGE_E)
    place = scope.element(BY_VOLTAGE_E, name.text, first, first_reference, math.nan, card)
    scope.controlled[place], scope.steady[place] = gains, LINE
    through = Control(1.0, element=name.text)
    place = scope.element(BY_CURRENT_F, f"{name.text}.port2", second, second_reference, math.nan, card)
    scope.controlled[place] = gains._replace(controls=(through,), gain=-1.0, code=BY_CURRENT_F)


def own_numbers(scope: Scope, card: Card, name: Token, letter: str, sorted_: Words) -> dict[str, Count]:
    """The numbers of the card by name."""
    found = {}
    for key, value in sorted_.named():
        word = key.text.lower()
        if word not in OWN[letter]:
            raise CardError(
                "syntax",
                f"{short(name.text)} has no parameter {short(key.text)!r}",
                key.offset,
                f"known: {', '.join(sorted(OWN[letter]))}",
            )
        found[word] = Count(card, value.offset, constant(value_of(value, card, scope)))
    return found


def coupling(reader: Reader, card: Card) -> None:
    """Take a ``K`` card: inductors that couple are shorts at DC as others are; they are checked when all is read.

    Raises
    ------
    CardError
    """
    name, *others = tokens(card)
    words = fields(card, others).take()
    if len(words) < 3:
        raise CardError(
            "syntax",
            f"{short(name.text)} needs two inductors and a coefficient",
            max(len(card.text) - 1, 0),
            "Kname L1 L2 0.99",
        )
    factor = value_of(words[-1], card, reader.scope)
    reader.scope.couplings.append(Coupling(card, words[:-1], constant(factor)))
    reader.couplings.append((reader.scope, card, words[:-1]))
    message = "a coupling of inductors has no effect at the operating point (%s)"
    reader.reporter.gather("coupled", message, card, name.offset, name.text)


def check_couplings(reader: Reader) -> None:
    """Every inductor that a ``K`` card names is there."""
    for scope, card, words in reader.couplings:
        for token in words:
            if token.text.lower() not in scope.index:
                reader.reporter.error(
                    "coupling",
                    f"no inductor is called {short(token.text)!r}",
                    card,
                    token.offset,
                    "a coupling names inductors of its own sub-circuit",
                )
