"""What commands share: a deck with reports of its problems; where long ones run, their progress, Ctrl-C; output, to
standard output or to files that are written atomically, without terminal control sequences.

Names, titles and arguments are untrusted. A control character in them could move the cursor, overwrite a message or
colour it; it is shown as ``\\x1b`` instead, as are characters missing in the stream's encoding (Ω in ASCII).
"""

from __future__ import annotations

import errno
import io
import os
import re
import signal
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from os.path import dirname, exists, isdir, isfile, join, lexists, realpath, samefile, split, splitext
from types import FrameType, MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO, TypeVar

from circuitsim._files import naming
from circuitsim.errors import Problem, UsageError, some
from circuitsim.formats import Result, Table, binary, dumps, rawfile

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from matplotlib.figure import Figure

    from circuitsim.netlist.deck import Deck
    from circuitsim.netlist.roles import Roles

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


@contextmanager
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


FORMATS = {
    "table": "aligned columns, for people",
    "csv": "comma-separated rows, for spreadsheets and pandas",
    "json": "one object with every number in full double precision",
    "raw": "a SPICE3 rawfile, for ngspice and readers of its waveforms",
}
"""Values of ``--format``, for all commands."""

PICTURES = ("png", "svg", "pdf")


def choose_format(args: Namespace) -> None:
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
    if path is None or path == "-" or (exists(path) and not isfile(path)):
        return ""
    return splitext(path)[1][1:].lower()


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
    if isdir(path):
        raise UsageError(f"{option} {path!r} is a folder; name a file in it")
    folder = dirname(path)
    if folder and not isdir(folder):
        raise UsageError(f"{option} {path!r}: there is no folder {folder!r}; create it first")
    for deck in inputs:
        if exists(path) and exists(deck) and samefile(path, deck):
            raise UsageError(f"{option} {path!r} would overwrite the deck; choose another name")


def check_targets(args: Namespace, *inputs: str) -> None:
    """Refuse an ``--output`` or a ``--plot`` that cannot be written, or is an input, before any work is done."""
    check_target(args.output, [args.deck, *inputs])
    if args.plot:
        check_target(args.plot, [args.deck], "--plot", PICTURES)
        if args.output is not None and realpath(args.plot) == realpath(args.output):
            raise UsageError(f"--plot and --output name the same file {args.plot!r}")


def draw(figure: Figure, path: str) -> None:
    """Write a picture, in the format of its file name's extension."""
    from circuitsim.plotting import rendered

    save(rendered(figure, splitext(path)[1][1:].lower()), path)


