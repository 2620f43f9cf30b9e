r"""Expressions: text compiled to a small program for a stack machine; ``eval`` is never used.

Precedence, from loose to tight, as in ngspice: ``? :``, ``||`` (also ``|``), ``&&`` (also ``&``), ``== != <>``,
``< <= > >=``, ``+ -``, ``* / % \``, unary ``- + !``, ``** ^``. Powers are left-associative (``2**3**2`` is 64) and
bind tighter than a sign (``-2**2`` is −4).

Values: a stack machine with a budget, and environments of parameters that resolve on demand.

A name is looked up in the call of the expression, then in its callers, as ngspice does; values passed by a call are
expressions of its caller (ngspice resolves some of their names in the sub-circuit, depending on its order of
evaluation; a warning says where that matters). Everything is evaluated once, without recursion over parameters, so that
chains of a hundred thousand parameters work.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, NoReturn

from circuitsim.netlist import limits
from circuitsim.netlist.cards import CardError
from circuitsim.netlist.deviations import FORMS, Draws
from circuitsim.netlist.functions import (
    CONSTANTS,
    FUNCTIONS,
    NEGATE,
    NOT,
    OPERATORS,
    TRUTH,
    Linear,
    Row,
    checked,
    moves,
)
from circuitsim.units import NumberError, exact, rkm, scan, short

PUSH, NAME, LOCAL, CALL, CHOOSE, SIGNAL = range(6)
"""Instructions. The argument of `CHOOSE` is two programs: for a true condition, and for a false one."""

Program = list[tuple[Any, Any, int]]
"""Tuples (instruction, operator or sign, argument, offset in the text)."""

_BLANK = re.compile(r"\s*")
_WORD = re.compile(r"\w+")
_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_OPERATOR = re.compile(r"\*\*|<=|>=|==|!=|<>|&&?|\|\|?|[-+*/%\\^<>!?:(),{}']")
_SYNONYMS = {"&": "&&", "|": "||", "^": "**"}
"""Single-character operators of Xyce and LTspice."""

_SIGNS = {"-": NEGATE, "!": NOT, "+": ""}

_SIGNAL = re.compile(r"\s*\(\s*([^\s,()]+)\s*(?:,\s*([^\s,()]+)\s*)?\)")
OF_TIME = frozenset(("spice_pulse", "spice_sin", "spice_exp", "spice_sffm"))
"""Functions in expressions of sources whose implicit first argument is time (Xyce)."""

SPLINES = frozenset(("spline", "akima", "cubic", "wodicka", "bli"))
"""Spline functions of Xyce."""

SIGNALS = frozenset(("v", "i", "p", "w", "n"))
"""``v(a)``, ``v(a,b)``, ``i(R1)``, ``p(R1)`` in expressions of sources and of printed quantities; w is p, n is v."""

UNKNOWN = ("v", "i")
"""Those that are voltages and currents."""

_GROUPS = {"(": ")", "{": "}", "'": "'"}

_LEVELS = {
    "||": 1,
    "&&": 2,
    "==": 3,
    "!=": 3,
    "<>": 3,
    "<": 4,
    "<=": 4,
    ">": 4,
    ">=": 4,
    "+": 5,
    "-": 5,
    "*": 6,
    "/": 6,
    "%": 6,
    "\\": 6,
    "**": 7,
}


class ExpressionError(CardError):
    """An error in an expression."""


class Signal(NamedTuple):
    """A quantity of the solution in an expression: ``v``, ``i``, ``p`` with their names, or ``time``."""

    kind: str
    first: str = ""
    second: str | None = None

    @property
    def text(self) -> str:
        """As in a deck."""
        return f"{self.kind}({self.first}{',' * bool(self.second)}{self.second or ''})"


class Code:
    """One parsed expression.

    Attributes
    ----------
    program : list of tuple
        Instructions for `circuitsim.netlist.expression`.
    names : dict
        Parameters it reads (lower case) → offset of their first use.
    card, offset, end
        Its place (`cards.Place`), and the offset of its end.
    scope : Any
        The scope of its functions.
    mega : str
        A number in it that ends in a capital ``M`` (milli), if any: a warning on a resistor.
    signals : list of Signal
        Quantities of the solution that it reads.
    """

    __slots__ = ("card", "end", "linked", "mega", "names", "offset", "program", "scope", "signals")

    def __init__(self, card: Any, scope: Any, offset: int) -> None:
        self.card, self.scope, self.offset, self.end = card, scope, offset, offset
        self.program: Program = []
        self.names: dict[str, int] = {}
        self.linked: dict[str, Any] = {}
        self.mega = ""
        self.signals: list[Signal] = []

    def instructions(self, program: Program | None = None) -> Iterator[tuple[Any, Any, int]]:
        """All instructions, with those of both branches of each choice."""
        for one in self.program if program is None else program:
            yield one
            for way in one[1] if one[0] == CHOOSE else ():
                yield from self.instructions(way)


def parse(card: Any, start: int, stop: int, scope: Any, arguments: tuple[str, ...] = (), signals: bool = False) -> Code:
    """Parse the expression that begins at ``start`` and ends at ``stop`` at most.

    With ``signals`` it may read the solution: ``v(a,b)``, ``i(R1)``, ``time``.

    Raises
    ------
    ExpressionError
        Where the text is not an expression, or nests deeper than `limits.EXPRESSION_DEPTH`.
    """
    reader = _Reader(start, stop, Code(card, scope, start), arguments, signals)
    reader.code.program = reader.aside(reader.ternary, 0)
    reader.code.end = reader.end
    return reader.code


class _Reader:
    """Recursive descent with one token of look-ahead; depth is counted, so that no text exhausts Python's stack."""

    def __init__(self, start: int, stop: int, code: Code, arguments: tuple[str, ...], signals: bool) -> None:
        self.text: str = code.card.text
        self.stop, self.code, self.signals = stop, code, signals
        self.arguments = {name: k for k, name in enumerate(arguments)}
        self.end = start  # after the last token taken
        self.program: Program = []
        self.look(start)

    def emit(self, instruction: Any, argument: Any, at: int) -> None:
        self.program.append((instruction, argument, at))

    def aside(self, read: Callable[..., None], *arguments: int) -> Program:
        """The output of ``read`` as a separate program."""
        outer, self.program = self.program, []
        read(*arguments)
        outer, self.program = self.program, outer
        return outer

    def look(self, position: int) -> None:
        """Set ``at`` and ``token`` to the next token; operators only, the rest is read where an operand is due."""
        self.at = _BLANK.match(self.text, position, self.stop).end()  # type: ignore[union-attr]
        found = _OPERATOR.match(self.text, self.at, self.stop)
        self.token = found.group() if found else ""
        self.width = len(self.token)
        self.token = _SYNONYMS.get(self.token, self.token)

    def take(self) -> int:
        """Step over the operator; returns its offset."""
        at = self.at
        self.end = at + self.width
        self.look(self.end)
        return at

    def fail(self, message: str, hint: str = "") -> NoReturn:
        at = self.code.card.at(max(min(self.at, self.stop - 1), 0))
        raise ExpressionError(message, at, hint, "expression")

    def deeper(self, depth: int) -> int:
        if depth >= limits.EXPRESSION_DEPTH:
            self.fail(f"the expression nests deeper than {limits.EXPRESSION_DEPTH}", "split it with .param")
        return depth + 1

    def expect(self, token: str) -> None:
        if self.token != token:
            found = self.text[self.at : min(self.at + 1, self.stop)]
            self.fail(f"{token!r} expected" + (f" before {found!r}" if found else " at the end of the expression"))
        self.take()

    def ternary(self, depth: int) -> None:
        depth = self.deeper(depth)
        self.binary(1, depth)
        if self.token != "?":
            return
        at = self.take()
        yes = self.aside(self.ternary, depth)
        self.expect(":")
        self.emit(CHOOSE, (yes, self.aside(self.ternary, depth)), at)

    def binary(self, level: int, depth: int) -> None:
        """A chain of operators of ``level`` and tighter, by precedence climbing (left-associative: a loop)."""
        self.unary(level, depth)
        while (found := _LEVELS.get(self.token, 0)) >= level:
            operator, at = self.token, self.take()
            if operator not in ("&&", "||"):
                self.binary(found + 1, self.deeper(depth))
                self.emit(operator, None, at)
                continue
            # The right side is evaluated only if needed.
            right = [*self.aside(self.binary, found + 1, self.deeper(depth)), (TRUTH, None, at)]
            left: Program = [(PUSH, float(operator == "||"), at)]
            self.emit(CHOOSE, (right, left) if operator == "&&" else (left, right), at)

    def unary(self, level: int, depth: int) -> None:
        """An operand, or signs and what binds as tight as a power."""
        signs = []
        while self.token in _SIGNS:
            signs.append((_SIGNS[self.token], self.take()))
        if signs:
            self.binary(max(level, _LEVELS["**"]), self.deeper(depth))
        else:
            self.operand(depth)
        for sign, at in reversed(signs):
            if sign:
                self.emit(sign, None, at)

    def operand(self, depth: int) -> None:
        if self.token in _GROUPS:
            close = _GROUPS[self.token]
            self.take()
            self.ternary(self.deeper(depth))
            self.expect(close)
            return
        character = self.text[self.at : min(self.at + 1, self.stop)]
        if character.isdecimal() or character == ".":
            self.number()
        elif found := _IDENTIFIER.match(self.text, self.at, self.stop):
            self.identifier(found.group(), found.end(), depth)
        elif character == '"':
            self.fail("a string is not a value", 'only table("file") of a source reads points from a file')
        elif character:
            self.fail(f"a number, a parameter or '(' expected before {character!r}")
        else:
            self.fail("the expression ends where a number, a parameter or '(' is expected")

    def number(self) -> None:
        try:
            value, self.end, letters = scan(self.text, self.at)
        except NumberError as error:
            scope, word = self.code.scope, _WORD.match(self.text, self.at, self.stop)
            found = None if scope is None or word is None else read_rkm(word.group())
            if found is None or word is None:
                raise ExpressionError(str(error), self.code.card.at(self.at), error.hint, "number") from None
            scope.readings.append(self.code.card.at(self.at)._replace(text=word.group()))
            value, self.end, letters = found, word.end(), ""
        if letters[:1] == "M" and letters[:3].lower() not in ("meg", "mil"):
            self.code.mega = self.text[self.at : self.end]
        self.emit(PUSH, value, self.at)
        self.look(self.end)

    def identifier(self, word: str, end: int, depth: int) -> None:
        name, at = word.lower(), self.at
        self.end = end
        self.look(end)
        if self.signals and (name == "time" or (name in SIGNALS and self.token == "(")):
            self.signal(name, at)
        elif self.token == "(":
            self.call(name, at, depth)
        elif name in self.arguments:
            self.emit(LOCAL, self.arguments[name], at)
        else:
            self.code.names.setdefault(name, at)
            self.emit(NAME, name, at)

    def signal(self, name: str, at: int) -> None:
        """A quantity of the solution; node names between the parentheses are not expressions."""
        found = Signal(name)
        if name != "time":
            names = _SIGNAL.match(self.text, self.at, self.stop)
            if names is None or (names[2] is not None and name not in ("v", "n")):
                self.fail(f"{name}(…) needs {'one node or two' if name == 'v' else 'one name'}")
            found = Signal({"w": "p", "n": "v"}.get(name, name), names[1], names[2])
            self.end = names.end()
            self.look(self.end)
        self.code.signals.append(found)
        self.emit(SIGNAL, found, at)

    def call(self, name: str, at: int, depth: int) -> None:
        self.take()
        count = 0
        if self.signals and name in OF_TIME:
            now = Signal("time")
            self.code.signals.append(now)
            self.emit(SIGNAL, now, at)
            count = 1
        if self.token == ")":
            self.take()
        else:
            while True:
                self.ternary(self.deeper(depth))
                count += 1
                if self.token != ",":
                    break
                self.take()
            self.expect(")")
        # Resolved at evaluation: a deck's own .func of that name has precedence over a built-in one.
        self.emit(CALL, (name, count), at)


