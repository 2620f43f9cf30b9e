"""Loops over arrays that run as they stand on small circuits and compiled on large ones.

A kernel here is an ordinary Python function on numpy arrays. Small circuits call it directly, so that they never wait
for numba; beyond `COMPILED` nodes or edges it is compiled (cached on disk). The size of the circuit alone decides, so
the same circuit always takes the same way and gives the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

COMPILED = 400
"""Number of nodes or edges beyond which loading compiled kernels (half a second) is cheaper than interpreting."""


def kernel(function: Callable[..., Any], size: int, exact: bool = False) -> Callable[..., Any]:
    """``function`` itself for few items, its compiled form for many.

    ``exact`` kernels round every operation on its own, as error-free transformations need it: no a·b + c in one.
    """
    return function if size <= COMPILED else _compiled(function, exact)


@cache
def _compiled(function: Callable[..., Any], exact: bool) -> Callable[..., Any]:
    from circuitsim._jit import jit

    return jit(fastmath=False)(function) if exact else jit()(function)
