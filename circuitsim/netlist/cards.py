"""Deck text to cards and words: comments removed, continuation lines joined, every character located, and errors
reported together.

An ``.include`` reaches only regular files in the deck's own folder tree and in folders that the user allows: an
untrusted deck must neither read ``/etc/passwd`` into an error message nor block on a pipe.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from circuitsim import _bundled
from circuitsim.errors import Location, NetlistError, Problem, UsageError, some
from circuitsim.netlist import limits
from circuitsim.units import short

ELSEWHERE = re.compile(r"[A-Za-z]:|[\\/]|~")
"""How an absolute path begins, on this system or on Windows."""


PathName = str | os.PathLike[str]

Callers = tuple[str, ...]
"""The places from which a text or a sub-circuit is called, innermost first."""


class Source:
    """One reading of one text: its name, its text, and who included it.

    Attributes
    ----------
    name : str
        The file name for messages.
    path : str
        Its real path; empty for text not from a file.
    text : str
        Decoded text, lines ended by ``\\n``.
    order : tuple of int
        Line numbers from the main deck to this text's ``.include``, so that problems sort by place.
    callers : tuple of str
        The chain of ``.include`` lines, innermost first.
    number : int
        Of the sources of one deck, from 1; negative for predefined ones.
    as_cards : int
        Offset before which plain lines are read as cards, for their errors.
    """

    def __init__(self, name: str, path: str, text: str, order: tuple[int, ...] = (), callers: Callers = ()) -> None:
        self.name, self.path, self.text = name, path, text
        self.order, self.callers, self.number = order, callers, 0
        self.as_cards = 0

    @cached_property
    def lines(self) -> list[str]:
        """Its physical lines, without their ends."""
        return self.text.split("\n")

    def line(self, number: int) -> str:
        """The physical line ``number`` (from 1); empty where there is none."""
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""

    def place(self, line: int, column: int = 1, callers: Callers = ()) -> Location:
        """A location in this text."""
        return Location(self.name, line, column, self.line(line), callers + self.callers)


def decode(data: bytes, name: str) -> tuple[str, Problem | None]:
    """Decode ``data``, with a warning if it is not UTF-8 and is read as Latin-1 (where µ is byte B5).

    A byte-order mark selects UTF-16, which LTspice writes.

    Raises
    ------
    NetlistError
        NUL bytes, or damaged UTF-16.
    """
    wide, warning = data[:2] in (b"\xff\xfe", b"\xfe\xff"), None
    try:
        text = data.decode("utf-16" if wide else "utf-8")
    except UnicodeDecodeError as error:
        text = "\0" if wide else data.decode("latin-1")
        place = Source(name, "", plain_lines(text)).place(*_position(plain_lines(text[: error.start])))
        message = f"not UTF-8 (byte 0x{data[error.start]:02X}): the file is read as Latin-1"
        warning = Problem("encoding", message, place, "save it as UTF-8 so that µ and names are read correctly")
    if wide and "\0" in text:
        raise fatal("encoding", "not valid UTF-16", name, "save it as UTF-8")
    return plain_text(text, name, "NUL byte in a text file", "the file is binary or damaged"), warning


def plain_text(text: str, name: str, message: str, hint: str) -> str:
    """`plain_lines` of ``text``.

    Raises
    ------
    NetlistError
        NUL characters: ``message`` and ``hint`` at the first.
    """
    plain = plain_lines(text)
    before, nul, _ = plain.partition("\0")
    if nul:
        raise NetlistError([Problem("encoding", message, Source(name, "", plain).place(*_position(before)), hint)])
    return plain


def plain_lines(text: str) -> str:
    """``text`` with every line ended by ``\\n``, without a byte-order mark."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.removesuffix("\x1a").removeprefix("\ufeff")  # the end of a DOS file


def _position(before: str) -> tuple[int, int]:
    """Line and column, from 1, of the character after a text."""
    return before.count("\n") + 1, len(before) - before.rfind("\n")


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
        data = sys.stdin.buffer.read(limit + 1)
    else:
        # O_NONBLOCK: do not block on a pipe without a writer.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        try:
            status = os.fstat(descriptor)
            if stat.S_ISDIR(status.st_mode):
                raise ValueError("is a directory")
            if not stat.S_ISREG(status.st_mode):
                raise ValueError("is not a regular file (a pipe or a device)")
            with open(descriptor, "rb", closefd=False) as file:
                data = file.read(limit + 1) if status.st_size > limit else file.read()
        finally:
            os.close(descriptor)
    if len(data) > limit:
        raise ValueError(f"is larger than {limit // 1_000_000} MB")
    return data


