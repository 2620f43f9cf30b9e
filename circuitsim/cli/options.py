"""Options from the command line, a TOML file or a recorded run: their types and permitted values.

The options of a command (`add_options`) and of a training run (`options_in`) are lines of a text.
"""

from __future__ import annotations

import argparse
import cmath
import math
import re
from argparse import ArgumentTypeError, BooleanOptionalAction
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Any, NamedTuple

from circuitsim.errors import UsageError
from circuitsim.units import parse, short

Run = Callable[[argparse.Namespace], int]
LARGEST = 10**9
"""Largest whole number, except for a seed: products of two such sizes fit in 64 bits."""
LEAST = {"seed": 0, "seeds": 1, "samples": 1, "hidden": 1}
"""Least values of options."""


class Kind(Enum):
    """Types of option values, named for messages."""

    WHOLE = "a whole number"
    NUMBER = "a finite number"
    WORD = "a text (without NUL)"
    SWITCH = "true or false"
    WORDS = "a list of texts"
    TABLES = "a list of tables"

    def holds(self, value: object) -> bool:
        """Whether ``value`` is of this kind: ``True`` is not a number, ``1.5`` is not whole."""
        match self:
            case Kind.WHOLE:
                return isinstance(value, int) and not isinstance(value, bool)
            case Kind.NUMBER:
                if isinstance(value, bool) or not isinstance(value, (int, float)):
                    return False
                # A whole number of hundreds of digits is not a double.
                return abs(value) < 2**1023 if isinstance(value, int) else math.isfinite(value)
            case Kind.WORD:
                return isinstance(value, str) and "\0" not in value
            case Kind.SWITCH:
                return isinstance(value, bool)
            case _:
                of = str if self is Kind.WORDS else dict
                return isinstance(value, list) and all(isinstance(item, of) for item in value)

    def read(self, text: str) -> Any:
        """A value from a word of the command line.

        Raises
        ------
        argparse.ArgumentTypeError
            It is not of this kind.
        """
        try:
            match self:
                case Kind.WHOLE:
                    return int(text)
                case Kind.NUMBER:
                    return _number(text.strip())
                case Kind.SWITCH:
                    return {"true": True, "false": False}[text]
                case Kind.WORDS:
                    return [text]
                case Kind.TABLES:
                    raise KeyError
                case _:
                    return text
        except (ValueError, KeyError):
            raise ArgumentTypeError(f"{text!r} is not {self.value}") from None


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
        Replaces its name with ``--``; one without ``-`` is a positional argument.
    bare : object
        Its value if none follows it.
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

    @property
    def help(self) -> str:
        """Its help, with the default in brackets."""
        default = self.default
        named = default is None or default is False or default == [] or "(" in self.words
        return self.words if named else f"{self.words} ({f'{default:g}' if isinstance(default, float) else default})"


_KINDS = {"N": Kind.WHOLE, "MINUTES": Kind.NUMBER, "TABLES": Kind.TABLES}
"""Placeholder of a value → its kind."""

_ROW = re.compile(r"([*~]*)(\w+)(?: ([A-Z]+))?(?: = (\S+))?(?: \{(.*?)\})?(?: if (.*?))?  +(.*)")


def options_in(lines: str, **own: dict[str, Any]) -> dict[str, Option]:
    """Options, one per line of a text: its name, the placeholder of its value, its default after ``=``, its choices in
    braces, after ``if`` another option and the values with which it has an effect, two blanks, its help.

    Parameters
    ----------
    lines : str
        ``*`` before a name: ``--help`` shows it; ``~``: it is not recorded. ``N`` is a whole number, another letter and
        ``MINUTES`` a number, ``TABLES`` a list that only a file can give. Where the help says so, an option is
        repeatable.
    **own : dict
        Further fields of an option by its name.
    """
    found = {}
    for line in lines.strip().splitlines():
        marks, name, value, default, choices, only, words = _ROW.fullmatch(line).groups("")  # type: ignore[union-attr]
        kind = Kind.NUMBER if len(value) == 1 else Kind.WORD if value else Kind.SWITCH
        kind = Kind.WORDS if "(repeatable" in words else _KINDS.get(value, kind)
        given = kind.read(default) if default else {Kind.SWITCH: False, Kind.WORDS: []}.get(kind)
        fields = words, value, given, "*" in marks, tuple(choices.split()), tuple(only.split()), "~" not in marks
        found[name] = Option(kind, *fields)._replace(**own.get(name, {}))
    return found


