"""Programs of expressions on numbers and on symbolic values, which stand for unknown voltages and currents.

What symbolic values are, and which operations they have, a subclass states: affine values
(`circuitsim.netlist.affine`), tapes (`circuitsim.netlist.controlled_laws`). Where a condition is symbolic both ways are
evaluated.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self

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
)
from circuitsim.netlist.functions import OPERATORS

MARK = "\u00aa"
"""First letter of the names that stand for controls in a parsed expression; no parameter begins with it."""


class SymbolicRun(ABC):
    """One program on numbers and symbolic values.

    Attributes
    ----------
    symbols : tuple of types
        Of the symbolic values.
    """

    symbols: ClassVar[tuple[type, ...]]

    def __init__(self, code: Code, environment: Environment, evaluator: Evaluator) -> None:
        self.code, self.environment, self.evaluator = code, environment, evaluator

    @abstractmethod
    def inside(self, code: Code) -> Self:
        """The same on the body of a function."""

    @abstractmethod
    def control(self, number: int) -> Any:
        """The symbolic value of a control."""

    @abstractmethod
    def need_condition(self, value: Any, at: int) -> None:
        """Refuse a symbolic value that is no condition."""

    @abstractmethod
    def either(self, condition: Any, yes: Any, no: Any, at: int) -> Any:
        """``yes`` where the symbolic condition is not zero, else ``no``."""

    @abstractmethod
    def sign(self, instruction: Any, value: Any, at: int) -> Any:
        """Negation (`NEGATE`) of a symbolic value, of a condition (`NOT`), or a condition (`TRUTH`)."""

    @abstractmethod
    def built_in(self, name: str, values: Sequence[Any], at: int) -> Any:
        """A function that is built in, of symbolic values among others."""

    @abstractmethod
    def operation(self, operator: Any, left: Any, right: Any, at: int) -> Any:
        """left operator right, one or both of them symbolic."""

    @abstractmethod
    def refuse(self, what: str, at: int) -> ExpressionError:
        """The error for what symbolic values do not have."""

    def value(self, arguments: Sequence[Any] = ()) -> Any:
        """The value of the whole program."""
        return self.run(0, len(self.code.program), arguments)

    def run(self, position: int, stop: int, arguments: Sequence[Any]) -> Any:
        """The value of the program from a position to before another."""
        stack: list[Any] = []
        program = self.code.program
        while position < stop:
            instruction, argument, at = program[position]
            position += 1
            self.evaluator.work += 1
            if self.evaluator.work > limits.ALL_OPERATIONS:
                raise ExpressionError("limit", "the expression takes too many steps", at, "simplify it", self.code)
            if instruction == JUMP:
                position = argument
            elif instruction == JUMP_IF_ZERO:
                condition = stack.pop()
                if isinstance(condition, self.symbols):
                    self.need_condition(condition, at)
                    end = program[argument - 1][1]  # the jump before its target leads to the end of the other way
                    ways = self.run(position, argument - 1, arguments), self.run(argument, end, arguments)
                    stack.append(self.either(condition, *ways, at))
                    position = end
                elif not condition:
                    position = argument
            elif instruction == CALL:
                name, count = argument
                values = tuple(stack[len(stack) - count :])
                del stack[len(stack) - count :]
                stack.append(self.call(name, values, at))
            elif instruction in (PUSH, NAME, LOCAL):
                stack.append(self.leaf(instruction, argument, at, arguments))
            elif instruction in (NEGATE, NOT, TRUTH):
                stack.append(self.signed(instruction, stack.pop(), at))
            else:
                right, left = stack.pop(), stack.pop()
                stack.append(self.binary(instruction, left, right, at))
        return stack.pop()

    def leaf(self, instruction: Any, argument: Any, at: int, arguments: Sequence[Any]) -> Any:
        """A number, a parameter, a control, an argument of a function."""
        if instruction == PUSH:
            return argument
        if instruction == LOCAL:
            return arguments[argument]
        if argument.startswith(MARK):
            return self.control(int(argument[1:]))
        return self.evaluator.noted(self.evaluator.read(argument, at, self.code, self.environment))

    def signed(self, instruction: Any, value: Any, at: int) -> Any:
        """`sign`, also of numbers."""
        if isinstance(value, self.symbols):
            return self.sign(instruction, value, at)
        return -value if instruction == NEGATE else float(bool(value) is (instruction == TRUTH))

    def call(self, name: str, values: Sequence[Any], at: int) -> Any:
        """A function of the deck, or one built in."""
        evaluator, code = self.evaluator, self.code
        if not any(isinstance(value, self.symbols) for value in values):
            stop = evaluator.work + limits.OPERATIONS
            return evaluator.noted(evaluator.call(name, tuple(values), at, code, self.environment, stop))
        own = code.scope.find_function(name) if code.scope is not None else None
        if own is None:
            return self.built_in(name, values, at)
        if len(values) != len(own.arguments):
            raise self.refuse(f"{name}()", at)
        evaluator.deeper(code, at)
        result = self.inside(own.body).value(values)
        evaluator.depth -= 1
        return result

    def binary(self, operator: Any, left: Any, right: Any, at: int) -> Any:
        """left operator right."""
        if isinstance(left, self.symbols) or isinstance(right, self.symbols):
            return self.operation(operator, left, right, at)
        return self.evaluator.apply(operator, OPERATORS[operator], (left, right), at, self.code)
