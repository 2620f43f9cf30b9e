"""The loops of the engine on plain arrays: interpreted on small circuits, compiled on large ones, with equal bits.

A kernel of the engine may call the functions of `MODULES`; otherwise see `circuitsim.kernels`.
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
    """``function`` itself for few items, its compiled form for many (`circuitsim.kernels.kernel`)."""
    if kernels.wanted(function, size):
        register()
    return kernels.kernel(function, size, bitwise_stable=True)


@cache
def register() -> None:
    """Let compiled kernels call the functions of `MODULES`."""
    kernels.register()
    for module in MODULES:
        kernels.register_module(module)
