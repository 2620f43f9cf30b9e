"""Couplings of inductors (``K``), which act over time and frequency."""

from __future__ import annotations

from typing import TYPE_CHECKING

from circuitsim.netlist.cards import Card
from circuitsim.netlist.scope import Coupling
from circuitsim.netlist.tokens import CardError, fields, tokens
from circuitsim.netlist.values import constant, value_of
from circuitsim.units import short

if TYPE_CHECKING:
    from circuitsim.netlist.protocols import Reader


def coupling(reader: Reader, card: Card) -> None:
    """Take a ``K`` card: inductors that couple are shorts at DC as others are; they are checked when all is read.

    Raises
    ------
    CardError
    """
    name, *others = tokens(card)
    words = fields(card, others).take()
    if len(words) < 3:
        raise CardError(
            "syntax",
            f"{short(name.text)} needs two inductors and a coefficient",
            max(len(card.text) - 1, 0),
            "Kname L1 L2 0.99",
        )
    factor = value_of(words[-1], card, reader.scope)
    reader.scope.couplings.append(Coupling(card, words[:-1], constant(factor)))
    reader.couplings.append((reader.scope, card, words[:-1]))
    message = "a coupling of inductors has no effect at the operating point (%s)"
    reader.reporter.gather("coupled", message, card, name.offset, name.text)


def check_couplings(reader: Reader) -> None:
    """Every inductor that a ``K`` card names is there."""
    for scope, card, words in reader.couplings:
        for token in words:
            if token.text.lower() not in scope.index:
                reader.reporter.error(
                    "coupling",
                    f"no inductor is called {short(token.text)!r}",
                    card,
                    token.offset,
                    "a coupling names inductors of its own sub-circuit",
                )
