"""Expressions over time: which way they go, and where straight lines give straight lines.

Between two changes of its way, the value of an expression is smooth in what it reads.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from circuitsim.netlist.evaluate import Evaluator
from circuitsim.netlist.expression import CALL, JUMP_IF_ZERO, Code, Signal


def _sign(x: float) -> int:
    return (x > 0.0) - (x < 0.0)


def _order(x: float, y: float) -> int:
    return (x > y) - (x < y)


def _segment(x: float, *points: float) -> int:
    return bisect_right(points[::2], x)


def position(name: str, x: Sequence[float]) -> int:
    """Which of some values ``min`` or ``max`` takes: the first of equal ones."""
    values = [float(own) for own in x]
    return values.index(min(values) if name == "min" else max(values))


_WAYS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("<", "<=", ">", ">=", "==", "!=", "<>"), _order),
    **dict.fromkeys(("abs", "sgn", "u", "stp", "buf", "inv", "uramp", "pwr", "pwrs"), lambda x, *_: _sign(x)),
    **dict.fromkeys(("if", "ternary_fcn"), lambda x, *_: bool(x)),
    **dict.fromkeys(("%", "\\", "mod", "fmod"), lambda x, y: x // y),
    **dict.fromkeys(("int", "floor", "ceil"), lambda x: x // 1.0),
    **dict.fromkeys(("nint", "round"), round),
    **dict.fromkeys(("table", "pwl"), _segment),
    "min": lambda *x: position("min", x),
    "max": lambda *x: position("max", x),
    "limit": lambda x, low, high: (x > low) + (x > high),
}
"""Operators and functions with corners or jumps: which smooth part they are on."""


class BranchEvaluator(Evaluator):
    """Notes the decisions of expressions.

    Parameters
    ----------
    constants, signals
        See `Evaluator`.
    taken : list
        Gets the decisions.
    """

    def __init__(self, constants: Mapping[str, float], signals: Callable[[Signal], float], taken: list[Any]) -> None:
        super().__init__(constants, signals)
        self.taken = taken

    def decision(self, value: float, at: int, code: Code) -> bool:
        """Whether a condition holds."""
        self.taken.append(found := super().decision(value, at, code))
        return found

    def apply(self, name: str, function: Any, values: Sequence[float]) -> float:
        """One operator or function."""
        found = super().apply(name, function, values)
        if name in _WAYS:
            self.taken.append(_WAYS[name](*values))
        return found


def decides(code: Code) -> bool:
    """Whether an expression has decisions at all."""
    words = ((argument[0] if instruction == CALL else instruction) for instruction, argument, _ in code.program)
    return any(word in _WAYS or word == JUMP_IF_ZERO for word in words)


class Curved(Exception):
    """An expression follows no straight line."""


class Line(float):
    """A value with its derivative by time, nan on a curve."""

    slope: float

    def __new__(cls, value: float, slope: float) -> Line:
        found = super().__new__(cls, value)
        found.slope = slope
        return found

    def __neg__(self) -> Line:
        return Line(-float(self), -self.slope)

    def __add__(self, other: float) -> Line:
        return Line(float(self) + float(other), self.slope + slope_of(other))

    __radd__ = __add__

    def __sub__(self, other: float) -> Line:
        return self + -other

    def __rsub__(self, other: float) -> Line:
        return -self + other

    def __mul__(self, other: float) -> Line:
        if self.slope and slope_of(other):
            raise Curved
        return Line(float(self) * float(other), self.slope * float(other) + float(self) * slope_of(other))

    __rmul__ = __mul__


def slope_of(value: float) -> float:
    """The derivative of a value; 0 of a constant."""
    return value.slope if isinstance(value, Line) else 0.0


def _quotient(of: Sequence[float]) -> float:
    if slope_of(of[1]):
        raise Curved
    return slope_of(of[0]) / float(of[1])


def _limited(of: Sequence[float]) -> float:
    x, low, high = of
    return slope_of(low if x < low else high if x > high else x)


_CONSTANT = (
    "<",
    "<=",
    ">",
    ">=",
    "==",
    "!=",
    "<>",
    "sgn",
    "u",
    "stp",
    "buf",
    "inv",
    "int",
    "floor",
    "ceil",
    "nint",
    "round",
)
_SLOPES: dict[str, Callable[[Sequence[float]], float]] = {
    **dict.fromkeys(_CONSTANT, lambda of: 0.0),
    **dict.fromkeys(("if", "ternary_fcn"), lambda of: slope_of(of[1] if of[0] else of[2])),
    "+": lambda of: slope_of(of[0] + of[1]),
    "-": lambda of: slope_of(of[0] - of[1]),
    "*": lambda of: slope_of(of[0] * of[1]),
    "/": _quotient,
    "limit": _limited,
    "abs": lambda of: slope_of(of[0]) if of[0] > 0.0 else -slope_of(of[0]),
    "uramp": lambda of: slope_of(of[0]) if of[0] > 0.0 else 0.0,
    "min": lambda of: slope_of(of[position("min", of)]),
    "max": lambda of: slope_of(of[position("max", of)]),
}
"""Derivatives of operators and functions whose values are lines where those of their arguments are."""


class LineEvaluator(Evaluator):
    """Runs expressions on straight lines; their decisions are those at the time of the values.

    Raises
    ------
    Curved
        A result follows no straight line.
    """

    def apply(self, name: str, function: Any, values: Sequence[float]) -> float:
        """One operator or function."""
        found = super().apply(name, function, tuple(map(float, values)))
        if not any(map(slope_of, values)):
            return found
        if name not in _SLOPES:
            raise Curved
        return Line(found, _SLOPES[name](values))
