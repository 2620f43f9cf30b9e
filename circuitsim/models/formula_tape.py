"""Formulas of one voltage as tapes of instructions, evaluated with their derivatives (forward differentiation).

A tape is a program of a stack machine: pairs of an operation and a number. Every stack entry is a value and its
derivative with respect to the voltage. Source: Griewank & Walther, Evaluating Derivatives, SIAM 2008, section 3.1.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from circuitsim.models.formula_operations import (
    ABSOLUTE,
    ADD,
    ASINH,
    ATAN,
    CHOOSE,
    CONSTANT,
    COS,
    COSH,
    DEPTH,
    DIVIDE,
    EXP,
    HEAD,
    LOG,
    MAXIMUM,
    MINIMUM,
    MULTIPLY,
    NEGATE,
    REACHED,
    ROOTED,
    SIGN,
    SIGNED_POWER,
    SIN,
    SINH,
    SQRT,
    STEP,
    SUBTRACT,
    TANH,
    VOLTAGE,
    Tape,
)

BESIDE, BESIDE_CURRENT = 1e-9, 1e-12
"""Offset from a point of infinite slope, V, or of zero slope, A, at which the slope is evaluated instead."""

STEEPEST = 1e100
"""Maximum slope of a formula, S or Ω, and of its inverse."""

STEPS = 400
"""Maximum number of evaluations of a formula for its inverse; ten to twenty are typical."""

ROUNDED = 2e-16
"""Final step as a fraction of the current."""

TINY, JUMP = 1e-250, 2.0**-20
"""A current that counts as zero, A; the fraction of a bracket's far end that is tried if the near one is zero."""


def unary(op: Any, arg: Any, x: Any) -> tuple[Any, Any]:
    """Value and derivative of a function of one number; NaN outside its domain, infinite on overflow."""
    if op == NEGATE:
        return -x, -1.0
    if op == EXP:
        rise = math.exp(x) if x < 709.0 else math.inf
        return rise, rise
    if op == LOG:
        return (math.log(x), 1.0 / x) if x > 0.0 else (math.nan, math.nan)
    if op in (SINH, COSH):
        if not abs(x) < 709.0:
            return (math.copysign(math.inf, x) if op == SINH else math.inf), math.inf
        odd, even = math.sinh(x), math.cosh(x)
        return (odd, even) if op == SINH else (even, odd)
    if op == TANH:
        return math.tanh(x), ((1.0 / math.cosh(x)) ** 2 if abs(x) < 300.0 else 0.0)
    if op == ATAN:
        return math.atan(x), 1.0 / (1.0 + x * x)
    if op == ASINH:
        return math.asinh(x), 1.0 / math.hypot(1.0, x)
    if op in (SIN, COS):
        if not abs(x) < math.inf:
            return math.nan, math.nan
        return (math.sin(x), math.cos(x)) if op == SIN else (math.cos(x), -math.sin(x))
    side = 1.0 if x >= 0.0 else -1.0
    if op == SQRT:
        return power(ROOTED, 0.5, abs(x), side)
    if op == ABSOLUTE:
        return abs(x), side
    if op == SIGN:
        return (side if x != 0.0 else 0.0), 0.0
    if op == STEP:
        return (1.0 if x > 0.0 else 0.0), 0.0
    if op == REACHED:
        return (1.0 if x >= 0.0 else 0.0), 0.0
    return power(op, arg, abs(x), side)


def power(op: Any, exponent: Any, size: Any, side: Any) -> tuple[Any, Any]:
    """|x|^c and its derivative, with or without the sign of x, or for x ≥ 0 only."""
    if size == 0.0:
        if exponent <= 0.0:
            return math.nan, math.nan
        return 0.0, (0.0 if exponent > 1.0 else 1.0 if exponent == 1.0 else math.inf)
    if op == ROOTED and side < 0.0:
        return math.nan, math.nan
    large = exponent * math.log(size)
    if not large < 709.0:
        return (side if op == SIGNED_POWER else 1.0) * math.inf, math.inf
    found = math.pow(size, exponent)
    slope = exponent * found / size
    return (side * found, slope) if op == SIGNED_POWER else (found, side * slope)


def binary(op: Any, x: Any, dx: Any, y: Any, dy: Any) -> tuple[Any, Any]:
    """Value and derivative of an operation on two numbers with derivatives dx, dy."""
    if op == ADD:
        return x + y, dx + dy
    if op == SUBTRACT:
        return x - y, dx - dy
    if op == MULTIPLY:
        return x * y, x * dy + dx * y
    if op == DIVIDE:
        if y == 0.0:
            return math.nan, math.nan
        found = x / y
        return found, (dx - found * dy) / y
    first = x <= y if op == MINIMUM else x >= y
    return (x, dx) if first else (y, dy)


