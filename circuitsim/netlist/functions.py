"""The functions, operators and constants of expressions. All refuse NaN, infinity and underflow."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from circuitsim.netlist.waveform import spice_function
from circuitsim.units import SMALLEST

CONSTANTS: dict[str, float] = {"pi": math.pi, "e": math.e, "exp": math.e, "gmin": 1e-12}
RANDOM = frozenset(("gauss", "agauss", "unif", "aunif", "mc", "flat", "rand", "random"))


def power(base: float, exponent: float) -> float:
    """``base ** exponent``. ngspice takes |base| here, other programs do not: where that matters it is refused."""
    if base < 0 and not (exponent.is_integer() and exponent % 2 == 0):
        raise ValueError(
            "a negative base: SPICE programs differ; write pow(x, y) for the signed power, pwr(x, y) for that of |x|"
        )
    return base**exponent


def modulo(a: float, b: float) -> float:
    """The remainder with the sign of ``a``, as C's fmod."""
    return math.fmod(a, b) if b else a / b


def divide_whole(a: float, b: float) -> float:
    """The quotient without its fraction (rounded towards zero)."""
    return float(math.trunc(a / b))


def clamp(x: float, low: float, high: float) -> float:
    """``x`` held between two bounds, in either order."""
    return min(max(x, min(low, high)), max(low, high))


def choose(condition: float, yes: float, no: float) -> float:
    """``yes`` where the condition is not zero."""
    return yes if condition else no


def with_sign(x: float, y: float | None = None) -> float:
    """The sign of ``x`` (−1, 0, 1); with ``y`` the magnitude of ``x`` with the sign of ``y``, as in Xyce and HSPICE."""
    return (x > 0) - (x < 0) if y is None else math.copysign(abs(x), y)


def interpolated(x: float, *points: float) -> float:
    """The value at ``x`` of the polygon through pairs of abscissa and value; constant outside."""
    places, values = points[0::2], points[1::2]
    if len(places) != len(values) or any(b <= a for a, b in pairwise(places)):
        raise ValueError("table needs pairs with growing first numbers")
    if x <= places[0]:
        return values[0]
    for k in range(1, len(places)):
        if x <= places[k]:
            return values[k - 1] + (values[k] - values[k - 1]) * (x - places[k - 1]) / (places[k] - places[k - 1])
    return values[-1]


def extended(x: float, *points: float) -> float:
    """The value at ``x`` of the polygon through pairs of abscissa and value, its outer segments extended, as in
    ngspice."""
    places, values = points[0::2], points[1::2]
    if len(places) != len(values) or any(b <= a for a, b in pairwise(places)):
        raise ValueError("pwl needs pairs with growing first numbers")
    k = min(max(bisect_right(places, x), 1), len(places) - 1)
    return values[k - 1] + (values[k] - values[k - 1]) * (x - places[k - 1]) / (places[k] - places[k - 1])


OPERATORS: dict[str, Callable[[float, float], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "%": modulo,
    "\\": divide_whole,
    "**": power,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<>": lambda a, b: a != b,
}

# Name → (function, fewest arguments, most arguments).
FUNCTIONS: dict[str, tuple[Callable[..., Any], int, int]] = {
    name: (function, low, high)
    for names, function, low, high in (
        ("sqrt", math.sqrt, 1, 1),
        ("sqr", lambda x: x * x, 1, 1),
        ("abs", abs, 1, 1),
        ("exp", math.exp, 1, 1),
        ("ln log", math.log, 1, 1),
        ("log10", math.log10, 1, 1),
        ("sin", math.sin, 1, 1),
        ("cos", math.cos, 1, 1),
        ("tan", math.tan, 1, 1),
        ("asin arcsin", math.asin, 1, 1),
        ("acos arccos", math.acos, 1, 1),
        ("atan arctan", math.atan, 1, 1),
        ("atan2", math.atan2, 2, 2),
        ("hypot", math.hypot, 2, 2),
        ("sinh", math.sinh, 1, 1),
        ("cosh", math.cosh, 1, 1),
        ("tanh", math.tanh, 1, 1),
        ("asinh", math.asinh, 1, 1),
        ("acosh", math.acosh, 1, 1),
        ("atanh", math.atanh, 1, 1),
        ("pow", math.pow, 2, 2),
        ("pwr", lambda x, y: math.pow(abs(x), y), 2, 2),
        ("min", lambda *x: min(x), 1, 10**9),
        ("max", lambda *x: max(x), 1, 10**9),
        ("sgn", lambda x: (x > 0) - (x < 0), 1, 1),
        ("sign", with_sign, 1, 2),
        ("fmod mod", modulo, 2, 2),
        ("cbrt", math.cbrt, 1, 1),
        ("pwrs", lambda x, y: math.copysign(math.pow(abs(x), y), x), 2, 2),
        ("u stp buf", lambda x: x > 0, 1, 1),
        ("inv", lambda x: x <= 0, 1, 1),
        ("uramp", lambda x: max(x, 0.0), 1, 1),
        ("table", interpolated, 3, 10**9),
        ("pwl", extended, 5, 10**9),
        ("int", math.trunc, 1, 1),
        ("floor", math.floor, 1, 1),
        ("ceil", math.ceil, 1, 1),
        ("nint round", round, 1, 1),
        ("limit", clamp, 3, 3),
        ("ternary_fcn if", choose, 3, 3),
        ("spice_pulse", spice_function("pulse"), 1, 10),
        ("spice_sin", spice_function("sin"), 1, 10),
        ("spice_exp", spice_function("exp"), 1, 10),
        ("spice_sffm", spice_function("sffm"), 1, 10),
    )
    for name in names.split()
}

# Where a result of zero from operands that are not zero means that digits were lost.
MAY_UNDERFLOW = frozenset(("*", "/", "**", "exp", "pow", "pwr", "sqr"))


def checked(name: str, result: Any, arguments: Sequence[float]) -> float:
    """``result`` of ``name`` as a finite float.

    Raises
    ------
    ValueError
        NaN, infinity, a complex number, or an underflow.
    """
    if isinstance(result, complex):
        raise ValueError("the result is a complex number")
    value = float(result)
    if not math.isfinite(value):
        raise ValueError("the result is larger than a double can hold" if math.isinf(value) else "no number results")
    if abs(value) < SMALLEST and name in MAY_UNDERFLOW and (value != 0 or all(arguments) or name == "exp"):
        raise ValueError("the result is smaller than a double can hold (it would be read as zero)")
    return value
