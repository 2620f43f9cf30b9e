"""One place that decides how kernels are compiled.

Importing this module imports numba; only kernel modules do so, so that small circuits never pay for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])

#: What every kernel is compiled with. No fast-math but contraction (a·b + c in one rounding): reassociation or
#: "no infinities" would break the sign and range arguments the kernels rest on.
DEFAULTS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}}


def jit(**options: Any) -> Callable[[F], F]:
    """Compile a kernel with the house defaults, cached on disk where a cache directory can be written.

    Parameters
    ----------
    **options
        Handed to `numba.njit`; they override `DEFAULTS` (for example ``parallel=True``).

    Returns
    -------
    callable
        A decorator. The plain Python function stays reachable as ``.py_func``.

    Notes
    -----
    Numba looks for a writable cache beside the source file, then in the user's cache directory, and refuses to
    decorate when it finds neither (read-only container without a home). Such a place compiles anew in each process.
    """
    settings = {**DEFAULTS, "cache": True, **options}

    def decorate(function: F) -> F:
        try:
            return numba.njit(**settings)(function)
        except RuntimeError as error:
            if "cannot cache" not in str(error):
                raise
            return numba.njit(**{**settings, "cache": False})(function)

    return decorate


def with_threads(threads: int, kernel: Callable[..., Any], *arguments: Any) -> Any:
    """Call a parallel kernel with at most so many of the threads numba may use now, and put the setting back."""
    before = numba.get_num_threads()
    numba.set_num_threads(max(1, min(threads, before)))
    try:
        return kernel(*arguments)
    finally:
        numba.set_num_threads(before)
