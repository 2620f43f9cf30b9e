"""The functions, operators and constants of expressions, one row per name; time functions of sources; random functions.

Numbers refuse NaN, infinity and underflow; they may have derivatives (`Linear`). Symbolic values have their own
functions (`circuitsim.netlist.symbolic`); some are composed of others for all types of values.

Time functions are as ngspice defines them: ``PULSE SIN EXP PWL SFFM AM``; at t = 0 they have the value at DC.

``R1 a b {mc(1k, 5%)}`` is 1 kΩ that changes by 1 kΩ per unit of a deviation within ±0.05. A number carries such
coefficients through sums, products with numbers and quotients by numbers; other operations drop them. A random function
on an element's card is drawn once per element, one in a parameter once. `circuitsim.tolerance` turns them into random
variables.

References
----------
ngspice user manual, version 39, chapter 4.1 (independent sources).
"""

from __future__ import annotations

import enum
import math
import operator
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple, Self

from circuitsim.netlist.cards import CardError, Place, Token
from circuitsim.units import SMALLEST, short


# ---------------------------------------------------------------------- of time
class Grid(NamedTuple):
    """The step and the stop time of a time sweep (s), which are defaults of some functions."""

    step: float
    stop: float


STEADY = Grid(math.inf, math.inf)
"""For an operating point: no function reads it at t = 0."""


class Function(NamedTuple):
    """A time function.

    Attributes
    ----------
    waveform : str
        The class of `circuitsim.circuit.waveforms`, which takes all numbers.
    most : int or None
        Maximum count of numbers.
    delay : int or None
        Position of the delay among them.
    sizes : int
        Number of leading ones in V or A.
    others : callable
        Maps the step and the stop time, and a function for a number or its default, to the defaults of numbers that are
        omitted or zero.
    explicit : int
        Minimum count of numbers in an expression; 0: none has it.
    nonzero : tuple of int
        Positions of those that may not be zero there: on a card their defaults come from ``.tran``.
    """

    waveform: str
    most: int | None = None
    delay: int | None = None
    sizes: int = 0
    others: Callable[[float, float, Callable[[int, float], float]], Sequence[float]] = lambda *_: ()
    explicit: int = 0
    nonzero: tuple[int, ...] = ()


FEWEST = 2
"""Minimum count of numbers of a function."""
EXTERNAL = "external"
"""A function whose values another program supplies."""
TIME_FUNCTIONS = {
    "pulse": Function(
        "Pulse",
        8,
        2,
        2,
        lambda step, stop, x: (0.0, 0.0, 0.0, step, step, stop, stop or math.inf, math.inf),
        6,
        (3, 4, 5),
    ),
    "sin": Function("Sine", 7, 3, 2, lambda step, stop, x: (0.0, 0.0, 1.0 / stop, 0.0, 0.0, 0.0, math.inf), 3, (2,)),
    "exp": Function(
        "Exponential",
        6,
        2,
        2,
        lambda step, stop, x: (0.0, 0.0, step, step or math.inf, x(2, step) + step, step or math.inf),
        6,
        (3, 5),
    ),
    "pwl": Function("PiecewiseLinear"),
    "sffm": Function(
        "FrequencyModulation",
        7,
        None,
        2,
        lambda step, stop, x: (0.0, 0.0, 1.0 / stop, 0.0, 1.0 / stop, 0.0, 0.0),
        5,
        (2, 4),
    ),
    "am": Function("AmplitudeModulation", 7, 4, 1, lambda step, stop, x: (0.0, 0.0, 1.0 / stop, 0.0, 0.0)),
    EXTERNAL: Function(""),
}
"""By name; the last number of PULSE and SIN is LTspice's number of cycles."""
MAY_BE_EMPTY = TIME_FUNCTIONS.keys() - {"pwl", EXTERNAL}
"""Functions that old decks write without numbers next to AC: 0 at DC."""
ALIASES = {"sine": "sin"}
"""Aliases of functions; LTspice writes SINE."""


