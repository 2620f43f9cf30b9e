"""Cards of sources that others may control: E, F, G, H and B.

Behind the two nodes stands a formula (``V=``, ``I=``, ``VALUE=``, ``TABLE …``), which is the rest of the card up to the
next ``name=``, or words: the controls and a gain, ``POLY(n)``. A formula of B, E and G is kept in two forms: its value,
where independent sources fix all that it reads, and its law.
"""

from __future__ import annotations

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
    CURRENT,
    NULLOR,
    RESISTOR,
    VOLTAGE,
)
from circuitsim.netlist.affine import Behaviour, behaviour
from circuitsim.netlist.cards import Card
from circuitsim.netlist.expression import CALL, PUSH, SIGNAL, Code, Signal
from circuitsim.netlist.scope import Special
from circuitsim.netlist.tokens import MARK, WORD, CardError, Token, Words, delimited, fields, tokens
from circuitsim.netlist.values import constant, of_token, value_of, whole_formula
from circuitsim.units import short

if TYPE_CHECKING:
    from circuitsim.netlist.parts import Parts
    from circuitsim.netlist.scope import Scope, Value

LETTERS = frozenset("efghb")

_PLAIN = {"e": BY_VOLTAGE_E, "f": BY_CURRENT_F, "g": BY_VOLTAGE_G, "h": BY_CURRENT_H}
_LIMITS = "its output is not affine in its control: use the sub-circuit limited_opamp, or clamp with diodes"
_FORM = "Bname first second V={formula}, Ename and Gname first second VALUE={formula}"
_NO_EXPRESSION = "a TABLE without an expression", "write TABLE {v(a,b)} = (x1,y1) (x2,y2) …"
_REFUSED = {
    "laplace": ("a LAPLACE transfer function", "write it as R, C and controlled sources, or its gain at s = 0"),
    "freq": ("a table over frequency (FREQ)", "circuits are solved at DC: write its gain at zero frequency"),
    "foster": ("a FOSTER transfer function", "write it as R, C and controlled sources, or its gain at s = 0"),
    "pole": ("a POLE transfer function", "write it as R, C and controlled sources, or its gain at s = 0"),
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
"""How many sources in parallel, and their temperature."""


class Controlled(NamedTuple):
    """A card: the formula of its value, times ``gain`` where that is the value of the element."""

    card: Card
    offset: int
    expression: Behaviour
    gain: Value | None
    multiplier: Value
    code: int = 0
    details: dict[str, Value] | None = None


class Section(NamedTuple):
    """``name=text`` of a card: the text lies between two offsets."""

    name: Token
    start: int
    stop: int

    @property
    def word(self) -> str:
        """The name in lower case."""
        return self.name.word


def sections(text: str, at: int) -> list[Section]:
    """The sections of ``text`` from ``at`` on; each ends where the next one begins.

    Raises
    ------
    CardError
        A brace or quote without its partner.
    """
    found: list[re.Match[str]] = []
    depth = 0
    while at < len(text):
        key = _KEY.match(text, at) if depth == 0 else None
        if key is not None:
            found.append(key)
            at = key.end()
        elif text[at] in "{'\"":
            at = delimited(text, at).end
        else:
            depth += (text[at] == "(") - (text[at] == ")")
            at = _STEP.match(text, at).end()  # type: ignore[union-attr]
    stops = [*(key.start() for key in found[1:]), len(text)]
    names = [Token(key[1] or key[2], key.start(), WORD, key.end(key.lastindex or 0)) for key in found]
    return [Section(name, key.end(), stop) for name, key, stop in zip(names, found, stops)]


def source(parts: Parts, scope: Scope, card: Card) -> None:
    """Take a card of a source that others may control.

    Raises
    ------
    CardError, ExpressionError
        Something is wrong with it, or it is in a form that is not read.
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
            card.last,
            f"{letter.upper()}name first second …",
        )
    _refused_word(card, name, position)
    stated = sections(text, position)
    formulas = [section for section in stated if section.word in _NAMES and (section.word != "r" or letter == "b")]
    if formulas:
        if len(formulas) > 1:
            message = f"{short(name.text)} has a second formula"
            raise CardError("syntax", message, formulas[1].name.offset, "leave one of them out")
        stated.remove(formulas[0])
        before = tokens(_cut(card, min(section.name.offset for section in (*stated, *formulas))), position)
        words = [token for token in before if token.kind != MARK]
        details = _details(scope, card, name, stated)
        _formula(parts, scope, card, name, letter, (nodes[0], nodes[1]), words, formulas[0], details)
        card.done()
        return
    if letter == "b":
        raise CardError(
            "unsupported" if "=" in text else "syntax",
            f"{short(name.text)} needs V=… or I=…",
            position,
            "Bname first second V={2*v(a,b)}; other forms are not affine",
        )
    poly = _POLY.match(text, position)
    sorted_ = fields(card, tokens(card, position if poly is None else poly.end()))
    if poly is not None:
        code, spec = _polynomial(parts, scope, card, name, letter, poly, sorted_)
    else:
        code, spec = _linear(parts, scope, card, name, letter, sorted_)
    if letter in "eg" and code in _PLAIN.values() and spec.multiplier == 1.0:
        kind = VOLTAGE if letter == "e" else CURRENT
        place = scope.element(kind, name.text, nodes[0], nodes[1], 0.0, card)
        scope.formulas[place] = _of_terms(card, scope, spec.offset, [(spec.gain, spec.expression.code.signals[0])])
    else:
        place = scope.element(code, name.text, nodes[0], nodes[1], math.nan, card)
    scope.controlled[place] = spec._replace(code=code)


def _cut(card: Card, end: int) -> Card:
    """``card`` up to ``end``."""
    return Card(card.source, card.line, card.text[:end], card.pieces)


def _formula(
    parts: Parts,
    scope: Scope,
    card: Card,
    name: Token,
    letter: str,
    nodes: tuple[int, int],
    words: list[Token],
    section: Section,
    details: dict[str, Value],
) -> None:
    """A source, or a resistor, given by a formula."""
    word = section.word
    if word not in _FORMULAS[letter]:
        raise CardError("syntax", f"{short(name.text)} has no {short(word)}=", section.name.offset)
    if word == "laplace":
        raise _pair_refused(name, section.name)
    if words:
        raise CardError(
            "syntax", f"{short(name.text)}: {short(words[0].text)!r} does not belong here", words[0].offset, _FORM
        )
    multiplier = details.pop("m", 1.0)
    if word == "table":
        code = _polygon(scope, card, name, section)
    else:
        code = whole_formula(card, section.start, len(card.text[: section.stop].rstrip()), scope)
    if word == "r":
        _resistor(scope, card, name, nodes, code, multiplier, details)
        return
    current = letter in "fg" or word == "i"
    if letter in "fh":
        place = scope.element(AFFINE_CURRENT if current else AFFINE_VOLTAGE, name.text, *nodes, math.nan, card)
    else:
        place = scope.element(CURRENT if current else VOLTAGE, name.text, *nodes, 0.0, card)
        if not code.signals and not details:
            scope.specials[place] = Special(card, code.start, constant(code), multiplier if current else 1.0)
            return
        scope.formulas[place] = code
    law = behaviour(code)
    for control in law.controls:
        if not control.current:
            for node in filter(None, (control.first, control.second)):
                scope.node(node)
    kind = AFFINE_CURRENT if current else AFFINE_VOLTAGE
    scope.controlled[place] = Controlled(card, code.start, law, None, multiplier, kind, details or None)


def _resistor(
    scope: Scope,
    card: Card,
    name: Token,
    nodes: tuple[int, int],
    code: Code,
    multiplier: Value,
    details: dict[str, Value],
) -> None:
    """``B1 a b R=…`` of LTspice: a resistor."""
    if code.signals or details:
        raise CardError(
            "unsupported",
            f"{short(name.text)}: {'the resistance depends on the solution' if code.signals else 'R= has m= alone'}",
            code.start,
            "its current is a product: write a law with diodes" if code.signals else "write a resistor",
        )
    position = scope.element(RESISTOR, name.text, *nodes, 0.0, card)
    scope.specials[position] = Special(card, code.start, constant(code), multiplier)


def _of_terms(card: Card, scope: Scope, at: int, terms: list[tuple[Value | None, Signal | None]]) -> Code:
    """The formula Σ coefficient · signal; one or the other may be left out."""
    code = Code(card, scope, at)
    for number, (coefficient, signal) in enumerate(terms):
        if isinstance(coefficient, Code):
            code.program += coefficient.program
            code.names |= coefficient.names
        elif coefficient is not None:
            code.program.append((PUSH, coefficient, at))
        if signal is not None:
            code.signals.append(signal)
            code.program.append((SIGNAL, signal, at))
        if None not in (coefficient, signal):
            code.program.append(("*", None, at))
        if number:
            code.program.append(("+", None, at))
    return code


def _polygon(scope: Scope, card: Card, name: Token, section: Section) -> Code:
    """``TABLE {formula} = (x1,y1) (x2,y2) …``: the formula table(formula, x1, y1, …)."""
    if card.text[section.start] not in "{'":
        raise _pair_refused(name, section.name)
    token = delimited(card.text, section.start)
    code = of_token(token, card, scope, (), True)
    found = tokens(_cut(card, section.stop), token.end)
    numbers = [t for t in found if t.kind != MARK]
    for mark in [t for t in found[1:] if t.kind == MARK and t.text == "="]:
        raise CardError("syntax", f"{short(name.text)}: '=' does not belong between the points", mark.offset)
    for number in numbers:
        value = value_of(number, card, scope)
        if isinstance(value, Code):
            raise CardError("unsupported", "the points of TABLE must be numbers", number.offset, "write the numbers")
        code.program.append((PUSH, value, number.offset))
    code.program.append((CALL, ("table", 1 + len(numbers)), section.start))
    return code


def _details(scope: Scope, card: Card, name: Token, stated: list[Section]) -> dict[str, Value]:
    """The numbers by name beside a formula."""
    details: dict[str, Value] = {}
    for section in stated:
        if section.word in _PAIRS:
            raise _pair_refused(name, section.name)
        found = tokens(_cut(card, section.stop), section.start)
        if section.word not in _DETAILS or section.word in details:
            what = "has no parameter" if section.word not in _DETAILS else "states twice"
            message = f"{short(name.text)} {what} {short(section.name.text)!r}"
            raise CardError("syntax", message, section.name.offset, f"known: {', '.join(sorted(_DETAILS))}")
        if len(found) != 1:
            at = found[1].offset if found else section.name.offset
            raise CardError("syntax", f"{short(name.text)}: {short(section.name.text)}= takes one number", at)
        details[section.word] = value_of(found[0], card, scope)
    return details


def _linear(parts: Parts, scope: Scope, card: Card, name: Token, letter: str, sorted_: Words) -> tuple[int, Controlled]:
    """Controls and a gain, or ``OPAMP``."""
    words = sorted_.words
    if words and words[0].word in _OWN_NAMES:
        sorted_.take(1)
    if letter == "e" and words and words[0].word == "opamp":
        sorted_.take(1)
        signals = _controls(parts, scope, card, name, "e", sorted_, 1)
        law = behaviour(_of_terms(card, scope, name.offset, [(None, signals[0])]))
        return NULLOR, Controlled(card, name.offset, law, None, 1.0)
    multiplier = _pairs(parts, scope, card, name, sorted_)
    signals = _controls(parts, scope, card, name, letter, sorted_, 1)
    rest = [*sorted_.take(), *(token for _, token in sorted_.named())]
    if len(rest) != 1:
        raise CardError(
            "syntax",
            f"{short(name.text)} needs one gain",
            rest[1].offset if rest else card.last,
            "an expression goes in braces: {…}",
        )
    gain = value_of(rest[0], card, scope)
    law = behaviour(_of_terms(card, scope, rest[0].offset, [(None, signals[0])]))
    return _PLAIN[letter], Controlled(card, rest[0].offset, law, gain, multiplier)


def _refused_word(card: Card, name: Token, position: int) -> None:
    """Refuse a form by its key word."""
    found = _HEAD.match(card.text, position)
    word = found.group(1).lower() if found else ""
    if word in _REFUSED and found is not None:
        what, why = _REFUSED[word]
        raise CardError("unsupported", f"{short(name.text)} is {what}, which is not supported", found.start(1), why)


def _pair_refused(name: Token, key: Token) -> CardError:
    """The error for a parameter that is known and not supported."""
    what, why = _PAIRS[key.word]
    return CardError("unsupported", f"{short(name.text)} has {what}, which is not supported", key.offset, why)


def _pairs(parts: Parts, scope: Scope, card: Card, name: Token, sorted_: Words) -> Value:
    """``m=``, and what is refused; leaves ``gain=``."""
    for key, _ in sorted_.pairs:
        if key.word in _PAIRS:
            raise _pair_refused(name, key)
    return parts.pairs(scope, card, name, sorted_, ("gain",))


def _controls(
    parts: Parts, scope: Scope, card: Card, name: Token, letter: str, sorted_: Words, count: int
) -> list[Signal]:
    """Take ``count`` control pairs of nodes (E, G) or controlling elements (F, H)."""
    each = 2 if letter in "eg" else 1
    given = sorted_.take(each * count)
    if len(given) < each * count or any(token.kind != WORD for token in given):
        what = "two control nodes" if each == 2 else "the name of the element whose current controls it"
        raise CardError(
            "syntax",
            f"{short(name.text)} needs {what}",
            given[-1].offset if given else card.last,
            "Ename out ref plus minus gain" if each == 2 else "Fname first second Vname gain",
        )
    if each == 1:
        return [Signal("i", token.text) for token in given]
    nodes = [scope.node_names[parts.node(scope, token)] for token in given]
    return [Signal("v", plus, minus) for plus, minus in zip(nodes[::2], nodes[1::2])]


def _polynomial(
    parts: Parts, scope: Scope, card: Card, name: Token, letter: str, poly: re.Match[str], sorted_: Words
) -> tuple[int, Controlled]:
    """``POLY(n)`` of first order."""
    count = int(poly.group(1))
    if not 1 <= count <= 100:
        raise CardError("range", f"POLY({short(poly.group(1))}): one to 100 controls", poly.start(1))
    multiplier = _pairs(parts, scope, card, name, sorted_)
    signals = _controls(parts, scope, card, name, letter, sorted_, count)
    terms = sorted_.take()
    numbers: list[Value] = [value_of(token, card, scope) for token in terms]
    if count == len(numbers) == 1:
        numbers.insert(0, 0.0)  # SPICE: a single coefficient is that of first order
    if not numbers:
        raise CardError("syntax", f"{short(name.text)}: POLY needs its coefficients", card.last, "p0 p1 …")
    for token, number in zip(terms[count + 1 :], numbers[count + 1 :]):
        if number != 0.0:
            raise CardError(
                "unsupported",
                f"{short(name.text)} is a polynomial of second order or more",
                token.offset,
                "only p0 + p1 c1 + p2 c2 … is affine",
            )
    numbers += [0.0] * (count + 1 - len(numbers))
    law = behaviour(_of_terms(card, scope, poly.end(), list(zip(numbers, (None, *signals)))))
    code = AFFINE_VOLTAGE if letter in "eh" else AFFINE_CURRENT
    return code, Controlled(card, poly.end(), law, None, multiplier)
