r"""Expressions: text parsed to a tree; ``eval`` is never used.

Precedence, from loose to tight, as in ngspice: ``? :``, ``||`` (also ``|``), ``&&`` (also ``&``), ``== != <>``,
``< <= > >=``, ``+ -``, ``* / % \``, unary ``- + !``, ``** ^``. Powers are left-associative (``2**3**2`` is 64) and
bind tighter than a sign (``-2**2`` is −4).

Values: a traversal of the tree with a budget, and environments of parameters that resolve on demand.

A name is looked up in the call of the expression, then in its callers, as ngspice does; values passed by a call are
expressions of its caller (ngspice resolves some of their names in the sub-circuit, depending on its order of
evaluation; a warning says where that matters). Everything is evaluated once, without recursion over parameters, so that
chains of a hundred thousand parameters work.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, NoReturn

from circuitsim.netlist import limits
from circuitsim.netlist.cards import CardError
from circuitsim.netlist.functions import (
    CONSTANTS,
    FORMS,
    FUNCTIONS,
    NEGATE,
    NOT,
    OPERATORS,
    TRUTH,
    Draws,
    Linear,
    Row,
    checked,
)
from circuitsim.units import NumberError, exact, rkm, scan, short

NUMBER, NAME, LOCAL, CALL, CHOICE, SIGNAL = "number", "name", "argument", "call", "choice", "signal"
"""Kinds of nodes besides operators."""


class Node(NamedTuple):
    """A part of an expression.

    Attributes
    ----------
    kind : str
        A sign or an operator, or another kind.
    argument : Any
        The number, the name of a parameter or function, the number of an argument of a function, or the signal.
    at : int
        Its offset in the text.
    parts : tuple of Node
        Operands, arguments, or a condition and what holds with it and without it.
    """

    kind: str
    argument: Any
    at: int
    parts: tuple[Node, ...] = ()


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

_PRECEDENCE = ("||", "&&", "== != <>", "< <= > >=", "+ -", "* / % \\", "**")
_LEVELS = {operator: level for level, words in enumerate(_PRECEDENCE, 1) for operator in words.split()}
"""Precedence of binary operators, the loosest first."""


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
    tree : Node
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

    __slots__ = ("card", "end", "mega", "names", "offset", "scope", "signals", "tree")

    def __init__(self, card: Any, scope: Any, offset: int) -> None:
        self.card, self.scope, self.offset, self.end = card, scope, offset, offset
        self.tree = Node(NUMBER, 0.0, offset)
        self.names: dict[str, int] = {}
        self.mega = ""
        self.signals: list[Signal] = []

    def nodes(self) -> Iterator[Node]:
        """All nodes, in the order of the text."""
        open_ = [self.tree]
        while open_:
            node = open_.pop()
            yield node
            open_ += node.parts[::-1]


def parse(card: Any, start: int, stop: int, scope: Any, arguments: tuple[str, ...] = (), signals: bool = False) -> Code:
    """Parse the expression that begins at ``start`` and ends at ``stop`` at most.

    With ``signals`` it may read the solution: ``v(a,b)``, ``i(R1)``, ``time``.

    Raises
    ------
    ExpressionError
        Where the text is not an expression, or nests deeper than `limits.EXPRESSION_DEPTH`.
    """
    reader = _Reader(start, stop, Code(card, scope, start), arguments, signals)
    reader.code.tree, reader.code.end = reader.ternary(), reader.end
    return reader.code


class _Reader:
    """Recursive descent with one token of look-ahead; depth is counted, so that no text exhausts Python's stack."""

    def __init__(self, start: int, stop: int, code: Code, arguments: tuple[str, ...], signals: bool) -> None:
        self.text: str = code.card.text
        self.stop, self.code, self.signals = stop, code, signals
        self.arguments = {name: k for k, name in enumerate(arguments)}
        self.depth, self.end = 0, start  # after the last token taken
        self.look(start)

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

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > limits.EXPRESSION_DEPTH:
            self.fail(f"the expression nests deeper than {limits.EXPRESSION_DEPTH}", "split it with .param")

    def expect(self, token: str) -> None:
        if self.token != token:
            found = self.text[self.at : min(self.at + 1, self.stop)]
            self.fail(f"{token!r} expected" + (f" before {found!r}" if found else " at the end of the expression"))
        self.take()

    def ternary(self) -> Node:
        self.deeper()
        found = self.binary(1)
        if self.token == "?":
            at, yes = self.take(), self.ternary()
            self.expect(":")
            found = Node(CHOICE, None, at, (found, yes, self.ternary()))
        self.depth -= 1
        return found

    def binary(self, level: int) -> Node:
        """A chain of operators of ``level`` and tighter, by precedence climbing (left-associative: a loop)."""
        self.deeper()
        left = self.unary(level)
        while (found := _LEVELS.get(self.token, 0)) >= level:
            operator, at = self.token, self.take()
            right = self.binary(found + 1)
            if operator in ("&&", "||"):  # the right side is evaluated only if needed
                ways = Node(TRUTH, None, at, (right,)), Node(NUMBER, float(operator == "||"), at)
                left = Node(CHOICE, None, at, (left, *(ways if operator == "&&" else ways[::-1])))
            else:
                left = Node(operator, None, at, (left, right))
        self.depth -= 1
        return left

    def unary(self, level: int) -> Node:
        """An operand, or signs and what binds as tight as a power."""
        signs = []
        while self.token in _SIGNS:
            signs.append((_SIGNS[self.token], self.take()))
        found = self.binary(max(level, _LEVELS["**"])) if signs else self.operand()
        for sign, at in reversed(signs):
            found = Node(sign, None, at, (found,)) if sign else found
        return found

    def operand(self) -> Node:
        if self.token in _GROUPS:
            close = _GROUPS[self.token]
            self.take()
            inside = self.ternary()
            self.expect(close)
            return inside
        character = self.text[self.at : min(self.at + 1, self.stop)]
        if character.isdecimal() or character == ".":
            return self.number()
        if found := _IDENTIFIER.match(self.text, self.at, self.stop):
            return self.identifier(found.group(), found.end())
        if character == '"':
            self.fail("a string is not a value", 'only table("file") of a source reads points from a file')
        if character:
            self.fail(f"a number, a parameter or '(' expected before {character!r}")
        self.fail("the expression ends where a number, a parameter or '(' is expected")

    def number(self) -> Node:
        try:
            value, self.end, letters = scan(self.text, self.at)
        except NumberError as error:
            scope, word = self.code.scope, _WORD.match(self.text, self.at, self.stop)
            read = None if scope is None or word is None else read_rkm(word.group())
            if read is None or word is None:
                raise ExpressionError(str(error), self.code.card.at(self.at), error.hint, "number") from None
            scope.readings.append(self.code.card.at(self.at)._replace(text=word.group()))
            value, self.end, letters = read, word.end(), ""
        if letters[:1] == "A":
            message, hint = no_ampere(self.text[self.at : self.end], letters)
            raise ExpressionError(message, self.code.card.at(self.at), hint, "atto")
        if letters[:1] == "M" and letters[:3].lower() not in ("meg", "mil"):
            self.code.mega = self.text[self.at : self.end]
        found = Node(NUMBER, value, self.at)
        self.look(self.end)
        return found

    def identifier(self, word: str, end: int) -> Node:
        name, at = word.lower(), self.at
        self.end = end
        self.look(end)
        if self.signals and (name == "time" or (name in SIGNALS and self.token == "(")):
            return self.signal(name, at)
        if self.token == "(":
            return self.call(name, at)
        if name in self.arguments:
            return Node(LOCAL, self.arguments[name], at)
        self.code.names.setdefault(name, at)
        return Node(NAME, name, at)

    def signal(self, name: str, at: int) -> Node:
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
        return Node(SIGNAL, found, at)

    def call(self, name: str, at: int) -> Node:
        self.take()
        parts = [self.signal("time", at)] if self.signals and name in OF_TIME else []
        while self.token != ")":
            parts.append(self.ternary())
            if self.token != ",":
                break
            self.take()
        self.expect(")")
        # Resolved at evaluation: a deck's own .func of that name has precedence over a built-in one.
        return Node(CALL, name, at, tuple(parts))


