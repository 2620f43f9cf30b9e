"""Symbolic values of expressions: affine values with ramps, and tapes of operations.

An affine value is a constant + Σ coefficient · control, in voltages v(a,b) and currents i(name). Coefficients may be
any expressions of parameters; max, min, abs, limit, table and uramp are sums of ramps max(0, u) of affine values u. Any
other operation on a control (a product of two, a function) is refused with its name. A ramp is a control like a
voltage, and u may contain earlier ramps, so nested expressions need no special treatment.

A condition is a comparison u > 0 of an affine value. If its two values differ by a function d of u alone with
d(0) = 0, the choice is the second value + d(max(0, u)): a sum of ramps. Other choices are discontinuous and refused.

A formula of one voltage or current is a tape of operations (`circuitsim.models.formula_tape`).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial, reduce
from itertools import pairwise
from typing import Any, NamedTuple

from circuitsim.models import formula_operations as f
from circuitsim.models.formula_operations import Tape
from circuitsim.netlist import limits
from circuitsim.netlist.expression import Code, Domain, Environment, Evaluator, ExpressionError, Signal
from circuitsim.netlist.functions import NEGATE, NOT, REACHED, TRUTH, Linear, pairs


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


MEET = 1e-12
"""Largest relative difference of two values at the threshold that counts as rounding of the deck's numbers."""


def _clear(value: Affine) -> dict[int, float]:
    return {key: c for key, c in value.terms.items() if c}


def _cleared(value: Affine, *parts: Affine) -> Affine:
    """``value`` without coefficients that are rounding relative to those of its parts."""
    kept = {
        key: c for key, c in value.terms.items() if abs(c) > MEET * max(abs(part.terms.get(key, 0.0)) for part in parts)
    }
    return Affine(value, kept)


class PiecewiseLinear(NamedTuple):
    """The value of an expression, the arguments of its ramps, the voltages and currents by number, and the gain if the
    element's value is one (nan: none)."""

    value: Affine
    ramps: list[Affine]
    controls: list[Signal]
    gain: float = math.nan


def affine_value(
    code: Code, environment: Environment, evaluator: Evaluator, fixed: Mapping[Signal, float]
) -> PiecewiseLinear:
    """The value of an expression.

    Raises
    ------
    ExpressionError
        It is not continuous and piecewise linear in voltages and currents, or has no value.
    """
    try:
        return evaluator.value(code, environment, _PiecewiseLinear(fixed, apart=False))
    except ExpressionError as error:
        if error.kind != "unsupported" or not any(signal.second for signal in code.signals):
            raise
    return evaluator.value(code, environment, _PiecewiseLinear(fixed, apart=True))


