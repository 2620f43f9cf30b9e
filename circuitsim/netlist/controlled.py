"""Cards of controlled sources: E, F, G, H and B, as far as they are affine, and their laws in each call."""

from __future__ import annotations

import contextlib
import math
import re
from typing import TYPE_CHECKING, NamedTuple

from circuitsim.circuit.elements import (
    AFFINE_CURRENT,
    AFFINE_VOLTAGE,
    BY_CURRENT_F,
    BY_CURRENT_H,
    BY_VOLTAGE_E,
    BY_VOLTAGE_G,
    NULLOR,
)
from circuitsim.netlist import behavioural
from circuitsim.netlist.affine import Behaviour, behaviour
from circuitsim.netlist.cards import Card
from circuitsim.netlist.expression import ExpressionError
from circuitsim.netlist.tokens import EXPRESSION, WORD, CardError, Fields, Token, delimited, fields, tokens
from circuitsim.netlist.values import constant, value_of
from circuitsim.units import short

if TYPE_CHECKING:
    from circuitsim.netlist.parts import Parts
    from circuitsim.netlist.scope import Scope, Value

LETTERS = frozenset("efghb")

_PLAIN = {"e": BY_VOLTAGE_E, "f": BY_CURRENT_F, "g": BY_VOLTAGE_G, "h": BY_CURRENT_H}
_LIMITS = "its output is not affine in its control: use the sub-circuit limited_opamp, or clamp with diodes"
_NO_EXPRESSION = "a TABLE without an expression", "write TABLE {v(a,b)} = (x1,y1) (x2,y2) …"
_REFUSED = {
    "laplace": ("a LAPLACE transfer function", "circuits are solved at DC: write its gain at s = 0"),
    "freq": ("a table over frequency (FREQ)", "circuits are solved at DC: write its gain at zero frequency"),
    "foster": ("a FOSTER transfer function", "circuits are solved at DC: write its gain at s = 0"),
    "pole": ("a POLE transfer function", "circuits are solved at DC: write its gain at s = 0"),
    "chebyshev": ("a CHEBYSHEV filter", "circuits are solved at DC: write its gain at zero frequency"),
    "delay": ("a DELAY element", "circuits are solved at DC: write its gain"),
    "vcr": ("a voltage-controlled resistor (VCR)", "its current is a product of two voltages"),
    "vccap": ("a voltage-controlled capacitor (VCCAP)", "capacitors are open at the operating point: leave it out"),
    "transformer": ("a TRANSFORMER card", "use the sub-circuit ideal_transformer, or an E and an F"),
    "pwl": ("a PWL function", _LIMITS),
    "npwl": ("an NPWL function", _LIMITS),
    "ppwl": ("a PPWL function", _LIMITS),
    "and": ("a logic function", _LIMITS),
    "or": ("a logic function", _LIMITS),
    "nand": ("a logic function", _LIMITS),
    "nor": ("a logic function", _LIMITS),
}
_PAIRS = {
    "min": ("a limit (min)", _LIMITS),
    "max": ("a limit (max)", _LIMITS),
    "abs": ("an absolute value", _LIMITS),
    "laplace": _REFUSED["laplace"],
    "table": _NO_EXPRESSION,
    "freq": _REFUSED["freq"],
    "pwl": _REFUSED["pwl"],
    "td": ("a delay (td)", "circuits are solved at DC: leave it out"),
}
_OWN_NAMES = frozenset(("vcvs", "vccs", "cccs", "ccvs"))
_HEAD = re.compile(r"[\s(),]*([^\s(),={}'\"]+)")
_VALUE = re.compile(r"[\s(),]*(value|vol|cur|v|i)\s*(=)?\s*", re.IGNORECASE)
_POLY = re.compile(r"[\s(),]*poly\s*\(\s*(\d+)\s*\)", re.IGNORECASE)
_DETAIL = re.compile(r"\s*\b(m|tc1|tc2|temp|dtemp)\s*=\s*(\{[^{}]*\}|'[^']*'|[^\s=]+)\s*$", re.IGNORECASE)
"""``m=2`` and the temperature of a behavioural source, at the end of its card."""


class Control(NamedTuple):
    """A coefficient and what it multiplies: two local nodes, or the name of an element of the scope."""

    coefficient: Value
    plus: int = 0
    minus: int = 0
    element: str = ""


class Controlled(NamedTuple):
    """A card: constant + Σ controls, or an expression; ``gain`` is the value of an element with one control."""

    card: Card
    offset: int
    constant: Value
    controls: tuple[Control, ...]
    gain: Value | None
    expression: Behaviour | None
    multiplier: Value
    code: int = 0
    details: dict[str, Value] | None = None


