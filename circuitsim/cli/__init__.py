"""The command line: one module per command, imported only when that command runs."""

from __future__ import annotations

import argparse
import gc
import os
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NoReturn

from circuitsim._version import __version__
from circuitsim.cli.common import ErrorsOnly, choose_format, colour_asked, escaping_streams, report, say
from circuitsim.cli.options import Command, add_options, below, meant, moved
from circuitsim.errors import CircuitError, DeckWarning, NetlistError, ResultWarning, UsageError

TABLE = """
run         circuits  every analysis that a deck requests
solve       circuits  the certified operating point of a deck
check       circuits  all problems of a deck, and its structure
graph       circuits  a drawing of the circuit with its voltages and currents
report      circuits  one HTML file about a deck or a training run, for a browser
convert     circuits  a flat SPICE deck: sub-circuits and parameters expanded
sweep       analyses  DC sweeps: .dc, .step or --vary
sensitivity analyses  derivatives by every value (.sens), transfer functions (.tf)
curve       analyses  I–V curve of a device or between two nodes
montecarlo  analyses  statistics and yield over tolerances
worst-case  analyses  proven extremes over tolerances
optimise    analyses  element values for targets, rounded to preferred values
tran        analyses  transient analysis, or the periodic steady state
ac          analyses  AC analysis, and poles
examples    tools     the bundled decks: list, show, copy
bench       tools     circuitsim beside other solvers, at equal verified error
train       train     train a deck or a model
predict     train     outputs, classes and errors of samples from a trained model
data        tools     list and fetch data sets
reproduce   reproduce run a published experiment and print it beside the paper
warm-up     tools     compile kernels ahead of their first use
"""
COMMANDS = {
    name: (f"circuitsim.cli.{module}", line)
    for name, module, line in (row.split(None, 2) for row in TABLE.strip().splitlines())
}
"""Command → its module, which has a `Command` named run_COMMAND, and its line in the help."""

COLLECTED = 50_000
"""Allocations between garbage collections; with Python's default of 700 they take a tenth of a command's time."""

EPILOG = """\
exit codes: 0 solved; 2 bad usage or deck; 3 no solution, or not converged; 130 interrupted; 1 internal
error

first steps:
  circuitsim examples copy                            all bundled decks, into the folder netlists
  circuitsim solve netlists/rectifier-half-wave.cir
  circuitsim examples copy first/rectifier            a first deck of your own, with comments
  circuitsim COMMAND --help
"""


WIDTH = 100
"""Maximum width of help texts, columns."""
GROUPS = {
    "deck": "--allow-include --lib -I --no-title",
    "output": "--format --binary --output --plot --columns --events --observe --top --workers --dask --checkpoint "
    "--explain -q -v -h",
}
"""Options of a help's groups, in addition to positional ones in the first; all others are about the analysis."""


class Help(argparse.HelpFormatter):
    """Help of at most `WIDTH` columns; paragraphs with indented lines are kept as they are."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28, width=min(WIDTH, shutil.get_terminal_size().columns))

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        parts = text.split("\n\n")
        return "\n\n".join(
            part if "\n  " in part else super(Help, self)._fill_text(part, width, indent) for part in parts
        )

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        value = self._format_args(action, self._get_default_metavar_for_optional(action))
        return f"{', '.join(action.option_strings)} {value}"


class Parser(argparse.ArgumentParser):
    """A parser whose errors are `UsageError`; a word that begins as a negative number is not an option.

    Attributes
    ----------
    above : Parser
        The parser whose other sub-commands may have an option that is unknown here.
    helpful : str
        The command whose ``--help`` an error refers to.
    explain : callable
        Replacement for a message of `argparse`; None keeps the message.
    """

    explain: Callable[[str], str | None] = staticmethod(lambda message: None)

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._negative_number_matcher = re.compile(r"-\.?[0-9]")
        self.above, self.helpful = self, self.prog

    def format_help(self) -> str:
        """The help: usage on one line, options in `GROUPS`, notes and examples."""
        if len(self._action_groups) > 2 or self._subparsers is not None:
            return super().format_help()
        form, titled = self._get_formatter(), {"deck": self._positionals, "output": self.add_argument_group("output")}
        words = " ".join(form._format_args(action, action.dest) for action in self._positionals._group_actions)
        self.usage = f"{self.prog} [options] {words}"
        self._positionals.title, self._optionals.title = "deck", "analysis"
        of = {name: titled[title] for title, names in GROUPS.items() for name in names.split()}
        actions, self._optionals._group_actions = self._optionals._group_actions, []
        for action in actions:
            of.get(action.option_strings[0], self._optionals)._group_actions.append(action)
        return super().format_help()

    def error(self, message: str) -> NoReturn:
        """Raise the error with a reference to the help."""
        if text := self.explain(message):
            raise UsageError(text)
        question = meant(message, self, self.above)
        hint = f"{question} {self.helpful} --help shows what is possible".strip()
        raise UsageError(f"{message}\n    hint: {hint}")


def build_parser(command: str | None) -> argparse.ArgumentParser:
    """The parser; only the module of ``command`` is imported, the other commands are listed by name."""
    parser = Parser(
        prog="circuitsim",
        description="Simulate SPICE circuits of resistors, diodes, sources, switches and amplifiers, with certified "
        "answers; train circuits that learn.",
        epilog=EPILOG,
        formatter_class=Help,
        allow_abbrev=False,
    )
    _add_common(parser)
    if command is not None:  # argparse attributes unknown options of a command to the main parser
        parser.helpful = f"{parser.prog} {command}"
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, (module, line) in COMMANDS.items():
        sub = commands.add_parser(
            name,
            help=line,
            description=line[0].upper() + line[1:] + ".",
            formatter_class=Help,
            allow_abbrev=False,
        )
        if name == command:
            stated: Command = getattr(import_module(module), f"run_{name.replace('-', '_')}")
            stated.add_to(sub)
            for inner in (sub, *below(sub)):
                _add_common(inner, inner=True)
    return parser


COMMON = """
-q, --quiet  only results and errors: no notes, warnings or progress
-v, --verbose  show notes in full; time and memory at the end
--color WHEN = auto {auto always never}  colour of messages: auto (on a terminal, unless NO_COLOR is set), \
always or never
--debug  show the traceback of an internal error
"""
"""Options of every command."""


def _add_common(parser: argparse.ArgumentParser, inner: bool = False) -> None:
    """Add the options of every command, which may come before the command, after it or after its sub-command."""
    add_options(parser, COMMON)
    parser.add_argument(
        "-V", "--version", action="version", version=f"circuitsim {__version__}", help="print the version"
    )
    if inner:
        for action in parser._actions[-5:]:
            action.default = argparse.SUPPRESS
            if action.dest not in ("quiet", "verbose"):
                action.help = argparse.SUPPRESS


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code (see `EPILOG`)."""
    if argv is None:  # a separate process
        gc.set_threshold(COLLECTED)  # imports create many permanent objects and few cycles
        # OpenMP's threads otherwise spin while waiting, which stalls them all on a busy machine.
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    words = list(sys.argv[1:] if argv is None else argv)
    with escaping_streams(colour_asked(words)):
        try:
            try:
                return _run(words)
            except Exception as error:
                if "--debug" in words:
                    raise
                say(f"error: internal: {type(error).__name__}: {error} (--debug shows where)")
                return 1
        except KeyboardInterrupt:
            say("interrupted")
            return 130


