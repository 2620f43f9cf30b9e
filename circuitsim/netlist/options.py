"""``.options`` cards: those that act are kept by name, the rest is noted."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from circuitsim.netlist.cards import Card
from circuitsim.netlist.tokens import EXPRESSION, WORD, CardError, Token
from circuitsim.netlist.values import value_of
from circuitsim.units import short

if TYPE_CHECKING:
    from circuitsim.netlist.protocols import Reader

ACTING = frozenset(("temp", "tnom", "diodes"))
"""Options that change the operating point."""

_WORD = re.compile(r"([^\W\d][^\s=,(){}'\"]*)(?:\s*=\s*(\{[^{}]*\}|'[^']*'|[^\s=,(){}'\"]+))?")

_STRANGE = re.compile(r"[^\s,()]+")


def options(reader: Reader, card: Card, position: int) -> None:
    """``.options name=value flag …``: the last value of a name counts.

    Raises
    ------
    CardError, ExpressionError
        A temperature that is no value, or something that is no option.
    """
    word, idle, end = card.text[card.start() : position].lower(), [], position
    for found in _WORD.finditer(card.text, position):
        check_gap(card, end, found.start())
        name, end = found[1].lower(), found.end()
        if name not in ACTING or found[2] is None:
            idle += [name] if name not in ("device", "parser") else []  # Xyce's packages of options
            continue
        inside = found[2][:1] in "{'"
        token = Token(
            found[2][1:-1] if inside else found[2],
            found.start(2) + inside,
            EXPRESSION if inside else WORD,
            found.end(2),
        )
        if name != "diodes":
            value_of(token, card, reader.top)
        reader.options[name] = card, token
    check_gap(card, end, len(card.text))
    card.done()
    if not card.text[position:].strip():
        idle = [word]
    for name in idle:
        message = f"{word} has no effect at the operating point (%s)"
        reader.reporter.gather("no-effect", message, card, card.start(), name)


def check_gap(card: Card, start: int, stop: int) -> None:
    """Refuse what stands between two options."""
    found = _STRANGE.search(card.text, start, stop)
    if found is not None:
        message = f"{short(found[0])!r} is no option"
        raise CardError("syntax", message, found.start(), ".options name=value …")