def element(parts: Parts, scope: Scope, card: Card) -> None:
    """Take a card of a controlled source.

    Raises
    ------
    CardError, ExpressionError
        Something is wrong with it, or it is not affine.
    """
    text, heads, position = card.text, [], 0
    for _ in range(3):
        found = _HEAD.match(text, position)
        if found is None:
            break
        heads.append(Token(found.group(1), found.start(1), WORD, found.end(1)))
        position = found.end(1)
    name, letter = heads[0], heads[0].text[0].lower()
    parts.check_name(scope, name, card)
    nodes = [parts.node(scope, token) for token in heads[1:]]
    if len(nodes) < 2:
        raise CardError(
            "syntax",
            f"{short(name.text)} needs two output nodes",
            max(len(text) - 1, 0),
            f"{letter.upper()}name first second …",
        )
    code, spec = _body(parts, scope, card, name, letter, position)
    place = scope.element(code, name.text, nodes[0], nodes[1], math.nan, card)
    scope.controlled[place] = spec._replace(code=code)


def source(parts: Parts, scope: Scope, card: Card) -> None:
    """Take a card of a source that may be controlled.

    A formula is read in two ways: sources may turn out to fix all that it depends on (`behavioural`), or it is a law.

    Raises
    ------
    CardError, ExpressionError
        Something is wrong with it, or it is not affine.
    """
    start = card.start()
    letter = card.text[start].lower()
    if letter not in behavioural.LETTERS:
        element(parts, scope, card)
        return
    try:
        behavioural.source(parts, scope, card)
    except (CardError, ExpressionError):
        element(parts, scope, card)
        return
    place = len(scope.kind) - 1
    if place in scope.formulas:
        name = Token(scope.names[place], start, WORD, start + len(scope.names[place]))
        heads = [_HEAD.match(card.text, start)]
        for _ in range(2):
            heads.append(_HEAD.match(card.text, heads[-1].end(1)) if heads[-1] is not None else None)
        if heads[-1] is not None:
            with contextlib.suppress(CardError, ExpressionError):
                code, spec = _body(parts, scope, card, name, letter, heads[-1].end(1))
                scope.controlled[place] = spec._replace(code=code)


def _body(parts: Parts, scope: Scope, card: Card, name: Token, letter: str, position: int) -> tuple[int, Controlled]:
    """What stands behind the output nodes."""
    text = card.text
    _refused_word(card, name, position)
    polygon = behavioural.TABLE.match(text, position) if letter in "eg" else None
    if polygon is not None:
        return _polygon(scope, card, letter, polygon.end())
    value = _VALUE.match(text, position)
    if value is not None and (value.group(2) or value.group(1).lower() in ("value", "vol", "cur")):
        return _expression(scope, card, name, letter, value)
    if letter == "b":
        raise CardError(
            "unsupported" if "=" in text else "syntax",
            f"{short(name.text)} needs V=… or I=…",
            position,
            "Bname first second V={2*v(a,b)}; other forms are not affine",
        )
    poly = _POLY.match(text, position)
    if poly is not None:
        return _polynomial(parts, scope, card, name, letter, poly)
    sorted_ = fields(tokens(card, position), len(text))
    words = sorted_.words
    if words and words[0].text.lower() in _OWN_NAMES:
        words.pop(0)
    if letter == "e" and words and words[0].text.lower() == "opamp":
        controls = _controls(parts, scope, card, name, "e", words[1:], 1)
        return NULLOR, Controlled(card, name.offset, 0.0, tuple(controls), None, None, 1.0)
    multiplier = _pairs(parts, scope, card, name, sorted_)
    controls = _controls(parts, scope, card, name, letter, words, 1)
    rest = words[2:] if letter in "eg" else words[1:]
    rest += [token for _, token in sorted_.pairs]
    if len(rest) != 1:
        raise CardError(
            "syntax",
            f"{short(name.text)} needs one gain",
            rest[1].offset if rest else len(text) - 1,
            "an expression goes in braces: {…}",
        )
    gain = constant(value_of(rest[0], card, scope))
    return _PLAIN[letter], Controlled(card, rest[0].offset, 0.0, tuple(controls), gain, None, multiplier)


def _refused_word(card: Card, name: Token, position: int) -> None:
    """Refuse a form by its key word."""
    found = _HEAD.match(card.text, position)
    word = found.group(1).lower() if found else ""
    if word in _REFUSED and found is not None:
        what, why = _REFUSED[word]
        raise CardError("unsupported", f"{short(name.text)} is {what}, which is not supported", found.start(1), why)


def _pairs(parts: Parts, scope: Scope, card: Card, name: Token, sorted_: Fields) -> Value:
    """``m=``, and what is refused; leaves ``gain=``."""
    for key, _ in sorted_.pairs:
        if key.text.lower() in _PAIRS:
            what, why = _PAIRS[key.text.lower()]
            raise CardError("unsupported", f"{short(name.text)} has {what}, which is not supported", key.offset, why)
    return parts.pairs(scope, card, name, sorted_, ("gain",))


def _controls(
    parts: Parts, scope: Scope, card: Card, name: Token, letter: str, words: list[Token], count: int
) -> list[Control]:
    """``count`` control pairs of nodes (E, G) or controlling elements (F, H)."""
    each = 2 if letter in "eg" else 1
    given = words[: each * count]
    if len(given) < each * count or any(token.kind != WORD for token in given):
        what = "two control nodes" if each == 2 else "the name of the element whose current controls it"
        raise CardError(
            "syntax",
            f"{short(name.text)} needs {what}",
            given[-1].offset if given else len(card.text) - 1,
            "Ename out ref plus minus gain" if each == 2 else "Fname first second Vname gain",
        )
    if each == 1:
        return [Control(1.0, element=token.text) for token in given]
    nodes = [parts.node(scope, token) for token in given]
    return [Control(1.0, plus, minus) for plus, minus in zip(nodes[::2], nodes[1::2])]


