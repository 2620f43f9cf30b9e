"""Whether the large kernels of one job run interpreted or compiled.

Importing numba and compiled kernels takes half a second, which a single small circuit is not worth; compiling them, if
no cache has them, ten to thirty. A process therefore interprets them until the work justifies compiled code. Both forms
agree to 1e-12.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from types import FunctionType, MappingProxyType, ModuleType
from typing import Any

import numpy as np

PATIENCE = 400
"""Nodes that a process plans or solves interpreted (about half a second) before it loads compiled kernels."""

LONGEST = 20_000
"""Nodes that a process gives to one interpreted kernel (some seconds) before it compiles a kernel that no cache has."""

NOTED = 0.25
"""Fraction of `LONGEST` (a second or more) after which a note recommends compilation."""


class KernelFamily:
    """The kernels of one job.

    Parameters
    ----------
    names : tuple of str
        The available kernels.
    homes : tuple of module
        Where they are defined; the first definition of a name applies.
    register : callable
        Makes the functions that the kernels call available to compiled code.
    sources : callable
        Paths of the source files of these functions, part of the cache key.
    patience, longest : int
        Limits like `PATIENCE` and `LONGEST`, in the units of work that calls state.
    soon : mapping of str to int, optional
        ``longest`` of kernels that compile faster than most.
    """

    def __init__(
        self,
        names: tuple[str, ...],
        homes: tuple[ModuleType, ...],
        register: Callable[[], None],
        sources: Callable[[], Iterable[Path]],
        patience: int = PATIENCE,
        longest: int = LONGEST,
        soon: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self._patience, self._longest, self._soon = patience, longest, soon
        self.names, self._homes, self._register, self._sources = names, homes, register, sources
        self._work: Counter[str] = Counter()
        self._missed: dict[str, int] = {}  # work at the last look for a kernel in the cache
        self._ready: dict[str, Callable[..., Any]] = {}
        self._compiled: dict[str, Callable[..., Any]] = {}
        self._plain: dict[str, Callable[..., Any]] = {}

    def __call__(self, name: str, size: int, ahead: float = 0.0) -> Callable[..., Any]:
        """The kernel ``name`` for work on ``size`` nodes, devices or other units of the family; ``ahead`` units are
        expected to follow."""
        ready = self._ready.get(name)
        if ready is not None:
            return ready
        self._work[name] += size
        if self._work.total() <= self._patience and not self._compiled:
            return self.plain(name)
        longest = self._soon.get(name, self._longest)
        if self._work[name] + ahead <= longest and not self._at_hand(name):
            if self._work[name] > NOTED * self._longest:
                _note_interpretation()
            return self.plain(name)
        return self._ready.setdefault(name, self.compiled(name))

    def count(self, name: str, size: int) -> None:
        """Count work whose size is known only afterwards; the kernel is then requested with size 0."""
        self._work[name] += size

    def load(self) -> None:
        """Compile or load all kernels now."""
        for name in self.names:
            self._ready[name] = self.compiled(name)

    def compiled(self, name: str) -> Callable[..., Any]:
        """The compiled form of a kernel; the functions that it calls are compiled with it."""
        from circuitsim._jit import jit

        if not self._compiled:
            self._register()
        if name not in self._compiled:
            self._compiled[name] = jit(fastmath=False)(_keyed(self._find(name), tuple(self._sources())))
        return self._compiled[name]

    def plain(self, name: str) -> Callable[..., Any]:
        """The interpreted kernel; it returns infinities and NaN without warnings, like compiled code."""
        if name not in self._plain:
            self._plain[name] = np.errstate(all="ignore")(self._find(name))
        return self._plain[name]

    def _at_hand(self, name: str) -> bool:
        """Whether compiled code of a kernel is in this process or in the cache, which is searched each time the work
        has doubled."""
        from circuitsim._jit import cached

        if self._work[name] < 2 * self._missed.get(name, 0):
            return False
        found = cached(self.compiled(name))
        if not found:
            self._missed[name] = self._work[name]
        return found

    def _find(self, name: str) -> Callable[..., Any]:
        home = next(module for module in self._homes if name in vars(module))
        function: Callable[..., Any] = getattr(home, name)
        return function


@cache
def _note_interpretation() -> None:
    """Recommend compilation, once per process."""
    logging.getLogger("circuitsim.compilation").warning(
        "note: running uncompiled code; run circuitsim warm-up once (about two minutes) to speed this up"
    )


def _keyed(function: Callable[..., Any], sources: tuple[Path, ...]) -> Callable[..., Any]:
    """A copy of a function whose cache key includes these sources."""
    kernel = FunctionType(function.__code__, function.__globals__, function.__name__)
    kernel.__dict__["sources"] = sources
    return kernel


__all__ = ["LONGEST", "NOTED", "PATIENCE", "KernelFamily"]
