"""Expressions: text compiled to a small program for a stack machine; ``eval`` is never used.

Precedence, from loose to tight, as in ngspice: ``? :``, ``||`` (also ``|``), ``&&`` (also ``&``), ``== != <>``,
``< <= > >=``, ``+ -``, ``* / % \\``, unary ``- + !``, ``** ^``. Powers are left-associative (``2**3**2`` is 64) and
bind tighter than a sign (``-2**2`` is −4).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, NoReturn

from circuitsim.netlist import limits
from circuitsim.netlist.cards import CardError
from circuitsim.netlist.functions import NEGATE, NOT, RANDOM, TRUTH
from circuitsim.units import NumberError, rkm, scan, short

PUSH, NAME, LOCAL, CALL, CHOOSE, SIGNAL = range(6)
"""Instructions. The argument of `CHOOSE` is two programs: for a true condition, and for a false one."""

Program = list[tuple[Any, Any, int]]
"""Tuples (instruction, operator or sign, argument, offset in the text)."""

_BLANK = re.compile(r"\s*")
_WORD = re.compile(r"\w+")
_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_OPERATOR = re.compile(r"\*\*|<=|>=|==|!=|<>|&&?|\|\|?|[-+*/%\\^<>!?:(),{}']")
_SYNONYMS = {"&": "&&", "|": "||"}
"""Single-character operators of Xyce and LTspice."""

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
        Instructions for `circuitsim.netlist.evaluate`.
    names : dict
        Parameters it reads (lower case) → offset of their first use.
    card, offset
        Its place (`cards.Place`).
    scope : Any
        The scope of its functions.
    mega : str
        A number in it that ends in a capital ``M`` (milli), if any: a warning on a resistor.
    signals : list of Signal
        Quantities of the solution that it reads.
    """

    __slots__ = ("card", "linked", "mega", "names", "offset", "program", "scope", "signals")

    def __init__(self, card: Any, scope: Any, offset: int) -> None:
        self.card, self.scope, self.offset = card, scope, offset
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


def parse(
    card: Any,
    start: int,
    scope: Any,
    arguments: tuple[str, ...] = (),
    stop: int | None = None,
    signals: bool = False,
) -> tuple[Code, int]:
    """Parse the expression that begins at ``start``; returns it and the offset of its end (``stop`` at most).

    With ``signals`` it may read the solution: ``v(a,b)``, ``i(R1)``, ``time``.

    Raises
    ------
    ExpressionError
        Where the text is not an expression, or nests deeper than `limits.EXPRESSION_DEPTH`.
    """
    reader = _Reader(start, stop, Code(card, scope, start), arguments, signals)
    reader.code.program = reader.aside(reader.ternary, 0)
    return reader.code, reader.end


class _Reader:
    """Recursive descent with one token of look-ahead; depth is counted, so that no text exhausts Python's stack."""

    def __init__(self, start: int, stop: int | None, code: Code, arguments: tuple[str, ...], signals: bool) -> None:
        self.text: str = code.card.text
        self.stop, self.code, self.signals = len(self.text) if stop is None else stop, code, signals
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
        raise ExpressionError("expression", message, at, hint)

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
        self.unary(depth)
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

    def unary(self, depth: int) -> None:
        signs: list[tuple[str, int]] = []
        while self.token in ("-", "+", "!"):
            sign = {"-": NEGATE, "!": NOT, "+": ""}[self.token]
            signs.append((sign, self.take()))
        self.operand(depth)
        while self.token in ("**", "^"):
            at = self.take()
            self.exponent(depth)
            self.emit("**", None, at)
        for sign, at in reversed(signs):
            if sign:
                self.emit(sign, None, at)

    def exponent(self, depth: int) -> None:
        """The right side of a power: an operand with at most a sign."""
        negative, at = self.token == "-", self.at
        if self.token in ("-", "+"):
            self.take()
        self.operand(depth)
        if negative:
            self.emit(NEGATE, None, at)

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
                raise ExpressionError("number", str(error), self.code.card.at(self.at), error.hint) from None
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
    if name in RANDOM:
        hint = "random functions are for values of R, L, C, V, I and .param; write the mean here"
        return f"{name!r} draws a random number", hint
    if name in ("v", "i"):
        hint = "use parameters and numbers; only sources may read v() and i(), see docs/elements.md"
        return f"{name}(…) depends on the solution", hint
    if name in SPLINES:
        return f"{name}() interpolates with curves, which is not supported", "table(x, x1, y1, …) interpolates linearly"
    return f"no function is called {short(name)!r}", "define it with .func, or see docs/netlist.md for those built in"