def in_expression(name: str, time: float, *numbers: float) -> Any:
    """The waveform of ``spice_pulse(v1, v2, …)`` in an expression, whose first argument is the time, s (Xyce).

    Raises
    ------
    ValueError
        Required numbers are missing or zero.
    """
    fewest, nonzero = TIME_FUNCTIONS[name].explicit, TIME_FUNCTIONS[name].nonzero
    if len(numbers) < fewest or not all(numbers[k] for k in nonzero):
        raise ValueError(f"spice_{name} needs at least {fewest} numbers, with times that are not zero")
    return _made(Waveform(name, numbers), STEADY)


RANDOM = frozenset(("trnoise", "trrandom"))
"""Time functions that are refused, because each run would differ."""


class Waveform(NamedTuple):
    """The time function of one source.

    Attributes
    ----------
    name : str
        A key of `TIME_FUNCTIONS`.
    numbers : tuple of float
        As on the card, V or A and s; there they, and the next two, may be expressions.
    repeat : float or None
        Of PWL: the time on its own axis from which it repeats (``r=``), s.
    delay : float
        Of PWL: ``td=``, s.
    factor : float
        Sources in parallel.
    """

    name: str
    numbers: tuple[Any, ...]
    repeat: Any = None
    delay: Any = 0.0
    factor: float = 1.0

    @property
    def dc(self) -> float:
        """The value at the operating point, V or A.

        Raises
        ------
        ValueError
            Invalid numbers.
        """
        if self.name == "pulse":
            return self.factor * self.numbers[0]
        repeats = self.repeat is not None and self.repeat < self.numbers[-2]
        card = self._replace(factor=1.0, repeat=self.repeat if repeats else None)
        return self.factor * _made(card, STEADY).value(0.0)

    def over(self, grid: Grid) -> Any:
        """The waveform, with defaults from a time sweep.

        Raises
        ------
        ValueError, UsageError
            Invalid numbers.
        """
        if self.name == "am" and any(self.numbers[5:]):
            raise ValueError("the phases of AM are not read")
        return _made(self, grid)


@lru_cache(1024)
def _made(card: Waveform, grid: Grid) -> Any:
    """The waveform of a card; cached, since a sweep requests each time separately."""
    from circuitsim.circuit import waveforms

    x, own = card.numbers, TIME_FUNCTIONS[card.name]
    if len(x) < FEWEST:
        raise ValueError(f"{card.name.upper()} needs at least {FEWEST} numbers")
    if card.name == "pwl":
        times, values = x[0::2], x[1::2]
        if len(times) != len(values):
            raise ValueError("PWL needs pairs of time and value")
        if any(b <= a for a, b in pairwise(times)):
            raise ValueError("the times of PWL must increase")
        repeat = None if card.repeat is None else card.repeat + card.delay
        return waveforms.PiecewiseLinear([t + card.delay for t in times], [card.factor * v for v in values], repeat)

    def number(k: int, other: float) -> float:
        return x[k] if k < len(x) and x[k] != 0.0 else other

    numbers = [number(k, other) for k, other in enumerate(own.others(*grid, number))]
    scaled = [card.factor * size for size in numbers[: own.sizes]]
    return getattr(waveforms, own.waveform)(*scaled, *numbers[own.sizes :])


def checked_waveform(wave: Waveform, at: Place) -> float:
    """The value of ``wave`` at DC.

    Raises
    ------
    CardError
        Too few numbers, or a start before t = 0 (its value at the operating point would not simply be the first one).
    """
    shown = wave.name.upper()
    if wave.name == EXTERNAL:
        raise CardError(f"{shown} has no value at the operating point", at, "write its DC value", "unsupported")
    if len(wave.numbers) < FEWEST:
        raise CardError(f"{shown} needs at least {FEWEST} numbers", at, "or write DC and a value")
    delay = TIME_FUNCTIONS[wave.name].delay
    if delay is not None and min(wave.numbers[delay : delay + 1], default=0.0) < 0:
        raise CardError(f"{shown} begins before t = 0", at, "write its value at t = 0: DC …", "range")
    try:
        value = wave.dc
    except ValueError as error:
        raise CardError(str(error), at) from None
    if not math.isfinite(value):
        raise CardError(f"{shown} has no finite value at t = 0", at, kind="number")
    return value


