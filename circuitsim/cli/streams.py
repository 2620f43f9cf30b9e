"""Standard output and standard error of the commands, without terminal control sequences.

Names, titles and arguments are untrusted. A control character in them could move the cursor, overwrite a message or
colour it; it is shown as ``\\x1b`` instead, as are characters missing in the stream's encoding (Ω in ASCII).
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any, TextIO

from circuitsim._files import naming

# All controls except line feed and tab, and the marks that change the writing direction.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")

WHEN = ("auto", "always", "never")
"""When messages have colours."""

_HEAD = re.compile(r"^(error|warning|note|hint|time|interrupted|    hint)(?=\b)", re.MULTILINE)
_COLOUR = {"error": "1;31", "interrupted": "1;31", "warning": "1;33", "note": "36", "hint": "32", "time": "2"}


def _in_colour(head: re.Match[str]) -> str:
    """A message head between the codes that begin and end its colour."""
    return f"\x1b[{_COLOUR[head[0].strip()]}m{head[0]}\x1b[0m"


def escaped(text: str) -> str:
    r"""``text`` with control characters as Python writes them.

    >>> print(escaped("a \x1b[31mred\x1b[0m name"))
    a \x1b[31mred\x1b[0m name
    """
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


class ClosedStream(io.TextIOBase):
    """Replaces a standard stream that is closed (``circuitsim solve my.cir >&-``)."""

    def write(self, text: str) -> int:
        """Refuse to write, as the system does."""
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))


class EscapingStream:
    """A text stream that escapes what is written to it; otherwise it delegates to the original stream."""

    def __init__(self, stream: TextIO, what: str, coloured: bool = False) -> None:
        self.behind, self.what, self._coloured = stream, what, coloured

    def write(self, text: str) -> int:
        """Write `escaped` text, message heads in colour if enabled; a failure (a full disk) names the stream."""
        safe = escaped(text)
        with naming(self.what):
            return self.behind.write(_HEAD.sub(_in_colour, safe) if self._coloured else safe)

    def flush(self) -> None:
        """Write buffered text."""
        with naming(self.what):
            self.behind.flush()

    def writelines(self, lines: Any) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.behind, name)


class ErrorsOnly(EscapingStream):
    """Standard error of ``--quiet``: errors pass, all else is discarded."""

    passes = False

    def write(self, text: str) -> int:
        """Write a text that begins as an error does, or continues one."""
        if text.strip():
            self.passes = text.startswith("error")
        return self.behind.write(text) if self.passes else len(text)


def colour_asked(words: Sequence[str]) -> str:
    """The last ``--color`` of a command line, by default ``auto``; it also applies to errors of the command line
    itself."""
    found = [after for word, after in zip(words, (*words[1:], "")) if word == "--color"]
    found += [word.partition("=")[2] for word in words if word.startswith("--color=")]
    return found[-1] if found and found[-1] in WHEN else "auto"


def shows_colour(stream: TextIO, when: str) -> bool:
    """Whether messages on a stream have colours: on a terminal, unless ``NO_COLOR`` is set or it is ``dumb``."""
    if when != "auto":
        return when == "always"
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


@contextlib.contextmanager
def escaping_streams(colour: str = "never") -> Iterator[None]:
    """In this context, escape what is written to standard output and standard error; messages may have colours
    (`WHEN`). Within another such context nothing changes: its streams remain."""
    if isinstance(sys.stderr, EscapingStream):
        yield
        return
    before = sys.stdout, sys.stderr
    for stream in before:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    errors: Any = before[1] or io.StringIO()  # no stream to write to
    output: Any = before[0] or ClosedStream()
    sys.stdout = EscapingStream(output, "standard output")
    sys.stderr = EscapingStream(errors, "standard error", shows_colour(errors, colour))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
