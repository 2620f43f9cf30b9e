"""Operations of the tapes of formulas (`circuitsim.models.formula_tape`) and their text."""

from __future__ import annotations

from collections.abc import Sequence

from circuitsim.units import exact

(
    CONSTANT,
    VOLTAGE,
    ADD,
    SUBTRACT,
    MULTIPLY,
    DIVIDE,
    MINIMUM,
    MAXIMUM,
    CHOOSE,
    NEGATE,
    EXP,
    LOG,
    SQRT,
    SIN,
    COS,
    ATAN,
    SINH,
    COSH,
    TANH,
    ASINH,
    ABSOLUTE,
    SIGN,
    STEP,
    REACHED,
    POWER,
    SIGNED_POWER,
    ROOTED,
) = range(27)
"""Operations. CHOOSE takes a condition (1 or 0) and two values; STEP is x > 0, REACHED x ≥ 0; POWER is |x|^c,
SIGNED_POWER has the sign of x, ROOTED is x^c of x ≥ 0."""

BINARY = frozenset((ADD, SUBTRACT, MULTIPLY, DIVIDE, MINIMUM, MAXIMUM))

HEAD = 5
"""Entries of a row before the tape."""

DEPTH, LONGEST = 32, 400
"""Maximum number of entries of the stack; most instructions of a tape."""

Tape = tuple[tuple[int, float], ...]
"""Operations with their numbers (0 where an operation has none)."""

FUNCTIONS = {
    EXP: "exp",
    LOG: "ln",
    SQRT: "sqrt",
    SIN: "sin",
    COS: "cos",
    ATAN: "atan",
    SINH: "sinh",
    COSH: "cosh",
    TANH: "tanh",
    ASINH: "asinh",
    ABSOLUTE: "abs",
    SIGN: "sgn",
}
"""Their names in expressions."""

_SIGNS = {ADD: "+", SUBTRACT: "-", MULTIPLY: "*", DIVIDE: "/"}


def depth(tape: Tape) -> int:
    """Maximum number of entries of the stack at a time."""
    size = most = 0
    for op, _ in tape:
        size += 1 if op in (CONSTANT, VOLTAGE) else -1 if op in BINARY else -2 if op == CHOOSE else 0
        most = max(most, size)
    return most


def text_of(tape: Tape, voltage: str) -> str:
    """The expression of a tape, in words that ngspice and this reader read alike.

    Parameters
    ----------
    tape : Tape
    voltage : str
        The text of the voltage: ``v(a,b)``.
    """
    stack: list[str] = []
    for op, number in tape:
        if op in (CONSTANT, VOLTAGE):
            stack.append(voltage if op == VOLTAGE else f"({exact(number)})" if number < 0.0 else exact(number))
        elif op == CHOOSE:
            condition, yes, no = stack[-3:]
            stack[-3:] = [f"({condition}>0.5 ? {yes} : {no})"]
        elif op in BINARY:
            stack[-2:] = [_of_two(op, stack[-2:])]
        else:
            stack[-1] = _of_one(op, number, stack[-1])
    return stack[0]


def _of_two(op: int, of: Sequence[str]) -> str:
    if op in _SIGNS:
        return f"({of[0]}{_SIGNS[op]}{of[1]})"
    return f"{'min' if op == MINIMUM else 'max'}({of[0]},{of[1]})"


def _of_one(op: int, number: float, of: str) -> str:
    if op in FUNCTIONS:
        return f"{FUNCTIONS[op]}({of})"
    if op == NEGATE:
        return f"(-{of})"
    if op in (STEP, REACHED):
        return f"({of}>0 ? 1 : 0)" if op == STEP else f"({of}<0 ? 0 : 1)"
    size = f"pow({of},{exact(number)})" if op == ROOTED else f"pow(abs({of}),{exact(number)})"
    return f"(sgn({of})*{size})" if op == SIGNED_POWER else size
