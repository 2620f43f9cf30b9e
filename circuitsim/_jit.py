"""How kernels are compiled.

Importing this module imports numba; only kernel modules do so, to keep small circuits fast.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

import numba
from numba import types
from numba.core import config, event
from numba.extending import intrinsic

TESTED = (0, 67), (0, 68)
"""Versions of numba whose internals `circuitsim._compile` knows; others compile kernels their own, slower way."""

if numba.version_info.short in TESTED:
    from circuitsim._compile import Kernel
else:
    Kernel = None  # type: ignore[assignment, misc]

F = TypeVar("F", bound=Callable[..., Any])

logger = logging.getLogger("circuitsim.compilation")
"""Warns once per process (on stderr by default) that compilation begins."""

#: What every kernel is compiled with. No fast-math but contraction (a·b + c in one rounding): reassociation or
#: "no infinities" would break the sign and range arguments the kernels rest on. No entry for callers in C.
DEFAULTS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"contract"},
    "no_cfunc_wrapper": True,
}

_kernels: weakref.WeakSet[Any] = weakref.WeakSet()


def jit(**options: Any) -> Callable[[F], F]:
    """Compile a kernel with circuitsim's defaults and cache it on disk if a cache directory is writable.

    Parameters
    ----------
    **options
        Of `numba.njit`; they override `DEFAULTS` (for example ``parallel=True``).

    Returns
    -------
    callable
        A decorator. The plain Python function is available as ``.py_func``.

    Notes
    -----
    Numba looks for a writable cache beside the source file, then in the user's cache directory. Without either (a
    read-only container without a home), each process compiles anew.
    """
    settings = {**DEFAULTS, **options}

    def decorate(function: F) -> F:
        if getattr(config, "DISABLE_JIT", False):
            return function
        if Kernel is None or "inline" in settings:  # numba's own pipeline inlines before typing
            kernel = numba.njit(**settings)(function)
        else:
            kernel = Kernel(function, {**settings, "nopython": True, "boundscheck": None})
        _kernels.add(kernel)
        _keep(kernel)
        return kernel

    return decorate


def _keep(kernel: Any) -> None:
    """Cache compiled code on disk if a directory is writable."""
    try:
        kernel.enable_caching()
    except RuntimeError as error:
        if "cannot cache" not in str(error):
            raise


def cached(kernel: Any) -> bool:
    """Whether compiled code of a kernel, for some argument types, is in this process or on disk."""
    if getattr(config, "DISABLE_JIT", False) or kernel.signatures:
        return True
    try:
        return bool(kernel._cache.holds())
    except (AttributeError, OSError):  # no cache on disk, or an unreadable one
        return False


class _Announcement(event.Listener):
    """Announces compilation once per process."""

    def __init__(self) -> None:
        self._said = False

    def on_start(self, event: Any) -> None:
        """Called before any function is compiled, by this package or another."""
        kernel = event.data["dispatcher"]
        if not self._said and kernel in _kernels:
            self._said = True
            logger.warning(announcement(kernel.stats.cache_path is not None))

    def on_end(self, event: Any) -> None:
        """Do nothing."""


def announcement(kept: bool) -> str:
    """The message when compilation begins; if there is no cache, also how to set one."""
    if kept:
        return "note: compiling kernels once (circuitsim warm-up does it ahead)"
    return "note: compiling kernels in every process, because none of its folders can be written: set NUMBA_CACHE_DIR"


event.register("numba:compile", _Announcement())


def with_threads(threads: int, kernel: Callable[..., Any], *arguments: Any) -> Any:
    """Call a parallel kernel with a maximum number of numba's threads, then restore the setting."""
    before = numba.get_num_threads()
    numba.set_num_threads(max(1, min(threads, before)))
    try:
        return kernel(*arguments)
    finally:
        numba.set_num_threads(before)


@intrinsic
def fma(typing_context: Any, a: Any, b: Any, c: Any) -> Any:
    """a · b + c of doubles in one rounding, whatever the kernel's fast-math flags."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return types.float64(types.float64, types.float64, types.float64), generate
