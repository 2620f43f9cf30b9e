"""``.options`` cards: those that act are kept by name, the rest is noted."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from circuitsim.netlist.cards import Card
from circuitsim.netlist.tokens import EXPRESSION, WORD, Token

if TYPE_CHECKING:
    from circuitsim.netlist.protocols import Reader

ACTING = frozenset(("temp", "tnom", "diodes"))
"""Options that change the operating point."""

_WORD = re.compile(r"([^\s=,(){}'\"]+)(?:\s*=\s*(\{[^{}]*\}|'[^']*'|[^\s=,(){}'\"]+))?")


def options(reader: Reader, card: Card, position: int) -> None:
    """``.options name=value flag …``: the last value of a name counts."""
    idle = not card.text[position:].strip()
    for found in _WORD.finditer(card.text, position):
        name = found[1].lower()
        if name not in ACTING or found[2] is None:
            idle = idle or name not in ("device", "parser")  # Xyce's packages of options
            continue
        inside = found[2][:1] in "{'"
        token = Token(
            found[2][1:-1] if inside else found[2],
            found.start(2) + inside,
            EXPRESSION if inside else WORD,
            found.end(2),
        )
        reader.options[name] = card, token
    if idle:
        word = card.text[card.start() : position].lower()
        reader.reporter.gather("no-effect", f"{word} has no effect at the operating point", card, card.start(), word)
