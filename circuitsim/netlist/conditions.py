"""``.if``, ``.elseif``, ``.else``, ``.endif`` of a deck: its parameters decide which cards are read.

Conditions are evaluated where they stand, in sub-circuits too: once, not in every call, by parameters of the deck. A
parameter that decides one may not change behind it, nor in a sweep.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from circuitsim.netlist.cards import Card
from circuitsim.netlist.evaluate import Environment, Evaluator
from circuitsim.netlist.expression import Code, ExpressionError
from circuitsim.netlist.tokens import CardError
from circuitsim.netlist.values import expression
from circuitsim.units import short

if TYPE_CHECKING:
    from circuitsim.netlist.reader import DeckReader
    from circuitsim.netlist.scope import Scope

CARDS = frozenset((".if", ".elseif", ".else", ".endif"))

_HEAD = re.compile(r"\.(?:if|elseif|else|endif)\b", re.I)
_EQUALS = re.compile(r"(?<![=<>!])=(?!=)")


class _Branch(NamedTuple):
    """An open ``.if``: its card and scope; whether its branch is read, and whether one was before or may not be."""

    card: Card
    scope: Scope
    active: bool
    done: bool


class Conditions:
    """The open conditions of a deck, and those that were decided.

    Attributes
    ----------
    names : dict of str to int
        Parameters that decide a condition, and those that they depend on → its line.
    """

    def __init__(self) -> None:
        self.open: list[_Branch] = []
        self.decided: list[tuple[Card, Code, Scope, bool]] = []
        self.names: dict[str, int] = {}

    @property
    def skipping(self) -> bool:
        """Whether cards are not read here."""
        return bool(self.open) and not self.open[-1].active

    def skips(self, card: Card, start: int) -> bool:
        """Whether ``card`` stands in a branch that is not read."""
        return self.skipping and _HEAD.match(card.text, start) is None

    def take(self, reader: DeckReader, card: Card, word: str, after: int) -> None:
        """One of the four cards.

        Raises
        ------
        CardError, ExpressionError
            A condition without a value, or cards out of order.
        """
        if word == ".if":
            outside = self.skipping
            self.open.append(_Branch(card, reader.scope, False, True))
            if not outside:
                active = self.holds(reader, card, after)
                self.open[-1] = _Branch(card, reader.scope, active, active)
            return
        if not self.open:
            raise CardError("syntax", f"{word} without its .if", card.start(), "a condition begins with .if (a > b)")
        first, scope, _, done = self.open.pop()
        if scope is not reader.scope:
            raise CardError("syntax", f"{word} and its .if (line {first.line}) stand in different sub-circuits",
                            card.start(), "close .if and .subckt in the opposite order")  # fmt: skip
        if word == ".endif":
            return
        self.open.append(_Branch(first, scope, False, done))
        if not done:
            active = word == ".else" or self.holds(reader, card, after)
            self.open[-1] = _Branch(first, scope, active, active)

    def holds(self, reader: DeckReader, card: Card, after: int) -> bool:
        """Whether the condition on ``card`` holds; a single ``=`` compares, as in ngspice."""
        text = card.text[:after] + _EQUALS.sub("==", card.text[after:])
        code = expression(Card(card.source, card.line, text, card.pieces), after, len(text), reader.top)
        _check_own(reader.scope, code, card)
        found = _value(reader, code)
        self.decided.append((card, code, reader.scope, found))
        waiting = list(code.names)
        while waiting:
            name = waiting.pop()
            if name not in self.names:
                self.names[name] = card.line
                value = reader.top.parameters.get(name)
                waiting += list(value.names) if isinstance(value, Code) else []
        return found

    def close(self, reader: DeckReader) -> None:
        """What may be wrong at the end of the deck."""
        for branch in self.open:
            reader.reporter.error("syntax", ".if without its .endif", branch.card, hint="close it with .endif")
        for card, code, scope, found in self.decided:
            try:
                _check_own(scope, code, card)
                same = _value(reader, code) is found
            except ExpressionError as error:
                reader.reporter.expression(error, card, (), ())
                continue
            except CardError as error:
                reader.reporter.error(error.kind, str(error), card, error.offset, error.hint)
                continue
            if not same:
                names = ", ".join(short(name) for name in code.names)
                reader.reporter.error("parameter", f"the condition has another value at the end of the deck ({names})",
                                      card, hint="put .param before .if")  # fmt: skip


def _check_own(scope: Scope, code: Code, card: Card) -> None:
    """Refuse a condition on a parameter that every call of a sub-circuit may give another value."""
    while scope.parent is not None:
        own = next((name for name in code.names if scope.is_parameter(name)), None)
        if own is not None:
            message = f"the condition depends on {short(own)!r} of sub-circuit {short(scope.name)}, new in every call"
            raise CardError("unsupported", message, card.start(),
                            "write {a ? b : c} for a value, or define a sub-circuit for each case")  # fmt: skip
        scope = scope.parent


def _value(reader: DeckReader, code: Code) -> bool:
    top = reader.top
    return bool(Evaluator().value(code, Environment(None, {}, (top.parameters, top.defaults))))


__all__ = ["CARDS", "Conditions"]
