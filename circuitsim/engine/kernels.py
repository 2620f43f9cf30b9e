"""Dispatch of the engine's kernels: interpreted for small circuits, compiled for large ones, with equal bits.

Kernels of the engine may call the functions of `MODULES`; see also `circuitsim.kernels`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from circuitsim import kernels
from circuitsim.engine import double_double, potentials, steps, tree

MODULES = (double_double, tree, steps, potentials)
"""Modules whose functions a compiled kernel may call."""


def kernel(function: Callable[..., Any], size: int) -> Callable[..., Any]:
    """``function`` itself for small sizes, its compiled form for large ones (`circuitsim.kernels.kernel`)."""
    if kernels.wanted(function, size):
        register()
    return kernels.kernel(function, size, bitwise_stable=True)


@cache
def register() -> None:
    """Register the functions of `MODULES` for compiled kernels."""
    kernels.register()
    for module in MODULES:
        kernels.register_module(module)