class _PiecewiseLinear(Domain):
    """Affine values, and numbers chosen by conditions on these; with ``apart``, v(a,b) is v(a) − v(b), which a
    condition may compare with v(a).

    Attributes
    ----------
    ramps : list of Affine
        u of each ramp max(0, u).
    controls : list of Signal
        The voltages and currents.
    """

    symbols = (Affine, Steps)

    def __init__(self, fixed: Mapping[Signal, float], apart: bool) -> None:
        self.fixed, self.apart = fixed, apart
        self.controls: list[Signal] = []
        self.numbers: dict[Signal, int] = {}
        self.ramps: list[Affine] = []
        self.ramp_numbers: dict[tuple[float, frozenset[tuple[int, float]]], int] = {}
        self.table = {
            NEGATE: operator.neg,
            "+": operator.add,
            "-": operator.sub,
            "*": lambda x, y: None if isinstance(x, Affine) and isinstance(y, Affine) else x * y,
            "/": lambda x, y: None if isinstance(y, Affine) else x * self.do("/", 1.0, y),
            "abs": lambda x: self.ramp(x) * 2.0 - x,
            "max": self.largest,
            "min": lambda *values: 0.0 - self.largest(*map(operator.neg, values)),  # no negative zero
            "sgn": lambda x: self.step(x, 1.0, -1.0),
            "u": self.step,
            REACHED: partial(self.step, at=1.0),
            "table": self.polygon,
            "pwl": partial(self.polygon, extended=True),
        }

    def whole(self, value: Any) -> PiecewiseLinear:
        """The value of the expression as an affine one."""
        with _continuous():
            return PiecewiseLinear(self.affine(value), self.ramps, self.controls)

    def refused(self, what: str) -> ExpressionError:
        """The error for an expression that is not piecewise linear."""
        return ExpressionError(
            f"{what} of voltages or currents is not affine in them",
            hint="use sums, products with numbers, max, min, abs, limit, table or a continuous if(); "
            "model other nonlinearities with diodes",
            kind="unsupported",
        )

    def signal(self, signal: Signal) -> Affine:
        """A voltage or current."""
        if self.apart and signal.second:
            ends = (self.signal(Signal("v", node)) for node in (signal.first, signal.second))
            return next(ends) - next(ends)
        second = (signal.second or "").lower()
        key = Signal(signal.kind, signal.first.lower(), "" if second in ("0", "gnd") else second)
        if key not in self.numbers:
            self.numbers[key] = len(self.controls)
            self.controls.append(signal._replace(second=key.second and signal.second))
        return Affine(0.0, {self.numbers[key]: 1.0})

    # ------------------------------------------------------------------ ramps
    def ramp(self, value: Affine) -> Affine:
        """max(0, value); shared by equal values.

        Raises
        ------
        ValueError
            Too many ramps in one expression.
        """
        key = float(value), frozenset(value.terms.items())
        if key not in self.ramp_numbers:
            if len(self.ramps) == limits.RAMPS:
                raise ValueError(f"more than {limits.RAMPS:,} breakpoints in one expression")
            self.ramps.append(value)
            self.ramp_numbers[key] = -len(self.ramps)
        return Affine(0.0, {self.ramp_numbers[key]: 1.0})

    def largest(self, *values: Any) -> Any:
        """max of any number of values; that of the numbers comes first."""
        numbers = [value for value in values if not isinstance(value, Affine)]
        found = [value for value in values if isinstance(value, Affine)]
        return reduce(lambda a, b: a + self.ramp(b - a), ([max(numbers)] if numbers else []) + found)

    def polygon(self, x: Any, *points: Any, extended: bool = False) -> Any:
        """The polyline through pairs of abscissa and value; constant or linear outside: a line along the first segment
        with a change of slope at each inner point."""
        if not isinstance(x, Affine) or any(isinstance(point, Affine) for point in points):
            raise ValueError(f"the points of {'pwl' if extended else 'a table'} must be numbers")
        places, values = pairs("pwl" if extended else "table", points)
        if len(places) == 1:
            return values[0]
        along, places = x - places[0], [place - places[0] for place in places]
        if not extended and len(places) == 2 and values[0] != values[1]:  # in units of the value: both are exact
            rise = values[1] - values[0]
            share = self.do("limit", along * (abs(rise) / places[1]), 0.0, abs(rise))
            return share * math.copysign(1.0, rise) + values[0]
        if not extended:
            along = self.do("limit", along, 0.0, places[-1])
        slopes = [(b - a) / (q - p) for (p, q), (a, b) in zip(pairwise(places), pairwise(values))]
        line = along * slopes[0] + values[0]
        for place, (before, behind) in zip(places[1:-1], pairwise(slopes)):
            bend = self.ramp(along - place)
            for key, share in bend.terms.items():  # in place: a table may be long
                line.terms[key] = line.terms.get(key, 0.0) + share * (behind - before)
        return line

    # ------------------------------------------------------------------ conditions
    def step(self, test: Affine, above: float = 1.0, below: float = 0.0, at: float = 0.0) -> Steps | float:
        """One of two numbers where ``test`` is above zero or below; a third where it is always zero."""
        if any(test.terms.values()):
            return Steps(test, above, below)
        return above if test > 0.0 else below if test < 0.0 else at

    def need_condition(self, value: Any) -> None:
        """Refuse a voltage or current in place of a condition."""
        if isinstance(value, Affine):
            raise ExpressionError(
                "a voltage or current is not a condition", hint="compare it: v(a) > 0 ? … : …", kind="unsupported"
            )

    def either(self, condition: Any, yes: Any, no: Any) -> Any:
        """``yes`` where the condition is not zero, else ``no``."""
        self.need_condition(condition)
        with _continuous():
            return self.chosen(condition, lambda number: yes if number else no)

    def apply(self, name: str, values: Sequence[Any]) -> Any:
        """Apply an operator or function: to each number that conditions choose, otherwise by the table."""
        at = next((k for k, value in enumerate(values) if isinstance(value, Steps)), None)
        if at is None:
            return super().apply(name, values)
        with _continuous():
            return self.chosen(values[at], lambda one: self.do(name, *values[:at], one, *values[at + 1 :]))

    def chosen(self, steps: Any, value: Callable[[float], Any]) -> Any:
        """``value(number)`` for the number that holds.

        Raises
        ------
        ValueError
            It is discontinuous, or there are too many conditions.
        """
        if not isinstance(steps, Steps):
            return value(steps)
        yes, no = self.chosen(steps.yes, value), self.chosen(steps.no, value)
        if isinstance(yes, Affine) or isinstance(no, Affine):
            return self.joined(steps.test, self.affine(yes), self.affine(no))
        if yes == no:
            return yes
        size = 1 + sum(one.size for one in (yes, no) if isinstance(one, Steps))
        if size > limits.CONDITIONS:
            raise ValueError(f"more than {limits.CONDITIONS} conditions in one expression")
        return Steps(steps.test, yes, no, size)

    def affine(self, value: Any) -> Affine:
        """A value as an affine one; steps have none, since they jump."""
        if isinstance(value, Steps):
            return self.joined(value.test, self.affine(value.yes), self.affine(value.no))
        return value if isinstance(value, Affine) else Affine(value, {})

    def joined(self, test: Affine, yes: Affine, no: Affine) -> Affine:
        """``yes`` where ``test`` > 0, else ``no``."""
        if not _clear(yes):  # a constant is exact where it applies
            test, yes, no = test * -1.0, no, yes
        difference = _cleared(yes - no, yes, no)
        jump = self.along(difference, test, 0.0)
        slope = max(map(abs, difference.terms.values()), default=0.0) / max(map(abs, test.terms.values()))
        size = sum(map(abs, map(float, (yes, no)))) + slope * abs(float(test))
        if not isinstance(jump, float) or abs(jump) > MEET * size:
            raise ValueError(self.place(test, yes, no))
        change = self.along(difference, test, self.ramp(test)) if difference.terms else 0.0
        return no + change - (jump if difference.terms else 0.0)

    def along(self, value: Affine, test: Affine, instead: Affine | float, before: int | None = None) -> Any:
        """``value`` with ``instead`` in place of ``test``; None where it is not a function of ``test`` alone.

        Arguments of ramps may read the ramps ``before`` them.
        """
        pivot = max(test.terms, key=lambda key: abs(test.terms[key]))
        share = value.terms.get(pivot, 0.0) / test.terms[pivot]
        rest = _cleared(value + test * -share, value, test * share)
        found: Any = instead * share + float(rest)
        for key, coefficient in rest.terms.items():
            ramp = -1 - key
            if ramp < 0 or (before is not None and ramp >= before):
                return None
            inside = self.along(self.ramps[ramp], test, instead, ramp)
            if inside is None:
                return None
            found += (self.ramp(inside) if isinstance(inside, Affine) else max(inside, 0.0)) * coefficient
        return found

    def place(self, test: Affine, yes: Affine, no: Affine) -> str:
        """Description of a discontinuity: its place and both values."""
        terms = sorted(_clear(test).items())
        if any(key < 0 for key, _ in terms):
            where = "where its condition changes"
        elif len(terms) == 1:
            where = f"at {self.controls[terms[0][0]].text} = {0.0 - float(test) / terms[0][1]:.6g}"
        else:
            both = " + ".join(f"{c:.6g}*{self.controls[key].text}" for key, c in terms)
            where = f"where {both.replace('+ -', '- ')} = {0.0 - float(test):.6g}"
        ends = sorted((self.along(one, test, 0.0) for one in (yes, no)), key=lambda end: (end is None, end))
        if None in ends:
            return f"the value jumps {where}"
        return f"the value jumps by {ends[1] - ends[0]:.6g} {where} (between {ends[0]:.6g} and {ends[1]:.6g})"


