"""What the arguments of public functions may be: numbers, lists of numbers, text, names, tables of these.

A rule takes the name of an argument and its value. It returns the value in the form that the function needs, or raises
an `ArgumentError` that names the argument and says what to write. `checked` applies rules to the arguments of a
function: those that it is given, those of `BY_NAME`, which mean the same everywhere, and those of `BY_TYPE`.

>>> number(2, 100, whole=True)("points", "10"), number()("R1: resistance", "4.7k")
(10, 4700.0)
>>> number(2, 100, whole=True)("points", 2.5)
Traceback (most recent call last):
circuitsim.errors.ArgumentError: points must be a whole number from 2 to 100, not 2.5
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from numbers import Integral
from typing import Any, TypeVar

from circuitsim.errors import ArgumentError
from circuitsim.units import NumberError, parse, short

Rule = Callable[[str, Any], Any]
F = TypeVar("F", bound=Callable[..., Any])


def refused(what: str, value: object, needed: str) -> ArgumentError:
    """The error of the argument ``what``, which must be ``needed``."""
    return ArgumentError(f"{what} must be {needed}, not {short(' '.join(repr(value).split()))}")


def number(
    low: float = -math.inf,
    high: float = math.inf,
    between: bool = False,
    whole: bool = False,
    endless: bool = False,
) -> Rule:
    """A real number, or text that is a SPICE number (``"4.7k"``); it becomes a float, or an int.

    Parameters
    ----------
    low, high : float
        Smallest and largest value.
    between : bool
        Whether these two are excluded.
    whole : bool
        Whether it must be an integer.
    endless : bool
        Whether it may be infinite.
    """
    kind = f"a {'whole ' if whole else '' if endless or high < math.inf else 'finite '}number"
    if high < math.inf:
        needed = f"{kind} between {low:,} and {high:,}" if between else f"{kind} from {low:,} to {high:,}"
    elif low > -math.inf:
        needed = f"{kind} {'above' if between else 'of at least'} {low:,}"
    else:
        needed = f"{kind} such as 4700 or '4.7k'"

    def rule(what: str, value: Any) -> Any:
        found = _number(value, float)
        finite = math.isfinite(found)
        good = low <= found <= high and (finite or endless) and not (between and finite and found in (low, high))
        if not good or (whole and found % 1.0):
            raise refused(what, value, needed)
        return int(found) if whole else found

    return rule


def _number(value: Any, kind: type) -> Any:
    """A value as a number of this kind; nan for anything else, also for truth values and arrays."""
    letter = getattr(getattr(value, "dtype", None), "kind", "f")
    if isinstance(value, bool | bytes) or letter == "b" or (letter == "c" and kind is float) or _shape(value):
        return math.nan
    try:
        return parse(value) if isinstance(value, str) else kind(value)
    except (TypeError, ValueError, OverflowError, NumberError):
        return math.nan


def _shape(value: Any) -> Any:
    return getattr(value, "shape", ())


def phasor(what: str, value: Any) -> complex:
    """The rule of complex amplitudes."""
    found = complex(_number(value, complex))
    if not (math.isfinite(found.real) and math.isfinite(found.imag)):
        raise refused(what, value, "a finite number, real or complex, such as 1 or 0.5+2j")
    return found


def numbers(each: Rule, least: int = 1) -> Rule:
    """At least so many numbers, or one alone; they become an array (n,) of floats."""

    def rule(what: str, value: Any) -> Any:
        import numpy as np

        try:
            found = np.asarray(value)
            if found.dtype.kind not in "iuf":
                entries = [value] if isinstance(value, str) else [*value]
                found = np.array([each(f"{what}[{k}]", own) for k, own in enumerate(entries)])
        except (TypeError, ValueError) as error:
            if isinstance(error, ArgumentError):
                raise
            raise refused(what, value, "a list of numbers") from None
        if found.ndim > 1 or found.size < least:
            raise refused(what, value, f"a list of numbers, at least {least}")
        found = np.atleast_1d(found).astype(float, copy=False)
        for k in (found.argmin(), found.argmax()) if found.size else ():  # the first nan, if there is one
            each(f"{what}[{k}]", found[k].item())
        return found

    return rule


def instance(needed: str, *types: type) -> Rule:
    """A value of these types, ``needed`` in words."""

    def rule(what: str, value: Any) -> Any:
        if not isinstance(value, types):
            raise refused(what, value, needed)
        return value

    return rule


def sequence(each: Rule, needed: str, *alone: type) -> Rule:
    """Values by a rule, or one alone of these types; they become a list."""

    def rule(what: str, value: Any) -> Any:
        found = [value] if isinstance(value, alone) else value
        if not isinstance(found, Iterable) or isinstance(found, str | Mapping | bytes):
            raise refused(what, value, needed)
        return [each(f"{what}[{k}]", one) for k, one in enumerate(found)]

    return rule


def listed(needed: str, *types: type) -> Rule:
    """Values of these types, or one alone; they become a list."""
    return sequence(instance(needed, *types), f"{needed}, or a list of such", *types)


def table(each: Rule, example: str, otherwise: Rule | None = None) -> Rule:
    """A dict from names, or tuples of names, to values; ``otherwise``: of what is none."""

    def rule(what: str, value: Any) -> Any:
        if not isinstance(value, Mapping):
            if otherwise is not None:
                return otherwise(what, value)
            raise refused(what, value, f"a dict such as {example}")
        for name in value:
            if not (isinstance(name, str) or (isinstance(name, tuple) and all(isinstance(own, str) for own in name))):
                raise refused(f"a key of {what}", name, f"a name, as in {example}")
        return {name: each(f"{what}[{name!r}]", own) for name, own in value.items()}

    return rule


def name(what: str, value: Any) -> str:
    """The rule of names of elements and nodes."""
    if not isinstance(value, str) or value.split() != [value]:
        raise refused(what, value, "a name without blanks, such as 'R1'")
    return value


def node(what: str, value: Any) -> str:
    """The rule of nodes; 1 is ``"1"``."""
    return name(what, str(value) if isinstance(value, Integral) and not isinstance(value, bool) else value)


def pair(what: str, value: Any) -> tuple[str, str]:
    """The rule of two nodes."""
    if isinstance(value, str) or not isinstance(value, Iterable) or len(ends := tuple(value)) != 2:
        raise refused(what, value, "two nodes such as ('out', '0')")
    return node(what, ends[0]), node(what, ends[1])


def anything(what: str, value: Any) -> Any:
    """The rule of values that are checked elsewhere."""
    return value


def converted(kind: type, convert: Callable[[Any], Any]) -> Rule:
    """Values of one ``kind``; ``convert`` makes them of anything else."""
    return lambda what, value: value if isinstance(value, kind) else convert(value)


def called(what: str, value: Any) -> Any:
    """The rule of functions."""
    if not callable(value):
        raise refused(what, value, "a function")
    return value


real, text, flag = number(), instance("text", str), instance("True or False", bool)
NAMES, QUANTITIES = listed("a name", str), listed("text such as 'v(out)'", str)
PAIRS = sequence(pair, "a list of pairs of nodes such as [('out', '0')]")
SHARE = number(-1, 1)
POSITIVE = number(0, between=True)
COUNT = number(1, whole=True)
PATH = instance("a file name", str, os.PathLike)
PATHS = listed("a folder or file", str, os.PathLike)
VALUES = table(real, "{'C1': 2.5}")


def target(what: str, value: Any) -> Any:
    """The name of a file to write."""
    if not os.fspath(PATH(what, value)) or os.path.isdir(value):
        raise refused(what, value, "the name of a file")
    return value


BY_NAME: dict[str, Rule] = {
    "budget": COUNT,
    "confidence": number(0, 1, between=True),
    "couplings": table(real, "{('L1', 'L2'): 0.9}"),
    "gap": POSITIVE,
    "iterations": COUNT,
    "period": POSITIVE,
    "points": number(2, 1_000_000, whole=True),
    "samples": number(2, 1_000_000_000, whole=True),
    "seed": number(0, whole=True),
    "step": POSITIVE,
    "stop": POSITIVE,
    "tolerance": number(0, 1, between=True),
    "workers": COUNT,
}
"""By the names of arguments."""

BY_TYPE: dict[str, Rule] = {
    "Callable": called,
    "Iterable[str | os.PathLike[str]]": PATHS,
    "Mapping[str, float]": VALUES,
    "Sequence[float]": numbers(real),
    "Sequence[float] | np.ndarray": numbers(real),
    "bool": flag,
    "float": real,
    "float | str": real,
    "str": text,
    "str | os.PathLike[str]": PATH,
    "tuple[str, str]": pair,
}
"""By annotations, with or without `` | None``; of functions by ``Callable``."""


def checked(**rules: Rule) -> Callable[[F], F]:
    """Decorate a function: rules of its arguments. A default, such as None, is allowed as it is."""

    def decorate(function: F) -> F:
        # Without `inspect`, which takes longer to import than a small deck to read.
        code = function.__code__
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        placed, given = names[: code.co_argcount], function.__defaults__ or ()
        defaults = dict(zip(placed[len(placed) - len(given) :], given)) | (function.__kwdefaults__ or {})
        own = {}
        for key in names:
            stated = str(function.__annotations__.get(key)).removesuffix(" | None")
            kind = "Callable" if stated.startswith("Callable") else stated
            rule = rules.get(key) or BY_NAME.get(key) or BY_TYPE.get(kind)
            if rule is not None:
                own[key] = rule

        def look(key: str, value: Any) -> Any:
            usual = key not in own or (key in defaults and value is defaults[key])
            return value if usual else own[key](key, value)

        @wraps(function)
        def call(*values: Any, **named: Any) -> Any:
            first = [look(key, value) for key, value in zip(placed, values)]
            return function(*first, *values[len(first) :], **{key: look(key, value) for key, value in named.items()})

        return call  # type: ignore[return-value]

    return decorate