# ---------------------------------------------------------------------- of numbers
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
    Variables are the random ones of a deck (`circuitsim.netlist.functions`)."""

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


# ---------------------------------------------------------------------- random
SIGMAS = 3.0
"""Tolerance of a normal distribution in standard deviations."""


class Distribution(enum.Enum):
    """Distribution of a deviation over ± its tolerance."""

    UNIFORM = "uniform"
    NORMAL = "normal"
    """The tolerance is three standard deviations; larger deviations occur."""
    TRUNCATED = "truncated"
    """Normal, truncated at the tolerance."""
    ENDS = "ends"
    """One of the two ends of the tolerance, with equal probability."""


class Variable(NamedTuple):
    """An independent random deviation.

    Attributes
    ----------
    label : str
        Its location in the deck, for tables.
    amount : float
        Largest deviation, or three standard deviations.
    distribution : Distribution
    """

    label: str
    amount: float
    distribution: Distribution


class Deviations(NamedTuple):
    """How the values of a deck's elements deviate.

    Attributes
    ----------
    variables : tuple of Variable
    effects : dict of int to dict of int to float
        Element → variable → change of its value for a deviation of 1.
    refused : tuple of str
        Descriptions of random functions without a linear effect, for messages.
    """

    variables: tuple[Variable, ...]
    effects: Mapping[int, Mapping[int, float]]
    refused: tuple[str, ...]


def _relative(nominal: float, tolerance: float) -> tuple[float, float, float]:
    return nominal, nominal, tolerance


def _absolute(nominal: float, tolerance: float) -> tuple[float, float, float]:
    return nominal, 1.0, tolerance


def _spread(sigma: float) -> float:
    if sigma <= 0.0:
        raise ValueError("the number of standard deviations must be positive")
    return SIGMAS / sigma


Law = tuple[Distribution, Callable[..., tuple[float, float, float]]]
_LAWS: dict[str, Law] = {
    "mc(value, tolerance)": (Distribution.UNIFORM, _relative),
    "flat(width)": (Distribution.UNIFORM, lambda width: (0.0, width, 1.0)),
    "unif(value, tolerance)": (Distribution.UNIFORM, _relative),
    "aunif(value, width)": (Distribution.UNIFORM, _absolute),
    "gauss(deviation)": (Distribution.NORMAL, lambda deviation: (0.0, deviation, SIGMAS)),
    "gauss(value, tolerance, sigmas)": (Distribution.NORMAL, lambda x, part, n: _relative(x, part * _spread(n))),
    "agauss(value, deviation, sigmas)": (Distribution.NORMAL, lambda x, amount, n: _absolute(x, amount * _spread(n))),
    "limit(value, width)": (Distribution.ENDS, _absolute),
    **dict.fromkeys(("rand()", "rand(number)", "random(number)"), (Distribution.UNIFORM, lambda *_: (0.5, 1.0, 0.5))),
}
"""Syntax → distribution; nominal value, change for a deviation of 1, and largest deviation."""

DISTRIBUTIONS = {
    (form.partition("(")[0], len(form.split("(")[1].strip(")").split())): law for form, law in _LAWS.items()
}
"""Distributions by name and number of arguments."""
FORMS = {name: " or ".join(form for form in _LAWS if form.startswith(f"{name}(")) for name, _ in DISTRIBUTIONS}
"""Syntax of each function."""

SHARED: dict[str, Callable[[float], float]] = {"rand": math.floor, "random": float}
"""Functions of LTspice whose argument determines the number from 0 to 1; maps the argument to its key."""


class Draws:
    """The random variables of one elaboration."""

    def __init__(self) -> None:
        self.variables: list[Variable] = []
        self.effects: dict[int, dict[int, float]] = {}
        self.refused: dict[str, None] = {}
        self.waiting: list[Linear] = []
        """Random results of expressions not yet used by an element's value."""
        self.lots: dict[int, int] = {}
        self.shared: dict[tuple[str, float], int] = {}
        """Function of LTspice and its key → its variable."""
        self.cards: dict[tuple[str, int], Token] = {}
        """Function and line → its location, for the note."""

    def draw(self, name: str, arguments: tuple[float, ...], at: Token) -> float:
        """The nominal value of a random function, with its deviation.

        Raises
        ------
        ValueError
            Wrong number of arguments.
        """
        law = DISTRIBUTIONS.get((name, len(arguments)))
        if law is None:
            raise ValueError(f"write {FORMS[name]}")
        nominal, slope, amount = law[1](*map(float, arguments))
        line, _ = at.card.where(at.offset)
        self.cards.setdefault((name, line), at)
        if any(isinstance(argument, Linear) for argument in arguments):
            return Linear(nominal)
        if amount == 0.0 or slope == 0.0:
            return nominal
        number = len(self.variables)
        if name in SHARED and arguments:
            number = self.shared.setdefault((name, SHARED[name](arguments[0])), number)
        if number == len(self.variables):
            self.variables.append(Variable(f"{name}() in line {line}", abs(amount), law[0]))
        return Linear(nominal, {number: slope})

    def decided(self, condition: Linear, at: Token) -> None:
        """Record that a condition reads a random value."""
        self.refused[f"a condition in line {at.card.where(at.offset)[0]} depends on a random value"] = None

    def taken(self, position: int, name: str, value: float, before: int) -> None:
        """Record an element's value, which includes the pending results since ``before``."""
        if isinstance(value, Linear):
            del self.waiting[before:]
            if value.terms is None:
                self.refused[f"the value of {short(name)} is not a linear combination of random values"] = None
            else:
                self.effects[position] = {**self.effects.get(position, {}), **value.terms}

    def tolerance(self, position: int, name: str, change: float, amount: float, law: Distribution) -> None:
        """Record an element's own tolerance: its value changes by ``change`` per unit deviation."""
        self.lot(-1 - len(self.variables), name, position, change, amount, law)

    def lot(self, key: int, label: str, position: int, change: float, amount: float, law: Distribution) -> None:
        """Record a tolerance shared by all elements with one ``key``."""
        if key not in self.lots:
            self.lots[key] = len(self.variables)
            self.variables.append(Variable(label, amount, law))
        self.effects.setdefault(position, {})[self.lots[key]] = change

    def scaled(self, position: int, factor: float) -> None:
        """Scale the value of an element."""
        if position in self.effects:
            self.effects[position] = {k: factor * change for k, change in self.effects[position].items()}

    def elsewhere(self, name: str, value: float) -> None:
        """Record a parameter that formulas of sources may read."""
        if isinstance(value, Linear):
            self.refused[f"parameter {short(name)} may affect something other than the value of R, L, C, V or I"] = None

    def found(self) -> Deviations:
        """The result, without variables that have no effect."""
        refused = dict(self.refused)
        for value in self.waiting:
            labels = [self.variables[k].label for k in value.terms or {}]
            what = ", ".join(labels) or "a random value"
            refused[f"{what} affects something other than the value of R, L, C, V or I"] = None
        used = sorted({k for terms in self.effects.values() for k in terms})
        number = {k: n for n, k in enumerate(used)}
        effects = {p: {number[k]: change for k, change in terms.items()} for p, terms in self.effects.items()}
        return Deviations(tuple(self.variables[k] for k in used), effects, tuple(refused))
