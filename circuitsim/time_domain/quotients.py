"""Division of real and complex numbers to the same bits in interpreted and compiled kernels."""

from __future__ import annotations


def quotient(a, b):
    """a / b. Compiled, complex numbers are divided as by numpy (`smith`); numba rounds elsewhere."""
    return a / b


def smith(a, b):
    """The quotient of complex numbers by Smith's method (1962), with the reciprocal of the denominator."""
    if abs(b.real) >= abs(b.imag):
        ratio = b.imag / b.real
        scale = 1.0 / (b.real + b.imag * ratio)
        return complex((a.real + a.imag * ratio) * scale, (a.imag - a.real * ratio) * scale)
    ratio = b.real / b.imag
    scale = 1.0 / (b.imag + b.real * ratio)
    return complex((a.real * ratio + a.imag) * scale, (a.imag * ratio - a.real) * scale)


def register() -> None:
    """Let compiled kernels call `quotient`."""
    from numba.core import types
    from numba.extending import overload, register_jitable

    register_jitable(smith)

    @overload(quotient)
    def divide(a, b):
        if isinstance(a, types.Complex) or isinstance(b, types.Complex):
            return lambda a, b: smith(a, b)
        return lambda a, b: a / b


__all__ = ["quotient", "register", "smith"]
