"""Text to cards: comments cut off, continuation lines joined, with the place of every character."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from circuitsim.errors import Location
from circuitsim.netlist.source import Source

WINDOW = 1 << 10
"""Characters of a text that are matched together at first, and behind a plain line that is refused."""


class Piece(NamedTuple):
    """Where a stretch of a joined card comes from: its offset there, the physical line, the column before it."""

    offset: int
    line: int
    column: int


class Card:
    """One logical line of a deck.

    Attributes
    ----------
    text : str
        The card without comments; continuation lines are joined with a blank.
    line : int
        The physical line it begins on.
    read : int
        Offset up to which the text was read; `circuitsim.netlist.tokens.finish` refuses what is behind it.
    words : Words or None
        Or the words that are not read yet.
    """

    __slots__ = ("line", "pieces", "read", "source", "text", "words")

    def __init__(self, source: Source, line: int, text: str, pieces: tuple[Piece, ...] = ()) -> None:
        self.source, self.line, self.text, self.pieces = source, line, text, pieces
        self.read = 0
        self.words: Any = None

    def done(self) -> None:
        """The whole text was read."""
        self.read, self.words = len(self.text), None

    def where(self, offset: int) -> tuple[int, int]:
        """Physical line and column (from 1) of the character at ``offset``."""
        if not self.pieces:
            return self.line, offset + 1
        piece = self.pieces[bisect_right(self.pieces, offset, key=lambda p: p.offset) - 1]
        return piece.line, piece.column + offset - piece.offset + 1

    def place(self, offset: int | None = None, callers: tuple[str, ...] = ()) -> Location:
        """The location of the character at ``offset``; without it of the first that is not blank."""
        line, column = self.where(self.start if offset is None else offset)
        return self.source.place(line, column, callers)

    @property
    def last(self) -> int:
        """Offset of the last character."""
        return max(len(self.text) - 1, 0)

    @property
    def start(self) -> int:
        """Offset of the first character that is not blank."""
        return len(self.text) - len(self.text.lstrip())


def uncommented(line: str) -> str:
    """``line`` up to its comment: ``;`` anywhere, ``$`` and ``//`` where a blank (or a comma) precedes them; ``$&x`` is
    a variable of a ``.control`` block.
    """
    end = line.find(";")
    if end >= 0:
        line = line[:end]
    for mark in ("$", "//"):
        at = line.find(mark)
        while at >= 0:
            blank = at == 0 or line[at - 1].isspace() or line[at - 1] == ","
            if blank and line[at + 1 : at + 2] != "&":
                line = line[:at]
                break
            at = line.find(mark, at + 1)
    return line


class Lines:
    """Lines of a text with their numbers, of which the next ones can be skipped.

    Attributes
    ----------
    source : Source
    start, number : int
        Where the current line begins, and its number, from 1.
    window : int
        Characters that `circuitsim.netlist.reader.take_plain_lines` matches next.
    """

    def __init__(self, source: Source) -> None:
        self.source, self.text, self.window = source, source.text, WINDOW
        self.start = self.number = self._next = 0

    def __iter__(self) -> Iterator[tuple[int, str]]:
        while self._next <= len(self.text):
            self.skip(1)
            yield self.number, self.text[self.start : self._next - 1]

    def skip(self, count: int) -> None:
        """Go so many lines ahead."""
        for _ in range(count):
            end = self.text.find("\n", self._next)
            self.start, self._next = self._next, (len(self.text) if end < 0 else end) + 1
        self.number += count


def cards(source: Source, first: int, take_plain: Callable[[Lines], bool]) -> Iterator[Card]:
    """The cards of ``source`` from line ``first`` on.

    ``take_plain`` is called first on each line that may begin a card; it may consume that and some that follow, and
    returns whether it did.
    Comment lines that begin with ``*!`` (directives, comments to the language) come as cards of their own, and so does
    a continuation line without a card before it.
    """
    marked = any(mark in source.text for mark in (";", "$", "//"))
    held, at = "", 0
    more: list[tuple[int, str]] = []
    directives: list[Card] = []  # wait for the card before them, which may go on behind them
    lines = Lines(source)
    for number, line in lines:
        stripped = line.lstrip()
        head = stripped[:1]
        if not head or number < first:
            continue
        if head == "*":
            if stripped[1:2] == "!":
                directives.append(Card(source, number, line))
            continue
        if marked:
            line = uncommented(line)
            if not line or line.isspace():
                continue
        if head == "+" and at:
            more.append((number, line))
            continue
        if more:
            yield joined(Card(source, at, held), more)
            more = []
        elif at:
            yield Card(source, at, held)
        if directives:
            yield from directives
            directives = []
        held, at = ("", 0) if take_plain(lines) else (line, number)
    if more:
        yield joined(Card(source, at, held), more)
    elif at:
        yield Card(source, at, held)
    yield from directives


def joined(card: Card, more: list[tuple[int, str]]) -> Card:
    """``card`` with its continuation lines; the ``+``, where there is one, becomes a blank."""
    parts, pieces, offset = [card.text], list(card.pieces) or [Piece(0, card.line, 0)], len(card.text)
    for number, line in more:
        after = line.index("+") + 1 if line.lstrip().startswith("+") else 0
        parts.append(line[after:])
        pieces.append(Piece(offset + 1, number, after))
        offset += 1 + len(line) - after
    return Card(card.source, card.line, " ".join(parts), tuple(pieces))