def read_rkm(text: str) -> float | None:
    """The value of ``2K2``; None for anything else."""
    try:
        return rkm(text)
    except NumberError:
        return None


def unknown_name(name: str) -> tuple[str, str]:
    """Message and hint for a parameter that does not exist."""
    if name in ("temper", "temp"):
        return f"{name!r} has no value where the temperature is set", "write a number or other parameters"
    if name in ("time", "hertz", "freq"):
        return f"{name!r} has no value at an operating point", "define it with .param if a number is meant"
    return f"no parameter is called {short(name)!r}", f"define it: .param {short(name)}=…"


def unknown_function(name: str) -> tuple[str, str]:
    """Message and hint for a function that does not exist."""
    if name in FORMS:
        return (
            f"{name!r} draws a random number",
            "random functions are for values of R, L, C, V, I and .param; write the mean here",
        )
    if name in ("v", "i"):
        return (
            f"{name}(…) depends on the solution",
            "use parameters and numbers; only sources may read v() and i(), see docs/elements.md",
        )
    if name in SPLINES:
        return f"{name}() interpolates with curves, which is not supported", "table(x, x1, y1, …) interpolates linearly"
    return f"no function is called {short(name)!r}", "define it with .func, or see docs/netlist.md for those built in"


class Function(NamedTuple):
    """A ``.func``: its number of arguments and its body."""

    least: int
    body: Code
    most: int = 0

    def takes(self, values: Sequence[Any]) -> bool:
        """Whether this is its number of arguments."""
        return len(values) == self.least


