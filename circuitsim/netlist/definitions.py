"""The cards that define: ``.param .func .model .global .subckt .ends``, and tables of values (``.data``).

``.data load r1 r2 1k 2k 4k 8k .enddata`` has two names and two rows; ``.dc DATA=`` and ``.step DATA=`` run through
them.

The reserved sub-circuit ``bidiramp``: an element here, two controlled sources in other SPICE programs.

    Xname left right bidiramp gain=4      v(right) = 4 v(left), i(out of right) = 4 i(into left)

A deck may hold (or include) its definition, so that it runs in ngspice as it is; here the definition is not expanded,
and one that differs is refused rather than misread.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from circuitsim.netlist.cards import Card
from circuitsim.netlist.evaluate import Function
from circuitsim.netlist.expression import Code
from circuitsim.netlist.parts import Reader, good_name
from circuitsim.netlist.scope import Model, Scope
from circuitsim.netlist.tokens import EXPRESSION, WORD, CardError, Token, fields, finish, tokens
from circuitsim.netlist.values import constant, formula, value_of
from circuitsim.units import short

_NAME = re.compile(r"[\s,]*([^\W\d]\w*)\s*")
_ARGUMENTS = re.compile(r"\(([^()]*)\)\s*")
_EQUALS = re.compile(r"=(?!=)\s*")
AMPLIFIER_NAME = "bidiramp"
GAIN = "gain"
DEFAULT_GAIN = 1.0

AMPLIFIER_DEFINITION = f"""\
.subckt {AMPLIFIER_NAME} left right {GAIN}=1
Eforward inside 0 left 0 {{{GAIN}}}
Vright inside right 0
Fback left 0 Vright {{1/{GAIN}}}
.ends {AMPLIFIER_NAME}
"""
"""The definition for ngspice: voltage transfer forwards, current transfer backwards."""


def normal(card: str) -> str:
    """A card without regard to case and blanks."""
    return " ".join(card.lower().split())


AMPLIFIER_CARDS = [normal(card) for card in AMPLIFIER_DEFINITION.splitlines()]


class _BuiltIn(Scope):
    """The one scope of its kind, in every process."""

    __slots__ = ()

    def __reduce__(self) -> str:
        return "AMPLIFIER_SCOPE"


def _built_in() -> Scope:
    """A scope with the ports and the parameter of the amplifier, without elements."""
    scope = _BuiltIn(AMPLIFIER_NAME)
    scope.ports = [scope.node("left"), scope.node("right")]
    scope.defaults[GAIN] = DEFAULT_GAIN
    return scope


AMPLIFIER_SCOPE = _built_in()

DIFFER = "names must differ within one scope"
IDEAL_MODEL = "circuitsim_ideal"
"""The near-ideal diode model that `dumps` writes for ngspice; reading it back is no news to the user."""


def parameters(reader: Reader, card: Card, position: int) -> None:
    """``.param a=1 b={2*a} f(x)={x*x}``: forward references are allowed, the last of a name wins, as in ngspice."""
    text, found = card.text, False
    while True:
        name = _NAME.match(text, position)
        if name is None:
            rest = text[position:].lstrip(" \t,")
            if rest or not found:
                at = len(text) - len(rest) if rest else card.last
                raise CardError("syntax", ".param needs name=value", at, ".param r=1k g={1/r}")
            card.done()
            return
        found, word, at = True, name.group(1).lower(), name.start(1)
        arguments = _ARGUMENTS.match(text, name.end())
        equals = _EQUALS.match(text, arguments.end() if arguments else name.end())
        if equals is None:
            raise CardError("syntax", f".param {short(name.group(1))} has no =value", at, ".param name=value")
        if arguments is not None:
            names = argument_names(arguments.group(1), arguments.start(1))
            body, position = body_of(reader, card, equals.end(), names)
            function(reader, card, word, at, names, body)
            continue
        value, position = body_of(reader, card, equals.end(), ())
        if word in reader.scope.parameters and reader.library and reader.scope is reader.top:
            continue
        if word in reader.scope.parameters:
            again = f"parameter {short(word)!r} is defined again; this one counts"
            reader.reporter.warning("redefined", again, card, at, "leave the other out")
        reader.scope.parameters[word] = constant(value)


def body_of(reader: Reader, card: Card, at: int, names: tuple[str, ...]) -> tuple[Code, int]:
    """The expression at ``at``, in braces, in quotes or bare; and where it ends."""
    if card.text[at : at + 1] == '"':
        raise CardError("expression", "a parameter cannot be a string", at, "only numbers and expressions")
    return formula(card, at, reader.scope, names)


def argument_names(text: str, offset: int) -> tuple[str, ...]:
    """The names between the parentheses of a function's definition."""
    names = tuple(word.strip().lower() for word in text.split(",")) if text.strip() else ()
    if any(not re.fullmatch(r"[^\W\d]\w*", name) for name in names) or len(set(names)) != len(names):
        raise CardError("function", "arguments are different names with commas between", offset, ".func f(x,y) {x*y}")
    return names