def given(path: str, option: str = "") -> bytes:
    """The bytes of a file that the user names, with an option.

    Raises
    ------
    UsageError
        It cannot be read.
    """
    try:
        return read_bytes(path)
    except OSError as error:
        raise UsageError(f"{option}{path}: {error.strerror or error}") from None
    except ValueError as error:
        raise UsageError(f"{short(path, 200)!r}: {error}" if "\0" in path else f"{option}{path} {error}") from None


class Files:
    """Opens the files that a deck includes: inside its folder tree or the allowed folders, within the limits."""

    def __init__(
        self, root: PathName | None, allowed: Iterable[PathName] = (), search: Iterable[PathName] = ()
    ) -> None:
        self.search = [os.path.realpath(os.fspath(folder)) for folder in search]
        roots = (*([] if root is None else [root]), *allowed)
        self.roots = [os.path.realpath(os.fspath(folder)) for folder in roots] + self.search
        self.characters = 0
        self.count = 0
        self._cache: dict[str, tuple[str, Problem | None]] = {}

    def find(self, path: str, including: Source) -> str:
        """Resolve ``path``: relative to the including file, then by base name in the search folders; an absolute path
        that does not exist, by base name next to the including file; a bare name, finally among the bundled
        sub-circuits.

        Raises
        ------
        ValueError
            It lies outside the folders that may be read.
        """
        if len(path) > limits.PATH:
            raise ValueError("is too long a file name")
        folder = os.path.dirname(including.path) if including.path else (self.roots[0] if self.roots else ".")
        real, bare = os.path.realpath(os.path.join(folder, path)), re.split(r"[\\/]", path)[-1]
        places = [(folder, path), *((own, name) for own in self.search for name in (path, bare))]
        if ELSEWHERE.match(path) and not os.path.lexists(real):
            places.append((folder, bare))
        for own, name in places:
            other = os.path.realpath(os.path.join(own, name))
            if self.allowed(other) and os.path.isfile(other):
                return other
        bundled = os.path.join(_bundled.parts(), path)
        if bare == path and os.path.isfile(bundled):
            return bundled
        if self.allowed(real):
            return real
        raise ValueError("lies outside the deck's folder")

    def allowed(self, real: str) -> bool:
        """Whether a file lies in one of the folders that may be read."""
        return any(Path(real).is_relative_to(root) for root in self.roots)

    def read(self, real: str) -> tuple[str, Problem | None]:
        """The text of a file that `find` allowed; each is read once.

        Raises
        ------
        OSError, ValueError, NetlistError
            As `read_bytes` and `decode`, or the deck's limits are exceeded.
        """
        if real not in self._cache:
            self._cache[real] = decode(read_bytes(real), short(os.path.basename(real)))
        self.count += 1
        self.characters += len(self._cache[real][0])
        if self.count > limits.INCLUDES or self.characters > limits.TEXT:
            raise ValueError("exceeds the limit on the number and size of included files")
        return self._cache[real]