def outwards(here: Any) -> Iterator[Any]:
    """A scope, a call or its parameters, and the enclosing ones."""
    while here is not None:
        yield here
        here = here.parent


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
        return next((one for one in outwards(self) if name in one.values or one.binding(name) is not None), None)


class Domain:
    """Symbolic values of unknown voltages and currents in expressions.

    Each domain has ``signal(signal)``, the value of a voltage or current, ``apply(name, values)``, an operator, a sign
    or a function of numbers and such values, ``whole(value)``, the form in which the value of a whole expression is
    returned, and ``refused(what)``, the error for an unsupported operation. Errors get their location from
    `Evaluator.run`.

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
    signal: Any
    apply: Any
    whole: Any
    refused: Any

    def either(self, condition: Any, yes: Any, no: Any) -> Any:
        """``yes`` where the condition is not zero, else ``no``."""
        raise self.refused("a choice")


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

    def value(self, code: Code | float, environment: Environment, domain: Domain | None = None) -> Any:
        """The value of ``code``, or of a number; with a domain possibly a symbolic value of unknown voltages and
        currents.

        Raises
        ------
        ExpressionError
            Unknown names, cycles, results out of range, too much work; an operation that the domain lacks.
        """
        if isinstance(code, float):
            return code
        stop, self.depth = self.work + limits.OPERATIONS, 0
        self.need(code, environment)
        found = self.run(code, environment, (), stop, domain)
        if domain is None:
            return self.noted(found)
        try:
            return domain.whole(found)
        except ExpressionError as error:
            error.at = code
            raise

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
                    raise ExpressionError(message, user.card.at(at), hint, "parameter")
                if owner is None or name in owner.values:
                    continue
                body, home = owner.binding(name)
                if isinstance(body, float):
                    owner.values[name] = body
                    continue
                if (id(owner), name) in open_:
                    chain = " → ".join(short(n, 30) for _, n in list(open_)[-8:])
                    message = f"parameter {short(name)!r} depends on itself ({chain} → {short(name, 30)})"
                    raise ExpressionError(message, body, "break the cycle", "parameter")
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
                f"functions call each other more than {limits.FUNCTION_DEPTH} deep (or themselves)",
                hint="a function may not call itself",
                kind="function",
            )

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
                        raise ExpressionError("the expression takes too many steps", hint="simplify it", kind="limit")
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
        raise ExpressionError(why, hint="see docs/netlist.md for what a source may depend on", kind="unsupported")

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
            code.linked[name] = code.scope.found("functions", name) if code.scope is not None else None
        row: Function | Row | None = code.linked[name] or FUNCTIONS.get(name)
        fits = row is not None and row.takes(values)
        symbolic = domain is not None and any(isinstance(one, domain.symbols) for one in values)
        if name in FORMS and self.draws is not None and not (fits or symbolic or isinstance(row, Function)):
            draws = self.draws
            return self.apply(name, values, function=lambda *x: draws.draw(name, x, code.card.at(at)))
        if row is None:
            message, hint = unknown_function(name)
            raise ExpressionError(message, hint=hint, kind="function")
        if not fits:
            takes = "at least " * bool(row.most) + f"{row.least} argument" + "s" * (row.least != 1)
            raise ExpressionError(f"{name}() takes {takes}, not {len(values)}", kind="function")
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
        raise ExpressionError(f"{what}: {why}", kind="number") from None


def decides(code: Code) -> bool:
    """Whether an expression has decisions at all."""
    words = ((argument[0] if instruction == CALL else instruction) for instruction, argument, _ in code.instructions())
    return any(word == CHOOSE or (word in FUNCTIONS and FUNCTIONS[word].way) for word in words)
