"""The hot loop: a small matrix product kept in vector registers.

Numba vectorises inner loops only and would store every partial sum; a register tile has to be written in LLVM's own
vector types. LLVM cuts the eight-lane vectors to what the processor has (one AVX-512 register, two AVX2, four NEON).
Multiply–add may be fused, which only saves a rounding: all terms are non-negative.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.extending import intrinsic

from circuitsim._jit import jit

LANES = 8
#: Columns of a tile.
ACROSS = 4
#: Vectors down a tile: sixteen accumulators where there are thirty-two wide registers, else eight narrow ones.
DOWN = 4 if llvmlite.binding.get_host_cpu_features().get("avx512f", False) else 1
#: Values that may be read or written beyond the rows asked for: allocate that many more.
OVERREAD = LANES


def _emit(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any, down: int) -> Any:
    a_type, _, _, _, b_type, _, c_type, _, _ = signature.args
    a_array, a0, lda, depth, b_array, b0, c_array, c0, ldc = arguments
    vector = ir.VectorType(ir.DoubleType(), LANES)
    word = ir.IntType(64)

    def base(array_type: Any, array: Any) -> Any:
        return context.make_array(array_type)(context, builder, array).data

    def wide(pointer: Any, index: Any) -> Any:
        return builder.bitcast(builder.gep(pointer, [index]), vector.as_pointer())

    a, b, c = base(a_type, a_array), base(b_type, b_array), base(c_type, c_array)
    sums = [[cgutils.alloca_once(builder, vector) for _ in range(down)] for _ in range(ACROSS)]
    for column in sums:
        for slot in column:
            builder.store(ir.Constant(vector, [0.0] * LANES), slot)
    with cgutils.for_range(builder, depth) as loop:
        k = loop.index
        start = builder.add(a0, builder.mul(k, lda))
        left = [
            builder.load(wide(a, builder.add(start, ir.Constant(word, LANES * v))), align=8) for v in range(down)
        ]
        row = builder.add(b0, builder.mul(k, ir.Constant(word, ACROSS)))
        for j, column in enumerate(sums):
            scalar = builder.load(builder.gep(b, [builder.add(row, ir.Constant(word, j))]))
            lane = builder.insert_element(ir.Constant(vector, ir.Undefined), scalar, ir.Constant(ir.IntType(32), 0))
            spread = builder.shuffle_vector(
                lane, ir.Constant(vector, ir.Undefined), ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
            )
            for v, slot in enumerate(column):
                product = builder.fmul(left[v], spread, flags=("contract",))
                builder.store(builder.fadd(builder.load(slot), product, flags=("contract",)), slot)
    for j, column in enumerate(sums):
        start = builder.add(c0, builder.mul(ldc, ir.Constant(word, j)))
        for v, slot in enumerate(column):
            builder.store(builder.load(slot), wide(c, builder.add(start, ir.Constant(word, LANES * v))), align=8)
    return context.get_dummy_value()


def _tile(down: int) -> Any:
    @intrinsic
    def tile(typingctx, a, a0, lda, depth, b, b0, c, c0, ldc):  # type: ignore[no-untyped-def]
        """c[c0 + i + ldc j] = Σ_k a[a0 + i + lda k] b[b0 + 4 k + j] for i < 8·down, j < 4."""
        whole = types.int64
        signature = types.void(a, whole, whole, whole, b, whole, c, whole, whole)

        def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            return _emit(context, builder, signature, arguments, down)

        return signature, generate

    return tile


_tall_tile = _tile(DOWN)
_short_tile = _tile(1)


@jit()
def product(a, a0, lda, depth, tall, b, across, c, ldc):
    """Lower trapezoid of ``c = A B``, by columns.

    Parameters
    ----------
    a : ndarray
        Holds A, ``tall × depth``, by columns ``lda`` apart from ``a0``; up to `OVERREAD` values beyond it are read.
    b : ndarray
        B packed by `ACROSS` columns: B[k, j] at ``(j // 4 * depth + k) * 4 + j % 4``, padded to whole fours.
    across : int
        Columns of B. In columns 4j..4j+3, rows from 4j on are computed.
    c : ndarray
        Result; column j from ``ldc * j``, with ``ldc`` ≥ tall + `OVERREAD`; rows from `tall` on are rubbish.
    """
    for j in range(0, across, ACROSS):
        b0 = j * depth
        i = j
        while i + LANES * DOWN <= tall:
            _tall_tile(a, a0 + i, lda, depth, b, b0, c, ldc * j + i, ldc)
            i += LANES * DOWN
        while i < tall:
            _short_tile(a, a0 + i, lda, depth, b, b0, c, ldc * j + i, ldc)
            i += LANES