def present(
    result: Result,
    args: Namespace,
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
    args : Namespace
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
    content: str | bytes
    title, first = result._heading()[0], next(iter(shown.values()), result)
    tables = [next(iter(one.tables().values())) if isinstance(one, Result) else one for one in shown.values()]
    if args.format in own:
        content = own[args.format]()
    elif args.format == "json":
        content = dumps(first.to_dict() | dict(more))
    elif args.format == "table":
        content = result.text(tables)
    else:
        main = tables[0] if tables else next(iter(result.tables().values()))
        content = main.csv() if args.format == "csv" else rawfile(title, main, plot)
    if args.format == "raw" and args.binary:
        content = binary(content)
    deliver(content, args.output)
    for name, table in list(zip(shown, tables))[1:] if args.format not in own and args.output and not alone() else ():
        deliver(table.csv(), f"{splitext(args.output)[0]}-{name}.csv")
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


def say(text: str) -> None:
    """Print a message for people, on standard error."""
    print(text, file=sys.stderr)


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


R = TypeVar("R")

INTERRUPTED = 130
"""Exit code of a command interrupted by Ctrl-C."""


Update = Callable[[float, float], None]
"""What shows how much is done, of how much."""


@contextmanager
def late_progress(label: str) -> Iterator[Update]:
    """A progress line, shown once the work has run for a second; elsewhere than on a terminal, a line a minute. None
    under ``--quiet``."""
    import time

    clock, line = time.monotonic, None
    began = clock()

    def update(done: float, points: float) -> None:
        nonlocal line
        due = line is None and done < points and clock() - began > 1.0
        if due and not isinstance(sys.stderr, ErrorsOnly):
            from circuitsim.training.history import ProgressLine

            line = ProgressLine(sys.stderr, label, clock)
        if line is not None:
            line.update(done / points)

    try:
        yield update
    finally:
        if line is not None:
            line.close()


LOST: list[str] = []
"""Interrupts in callbacks of LLVM, which cannot raise them: the kernel that was compiled is then missing."""


def unraised(one: Any) -> None:
    """As `sys.unraisablehook`: note an interrupt in `LOST`, print any other exception."""
    if one.exc_type is KeyboardInterrupt:
        LOST.append(one.exc_type.__name__)
    else:
        sys.__unraisablehook__(one)


class Interrupt:
    """Ctrl-C as a request to stop the current work; a second one ends the command at once."""

    def __init__(self) -> None:
        self.asked = False
        self._before: object = None

    def __enter__(self) -> Interrupt:
        try:
            self._before = signal.signal(signal.SIGINT, self._note)
        except ValueError:  # not the main thread, which receives no signals
            self._before = None
        return self

    def __exit__(self, *error: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)  # type: ignore[arg-type]

    def __call__(self) -> bool:
        """Whether the work should stop."""
        return self.asked

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True

    def watch(self, shown: Update) -> Callable[[float, float], bool]:
        """Progress callback of a transient, called with the time reached and the stop time, which are ``shown``; True
        ends the run."""

        def reached(time: float, stop: float) -> bool:
            shown(time, stop)
            return self.asked

        return reached


@contextmanager
def working(label: str, args: Namespace, least: int | None = 1) -> Iterator[dict[str, Any]]:
    """Arguments of a function that shows its progress, and works where the options say (`workers_of`)."""
    with late_progress(label) as update, workers_of(args.workers, getattr(args, "dask", None)) as (workers, executor):
        yield {"progress": update, "workers": workers or least, "executor": executor}


def called(function: Callable[..., R], args: Namespace, source: Any, **own: Any) -> R:
    """The result of a function of ``source``, with all options that are named as its arguments, and ``own`` ones."""
    code = getattr(function, "__wrapped__", function).__code__
    names = code.co_varnames[1 : code.co_argcount]
    return function(source, **{name: value for name, value in vars(args).items() if name in names} | own)


@contextmanager
def workers_of(workers: int | None, dask: str | None) -> Iterator[tuple[int | None, Executor | None]]:
    """The number of workers and the executor selected on the command line.

    Raises
    ------
    UsageError
        Both ``--workers`` and ``--dask``; fewer than one worker; no scheduler at the address.
    """
    if workers is not None and workers < 1:
        raise UsageError(f"--workers must be at least 1, not {workers}")
    if dask is None:
        yield workers, None
        return
    if workers is not None:
        raise UsageError("--workers starts processes here, --dask uses a cluster: give one of them")
    from circuitsim.points import cluster

    with cluster(dask) as (executor, count):
        yield count, executor


SAID = 160
"""Maximum length of a line with several notes, characters."""


def read(args: Any) -> Deck:
    """The deck a command names, read with its options `READING`.

    Raises
    ------
    UsageError
        A file that is missing or cannot be read.
    NetlistError
        A deck with problems.
    """
    from circuitsim.netlist import load

    if (together := TOGETHER.get()) is not None:
        return together.deck
    check_folders(args.allow_include)
    if args.deck != "-" and not lexists(args.deck):
        raise UsageError(f"no deck {args.deck!r}: there is no such file" + _near(args.deck))
    if exists(args.deck) and not isfile(args.deck) and not isdir(args.deck):
        raise UsageError(f"{args.deck} is a pipe or a device; - reads a deck from standard input")
    search = [*args.search, *filter(None, os.environ.get("CIRCUITSIM_LIB_PATH", "").split(os.pathsep))]
    check_folders(args.search, "-I")
    options = (tuple(args.allow_include), not args.no_title, tuple(args.lib), search)
    return load(args.deck, *options)


def opened(args: Namespace, leave: Callable[[Problem], bool] = lambda note: False, held: bool = False) -> Deck:
    """The deck of an analysis, after checking that its targets can be written; its notes are reported.

    Parameters
    ----------
    args : Namespace
    leave : callable
        Whether a note is irrelevant to the analysis.
    held : bool
        Whether switches keep the states of the operating point.
    """
    check_targets(args)
    deck = read(args)
    notes = [note for note in deck.notes if not leave(note)]
    report([*notes, *(held_switches(deck) if held else ())], args.verbose)
    return deck


def roles_of(deck: Deck) -> tuple[Roles | None, tuple[Problem, ...]]:
    """The deck's ``*!`` directives, checked, with warnings; None if there are none."""
    if not deck.directives:
        return None, ()
    from circuitsim.netlist.roles import read_roles

    return read_roles(deck)


def held_switches(deck: Deck) -> list[Problem]:
    """The warning of an analysis that keeps switches in the states of the operating point."""
    circuit = deck.operating_circuit
    names = [circuit.names[k] for k in deck.following.switches]
    if not names:
        return []
    return [Problem("switch", f"{some(names)}: switches keep the states of the operating point here", names=names)]


def printed(deck: Deck, kinds: tuple[str, ...], spelled: Callable[[str], str] = str) -> str | None:
    """The columns that the deck's cards name, ``spelled`` as the names of probes; None for all.

    Raises
    ------
    UsageError
        A quantity that the circuit does not have, with the line of its card.
    """
    from circuitsim.analysis.probes import parse_probes
    from circuitsim.netlist.deck import Output, columns_of

    if (text := columns_of(deck, kinds)) is None:
        return None
    for card in deck.of_kind(Output):
        if card.analysis in kinds:
            try:
                parse_probes(spelled(" ".join(card.requests)), deck.operating_circuit)
            except UsageError as error:
                raise UsageError(str(Problem("analysis", f".{card.card}: {error}", card.location))) from None
    return spelled(text)


def elsewhere(note: Problem) -> bool:
    """Whether a note is about what an operating point ignores, which does not apply to transient and AC analysis, or
    about another analysis."""
    from circuitsim.netlist.dialect import OVER_TIME

    no_effect = note.kind == "no-effect" and any(name in OVER_TIME for name in note.names)
    return no_effect or note.kind in ("coupled", "tran", "ac", "amplitude", "time")


def check_folders(folders: Iterable[str], option: str = "--allow-include") -> None:
    """Refuse folders that do not exist; a typing error would otherwise only show as a missing file."""
    for folder in folders:
        if not isdir(folder):
            raise UsageError(f"{option} {folder!r}: there is no such folder")


def _near(path: str) -> str:
    """A hint that names files with a similar name in the same folder, or the bundled deck of this name."""
    import difflib

    from circuitsim._bundled import netlists

    folder, name = split(path)
    try:
        names = sorted(os.listdir(folder or "."))[:5000]
    except OSError:
        return f" (and no folder {folder!r})"
    near = difflib.get_close_matches(name, names, n=3)
    if not near and isfile(join(netlists(), name)):
        return f"\n    hint: a bundled deck has this name: circuitsim examples copy {splitext(name)[0]}"
    return "; did you mean " + " or ".join(join(folder, n) for n in near) + "?" if near else ""


@contextmanager
def run_together(deck: Deck, before: Iterable[Problem]) -> Iterator[None]:
    """In this context, commands read this deck, and print no warning or note twice, nor any of those in ``before``."""
    token = TOGETHER.set(Together(deck, set(map(str, before))))
    try:
        yield
    finally:
        TOGETHER.reset(token)


def report(problems: Iterable[Problem], verbose: bool = False) -> None:
    """Print warnings and notes on standard error, each text once; notes on one line unless verbose."""
    run, texts = TOGETHER.get(), {str(problem): problem for problem in problems}
    said = set[str]() if run is None else run.said
    found = [problem for text, problem in texts.items() if text not in said]
    said.update(texts)
    notes = [problem for problem in found if severity(problem) == "note" and not verbose]
    for problem in found:
        if problem not in notes:
            say(f"{severity(problem)}: {problem}")
    lines = [f"line {note.location.line}: {note.message}" if note.location else note.message for note in notes]
    if len(lines) == 1:
        say(f"note: {lines[0]}")
    elif lines:
        joined = "; ".join(lines)
        short = joined if len(joined) <= SAID else f"{joined[: SAID - 2]} …"
        say(f"{len(lines)} notes (-v shows them): {short}")


def severity(problem: Problem) -> str:
    """``note`` for accepted statements without effect, ``warning`` for everything else that does not stop the deck."""
    from circuitsim.netlist.cards import NOTE_KINDS

    return "note" if problem.kind in NOTE_KINDS else "warning"
