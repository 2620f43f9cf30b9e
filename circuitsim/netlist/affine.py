"""Expressions in voltages v(a,b) and currents i(name), affine or piecewise linear: constant + Σ coefficient · control.

Coefficients may be any expressions of parameters; max, min, abs, limit, table and uramp are sums of ramps
(`circuitsim.netlist.ramps`), and so is what a condition chooses where it is continuous (`circuitsim.netlist.choices`).
Whatever else is done to a control (a product of two, a function) is refused by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from circuitsim.netlist.choices import Choices, Steps
from circuitsim.netlist.evaluate import Environment, Evaluator
from circuitsim.netlist.expression import NAME, NEGATE, SIGNAL, Code, ExpressionError
from circuitsim.netlist.functions import OPERATORS
from circuitsim.netlist.ramps import Affine, Ramps, scaled, total
from circuitsim.netlist.symbolic_run import MARK, SymbolicRun


class Reference(NamedTuple):
    """A voltage between two nodes (``second`` is empty for ground) or, with ``current``, the current of an element."""

    current: bool
    first: str
    second: str
    offset: int

    @property
    def text(self) -> str:
        """As in a deck."""
        return f"{'i' if self.current else 'v'}({self.first}{',' * bool(self.second)}{self.second})"


def numbered(controls: list[Reference], made: Reference) -> int:
    """The place of a control among the others, the same for the same one; a new one is added."""
    words = made.current, made.first.lower(), made.second.lower()
    for k, (current, first, second, _) in enumerate(controls):
        if (current, first.lower(), second.lower()) == words:
            return k
    controls.append(made)
    return len(controls) - 1


class Behaviour(NamedTuple):
    """A parsed expression and the controls in it, by the number in their stand-in's name."""

    code: Code
    controls: tuple[Reference, ...]


def behaviour(code: Code) -> Behaviour:
    """The law of a formula: stand-ins for the voltages and currents that it reads."""
    controls: list[Reference] = []
    law = Code(code.card, code.scope, code.start)
    law.names = dict(code.names)
    for instruction, argument, at in code.program:
        if instruction == SIGNAL and argument.kind in ("v", "i"):
            second = argument.second or ""
            made = Reference(argument.kind == "i", argument.first, "" if second.lower() in ("0", "gnd") else second, at)
            law.program.append((NAME, f"{MARK}{numbered(controls, made)}", at))
        elif instruction == SIGNAL:
            law.names.setdefault(argument.kind, at)
            law.program.append((NAME, argument.kind, at))
        else:
            law.program.append((instruction, argument, at))
    return Behaviour(law, tuple(controls))


class PiecewiseLinear(NamedTuple):
    """The value of an expression, the arguments of its ramps, and what the numbers of their controls mean."""

    value: Affine
    ramps: list[Affine]
    controls: tuple[Reference, ...]


def affine_value(parsed: Behaviour, environment: Environment, evaluator: Evaluator) -> PiecewiseLinear:
    """The value of an expression.

    Raises
    ------
    ExpressionError
        It is not piecewise linear in its controls and continuous, or has no value.
    """
    try:
        return _value(parsed, environment, evaluator, apart=False)
    except ExpressionError as error:
        if error.kind != "unsupported" or not any(control.second for control in parsed.controls):
            raise
    return _value(parsed, environment, evaluator, apart=True)


def _value(parsed: Behaviour, environment: Environment, evaluator: Evaluator, apart: bool) -> PiecewiseLinear:
    """`affine_value`; with ``apart`` v(a,b) is v(a) − v(b), which a condition may compare with v(a)."""
    evaluator.depth = 0
    evaluator.need(parsed.code, environment)
    run = _Run(parsed.code, environment, evaluator, Choices(Ramps(), list(parsed.controls)), apart)
    found = run.value()
    with run.at(parsed.code.start):
        value = run.choices.affine(found)
    return PiecewiseLinear(value, run.choices.ramps.values, tuple(run.choices.controls))


