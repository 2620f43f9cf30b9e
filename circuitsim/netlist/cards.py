"""Text to cards: comments cut off, continuation lines joined, with the place of every character.

Deck text: safe opening of files, decoding, and places in them.

An ``.include`` reaches regular files inside the deck's own folder tree, and folders the user allowed:
a deck from elsewhere must not read ``/etc/passwd`` into an error message, nor wait for a pipe.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO, NamedTuple

from circuitsim import _bundled
from circuitsim.errors import Location, NetlistError, Problem
from circuitsim.netlist import limits
from circuitsim.units import short

ELSEWHERE = re.compile(r"[A-Za-z]:|[\\/]|~")
"""How an absolute path begins, on this system or on Windows."""


class Source:
    """One reading of one text: its name, its text, and who included it.

    Attributes
    ----------
    name : str
        The file name for messages.
    path : str
        Its real path; empty for text that is no file.
    text : str
        Decoded text, lines ended by ``\\n``.
    order : tuple of int
        Line numbers from the main deck to this text's ``.include``, so that problems sort by place.
    callers : tuple of str
        The chain of ``.include`` lines, innermost first.
    """

    __slots__ = ("_lines", "callers", "depth", "name", "order", "path", "text")

    def __init__(
        self, name: str, path: str, text: str, order: tuple[int, ...] = (), callers: tuple[str, ...] = ()
    ) -> None:
        self.name, self.path = name, path
        self.text = text
        self.order, self.callers = order, callers
        self._lines: list[str] = []

    def line(self, number: int) -> str:
        """The physical line ``number`` (from 1), without its end."""
        if number > len(self._lines):  # twice as many as needed, that the text is not split once more for each
            self._lines = self.text.split("\n", 2 * number)[: 2 * number]
        return self._lines[number - 1] if 0 < number <= len(self._lines) else ""

    def place(self, line: int, column: int = 1, callers: tuple[str, ...] = ()) -> Location:
        """A location in this text."""
        return Location(self.name, line, column, self.line(line), callers + self.callers)


def decode(data: bytes, name: str) -> tuple[str, Problem | None]:
    """The text of ``data``, and a warning if it is no UTF-8 and was read as Latin-1 (where µ is the byte B5).

    UTF-16 is read where a byte-order mark tells it, as LTspice writes.

    Raises
    ------
    NetlistError
        NUL bytes, or damaged UTF-16.
    """
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        try:
            text = data.decode("utf-16")
        except UnicodeDecodeError:
            text = "\0"
        if "\0" in text:
            hint = "save it as UTF-8"
            raise NetlistError([Problem("encoding", "the file is damaged UTF-16", Location(name, 1), hint)])
        return plain_lines(text), None
    if data[:3] == b"\xef\xbb\xbf":
        data = data[3:]
    at = data.find(b"\0")
    if at >= 0:
        place = _place_of(data, at, name)
        hint = "this is no text file, or it is damaged"
        raise NetlistError([Problem("encoding", "a NUL byte: a deck is text", place, hint)])
    warning = None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        place = _place_of(data, error.start, name)
        message = f"not UTF-8 (byte 0x{data[error.start]:02X}): the file is read as Latin-1"
        warning = Problem("encoding", message, place, "save it as UTF-8 to be sure of µ and of names")
        text = data.decode("latin-1")
    return plain_lines(text), warning


def plain_lines(text: str) -> str:
    """``text`` with every line ended by ``\\n``, without a byte-order mark."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = text[:-1] if text[-1:] == "\x1a" else text  # DOS ended its files with it
    return text[1:] if text[:1] == "\ufeff" else text


def _place_of(data: bytes, at: int, name: str) -> Location:
    """The location of byte ``at``, its line shown as far as it is text."""
    before = data[:at].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    start = before.rfind(b"\n") + 1
    ends = [e for e in (data.find(b"\n", at), data.find(b"\r", at), at + 200) if e >= 0]
    head = before[start:].decode("utf-8", "replace")
    tail = data[at : min(ends)].decode("latin-1")
    return Location(name, before.count(b"\n") + 1, len(head) + 1, head + tail)


