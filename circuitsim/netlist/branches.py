"""Which way an expression goes: between two changes of it, its value is smooth in what it reads."""

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

    def apply(self, name: str, function: Any, values: tuple[float, ...], at: int, code: Code) -> float:
        """One operator or function."""
        found = super().apply(name, function, values, at, code)
        if name in _WAYS:
            self.taken.append(_WAYS[name](*values))
        return found


def decides(code: Code) -> bool:
    """Whether an expression has decisions at all."""
    words = ((argument[0] if instruction == CALL else instruction) for instruction, argument, _ in code.program)
    return any(word in _WAYS or word == JUMP_IF_ZERO for word in words)


__all__ = ["BranchEvaluator", "decides", "position"]
