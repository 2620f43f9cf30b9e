"""One place that decides how kernels are compiled.

Importing this module imports numba; only kernel modules do so, so that small circuits never pay for it.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

import numba
from numba.core import config, event, types
from numba.extending import intrinsic

try:
    from circuitsim._compile import Kernel
except ImportError:  # another numba than setup.cfg asks for: its own compilation, which takes longer
    Kernel = None  # type: ignore[assignment, misc]

F = TypeVar("F", bound=Callable[..., Any])

logger = logging.getLogger("circuitsim.compilation")
"""Says once per process, as a warning (on stderr unless a program decides otherwise), that compilation begins."""

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
    """Compile a kernel with the defaults of circuitsim, cached on disk where a cache directory can be written.

    Parameters
    ----------
    **options
        Of `numba.njit`; they override `DEFAULTS` (for example ``parallel=True``). With ``unroll=True``, loops are
        unrolled: for long loops over dense arrays; compilation takes longer.

    Returns
    -------
    callable
        A decorator. The plain Python function stays reachable as ``.py_func``.

    Notes
    -----
    Numba looks for a writable cache beside the source file, then in the user's cache directory, and refuses to
    decorate when it finds neither (read-only container without a home). Such a place compiles anew in each process.
    """
    settings = {**DEFAULTS, **options}
    unroll = settings.pop("unroll", False)

    def decorate(function: F) -> F:
        if getattr(config, "DISABLE_JIT", False):
            return function
        if Kernel is None or "inline" in settings:  # numba's own pipeline inlines before types are known
            kernel = numba.njit(**settings)(function)
        else:
            kernel = Kernel(function, {**settings, "nopython": True, "boundscheck": None}, unroll=unroll)
        _kernels.add(kernel)
        _keep(kernel)
        return kernel

    return decorate


def _keep(kernel: Any) -> None:
    """Keep what is compiled on disk, if there is a place for it."""
    try:
        kernel.enable_caching()
    except RuntimeError as error:
        if "cannot cache" not in str(error):
            raise


def cached(kernel: Any) -> bool:
    """Whether compiled code of a kernel, for some types of arguments, is at hand: in this process or on disk."""
    if getattr(config, "DISABLE_JIT", False) or kernel.signatures:
        return True
    try:
        return bool(kernel._cache.holds())
    except (AttributeError, OSError):  # no cache on disk, or one that cannot be read
        return False


class _Announcement(event.Listener):
    """Says that compilation begins, once per process."""

    def __init__(self) -> None:
        self._said = False

    def on_start(self, event: Any) -> None:
        """A function is about to be compiled, perhaps not one of ours."""
        kernel = event.data["dispatcher"]
        if not self._said and kernel in _kernels:
            self._said = True
            logger.warning(announcement(kernel.stats.cache_path is not None))

    def on_end(self, event: Any) -> None:
        """Nothing to say."""


def announcement(kept: bool) -> str:
    """What is said when compilation begins; where nothing can be kept, also how to change that."""
    if kept:
        return "note: compiling kernels once (circuitsim warm-up does it ahead)"
    return "note: compiling kernels in every process, because none of its folders can be written: set NUMBA_CACHE_DIR"


event.register("numba:compile", _Announcement())


def with_threads(threads: int, kernel: Callable[..., Any], *arguments: Any) -> Any:
    """Call a parallel kernel with at most so many of the threads numba may use now, and put the setting back."""
    before = numba.get_num_threads()
    numba.set_num_threads(max(1, min(threads, before)))
    try:
        return kernel(*arguments)
    finally:
        numba.set_num_threads(before)


@intrinsic
def fma(typing_context: Any, a: Any, b: Any, c: Any) -> Any:
    """a · b + c of doubles in one rounding, whatever fast-math a kernel has."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return types.float64(types.float64, types.float64, types.float64), generate
