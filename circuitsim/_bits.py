"""Counts of bits in compiled kernels: what `circuitsim.engine.small.bits` compiles to."""

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.extending import intrinsic, overload


@intrinsic
def _ones(typing: Any, word: Any) -> Any:
    """The instruction that counts bits."""
    return types.uint64(types.uint64), lambda context, builder, signature, args: builder.ctpop(args[0])


def register(bits: Any) -> None:
    """Let compiled kernels call the functions of `circuitsim.engine.small.bits`."""
    overload(bits.ones)(lambda word: lambda word: _ones(word))  # type: ignore[call-arg]