class Piece(NamedTuple):
    """Origin of a piece of a joined card: its offset in the card, its physical line, the column before it."""

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
    words : Words or None
        The words not yet read, where the card is split into words; those left are refused (`finish`).
    """

    __slots__ = ("line", "pieces", "source", "text", "words")

    def __init__(self, source: Source, line: int, text: str, pieces: tuple[Piece, ...] = ()) -> None:
        self.source, self.line, self.text, self.pieces = source, line, text, pieces
        self.words: Any = None

    def where(self, offset: int | None = None) -> tuple[int, int]:
        """Physical line and column (from 1) of the character at ``offset``; without it of the first that is not
        blank."""
        offset = self.offset if offset is None else offset
        if not self.pieces:
            return self.line, offset + 1
        piece = self.pieces[bisect_right(self.pieces, offset, key=lambda p: p.offset) - 1]
        return piece.line, piece.column + offset - piece.offset + 1

    def place(self, offset: int | None = None, callers: Callers = ()) -> Location:
        """The location of the character at ``offset``; without it of the first that is not blank."""
        return self.source.place(*self.where(offset), callers)

    def at(self, offset: int) -> Token:
        """The place of the character at ``offset``."""
        return Token("", offset, MARK, offset, self)

    @property
    def card(self) -> Card:
        """Itself: a card is a `Place`."""
        return self

    @property
    def offset(self) -> int:
        """Offset of the first character that is not blank."""
        return len(self.text) - len(self.text.lstrip())

    @property
    def last(self) -> Token:
        """The last character."""
        return self.at(max(len(self.text) - 1, 0))


class Place(Protocol):
    """A place in a deck: a card, a token or an expression; the offset is in the text of the card."""

    @property
    def card(self) -> Card:
        """The card."""

    @property
    def offset(self) -> int:
        """The offset."""


_COMMENT = re.compile(r";|(?:(?<=[\s,])|^)(?:\$(?!&)|//)")


def uncommented(line: str) -> str:
    """``line`` up to its comment: ``;`` anywhere, ``$`` and ``//`` where a blank (or a comma) precedes them; ``$&x`` is
    a variable of a ``.control`` block.
    """
    return _COMMENT.split(line, 1)[0]


def cards(source: Source, first: int, take_plain: Callable[[Source, int, int], int]) -> Iterator[Card]:
    """The cards of ``source`` from line ``first`` on.

    ``take_plain`` is called first on each line that may begin a card, with its number and its offset; it may consume
    this and following lines, and returns the offset after them.
    Directives (``*!`` comment lines) and continuation lines without a preceding card come as cards of their own.
    """
    text, start, number = source.text, 0, 0
    held: list[tuple[int, str]] = []  # the lines of the card being read
    directives: list[Card] = []  # held back, since the card before them may continue after them

    def complete() -> Iterator[Card]:
        if held:
            yield joined(Card(source, *held[0]), held[1:])
        yield from directives
        held.clear()
        directives.clear()

    while start <= len(text):
        begin, end, number = start, text.find("\n", start), number + 1
        end = len(text) if end < 0 else end
        line, start = text[begin:end], end + 1
        stripped = line.lstrip()
        if not stripped or number < first:
            continue
        if stripped[0] == "*":
            if stripped[1:2] == "!":
                directives.append(Card(source, number, line))
            continue
        line = uncommented(line)
        if not line or line.isspace():
            continue
        if stripped[0] == "+" and held:
            held.append((number, line))
            continue
        yield from complete()
        if (after := take_plain(source, number, begin)) > begin:
            number, start = number + text.count("\n", start, after), after
        else:
            held.append((number, line))
    yield from complete()


def joined(card: Card, more: list[tuple[int, str]]) -> Card:
    """``card`` with its continuation lines; the ``+``, where there is one, becomes a blank."""
    if not more:
        return card
    parts, pieces, offset = [card.text], list(card.pieces) or [Piece(0, card.line, 0)], len(card.text)
    for number, line in more:
        after = line.index("+") + 1 if line.lstrip().startswith("+") else 0
        parts.append(line[after:])
        pieces.append(Piece(offset + 1, number, after))
        offset += 1 + len(line) - after
    return Card(card.source, card.line, " ".join(parts), tuple(pieces))


WORD, MARK, EXPRESSION, STRING = "word", "mark", "expression", "string"

_NEXT = re.compile(r"\s*(?:([^\s=(),{}'\"]+)|([=(),])|(\S))")
LISTS = frozenset(("tc", "ic"))
"""Parameters whose value may be several numbers with commas."""

_BRACE = re.compile(r"[{}]")


class CardError(Exception):
    """An error at a place of a deck; that of an operation in an expression is added later."""

    def __init__(self, message: str, at: Place | None = None, hint: str = "", kind: str = "syntax") -> None:
        super().__init__(message)
        self.kind, self.message, self.at, self.hint = kind, message, at, hint


class Token(NamedTuple):
    """A word, a mark (``= ( ) ,``), an expression or a string; ``text`` is without its braces or quotes."""

    text: str
    offset: int
    kind: str
    end: int
    card: Card

    @property
    def word(self) -> str:
        """Its text in lower case."""
        return self.text.lower()

    @property
    def numeric(self) -> bool:
        """Whether it begins as a number."""
        return self.text[:1].isdecimal() or self.text[:1] in ("+", "-", ".")


def tokens(card: Card, start: int = 0, stop: int | None = None) -> Iterator[Token]:
    """The tokens of ``card`` from ``start`` on, up to ``stop``.

    Raises
    ------
    CardError
        An unmatched brace or quote; no blank between a name and an expression.
    """
    text, position, glued = card.text, start, -1
    length = len(text) if stop is None else stop
    while (match := _NEXT.match(text, position, length)) is not None:
        form = match.lastindex or 0
        at = match.start(form)
        token = delimited(card, at) if form > 2 else Token(match[form], at, (WORD, MARK)[form - 1], match.end(), card)
        if token.kind != MARK:
            if at == glued:
                raise CardError(
                    "no blank between a name and an expression", card.at(at), "insert a blank; names cannot be computed"
                )
            glued = token.end
        yield token
        position = token.end


def delimited(card: Card, at: int) -> Token:
    """The expression or string that begins with the brace or quote at ``at``."""
    text, mark = card.text, card.text[at]
    if mark == "{":
        depth = 0
        for brace in _BRACE.finditer(text, at):
            depth += 1 if brace.group() == "{" else -1
            if depth == 0:
                return Token(text[at + 1 : brace.start()], at + 1, EXPRESSION, brace.end(), card)
        raise CardError("unmatched '{'", card.at(at), "close the expression on this card")
    if mark == "}":
        raise CardError("unmatched '}'", card.at(at))
    close = text.find(mark, at + 1)
    if close < 0:
        raise CardError(f"unmatched {mark}", card.at(at), "close the quote on this card")
    return Token(text[at + 1 : close], at + 1, EXPRESSION if mark == "'" else STRING, close + 1, card)


class Words(NamedTuple):
    """The unread words of a card: positional words and ``key=value`` pairs.

    Readers take what they use; words left at the end of a card are refused (`finish`).
    """

    words: list[Token]
    pairs: dict[str, tuple[Token, Token]]

    def take(self, count: int | None = None) -> list[Token]:
        """Take up to ``count`` positional words, or all."""
        taken = self.words[:count]
        del self.words[:count]
        return taken

    def named(self, names: Collection[str] | None = None) -> list[tuple[Token, Token]]:
        """Take the pairs with these names (in lower case), or all, in the order of the card."""
        return [self.pairs.pop(name) for name in [*self.pairs] if names is None or name in names]


def finish(card: Card) -> None:
    """Refuse unread words of a card.

    Raises
    ------
    CardError
    """
    words, card.words = card.words, None
    left = [] if words is None else [*words.words, *(key for key, _ in words.pairs.values())]
    for token in sorted(left, key=lambda token: token.offset):
        name = card.text.split(None, 1)[0]
        raise CardError(f"{short(name)}: {short(token.text)!r} does not belong here", token)


def fields(card: Card, start: int, repeated: bool = False) -> Words:
    """Sort the tokens of a card from ``start`` on into words and pairs; as in ngspice, parentheses and commas count as
    blanks.

    Raises
    ------
    CardError
        An ``=`` without a name before it or a value after it; a name twice, unless it may be ``repeated``.
    """
    words: list[Token] = []
    pairs: dict[str, tuple[Token, Token]] = {}
    found, k = [*tokens(card, start)], 0
    plain = [t for t in found if t.kind != MARK or t.text == "="]
    commas = {t.end for t in found if t.text == "," and t.kind == MARK}
    while k < len(plain):
        token, *after = plain[k : k + 3]
        equated = bool(after) and after[0].kind == MARK
        if token.kind == MARK or (equated and token.kind != WORD):
            raise CardError("an '=' without a name before it", token if token.kind == MARK else after[0])
        if not equated:
            words.append(token)
            k += 1
            continue
        if len(after) < 2 or after[1].kind == MARK:
            raise CardError(f"{short(token.text)}= without a value", after[0])
        if not repeated and token.word in pairs:
            raise CardError(f"{short(token.text)}= is given twice on this card", token, "leave one out", "duplicate")
        pairs[token.word], k = (token, after[1]), k + 3
        # ic=1,2 is one value of two numbers, tc=1,2 is tc1=1 tc2=2.
        order = 1
        while token.word in LISTS and k < len(plain) and plain[k - 1].end + 1 in commas:
            order += 1
            if token.word == "tc":
                pairs[f"tc{order}"] = plain[k]._replace(text=f"tc{order}", kind=WORD), plain[k]
            k += 1
    card.words = Words(words, pairs)
    return card.words


NOTE_KINDS = frozenset(("no-effect", "skipped", "assumed", "altered", "diode-law", "amplitude", "nominal", "coupled"))
"""Kinds of `Problem` for accepted statements without effect, and for values that a deck leaves out."""


HINTS = {
    "expression": "operators: + - * / % ** ? : && || ! and comparisons; see docs/netlist.md",
    "function": "see docs/netlist.md for the functions built in; .func f(x) {…} defines another",
    "include": "see docs/netlist.md for what a deck may include",
    "limit": "docs/netlist.md lists the limits on work and memory",
    "number": "every value must be a finite double; zero must be written 0",
    "syntax": "see docs/netlist.md for how each card is written",
}
"""Hints for problems without a hint of their own."""


def order(at: Place) -> tuple[int, ...]:
    """The key that sorts places."""
    return (*at.card.source.order, *at.card.where(at.offset))


Problems = dict[tuple[tuple[int, ...], str, str], Problem]
"""By place, kind and message."""


class Reporter:
    """Errors and warnings in the order of the deck, without duplicates; similar notes are merged."""

    def __init__(self) -> None:
        self._errors: Problems = {}
        self._warnings: Problems = {}
        self._gathered: dict[tuple[str, str], tuple[Place, str, list[str]]] = {}

    def error(
        self,
        kind: str,
        message: str,
        at: Place,
        hint: str = "",
        names: Iterable[str] = (),
        callers: Callers = (),
        table: Problems | None = None,
    ) -> None:
        """One error, or a problem of another table.

        Raises
        ------
        NetlistError
            Too many errors to continue.
        """
        table, key = self._errors if table is None else table, (order(at), kind, message)
        if key not in table:
            place, hint = at.card.place(at.offset, callers), hint or HINTS.get(kind, "")
            table[key] = Problem(kind, message, place, hint, map(short, names))
        if len(self._errors) >= limits.PROBLEMS:
            self.finish()

    def warning(self, kind: str, message: str, at: Place, hint: str = "", names: Iterable[str] = ()) -> None:
        """One warning."""
        self.error(kind, message, at, hint, names, table=self._warnings)

    @contextmanager
    def at(self, card: Card, names: Iterable[str] = (), callers: Callable[[], Callers] = tuple) -> Iterator[None]:
        """Report an exception raised in the block as an error of ``card``."""
        try:
            yield
        except CardError as error:
            self.failure(error, card, names, callers())

    def failure(self, error: CardError, card: Card, names: Iterable[str] = (), callers: Callers = ()) -> None:
        """Report an error of a card at its place; an error in an expression may be on another card (a parameter, a
        function)."""
        at = error.at or card
        if (at.card.source, at.card.line) != (card.source, card.line):
            line, _ = card.where()
            callers = (f"used at {card.source.name}:{line}", *callers)
        self.error(error.kind, error.message, at, error.hint, names, callers)

    def gather(self, kind: str, message: str, at: Place, name: str, hint: str = "") -> None:
        """Record a note or warning shared by many elements: reported once, with the first place and the names."""
        self._gathered.setdefault((kind, message), (at, hint, []))[2].append(name)

    def add(self, problem: Problem, order: tuple[int, ...] = (0,), error: bool = False) -> None:
        """A warning or an error that carries its own location; ``order`` sorts it."""
        table = self._errors if error else self._warnings
        table.setdefault((order, problem.kind, problem.message), problem)

    @property
    def failed(self) -> bool:
        """Whether there was an error."""
        return bool(self._errors)

    def has(self, *kinds: str) -> bool:
        """Whether there was an error of one of these kinds."""
        return any(problem.kind in kinds for problem in self._errors.values())

    def finish(self) -> tuple[tuple[Problem, ...], tuple[Problem, ...]]:
        """The warnings and the notes.

        Raises
        ------
        NetlistError
            There were errors.
        """
        if self._errors:
            raise NetlistError(_sorted(self._errors))
        for (kind, message), (at, hint, names) in self._gathered.items():
            text = message.replace("%s", some(names, 5))
            self.warning(kind, text, at, hint, names[:20])
        self._gathered = {}
        everything = _sorted(self._warnings)
        warnings = tuple(p for p in everything if p.kind not in NOTE_KINDS)
        return warnings, tuple(p for p in everything if p.kind in NOTE_KINDS)


def _sorted(table: Problems) -> list[Problem]:
    return [problem for _, problem in sorted(table.items(), key=lambda entry: entry[0][0])]


def fatal(kind: str, message: str, file: str, hint: str) -> NetlistError:
    """An error of a whole file."""
    return NetlistError([Problem(kind, message, Location(file, 1), hint)])
