"""The functions, operators and constants of expressions: one row per name.

Numbers refuse NaN, infinity and underflow; they may have derivatives (`Linear`). Symbolic values have their own
functions (`circuitsim.netlist.symbolic`); some are composed of others for all types of values.
"""

from __future__ import annotations

import math
import operator
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Self

from circuitsim.netlist.waveform import in_expression
from circuitsim.units import SMALLEST

CONSTANTS: dict[str, float] = {"pi": math.pi, "e": math.e, "exp": math.e, "gmin": 1e-12}
NEGATE, NOT, TRUTH, REACHED = "-x", "!x", "!!x", "x>=0"
"""Names of unary operators: negation; whether it is zero; whether it is nonzero; whether it is not negative."""


def power(base: float, exponent: float) -> float:
    """``base ** exponent``. ngspice uses |base|, other programs do not: where that matters it is refused."""
    if base < 0 and not (exponent.is_integer() and exponent % 2 == 0):
        raise ValueError(
            "a negative base: SPICE programs differ; write pow(x, y) for the signed power, pwr(x, y) for that of |x|"
        )
    return base**exponent


def modulo(a: float, b: float) -> float:
    """The remainder with the sign of ``a``, as C's fmod."""
    return math.fmod(a, b) if b else a / b


def clamp(x: float, low: float, high: float) -> float:
    """``x`` clamped between two bounds, in either order."""
    return min(max(x, min(low, high)), max(low, high))


def with_sign(x: float, y: float | None = None) -> float:
    """The sign of ``x`` (−1, 0, 1); with ``y`` the magnitude of ``x`` with the sign of ``y``, as in Xyce and HSPICE."""
    return (x > 0) - (x < 0) if y is None else math.copysign(abs(x), y)


def pairs(name: str, points: Sequence[Any]) -> tuple[Sequence[float], Sequence[float]]:
    """Abscissas and values of a polyline."""
    places, values = points[0::2], points[1::2]
    if len(places) != len(values) or any(b <= a for a, b in pairwise(places)):
        raise ValueError(f"{name} needs pairs with increasing first numbers")
    return places, values


def interpolated(x: float, *points: float) -> float:
    """The value at ``x`` of the polyline through pairs of abscissa and value; constant outside."""
    places, values = pairs("table", points)
    k = bisect_left(places, x)
    return _on_segment(x, places, values, k) if 0 < k < len(places) else values[min(k, len(places) - 1)]


def extended(x: float, *points: float) -> float:
    """The value at ``x`` of the polyline through pairs of abscissa and value, extrapolated linearly, as in ngspice."""
    places, values = pairs("pwl", points)
    return _on_segment(x, places, values, min(max(bisect_right(places, x), 1), len(places) - 1))


def _on_segment(x: float, places: Sequence[float], values: Sequence[float], k: int) -> float:
    return values[k - 1] + (values[k] - values[k - 1]) * (x - places[k - 1]) / (places[k] - places[k - 1])


# --------------------------------------------------------- decisions and lines over time
def _sign(x: float, *_: float) -> int:
    return (x > 0.0) - (x < 0.0)


def _order(x: float, y: float) -> int:
    return (x > y) - (x < y)


def _segment(x: float, *points: float) -> int:
    return bisect_right(points[::2], x)


class Linear(float):
    """A number with its derivatives by some variables, in which it is affine; ``terms`` is None where it is not.
    Variables are the random ones of a deck (`circuitsim.netlist.deviations`)."""

    __slots__ = ("terms",)

    terms: dict[Any, float] | None

    def __new__(cls, value: float, terms: dict[Any, float] | None = None) -> Self:
        made = super().__new__(cls, value)
        made.terms = terms
        return made

    def _with(self, other: Any, value: float, own: float, others: float) -> Linear:
        """``value``, with terms ``own`` times these plus ``others`` times those of ``other``."""
        right = other.terms if isinstance(other, Linear) else {}
        if self.terms is None or right is None:
            return type(self)(value)
        keys = dict.fromkeys((*self.terms, *right))
        return type(self)(value, {k: own * self.terms.get(k, 0.0) + others * right.get(k, 0.0) for k in keys})

    def __add__(self, other: Any) -> Any:
        return self._with(other, float(self) + float(other), 1.0, 1.0)

    def __sub__(self, other: Any) -> Any:
        return self._with(other, float(self) - float(other), 1.0, -1.0)

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, other: Any) -> Any:
        value = float(self) * float(other)
        return Linear(value) if moves(self) and moves(other) else self._with(other, value, float(other), float(self))

    def __truediv__(self, other: Any) -> Any:
        value = float(self) / float(other)
        return Linear(value) if moves(other) else self._with(0.0, value, 1.0 / float(other), 0.0)

    def __rtruediv__(self, other: Any) -> Any:
        return Linear(float(other) / float(self), None if moves(self) else {})

    def __neg__(self) -> Any:
        return self * -1.0

    __radd__, __rmul__ = __add__, __mul__


def moves(value: Any) -> bool:
    """Whether a number depends on a variable."""
    return isinstance(value, Linear) and (value.terms is None or any(value.terms.values()))


