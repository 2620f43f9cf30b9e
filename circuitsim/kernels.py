"""Kernels: Python functions on numpy arrays, interpreted for little work and compiled for much.

Importing numba takes half a second, which a small circuit is not worth; compiling a kernel that no cache on disk has
takes seconds. A process therefore interprets each kernel until the work that it has done is worth the other form. Both
forms agree to 1e-12.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from functools import cache
from threading import Lock
from typing import Any

import numpy as np

from circuitsim.engine.small import pointers

LOADING = 2_000_000
"""Work that a process does interpreted (about half a second) before it imports numba and loads compiled kernels."""

SOON = 320_000
"""Work of one kernel before its compiled form is loaded by a process that has loaded others."""

COMPILATION = 24_000_000
"""Work that one kernel does interpreted, or is expected to do (about as long as its compilation), before it is compiled
if no cache has it."""

NOTED = 0.25
"""Fraction of `COMPILATION` after which a note recommends to compile kernels ahead."""

PRODUCT, SHORT, TERM, ITEM, UNKNOWN, NODE = 1, 8, 60, 80, 1_000, 1_200
"""Work on a product of two numbers and on one in a kernel that compiles fast; on a node, or a twentieth of a device, in
a step of Newton's method; on a node or an edge of a graph; on an unknown of a stage; on a node of a small circuit."""

MANY = 400
"""Nodes or edges beyond which algorithms for large circuits pay."""

KEPT = 31 << 20
"""Size, in bytes, of a freed array after which the C library keeps the memory of smaller ones: the maximum that glibc
honours."""

_one_thread = Lock()  # two threads that import numba at once see it half imported
_work: Counter[Callable[..., Any]] = Counter()
_ready: dict[Callable[..., Any], Callable[..., Any]] = {}  # compiled forms in use
_missed: dict[Callable[..., Any], int] = {}  # work at the last look for a kernel in the cache
_registered: set[Callable[..., Any]] = set()


def kernel(function: Callable[..., Any], size: int, cost: int = ITEM, ahead: float = 0.0) -> Callable[..., Any]:
    """The form of ``function`` to call for work on ``size`` items; ``ahead`` items are expected to follow.

    Parameters
    ----------
    function : callable
        A function that numba can compile; so are all functions of this package that it calls.
    size : int
        Number of items: nodes, edges, unknowns, products of two numbers.
    cost : float
        Work on one item, about a quarter of a microsecond interpreted.
    ahead : float
        Number of further items expected.

    Returns
    -------
    callable
        ``function`` itself, without numpy's warnings, or its compiled form.
    """
    ready = _ready.get(function)
    if ready is not None:
        return ready
    _work[function] += cost * size
    done = _work[function]
    if (done <= SOON) if _ready else (_work.total() <= LOADING):
        return plain(function)
    with _one_thread:
        if done + cost * ahead <= COMPILATION and not _at_hand(function):
            if done > NOTED * COMPILATION:
                _note_interpretation()
            return plain(function)
        return _ready.setdefault(function, compiled(function))


def count(function: Callable[..., Any], size: int, cost: int = ITEM) -> None:
    """Count work whose size is known only afterwards; `kernel` is called with size 0 before."""
    _work[function] += cost * size


def compile_at_once() -> None:
    """From now on, compile every kernel at its first call."""
    global LOADING, SOON, COMPILATION
    LOADING = SOON = COMPILATION = -1


@cache
def plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """The interpreted kernel; it returns infinities and NaN without warnings, like compiled code."""
    return np.errstate(all="ignore")(function)


@cache
def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The compiled form of a kernel, whose callees are compiled with it."""
    from numba.extending import register_jitable

    from circuitsim import _pointers
    from circuitsim._jit import jit
    from circuitsim._kernel_cache import reached

    _pointers.register(pointers.pointer, pointers.retain, pointers.kept)
    for one in reached(function)[0]:
        if one not in _registered:
            _registered.add(one)
            register_jitable(no_cfunc_wrapper=True, no_cpython_wrapper=True)(one)  # kernels alone call it
    made: Callable[..., Any] = jit(fastmath=False)(function)
    return made


def _at_hand(function: Callable[..., Any]) -> bool:
    """Whether compiled code of a kernel is in this process or in the cache, which is searched each time the work has
    doubled."""
    from circuitsim._jit import cached

    if _work[function] < 2 * _missed.get(function, 0):
        return False
    found = cached(compiled(function))
    if not found:
        _missed[function] = _work[function]
    return found


@cache
def _note_interpretation() -> None:
    """Recommend compilation, once per process."""
    logging.getLogger("circuitsim.compilation").warning(
        "note: running uncompiled code; run circuitsim warm-up once (about two minutes) to speed this up"
    )


@cache
def keep_memory() -> None:
    """Let this process reuse the memory of freed arrays of up to 31 MiB.

    glibc returns arrays of more than 128 kiB to the system until one of them has been freed; from then on, arrays up to
    its size reuse memory. Without this call, page faults take a third of a solve of tens of thousands of nodes (a test
    counts them). The array allocated here is never touched. Other C libraries are not affected.
    """
    np.empty(KEPT, np.uint8)