def _run(words: list[str]) -> int:
    """Run the command line; expected errors are printed, all others raised."""
    command = next((word for word in words if word in COMMANDS), None)
    try:
        args = _parsed(command, words)
        choose_format(args)
        code = _carried_out(args)
    except CircuitError as error:
        _complain(error)
        code = error.exit_code
    except BrokenPipeError:
        _discard_output()
        return 0
    except OSError as error:
        _complain(error)
        code = 2
    except MemoryError as error:
        say(f"error: not enough memory{f': {error}' if str(error) else ''}; ask for less at a time")
        code = 2
    return _flushed(code)


def _parsed(command: str | None, words: list[str]) -> argparse.Namespace:
    """Parse the options; an error of a word of an earlier version names its replacement."""
    try:
        return build_parser(command).parse_args(words)
    except UsageError as error:
        raise UsageError(moved(words, f"circuitsim {command}" if command else "circuitsim") or str(error)) from None


def _carried_out(args: argparse.Namespace) -> int:
    """Run the command, as quiet or verbose as requested; returns its exit code."""
    import contextlib
    import time
    import warnings

    def shown(message: Warning | str, *place: Any, **more: Any) -> None:
        report(message.problems) if isinstance(message, ResultWarning) else usual(message, *place, **more)

    begun, usual = time.monotonic(), warnings.showwarning
    errors: Any = ErrorsOnly(sys.stderr, "standard error") if args.quiet else sys.stderr
    with contextlib.redirect_stderr(errors), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeckWarning)  # commands print them
        warnings.simplefilter("always", ResultWarning)
        warnings.showwarning = shown
        code = int(args.run(args))
    if args.verbose:
        say(f"time {time.monotonic() - begun:.2f} s{_memory()}")
    return code


def _memory() -> str:
    """Peak memory of this process, if the system reports it."""
    try:
        import resource
    except ImportError:  # Windows
        return ""
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform == "darwin" else 1)
    return f", memory {kilobytes / 1024:.0f} MB"


def _flushed(code: int) -> int:
    """``code`` once all output is written; 2 if that fails (a full disk)."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # A closed pipe (`circuitsim … | head`) is not an error.
        _discard_output()
        return 0
    except OSError as error:
        _discard_output()
        if code == 0:
            _complain(error)
        return 2
    return code


def _discard_output() -> None:
    """Discard the remaining output, so that the interpreter's flush at exit is silent."""
    if sys.__stdout__ is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(error: CircuitError | OSError) -> None:
    """Print an error; for a deck one line per problem, at most `NetlistError.SHOWN`."""
    if isinstance(error, OSError):
        place = f" ({error.filename})" if error.filename else ""
        say(f"error: {error.strerror or error}{place}")
        return
    problems = error.problems if isinstance(error, NetlistError) else (error,)
    for problem in problems[: NetlistError.SHOWN]:
        say(f"error: {problem}")
    if len(problems) > NetlistError.SHOWN:
        more = len(problems) - NetlistError.SHOWN
        say(f"error: … and {more} more (circuitsim check lists them all)")