def row_of(tape: Tape, *numbers: float) -> tuple[float, ...]:
    """The row of a tape: 0, its length, further numbers, then its instructions."""
    head = (0.0, float(len(tape)), *numbers)
    return (*head, *(0.0,) * (HEAD - len(head)), *(float(number) for instruction in tape for number in instruction))


def evaluate(p: Any, u: Any) -> tuple[Any, Any]:
    """The value of the tape at a voltage u, V, and its slope there, 1/V."""
    value, slope, top = np.empty(DEPTH), np.empty(DEPTH), -1
    for k in range(int(p[1])):
        op, arg = int(p[HEAD + 2 * k]), float(p[HEAD + 2 * k + 1])
        if op in (CONSTANT, VOLTAGE):
            top += 1
            value[top], slope[top] = (arg, 0.0) if op == CONSTANT else (float(u), 1.0)
        elif op == CHOOSE:
            top -= 2
            kept = top + 1 if value[top] > 0.5 else top + 2
            value[top], slope[top] = value[kept], slope[kept]
        elif ADD <= op <= MAXIMUM:
            top -= 1
            x, dx, y, dy = float(value[top]), float(slope[top]), float(value[top + 1]), float(slope[top + 1])
            value[top], slope[top] = binary(op, x, dx, y, dy)
        else:
            result, rate = unary(op, arg, float(value[top]))
            before = float(slope[top])
            value[top], slope[top] = result, (0.0 if before == 0.0 else rate * before)
    return float(value[0]), float(slope[0])


def between(low: Any, high: Any) -> Any:
    """The geometric mean of a bracket's ends on one side of zero, A."""
    near, far = (low, high) if abs(low) < abs(high) else (high, low)
    if abs(near) < TINY:
        return JUMP * far if abs(far) > TINY else 0.5 * far
    return math.copysign(math.sqrt(abs(near)) * math.sqrt(abs(far)), far)


def inverse(p: Any, u: Any) -> tuple[Any, Any]:
    """The current i, A, between p[2] and p[3], at which the formula has the value u, V, and its slope there, Ω;
    infinite if there is none.

    Newton's method inside a bracket; a step that does not halve the residual is followed by bisection.
    """
    i, slope, before, slow = 0.0, math.inf, math.inf, False
    low, high = float(p[2]), float(p[3])
    if evaluate(p, high)[0] < u:
        return math.inf, slope
    if evaluate(p, low)[0] > u:
        return -math.inf, slope
    for _ in range(STEPS):
        value, slope = evaluate(p, i)
        left = value - u
        low, high = (i, high) if left < 0.0 else (low, i)
        slow = not slow and not abs(left) <= 0.5 * before
        new = i - left / slope if 0.0 < slope < math.inf else math.inf
        if left == 0.0 or abs(new - i) <= ROUNDED * abs(i):
            break
        before, at = abs(left), i
        i = new if not slow and low < new < high else between(low, high)
        if not low < i < high:
            return at, slope
    return i, slope


def junction(p: Any, u: Any) -> tuple[Any, Any]:
    """Current (A) and slope (S) of m devices at a voltage u, V; p: 0, number of instructions, ends of the argument's
    range, m, whether the formula states a voltage, then the tape."""
    m = float(p[4])
    if p[5] == 0.0:
        if not p[2] <= u <= p[3]:
            return math.copysign(math.inf, u), math.inf
        found, slope = evaluate(p, u)
        if not abs(slope) < math.inf:
            slope = evaluate(p, u + (BESIDE if u <= 0.0 else -BESIDE))[1]
            slope = slope if abs(slope) < math.inf else STEEPEST
        return m * found, m * max(slope, 0.0)
    i, slope = inverse(p, u)
    if not abs(i) < math.inf:
        return i, math.inf
    if not 0.0 < slope < math.inf:
        slope = evaluate(p, i + (BESIDE_CURRENT if i <= 0.0 else -BESIDE_CURRENT))[1]
    return m * i, m / min(max(slope, 1.0 / STEEPEST), STEEPEST)


def by_parameters(p: Any, u: Any, out: Any) -> None:
    """Derivatives of the current with respect to p; only m is a parameter."""
    for k in range(p.size):
        out[k] = 0.0
    out[4] = junction(p, u)[0] / p[4]
