"""The command line: its parser, and the options of commands; their modules are imported only when they run.

The options of a command (`add_options`) and of a training run (`options_in`, from the command line, a TOML file or a
recorded run) are lines of a text, with their types and permitted values. Those that do not exist get suggestions.
"""

from __future__ import annotations

import argparse
import cmath
import gc
import math
import os
import re
import shutil
import sys
from argparse import ArgumentTypeError, BooleanOptionalAction
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple, NoReturn

from circuitsim._moved import hint
from circuitsim._version import __version__
from circuitsim.cli.common import LOST, ErrorsOnly, choose_format, colour_asked, escaping_streams, report, say, unraised
from circuitsim.errors import CircuitError, DeckWarning, NetlistError, ResultWarning, UsageError, similar
from circuitsim.units import parse, short

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
        sys.unraisablehook = unraised
        gc.set_threshold(COLLECTED)  # imports create many permanent objects and few cycles
        # OpenMP's threads otherwise spin while waiting, which stalls them all on a busy machine.
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    words = list(sys.argv[1:] if argv is None else argv)
    with escaping_streams(colour_asked(words)):
        try:
            try:
                return _run(words)
            except Exception as error:
                if LOST:
                    LOST.clear()
                    raise KeyboardInterrupt from None
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
        code = args.run(args) or 0
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


# ---------------------------------------------------------------------- options
Values = dict[str, Any]
"""Values of options by name."""
Run = Callable[[argparse.Namespace], int | None]
LARGEST = 10**9
"""Largest whole number, except for a seed: products of two such sizes fit in 64 bits."""
LEAST = {"seed": 0, "seeds": 1, "samples": 1, "hidden": 1}
"""Least values of options."""


class Kind(NamedTuple):
    """A type of option values.

    Attributes
    ----------
    words : str
        Its name in messages.
    of : callable
        A value from a word of the command line; ``ValueError`` where there is none.
    holds : callable
        Whether an object is such a value: ``True`` is not a number, ``1.5`` is not whole.
    """

    words: str
    of: Callable[[str], Any]
    holds: Callable[[Any], bool]

    def read(self, text: str) -> Any:
        """A value from a word of the command line.

        Raises
        ------
        argparse.ArgumentTypeError
            It is not of this kind.
        """
        try:
            if self.holds(value := self.of(text)):
                return value
        except (ValueError, KeyError):
            pass
        raise ArgumentTypeError(f"{text!r} is not {self.words}")


def _number(text: str) -> float:
    """A number, also as SPICE writes it (``20k``)."""
    try:
        return float(text)
    except ValueError:
        return parse(text.strip())


def _whole(text: str) -> int:
    """A whole number, also as ``1e6`` or ``20k``."""
    try:
        return int(text)
    except ValueError:
        value = _number(text)
        return int(value) if value.is_integer() else int(text)


