"""One place that decides how kernels are compiled.

Importing this module imports numba; only kernel modules do so, so that small circuits never pay for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba
from numba.core import types
from numba.core.cgutils import create_struct_proxy, get_null_value
from numba.extending import intrinsic

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


@intrinsic
def fma(typing_context: Any, a: Any, b: Any, c: Any) -> Any:
    """a · b + c of doubles in one rounding, whatever fast-math a kernel has."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return types.float64(types.float64, types.float64, types.float64), generate


@intrinsic
def uncounted(typing_context: Any, array: Any) -> Any:
    """An array's view that nobody counts references of, for kernels whose caller keeps the array.

    Compiled code counts atomically, every array of a tuple at every call: several microseconds a solve.
    """
    if not isinstance(array, types.Array):
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = create_struct_proxy(array)(context, builder, value=arguments[0])
        view.meminfo = get_null_value(view.meminfo.type)
        view.parent = get_null_value(view.parent.type)
        return view._getvalue()

    return array(array), generate
