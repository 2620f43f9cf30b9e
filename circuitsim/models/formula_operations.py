"""Operations of the tapes of formulas (`circuitsim.models.formula_tape`) and their text."""

from __future__ import annotations

from itertools import accumulate

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

HEAD = 6
"""Entries of a row before the tape."""

DEPTH, LONGEST = 32, 400
"""Maximum depth of the stack; maximum number of instructions of a tape."""

Tape = tuple[tuple[int, float], ...]
"""Operations with their numbers (0 if none)."""

_NAMES = "+ - * / min max", "-x exp ln sqrt sin cos atan sinh cosh tanh asinh abs sgn u x>=0"
NAMES = {first + k: name for first, names in zip((ADD, NEGATE), _NAMES) for k, name in enumerate(names.split())}
"""Their names in expressions (`circuitsim.netlist.functions`)."""

_TEXTS = {
    **{op: f"{name}({{0}},{{1}})" if op in BINARY else f"{name}({{0}})" for op, name in NAMES.items()},
    **{op: f"({{0}}{NAMES[op]}{{1}})" for op in (ADD, SUBTRACT, MULTIPLY, DIVIDE)},
    CHOOSE: "({0}>0.5 ? {1} : {2})",
    NEGATE: "(-{0})",
    STEP: "({0}>0 ? 1 : 0)",
    REACHED: "({0}<0 ? 0 : 1)",
    POWER: "pow(abs({0}),{number})",
    SIGNED_POWER: "(sgn({0})*pow(abs({0}),{number}))",
    ROOTED: "pow({0},{number})",
}
"""Operations in expressions, as both ngspice and this reader accept them."""


def operands(op: int) -> int:
    """Number of operands of an operation."""
    return 0 if op in (CONSTANT, VOLTAGE) else 3 if op == CHOOSE else 2 if op in BINARY else 1


def depth(tape: Tape) -> int:
    """Maximum depth of the stack."""
    return max(accumulate(1 - operands(op) for op, _ in tape))


def text_of(tape: Tape, voltage: str) -> str:
    """The expression of a tape.

    Parameters
    ----------
    tape : Tape
    voltage : str
        Text of the voltage: ``v(a,b)``.
    """
    stack: list[str] = []
    for op, number in tape:
        first = len(stack) - operands(op)
        if op in (CONSTANT, VOLTAGE):
            stack.append(voltage if op == VOLTAGE else f"({exact(number)})" if number < 0.0 else exact(number))
        else:
            stack[first:] = [_TEXTS[op].format(*stack[first:], number=exact(number))]
    return stack[0]
