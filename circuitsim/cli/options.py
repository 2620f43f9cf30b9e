"""Options that have a value from the command line, a TOML file or a recorded run: what each may be."""

from __future__ import annotations

import math
from argparse import SUPPRESS, ArgumentTypeError
from collections.abc import Callable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from circuitsim.errors import UsageError
from circuitsim.units import parse, short

if TYPE_CHECKING:
    from circuitsim.training import Optimizer, Schedule, TrainingPlan

T = TypeVar("T")

LARGEST = 10**9
"""No whole number may be larger, but a seed: products of two such sizes are still counted in 64 bits."""


class Kind(Enum):
    """Types of option values, named for messages."""

    WHOLE = "a whole number"
    NUMBER = "a finite number"
    WORD = "a text (without NUL)"
    SWITCH = "true or false"
    WORDS = "a list of texts"
    TABLES = "a list of tables"

    def holds(self, value: object) -> bool:
        """Whether ``value`` is of this kind: ``True`` is no number, ``1.5`` is not whole."""
        match self:
            case Kind.WHOLE:
                return isinstance(value, int) and not isinstance(value, bool)
            case Kind.NUMBER:
                if isinstance(value, bool) or not isinstance(value, (int, float)):
                    return False
                # A whole number of hundreds of digits is no double.
                return abs(value) < 2**1023 if isinstance(value, int) else math.isfinite(value)
            case Kind.WORD:
                return isinstance(value, str) and "\0" not in value
            case Kind.SWITCH:
                return isinstance(value, bool)
            case Kind.WORDS:
                return isinstance(value, list) and all(isinstance(item, str) for item in value)
            case Kind.TABLES:
                return isinstance(value, list) and all(isinstance(item, dict) for item in value)


class Reading(NamedTuple):
    """How an option is read: its kind, what `argparse` does with it, and the words it may be (none: any)."""

    kind: Kind
    nargs: str | None = None
    choices: tuple[str, ...] = ()


def reading_of(settings: Mapping[str, Any]) -> Reading:
    """The parser of an option with these `argparse` settings."""
    of_action = {"store_true": Kind.SWITCH, "append": Kind.WORDS}
    of_type = {int: Kind.WHOLE, float: Kind.NUMBER}
    kind = of_action.get(settings.get("action", "")) or of_type.get(settings.get("type", str), Kind.WORD)
    return Reading(kind, settings.get("nargs"), tuple(settings.get("choices", ())))


def check_values(values: Mapping[str, Any], readings: Mapping[str, Reading], source: str = "") -> None:
    """Hold options against their readings; names without one are left to others.

    Parameters
    ----------
    values : mapping of str to object
        By name, with ``_``.
    readings : mapping of str to Reading
        By name, with ``_``.
    source : str
        Their file; empty for the command line.

    Raises
    ------
    UsageError
        A value of another kind, or a number beyond `LARGEST`.
    """
    for name, value in values.items():
        if name not in readings:
            continue
        kind, _, choices = readings[name]
        said = f"{source}: {name}" if source else f"--{name.replace('_', '-')}"
        shown = short(str(value).lower() if isinstance(value, bool) else repr(value))
        if kind is Kind.WHOLE and isinstance(value, int) and value > LARGEST and name != "seed":
            raise UsageError(f"{said} must be at most {LARGEST}, not {shown}")
        if not kind.holds(value):
            raise UsageError(f"{said} must be {kind.value}, not {shown}")
        if name == "seed" and value < 0:
            raise UsageError(f"{said} must be at least 0, not {shown}")
        if choices and value not in choices:
            raise UsageError(f"{said} must be {' or '.join(choices)}, not {shown}")


def chosen_preset(name: str, known: Mapping[str, T]) -> T:
    """A published model by its name.

    Raises
    ------
    UsageError
        There is none of this name.
    """
    if name not in known:
        raise UsageError(f"there is no preset '{name}'; there are {', '.join(known)}")
    return known[name]


class OptionGroup:
    """A group of `argparse` options that remembers how each is read.

    Attributes
    ----------
    readings : dict of str to Reading
        Of all groups that share it, by name, with ``_``.
    """

    def __init__(self, group: Any, readings: dict[str, Reading]) -> None:
        self._group, self.readings = group, readings

    def add_argument(self, name: str, **settings: Any) -> None:
        """As `argparse` has it, with one name for each option."""
        self.readings[settings.get("dest", name.lstrip("-").replace("-", "_"))] = reading_of(settings)
        self._group.add_argument(name, **settings)


Option = tuple[type | tuple[str, ...], str, str]
"""An option of a model: its type (bool: a switch; several texts: a choice), the word for its value, its help."""


def add_options(group: OptionGroup, options: Mapping[str, Option]) -> None:
    """Add options by their flags, without defaults: an absent one is None."""
    for flag, (kind, metavar, words) in options.items():
        how: dict[str, Any] = {"type": kind, "metavar": metavar}
        if kind is bool:
            how = {"action": "store_true"}
        elif isinstance(kind, tuple):
            how = {"choices": kind}
        group.add_argument(flag, default=SUPPRESS, help=words, **how)


def plan_of(options: Mapping[str, Any], optimizer: Optimizer, schedule: Schedule | None = None) -> TrainingPlan:
    """The plan of a run from the options that all models have."""
    from circuitsim.training import Constant, TrainingPlan

    return TrainingPlan(
        options["epochs"],
        options["batch"],
        options["seed"],
        optimizer,
        Constant() if schedule is None else schedule,
        evaluate_every=options["evaluate_every"],
        checkpoint_seconds=options["checkpoint_seconds"],
    )


def whole(text: str) -> int:
    """A whole number, also as ``1e6`` or ``20k``: the type of an option of `argparse`.

    Raises
    ------
    argparse.ArgumentTypeError
        It is none.
    """
    return int(bounded(text.strip(), float.is_integer, "no whole number"))


def bounded(text: str, holds: Callable[[float], bool], otherwise: str) -> float:
    """A SPICE number with a property: for types of options of `argparse`.

    Raises
    ------
    argparse.ArgumentTypeError
        It is none, or has it not.
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