def no_ampere(text: str, letters: str) -> tuple[str, str]:
    """Message and hint for a number whose trailing letters begin with A."""
    digits = short(text.removesuffix(letters))
    message = f"{short(text)} is {digits}e-18 in SPICE, where A is atto, not ampere"
    return message, f"write {digits} for ampere, {digits}e-18 for atto"


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


_INSTEAD = {
    "uplim": "write min(x, y), which has no rounded corner",
    "dnlim": "write max(x, y), which has no rounded corner",
    **dict.fromkeys(("ddt", "idt", "sdt", "delay"), "formulas have no memory: use capacitors and inductors"),
}
"""What to write instead of functions of LTspice and Xyce."""


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
    if name in _INSTEAD:
        return f"{name}() is not supported", _INSTEAD[name]
    return f"no function is called {short(name)!r}", "define it with .func, or see docs/netlist.md for those built in"


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

    Each domain has ``signal(signal)``, the value of a voltage or current, ``whole(value)``, the form in which the value
    of a whole expression is returned, ``either(condition, yes, no)``, a choice, and ``refused(what)``, the error for an
    unsupported operation. Errors get their
    location from `Evaluator.run`.

    Attributes
    ----------
    symbols : tuple of types
        Types of these values.
    fixed : mapping of Signal to float
        Signals with known values.
    table : mapping of str to callable
        Its operators, signs and functions of such values and numbers. They return None, or raise a ValueError, for
        values they do not support.
    evaluator : Evaluator
        That of the expression.
    """

    symbols: ClassVar[tuple[type, ...]]
    fixed: Mapping[Signal, float] = MappingProxyType({})
    table: Mapping[str, Callable[..., Any]]
    evaluator: Evaluator
    signal: Any
    whole: Any
    either: Any
    refused: Any

    def need_condition(self, value: Any) -> None:
        """Refuse values that are no conditions."""

    def do(self, name: str, *values: Any) -> Any:
        """An operator or function of numbers and symbolic values."""
        return self.evaluator.apply(name, values, self)

    def apply(self, name: str, values: Sequence[Any]) -> Any:
        """An operator or function of its own, or one composed of others."""
        if name in (NOT, TRUTH):
            self.need_condition(values[0])
        row = FUNCTIONS[name]
        own = self.table.get(row.name) or (row.composed and partial(row.composed, self.do))
        try:
            found = None if own is None else own(*values)
        except ValueError as error:
            raise ExpressionError(f"{name}(): {error}", kind="unsupported") from None
        if found is None:
            raise self.refused(_WORDS.get(name, f"{name!r}" if name in OPERATORS else f"{name}()"))
        return found


_WORDS = {"*": "the product", "/": "a quotient by", "**": "a power"}


class Call(NamedTuple):
    """An expression being evaluated, or the body of a function it calls.

    Attributes
    ----------
    code, environment
    stop : int
        The work at which it ends in an error.
    domain : Domain or None
        That of its values; None: numbers.
    arguments : sequence
        The values of its locals.
    """

    code: Code
    environment: Environment
    stop: int
    domain: Domain | None = None
    arguments: Sequence[Any] = ()


class Evaluator:
    """Evaluates expressions, with one budget of work per elaboration.

    Parameters
    ----------
    constants : mapping of str to float
        Values of names that no parameter has.
    signals : callable, optional
        The value of a quantity of the solution (`Signal`), for expressions that read some; its ValueError explains why
        there is none.
    draws : Draws, optional
        Handles the random functions, which are refused without it.
    taken : list, optional
        Receives the decisions of conditions and of functions with corners or jumps.
    check : callable
        Checks the result of a function (`functions.checked`).
    """

    def __init__(
        self,
        constants: Mapping[str, float] = CONSTANTS,
        signals: Any = None,
        draws: Draws | None = None,
        taken: list[Any] | None = None,
        check: Callable[[str, Any, Sequence[Any]], float] = checked,
    ) -> None:
        self.constants, self.signals, self.draws, self.taken, self.check = constants, signals, draws, taken, check
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
        if domain is not None:
            domain.evaluator = self
        self.need(code, environment)
        found = self.run(code.tree, Call(code, environment, stop, domain))
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
                    signal = next((n.argument for n in user.nodes() if n.kind == CALL and n.argument in UNKNOWN), None)
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
                    owner.values[name] = self.run(user.tree, Call(user, where, self.work + limits.OPERATIONS))

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

    def run(self, node: Node, call: Call) -> Any:
        """The value of a part of an expression, by a traversal without recursion; only the way that a condition selects
        is evaluated."""
        open_: list[tuple[Node, list[Any]]] = []
        symbols = () if call.domain is None else call.domain.symbols
        try:
            while True:
                while node.parts:
                    open_.append((node, []))
                    node = node.parts[0]
                value = self.operation(node, (), call)
                while open_:
                    node, values = open_[-1]
                    if node.kind == CHOICE and not values and not isinstance(value, symbols):
                        open_.pop()
                        node = node.parts[1 if self.decision(value, node.at, call.code) else 2]
                        break
                    values.append(value)
                    if len(values) < len(node.parts):
                        node = node.parts[len(values)]
                        break
                    open_.pop()
                    value = self.operation(node, values, call)
                else:
                    return value
        except ExpressionError as error:
            error.at = error.at or call.code.card.at(node.at)
            raise

    def operation(self, node: Node, values: Sequence[Any], call: Call) -> Any:
        """The value of a node, whose parts have these values."""
        self.work += 1
        if self.work > call.stop or self.work > limits.ALL_OPERATIONS:
            raise ExpressionError("the expression takes too many steps", hint="simplify it", kind="limit")
        kind, argument, at, _ = node
        domain = call.domain
        if kind == NUMBER:
            return argument
        if kind == NAME:
            value = self.read(argument, at, call.code, call.environment)
        elif kind == LOCAL:
            value = call.arguments[argument]
        elif kind == SIGNAL:
            value = self.signal(argument, at, call)
        elif kind == CALL:
            value = self.call(argument, values, at, call)
        elif kind == CHOICE and domain is not None:
            value = domain.either(*values)
        else:
            value = self.apply(kind, values, domain)
        if domain is not None and isinstance(value, Linear) and not isinstance(value, domain.symbols):
            return float(self.noted(value))
        return value

    def decision(self, value: float, at: int, code: Code) -> bool:
        """Whether a condition holds."""
        if self.draws is not None and isinstance(value, Linear):
            self.draws.decided(value, code.card.at(at))
        if self.taken is not None:
            self.taken.append(bool(value))
        return bool(value)

    def signal(self, signal: Signal, at: int, call: Call) -> Any:
        """The value of a quantity of the solution."""
        if (domain := call.domain) is not None:
            if signal.kind not in UNKNOWN:
                return self.read(signal.kind, at, call.code, call.environment)
            return domain.fixed[signal] if signal in domain.fixed else domain.signal(signal)
        try:
            return self.signals(signal)
        except ValueError as error:
            hint = "see docs/netlist.md for what a source may depend on"
            raise ExpressionError(str(error), hint=hint, kind="unsupported") from None

    def call(self, name: str, values: Sequence[Any], at: int, call: Call) -> Any:
        """``name(values)``: a function of the deck, or one built in."""
        code, domain = call.code, call.domain
        row: Row | None = (code.scope and code.scope.found("functions", name)) or FUNCTIONS.get(name)
        fits, own = row is not None and row.takes(values), row is not None and isinstance(row.value, Code)
        symbolic = domain is not None and any(isinstance(one, domain.symbols) for one in values)
        if name in FORMS and self.draws is not None and not (fits or symbolic or own):
            draws = self.draws
            return self.apply(name, values, function=lambda *x: draws.draw(name, x, code.card.at(at)))
        if row is None:
            message, hint = unknown_function(name)
            raise ExpressionError(message, hint=hint, kind="function")
        if not fits:
            takes = "at least " * bool(row.most) + f"{row.least} argument" + "s" * (row.least != 1)
            raise ExpressionError(f"{name}() takes {takes}, not {len(values)}", kind="function")
        if not own:
            return self.apply(name, values, domain)
        self.deeper()
        result = self.run(row.value.tree, call._replace(code=row.value, arguments=values))
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
            value = self.check(name, result, values)
            if self.taken is not None and (way := FUNCTIONS[name].way) is not None:
                self.taken.append(way(*values))
            if isinstance(result, Linear):
                return result
            return Linear(value) if any(isinstance(v, Linear) for v in values) else value
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
    words = (node.argument if node.kind == CALL else node.kind for node in code.nodes())
    return any(word == CHOICE or (word in FUNCTIONS and FUNCTIONS[word].way) for word in words)
