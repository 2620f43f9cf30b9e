"""What readers of single cards need of the deck that is being read, and laws of its elaboration.

The deck's reader imports every module that reads a card, and the elaboration every module that makes an element; these
import only the protocols.
"""

from __future__ import annotations

from typing import Any, Protocol

from circuitsim.netlist.cards import Card
from circuitsim.netlist.problems import Reporter
from circuitsim.netlist.scope import Scope
from circuitsim.netlist.source import Files, Source
from circuitsim.netlist.tokens import Token


class Reader(Protocol):
    """A deck that is being read (`reader.DeckReader`)."""

    files: Files
    reporter: Reporter
    parts: Any
    top: Scope
    scope: Scope
    requests: list[Card]
    globals: dict[str, str]
    options: dict[str, tuple[Card, Token]]
    open_files: list[str]
    conditions: Any
    section: Any
    ended: bool
    library: bool
    missing: list[str]

    def read(self, source: Source, first: int) -> None:
        """Read the cards of ``source`` from line ``first`` on, into the current scope."""
