"""Interpreted or compiled, the same bits: which form of the compact kernels a call gets.

Importing numba and the compiled kernels takes half a second, which a single small circuit is not worth. So small work
runs interpreted until a process has done enough of it, or has loaded the kernels for something else. The arithmetic is
the same to the last bit (no contraction, no reassociation; a test compares), so nobody can tell but by the clock.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any

import numpy as np

from circuitsim import certificate
from circuitsim.compact import linear, loops, order, plan, ports, samples, settle, single, workspace

PATIENCE = 400
"""Nodes that a process solves interpreted (about half a second) before it loads the compiled kernels."""

_MODULES = (order, plan, workspace, linear, settle, ports, samples, loops, single)

APART = ("factorise", "settle_ports", "solve_samples", "least_norm")
"""Functions that take so long, compared to what a call costs, that inlining them would only take a compiler's time."""

_done = 0
_loaded = False


def compact(name: str, size: int) -> Callable[..., Any]:
    """The kernel ``name`` (``plan``, or one of `circuitsim.compact.samples`) for work on ``size`` nodes in all."""
    global _done
    if not _loaded:
        _done += size
        if _done <= PATIENCE:
            return _plain(name)
    return compiled(name)


def load() -> None:
    """Load the compiled kernels now: from here on, even the first small solve is fast."""
    compiled("prepare")
    compiled("solve_once")


@cache
def compiled(name: str) -> Callable[..., Any]:
    """The compiled form of a kernel; the functions that it calls are compiled with it."""
    global _loaded
    from circuitsim._jit import jit

    if not _loaded:
        _register()
        _loaded = True
    return jit(fastmath=False)(_keyed(_find(name), _fingerprint()))


@cache
def _plain(name: str) -> Callable[..., Any]:
    """The kernel as it stands; infinities and divisions by zero are its verdicts' business, as in compiled code."""
    quiet: Callable[..., Any] = np.errstate(all="ignore")(_find(name))
    return quiet


def _find(name: str) -> Callable[..., Any]:
    home = next(module for module in (plan, ports, samples, loops, single) if name in vars(module))
    function: Callable[..., Any] = getattr(home, name)
    return function


def _register() -> None:
    """Let compiled kernels call the functions they are made of, which stay ordinary Python."""
    from numba.extending import overload, register_jitable

    from circuitsim._jit import uncounted

    overload(workspace.kept)(lambda array: lambda array: uncounted(array))  # type: ignore[call-arg]
    for module in _MODULES:
        for function in vars(module).values():
            own = isinstance(function, FunctionType) and function.__module__ == module.__name__
            if own and function is not workspace.kept:
                # A plan and a workspace are fifty arrays: handed to a function that is not inlined, they are copied.
                register_jitable(forceinline=module not in (order, plan) and function.__name__ not in APART)(function)
    register_jitable(certificate.worst_violations)
    register_jitable(certificate.worse)


def _keyed(function: Callable[..., Any], fingerprint: tuple[int, ...]) -> Callable[..., Any]:
    """A function of its own whose cached machine code is of these very sources (numba only looks at one file)."""

    def kernel(*arguments):
        fingerprint  # noqa: B018 a closure variable is part of the cache's key
        return function(*arguments)

    return kernel


def _fingerprint() -> tuple[int, ...]:
    return tuple(os.stat(str(module.__file__)).st_mtime_ns for module in (*_MODULES, certificate))
