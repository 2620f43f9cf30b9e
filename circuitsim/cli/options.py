"""Options from the command line, a TOML file or a recorded run: their types and permitted values; suggestions for those
that do not exist.

The options of a command (`add_options`) and of a training run (`options_in`) are lines of a text.
"""

from __future__ import annotations

import argparse
import cmath
import math
import re
from argparse import ArgumentTypeError, BooleanOptionalAction
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from circuitsim._moved import hint
from circuitsim.errors import UsageError, similar
from circuitsim.units import parse, short

Values = dict[str, Any]
"""Values of options by name."""
Run = Callable[[argparse.Namespace], int]
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
        ``run(args)`` gives the exit code.
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
