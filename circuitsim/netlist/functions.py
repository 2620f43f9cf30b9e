"""The functions, operators and constants of expressions: one row per name, with its meaning for each type of value.

Numbers refuse NaN, infinity and underflow; they may have derivatives (`Linear`). An affine
value is a constant + Σ coefficient · control; max, min, abs, limit, table and uramp of some are sums of ramps
max(0, u). Formulas of a source's own voltage are tapes of operations (`circuitsim.models.formula_tape`).
"""

from __future__ import annotations

import math
import operator
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from functools import partial, reduce
from itertools import pairwise
from typing import Any, NamedTuple, Self

from circuitsim.models import formula_operations as f
from circuitsim.models.formula_operations import Tape
from circuitsim.netlist import limits
from circuitsim.netlist.waveform import in_expression
from circuitsim.units import SMALLEST

CONSTANTS: dict[str, float] = {"pi": math.pi, "e": math.e, "exp": math.e, "gmin": 1e-12}
NEGATE, NOT, TRUTH = "-x", "!x", "!!x"
"""Unary operators as named in expressions: negation; whether it is zero; whether it is nonzero."""


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
    Variables are the random ones of a deck (`circuitsim.netlist.deviations`), or time."""

    __slots__ = ("terms",)

    terms: dict[Any, float] | None

    def __new__(cls, value: float, terms: dict[Any, float] | None) -> Self:
        made = super().__new__(cls, value)
        made.terms = terms
        return made

    def _with(self, other: Any, value: float, own: float, others: float) -> Linear:
        """``value``, with terms ``own`` times these plus ``others`` times those of ``other``."""
        right = other.terms if isinstance(other, Linear) else {}
        if self.terms is None or right is None:
            return type(self)(value, None)
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
        return (
            Linear(value, None) if moves(self) and moves(other) else self._with(other, value, float(other), float(self))
        )

    def __truediv__(self, other: Any) -> Any:
        value = float(self) / float(other)
        return Linear(value, None) if moves(other) else self._with(0.0, value, 1.0 / float(other), 0.0)

    def __rtruediv__(self, other: Any) -> Any:
        return Linear(float(other) / float(self), None if moves(self) else {})

    def __neg__(self) -> Any:
        return self * -1.0

    def __abs__(self) -> Any:
        return self if self > 0.0 else -self

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (float(self), self.terms)

    __radd__, __rmul__ = __add__, __mul__


def moves(value: Any) -> bool:
    """Whether a number depends on a variable."""
    return isinstance(value, Linear) and (value.terms is None or any(value.terms.values()))


# --------------------------------------------------------- piecewise-linear values
class Affine(Linear):
    """A number + Σ terms[k] · control k; control −1 − n is ramp n. It can be added to numbers and affine values, and
    multiplied by numbers."""

    __slots__ = ()

    terms: dict[int, float]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Affine) and (float(self), self.terms) == (float(other), other.terms)

    __hash__ = None  # type: ignore[assignment]


class Steps(NamedTuple):
    """Numbers chosen by conditions: ``yes`` where ``test`` > 0, else ``no``; each a number or further steps."""

    test: Affine
    yes: Steps | float
    no: Steps | float
    size: int = 1


class Ramps:
    """The ramps of one expression.

    Attributes
    ----------
    values : list of Affine
        u of each ramp max(0, u).
    """

    def __init__(self) -> None:
        self.values: list[Affine] = []
        self._numbers: dict[tuple[float, frozenset[tuple[int, float]]], int] = {}

    def ramp(self, value: Affine) -> Affine:
        """max(0, value); shared by equal values.

        Raises
        ------
        ValueError
            Too many ramps in one expression.
        """
        key = float(value), frozenset(value.terms.items())
        if key not in self._numbers:
            if len(self.values) == limits.RAMPS:
                raise ValueError(f"more than {limits.RAMPS:,} breakpoints in one expression")
            self.values.append(value)
            self._numbers[key] = -len(self.values)
        return Affine(0.0, {self._numbers[key]: 1.0})

    # ------------------------------------------------------------------ functions
    def step(self, test: Affine, above: float = 1.0, below: float = 0.0, at: float = 0.0) -> Steps | float:
        """One of two numbers where ``test`` is above zero or below; a third where it is always zero."""
        if any(test.terms.values()):
            return Steps(test, above, below)
        return above if test > 0.0 else below if test < 0.0 else at

    def sign(self, x: Affine, *others: Any) -> Any:
        """The sign of one value; None for another number of arguments."""
        return None if others else self.step(x, 1.0, -1.0)

    def multiple(self, x: Any, y: Any) -> Any:
        """The product with a number; None for that of two affine values."""
        return None if isinstance(x, Affine) and isinstance(y, Affine) else x * y

    def largest(self, *values: Any) -> Any:
        """max of any number of values; that of the numbers comes first."""
        numbers = [value for value in values if not isinstance(value, Affine)]
        found = [value for value in values if isinstance(value, Affine)]
        return reduce(lambda a, b: a + self.ramp(b - a), ([max(numbers)] if numbers else []) + found)

    def smallest(self, *values: Any) -> Any:
        """min of any number of values."""
        return 0.0 - self.largest(*map(operator.neg, values))  # no negative zero

    def clamp(self, x: Any, low: Any, high: Any) -> Any:
        """``x`` clamped between two bounds, in either order."""
        return self.smallest(self.largest(x, self.smallest(low, high)), self.largest(low, high))

    def polygon(self, x: Any, *points: Any) -> Any:
        """The polyline through pairs of abscissa and value; constant outside."""
        places, values = _numbers_only("table", x, points)
        if len(places) == 1:
            return values[0]
        if len(places) == 2 and values[0] != values[1]:  # in units of the value, so that both values are exact
            rise, sign = abs(values[1] - values[0]), math.copysign(1.0, values[1] - values[0])
            return self.clamp((x - places[0]) * (rise / (places[1] - places[0])), 0.0, rise) * sign + values[0]
        along = self.clamp(x - places[0], 0.0, places[-1] - places[0])
        return self.bent(along, [place - places[0] for place in places], values)

    def extended(self, x: Any, *points: Any) -> Any:
        """The polyline through pairs of abscissa and value, extrapolated linearly."""
        places, values = _numbers_only("pwl", x, points)
        return self.bent(x, places, values)

    def bent(self, x: Any, places: Sequence[float], values: Sequence[float]) -> Any:
        """A line along the first segment of a polyline, with a change of slope at each inner point."""
        slopes = [(b - a) / (q - p) for (p, q), (a, b) in zip(pairwise(places), pairwise(values))]
        line = (x - places[0]) * slopes[0] + values[0]
        for place, (before, behind) in zip(places[1:-1], pairwise(slopes)):
            bend = self.ramp(x - place)
            for key, share in bend.terms.items():  # in place: a table may be long
                line.terms[key] = line.terms.get(key, 0.0) + share * (behind - before)
        return line


def _numbers_only(name: str, x: Any, points: Sequence[Any]) -> tuple[Sequence[float], Sequence[float]]:
    """The points of a polyline, which must be numbers."""
    if not isinstance(x, Affine) or any(isinstance(point, Affine) for point in points):
        raise ValueError(f"the points of {'a table' if name == 'table' else name} must be numbers")
    return pairs(name, points)


# --------------------------------------------------------- tapes
class OfTape(NamedTuple):
    """A part of a formula that depends on the voltage; ``condition``: 1 or 0."""

    tape: Tape
    condition: bool = False


Entry = float | OfTape


def tape_of(entry: Entry) -> Tape:
    return entry.tape if isinstance(entry, OfTape) else ((f.CONSTANT, float(entry)),)


def joined(op: int, *of: Entry, number: float = 0.0, condition: bool = False) -> OfTape:
    """An operation appended to the tapes of its operands."""
    tape = tuple(one for entry in of for one in tape_of(entry))
    if op in (f.POWER, f.SIGNED_POWER, f.ROOTED) and tape[-1][0] == f.ABSOLUTE:
        op, tape = f.POWER, tape[:-1]
    return OfTape((*tape, (op, number)), condition or op in (f.STEP, f.REACHED))


def _powered(odd: int) -> Callable[..., OfTape]:
    """base ** exponent; this operation for odd exponents."""

    def made(base: Entry, exponent: Entry) -> OfTape:
        if isinstance(exponent, OfTape):
            return joined(f.EXP, joined(f.MULTIPLY, exponent, joined(f.LOG, base)))
        return joined({0.0: f.POWER, 1.0: odd}.get(exponent % 2.0, f.ROOTED), base, number=exponent)

    return made


def _with_number(op: int) -> Callable[..., OfTape | None]:
    """|x|^c, or that with the sign of x."""
    return lambda x, c: None if isinstance(c, OfTape) else joined(op, x, number=c)


def _limited(x: Entry, *ends: Entry) -> OfTape:
    """``limit``: bounds in either order."""
    if any(isinstance(end, OfTape) for end in ends):
        ends = joined(f.MINIMUM, *ends), joined(f.MAXIMUM, *ends)
    else:
        ends = min(ends), max(ends)
    return joined(f.MINIMUM, joined(f.MAXIMUM, x, ends[0]), ends[1])


def _polygon(x: Entry, *points: Entry) -> OfTape | None:
    """``table``: y₁ + Σ slope · (x clamped between two abscissas − the first of them)."""
    if any(isinstance(one, OfTape) for one in points):
        return None
    places, values = pairs("table", points)
    total: Any = joined(f.ADD, values[0], joined(f.MULTIPLY, 0.0, x)) if len({*values}) == 1 else values[0]
    for (a, b), (y, z) in zip(pairwise(places), pairwise(values)):
        if y != z:
            piece = joined(f.SUBTRACT, _limited(x, a, b), a)
            total = joined(f.ADD, total, joined(f.MULTIPLY, (z - y) / (b - a), piece))
    made: OfTape = total
    return made


# --------------------------------------------------------- the table
class Row(NamedTuple):
    """A function or operator.

    Attributes
    ----------
    value : callable
        For numbers.
    least : int
        Minimum number of arguments; ``most`` is the maximum, if larger.
    way : callable, optional
        Index of the smooth piece, for functions with corners or jumps.
    straight : bool
        Whether it is affine in its arguments between its corners and jumps.
    ramps : callable, optional
        Its meaning for affine values; takes the ramps of the expression (`Ramps`), then arguments.
    tape : int or callable, optional
        Its operation in a formula of a source's own voltage, or a function that composes several. Both callables return
        None for arguments they do not support.
    """

    value: Callable[..., Any]
    least: int = 1
    way: Callable[..., Any] | None = None
    straight: bool = False
    ramps: Callable[..., Any] | None = None
    tape: int | Callable[..., OfTape | None] | None = None
    most: int = 0

    def on_tape(self, values: Sequence[Entry]) -> OfTape | None:
        """Its tape operations, or None."""
        if callable(self.tape):
            return self.tape(*values)
        if self.tape in f.BINARY:
            made: Any = reduce(partial(joined, self.tape), values)
            return made
        return None if self.tape is None else joined(self.tape, *values)

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


def _compared(function: Callable[..., Any], turned: bool, equal: bool) -> Row:
    """A comparison: whether the difference of its operands, in that order or reversed, is above zero, or at least
    zero."""

    def ramps(of: Ramps, x: Any, y: Any) -> Any:
        return of.step(y - x if turned else x - y, at=float(equal))

    def tape(x: Entry, y: Entry) -> OfTape:
        if not turned and y == 0.5 and isinstance(x, OfTape) and x.condition:
            return x
        difference = x if y == 0.0 and not turned else joined(f.SUBTRACT, *((y, x) if turned else (x, y)))
        return joined(f.REACHED if equal else f.STEP, difference)

    return Row(function, 2, _order, True, ramps, tape)


MANY = 10**9
_OPS = {name: op for op, name in f.FUNCTIONS.items()}
_PLAIN = "sqrt, exp, sin, cos, asin arcsin, acos arccos, atan arctan, sinh, cosh, tanh, asinh, acosh, atanh"
"""Functions of the module math."""
_ROWS = {
    NEGATE: Row(operator.neg, straight=True, ramps=lambda _, x: -x, tape=f.NEGATE),
    NOT: Row(operator.not_, straight=True, tape=lambda x: joined(f.SUBTRACT, 1.0, x, condition=True)),
    TRUTH: Row(bool, straight=True, tape=lambda x: x),
    "+": Row(operator.add, 2, straight=True, ramps=lambda _, x, y: x + y, tape=f.ADD),
    "-": Row(operator.sub, 2, straight=True, ramps=lambda _, x, y: x - y, tape=f.SUBTRACT),
    "*": Row(operator.mul, 2, straight=True, ramps=Ramps.multiple, tape=f.MULTIPLY),
    "/": Row(operator.truediv, 2, straight=True, tape=f.DIVIDE),
    "% fmod mod": Row(modulo, 2, operator.floordiv),
    "\\": Row(lambda a, b: math.trunc(a / b), 2, operator.floordiv),
    "**": Row(power, 2, tape=_powered(f.ROOTED)),
    "<": _compared(operator.lt, True, False),
    "<=": _compared(operator.le, True, True),
    ">": _compared(operator.gt, False, False),
    ">=": _compared(operator.ge, False, True),
    "==": Row(operator.eq, 2, _order, True),
    "!= <>": Row(operator.ne, 2, _order, True),
    **{names: Row(getattr(math, names.split()[0])) for names in _PLAIN.split(", ")},
    "sqr": Row(lambda x: x * x, tape=lambda x: joined(f.POWER, x, number=2.0)),
    "abs": Row(abs, 1, _sign, True, lambda ramps, x: ramps.ramp(x) * 2.0 - x),
    "ln log": Row(math.log),
    "log10": Row(math.log10, tape=lambda x: joined(f.MULTIPLY, 0.4342944819032518, joined(f.LOG, x))),
    "tan": Row(math.tan, tape=lambda x: joined(f.DIVIDE, joined(f.SIN, x), joined(f.COS, x))),
    "atan2": Row(math.atan2, 2),
    "hypot": Row(
        math.hypot,
        2,
        tape=lambda *x: joined(f.SQRT, joined(f.ADD, *(joined(f.POWER, one, number=2.0) for one in x))),
    ),
    "pow": Row(math.pow, 2, tape=_powered(f.SIGNED_POWER)),
    "pwr": Row(lambda x, y: math.pow(abs(x), y), 2, _sign, tape=_with_number(f.POWER)),
    "pwrs": Row(lambda x, y: math.copysign(math.pow(abs(x), y), x), 2, _sign, tape=_with_number(f.SIGNED_POWER)),
    "min": Row(lambda *x: min(x), 1, lambda *x: x.index(min(x)), True, Ramps.smallest, f.MINIMUM, MANY),
    "max": Row(lambda *x: max(x), 1, lambda *x: x.index(max(x)), True, Ramps.largest, f.MAXIMUM, MANY),
    "sgn": Row(with_sign, 1, _sign, True, Ramps.sign),
    "sign": Row(with_sign, ramps=Ramps.sign, tape=lambda x, *y: None if y else joined(f.SIGN, x), most=2),
    "cbrt": Row(math.cbrt, tape=lambda x: joined(f.SIGNED_POWER, x, number=1.0 / 3.0)),
    "u stp buf": Row(lambda x: x > 0, 1, _sign, True, Ramps.step, f.STEP),
    "inv": Row(
        lambda x: x <= 0,
        1,
        _sign,
        True,
        lambda ramps, x: ramps.step(x, 0.0, 1.0, 1.0),
        lambda x: joined(f.SUBTRACT, 1.0, joined(f.STEP, x), condition=True),
    ),
    "uramp": Row(lambda x: max(0.0, x), 1, _sign, True, Ramps.ramp, lambda x: joined(f.MAXIMUM, x, 0.0)),
    "table": Row(interpolated, 3, _segment, ramps=Ramps.polygon, tape=_polygon, most=MANY),
    "pwl": Row(extended, 5, _segment, ramps=Ramps.extended, most=MANY),
    "int": Row(math.trunc, 1, math.floor, True),
    "floor": Row(math.floor, 1, math.floor, True),
    "ceil": Row(math.ceil, 1, math.floor, True),
    "nint round": Row(round, 1, round, True),
    "limit": Row(clamp, 3, lambda x, low, high: (x > low) + (x > high), True, Ramps.clamp, _limited),
    "ternary_fcn if": Row(lambda condition, yes, no: yes if condition else no, 3, lambda x, *_: bool(x), True),
    **{f"spice_{name}": _over_time(name) for name in ("pulse", "sin", "exp", "sffm")},
}
FUNCTIONS = {
    name: row._replace(tape=row.tape or _OPS.get(names.split()[0]))
    for names, row in _ROWS.items()
    for name in names.split()
}
"""Operators and functions by name."""

OPERATORS = frozenset(name for name in FUNCTIONS if not name.isidentifier())

# A zero result from nonzero operands means underflow.
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