def _polynomial(
    parts: Parts, scope: Scope, card: Card, name: Token, letter: str, poly: re.Match[str]
) -> tuple[int, Controlled]:
    """``POLY(n)`` of first order."""
    count = int(poly.group(1))
    if not 1 <= count <= 100:
        raise CardError("range", f"POLY({short(poly.group(1))}): one to 100 controls", poly.start(1))
    sorted_ = fields(tokens(card, poly.end()), len(card.text))
    multiplier = _pairs(parts, scope, card, name, sorted_)
    words = sorted_.words
    controls = _controls(parts, scope, card, name, letter, words, count)
    terms = words[(2 if letter in "eg" else 1) * count :]
    numbers: list[Value] = [constant(value_of(token, card, scope)) for token in terms]
    if count == len(numbers) == 1:
        numbers.insert(0, 0.0)  # SPICE: a single coefficient is that of first order
    if not numbers:
        raise CardError("syntax", f"{short(name.text)}: POLY needs its coefficients", len(card.text) - 1, "p0 p1 …")
    for token, number in zip(terms[count + 1 :], numbers[count + 1 :]):
        if number != 0.0:
            raise CardError(
                "unsupported",
                f"{short(name.text)} is a polynomial of second order or more",
                token.offset,
                "only p0 + p1 c1 + p2 c2 … is affine",
            )
    numbers += [0.0] * (count + 1 - len(numbers))
    found = tuple(c._replace(coefficient=p) for c, p in zip(controls, numbers[1:]))
    code = AFFINE_VOLTAGE if letter in "eh" else AFFINE_CURRENT
    return code, Controlled(card, poly.end(), numbers[0], found, None, None, multiplier)


def _expression(scope: Scope, card: Card, name: Token, letter: str, value: re.Match[str]) -> tuple[int, Controlled]:
    """``value={…}``, ``V=…``, ``I=…``."""
    word, text, start = value.group(1).lower(), card.text, value.end()
    wrong = {"e": ("cur", "i"), "h": ("cur", "i"), "g": ("vol", "v"), "f": ("vol", "v"), "b": ("value", "vol", "cur")}
    if word in wrong[letter]:
        raise CardError("syntax", f"{short(name.text)} has no {short(word)}=", value.start(1))
    stop = len(text.rstrip())
    details, stop = _details(scope, card, start, stop)
    multiplier = details.pop("m", 1.0)
    if text[start : start + 1] in ("{", "'"):
        token = delimited(text, start)
        if text[token.end : stop].strip():
            at = token.end + len(text[token.end : stop]) - len(text[token.end : stop].lstrip())
            extra = text[at:].split()[0]
            raise CardError(
                "unsupported",
                f"{short(name.text)}: {short(extra)!r} is not supported here",
                at,
                "one expression in braces",
            )
        start, stop = token.offset, token.offset + len(token.text)
    parsed = _declared(scope, behaviour(text, start, stop, card, scope))
    voltage = word in ("v", "vol") or (word == "value" and letter in "eh")
    spec = Controlled(card, start, 0.0, (), None, parsed, multiplier, details=details or None)
    return AFFINE_VOLTAGE if voltage else AFFINE_CURRENT, spec


def _polygon(scope: Scope, card: Card, letter: str, at: int) -> tuple[int, Controlled]:
    """``TABLE {expression} = (x1,y1) (x2,y2) …``: constant outside its points."""
    token = delimited(card.text, at)
    parsed = _declared(scope, behaviour(card.text, token.offset, token.offset + len(token.text), card, scope))
    behavioural.append_points(parsed.code, card, scope, token.end, at)
    code = AFFINE_VOLTAGE if letter == "e" else AFFINE_CURRENT
    return code, Controlled(card, token.offset, 0.0, (), None, parsed, 1.0)


def _declared(scope: Scope, parsed: Behaviour) -> Behaviour:
    """The same expression, its nodes known to the scope."""
    for control in parsed.controls:
        if not control.current:
            for node in filter(None, (control.first, control.second)):
                scope.node(node)
    return parsed


def _details(scope: Scope, card: Card, start: int, stop: int) -> tuple[dict[str, Value], int]:
    """The numbers by name that end the card behind a formula, and where the formula ends."""
    details: dict[str, Value] = {}
    while (found := _DETAIL.search(card.text, start, stop)) is not None:
        text = found.group(2)
        quoted = text[0] in "{'"
        token = Token(text.strip("{}'"), found.start(2) + quoted, EXPRESSION if quoted else WORD, found.end(2))
        details[found.group(1).lower()] = constant(value_of(token, card, scope))
        stop = found.start()
    return details, stop


__all__ = ["LETTERS", "Control", "Controlled", "source"]