def _finite(value: Any) -> bool:
    """Whether a value is a finite number; a whole number of hundreds of digits is not a double."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) < 2**1023 if isinstance(value, int) else math.isfinite(value)


def _listed(kind: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(isinstance(item, kind) for item in value)


WHOLE = Kind("a whole number", _whole, lambda value: isinstance(value, int) and not isinstance(value, bool))
NUMBER = Kind("a finite number", _number, _finite)
WORD = Kind("a text (without NUL)", str, lambda value: isinstance(value, str) and "\0" not in value)
SWITCH = Kind("true or false", {"true": True, "false": False}.__getitem__, lambda value: isinstance(value, bool))
WORDS = Kind("a list of texts", lambda text: [text], _listed(str))
TABLES = Kind("a list of tables", list, _listed(dict))
KINDS = {
    "N": WHOLE,
    "MINUTES": NUMBER,
    "HERTZ": NUMBER,
    "TABLES": TABLES,
    "T": Kind("a number between 0 and 1", _number, lambda value: 0.0 < value < 1.0),
    "TIME": Kind("a positive time, such as 10m", _number, lambda value: 0.0 < value < math.inf),
    "GAP": Kind("a number of at least 0", _number, lambda value: 0.0 <= value < math.inf),
}
"""Placeholder of a value → its kind; another single letter is a number."""


class Option(NamedTuple):
    """An option.

    Attributes
    ----------
    kind : Kind
    words, value : str
        Its help, and the placeholder for its value there.
    default : object
        None: derived, or not needed; a switch then has a negative form too.
    usual : bool
        Whether ``--help`` shows it, not only ``--help-all``.
    choices : tuple of str
        Permitted values; empty for any.
    only : tuple of str
        Another option and the values with which this one has an effect.
    recorded : bool
        Whether it affects what is trained, rather than where and how often.
    flag : str
        Replaces its name with ``--``, with other spellings behind a comma; one without ``-`` is a positional argument.
    bare : object
        Its value if none follows it.
    needed : bool
        Whether a command line must have it.
    static : bool
        Whether it is for samples at rest, not for waveforms.
    """

    kind: Kind
    words: str = ""
    value: str = ""
    default: Any = None
    usual: bool = False
    choices: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    recorded: bool = True
    flag: str = ""
    bare: Any = None
    needed: bool = False
    static: bool = False

    @property
    def help(self) -> str:
        """Its help, with the default in brackets."""
        default = self.default
        named = default is None or default is False or default == [] or "(" in self.words
        return self.words if named else f"{self.words} ({f'{default:g}' if isinstance(default, float) else default})"


_ROW = re.compile(
    r"([*~!&]*)(-?-?\w[-\w]*(?:, --?\w+)?)(?: (\S.*?))?(?: as (\w+))?(?: = (\S+))?(?: \{(.*?)\})?(?: if (.*?))?  +(.*)"
)


def options_in(lines: str, **own: Values) -> dict[str, Option]:
    """Options by name, one per line of a text: its name or flags, the placeholder of its value, after ``as`` another
    name, its default after ``=``, its choices in braces, after ``if`` another option and the values with which it has
    an effect, two blanks, its help.

    Parameters
    ----------
    lines : str
        ``*`` before a name: ``--help`` shows it; ``~``: it is not recorded; ``!``: it is required; ``&``: it is for
        static data. `KINDS` has the types of values. ``{0}`` in the help are the choices, ``{1}`` the first. Where it
        says so, an option is repeatable.
    **own : dict
        Further fields of an option by its name.
    """
    found = {}
    for line in lines.strip().splitlines():
        marks, flags, value, name, default, choices, only, words = _ROW.fullmatch(line).groups("")  # type: ignore[union-attr]
        kind = KINDS.get(value, NUMBER if len(value) == 1 else WORD if value else SWITCH)
        if "(repeatable" in words and value not in READERS:
            kind = WORDS
        if chosen := tuple(choices.split()):
            words = words.format(" or ".join(filter(None, (", ".join(chosen[:-1]), chosen[-1]))), chosen[0])
        given = kind.read(default) if default else False if kind is SWITCH else [] if kind is WORDS else None
        flag, name = (
            flags if flags[0] == "-" else "",
            name or max(flags.split(", "), key=len).lstrip("-").replace("-", "_"),
        )
        one = Option(kind, words, value, given, "*" in marks, chosen, tuple(only.split()), "~" not in marks, flag)
        found[name] = one._replace(needed="!" in marks, static="&" in marks, **own.get(name, {}))
    return found


def add_option(group: Any, name: str, one: Option, default: Any, words: str) -> Any:
    """Add an option to a group of `argparse`, with this default and help; returns the result of `argparse`, None for an
    option that only a file can give."""
    flags = (one.flag or f"--{name.replace('_', '-')}").split(", ")
    how: Values = {"type": one.kind.read, "metavar": one.value}
    if one.kind is TABLES:
        return None
    if one.kind is SWITCH:
        how = {"action": BooleanOptionalAction if one.default is None else "store_true"}
    elif one.value.endswith("…"):
        how = {"metavar": one.value[:-1], "nargs": "*"}
    elif one.value in READERS:
        how["action"] = Pairs
    elif one.kind is WORDS:
        how |= {"type": str, "action": "append"}
    elif " " in one.value:
        how |= {"metavar": one.value.split()[0], "nargs": len(one.value.split())}
    elif one.value == "LIST":
        how["action"] = Listed
    named = flags[0].startswith("-")
    if named:
        how |= {"dest": name, "required": one.needed}
    if one.bare is not None or not (named or one.needed):
        how |= {"nargs": "?", "const": one.bare}
    return group.add_argument(*flags, default=default, help=words, **how)


def add_stated(group: Any, options: Mapping[str, Option]) -> None:
    """Add all of these options, as they are stated."""
    for name, one in options.items():
        add_option(group, name, one, one.default, one.help)


def check_values(values: Mapping[str, Any], options: Mapping[str, Option], source: str = "") -> None:
    """Check values of options; other names are ignored.

    Parameters
    ----------
    values : mapping of str to object
        By name, with ``_``.
    options : mapping of str to Option
        By name, with ``_``.
    source : str
        Their file; empty for the command line.

    Raises
    ------
    UsageError
        A value of the wrong kind, or a number beyond `LARGEST`.
    """
    for name, value in values.items():
        if name not in options:
            continue
        kind, choices = options[name].kind, options[name].choices
        said = f"{source}: {name}" if source else f"--{name.replace('_', '-')}"
        shown = short(str(value).lower() if isinstance(value, bool) else repr(value))
        if kind is WHOLE and isinstance(value, int) and value > LARGEST and name != "seed":
            raise UsageError(f"{said} must be at most {LARGEST}, not {shown}")
        if not kind.holds(value):
            raise UsageError(f"{said} must be {kind.words}, not {shown}")
        if name in LEAST and value < LEAST[name]:
            raise UsageError(f"{said} must be at least {LEAST[name]}, not {shown}")
        if choices and value not in choices:
            raise UsageError(f"{said} must be {' or '.join(choices)}, not {shown}")


class Listed(argparse.Action):
    """A list option, separated by blanks; repeating it extends the list."""

    def __call__(
        self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: str | None = None
    ) -> None:
        """Add ``values`` to the list."""
        before = getattr(namespace, self.dest)
        setattr(namespace, self.dest, f"{before} {values}" if before else values)


def spice_number(option: str, text: str) -> float:
    """A number as SPICE writes it (10k, 20u) from the text of an option.

    Raises
    ------
    UsageError
        It is none.
    """
    try:
        return parse(text.strip())
    except ValueError as error:
        raise UsageError(f"{option} {text}: {error}; write a number such as 10k") from None


def ranged(option: str, values: str, text: str = "") -> tuple[float, ...]:
    """The numbers of ``start:stop:step`` or ``a,b,c``; ``text`` is shown in errors instead of them.

    Raises
    ------
    UsageError
        Neither.
    """
    try:
        return _values(values)
    except (UsageError, ValueError) as error:
        hint = getattr(error, "hint", "") or "start:stop:step, for instance 0:5:0.1, or a,b,c"
        raise UsageError(f"{option} {(text or values)!r}: {error}\n    hint: {hint}") from None


def _values(text: str) -> tuple[float, ...]:
    from circuitsim.netlist.deck import points

    if ":" not in text:
        return tuple(parse(part.strip()) for part in text.split(","))
    parts = [parse(part.strip()) for part in text.split(":")]
    if len(parts) != 3:
        raise UsageError(f"a range has three numbers, start:stop:step, not {len(parts)}")
    return tuple(points(*parts))


class Pairs(argparse.Action):
    """A repeatable option ``NAME=VALUE``, whose values become a dict; its form and reader are in `READERS`."""

    def __call__(self, parser: Any, namespace: argparse.Namespace, values: Any, option: str | None = None) -> None:
        """Add one name and its value.

        Raises
        ------
        UsageError
            A name or a value is missing, or wrong; a name comes twice.
        """
        form, read = READERS[str(self.metavar)]
        found = dict(getattr(namespace, self.dest) or {})
        name, _, value = map(str.strip, values.partition("="))
        if not name or not (value or "[" in str(self.metavar)):
            raise UsageError(f"{option} {values!r}: write {form}")
        if name in found:
            raise UsageError(f"{option} names one thing twice: {name}")
        found[name] = read(str(option), name, value)
        setattr(namespace, self.dest, found)


def phasor(option: str, name: str, text: str) -> complex:
    """``2`` or ``2<90`` (degrees); 1 by default."""
    magnitude, _, degrees = text.partition("<")
    size = spice_number(option, magnitude or "1")
    return cmath.rect(size, math.radians(spice_number(option, degrees or "0")))


def ends(option: str, name: str, text: str) -> tuple[float, float] | None:
    """``low:high``; None without it."""
    if not text:
        return None
    low, colon, high = text.partition(":")
    try:
        return parse(low.strip()), parse(high.strip())
    except ValueError as error:
        why = error if colon else "one bound is missing"
        raise UsageError(
            f"{option} {f'{name}={text}'!r}: {why}; write NAMES=LOW:HIGH, for instance R1=100:10k"
        ) from None


READERS: dict[str, tuple[str, Callable[[str, str, str], Any]]] = {
    "NAME=RANGE": (
        "NAME=start:stop:step or NAME=a,b,c, for instance V1=0:5:0.1",
        lambda option, name, text: ranged(option, text, f"{name}={text}"),
    ),
    "NAME=VALUE": (
        "NAME=VALUE, for instance C1=5",
        lambda option, name, text: spice_number(f"{option} {name}=", text),
    ),
    "NAME[=A[<DEGREES]]": ("NAME, NAME=MAGNITUDE or NAME=MAGNITUDE<DEGREES", phasor),
    "NAMES[=LOW:HIGH]": ("NAMES or NAMES=LOW:HIGH", ends),
}
"""Placeholder of a repeatable option → its form, and ``read(option, name, text)``; the text is empty where the form
permits a name alone."""


READING = {
    "--allow-include DIR": "let .include and .lib read below DIR too (repeatable)",
    "--lib FILE": "library for names that the deck does not define (repeatable)",
    "-I DIR": "look for included files in DIR too (repeatable; CIRCUITSIM_LIB_PATH)",
    "--no-title": "the first line is a card, not a title",
}
"""Options of every command that reads a deck."""
_SHARED = """
format --format FORMAT {@}  {0} ({1}, or the ending of --output)
binary --binary  write a binary rawfile, not ASCII
output --output, -o FILE  write @ to FILE (standard output)
plot --plot FILE  also @ (.png, .svg or .pdf)
columns --columns LIST  v(node), v(a,b), i(element), p(element), {expression} (.print, or all)
vary --vary NAME=RANGE  @ = start:stop:step or a,b,c (repeatable)
measure --measure 'NAME …'  show a measurement, as .meas @ (repeatable)
solver --solver NAME = auto  auto, active-set, coordinate-descent, cvxpy:CLARABEL … (auto)
tolerance --tolerance T = 1e-9  maximum relative residual of the certificate (1e-09)
workers --workers N  processes (@); results do not depend on it
dask --dask ADDRESS  run on the Dask cluster of this scheduler
checkpoint --checkpoint DIR  keep finished blocks in DIR; resume from there
tol --tol NAMES=AMOUNT as tolerances  a tolerance, beside those of the deck (repeatable; forms below)
observe --observe LIST  v(node), v(a,b), i(element), @
spec --spec RANGE as specifications  a range @: '4.9<v(out)<5.1' (repeatable)
"""
SHARED = dict(line.split(" ", 1) for line in _SHARED.strip().splitlines())
SHARED["deck"] = "\n".join(
    ["deck DECK  a SPICE deck; - reads standard input", *map("  ".join, READING.items())]
).replace("-I DIR", "-I DIR as search")
"""Lines of options of several commands, for `add_options`."""


class Command(NamedTuple):
    """A command.

    Attributes
    ----------
    options : str, mapping or callable
        Lines for `add_options`; or sub-command → its line in the help, such lines, its function; or what adds them to a
        parser.
    epilog : str
        Notes and examples of its help.
    run : callable
        ``run(args)`` gives the exit code, None for 0.
    """

    options: str | Mapping[str, tuple[str, str, Run]] | Callable[[Any], None]
    epilog: str | None = None
    run: Run | None = None

    def add_to(self, parser: Any) -> None:
        """Add the options, or the sub-commands, to a parser; sets its attribute ``run``."""
        parser.epilog = self.epilog
        parser.set_defaults(run=self.run)
        if isinstance(self.options, str):
            add_options(parser, self.options)
        elif callable(self.options):
            self.options(parser)
        else:
            actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
            for word, (line, lines, act) in self.options.items():
                own = actions.add_parser(word, help=line, allow_abbrev=False)
                add_options(own, lines)
                own.set_defaults(run=act)


def command(options: str | Callable[[Any], None], epilog: str | None = None) -> Callable[[Run], Command]:
    """Make a function a `Command`."""
    return lambda run: Command(options, epilog, run)


def add_options(parser: Any, lines: str) -> None:
    """Add options to a command, one per line of a text (`options_in`); ``@name words`` are the lines `SHARED` of that
    name, with these words for ``@``, and a name without ``-`` is an argument."""
    for line in lines.strip().splitlines():
        if line.startswith("@"):
            name, _, words = line[1:].partition(" ")
            add_options(parser, SHARED[name].replace("@", words))
            continue
        ((name, one),) = options_in(line).items()
        if not one.flag:
            one = one._replace(flag=name, needed=True)
        add_option(parser, name, one, one.default, one.help).choices = one.choices or None
        if name == "format":
            parser.set_defaults(formats=one.choices)


def below(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """The parsers of a command's sub-commands."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from (inner, *below(inner))