class _Run(SymbolicRun):
    """A program on numbers, affine values, and numbers that conditions on these choose."""

    symbols = (Affine, Steps)

    def __init__(
        self, code: Code, environment: Environment, evaluator: Evaluator, choices: Choices, apart: bool
    ) -> None:
        super().__init__(code, environment, evaluator)
        self.choices, self.apart = choices, apart

    def inside(self, code: Code) -> _Run:
        """The same on the body of a function."""
        return _Run(code, self.environment, self.evaluator, self.choices, self.apart)

    @contextmanager
    def at(self, at: int, name: str = "") -> Iterator[None]:
        """Errors of ramps and choices at this place."""
        try:
            yield
        except ValueError as error:
            message, hint = f"{name}(): {error}" if name else str(error), "" if name else _CONTINUOUS
            raise ExpressionError("unsupported", message, at, hint, self.code) from None

    def refuse(self, what: str, at: int) -> ExpressionError:
        """The error for what is not piecewise linear."""
        return ExpressionError(
            "unsupported",
            f"{what} of voltages or currents is not affine in them",
            at,
            "sums, products with numbers, max, min, abs, limit, table and continuous if() may be written; "
            "a nonlinear law with diodes",
            self.code,
        )

    def control(self, number: int) -> Affine:
        """A voltage or current."""
        controls = self.choices.controls
        if not self.apart or not controls[number].second:
            return Affine(0.0, {number: 1.0})
        _, first, second, offset = controls[number]
        ends = (numbered(controls, Reference(False, node, "", offset)) for node in (first, second))
        return Affine(0.0, dict(zip(ends, (1.0, -1.0))))

    def need_condition(self, value: Any, at: int) -> None:
        """Refuse a voltage or current in place of a condition."""
        if isinstance(value, Affine):
            raise ExpressionError(
                "unsupported", "a voltage or current is no condition", at, "compare it: v(a) > 0 ? … : …", self.code
            )

    def either(self, condition: Any, yes: Any, no: Any, at: int) -> Any:
        """``yes`` where the condition is not zero, else ``no``."""
        with self.at(at):
            return self.choices.chosen(condition, lambda number: yes if number else no)

    def sign(self, instruction: Any, value: Any, at: int) -> Any:
        """Negation of an affine value or of a condition."""
        if instruction == NEGATE and isinstance(value, Affine):
            return scaled(value, -1.0)
        self.need_condition(value, at)
        return self.choices.chosen(value, lambda number: self.signed(instruction, number, at))

    def built_in(self, name: str, values: Sequence[Any], at: int) -> Any:
        """A choice, a step, or a piecewise-linear function."""
        if name in ("if", "ternary_fcn") and len(values) == 3:
            self.need_condition(values[0], at)
            return self.either(values[0], values[1], values[2], at)
        if name in _STEPS and len(values) == 1 and isinstance(values[0], Affine):
            return Steps(values[0], *_STEPS[name], 1)
        function, low, high = self.choices.ramps.function(name) or (None, 1, 0)
        if function is None or not low <= len(values) <= high:
            raise self.refuse(f"{name}()", at)
        with self.at(at):
            plain = [self.choices.affine(value) if isinstance(value, Steps) else value for value in values]
        with self.at(at, name):
            return function(*plain)

    def operation(self, operator: Any, left: Any, right: Any, at: int) -> Any:
        """left operator right."""
        with self.at(at):
            if isinstance(left, Steps):
                return self.choices.chosen(left, lambda number: self.binary(operator, number, right, at))
            if isinstance(right, Steps):
                return self.choices.chosen(right, lambda number: self.binary(operator, left, number, at))
        if operator in ("+", "-"):
            return total(left, scaled(right, -1.0 if operator == "-" else 1.0))
        if operator == "*" and isinstance(left, Affine) != isinstance(right, Affine):
            return scaled(left, right) if isinstance(left, Affine) else scaled(right, left)
        if operator == "/" and not isinstance(right, Affine):
            return scaled(left, self.binary("/", 1.0, right, at))
        if operator in ("<", "<=", ">", ">="):
            below, above = (left, right) if operator in ("<", "<=") else (right, left)
            difference = total(above, scaled(below, -1.0))
            if any(difference.coefficients.values()):
                return Steps(difference, 1.0, 0.0, 1)
            return float(OPERATORS[operator](total(left, scaled(right, -1.0)).constant, 0.0))
        raise self.refuse(_WORDS.get(operator, f"{operator!r}"), at)


_CONTINUOUS = "both values must meet at the threshold, as in if(v(a) > 1, v(a) - 1, 0)"

_WORDS = {"*": "the product", "/": "a quotient by", "**": "a power", "^": "a power"}

_STEPS = {
    "u": (1.0, 0.0),
    "stp": (1.0, 0.0),
    "buf": (1.0, 0.0),
    "inv": (0.0, 1.0),
    "sgn": (1.0, -1.0),
    "sign": (1.0, -1.0),
}
"""Functions of the sign of an affine value: their values above and below zero."""
