"""Expressions of straight lines over time, where they are straight lines themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from circuitsim.netlist.branches import position
from circuitsim.netlist.evaluate import Evaluator
from circuitsim.netlist.expression import Code


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

    def apply(self, name: str, function: Any, values: tuple[float, ...], at: int, code: Code) -> float:
        """One operator or function."""
        found = super().apply(name, function, tuple(map(float, values)), at, code)
        if not any(map(slope_of, values)):
            return found
        if name not in _SLOPES:
            raise Curved
        return Line(found, _SLOPES[name](values))


__all__ = ["Curved", "Line", "LineEvaluator", "slope_of"]
