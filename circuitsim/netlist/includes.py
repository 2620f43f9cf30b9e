"""``.include``, ``.lib`` and the sections of library files, with a true stack of files; files named by ``--lib``, and
those that a deck names and that are not here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

from circuitsim.errors import NetlistError, Problem, UsageError
from circuitsim.netlist import limits
from circuitsim.netlist.cards import ELSEWHERE, Card, Files, Source, decode, read_bytes
from circuitsim.netlist.parts import Reader
from circuitsim.netlist.tokens import STRING, CardError, Token, delimited
from circuitsim.units import NumberError, short
from circuitsim.units import parse as parse_number

ADVICE = "--lib FILE reads a library, -I DIR or CIRCUITSIM_LIB_PATH name folders to look in"


def base_name(path: str) -> str:
    """The last part of a path of any system."""
    return re.split(r"[\\/]", path)[-1]


def is_elsewhere(path: str) -> bool:
    """Whether a path is absolute, on this system or on Windows."""
    return ELSEWHERE.match(path) is not None


def may_be_missing(path: str) -> bool:
    """Whether a ``.lib`` card may name this file although it is not here: an absolute path, or a bare name, which
    LTspice and PSpice look for in their own folders.
    """
    return is_elsewhere(path) or base_name(path) == path


_TABLE = re.compile(r'\b(?:table|tablefile|fasttable)\s*\(\s*"([^"]*)"\s*\)', re.I)
"""A function of time whose points stand in a file, linear between them."""


class MissingFile(CardError):
    """An included file that is not here or may not be read; ``why`` in short."""

    def __init__(self, message: str, offset: int, hint: str, why: str) -> None:
        super().__init__("include", message, offset, hint)
        self.why = why


class Section:
    """The section of a library file that is being looked for (``inside`` it or not)."""

    __slots__ = ("found", "inside", "name", "seen")

    def __init__(self, name: str) -> None:
        self.name = name.lower()
        self.inside = self.found = False
        self.seen: list[str] = []


def words_of(card: Card, position: int) -> list[Token]:
    """File names and words behind the card's name, quoted with ' or \" or bare; with case and signs."""
    text = card.text
    found: list[Token] = []
    while True:
        rest = text[position:]
        position += len(rest) - len(rest.lstrip())
        if position >= len(text):
            return found
        if text[position] in "'\"":
            token = delimited(text, position)
        else:
            word = text[position:].split(None, 1)[0]
            token = Token(word, position, STRING, position + len(word))
        found.append(token)
        position = token.end
        if len(found) > 2:
            return found


