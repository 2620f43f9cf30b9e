"""The value of a token: a number, an expression in braces or quotes, or the bare name of a parameter."""

from __future__ import annotations

import re
from typing import NoReturn

from circuitsim.netlist.cards import Card
from circuitsim.netlist.expression import PUSH, Code, ExpressionError, parse
from circuitsim.netlist.scope import Scope, Value
from circuitsim.netlist.tokens import EXPRESSION, STRING, WORD, CardError, Token, delimited
from circuitsim.units import NumberError, rkm, short
from circuitsim.units import parse as parse_number

_GOES_ON = re.compile(r"\s*[-+*/%^\\<>=!?&|]")
"""What continues an expression behind a group."""


def value_of(token: Token, card: Card, scope: Scope) -> Value:
    """A float, or an expression that has to wait for its parameters.

    Raises
    ------
    CardError, ExpressionError
        No number, no expression, out of a double's range.
    """
    if token.kind == STRING:
        raise CardError("number", "a value in double quotes", token.offset - 1, "write the number, or {an expression}")
    if token.kind == EXPRESSION:
        return constant(of_token(token, card, scope))
    try:
        return parse_number(token.text) + 0.0  # no negative zero
    except NumberError as error:
        if (value := _read_rkm(token.text)) is not None:
            scope.readings.append((card, token.offset, token.text))
            return value
        if token.kind == WORD and token.text.isidentifier():
            # ngspice takes a bare parameter name for its value; whether there is one shows later.
            return of_token(token, card, scope)
        raise CardError("number", str(error), token.offset, error.hint) from None


def _read_rkm(text: str) -> float | None:
    """The value of ``2K2``; None for what is no such number."""
    try:
        return rkm(text)
    except NumberError:
        return None


def of_token(token: Token, card: Card, scope: Scope, arguments: tuple[str, ...] = (), signals: bool = False) -> Code:
    """The expression that ``token`` is."""
    return expression(card, token.offset, token.offset + len(token.text), scope, arguments, signals)


def expression(
    card: Card, start: int, end: int, scope: Scope, arguments: tuple[str, ...] = (), signals: bool = False
) -> Code:
    """The expression that fills ``card.text[start:end]``.

    Raises
    ------
    ExpressionError
        It is no expression, or more than one.
    """
    code, stop = parse(card.text, start, card, scope, arguments, end, signals)
    check_end(card.text, stop, end)
    return code


def formula(
    card: Card,
    at: int,
    scope: Scope,
    arguments: tuple[str, ...] = (),
    stop: int | None = None,
    signals: bool = False,
) -> tuple[Code, int]:
    """The expression that begins at ``at``, and where it ends: it may be, or hold, groups in braces or quotes.

    Raises
    ------
    CardError, ExpressionError
        It is no expression.
    """
    text = card.text
    if text[at : at + 1] in ("{", "'"):
        token = delimited(text, at)
        if _GOES_ON.match(text, token.end, len(text) if stop is None else stop) is None:
            return of_token(token, card, scope, arguments, signals), token.end
    return parse(text, at, card, scope, arguments, stop, signals)


def whole_formula(card: Card, at: int, stop: int, scope: Scope, arguments: tuple[str, ...] = ()) -> Code:
    """The expression of a source that fills ``card.text[at:stop]``.

    Raises
    ------
    CardError, ExpressionError
        It is no expression, or more than one.
    """
    code, end = formula(card, at, scope, arguments, stop, not arguments)
    check_end(card.text, end, stop)
    return code


def check_end(text: str, end: int, stop: int) -> None:
    """Refuse what stands behind an expression."""
    rest = text[end:stop]
    if rest.strip():
        leftover(rest.strip()[:30].split()[0], end + len(rest) - len(rest.lstrip()))


def leftover(found: str, at: int) -> NoReturn:
    """The error of an expression that does not end where it should, but goes on with ``found``."""
    hint = "an operator is missing before it" if found[0].isalnum() or found[0] in "({'" else ""
    if found[0] == "=":
        hint = "compare with =="
    raise ExpressionError("expression", f"{short(found)!r} does not belong in the expression", at, hint)


def constant(value: Value) -> Value:
    """``value`` as a float where it is the expression of a plain number (it may still be worth a warning)."""
    if isinstance(value, Code) and len(value.program) == 1 and value.program[0][0] == PUSH and not value.mega:
        return float(value.program[0][1])
    return value
