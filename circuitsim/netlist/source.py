"""Deck text: safe opening of files, decoding, and places in them.

An ``.include`` reaches regular files inside the deck's own folder tree, and folders the user allowed:
a deck from elsewhere must not read ``/etc/passwd`` into an error message, nor wait for a pipe.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from bisect import bisect_left
from collections.abc import Iterable
from typing import BinaryIO

from circuitsim import _bundled
from circuitsim.errors import Location, NetlistError, Problem
from circuitsim.netlist import limits
from circuitsim.units import short

ELSEWHERE = re.compile(r"[A-Za-z]:|[\\/]|~")
"""How an absolute path begins, on this system or on Windows."""
STRETCH = 1 << 16
"""Characters between two marks of a text: how many lines end before them."""


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

    __slots__ = ("_marks", "callers", "depth", "name", "order", "path", "text")

    def __init__(
        self, name: str, path: str, text: str, order: tuple[int, ...] = (), callers: tuple[str, ...] = ()
    ) -> None:
        self.name, self.path = name, path
        self.text = text
        self.order, self.callers = order, callers
        self._marks = [0]

    def line(self, number: int) -> str:
        """The physical line ``number`` (from 1), without its end."""
        text, marks = self.text, self._marks
        while number > marks[-1] and (start := (len(marks) - 1) * STRETCH) < len(text):
            marks.append(marks[-1] + text.count("\n", start, start + STRETCH))
        if not 0 < number <= marks[-1] + 1:
            return ""
        stretch = bisect_left(marks, number - 1, 1) - 1
        start, left = stretch * STRETCH, number - 1 - marks[stretch]
        start = text.rfind("\n", 0, start) + 1 if not left else start
        for _ in range(left):
            start = text.index("\n", start) + 1
        end = text.find("\n", start)
        return text[start:] if end < 0 else text[start:end]

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
