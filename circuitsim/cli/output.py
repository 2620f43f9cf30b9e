"""Output of a command: standard output, or a file written atomically."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable
from typing import Any

from circuitsim.errors import UsageError

FORMATS = {
    "table": "aligned columns, for people",
    "csv": "comma-separated rows, for spreadsheets and pandas",
    "json": "one object with every number in full double precision",
    "raw": "a SPICE3 rawfile, for ngspice and readers of its waveforms",
}
"""What ``--format`` may be, of all commands."""


def add_format(parser: argparse.ArgumentParser, *names: str) -> None:
    """Add ``--format`` with some of `FORMATS`; the first is the default."""
    parser.add_argument(
        "--format",
        choices=names,
        help="how the result is written (the first of these, or what the output file's name ends with)",
    )
    parser.set_defaults(formats=names)


def choose_format(args: argparse.Namespace) -> None:
    """Fill in a ``--format`` that is not given: by the ending of ``--output``, else the command's default."""
    names = getattr(args, "formats", None)
    if names and args.format is None:
        ending = os.path.splitext(getattr(args, "output", None) or "")[1][1:].lower()
        args.format = ending if ending in names else names[0]


def add_output(parser: argparse.ArgumentParser, what: str = "the result") -> None:
    """Add ``--output`` to a command."""
    parser.add_argument(
        "--output",
        "-o",
        metavar="FILE",
        help=f"write {what} to FILE instead of standard output; .json, .csv or .raw at its end is its --format, where "
        "none is given",
    )


class Listed(argparse.Action):
    """An option of a list with blanks between: given again, it goes on where the one before ended."""

    def __call__(
        self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: str | None = None
    ) -> None:
        """Add ``values`` to the list."""
        before = getattr(namespace, self.dest)
        setattr(namespace, self.dest, f"{before} {values}" if before else values)


def check_target(path: str | None, decks: Iterable[str], option: str = "--output") -> None:
    """Refuse a target that cannot be written or is an input, before any work is done.

    Raises
    ------
    UsageError
        The target is a deck, a folder, or lies in a folder that does not exist.
    """
    if path is None or path == "-":
        return
    if not path:
        raise UsageError(f"{option} needs the name of a file")
    if os.path.isdir(path):
        raise UsageError(f"{option} {path!r} is a folder; name a file in it")
    folder = os.path.dirname(path)
    if folder and not os.path.isdir(folder):
        raise UsageError(f"{option} {path!r}: there is no folder {folder!r}; make it first")
    for deck in decks:
        if os.path.exists(path) and os.path.exists(deck) and os.path.samefile(path, deck):
            raise UsageError(f"{option} {path!r} would overwrite the deck; choose another name")


def deliver(content: str, path: str | None) -> None:
    """Print ``content``, or write it to ``path``."""
    if path is None or path == "-":
        sys.stdout.write(content)
    else:
        save(content.encode(), path)


def save(content: bytes, path: str) -> None:
    """Write a file atomically; devices and pipes (``/dev/null``) are written as they are.

    Raises
    ------
    UsageError
        The system does not let the file be written; the old one, if any, is unharmed.
    """
    from circuitsim._files import write_file

    try:
        write_file(path, content)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UsageError(f"cannot write {path!r}: {error.strerror or error}") from None
