"""Expressions in voltages v(a,b) and currents i(name), affine or piecewise linear: constant + Σ coefficient · control.

Coefficients may be any expressions of parameters; max, min, abs, limit, table and uramp are sums of ramps max(0, u) of
affine values u. Whatever else is done to a control (a product of two, a function) is refused by name.

A ramp is a control like a voltage: u may hold earlier ramps, so functions of functions need nothing more. In the
circuit it is a source of the voltage u behind an ideal diode, with a resistor to ground: the exact methods apply.

A condition is a comparison u > 0 of an affine value. Between two values that differ by a function d of u alone with
d(0) = 0 the choice is the second value + d(max(0, u)): a sum of ramps. Any other choice jumps, and is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from circuitsim.netlist import limits
from circuitsim.netlist.evaluate import Domain, Environment, Evaluator
from circuitsim.netlist.expression import NEGATE, NOT, TRUTH, Code, ExpressionError, Signal
from circuitsim.netlist.functions import FUNCTIONS, OPERATORS, STEPS, Affine, Ramps, scaled, total

MEET = 1e-12
"""Share of its terms by which two values may differ at the threshold: rounding of the numbers in a deck."""


class Steps(NamedTuple):
    """Numbers that conditions choose: ``yes`` where ``test`` > 0, else ``no``; each a number or further steps."""

    test: Affine
    yes: Steps | float
    no: Steps | float
    size: int


class Choices:
    """The choices of one expression.

    Parameters
    ----------
    ramps : Ramps
        Of the expression; choices add to them.
    controls : list of Signal
        Voltages and currents by number.
    """

    def __init__(self, ramps: Ramps, controls: list[Signal]) -> None:
        self.ramps, self.controls = ramps, controls

    def chosen(self, steps: Any, value: Callable[[float], Any]) -> Any:
        """``value(number)`` for the number that holds.

        Raises
        ------
        ValueError
            It jumps, or there are too many conditions.
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
        """A value as an affine one; steps jump, so that they are none."""
        if isinstance(value, Steps):
            return self.joined(value.test, self.affine(value.yes), self.affine(value.no))
        return value if isinstance(value, Affine) else Affine(value, {})

    def joined(self, test: Affine, yes: Affine, no: Affine) -> Affine:
        """``yes`` where ``test`` > 0, else ``no``."""
        if not _clear(yes):  # the constant one is exact where it holds
            test, yes, no = scaled(test, -1.0), no, yes
        difference = _cleared(total(yes, scaled(no, -1.0)), yes, no)
        jump = self.along(difference, test, 0.0)
        slope = max(map(abs, difference.coefficients.values()), default=0.0) / max(map(abs, test.coefficients.values()))
        size = abs(yes.constant) + abs(no.constant) + slope * abs(test.constant)
        if not isinstance(jump, float) or abs(jump) > MEET * size:
            raise ValueError(self.place(test, yes, no))
        change = self.along(difference, test, self.ramps.ramp(test)) if difference.coefficients else 0.0
        return total(total(no, change), -jump if difference.coefficients else 0.0)

    def along(self, value: Affine, test: Affine, instead: Affine | float, before: int | None = None) -> Any:
        """``value`` with ``instead`` in place of ``test``; None where it is no function of ``test`` alone.

        Arguments of ramps may read the ramps ``before`` them.
        """
        pivot = max(test.coefficients, key=lambda key: abs(test.coefficients[key]))
        share = value.coefficients.get(pivot, 0.0) / test.coefficients[pivot]
        rest = _cleared(total(value, scaled(test, -share)), value, scaled(test, share))
        found: Any = (
            total(rest.constant, scaled(instead, share))
            if isinstance(instead, Affine)
            else (rest.constant + share * instead)
        )
        for key, coefficient in rest.coefficients.items():
            ramp = -1 - key
            if ramp < 0 or (before is not None and ramp >= before):
                return None
            inside = self.along(self.ramps.values[ramp], test, instead, ramp)
            if inside is None:
                return None
            if isinstance(inside, Affine):
                found = total(found, scaled(self.ramps.ramp(inside), coefficient))
            else:
                found += coefficient * max(inside, 0.0)
        return found

    def place(self, test: Affine, yes: Affine, no: Affine) -> str:
        """Where a choice jumps, and from what to what."""
        terms = sorted(_clear(test).items())
        if any(key < 0 for key, _ in terms):
            where = "where its condition changes"
        elif len(terms) == 1:
            where = f"at {self.controls[terms[0][0]].text} = {0.0 - test.constant / terms[0][1]:.6g}"
        else:
            both = " + ".join(f"{c:.6g}*{self.controls[key].text}" for key, c in terms)
            where = f"where {both.replace('+ -', '- ')} = {0.0 - test.constant:.6g}"
        ends = sorted((self.along(one, test, 0.0) for one in (yes, no)), key=lambda end: (end is None, end))
        if None in ends:
            return f"the value jumps {where}"
        return f"the value jumps by {ends[1] - ends[0]:.6g} {where} (between {ends[0]:.6g} and {ends[1]:.6g})"


def _clear(value: Affine) -> dict[int, float]:
    return {key: c for key, c in value.coefficients.items() if c}


def _cleared(value: Affine, *parts: Affine) -> Affine:
    """Without the coefficients that only rounding left of those of its parts."""
    kept = {
        key: c
        for key, c in value.coefficients.items()
        if abs(c) > MEET * max(abs(part.coefficients.get(key, 0.0)) for part in parts)
    }
    return Affine(value.constant, kept)


class PiecewiseLinear(NamedTuple):
    """The value of an expression, the arguments of its ramps, and the voltages and currents by number."""

    value: Affine
    ramps: list[Affine]
    controls: list[Signal]


