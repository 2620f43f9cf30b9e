"""Cards of sources given by a formula: ``B`` (``V=`` or ``I=``), ``E`` and ``G`` (``VALUE=`` or a gain)."""

from __future__ import annotations

import re

from circuitsim.circuit.elements import CURRENT, VOLTAGE
from circuitsim.netlist.cards import Card
from circuitsim.netlist.expression import PUSH, SIGNAL, Code, Signal
from circuitsim.netlist.parts import Parts, good_name
from circuitsim.netlist.scope import Scope, Special, Value
from circuitsim.netlist.tokens import MARK, WORD, CardError, Token, delimited, tokens
from circuitsim.netlist.values import constant, expression, value_of
from circuitsim.units import short

LETTERS = "beg"
_FORMULA = {"b": re.compile(r"\b([vi])\s*=\s*", re.I), "e": re.compile(r"\b(value|vol)\s*=?\s*(?=[{'])", re.I),
            "g": re.compile(r"\b(value|cur)\s*=?\s*(?=[{'])", re.I)}  # fmt: skip
_NAMES = {
    "b": "a behavioural source", "e": "a voltage-controlled voltage source",
    "g": "a voltage-controlled current source",
}  # fmt: skip
_FORMS = {
    "b": "Bname a b V={formula} or I={formula}",
    "e": "Ename a b VALUE={formula}, or Ename a b plus minus gain",
    "g": "Gname a b VALUE={formula}, or Gname a b plus minus transconductance",
}


def source(parts: Parts, scope: Scope, card: Card) -> None:
    """Take the card of a source given by a formula.

    Raises
    ------
    CardError, ExpressionError
        Something is wrong with it.
    """
    start = card.start()
    letter = card.text[start].lower()
    found = _FORMULA[letter].search(card.text, start)
    head = tokens(card, start) if found is None else tokens(_cut(card, found.start()), start)
    words = [t for t in head if t.kind != MARK]
    parts.check_name(scope, words[0], card)
    if len(words) < 3:
        raise CardError("syntax", f"{short(words[0].text)} needs two nodes and a formula", max(len(card.text) - 1, 0),
                        _FORMS[letter])  # fmt: skip
    first, second = parts.node(scope, words[1]), parts.node(scope, words[2])
    if found is None:
        code = _linear(parts, scope, card, words, letter)
    else:
        code = _formula(scope, card, found.end())
    current = letter == "g" or (letter == "b" and found is not None and found[1].lower() == "i")
    position = scope.element(CURRENT if current else VOLTAGE, words[0].text, first, second, 0.0, card)
    if code.signals:
        scope.formulas[position] = code
    else:
        scope.specials[position] = Special(card, code.start, constant(code), 1.0)


def _cut(card: Card, end: int) -> Card:
    """``card`` up to ``end``."""
    return Card(card.source, card.line, card.text[:end], card.pieces)


def _formula(scope: Scope, card: Card, at: int) -> Code:
    """The formula at ``at``, in braces, in quotes or bare to the end of the card."""
    text = card.text
    if text[at : at + 1] in ("{", "'"):
        token = delimited(text, at)
        return expression(card, token.offset, token.offset + len(token.text), scope, (), True)
    return expression(card, at, len(text), scope, (), True)


def _linear(parts: Parts, scope: Scope, card: Card, words: list[Token], letter: str) -> Code:
    """``Ename a b plus minus gain``: the formula gain · v(plus, minus)."""
    if letter == "b" or len(words) != 6 or any(w.kind != WORD or not good_name(w.text) for w in words[3:5]):
        raise CardError("unsupported", f"{short(words[0].text)} is {_NAMES[letter]} in a form that is not read",
                        words[0].offset, _FORMS[letter])  # fmt: skip
    gain: Value = constant(value_of(words[5], card, scope))
    code = Code(card, scope, words[5].offset)
    if isinstance(gain, Code):
        code.program, code.names = list(gain.program), dict(gain.names)
    else:
        code.program = [(PUSH, gain, words[5].offset)]
    signal = Signal("v", words[3].text, words[4].text)
    code.signals = [signal]
    code.program += [(SIGNAL, signal, words[3].offset), ("*", None, words[5].offset)]
    return code