_CHOICE = re.compile(r"invalid choice: '([^']*)' \(choose from (.*)\)")
_UNKNOWN = re.compile(r"^unrecognized arguments: (.*)$")


def meant(message: str, parser: argparse.ArgumentParser, above: argparse.ArgumentParser) -> str:
    """A question that names the closest choices or options, for a message of `argparse`; empty if there are none.

    ``above`` is the parser whose other sub-commands may have the option.
    """
    choice = _CHOICE.search(message)
    if choice:
        return similar(choice[1], re.findall(r"[^\s,'\"]+", choice[2]), least=0.7)
    unknown = _UNKNOWN.match(message)
    wrong = next((word for word in unknown[1].split() if word.startswith("-")), "") if unknown else ""
    name = wrong.partition("=")[0]
    if name in options_of(above):
        return f"{name} is an option of another sub-command;"
    return similar(name, options_of(parser), least=0.7) if wrong else ""


def moved(words: Iterable[str], command: str) -> str | None:
    """The replacement for a command or an option of an earlier version in a command line."""
    for word in (word.partition("=")[0] for word in words):
        if (text := hint(f"{command} {word}") or hint(f"circuitsim COMMAND {word}")) is not None:
            return text
    return None


def options_of(parser: argparse.ArgumentParser) -> list[str]:
    """All option strings of a parser and of its sub-parsers."""
    return [name for own in (parser, *below(parser)) for action in own._actions for name in action.option_strings]
