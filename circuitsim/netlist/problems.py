"""Collecting problems, warnings and notes while a deck is read; all of them are reported together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from circuitsim.errors import Location, NetlistError, Problem
from circuitsim.netlist import limits
from circuitsim.netlist.cards import Card
from circuitsim.netlist.tokens import CardError
from circuitsim.units import short

NOTE_KINDS = frozenset(("no-effect", "skipped", "assumed", "altered", "diode-law", "amplitude", "nominal", "coupled"))
"""Kinds of `Problem` for accepted statements without effect, and for values that a deck leaves out."""


HINTS = {
    "expression": "operators: + - * / % ** ? : && || ! and comparisons; see docs/netlist.md",
    "function": "see docs/netlist.md for the functions built in; .func f(x) {…} defines another",
    "include": "see docs/netlist.md for what a deck may include",
    "limit": "limits are on work and memory; see docs/netlist.md",
    "number": "every value must be a finite double; zero must be written 0",
    "syntax": "see docs/netlist.md for how each card is written",
}
"""Hints for problems without a hint of their own."""


class Reporter:
    """Errors and warnings in the order of the deck, each once; notes of one sort gathered into one."""

    def __init__(self) -> None:
        self._errors: dict[Any, tuple[tuple[int, ...], Problem]] = {}
        self._warnings: dict[Any, tuple[tuple[int, ...], Problem]] = {}
        self._gathered: dict[tuple[str, str], tuple[Card, int, str, list[str]]] = {}

    def error(
        self,
        kind: str,
        message: str,
        card: Card,
        offset: int | None = None,
        hint: str = "",
        names: Iterable[str] = (),
        callers: tuple[str, ...] = (),
    ) -> None:
        """One error at ``offset`` of ``card`` (its first character if not given).

        Raises
        ------
        NetlistError
            There are so many that reading on is of no use.
        """
        self._put(self._errors, kind, message, card, offset, hint or HINTS.get(kind, ""), names, callers)
        if len(self._errors) >= limits.PROBLEMS:
            self.finish()

    def warning(
        self, kind: str, message: str, card: Card, offset: int | None = None, hint: str = "", names: Iterable[str] = ()
    ) -> None:
        """One warning at ``offset`` of ``card``."""
        self._put(self._warnings, kind, message, card, offset, hint, names, ())

    @contextmanager
    def at(
        self, card: Card, names: Iterable[str] = (), callers: Callable[[], tuple[str, ...]] = tuple
    ) -> Iterator[None]:
        """Report what is raised as an error of ``card``; what follows in the block is left out."""
        try:
            yield
        except CardError as error:
            self.failure(error, card, names, callers())

    def failure(self, error: CardError, card: Card, names: Iterable[str] = (), callers: tuple[str, ...] = ()) -> None:
        """An error of a card, at its place; that of an expression may be on another (a parameter or a function)."""
        at = error.code.card if error.code is not None else card
        if at is not card:
            line, _ = card.where(card.start)
            callers = (f"used at {card.source.name}:{line}", *callers)
        self.error(error.kind, error.message, at, error.offset, error.hint, names, callers)

    def gather(self, kind: str, message: str, card: Card, offset: int, name: str, hint: str = "") -> None:
        """A note or warning that many elements may share: reported once, with the first place and the names."""
        names = self._gathered.setdefault((kind, message), (card, offset, hint, []))[3]
        names.append(name)

    def place_warning(self, problem: Problem, order: tuple[int, ...] = ()) -> None:
        """A warning that carries its own location."""
        self._warnings.setdefault((problem.kind, problem.message, order), ((*order, 0), problem))

    def place_error(self, problem: Problem, card: Card) -> None:
        """An error that carries its own location, met while ``card`` was read."""
        order = (*card.source.order, *card.where(card.start))
        self._errors.setdefault((order, problem.kind, problem.message), (order, problem))

    @property
    def failed(self) -> bool:
        """Whether there was an error."""
        return bool(self._errors)

    def has(self, *kinds: str) -> bool:
        """Whether there was an error of one of these kinds."""
        return any(problem.kind in kinds for _, problem in self._errors.values())

    def finish(self) -> tuple[tuple[Problem, ...], tuple[Problem, ...]]:
        """The warnings and the notes.

        Raises
        ------
        NetlistError
            There were errors.
        """
        if self._errors:
            raise NetlistError([p for _, p in sorted(self._errors.values(), key=lambda e: e[0])])
        for (kind, message), (card, offset, hint, names) in self._gathered.items():
            listed = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
            text = message.replace("%s", listed)
            self._put(self._warnings, kind, text, card, offset, hint, names[:20], ())
        self._gathered = {}
        everything = [p for _, p in sorted(self._warnings.values(), key=lambda e: e[0])]
        warnings = tuple(p for p in everything if p.kind not in NOTE_KINDS)
        return warnings, tuple(p for p in everything if p.kind in NOTE_KINDS)

    def _put(
        self,
        table: dict[Any, tuple[tuple[int, ...], Problem]],
        kind: str,
        message: str,
        card: Card,
        offset: int | None,
        hint: str,
        names: Iterable[str],
        callers: tuple[str, ...],
    ) -> None:
        at = card.start if offset is None else offset
        order = (*card.source.order, *card.where(at))
        key = (order, kind, message)
        if key not in table:
            shown = tuple(short(name) for name in names)
            table[key] = (order, Problem(kind, message, card.place(at, callers), hint, shown))


def fatal(kind: str, message: str, file: str, hint: str = "") -> NetlistError:
    """An error of a whole file."""
    return NetlistError([Problem(kind, message, Location(file, 1), hint)])
