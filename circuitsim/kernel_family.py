"""Interpreted or compiled, the same bits: which form of the large kernels of one job a call gets.

Importing numba and compiled kernels takes half a second, which a single small circuit is not worth; compiling them,
where no cache has them yet, ten to thirty. So a process runs them interpreted until it has done enough of it. The
arithmetic is the same to the last bit (no contraction, no reassociation; a test compares), so only the time
differs.
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
"""Nodes that it hands to one kernel interpreted (some seconds) before it compiles what no cache has."""

NOTED = 0.25
"""Fraction of it (a second or more) after which a note says how compiled kernels are had."""


class KernelFamily:
    """The kernels of one job.

    Parameters
    ----------
    names : tuple of str
        The available kernels.
    homes : tuple of module
        Where they are defined; the first that has a name counts.
    register : callable
        Lets compiled kernels call the functions that they are made of.
    sources : callable
        Paths of all files that these functions come from: machine code in the cache is of these very files.
    patience, longest : int
        Work, in the units of calls, as `PATIENCE` and `LONGEST` are in nodes.
    soon : mapping of str to int, optional
        The same as ``longest``, of kernels that take less time to compile than most.
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
        self._missed: dict[str, int] = {}  # work when no cache had a kernel
        self._ready: dict[str, Callable[..., Any]] = {}
        self._compiled: dict[str, Callable[..., Any]] = {}
        self._plain: dict[str, Callable[..., Any]] = {}

    def __call__(self, name: str, size: int, ahead: float = 0.0) -> Callable[..., Any]:
        """The kernel ``name`` for work on ``size`` nodes or devices in all, or of so many units of the family; as much
        as ``ahead`` is expected to follow."""
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
        """Count work that only what was done could tell; then the kernel is asked for with a size of 0."""
        self._work[name] += size

    def load(self) -> None:
        """Compile or load the kernels from here on, however small the work."""
        for name in self.names:
            self._ready[name] = self.compiled(name)

    def compiled(self, name: str) -> Callable[..., Any]:
        """The compiled form of a kernel; the functions that it calls are compiled with it."""
        from circuitsim._jit import jit

        if not self._compiled:
            self._register()
        if name not in self._compiled:
            self._compiled[name] = jit(fastmath=False, unroll=True)(_keyed(self._find(name), tuple(self._sources())))
        return self._compiled[name]

    def plain(self, name: str) -> Callable[..., Any]:
        """The kernel as Python; infinities and divisions by zero are part of its results, as in compiled code."""
        if name not in self._plain:
            self._plain[name] = np.errstate(all="ignore")(self._find(name))
        return self._plain[name]

    def _at_hand(self, name: str) -> bool:
        """Whether compiled code of a kernel is in this process or in a cache, where others may put it: looked for again
        when the work so far has doubled."""
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
    """Say once per process that interpreted kernels take long, and what makes the next run fast."""
    logging.getLogger("circuitsim.compilation").warning(
        "note: running uncompiled code; run circuitsim warm-up once (about two minutes) to speed this up"
    )


def _keyed(function: Callable[..., Any], sources: tuple[Path, ...]) -> Callable[..., Any]:
    """A copy of a function whose cached machine code is of these very sources, beside those of its own folder."""
    kernel = FunctionType(function.__code__, function.__globals__, function.__name__)
    kernel.__dict__["sources"] = sources
    return kernel


__all__ = ["LONGEST", "NOTED", "PATIENCE", "KernelFamily"]