def add_option(group: Any, name: str, one: Option, default: Any, words: str) -> Any:
    """Add an option to a group of `argparse`, with this default and help; returns the result of `argparse`, None for an
    option that only a file can give."""
    flag = one.flag or f"--{name.replace('_', '-')}"
    how: dict[str, Any] = {"type": one.kind.read, "metavar": one.value}
    match one.kind:
        case Kind.TABLES:
            return None
        case Kind.SWITCH:
            how = {"action": BooleanOptionalAction if one.default is None else "store_true"}
        case Kind.WORDS:
            how |= {"type": str, "action": "append"}
    if flag.startswith("-"):
        how["dest"] = name
    if one.bare is not None or not flag.startswith("-"):
        how |= {"nargs": "?", "const": one.bare} if one.bare is not None else {"nargs": "?"}
    return group.add_argument(flag, default=default, help=words, **how)


def add_stated(group: Any, options: Mapping[str, Option]) -> None:
    """Add all of these options, as they are stated."""
    for name, one in options.items():
        add_option(group, name, one, one.default, one.help)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return parse(text)


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
        if kind is Kind.WHOLE and isinstance(value, int) and value > LARGEST and name != "seed":
            raise UsageError(f"{said} must be at most {LARGEST}, not {shown}")
        if not kind.holds(value):
            raise UsageError(f"{said} must be {kind.value}, not {shown}")
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


def whole(text: str) -> int:
    """A whole number, also as ``1e6`` or ``20k``: the type of an option of `argparse`.

    Raises
    ------
    argparse.ArgumentTypeError
        It is none.
    """
    return int(bounded(text.strip(), float.is_integer, "not a whole number"))