@contextmanager
def _continuous() -> Iterator[None]:
    """Errors of choices."""
    try:
        yield
    except ValueError as error:
        raise ExpressionError(str(error), hint=_CONTINUOUS, kind="unsupported") from None


_CONTINUOUS = "both values must meet at the threshold, as in if(v(a) > 1, v(a) - 1, 0)"


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


def _polygon(x: Entry, *points: Entry) -> OfTape | None:
    """``table``: y₁ + Σ slope · (x clamped between two abscissas − the first of them)."""
    if any(isinstance(one, OfTape) for one in points):
        return None
    places, values = pairs("table", points)
    total: Any = joined(f.ADD, values[0], joined(f.MULTIPLY, 0.0, x)) if len({*values}) == 1 else values[0]
    for (a, b), (y, z) in zip(pairwise(places), pairwise(values)):
        if y != z:
            piece = joined(f.SUBTRACT, joined(f.MINIMUM, joined(f.MAXIMUM, x, a), b), a)
            total = joined(f.ADD, total, joined(f.MULTIPLY, (z - y) / (b - a), piece))
    made: OfTape = total
    return made


def _operation(op: int) -> Callable[..., OfTape]:
    """One operation; one of two numbers on any number of them."""

    def made(*values: Entry) -> Any:
        return reduce(partial(joined, op), values) if op in f.BINARY else joined(op, *values)

    return made


