"""Interpreted or compiled, the same bits: the kernels of Newton's method (see `circuitsim.engine.small.kernels`)."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

from circuitsim import certificate, engine, models
from circuitsim.engine.small.kernels import LONGEST, PATIENCE
from circuitsim.engine.small.kernels import compiled as compiled_small
from circuitsim.models import curve
from circuitsim.newton import laws, samples, seen, steps

_MODULES = (seen, steps, samples)
KERNELS = ("project", "newton_once", "newton_samples", "newton_responses")
"""Functions that `newton_kernel` is asked for."""

_work: Counter[str] = Counter()
_ready: dict[str, Callable[..., Any]] = {}


def newton_kernel(name: str, size: int) -> Callable[..., Any]:
    """The kernel ``name`` (``project``, ``newton_once`` …) for work on ``size`` devices and nodes in all."""
    ready = _ready.get(name)
    if ready is not None:
        return ready
    _work[name] += size
    if _work.total() <= PATIENCE and not _register.cache_info().currsize:
        return _plain(name)
    if _work[name] <= LONGEST and not _at_hand(name):
        return _plain(name)
    return _ready.setdefault(name, compiled(name))


def _at_hand(name: str) -> bool:
    from circuitsim._jit import cached

    return cached(compiled(name))


def load() -> None:
    """Compile or load the kernels from here on, however small the work."""
    for name in KERNELS:
        _ready[name] = compiled(name)


@cache
def compiled(name: str) -> Callable[..., Any]:
    """The compiled form of a kernel."""
    from circuitsim._jit import jit

    _register()
    return jit(fastmath=False)(_keyed(_find(name), _fingerprint()))


@cache
def _plain(name: str) -> Callable[..., Any]:
    quiet: Callable[..., Any] = np.errstate(all="ignore")(_find(name))
    return quiet


def _find(name: str) -> Callable[..., Any]:
    home = next(module for module in (laws, *_MODULES) if name in vars(module))
    function: Callable[..., Any] = getattr(home, name)
    return function


@cache
def _register() -> None:
    """Let compiled kernels call the functions they are made of."""
    from numba.extending import register_jitable

    compiled_small("solve_once")  # lets kernels call those of small circuits
    shared: list[Callable[..., Any]] = [curve.load_line, curve.point, laws.project, *laws.JUNCTIONS, *laws.CHAIN[1:]]
    for function in shared:
        register_jitable(function)
    for module in _MODULES:
        for function in vars(module).values():
            if isinstance(function, FunctionType) and function.__module__ == module.__name__:
                register_jitable(function)


def _keyed(function: Callable[..., Any], fingerprint: tuple[int, ...]) -> Callable[..., Any]:
    """A function of its own whose cached machine code is of these very sources."""

    def kernel(*arguments):
        fingerprint  # noqa: B018 a closure variable is part of the cache's key
        return function(*arguments)

    kernel.__qualname__ = kernel.__name__ = function.__name__  # a file of its own in the cache
    return kernel


def _fingerprint() -> tuple[int, ...]:
    """Times of all sources that kernels are made of."""
    folders = (Path(str(package.__file__)).parent for package in (engine, models, steps))
    files = [Path(str(certificate.__file__)), *(path for folder in folders for path in sorted(folder.rglob("*.py")))]
    return tuple(os.stat(path).st_mtime_ns for path in files)
