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
)

BESIDE = 1e-9
"""Offset from a point of infinite slope at which the slope is evaluated instead, V."""


def unary(op: Any, arg: Any, x: Any) -> tuple[Any, Any]:
    """Value and derivative of a function of one number; NaN outside its domain, infinite on overflow."""
    if op == NEGATE:
        return -x, -1.0
    if op == EXP:
        rise = math.exp(x) if x < 709.0 else math.inf
        return rise, rise
    if op == LOG:
        return (math.log(x), 1.0 / x) if x > 0.0 else (math.nan, math.nan)
    if op == SQRT:
        if not x > 0.0:
            return (0.0, math.inf) if x == 0.0 else (math.nan, math.nan)
        root = math.sqrt(x)
        return root, 0.5 / root
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
        elif op in (ADD, SUBTRACT, MULTIPLY, DIVIDE, MINIMUM, MAXIMUM):
            top -= 1
            x, dx, y, dy = float(value[top]), float(slope[top]), float(value[top + 1]), float(slope[top + 1])
            value[top], slope[top] = binary(op, x, dx, y, dy)
        else:
            result, rate = unary(op, arg, float(value[top]))
            before = float(slope[top])
            value[top], slope[top] = result, (0.0 if before == 0.0 else rate * before)
    return float(value[0]), float(slope[0])


def junction(p: Any, u: Any) -> tuple[Any, Any]:
    """Current (A) and slope (S); p: 0, number of instructions, minimum and maximum voltage, m, then the tape."""
    if not p[2] <= u <= p[3]:
        return (math.inf if u > 0.0 else -math.inf), math.inf
    found, slope = evaluate(p, u)
    if not abs(slope) < math.inf:
        slope = evaluate(p, u + (BESIDE if u <= 0.0 else -BESIDE))[1]
        slope = slope if abs(slope) < math.inf else 1e100
    return float(p[4]) * found, float(p[4]) * max(slope, 0.0)


def by_parameters(p: Any, u: Any, out: Any) -> None:
    """Derivatives of the current with respect to p; numbers of the tape are not parameters."""
    by_count(p, junction(p, u)[0], out)


def by_count(p: Any, current: Any, out: Any) -> None:
    """Fill in the derivatives of the current of m devices: only that by m is not zero."""
    for k in range(p.size):
        out[k] = 0.0
    out[4] = current / p[4]
