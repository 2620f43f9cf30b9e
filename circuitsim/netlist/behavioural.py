"""Cards of sources given by a formula: ``B`` (``V=`` or ``I=``), ``E`` and ``G`` (``VALUE=`` or a gain)."""

from __future__ import annotations

import re

from circuitsim.circuit.elements import CURRENT, RESISTOR, VOLTAGE
from circuitsim.netlist.cards import Card
from circuitsim.netlist.expression import CALL, LOCAL, PUSH, SIGNAL, Code, Signal
from circuitsim.netlist.parts import Parts, good_name
from circuitsim.netlist.scope import Scope, Special, Value
from circuitsim.netlist.tokens import MARK, WORD, CardError, Token, delimited, tokens
from circuitsim.netlist.values import constant, expression, value_of
from circuitsim.units import short

LETTERS = "beg"
_FORMULA = {
    "b": re.compile(r"\b([vir])\s*=\s*", re.I),
    "e": re.compile(r"\b(value|vol)\s*=?\s*(?=[{'])", re.I),
    "g": re.compile(r"\b(value|cur)\s*=?\s*(?=[{'])", re.I),
}
_LAPLACE = re.compile(r"\blaplace\s*=\s*", re.I)
TABLE = re.compile(r"\s*\btable\s*=?\s*(?=[{'])", re.I)
"""What stands before the expression of a table."""

_NAMES = {
    "b": "a behavioural source",
    "e": "a voltage-controlled voltage source",
    "g": "a voltage-controlled current source",
}
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
    laplace = _LAPLACE.search(card.text, start) if letter != "b" else None
    pairs = TABLE.search(card.text, start) if letter != "b" else None
    found = laplace or pairs or _FORMULA[letter].search(card.text, start)
    head = tokens(card, start) if found is None else tokens(_cut(card, found.start()), start)
    words = [t for t in head if t.kind != MARK]
    parts.check_name(scope, words[0], card)
    if len(words) < 3:
        raise CardError(
            "syntax",
            f"{short(words[0].text)} needs two nodes and a formula",
            max(len(card.text) - 1, 0),
            _FORMS[letter],
        )
    first, second = parts.node(scope, words[1]), parts.node(scope, words[2])
    if found is None:
        code = _linear(parts, scope, card, words, letter)
    elif laplace is not None:
        code = _controlled(scope, card, words, _gain_at_dc(scope, card, laplace.end()), letter)
    elif pairs is not None:
        code = _polygon(scope, card, pairs.end())
    else:
        code = _formula(scope, card, found.end())
    if letter == "b" and found is not None and found[1].lower() == "r":
        _resistor(scope, card, words[0], (first, second), code)
        return
    current = letter == "g" or (letter == "b" and found is not None and found[1].lower() == "i")
    position = scope.element(CURRENT if current else VOLTAGE, words[0].text, first, second, 0.0, card)
    if laplace is not None:
        scope.steady[position] = "a LAPLACE transfer function"
    if code.signals:
        scope.formulas[position] = code
    else:
        scope.specials[position] = Special(card, code.start, constant(code), 1.0)


def _resistor(scope: Scope, card: Card, name: Token, nodes: tuple[int, int], code: Code) -> None:
    """``B1 a b R=…`` of LTspice: a resistor."""
    if code.signals:
        raise CardError(
            "unsupported",
            f"{short(name.text)}: the resistance depends on the solution",
            code.start,
            "its current is a product: write a law with diodes",
        )
    position = scope.element(RESISTOR, name.text, *nodes, 0.0, card)
    scope.specials[position] = Special(card, code.start, constant(code), 1.0)


def _cut(card: Card, end: int) -> Card:
    """``card`` up to ``end``."""
    return Card(card.source, card.line, card.text[:end], card.pieces)


def _formula(scope: Scope, card: Card, at: int, arguments: tuple[str, ...] = ()) -> Code:
    """The formula at ``at``, in braces, in quotes or bare to the end of the card."""
    text = card.text
    if text[at : at + 1] in ("{", "'"):
        token = delimited(text, at)
        return expression(card, token.offset, token.offset + len(token.text), scope, arguments, not arguments)
    return expression(card, at, len(text), scope, arguments, not arguments)


def _gain_at_dc(scope: Scope, card: Card, at: int) -> Code:
    """The transfer function of ``LAPLACE=`` at s = 0."""
    code = _formula(scope, card, at, ("s",))
    code.program = [(PUSH, 0.0, o) if i == LOCAL else (i, argument, o) for i, argument, o in code.program]
    return code


def _polygon(scope: Scope, card: Card, at: int) -> Code:
    """``TABLE {formula} = (x1,y1) (x2,y2) …``: the formula table(formula, x1, y1, …)."""
    token = delimited(card.text, at)
    code = expression(card, token.offset, token.offset + len(token.text), scope, (), True)
    append_points(code, card, scope, token.end, at)
    return code


def append_points(code: Code, card: Card, scope: Scope, start: int, at: int) -> None:
    """Make ``code`` the table of itself with the points that the card holds from ``start`` on.

    Raises
    ------
    CardError
        A point that is no number.
    """
    numbers = [t for t in tokens(card, start) if t.kind != MARK]
    for number in numbers:
        value = constant(value_of(number, card, scope))
        if isinstance(value, Code):
            raise CardError("unsupported", "the points of TABLE must be numbers", number.offset, "write the numbers")
        code.program.append((PUSH, value, number.offset))
    code.program.append((CALL, ("table", 1 + len(numbers)), at))


def _linear(parts: Parts, scope: Scope, card: Card, words: list[Token], letter: str) -> Code:
    """``Ename a b plus minus gain``: the formula gain · v(plus, minus)."""
    gain = words.pop() if letter != "b" and len(words) == 6 else None
    value: Value = 0.0 if gain is None else constant(value_of(gain, card, scope))
    if gain is not None and not isinstance(value, Code):
        code = Code(card, scope, gain.offset)
        code.program = [(PUSH, value, gain.offset)]
        value = code
    return _controlled(scope, card, words if gain is not None else [words[0]], value, letter)


def _controlled(scope: Scope, card: Card, words: list[Token], gain: Value, letter: str) -> Code:
    """The formula ``gain`` · v(plus, minus) with the controlling nodes among the words."""
    if len(words) != 5 or any(w.kind != WORD or not good_name(w.text) for w in words[3:]) or not isinstance(gain, Code):
        raise CardError(
            "unsupported",
            f"{short(words[0].text)} is {_NAMES[letter]} in a form that is not read",
            words[0].offset,
            _FORMS[letter],
        )
    code = Code(card, scope, gain.start)
    signal = Signal("v", words[3].text, words[4].text)
    code.names, code.signals = dict(gain.names), [signal]
    code.program = [*gain.program, (SIGNAL, signal, words[3].offset), ("*", None, gain.start)]
    return code