def function(reader: Reader, card: Card, name: str, at: int, names: tuple[str, ...], body: Code) -> None:
    """Define a function in the current scope."""
    if name in reader.scope.functions and reader.library:
        return
    if name in reader.scope.functions:
        raise CardError("duplicate", f"function {short(name)!r} is defined already", at, DIFFER)
    reader.scope.functions[name] = Function(name, names, body, at)


def func(reader: Reader, card: Card, position: int) -> None:
    """``.func f(x,y) {x*y}``, also with ``=`` or without braces."""
    text = card.text
    name = _NAME.match(text, position)
    arguments = _ARGUMENTS.match(text, name.end()) if name else None
    if name is None or arguments is None:
        raise CardError(
            "function",
            ".func needs a name and its arguments",
            max(min(position, len(text) - 1), 0),
            ".func f(x,y) {x*y}",
        )
    names = argument_names(arguments.group(1), arguments.start(1))
    equals = _EQUALS.match(text, arguments.end())
    body, end = body_of(reader, card, equals.end() if equals else arguments.end(), names)
    if text[end:].strip():
        at = end + len(text[end:]) - len(text[end:].lstrip())
        extra = f"{short(text[at : at + 99])!r} does not belong to the function"
        raise CardError("function", extra, at, "put its body in braces")
    card.done()
    function(reader, card, name.group(1).lower(), name.start(1), names, body)


def model(reader: Reader, card: Card, position: int) -> None:
    """``.model name type (parameter=value …)``."""
    sorted_ = fields(card, tokens(card, position), repeated=True)
    words, pairs = sorted_.take(), sorted_.named()
    if len(words) < 2:
        raise CardError("model", ".model needs a name and a type", card.last, ".model name D")
    name, key = words[0], words[0].word
    if key in reader.scope.models and reader.library:
        return
    if key in reader.scope.models:
        first = reader.scope.models[key].card
        if normal(first.text) != normal(card.text):
            reader.reporter.warning(
                "redefined",
                f"model {short(name.text)} is defined again; the first one (line {first.line}) counts, as in ngspice",
                card,
                name.offset,
                "leave one of them out",
                [name.text],
            )
        return
    flags = [w.text for w in words[2:] if w.kind == WORD]
    listed = tuple([k.text for k, _ in pairs] + flags)
    reader.scope.models[key] = Model(
        card, reader.scope, name.text, words[1].text.upper(), listed, tuple(pairs), tuple(words[2:])
    )


def global_nodes(reader: Reader, card: Card, position: int) -> None:
    """``.global a b``: nodes that are one in every sub-circuit."""
    found = fields(card, tokens(card, position)).take()
    if not found:
        raise CardError("syntax", ".global names no node", card.last, ".global vdd vss")
    for token in found:
        if token.kind != WORD or not good_name(token.text):
            raise CardError("syntax", f"{short(token.text)!r} cannot name a node", token.offset)
        reader.globals.setdefault(token.word, token.text)


