"""Output of a command: standard output, or a file written atomically."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from circuitsim.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from circuitsim.formats.result import Result
    from circuitsim.formats.table import Table
    from circuitsim.netlist.deck import Deck

FORMATS = {
    "table": "aligned columns, for people",
    "csv": "comma-separated rows, for spreadsheets and pandas",
    "json": "one object with every number in full double precision",
    "raw": "a SPICE3 rawfile, for ngspice and readers of its waveforms",
}
"""Values of ``--format``, for all commands."""

PICTURES = ("png", "svg", "pdf")


def choose_format(args: argparse.Namespace) -> None:
    """Fill in ``--format`` if not given: from the extension of ``--output``, or the command's default.

    Raises
    ------
    UsageError
        An extension that the command does not write, or that contradicts the format given.
    """
    names, path = getattr(args, "formats", None), getattr(args, "output", None)
    if not names:
        return
    ending = ending_of(path)
    named = "table" if ending == "txt" else ending
    if args.format is None:
        if ending and named not in names:
            drawn = ", --plot for a picture" if ending in PICTURES and hasattr(args, "plot") else ""
            written = [f".{'txt' if name == 'table' else name}" for name in names]
            raise UsageError(f"--output {path!r}: {args.command} writes {', '.join(written)}; give --format{drawn}")
        args.format = named if ending else names[0]
    elif named in FORMATS and named != args.format:
        raise UsageError(f"--output {path!r} and --format {args.format} disagree: leave out --format")
    if getattr(args, "binary", False) and (args.format != "raw" or path in (None, "-")):
        raise UsageError("--binary is for rawfiles: give --output FILE.raw")


def ending_of(path: str | None) -> str:
    """The extension of a file name in lower case, without its dot; empty for standard output, devices and pipes."""
    if path is None or path == "-" or (os.path.exists(path) and not os.path.isfile(path)):
        return ""
    return os.path.splitext(path)[1][1:].lower()


def check_target(
    path: str | None, inputs: Iterable[str], option: str = "--output", endings: Sequence[str] = ()
) -> None:
    """Refuse a target that cannot be written or is an input, before any work is done.

    Parameters
    ----------
    endings : sequence of str
        Extensions that the name may have, and that of a picture must have; any by default.

    Raises
    ------
    UsageError
        Another extension; the target is a deck, a folder, or lies in a folder that does not exist.
    """
    if path is None or (path == "-" and endings != PICTURES):
        return
    if endings and ending_of(path) not in (endings if endings == PICTURES else ("", *endings)):
        *most, last = (f".{ending}" for ending in endings)
        raise UsageError(f"{option} {path!r}: the name must end in {', '.join(most)} or {last}")
    if not path:
        raise UsageError(f"{option} needs the name of a file")
    if os.path.isdir(path):
        raise UsageError(f"{option} {path!r} is a folder; name a file in it")
    folder = os.path.dirname(path)
    if folder and not os.path.isdir(folder):
        raise UsageError(f"{option} {path!r}: there is no folder {folder!r}; create it first")
    for deck in inputs:
        if os.path.exists(path) and os.path.exists(deck) and os.path.samefile(path, deck):
            raise UsageError(f"{option} {path!r} would overwrite the deck; choose another name")


def check_targets(args: argparse.Namespace, *inputs: str) -> None:
    """Refuse an ``--output`` or a ``--plot`` that cannot be written, or is an input, before any work is done."""
    check_target(args.output, [args.deck, *inputs])
    if args.plot:
        check_target(args.plot, [args.deck], "--plot", PICTURES)
        if args.output is not None and os.path.realpath(args.plot) == os.path.realpath(args.output):
            raise UsageError(f"--plot and --output name the same file {args.plot!r}")


def draw(figure: Figure, path: str) -> None:
    """Write a picture, in the format of its file name's extension."""
    from circuitsim.plotting import rendered

    save(rendered(figure, os.path.splitext(path)[1][1:].lower()), path)


def present(
    result: Result,
    args: argparse.Namespace,
    shown: Mapping[str, Table | Result] = MappingProxyType({}),
    more: Mapping[str, Any] = MappingProxyType({}),
    figure: Callable[[], Figure] | None = None,
    plot: str = "DC transfer characteristic",
    **own: Callable[[], str],
) -> None:
    """Write a result in the format of ``--format``, and its picture if ``--plot`` is given.

    Parameters
    ----------
    result : Result
    args : argparse.Namespace
    shown : mapping of str to Table or Result
        Written in place of the tables of the result, of a result its main one. CSV and rawfiles contain the first;
        ``circuitsim run`` writes the others as CSV beside it.
    more : mapping
        Further entries of the JSON object, which is that of the first of ``shown``.
    figure : callable, optional
        Makes a picture other than `Result.plot`.
    plot : str
        Kind of plot of a rawfile.
    **own : callable
        Makes the text of a format that needs one of its own.
    """
    from circuitsim.formats.result import Result

    content: str | bytes
    title, first = result._heading()[0], next(iter(shown.values()), result)
    tables = [next(iter(one.tables().values())) if isinstance(one, Result) else one for one in shown.values()]
    if args.format in own:
        content = own[args.format]()
    elif args.format == "json":
        from circuitsim.formats.strict_json import dumps

        content = dumps(first.to_dict() | dict(more))
    elif args.format == "table":
        content = result.text(tables)
    else:
        main = tables[0] if tables else next(iter(result.tables().values()))
        if args.format == "csv":
            content = main.csv()
        else:
            from circuitsim.formats.rawfile import rawfile

            content = rawfile(title, main, plot)
    if args.format == "raw" and args.binary:
        from circuitsim.formats.rawfile import binary

        content = binary(content)
    deliver(content, args.output)
    for name, table in list(zip(shown, tables))[1:] if args.format not in own and args.output and not alone() else ():
        deliver(table.csv(), f"{os.path.splitext(args.output)[0]}-{name}.csv")
    if args.plot:
        draw((figure or result.plot)(), args.plot)


SHOWN, LAST = 40, 5
"""Maximum number of lines of a table of ``circuitsim run``, and how many of them are from its end."""


def shortened(text: str) -> str:
    """A text with at most `SHOWN` lines of each table."""
    tables = [table.splitlines() for table in text.rstrip().split("\n\n")]
    for lines in tables:
        if (left := len(lines) - SHOWN) > 0:
            lines[SHOWN - LAST : -LAST] = [f"… {left:,} more rows (--output DIR writes all, --plot DIR draws them)"]
    return "\n\n".join(map("\n".join, tables)) + "\n"


def deliver(content: str | bytes, path: str | None) -> None:
    """Print ``content``, or write it to ``path``, which ``circuitsim run`` says; bytes are for a file."""
    if isinstance(content, bytes):
        save(content, path or "")
    elif path is None or path == "-":
        sys.stdout.write(content if alone() else shortened(content))
    else:
        save(content.encode(), path)
        if not alone():
            print(f"written to {path}")


class Together(NamedTuple):
    """A deck whose analyses are run one after another, and the messages printed."""

    deck: Deck
    said: set[str]


TOGETHER: ContextVar[Together | None] = ContextVar("TOGETHER", default=None)


def alone() -> bool:
    """Whether a command runs by itself, not as one of all analyses of a deck."""
    return TOGETHER.get() is None


def save(content: bytes, path: str) -> None:
    """Write a file atomically; devices and pipes (``/dev/null``) are written directly.

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
