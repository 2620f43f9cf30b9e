"""Tables of values (``.data``): names, then rows of one value each; ``.dc DATA=`` and ``.step DATA=`` run through them.

.data load r1 r2 1k 2k 4k 8k .enddata        two names, two rows
"""

from __future__ import annotations

from typing import NamedTuple

from circuitsim.netlist.cards import Card
from circuitsim.netlist.tokens import EXPRESSION, WORD, CardError, Token, fields, finish, tokens
from circuitsim.units import short


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
    words = [t for t in words if t.text.lower() != ".enddata"]
    form = ".data NAME r1 r2 … then one value for each name in every row"
    if len(words) < 3 or words[0].kind != WORD:
        raise CardError("syntax", ".data needs a name, columns and values", max(len(card.text) - 1, 0), form)
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
    return token.kind == EXPRESSION or token.text[:1].isdecimal() or token.text[:1] in ("+", "-", ".")