def subckt(reader: Reader, card: Card, position: int) -> None:
    """``.subckt name port … PARAMS: a=1``: a new scope, until ``.ends``."""
    scope = reader.scope
    inner = Scope("", card, scope)
    if normal(card.text[position:]).split(" ", 1)[0] == AMPLIFIER_NAME:
        inner.cards, inner.name = [normal(card.text)], AMPLIFIER_NAME
        reader.scope = inner
        card.done()
        return
    # The scope opens even where its card is wrong, so that its .ends and its elements are read as what they are.
    reader.scope = inner
    sorted_ = fields(card, tokens(card, position))
    words = sorted_.take()
    if words and words[-1].word in ("params:", "params"):
        words.pop()
    if not words:
        raise CardError("subcircuit", ".subckt has no name", card.last, ".subckt name port port …")
    name = words[0]
    inner.name = name.text
    seen: set[int] = set()
    for port in words[1:]:
        node = reader.node(port)
        if node in seen:
            raise CardError(
                "duplicate",
                f"port {short(port.text)} of {short(name.text)} is named twice",
                port.offset,
                "ports must differ",
            )
        seen.add(node)
        inner.ports.append(node)
    for word, value in sorted_.named():
        inner.defaults[word.word] = value_of(value, card, inner)
    key = name.word
    if key in scope.subcircuits and reader.library:
        return
    if key in scope.subcircuits:
        other = scope.subcircuits[key].card
        raise CardError(
            "duplicate",
            f"sub-circuit {short(name.text)} is defined already (line {other.line if other else 0})",
            name.offset,
            DIFFER,
        )
    scope.subcircuits[key] = inner


def ends(reader: Reader, card: Card, position: int) -> None:
    """``.ends [name]``: back to the scope outside."""
    scope = reader.scope
    words = fields(card, tokens(card, position)).take(1)
    if scope.parent is None:
        raise CardError("subcircuit", ".ends without its .subckt", card.start, "remove it")
    reader.scope = scope.parent
    if scope.cards is not None and scope.card is not None:
        check_amplifier(reader, scope.card, scope.cards)
    if words and words[0].word != scope.name.lower():
        reader.reporter.warning(
            "subcircuit",
            f".ends {short(words[0].text)} ends the sub-circuit {short(scope.name)}",
            card,
            words[0].offset,
            f"write .ends {short(scope.name)}",
        )


def check_amplifier(reader: Reader, card: Card, cards: list[str]) -> None:
    """A definition of the reserved sub-circuit must be the standard one; it is not read."""
    if cards != AMPLIFIER_CARDS[:-1]:
        lines = AMPLIFIER_DEFINITION.splitlines()
        reader.reporter.error(
            "subcircuit",
            f"{AMPLIFIER_NAME} is the bidirectional amplifier and cannot be defined otherwise",
            card,
            None,
            "its definition is: " + " | ".join(lines),
            [AMPLIFIER_NAME],
        )


CARDS: dict[str, Callable[[Any, Card, int], None]] = {
    ".param": parameters,
    ".params": parameters,
    ".parameters": parameters,
    ".global_param": parameters,
    ".func": func,
    ".function": func,
    ".model": model,
    ".global": global_nodes,
    ".subckt": subckt,
    ".ends": ends,
}


class Table(NamedTuple):
    """A ``.data`` card: its name, the names of its columns, and its values, row by row."""

    card: Card
    name: Token
    columns: list[Token]
    values: list[Token]


def table(card: Card, position: int) -> Table:
    """The table that ``card`` writes.

    Raises
    ------
    CardError
        No name, no columns, or a row that is not complete.
    """
    words = fields(card, tokens(card, position)).take()
    finish(card)
    words = [t for t in words if t.word != ".enddata"]
    form = ".data NAME r1 r2 … then one value for each name in every row"
    if len(words) < 3 or words[0].kind != WORD:
        raise CardError("syntax", ".data needs a name, columns and values", card.last, form)
    first = next((k for k, token in enumerate(words) if k and _value(token)), len(words))
    columns, values = words[1:first], words[first:]
    if not columns or not values:
        raise CardError(
            "syntax", f".data {short(words[0].text)} needs names of columns, then values", words[0].offset, form
        )
    if len(values) % len(columns):
        raise CardError(
            "syntax",
            f".data {short(words[0].text)}: {len(values)} values do not fill rows of {len(columns)}",
            values[-1].offset,
            form,
        )
    return Table(card, words[0], columns, values)


def _value(token: Token) -> bool:
    return token.kind == EXPRESSION or token.numeric
