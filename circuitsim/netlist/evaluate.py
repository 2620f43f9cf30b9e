"""Values of expressions: a stack machine with a budget, and environments of parameters that resolve on demand.

A name is looked up in the call where the expression stands, then in the calls that led there, as ngspice does; the
values that a call passes are expressions of its caller (ngspice finds some of their names in the sub-circuit, depending
on the order in which it evaluates: where that matters there is a warning). Everything is evaluated once, without
recursion over parameters, so that a chain of a hundred thousand parameters is as good as one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from circuitsim.netlist import limits
from circuitsim.netlist.deviations import FORMS, Draws, RandomValue
from circuitsim.netlist.expression import (
    CALL,
    JUMP,
    JUMP_IF_ZERO,
    LOCAL,
    NAME,
    NEGATE,
    NOT,
    PUSH,
    SIGNAL,
    TRUTH,
    Code,
    ExpressionError,
    Signal,
    unknown_function,
    unknown_name,
)
from circuitsim.netlist.functions import CONSTANTS, FUNCTIONS, OPERATORS, checked
from circuitsim.units import exact, short


class Function:
    """A ``.func``: its arguments and its body."""

    __slots__ = ("arguments", "body", "name", "offset")

    def __init__(self, name: str, arguments: tuple[str, ...], body: Code, offset: int) -> None:
        self.name, self.arguments, self.body, self.offset = name, arguments, body, offset


class Environment:
    """The parameters of one call (or of the deck itself).

    Attributes
    ----------
    parent : Environment or None
        The caller's.
    passed : dict
        The values that the call passes: name → expression or number, evaluated in the caller.
    bindings : tuple of dict
        The sub-circuit's own; earlier ones win, what is passed wins over all.
    """

    __slots__ = ("bindings", "parent", "passed", "values")

    def __init__(
        self, parent: Environment | None, passed: dict[str, Any], bindings: tuple[dict[str, Any], ...]
    ) -> None:
        self.parent, self.passed, self.bindings = parent, passed, bindings
        self.values: dict[str, float] = {}

    def binding(self, name: str) -> tuple[Any, Environment] | None:
        """The expression or number bound to ``name`` here, and the environment to evaluate it in."""
        if name in self.passed:
            return self.passed[name], self.parent or self
        for bindings in self.bindings:
            if name in bindings:
                return bindings[name], self
        return None

    def owner(self, name: str) -> Environment | None:
        """The nearest environment that defines ``name``."""
        here: Environment | None = self
        while here is not None:
            if name in here.values or here.binding(name) is not None:
                return here
            here = here.parent
        return None


class Evaluator:
    """Runs expressions; one an elaboration, whose work it bounds.

    Parameters
    ----------
    constants : mapping of str to float
        Names with a value where no parameter is called so.
    signals : callable, optional
        The value of a quantity of the solution, for expressions that read some; its ValueError says why it has none.
    draws : Draws, optional
        Takes the random functions, which are refused without it.
    """

    def __init__(
        self,
        constants: Mapping[str, float] = CONSTANTS,
        signals: Callable[[Signal], float] | None = None,
        draws: Draws | None = None,
    ) -> None:
        self.constants, self.signals, self.draws = constants, signals, draws
        self.work = 0
        self.depth = 0

    def value(self, code: Code, environment: Environment) -> float:
        """The value of ``code``.

        Raises
        ------
        ExpressionError
            Unknown names, cycles, results out of range, too much work.
        """
        before = self.work
        self.depth = 0
        self.need(code, environment)
        return self.noted(self.run(code, environment, (), before + limits.OPERATIONS))

    def noted(self, result: float) -> float:
        """A result, noted if it is random: whoever takes it says so (`Draws.taken`)."""
        if self.draws is not None and isinstance(result, RandomValue):
            self.draws.waiting.append(result)
        return result

    def need(self, code: Code, environment: Environment) -> None:
        """Evaluate every parameter that ``code`` reads, and those that they read, depth first with a stack."""
        stack = [(code, environment, name, at) for name, at in code.names.items()]
        open_: dict[tuple[int, str], None] = {}
        while stack:
            user, where, name, at = stack[-1]
            owner = where.owner(name)
            if owner is None or name in owner.values:
                if owner is None and name not in self.constants:
                    signal = next((a[0] for i, a, _ in user.program if i == CALL and a[0] in ("v", "i")), None)
                    message, hint = unknown_name(name) if signal is None else unknown_function(signal)
                    raise ExpressionError("parameter", message, at, hint, user)
                if owner is not None and owner is not where:
                    where.values[name] = owner.values[name]
                stack.pop()
                continue
            self.step(stack, owner, name, open_)

    def step(
        self,
        stack: list[tuple[Code, Environment, str, int]],
        owner: Environment,
        name: str,
        open_: dict[tuple[int, str], None],
    ) -> None:
        """Evaluate ``name`` of ``owner`` if all its names have values; otherwise push those first."""
        found = owner.binding(name)
        assert found is not None
        body, home = found
        if isinstance(body, float):
            owner.values[name] = body
            return
        waiting = [
            (body, home, other, at)
            for other, at in body.names.items()
            if other not in self.constants or home.owner(other) is not None
            if (known := home.owner(other)) is None or other not in known.values
        ]
        key = (id(owner), name)
        if waiting and key in open_:
            chain = " → ".join(short(n, 30) for _, n in list(open_)[-8:])
            raise ExpressionError(
                "parameter",
                f"parameter {short(name)!r} depends on itself ({chain} → {short(name, 30)})",
                body.start,
                "break the cycle",
                body,
            )
        if waiting:
            open_[key] = None
            stack.extend(waiting)
            return
        open_.pop(key, None)
        owner.values[name] = self.run(body, home, (), self.work + limits.OPERATIONS)

    def read(self, name: str, at: int, code: Code, environment: Environment) -> float:
        """The value of a parameter that an expression reads."""
        if name in environment.values:
            return environment.values[name]
        owner = environment.owner(name)
        if owner is not None and name in owner.values:
            return owner.values[name]
        if owner is None and name in self.constants:
            return self.constants[name]
        # Only a function's body comes here: its free names are those of the expression that calls it.
        self.deeper(code, at)
        single = Code(code.card, code.scope, at)
        single.names = {name: at}
        self.need(single, environment)
        self.depth -= 1
        return environment.values[name]

    def deeper(self, code: Code, at: int) -> None:
        self.depth += 1
        if self.depth > limits.FUNCTION_DEPTH:
            raise ExpressionError(
                "function",
                f"functions call each other more than {limits.FUNCTION_DEPTH} deep (or themselves)",
                at,
                "a function may not call itself",
                code,
            )

    def run(self, code: Code, environment: Environment, arguments: tuple[float, ...], stop: int) -> float:
        """Run the program of ``code`` with ``arguments`` for its locals."""
        stack: list[Any] = []
        push, pop = stack.append, stack.pop
        program, position, end = code.program, 0, len(code.program)
        while position < end:
            instruction, argument, at = program[position]
            position += 1
            self.work += 1
            if self.work > stop or self.work > limits.ALL_OPERATIONS:
                raise ExpressionError("limit", "the expression takes too many steps", at, "simplify it", code)
            if instruction == PUSH:
                push(argument)
            elif instruction == NAME:
                push(self.read(argument, at, code, environment))
            elif instruction == LOCAL:
                push(arguments[argument])
            elif instruction == SIGNAL:
                push(self.signal(argument, at, code))
            elif instruction == NEGATE:
                push(-pop())
            elif instruction in (NOT, TRUTH):
                push(self.truth(pop(), instruction == TRUTH))
            elif instruction == JUMP:
                position = argument
            elif instruction == JUMP_IF_ZERO:
                position = position if self.decision(pop(), at, code) else argument
            elif instruction == CALL:
                name, count = argument
                values = tuple(stack[len(stack) - count :])
                del stack[len(stack) - count :]
                push(self.call(name, values, at, code, environment, stop))
            else:
                right, left = pop(), pop()
                push(self.apply(instruction, OPERATORS[instruction], (left, right), at, code))
        result = pop()
        return result if isinstance(result, float) else float(result)

    @staticmethod
    def truth(value: float, wanted: bool) -> float:
        """1 where ``value`` is as wanted, zero or not."""
        result = float(bool(value) is wanted)
        return RandomValue(result, None) if isinstance(value, RandomValue) else result

    def decision(self, value: float, at: int, code: Code) -> bool:
        """Whether a condition holds."""
        if self.draws is not None and isinstance(value, RandomValue):
            self.draws.decided(value, code.card, at)
        return bool(value)

    def signal(self, signal: Signal, at: int, code: Code) -> float:
        """The value of a quantity of the solution."""
        try:
            if self.signals is not None:
                return self.signals(signal)
            why = "it depends on the solution"
        except ValueError as error:
            why = str(error)
        raise ExpressionError("unsupported", why, at, "see docs/netlist.md for what a source may depend on", code)

    def call(
        self, name: str, values: tuple[float, ...], at: int, code: Code, environment: Environment, stop: int
    ) -> float:
        """``name(values)``: a function of the deck, or one built in."""
        if name not in code.linked:
            code.linked[name] = code.scope.find_function(name) if code.scope is not None else None
        own: Function | None = code.linked[name]
        if own is not None:
            if len(values) != len(own.arguments):
                takes = f"{len(own.arguments)} argument" + "s" * (len(own.arguments) != 1)
                raise ExpressionError("function", f"{name}() takes {takes}, not {len(values)}", at, "", code)
            self.deeper(code, at)
            result = self.run(own.body, environment, values, stop)
            self.depth -= 1
            return result
        function, low, high = FUNCTIONS.get(name, (None, 1, 0))
        if name in FORMS and self.draws is not None and not low <= len(values) <= high:
            draws = self.draws
            return self.apply(name, lambda *x: draws.draw(name, x, code.card, at), values, at, code)
        if function is None:
            message, hint = unknown_function(name)
            raise ExpressionError("function", message, at, hint, code)
        if not low <= len(values) <= high:
            takes = f"{low} argument" + "s" * (low != 1) if low == high else f"at least {low} argument"
            raise ExpressionError("function", f"{name}() takes {takes}, not {len(values)}", at, "", code)
        return self.apply(name, function, values, at, code)

    def apply(self, name: str, function: Any, values: tuple[float, ...], at: int, code: Code) -> float:
        """One operator or function, with its domain and range checked."""
        try:
            result = function(*values)
            value = checked(name, result, values)
            if isinstance(result, RandomValue):
                return result
            return RandomValue(value, None) if any(isinstance(v, RandomValue) for v in values) else value
        except ZeroDivisionError:
            why = "division by zero"
        except OverflowError:
            why = "the result is larger than a double can hold"
        except ValueError as error:
            why = str(error)
            if why == "math domain error" or why.startswith("expected"):
                why = "outside the domain of the function"
        shown = ", ".join(exact(v) for v in values[:4])
        what = f"{exact(values[0])} {name} {exact(values[1])}" if name in OPERATORS else f"{name}({shown})"
        raise ExpressionError("number", f"{what}: {why}", at, "", code) from None
