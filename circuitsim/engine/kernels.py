"""Interpreted or compiled, with equal bits: the loops of the engine on plain arrays.

A kernel is an ordinary Python function on numpy arrays and calls only functions of `MODULES`. Small circuits run it
interpreted, larger ones compiled; no contraction and no reassociation, so both forms give the same bits (tested).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any

from circuitsim.engine import double_double, tree
from circuitsim.kernels import COMPILED

MODULES = (double_double, tree)
"""Modules whose functions a compiled kernel may call."""


def kernel(function: Callable[..., Any], size: int) -> Callable[..., Any]:
    """``function`` itself for work on up to `COMPILED` items, if none was compiled before; else its compiled form."""
    return function if size <= COMPILED and not _compiled.cache_info().currsize else _compiled(function)


@cache
def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    from circuitsim._jit import jit

    _register()
    compiled: Callable[..., Any] = jit(fastmath=False)(function)
    return compiled


@cache
def _register() -> None:
    """Let compiled kernels call the functions of `MODULES`."""
    from numba.extending import register_jitable

    for module in MODULES:
        for function in vars(module).values():
            if isinstance(function, FunctionType) and function.__module__ == module.__name__:
                register_jitable(function)
