"""Loops over arrays, interpreted for small circuits and compiled for large ones.

A kernel is a Python function on numpy arrays. Small circuits call it directly and never wait for numba; beyond
`COMPILED` nodes or edges, or after `OFTEN` in small calls, its compiled form is loaded from the cache on disk. A kernel
that no cache has is compiled once a process has given it more than `INTERPRETED` items. Both forms agree to 1e-12.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from functools import cache
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from circuitsim import _graphs

KEPT = 31 << 20
"""Size, in bytes, of a freed array after which the C library keeps the memory of smaller ones: the maximum that glibc
honours."""

COMPILED = 400
"""Number of nodes or edges beyond which loading compiled kernels (half a second) is cheaper than interpreting."""

INTERPRETED = 300_000
"""Items that a process gives to one interpreted kernel (about as long as a compilation) before it is compiled."""

OFTEN = 100_000
"""Items of small calls of one kernel after which loading its compiled form is cheaper than interpreting."""

SOON = 4_000
"""`OFTEN` if numba is loaded already."""

_patience = INTERPRETED
_items: Counter[Callable[..., Any]] = Counter()
_loaded: set[Callable[..., Any]] = set()


def kernel(function: Callable[..., Any], size: int, bitwise_stable: bool = False) -> Callable[..., Any]:
    """``function`` itself for few items, its compiled form for many.

    A ``bitwise_stable`` kernel is also compiled for few items, after many calls or once other kernels are loaded.
    """
    if size <= COMPILED and not bitwise_stable:
        return function
    compiles = wanted(function, size)
    _items[function] += size
    if not compiles:
        return function
    if not (_items[function] > _patience or _at_hand(function)):
        return function
    _loaded.add(function)
    return _compiled(function)


def compile_all() -> None:
    """From now on, compile every kernel of more than `COMPILED` items at its first use."""
    global _patience
    _patience = 0


def wanted(function: Callable[..., Any], size: int) -> bool:
    """Whether `kernel` looks for the compiled form of a ``bitwise_stable`` kernel."""
    return size > COMPILED or loaded() or _items[function] + size > _often()


def _often() -> int:
    return SOON if "numba" in sys.modules else OFTEN


def loaded() -> bool:
    """Whether this process has loaded compiled kernels."""
    return bool(_loaded)


@cache
def register() -> None:
    """Let compiled kernels call the graph primitives."""
    register_module(_graphs)


@cache
def register_module(module: ModuleType) -> None:
    """Let compiled kernels call the functions of a module, which remain ordinary Python."""
    from numba.extending import register_jitable

    for function in vars(module).values():
        if isinstance(function, FunctionType) and function.__module__ == module.__name__:
            register_jitable(function)


@cache
def _at_hand(function: Callable[..., Any]) -> bool:
    """Whether the cache on disk had the kernel at the first call."""
    from circuitsim._jit import cached

    return cached(_compiled(function))


@cache
def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    from circuitsim._jit import jit

    register()
    register_module(sys.modules[function.__module__])
    compiled: Callable[..., Any] = jit(fastmath=False)(function)
    return compiled


@cache
def keep_memory() -> None:
    """Let this process reuse the memory of freed arrays of up to 31 MiB.

    glibc returns arrays of more than 128 kiB to the system until one of them has been freed; from then on, arrays up to
    its size reuse memory. Without this call, page faults take a third of a solve of tens of thousands of nodes (a test
    counts them). The array allocated here is never touched. Other C libraries are not affected.
    """
    np.empty(KEPT, np.uint8)