# --------------------------------------------------------- the table
class Row(NamedTuple):
    """A function or operator.

    Attributes
    ----------
    value : callable or Code
        For numbers; of a function of a deck (``.func``) its body.
    least : int
        Minimum number of arguments; ``most`` is the maximum, if larger.
    way : callable, optional
        Index of the smooth piece, for functions with corners or jumps.
    composed : callable, optional
        Its composition of other functions; takes ``do(name, *values)``, then its arguments.
    name : str
        The first of its names.
    """

    value: Any
    least: int = 1
    way: Callable[..., Any] | None = None
    composed: Callable[..., Any] | None = None
    most: int = 0
    name: str = ""

    def takes(self, values: Sequence[Any]) -> bool:
        """Whether this number of arguments is allowed."""
        return self.least <= len(values) <= max(self.least, self.most)


def _over_time(name: str) -> Row:
    """A waveform; its piece is the decision."""
    return Row(
        lambda time, *numbers: in_expression(name, time, *numbers).value(time),
        way=lambda time, *numbers: in_expression(name, time, *numbers).piece(time),
        most=10,
    )


MANY = 10**9
_PLAIN = """sqrt, cbrt, exp, log10, sin, cos, tan, asin arcsin, acos arccos, atan arctan, sinh, cosh, tanh, asinh, \
acosh, atanh"""
"""Functions of the module math."""
_ROWS = {
    NEGATE: Row(operator.neg),
    NOT: Row(operator.not_),
    TRUTH: Row(bool),
    REACHED: Row(lambda x: x >= 0, 1, _sign),
    "+": Row(operator.add, 2),
    "-": Row(operator.sub, 2),
    "*": Row(operator.mul, 2),
    "/": Row(operator.truediv, 2),
    "% fmod mod": Row(modulo, 2, operator.floordiv),
    "\\": Row(lambda a, b: math.trunc(a / b), 2, operator.floordiv),
    "**": Row(power, 2),
    "<": Row(operator.lt, 2, _order, lambda do, x, y: do(">", y, x)),
    "<=": Row(operator.le, 2, _order, lambda do, x, y: do(">=", y, x)),
    ">": Row(operator.gt, 2, _order, lambda do, x, y: do("u", do("-", x, y))),
    ">=": Row(operator.ge, 2, _order, lambda do, x, y: do(REACHED, do("-", x, y))),
    "==": Row(operator.eq, 2, _order),
    "!= <>": Row(operator.ne, 2, _order),
    **{names: Row(getattr(math, names.split()[0])) for names in _PLAIN.split(", ")},
    "sqr": Row(lambda x: x * x),
    "abs": Row(abs, 1, _sign),
    "ln log": Row(math.log),
    "atan2": Row(math.atan2, 2),
    "hypot": Row(math.hypot, 2),
    "pow": Row(math.pow, 2),
    "pwr": Row(lambda x, y: math.pow(abs(x), y), 2, _sign),
    "pwrs": Row(lambda x, y: math.copysign(math.pow(abs(x), y), x), 2, _sign),
    "min": Row(lambda *x: min(x), 1, lambda *x: x.index(min(x)), most=MANY),
    "max": Row(lambda *x: max(x), 1, lambda *x: x.index(max(x)), most=MANY),
    "sgn": Row(with_sign, 1, _sign),
    "sign": Row(with_sign, composed=lambda do, x, *y: None if y else do("sgn", x), most=2),
    "u stp buf": Row(lambda x: x > 0, 1, _sign),
    "inv": Row(lambda x: x <= 0, 1, _sign, lambda do, x: do(NOT, do("u", x))),
    "uramp": Row(lambda x: max(0.0, x), 1, _sign, lambda do, x: do("max", x, 0.0)),
    "table": Row(interpolated, 3, _segment, most=MANY),
    "pwl": Row(extended, 5, _segment, most=MANY),
    "int": Row(math.trunc, 1, math.floor),
    "floor": Row(math.floor, 1, math.floor),
    "ceil": Row(math.ceil, 1, math.floor),
    "nint round": Row(round, 1, round),
    "limit": Row(
        clamp,
        3,
        lambda x, low, high: (x > low) + (x > high),
        lambda do, x, low, high: do("min", do("max", x, do("min", low, high)), do("max", low, high)),
    ),
    "ternary_fcn if": Row(lambda condition, yes, no: yes if condition else no, 3, lambda x, *_: bool(x)),
    **{f"spice_{name}": _over_time(name) for name in ("pulse", "sin", "exp", "sffm")},
}
FUNCTIONS = {name: row._replace(name=names.split()[0]) for names, row in _ROWS.items() for name in names.split()}
"""Operators and functions by name."""

OPERATORS = frozenset(name for name in FUNCTIONS if not name.isidentifier())

# A zero result from nonzero operands means underflow.
MAY_UNDERFLOW = frozenset(("*", "/", "**", "exp", "pow", "pwr", "sqr"))


def checked(name: str, result: Any, arguments: Sequence[float]) -> float:
    """``result`` of ``name`` as a finite float.

    Raises
    ------
    ValueError
        NaN, infinity, or an underflow.
    """
    value = float(result)
    if not math.isfinite(value):
        raise ValueError("the result is larger than a double can hold" if math.isinf(value) else "no number results")
    if abs(value) < SMALLEST and name in MAY_UNDERFLOW and (value != 0 or all(arguments) or name == "exp"):
        raise ValueError("the result is smaller than a double can hold (it would be read as zero)")
    return value
