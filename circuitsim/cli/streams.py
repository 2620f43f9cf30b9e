"""Standard output and standard error of the commands, without terminal control sequences.

Names, titles and arguments come from elsewhere. A control character in them could move the cursor, overwrite a message
or colour it; it is shown as ``\\x1b`` instead, as is what the stream's encoding does not have (Ω in ASCII).
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from collections.abc import Iterator
from typing import Any, TextIO

from circuitsim._files import naming

# All controls but line feed and tab, and the marks that turn the direction of writing.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def escaped(text: str) -> str:
    r"""``text`` with control characters as Python writes them.

    >>> print(escaped("a \x1b[31mred\x1b[0m name"))
    a \x1b[31mred\x1b[0m name
    """
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


class EscapingStream:
    """A text stream that escapes what is written to it; in all else it is the stream behind it."""

    def __init__(self, stream: TextIO, what: str) -> None:
        self.behind, self.what = stream, what

    def write(self, text: str) -> int:
        """Write `escaped` text; a failure (a full disk) names the stream."""
        with naming(self.what):
            return self.behind.write(escaped(text))

    def flush(self) -> None:
        """Write what is still held back."""
        with naming(self.what):
            self.behind.flush()

    def writelines(self, lines: Any) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.behind, name)


@contextlib.contextmanager
def escaping_streams() -> Iterator[None]:
    """Escape what is written to standard output and standard error meanwhile."""
    before = sys.stdout, sys.stderr
    for stream in before:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.stdout = EscapingStream(sys.stdout, "standard output")
    sys.stderr = EscapingStream(sys.stderr, "standard error")
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
