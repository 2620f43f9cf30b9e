"""Interpreted or compiled, the same bits: which form of the kernels of small circuits a call gets.

Importing numba and the compiled kernels takes half a second, which a single small circuit is not worth; compiling them,
where no cache has them yet, ten to thirty. So a process runs them interpreted until it has done enough of it. The
arithmetic is the same to the last bit (no contraction, no reassociation; a test compares), so only the time
differs.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any

import numpy as np

from circuitsim import _graphs, certificate
from circuitsim.engine.kernels import MODULES
from circuitsim.engine.small import (
    active_set,
    along_tree,
    branches,
    currents,
    lanes,
    linear,
    loops,
    order,
    plan,
    pointers,
    ports,
    proof,
    sample_proof,
    samples,
    single,
    spanning,
    stubs,
    workspace,
)
from circuitsim.kernels import compile_all

PATIENCE = 400
"""Nodes that a process plans or solves interpreted (about half a second) before it loads compiled kernels."""

LONGEST = 20_000
"""Nodes that it hands to one kernel interpreted (some seconds) before it compiles what no cache has."""

KERNELS = (
    "prepare", "solve_once", "share_once", "refine_once", "carry_away", "worst_violations", "plan", "ports", "stable",
    "solve_samples", "solve_by_ports", "respond_samples", "respond_by_ports",
    "spanning_tree", "prove_samples", "inject_residuals", "write_samples",
)  # fmt: skip
"""Functions that `small_kernel` is asked for."""

_MODULES = (
    order, plan, workspace, linear, active_set, stubs, currents, spanning, proof, branches, ports, samples, loops,
    single, along_tree, sample_proof,
)  # fmt: skip

MEASURES = (
    "update_maximum", "current_scale", "net_currents", "branch_violations", "worst_violations",
)  # fmt: skip
"""Functions of `circuitsim.certificate` that kernels call."""

_nodes: Counter[str] = Counter()
_ready: dict[str, Callable[..., Any]] = {}


def small_kernel(name: str, size: int) -> Callable[..., Any]:
    """The kernel ``name`` (``plan``, or one of `circuitsim.engine.small.samples`) for work on ``size`` nodes in all."""
    ready = _ready.get(name)
    if ready is not None:
        return ready
    _nodes[name] += size
    if _nodes.total() <= PATIENCE and not _register.cache_info().currsize:
        return _plain(name)
    if _nodes[name] <= LONGEST and not _at_hand(name):
        return _plain(name)
    return _ready.setdefault(name, compiled(name))


def _at_hand(name: str) -> bool:
    """Whether compiled code of a kernel is in this process or in a cache."""
    from circuitsim._jit import cached

    return cached(compiled(name))


def load() -> None:
    """Compile or load kernels from here on, however small the work."""
    compile_all()
    for name in KERNELS:
        _ready[name] = compiled(name)


@cache
def compiled(name: str) -> Callable[..., Any]:
    """The compiled form of a kernel; the functions that it calls are compiled with it."""
    from circuitsim._jit import jit

    _register()
    return jit(fastmath=False)(_keyed(_find(name), _fingerprint()))


@cache
def _plain(name: str) -> Callable[..., Any]:
    """The kernel as it stands; infinities and divisions by zero are its verdicts' business, as in compiled code."""
    quiet: Callable[..., Any] = np.errstate(all="ignore")(_find(name))
    return quiet


def _find(name: str) -> Callable[..., Any]:
    homes = (plan, ports, samples, loops, single, along_tree, sample_proof, certificate)
    home = next(module for module in homes if name in vars(module))
    function: Callable[..., Any] = getattr(home, name)
    return function


@cache
def _register() -> None:
    """Let compiled kernels call the functions they are made of, which stay ordinary Python."""
    from numba.extending import overload, register_jitable

    from circuitsim import _lanes, _pointers
    from circuitsim._jit import uncounted
    from circuitsim.engine.kernels import register

    register()  # graph primitives, steps, arithmetic
    overload(pointers.kept)(lambda array: lambda array: uncounted(array))  # type: ignore[call-arg]
    _pointers.register(pointers.pointer, pointers.retain)
    _lanes.register(lanes)
    for module in _MODULES:
        for function in vars(module).values():
            own = isinstance(function, FunctionType) and function.__module__ == module.__name__
            if own:
                register_jitable(function)
    for name in MEASURES:
        register_jitable(getattr(certificate, name))


def _keyed(function: Callable[..., Any], fingerprint: tuple[int, ...]) -> Callable[..., Any]:
    """A function of its own whose cached machine code is of these very sources (numba only looks at one file)."""

    def kernel(*arguments):
        fingerprint  # noqa: B018 a closure variable is part of the cache's key
        return function(*arguments)

    kernel.__qualname__ = kernel.__name__ = function.__name__  # a file of its own in the cache
    return kernel


def _fingerprint() -> tuple[int, ...]:
    sources = (*_MODULES, lanes, certificate, *MODULES, _graphs)
    return tuple(os.stat(str(module.__file__)).st_mtime_ns for module in sources)
