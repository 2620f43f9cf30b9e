"""Expressions in voltages v(a,b) and currents i(name), affine or piecewise linear: constant + Σ coefficient · control.

Coefficients may be any expressions of parameters; max, min, abs, limit, table and uramp are sums of ramps
(`circuitsim.netlist.ramps`). Whatever else is done to a control (a product of two, a function, a condition) is refused
by name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from circuitsim.netlist import limits
from circuitsim.netlist.evaluate import Environment, Evaluator
from circuitsim.netlist.expression import (
    CALL,
    JUMP,
    JUMP_IF_ZERO,
    LOCAL,
    NAME,
    NEGATE,
    NOT,
    PUSH,
    TRUTH,
    Code,
    ExpressionError,
    parse,
)
from circuitsim.netlist.functions import OPERATORS
from circuitsim.netlist.ramps import Affine, Ramps, scaled, total
from circuitsim.netlist.values import leftover

MARK = "\u00aa"
"""First letter of the names that stand for controls in a parsed expression; no parameter begins with it."""

_CONTROL = re.compile(r"(?<![\w.])([vViI])\s*\(\s*([^\s(),]+)\s*(?:,\s*([^\s(),]+)\s*)?\)")


class Reference(NamedTuple):
    """A voltage between two nodes (``second`` is empty for ground) or, with ``current``, the current of an element."""

    current: bool
    first: str
    second: str
    offset: int


class Behaviour(NamedTuple):
    """A parsed expression and the controls in it, by the number in their stand-in's name."""

    code: Code
    controls: tuple[Reference, ...]


def behaviour(text: str, start: int, stop: int, card: Any, scope: Any) -> Behaviour:
    """The expression that fills ``text[start:stop]``.

    Raises
    ------
    ExpressionError
        It is no expression.
    """
    controls: list[Reference] = []

    def stand_in(found: re.Match[str]) -> str:
        current = found.group(1) in "iI"
        if current and found.group(3):
            raise ExpressionError("expression", "i(…) takes one element", found.start(), "i(V1)")
        controls.append(Reference(current, found.group(2), found.group(3) or "", found.start()))
        return f"{MARK}{len(controls) - 1}".ljust(len(found.group()))

    shown = text[:start] + _CONTROL.sub(stand_in, text[start:stop]) + text[stop:]
    controls = [c._replace(offset=c.offset + start) for c in controls]
    code, end = parse(shown, start, card, scope, (), stop)
    rest = shown[end:stop]
    if rest.strip():
        leftover(rest.strip()[:30].split()[0], end + len(rest) - len(rest.lstrip()))
    for name in [name for name in code.names if name.startswith(MARK)]:
        del code.names[name]
    return Behaviour(code, tuple(controls))


def affine_value(code: Code, environment: Environment, evaluator: Evaluator) -> tuple[Affine, list[Affine]]:
    """The value of an expression with stand-ins, and the arguments of its ramps.

    Raises
    ------
    ExpressionError
        It is not piecewise linear in its controls, or has no value.
    """
    evaluator.depth = 0
    evaluator.need(code, environment)
    ramps = Ramps()
    found = _run(code, environment, evaluator, (), ramps)
    return (found if isinstance(found, Affine) else Affine(found, {})), ramps.values


def _refuse(what: str, at: int, code: Code) -> ExpressionError:
    return ExpressionError(
        "unsupported", f"{what} of voltages or currents is not affine in them", at,
        "sums, products with numbers, max, min, abs, limit and table may be written; a nonlinear law with diodes", code,
    )  # fmt: skip


def _run(code: Code, environment: Environment, evaluator: Evaluator, arguments: Sequence[Any], ramps: Ramps) -> Any:
    """Run the program on numbers and affine values."""
    stack: list[Any] = []
    program, position = code.program, 0
    while position < len(program):
        instruction, argument, at = program[position]
        position += 1
        evaluator.work += 1
        if evaluator.work > limits.ALL_OPERATIONS:
            raise ExpressionError("limit", "the expression takes too many steps", at, "simplify it", code)
        if instruction == PUSH:
            stack.append(argument)
        elif instruction == NAME:
            stack.append(
                Affine(0.0, {int(argument[1:]): 1.0}) if argument.startswith(MARK)
                else evaluator.noted(evaluator.read(argument, at, code, environment))
            )  # fmt: skip
        elif instruction == LOCAL:
            stack.append(arguments[argument])
        elif instruction == NEGATE:
            stack.append(scaled(stack.pop(), -1.0))
        elif instruction in (NOT, TRUTH, JUMP_IF_ZERO):
            top = stack.pop()
            if isinstance(top, Affine):
                raise _refuse("a condition", at, code)
            if instruction == JUMP_IF_ZERO:
                position = position if top else argument
            else:
                stack.append(float(bool(top) is (instruction == TRUTH)))
        elif instruction == JUMP:
            position = argument
        elif instruction == CALL:
            name, count = argument
            values = tuple(stack[len(stack) - count :])
            del stack[len(stack) - count :]
            stack.append(_call(name, values, at, code, environment, evaluator, ramps))
        else:
            right, left = stack.pop(), stack.pop()
            stack.append(_binary(instruction, left, right, at, code, evaluator))
    return stack.pop()


def _call(
    name: str, values: tuple[Any, ...], at: int, code: Code, environment: Environment, evaluator: Evaluator,
    ramps: Ramps,
) -> Any:  # fmt: skip
    """A function: of the deck (which may be affine), or one built in (of numbers, or piecewise linear)."""
    if not any(isinstance(value, Affine) for value in values):
        result = evaluator.call(name, values, at, code, environment, evaluator.work + limits.OPERATIONS)
        return evaluator.noted(result)
    own = code.scope.find_function(name) if code.scope is not None else None
    if own is None:
        return _built_in(name, values, at, code, ramps)
    if len(values) != len(own.arguments):
        raise _refuse(f"{name}()", at, code)
    evaluator.deeper(code, at)
    result = _run(own.body, environment, evaluator, values, ramps)
    evaluator.depth -= 1
    return result


def _built_in(name: str, values: tuple[Any, ...], at: int, code: Code, ramps: Ramps) -> Any:
    """A piecewise-linear function of affine values."""
    function, low, high = ramps.function(name) or (None, 1, 0)
    if function is None or not low <= len(values) <= high:
        raise _refuse(f"{name}()", at, code)
    try:
        return function(*values)
    except ValueError as error:
        raise ExpressionError("unsupported", f"{name}(): {error}", at, "", code) from None


def _binary(operator: Any, left: Any, right: Any, at: int, code: Code, evaluator: Evaluator) -> Any:
    """left operator right."""
    if not isinstance(left, Affine) and not isinstance(right, Affine):
        return evaluator.apply(operator, OPERATORS[operator], (left, right), at, code)
    if operator in ("+", "-"):
        return total(left, scaled(right, -1.0 if operator == "-" else 1.0))
    if operator == "*" and isinstance(left, Affine) != isinstance(right, Affine):
        return scaled(left, right) if isinstance(left, Affine) else scaled(right, left)
    if operator == "/" and not isinstance(right, Affine):
        return scaled(left, evaluator.apply("/", OPERATORS["/"], (1.0, right), at, code))
    what = {"*": "the product", "/": "a quotient by", "**": "a power", "^": "a power"}.get(operator, f"{operator!r}")
    raise _refuse(what, at, code)