class Includes(Reader):
    """A deck that is being read, with the files that it names.

    Attributes
    ----------
    files : Files
    section : Section or None
        Of the library file that is being read.
    """

    def __init__(self, files: Files) -> None:
        super().__init__()
        self.files = files
        self.section: Section | None = None

    def read(self, source: Source, first: int) -> None:
        """Read the cards of ``source`` from line ``first`` on, into the current scope."""

    def read_libraries(self, paths: tuple[str, ...]) -> None:
        """Read the definitions in ``paths``; those of the deck itself count before them.

        Raises
        ------
        UsageError
            A file that cannot be read.
        """
        self.library = True
        for path in paths:
            try:
                text, warning = decode(read_bytes(path), path)
            except OSError as error:
                raise UsageError(f"--lib {path}: {error.strerror or error}") from None
            except ValueError as error:
                raise UsageError(f"--lib {path} {error}") from None
            real = os.path.realpath(path)
            self.files.roots.append(os.path.dirname(real))
            if warning is not None:
                self.reporter.place_warning(warning, (0,))
            self.ended = False
            self.read(Source(path, real, text, (), ("a library of --lib",)), 1)
        self.library = False

    def include(self, card: Card, position: int) -> None:
        """``.include file``."""
        words = words_of(card, position)
        if len(words) != 1:
            at = words[1].offset if words else card.last
            message = ".include takes one file" if words else ".include names no file"
            raise CardError("include", message, at, "put a name with blanks in quotes" if words else '.include "file"')
        card.done()
        self.enter(card, words[0], None)

    def library_or_section(self, card: Card, position: int) -> None:
        """``.lib file section``, or ``.lib file`` for the whole file."""
        words = words_of(card, position)
        if len(words) not in (1, 2):
            at = words[2].offset if words else card.last
            raise CardError("include", ".lib takes a file and a section", at, ".lib file section")
        section = Section(words[1].text) if len(words) == 2 else None
        card.done()
        try:
            self.enter(card, words[0], section)
        except MissingFile as error:
            path = words[0].text
            if section is not None or not may_be_missing(path):
                raise
            self.missing.append(base_name(path))
            self.reporter.gather(
                "skipped", f"{short(path)} {error.why}: nothing is read from it", card, words[0].offset, path, ADVICE
            )

    def stray_endl(self, card: Card, position: int) -> None:
        """An ``.endl`` outside of a library."""
        raise CardError("include", ".endl without its .lib section", card.start, "remove it")

    def text_of(
        self, card: Card, token: Token, section: Section | None = None
    ) -> tuple[str, str, str, Problem | None] | None:
        """Real path, key among the open files, text and warning of the file that ``token`` names; None where the text
        is damaged, which is reported.

        Raises
        ------
        CardError
            It is not here, may not be read, or includes itself.
        """
        path = token.text
        try:
            real = self.files.find(path, card.source)
            key = real if section is None else f"{real}\0{section.name}"
            if is_elsewhere(path) and not os.path.lexists(path) and os.path.isfile(real):
                message = "files that are not where the deck says are read by their names (%s)"
                self.reporter.gather("assumed", message, card, token.offset, path)
            if key in self.open_files:
                raise CardError("include", f"{short(path)} includes itself", token.offset, "break the loop of .include")
            return real, key, *self.files.read(real)
        except OSError as error:
            reason = error.strerror or "cannot be read"
            hint = ADVICE if is_elsewhere(path) else f"the path is relative to the file it is written in; {ADVICE}"
            message = f"{short(path)}: {reason[0].lower()}{reason[1:]}"
            raise MissingFile(message, token.offset, hint, "is not here") from None
        except ValueError as error:
            if "outside" not in str(error):
                raise CardError("include", f"{short(path)} {error}", token.offset) from None
            hint = f"--allow-include DIR allows a folder; {ADVICE}" if is_elsewhere(path) else ""
            raise MissingFile(
                f"{short(path)} {error}", token.offset, hint or "--allow-include DIR allows a folder", str(error)
            ) from None
        except NetlistError as error:
            self.reporter.place_error(error.problems[0], card)
            return None

    def points(self, card: Card, token: Token) -> list[float]:
        """The numbers of a file of points (``PWL file=``): times (s) and values, with blanks, commas or line ends
        between.

        Raises
        ------
        CardError
            The file cannot be read, or holds something else than pairs of numbers.
        """
        found = self.text_of(card, token)
        numbers: list[float] = []
        for count, line in enumerate(found[2].split("\n") if found is not None else (), 1):
            for word in re.split(r"[\s,;()]+", re.split(r"[*#]|//", line)[0].strip()):
                try:
                    numbers += [parse_number(word)] if word else []
                except NumberError as error:
                    if numbers:
                        raise CardError(
                            "number",
                            f"{short(token.text)}:{count}: {error}",
                            token.offset,
                            "a file of points holds times and values",
                        ) from None
                    break  # a heading
        if found is not None and (len(numbers) < 2 or len(numbers) % 2):
            raise CardError(
                "syntax",
                f"{short(token.text)} holds no pairs of time and value",
                token.offset,
                "write a time and a value on each line",
            )
        return numbers

    def with_tables(self, card: Card) -> Card:
        """The card with the points of its files of points: ``table("f")`` of Xyce is ``table(time, t1, v1, …)``.

        Raises
        ------
        CardError
            As `points`.
        """
        while (found := _TABLE.search(card.text)) is not None:
            token = Token(found[1], found.start(1), STRING, found.end(1))
            given = self.points(card, token)
            pairs = sorted(zip(given[0::2], given[1::2]))
            numbers = ", ".join(repr(number) for pair in pairs for number in pair)
            text = f"{card.text[: found.start()]}table(time, {numbers}){card.text[found.end() :]}"
            card = Card(card.source, card.line, text, card.pieces)
        return card

    def enter(self, card: Card, token: Token, section: Section | None) -> None:
        """Read the file named by ``token`` in place of the card."""
        path = token.text
        if len(self.open_files) > limits.INCLUDE_DEPTH:
            raise CardError("include", f"files include each other more than {limits.INCLUDE_DEPTH} deep", token.offset)
        found = self.text_of(card, token, section)
        if found is None:
            return
        real, key, text, warning = found
        line, column = card.where(card.start)
        name = os.path.normpath(os.path.join(os.path.dirname(card.source.name), path))
        callers = (f"included at {card.source.name}:{line}:{column}", *card.source.callers)
        source = Source(name, real, text, (*card.source.order, line, column), callers)
        if warning is not None:
            self.reporter.place_warning(warning, source.order)
        outer = self.section
        self.section = section
        self.open_files.append(key)
        self.read(source, 1)
        self.open_files.pop()
        self.section = outer
        # An .end ends its own file; the deck continues behind the .include.
        self.ended = False
        if section is not None and not section.found:
            listed = ", ".join(short(s) for s in section.seen[:8])
            hint = f"it has: {listed}" if listed else "a section begins with .lib name and ends with .endl"
            missing = f"{short(path)} has no section {short(section.name)!r}"
            raise CardError("include", missing, token.offset, hint)

    def library_card(self, card: Card, word: str, position: int) -> bool:
        """Whether the current section consumes ``card``: its begin, its end, or a card outside it."""
        section = self.section
        assert section is not None
        if word == ".lib":
            words = words_of(card, position)
            if len(words) == 1:
                if section.inside:
                    raise CardError("include", ".lib section inside a section", card.start, "close it with .endl")
                section.seen.append(words[0].text)
                section.inside = words[0].word == section.name
                section.found = section.found or section.inside
                return True
            return not section.inside
        if word == ".endl":
            words = words_of(card, position)
            if len(words) > 1:
                raise CardError(
                    "include", ".endl takes the name of its section alone", words[1].offset, "remove the rest"
                )
            section.inside = False
            return True
        return not section.inside


CARDS: dict[str, Callable[[Any, Card, int], None]] = {
    ".include": Includes.include,
    ".inc": Includes.include,
    ".lib": Includes.library_or_section,
    ".endl": Includes.stray_endl,
}
