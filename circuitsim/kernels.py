"""Loops over arrays that run as they stand on small circuits and compiled on large ones.

A kernel here is an ordinary Python function on numpy arrays. Small circuits call it directly, so that they never wait
for numba; beyond `COMPILED` nodes or edges it is compiled (cached on disk). The size of the circuit alone decides, so
the same circuit always takes the same way and gives the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

KEPT = 31 << 20
"""A freed array of so many bytes, the most that counts, tells the C library to keep what smaller ones give back."""

COMPILED = 400
"""Number of nodes or edges beyond which loading compiled kernels (half a second) is cheaper than interpreting."""


def kernel(function: Callable[..., Any], size: int, alike: bool = False) -> Callable[..., Any]:
    """``function`` itself for few items, its compiled form for many.

    ``alike`` kernels have the same bits in both forms (no products at all): once others are compiled, they always are.
    """
    return _compiled(function) if size > COMPILED or (alike and loaded()) else function


def loaded() -> bool:
    """Whether this process has compiled kernels, so that the next one comes at once."""
    return _compiled.cache_info().currsize > 0


@cache
def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    from circuitsim._jit import jit

    compiled: Callable[..., Any] = jit()(function)
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