def bounded(text: str, holds: Callable[[float], bool], otherwise: str) -> float:
    """A SPICE number with a property, for types of options of `argparse`.

    Raises
    ------
    argparse.ArgumentTypeError
        It is not a number, or lacks the property.
    """
    try:
        value = parse(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None
    if not holds(value):
        raise ArgumentTypeError(f"{text} is {otherwise}")
    return value


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


def tolerance(text: str) -> float:
    """The value of ``--tolerance`` or ``--accuracy``: a SPICE number between 0 and 1."""
    return bounded(text, lambda value: 0.0 < value < 1.0, "not between 0 and 1")


def time(text: str) -> float:
    """A time of a run: a positive SPICE number."""
    return bounded(text, lambda value: value > 0.0, "not a positive time, such as 10m")


def gap(text: str) -> float:
    """The value of ``--gap``: a SPICE number that is not negative."""
    return bounded(text, lambda value: value >= 0.0, "less than 0")


READING = {
    "--allow-include DIR": "let .include and .lib read below DIR too (repeatable)",
    "--lib FILE": "library for names that the deck does not define (repeatable)",
    "-I DIR": "look for included files in DIR too (repeatable; CIRCUITSIM_LIB_PATH)",
    "--no-title": "the first line is a card, not a title",
}
"""Options of every command that reads a deck."""
SHARED = {
    "deck": "\n".join(["deck DECK  a SPICE deck; - reads standard input", *map("  ".join, READING.items())]).replace(
        "-I DIR", "-I DIR as search"
    ),
    "format": "--format FORMAT {@}  {0} ({1}, or the ending of --output)",
    "binary": "--binary  write a binary rawfile, not ASCII",
    "output": "--output, -o FILE  write @ to FILE (standard output)",
    "plot": "--plot FILE  also @ (.png, .svg or .pdf)",
    "columns": "--columns LIST  v(node), v(a,b), i(element), p(element), {expression} (.print, or all)",
    "vary": "--vary NAME=RANGE  @ = start:stop:step or a,b,c (repeatable)",
    "measure": "--measure 'NAME …'  show a measurement, as .meas @ (repeatable)",
    "solver": "--solver NAME = auto  auto, active-set, coordinate-descent, cvxpy:CLARABEL … (auto)",
    "tolerance": "--tolerance T = 1e-9  maximum relative residual of the certificate (1e-09)",
    "workers": "--workers N  processes (@); results do not depend on it",
    "dask": "--dask ADDRESS  run on the Dask cluster of this scheduler",
    "checkpoint": "--checkpoint DIR  keep finished blocks in DIR; resume from there",
    "tol": "--tol NAMES=AMOUNT as tolerances  a tolerance, beside those of the deck (repeatable; forms below)",
    "observe": "--observe LIST  v(node), v(a,b), i(element), @",
    "spec": "--spec RANGE as specifications  a range @: '4.9<v(out)<5.1' (repeatable)",
}
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


TYPES: dict[str, Callable[[str], Any]] = {
    "N": whole,
    "P": float,
    "T": tolerance,
    "X": tolerance,
    "G": gap,
    "TIME": time,
}
TYPES |= dict.fromkeys(("HERTZ", "F"), Kind.NUMBER.read)
"""Placeholder of a value → its type."""

_LINE = re.compile(r"(!?)(-?-?\w[-\w]*(?:, --?\w+)?)(?: (\S.*?))?(?: as (\w+))?(?: = (\S+))?(?: \{(.*?)\})?  +(.*)")


def add_options(parser: Any, lines: str) -> None:
    """Add options to a command, one per line of a text: its name, the placeholder of its value, after ``as`` its
    attribute, after ``=`` its default, its choices in braces, two blanks, its help.

    Parameters
    ----------
    parser : argparse.ArgumentParser
    lines : str
        ``@name words`` are the lines `SHARED` of that name, with these words for ``@``. A name without ``-`` is an
        argument, ``!`` a required option, an option without a placeholder a flag; ``LIST`` is a list (`Listed`), others
        have the type of `TYPES`. ``{0}`` in the help are the choices. Where it says so, an option is repeatable.
    """
    for line in lines.strip().splitlines():
        if line.startswith("@"):
            name, _, words = line[1:].partition(" ")
            add_options(parser, SHARED[name].replace("@", words))
            continue
        found = _LINE.fullmatch(line).groups()  # type: ignore[union-attr]
        needed, names, placeholder, dest, default, choices, words = found
        how: dict[str, Any] = {"metavar": placeholder, "default": default, "type": TYPES.get(placeholder)}
        if placeholder is None:
            how = {"action": "store_true"}
        elif placeholder.endswith("…"):
            how = {"metavar": placeholder[:-1], "nargs": "*"}
        elif placeholder in READERS:
            how = {"metavar": placeholder, "action": Pairs}
        elif "(repeatable" in words:
            how = {"metavar": placeholder, "action": "append", "default": []}
        elif " " in placeholder:
            how = {"metavar": placeholder.split()[0], "nargs": len(placeholder.split())}
        elif placeholder == "LIST":
            how = {"metavar": placeholder, "action": Listed}
        how |= {"dest": dest} if dest else {}
        how |= {"required": True} if needed else {}
        if choices:
            listed = choices.split()
            how["choices"] = listed
            if names == "--format":
                parser.set_defaults(formats=listed)
            words = words.format(" or ".join(filter(None, (", ".join(listed[:-1]), listed[-1]))), listed[0])
        first, *others = names.split(", ")
        parser.add_argument(first, *others, help=words, **how)


def below(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """The parsers of a command's sub-commands."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from (inner, *below(inner))
