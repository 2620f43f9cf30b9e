"""``.if``, ``.elseif``, ``.else``, ``.endif`` of a deck: its parameters decide which cards are read.

Conditions are evaluated where they stand, once, by parameters of the deck. A parameter that decides one may not change
behind it, nor in a sweep. Where a sub-circuit's own parameter decides, it is read once for each outcome, and every call
takes the variant that its values choose.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from circuitsim.netlist import limits
from circuitsim.netlist.cards import Card
from circuitsim.netlist.evaluate import Environment, Evaluator
from circuitsim.netlist.expression import Code, ExpressionError
from circuitsim.netlist.scope import Choice, Scope
from circuitsim.netlist.tokens import CardError
from circuitsim.netlist.values import expression
from circuitsim.units import short

if TYPE_CHECKING:
    from circuitsim.netlist.protocols import Reader
    from circuitsim.netlist.source import Source

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
    outcomes : dict
        Source and line of a sub-circuit that is read once more → outcomes of its conditions, in their order.
    names : dict of str to int
        Parameters that decide a condition, and those that they depend on → its line.
    """

    def __init__(self) -> None:
        self.open: list[_Branch] = []
        self.decided: list[tuple[Card, Code, Scope, bool]] = []
        self.names: dict[str, int] = {}
        self.outcomes: dict[tuple[Source, int], list[bool]] = {}

    @property
    def skipping(self) -> bool:
        """Whether cards are not read here."""
        return bool(self.open) and not self.open[-1].active

    def skips(self, card: Card, start: int) -> bool:
        """Whether ``card`` stands in a branch that is not read."""
        return self.skipping and _HEAD.match(card.text, start) is None

    def take(self, reader: Reader, card: Card, word: str, after: int) -> None:
        """One of the four cards.

        Raises
        ------
        CardError, ExpressionError
            A condition without a value, or cards out of order.
        """
        if word in (".if", ".elseif"):
            card.done()  # the condition, also one that does not matter
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
            raise CardError(
                "syntax",
                f"{word} and its .if (line {first.line}) stand in different sub-circuits",
                card.start(),
                "close .if and .subckt in the opposite order",
            )
        if word == ".endif":
            return
        self.open.append(_Branch(first, scope, False, done))
        if not done:
            active = word == ".else" or self.holds(reader, card, after)
            self.open[-1] = _Branch(first, scope, active, active)

    def holds(self, reader: Reader, card: Card, after: int) -> bool:
        """Whether the condition on ``card`` holds; a single ``=`` compares, as in ngspice."""
        text = card.text[:after] + _EQUALS.sub("==", card.text[after:])
        code = expression(Card(card.source, card.line, text, card.pieces), after, len(text), reader.top)
        own = _owner(reader.scope, code)
        if own is not None:
            return self.outcome(own, card, code)
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

    def outcome(self, own: Scope, card: Card, code: Code) -> bool:
        """The outcome of a condition in the variant of a sub-circuit that is read now."""
        for choice in own.choices:
            if choice.card.source is card.source and choice.card.line == card.line:
                return choice.holds
        assert own.card is not None
        asked = self.outcomes.get((own.card.source, own.card.line), [])
        holds = asked[len(own.choices)] if len(own.choices) < len(asked) else True
        own.choices.append(Choice(card, code, holds))
        return holds

    def read_variants(self, reader: Reader, first: Scope) -> None:
        """Read a sub-circuit, which has just ended, for all other outcomes of its conditions.

        Raises
        ------
        CardError
            There are too many.
        """
        assert first.card is not None
        place, name, outside = (first.card.source, first.card.line), first.name.lower(), reader.scope
        if place in self.outcomes:
            return
        registered = outside.subcircuits.get(name) is first
        first.variants = [first]
        path = [choice.holds for choice in first.choices]
        while any(path):
            path = path[: len(path) - path[::-1].index(True)]
            path[-1] = False
            if len(first.variants) == limits.VARIANTS:
                message = f"the conditions of {short(first.name)} have more than {limits.VARIANTS} outcomes"
                raise CardError("limit", message, first.card.start(), "define a sub-circuit for each case")
            self.outcomes[place] = path
            if registered:
                del outside.subcircuits[name]
            first.variants.append(reader.again(first.card))
            path = [choice.holds for choice in first.variants[-1].choices]
            if registered:
                outside.subcircuits[name] = first
        self.outcomes.pop(place, None)

    def close(self, reader: Reader) -> None:
        """What may be wrong at the end of the deck."""
        for branch in self.open:
            reader.reporter.error("syntax", ".if without its .endif", branch.card, hint="close it with .endif")
        for card, code, scope, found in self.decided:
            try:
                if _owner(scope, code) is not None:
                    raise CardError(
                        "parameter",
                        "a parameter of the sub-circuit stands behind its condition",
                        card.start(),
                        "put .param before .if",
                    )
                same = _value(reader, code) is found
            except (CardError, ExpressionError) as error:
                reader.reporter.failure(error, card)
                continue
            if not same:
                names = ", ".join(short(name) for name in code.names)
                reader.reporter.error(
                    "parameter",
                    f"the condition has another value at the end of the deck ({names})",
                    card,
                    hint="put .param before .if",
                )


def _owner(scope: Scope, code: Code) -> Scope | None:
    """The innermost sub-circuit whose own parameter a condition reads."""
    while scope.parent is not None:
        if any(scope.is_parameter(name) for name in code.names):
            return scope
        scope = scope.parent
    return None


def _value(reader: Reader, code: Code) -> bool:
    top = reader.top
    return bool(Evaluator().value(code, Environment(None, {}, (top.parameters, top.defaults))))


__all__ = ["CARDS", "Conditions"]