def _above(x: Entry, y: Entry) -> OfTape:
    """x > y; a condition itself if it is compared with 0.5, as tapes are written."""
    return x if y == 0.5 and isinstance(x, OfTape) and x.condition else joined(f.STEP, _difference(x, y))


def _difference(x: Entry, y: Entry) -> OfTape:
    return x if isinstance(x, OfTape) and y == 0.0 else joined(f.SUBTRACT, x, y)


_TAPES: dict[str, Callable[..., OfTape | None]] = {
    **{name: _operation(op) for op, name in f.NAMES.items()},
    "-": _difference,
    ">": _above,
    NOT: lambda x: joined(f.SUBTRACT, 1.0, x, condition=True),
    TRUTH: lambda x: x,
    "**": _powered(f.ROOTED),
    "pow": _powered(f.SIGNED_POWER),
    "pwr": _with_number(f.POWER),
    "pwrs": _with_number(f.SIGNED_POWER),
    "sqr": lambda x: joined(f.POWER, x, number=2.0),
    "cbrt": lambda x: joined(f.SIGNED_POWER, x, number=1.0 / 3.0),
    "log10": lambda x: joined(f.MULTIPLY, 0.4342944819032518, joined(f.LOG, x)),
    "tan": lambda x: joined(f.DIVIDE, joined(f.SIN, x), joined(f.COS, x)),
    "hypot": lambda *x: joined(f.SQRT, joined(f.ADD, *(joined(f.POWER, one, number=2.0) for one in x))),
    "table": _polygon,
}
"""Operators and functions as operations; callables return None for arguments they do not support."""


class TapeDomain(Domain):
    """Tapes of a voltage; ``signs`` gives the sign of each control."""

    symbols, table = (OfTape,), _TAPES

    def __init__(self, signs: dict[Signal, float], fixed: Mapping[Signal, float]) -> None:
        self.signs, self.fixed = signs, fixed

    def whole(self, value: Entry) -> Tape:
        """The tape."""
        return tape_of(value)

    def signal(self, signal: Signal) -> OfTape:
        """The voltage or its negative."""
        own = OfTape(((f.VOLTAGE, 0.0),))
        return own if self.signs[signal] > 0.0 else joined(f.NEGATE, own)

    def need_condition(self, value: Any) -> None:
        """Refuse a number of the voltage in place of a condition."""
        if not value.condition:
            raise self.refused("a number as condition")

    def refused(self, what: str) -> ExpressionError:
        """The error for an operation that tapes do not have."""
        return ExpressionError(
            f"{what} is not supported in a formula of the source's own voltage",
            hint="docs/elements.md lists the supported operations",
            kind="unsupported",
        )

    def either(self, condition: Any, yes: Entry, no: Entry) -> OfTape:
        """``yes`` where the condition holds, else ``no``."""
        self.need_condition(condition)
        if (yes, no) == (1.0, 0.0):
            return condition
        holds = all(way.condition if isinstance(way, OfTape) else way in (0.0, 1.0) for way in (yes, no))
        return _bounded(joined(f.CHOOSE, condition, yes, no, condition=holds))

    def apply(self, name: str, values: Sequence[Any]) -> OfTape:
        """An operator or function that has operations."""
        return _bounded(super().apply(name, values))


def _bounded(formula: OfTape) -> OfTape:
    """The formula itself, unless it is too long."""
    if len(formula.tape) > f.LONGEST:
        raise ExpressionError(f"the formula has more than {f.LONGEST} operations", hint="simplify it", kind="limit")
    return formula
