"""Values of expressions: a stack machine with a budget, and environments of parameters that resolve on demand.

A name is looked up in the call of the expression, then in its callers, as ngspice does; values passed by a call are
expressions of its caller (ngspice resolves some of their names in the sub-circuit, depending on its order of
evaluation; a warning says where that matters). Everything is evaluated once, without recursion over parameters, so that
chains of a hundred thousand parameters work.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

from circuitsim.netlist import limits
from circuitsim.netlist.deviations import FORMS, Draws
from circuitsim.netlist.expression import (
    CALL,
    CHOOSE,
    LOCAL,
    NAME,
    PUSH,
    SIGNAL,
    UNKNOWN,
    Code,
    ExpressionError,
    Program,
    Signal,
    unknown_function,
    unknown_name,
)
from circuitsim.netlist.functions import CONSTANTS, FUNCTIONS, OPERATORS, Linear, Row, checked, moves
from circuitsim.units import exact, short


class Function(NamedTuple):
    """A ``.func``: its number of arguments and its body."""

    least: int
    body: Code
    most: int = 0

    def takes(self, values: Sequence[Any]) -> bool:
        """Whether this is its number of arguments."""
        return len(values) == self.least


class Environment:
    """The parameters of one call (or of the deck itself).

    Attributes
    ----------
    parent : Environment or None
        The caller's.
    passed : dict
        The values passed by the call: name → expression or number, evaluated in the caller.
    bindings : tuple of dict
        The sub-circuit's own; earlier ones take precedence, passed values over all.
    """

    __slots__ = ("bindings", "parent", "passed", "values")

    def __init__(
        self, *bindings: dict[str, Any], parent: Environment | None = None, passed: dict[str, Any] | None = None
    ) -> None:
        self.parent, self.passed, self.bindings = parent, passed or {}, bindings
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


class Domain(ABC):
    """Symbolic values of unknown voltages and currents in expressions.

    Errors raised by the methods get their location from `Evaluator.run`.

    Attributes
    ----------
    symbols : tuple of types
        Types of these values.
    kinds : tuple of str
        Kinds of signals with such values; others are read as parameters.
    fixed : mapping of Signal to float
        Signals with known values.
    """

    symbols: ClassVar[tuple[type, ...]]
    kinds: ClassVar[tuple[str, ...]] = UNKNOWN
    fixed: Mapping[Signal, float] = MappingProxyType({})

    @abstractmethod
    def signal(self, signal: Signal) -> Any:
        """The value of a voltage or current."""

    def either(self, condition: Any, yes: Any, no: Any) -> Any:
        """``yes`` where the condition is not zero, else ``no``."""
        raise self.refused("a choice")

    @abstractmethod
    def apply(self, name: str, values: Sequence[Any]) -> Any:
        """Apply an operator, a sign or a function to numbers and such values."""

    @abstractmethod
    def refused(self, what: str) -> ExpressionError:
        """The error for an unsupported operation."""

    @abstractmethod
    def whole(self, value: Any) -> Any:
        """The form in which the value of a whole expression is returned."""


class Evaluator:
    """Evaluates expressions, with one budget of work per elaboration.

    Parameters
    ----------
    constants : mapping of str to float
        Values of names that no parameter has.
    signals : callable, optional
        The value of a quantity of the solution, for expressions that read some; its ValueError explains why there is
        none.
    draws : Draws, optional
        Handles the random functions, which are refused without it.
    taken : list, optional
        Receives the decisions of conditions and of functions with corners or jumps.
    lines : bool
        Whether signals are affine (`functions.Linear`), as are results until a decision changes.
    """

    def __init__(
        self,
        constants: Mapping[str, float] = CONSTANTS,
        signals: Callable[[Signal], float] | None = None,
        draws: Draws | None = None,
        taken: list[Any] | None = None,
        lines: bool = False,
    ) -> None:
        self.constants, self.signals, self.draws, self.taken, self.lines = constants, signals, draws, taken, lines
        self.work = 0
        self.depth = 0

    def value(self, code: Code | float, environment: Environment) -> float:
        """The value of ``code``, or of a number.

        Raises
        ------
        ExpressionError
            Unknown names, cycles, results out of range, too much work.
        """
        if isinstance(code, float):
            return code
        before = self.work
        self.depth = 0
        self.need(code, environment)
        return self.noted(self.run(code, environment, (), before + limits.OPERATIONS))

    def noted(self, result: float) -> float:
        """A result; a random one is recorded until an element takes it (`Draws.taken`)."""
        if self.draws is not None and isinstance(result, Linear):
            self.draws.waiting.append(result)
        return result

    def need(self, code: Code, environment: Environment) -> None:
        """Evaluate every parameter that ``code`` reads, and those that they read, depth first with a stack."""
        open_: dict[tuple[int, str], None] = {}
        stack: list[Any] = [(code, environment, None, reversed(code.names.items()))]
        while stack:
            user, where, target, left = stack[-1]
            for name, at in left:
                owner = where.owner(name)
                if owner is None and name not in self.constants:
                    signal = next((a[0] for i, a, _ in user.instructions() if i == CALL and a[0] in ("v", "i")), None)
                    message, hint = unknown_name(name) if signal is None else unknown_function(signal)
                    raise ExpressionError("parameter", message, user.card.at(at), hint)
                if owner is None or name in owner.values:
                    continue
                body, home = owner.binding(name)
                if isinstance(body, float):
                    owner.values[name] = body
                    continue
                if (id(owner), name) in open_:
                    chain = " → ".join(short(n, 30) for _, n in list(open_)[-8:])
                    message = f"parameter {short(name)!r} depends on itself ({chain} → {short(name, 30)})"
                    raise ExpressionError("parameter", message, body, "break the cycle")
                open_[id(owner), name] = None
                stack.append((body, home, (owner, name), reversed(body.names.items())))
                break
            else:
                stack.pop()
                if target is not None:
                    open_.popitem()
                    owner, name = target
                    owner.values[name] = self.run(user, where, (), self.work + limits.OPERATIONS)

    def read(self, name: str, at: int, code: Code, environment: Environment) -> float:
        """The value of a parameter that an expression reads."""
        owner = environment.owner(name)
        if owner is None and name in self.constants:
            return self.constants[name]
        if owner is None or name not in owner.values:
            # Only the body of a function gets here: its free names are resolved by the calling expression.
            self.deeper()
            single = Code(code.card, code.scope, at)
            single.names = {name: at}
            self.need(single, environment)
            self.depth -= 1
        assert owner is not None
        return owner.values[name]

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > limits.FUNCTION_DEPTH:
            raise ExpressionError(
                "function",
                f"functions call each other more than {limits.FUNCTION_DEPTH} deep (or themselves)",
                hint="a function may not call itself",
            )

    def symbolic(self, code: Code, environment: Environment, domain: Domain) -> Any:
        """The value of ``code`` in a domain: a number, or a symbolic value of unknown voltages and currents.

        Raises
        ------
        ExpressionError
            As `value`, or an operation that the domain lacks.
        """
        self.depth = 0
        self.need(code, environment)
        found = self.run(code, environment, (), self.work + limits.OPERATIONS, domain)
        try:
            return domain.whole(found)
        except ExpressionError as error:
            error.at = code
            raise

    def run(
        self,
        code: Code,
        environment: Environment,
        arguments: Sequence[Any],
        stop: int,
        domain: Domain | None = None,
        program: Program | None = None,
    ) -> Any:
        """The value of a program.

        Parameters
        ----------
        code, environment
        arguments : sequence
            The values of its locals.
        stop : int
            The work at which it ends in an error.
        domain : Domain, optional
            Of its values; numbers without it. Both ways are evaluated where a condition is not a number.
        program : list, optional
            One way of a choice in it; all of it without.
        """
        stack: list[Any] = []
        symbols = () if domain is None else domain.symbols
        ways, at = [iter(code.program if program is None else program)], code.offset
        try:
            while ways:
                for instruction, argument, at in ways[-1]:
                    self.work += 1
                    if self.work > stop or self.work > limits.ALL_OPERATIONS:
                        raise ExpressionError("limit", "the expression takes too many steps", hint="simplify it")
                    if instruction == PUSH:
                        stack.append(argument)
                        continue
                    if instruction == NAME:
                        value = self.read(argument, at, code, environment)
                    elif instruction == LOCAL:
                        value = arguments[argument]
                    elif instruction == SIGNAL:
                        value = self.signal(argument, at, code, environment, domain)
                    elif instruction == CHOOSE:
                        value = stack.pop()
                        if domain is None or not isinstance(value, symbols):
                            ways.append(iter(argument[0 if self.decision(value, at, code) else 1]))
                            break
                        both = (self.run(code, environment, arguments, stop, domain, way) for way in argument)
                        value = domain.either(value, *both)
                    else:
                        name, count = argument if instruction == CALL else (instruction, FUNCTIONS[instruction].least)
                        values = tuple(stack[len(stack) - count :])
                        del stack[len(stack) - count :]
                        if instruction == CALL:
                            value = self.call(name, values, at, code, environment, stop, domain)
                        else:
                            value = self.apply(name, values, domain)
                    if domain is not None and isinstance(value, Linear) and not isinstance(value, symbols):
                        value = float(self.noted(value))
                    stack.append(value)
                else:
                    ways.pop()
        except ExpressionError as error:
            error.at = error.at or code.card.at(at)
            raise
        result = stack.pop()
        return result if domain is not None or isinstance(result, float) else float(result)

    def decision(self, value: float, at: int, code: Code) -> bool:
        """Whether a condition holds."""
        if self.draws is not None and isinstance(value, Linear):
            self.draws.decided(value, code.card.at(at))
        if self.taken is not None:
            self.taken.append(bool(value))
        return bool(value)

    def signal(self, signal: Signal, at: int, code: Code, environment: Environment, domain: Domain | None) -> Any:
        """The value of a quantity of the solution."""
        if domain is not None:
            if signal.kind not in domain.kinds:
                return self.read(signal.kind, at, code, environment)
            return domain.fixed[signal] if signal in domain.fixed else domain.signal(signal)
        try:
            if self.signals is not None:
                return self.signals(signal)
            why = "it depends on the solution"
        except ValueError as error:
            why = str(error)
        raise ExpressionError("unsupported", why, hint="see docs/netlist.md for what a source may depend on")

    def call(
        self,
        name: str,
        values: Sequence[Any],
        at: int,
        code: Code,
        environment: Environment,
        stop: int,
        domain: Domain | None,
    ) -> Any:
        """``name(values)``: a function of the deck, or one built in."""
        if name not in code.linked:
            code.linked[name] = code.scope.find_function(name) if code.scope is not None else None
        row: Function | Row | None = code.linked[name] or FUNCTIONS.get(name)
        fits = row is not None and row.takes(values)
        symbolic = domain is not None and any(isinstance(one, domain.symbols) for one in values)
        if name in FORMS and self.draws is not None and not (fits or symbolic or isinstance(row, Function)):
            draws = self.draws
            return self.apply(name, values, function=lambda *x: draws.draw(name, x, code.card.at(at)))
        if row is None:
            message, hint = unknown_function(name)
            raise ExpressionError("function", message, hint=hint)
        if not fits:
            takes = f"{row.least} argument" + "s" * (row.least != 1)
            takes = f"at least {row.least} argument" if row.most else takes
            raise ExpressionError("function", f"{name}() takes {takes}, not {len(values)}")
        if isinstance(row, Row):
            return self.apply(name, values, domain)
        self.deeper()
        result = self.run(row.body, environment, values, stop, domain)
        self.depth -= 1
        return result

    def apply(self, name: str, values: Sequence[Any], domain: Domain | None = None, function: Any = None) -> Any:
        """One operator or function, with its domain and range checked; ``function`` is one that is not in the table."""
        if domain is not None and any(isinstance(one, domain.symbols) for one in values):
            if name not in ("if", "ternary_fcn"):
                return domain.apply(name, values)
            condition, *ways = values
            if isinstance(condition, domain.symbols):
                return domain.either(condition, *ways)
            return ways[0 if condition else 1]
        try:
            result = (function or FUNCTIONS[name].value)(*values)
            value = checked(name, result, values)
            if self.taken is not None and (way := FUNCTIONS[name].way) is not None:
                self.taken.append(way(*values))
            linear = isinstance(result, Linear)
            if not linear and not any(isinstance(v, Linear) for v in values):
                return value
            if self.lines:
                straight = FUNCTIONS[name].straight or not any(map(moves, values))
            else:
                straight = linear and name != "abs"
            return (result if linear else value) if straight else Linear(value, None)
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
        raise ExpressionError("number", f"{what}: {why}") from None


def decides(code: Code) -> bool:
    """Whether an expression has decisions at all."""
    words = ((argument[0] if instruction == CALL else instruction) for instruction, argument, _ in code.instructions())
    return any(word == CHOOSE or (word in FUNCTIONS and FUNCTIONS[word].way) for word in words)