def read_bytes(path: str, limit: int = limits.TEXT) -> bytes:
    """The bytes of a regular file, or of standard input for ``-``.

    Raises
    ------
    OSError
        Missing, unreadable.
    ValueError
        A directory, a pipe, a device, or a file larger than ``limit``.
    """
    if path == "-":
        data = _all_of(sys.stdin.buffer, limit)
    else:
        # O_NONBLOCK: no wait at a pipe without a writer.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        try:
            status = os.fstat(descriptor)
            if stat.S_ISDIR(status.st_mode):
                raise ValueError("is a directory")
            if not stat.S_ISREG(status.st_mode):
                raise ValueError("is no regular file (a pipe or a device)")
            with open(descriptor, "rb", closefd=False) as file:
                data = _all_of(file, limit, min(status.st_size, limit) + 1)
        finally:
            os.close(descriptor)
    if len(data) > limit:
        raise ValueError(f"is larger than {limit // 1_000_000} MB")
    return data


def _all_of(file: BinaryIO, limit: int, first: int = 1 << 22) -> bytes:
    """What is left of ``file``, little more than ``limit`` bytes at most, in steps so that memory grows with need.

    ``first`` is the size of the first step; a file whose size is known takes one.
    """
    chunks, size = [], 0
    while size <= limit and (chunk := file.read(max(first - size, 1 << 22))):
        chunks.append(chunk)
        size += len(chunk)
    return b"".join(chunks)


class Files:
    """Opens the files that a deck includes: inside its folder tree or the allowed folders, within the limits."""

    def __init__(self, root: str | None, allowed: Iterable[str] = (), search: Iterable[str] = ()) -> None:
        self.search = [os.path.realpath(folder) for folder in search]
        roots = ([root] if root is not None else []) + [os.fspath(folder) for folder in allowed] + self.search
        self.roots = [os.path.realpath(folder) for folder in roots]
        self.characters = 0
        self.count = 0
        self._cache: dict[str, tuple[str, Problem | None]] = {}

    def find(self, path: str, including: Source) -> str:
        """The real path of ``path``: relative to the including file, else in the folders to look in, by its name; an
        absolute path that is not here by its name beside the including file; a name without a folder last among the
        bundled sub-circuits.

        Raises
        ------
        ValueError
            It lies outside the folders that may be read.
        """
        if len(path) > limits.PATH:
            raise ValueError("is too long a file name")
        folder = os.path.dirname(including.path) if including.path else (self.roots[0] if self.roots else ".")
        real = os.path.realpath(os.path.join(folder, path))
        if self.allowed(real) and os.path.lexists(real):
            return real
        bare = re.split(r"[\\/]", path)[-1]
        places = [(own, name) for own in self.search for name in (path, bare)]
        if ELSEWHERE.match(path) and not os.path.lexists(real):
            places.append((folder, bare))
        for own, name in places:
            other = os.path.realpath(os.path.join(own, name))
            if self.allowed(other) and os.path.isfile(other):
                return other
        bundled = os.path.join(_bundled.parts(), path)
        if not re.search(r"[\\/]", path) and os.path.isfile(bundled):
            return bundled
        if self.allowed(real):
            return real
        raise ValueError("lies outside the deck's folder")

    def allowed(self, real: str) -> bool:
        """Whether a file lies in one of the folders that may be read."""
        return any(real.startswith(root if root.endswith(os.sep) else root + os.sep) for root in self.roots)

    def read(self, real: str) -> tuple[str, Problem | None]:
        """The text of a file that `find` allowed; each is read once.

        Raises
        ------
        OSError, ValueError, NetlistError
            As `read_bytes` and `decode`, and where the deck's limits are reached.
        """
        if real not in self._cache:
            self._cache[real] = decode(read_bytes(real), short(os.path.basename(real)))
        self.count += 1
        self.characters += len(self._cache[real][0])
        if self.count > limits.INCLUDES or self.characters > limits.TEXT:
            raise ValueError("is one too many: the included files explode")
        return self._cache[real]


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