def affine_value(code: Code, environment: Environment, evaluator: Evaluator) -> PiecewiseLinear:
    """The value of an expression.

    Raises
    ------
    ExpressionError
        It is not piecewise linear in voltages and currents and continuous, or has no value.
    """
    try:
        return _value(code, environment, evaluator, apart=False)
    except ExpressionError as error:
        if error.kind != "unsupported" or not any(signal.second for signal in code.signals):
            raise
    return _value(code, environment, evaluator, apart=True)


def _value(code: Code, environment: Environment, evaluator: Evaluator, apart: bool) -> PiecewiseLinear:
    """`affine_value`; with ``apart`` v(a,b) is v(a) − v(b), which a condition may compare with v(a)."""
    domain = _PiecewiseLinear(evaluator, apart)
    value = evaluator.symbolic(code, environment, domain)
    return PiecewiseLinear(value, domain.choices.ramps.values, domain.choices.controls)


class _PiecewiseLinear(Domain):
    """Affine values, and numbers that conditions on these choose."""

    symbols = (Affine, Steps)

    def __init__(self, evaluator: Evaluator, apart: bool) -> None:
        self.evaluator, self.apart = evaluator, apart
        self.choices = Choices(Ramps(), [])
        self.numbers: dict[Signal, int] = {}

    def whole(self, value: Any) -> Affine:
        """The value of the expression as an affine one."""
        with _continuous():
            return self.choices.affine(value)

    def refused(self, what: str) -> ExpressionError:
        """The error for what is not piecewise linear."""
        return ExpressionError(
            "unsupported",
            f"{what} of voltages or currents is not affine in them",
            hint="sums, products with numbers, max, min, abs, limit, table and continuous if() may be written; "
            "a nonlinear law with diodes",
        )

    def signal(self, signal: Signal) -> Affine:
        """A voltage or current."""
        if self.apart and signal.second:
            ends = (self.signal(Signal("v", node)) for node in (signal.first, signal.second))
            return total(next(ends), scaled(next(ends), -1.0))
        second = (signal.second or "").lower()
        key = Signal(signal.kind, signal.first.lower(), "" if second in ("0", "gnd") else second)
        if key not in self.numbers:
            self.numbers[key] = len(self.choices.controls)
            self.choices.controls.append(signal._replace(second=key.second and signal.second))
        return Affine(0.0, {self.numbers[key]: 1.0})

    def need_condition(self, value: Any) -> None:
        """Refuse a voltage or current in place of a condition."""
        if isinstance(value, Affine):
            hint = "compare it: v(a) > 0 ? … : …"
            raise ExpressionError("unsupported", "a voltage or current is no condition", hint=hint)

    def either(self, condition: Any, yes: Any, no: Any) -> Any:
        """``yes`` where the condition is not zero, else ``no``."""
        with _continuous():
            return self.choices.chosen(condition, lambda number: yes if number else no)

    def apply(self, name: Any, values: Sequence[Any]) -> Any:
        """An operator, a sign, a choice, a step, or a piecewise-linear function."""
        first, *rest = values
        if name in OPERATORS:
            return self.operation(name, first, *rest)
        if name == NEGATE and isinstance(first, Affine):
            return scaled(first, -1.0)
        if name in (NEGATE, NOT, TRUTH):
            self.need_condition(first)
            return self.choices.chosen(first, lambda number: self.evaluator.sign(name, number))
        if name in ("if", "ternary_fcn") and len(rest) == 2:
            self.need_condition(first)
            return self.either(first, *rest)
        row = FUNCTIONS.get(name)
        if row is not None and name in STEPS and not rest and isinstance(first, Affine):
            return Steps(first, float(row.value(1.0)), float(row.value(-1.0)), 1)
        if row is None or row.ramps is None or not row.takes(values):
            raise self.refused(f"{name}()")
        with _continuous():
            plain = [self.choices.affine(value) if isinstance(value, Steps) else value for value in values]
        try:
            return row.ramps(self.choices.ramps, *plain)
        except ValueError as error:
            raise ExpressionError("unsupported", f"{name}(): {error}") from None

    def operation(self, operator: str, left: Any, right: Any) -> Any:
        """left operator right."""
        if not isinstance(left, self.symbols) and not isinstance(right, self.symbols):
            return self.evaluator.apply(operator, (left, right))
        with _continuous():
            if isinstance(left, Steps):
                return self.choices.chosen(left, lambda number: self.operation(operator, number, right))
            if isinstance(right, Steps):
                return self.choices.chosen(right, lambda number: self.operation(operator, left, number))
        if operator in ("+", "-"):
            return total(left, scaled(right, -1.0 if operator == "-" else 1.0))
        if operator == "*" and isinstance(left, Affine) != isinstance(right, Affine):
            return scaled(left, right) if isinstance(left, Affine) else scaled(right, left)
        if operator == "/" and not isinstance(right, Affine):
            return scaled(left, self.operation("/", 1.0, right))
        if operator in ("<", "<=", ">", ">="):
            below, above = (left, right) if operator in ("<", "<=") else (right, left)
            difference = total(above, scaled(below, -1.0))
            if any(difference.coefficients.values()):
                return Steps(difference, 1.0, 0.0, 1)
            return float(FUNCTIONS[operator].value(total(left, scaled(right, -1.0)).constant, 0.0))
        raise self.refused(_WORDS.get(operator, f"{operator!r}"))


@contextmanager
def _continuous() -> Iterator[None]:
    """Errors of choices."""
    try:
        yield
    except ValueError as error:
        raise ExpressionError("unsupported", str(error), hint=_CONTINUOUS) from None


_CONTINUOUS = "both values must meet at the threshold, as in if(v(a) > 1, v(a) - 1, 0)"

_WORDS = {"*": "the product", "/": "a quotient by", "**": "a power"}
