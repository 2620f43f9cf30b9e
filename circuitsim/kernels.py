"""Loops over arrays that run as Python on small circuits and compiled on large ones, with the same bits.

A kernel here is an ordinary Python function on numpy arrays. Small circuits call it directly, so that they never wait
for numba; beyond `COMPILED` nodes or edges, or after `OFTEN` in small calls, its compiled form is loaded from the cache
on disk. Where no cache has it yet, it is compiled once a process has given it more than `INTERPRETED`. Both forms agree
to the last bit (nothing is contracted; a test compares).
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
"""A freed array of so many bytes, the most that counts, tells the C library to keep what smaller ones give back."""

COMPILED = 400
"""Number of nodes or edges beyond which loading compiled kernels (half a second) is cheaper than interpreting."""

INTERPRETED = 300_000
"""Items that a process hands to one kernel interpreted (about as long as a compilation) before it is compiled."""

OFTEN = 100_000
"""Items of small calls of one kernel after which loading its compiled form is cheaper than interpreting."""

SOON = 4_000
"""The same where numba is loaded already."""

_patience = INTERPRETED
_items: Counter[Callable[..., Any]] = Counter()
_loaded: set[Callable[..., Any]] = set()


def kernel(function: Callable[..., Any], size: int, bitwise_stable: bool = False) -> Callable[..., Any]:
    """``function`` itself for few items, its compiled form for many: see above.

    The compiled form of a ``bitwise_stable`` kernel, whose two forms agree to the last bit, serves few items too, once
    others are loaded, or after many calls.
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
    """Compile, from here on, every kernel of more than `COMPILED` items at its first use."""
    global _patience
    _patience = 0


def wanted(function: Callable[..., Any], size: int) -> bool:
    """Whether `kernel` looks for the compiled form of a kernel that is ``bitwise_stable``."""
    return size > COMPILED or loaded() or _items[function] + size > _often()


def _often() -> int:
    return SOON if "numba" in sys.modules else OFTEN


def loaded() -> bool:
    """Whether this process has compiled kernels, so that the next one comes at once."""
    return bool(_loaded)


@cache
def register() -> None:
    """Let compiled kernels call the graph primitives."""
    register_module(_graphs)


@cache
def register_module(module: ModuleType) -> None:
    """Let compiled kernels call the functions of a module, which stay ordinary Python."""
    from numba.extending import register_jitable

    for function in vars(module).values():
        if isinstance(function, FunctionType) and function.__module__ == module.__name__:
            register_jitable(function)


@cache
def _at_hand(function: Callable[..., Any]) -> bool:
    """Whether a cache on disk has the kernel, as of the first time this is asked."""
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
    """Let this process keep the memory of freed arrays of up to 31 MiB for the next ones.

    glibc hands arrays of more than 128 kiB back to the system until one of them is freed: from then on arrays up to its
    size come from memory that is there already. Without it a third of a solve of tens of thousands of nodes goes into
    pages that are given back and asked for again (a test counts them). The array made here is never touched; with other
    C libraries this changes nothing.
    """
    np.empty(KEPT, np.uint8)
