"""The hot loops: small matrix products kept in vector registers.

Numba vectorises inner loops only and would store every partial sum; a register tile has to be written in LLVM's own
vector types. LLVM cuts the eight-lane vectors to what the processor has (one AVX-512 register, two AVX2, four NEON).
Multiply–add may be fused, which only saves a rounding.
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

_VECTOR = ir.VectorType(ir.DoubleType(), LANES)
_INDEX = ir.IntType(64)


class _Array:
    """A one-dimensional float64 array inside generated code."""

    def __init__(self, context: Any, builder: ir.IRBuilder, array_type: Any, array: Any) -> None:
        self.builder = builder
        self.base = context.make_array(array_type)(context, builder, array).data

    def _at(self, index: Any) -> Any:
        return self.builder.gep(self.base, [index])

    def _wide(self, index: Any) -> Any:
        return self.builder.bitcast(self._at(index), _VECTOR.as_pointer())

    def load(self, index: Any) -> Any:
        """Eight neighbours."""
        return self.builder.load(self._wide(index), align=8)

    def store(self, vector: Any, index: Any) -> None:
        self.builder.store(vector, self._wide(index), align=8)

    def spread(self, index: Any) -> Any:
        """One value in all eight lanes."""
        empty = ir.Constant(_VECTOR, ir.Undefined)
        lane = self.builder.insert_element(empty, self.builder.load(self._at(index)), ir.Constant(ir.IntType(32), 0))
        return self.builder.shuffle_vector(lane, empty, ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES))


def _plus(builder: ir.IRBuilder, base: Any, step: Any, times: Any) -> Any:
    times = ir.Constant(_INDEX, times) if isinstance(times, int) else times
    step = ir.Constant(_INDEX, step) if isinstance(step, int) else step
    return builder.add(base, builder.mul(step, times))


def _multiply_add(builder: ir.IRBuilder, slot: Any, u: Any, v: Any) -> None:
    product = builder.fmul(u, v, flags=("contract",))
    builder.store(builder.fadd(builder.load(slot), product, flags=("contract",)), slot)


def _slots(builder: ir.IRBuilder, count: int) -> list[Any]:
    """Accumulators, zero to begin with; LLVM keeps them in registers."""
    slots = [cgutils.alloca_once(builder, _VECTOR) for _ in range(count)]
    for slot in slots:
        builder.store(ir.Constant(_VECTOR, [0.0] * LANES), slot)
    return slots


def _tile(down: int) -> Any:
    @intrinsic
    def tile(typingctx, a, a0, lda, depth, b, b0, c, c0, ldc):
        """c[c0 + i + ldc j] = Σ_k a[a0 + i + lda k] b[b0 + 4 k + j] for i < 8·down, j < 4."""
        word = types.int64
        signature = types.void(a, word, word, word, b, word, c, word, word)

        def generate(context, builder, signature, arguments):
            left, right, out = (_Array(context, builder, signature.args[i], arguments[i]) for i in (0, 4, 6))
            a0, lda, depth, b0, c0, ldc = (arguments[i] for i in (1, 2, 3, 5, 7, 8))
            sums = _slots(builder, down * ACROSS)
            with cgutils.for_range(builder, depth) as loop:
                start = _plus(builder, a0, lda, loop.index)
                rows = [left.load(_plus(builder, start, LANES, v)) for v in range(down)]
                first = _plus(builder, b0, ACROSS, loop.index)
                for j in range(ACROSS):
                    factor = right.spread(_plus(builder, first, 1, j))
                    for v in range(down):
                        _multiply_add(builder, sums[j * down + v], rows[v], factor)
            for j in range(ACROSS):
                start = _plus(builder, c0, ldc, j)
                for v in range(down):
                    out.store(builder.load(sums[j * down + v]), _plus(builder, start, LANES, v))
            return context.get_dummy_value()

        return signature, generate

    return tile


def _push(columns: int) -> Any:
    @intrinsic
    def push(typingctx, a, a0, lda, tall, b, b0, c, c0):
        """c[c0 + 8 i + m] += Σ_j a[a0 + i + lda j] b[b0 + 8 j + m] for i < tall, j < columns, m < 8."""
        word = types.int64
        signature = types.void(a, word, word, word, b, word, c, word)

        def generate(context, builder, signature, arguments):
            share, source, target = (_Array(context, builder, signature.args[i], arguments[i]) for i in (0, 4, 6))
            a0, lda, tall, b0, c0 = (arguments[i] for i in (1, 2, 3, 5, 7))
            held = [source.load(_plus(builder, b0, LANES, j)) for j in range(columns)]
            starts = [_plus(builder, a0, lda, j) for j in range(columns)]
            slot = cgutils.alloca_once(builder, _VECTOR)
            with cgutils.for_range(builder, tall) as loop:
                row = _plus(builder, c0, LANES, loop.index)
                builder.store(target.load(row), slot)
                for j in range(columns):
                    _multiply_add(builder, slot, held[j], share.spread(_plus(builder, starts[j], 1, loop.index)))
                target.store(builder.load(slot), row)
            return context.get_dummy_value()

        return signature, generate

    return push


def _pull(columns: int) -> Any:
    @intrinsic
    def pull(typingctx, a, a0, lda, tall, b, b0, c, c0):
        """c[c0 + 8 j + m] += Σ_i a[a0 + i + lda j] b[b0 + 8 i + m] for i < tall, j < columns, m < 8."""
        word = types.int64
        signature = types.void(a, word, word, word, b, word, c, word)

        def generate(context, builder, signature, arguments):
            share, source, target = (_Array(context, builder, signature.args[i], arguments[i]) for i in (0, 4, 6))
            a0, lda, tall, b0, c0 = (arguments[i] for i in (1, 2, 3, 5, 7))
            starts = [_plus(builder, a0, lda, j) for j in range(columns)]
            sums = _slots(builder, columns)
            with cgutils.for_range(builder, tall) as loop:
                row = source.load(_plus(builder, b0, LANES, loop.index))
                for j in range(columns):
                    _multiply_add(builder, sums[j], row, share.spread(_plus(builder, starts[j], 1, loop.index)))
            for j in range(columns):
                place = _plus(builder, c0, LANES, j)
                total = builder.fadd(target.load(place), builder.load(sums[j]), flags=("contract",))
                target.store(total, place)
            return context.get_dummy_value()

        return signature, generate

    return pull


def _column_sum() -> Any:
    @intrinsic
    def column_sum(typingctx, a, a0, lda, depth, b, b0, c, c0):
        """c[c0 + i] = Σ_k a[a0 + i + lda k] b[b0 + k] for k < depth, i < 8."""
        word = types.int64
        signature = types.void(a, word, word, word, b, word, c, word)

        def generate(context, builder, signature, arguments):
            matrix, factor, out = (_Array(context, builder, signature.args[i], arguments[i]) for i in (0, 4, 6))
            a0, lda, depth, b0, c0 = (arguments[i] for i in (1, 2, 3, 5, 7))
            (total,) = _slots(builder, 1)
            with cgutils.for_range(builder, depth) as loop:
                column = matrix.load(_plus(builder, a0, lda, loop.index))
                _multiply_add(builder, total, column, factor.spread(_plus(builder, b0, 1, loop.index)))
            out.store(builder.load(total), c0)
            return context.get_dummy_value()

        return signature, generate

    return column_sum


def _scalar_product() -> Any:
    @intrinsic
    def scalar_product(typingctx, a, a0, b, b0, eighths):
        """Σ_k a[a0 + k] b[b0 + k] for k < 8 eighths: lane by lane, then halves of the lanes."""
        word = types.int64
        signature = types.float64(a, word, b, word, word)

        def generate(context, builder, signature, arguments):
            left, right = (_Array(context, builder, signature.args[i], arguments[i]) for i in (0, 2))
            a0, b0, eighths = (arguments[i] for i in (1, 3, 4))
            (slot,) = _slots(builder, 1)
            with cgutils.for_range(builder, eighths) as loop:
                u = left.load(_plus(builder, a0, LANES, loop.index))
                _multiply_add(builder, slot, u, right.load(_plus(builder, b0, LANES, loop.index)))
            total, lanes = builder.load(slot), LANES
            while lanes > 1:
                lanes //= 2
                numbers = ir.VectorType(ir.IntType(32), lanes)
                low, high = (ir.Constant(numbers, list(range(k, k + lanes))) for k in (0, lanes))
                total = builder.fadd(
                    builder.shuffle_vector(total, total, low), builder.shuffle_vector(total, total, high)
                )
            return builder.extract_element(total, ir.Constant(ir.IntType(32), 0))

        return signature, generate

    return scalar_product


_tall_tile = _tile(DOWN)
_short_tile = _tile(1)
column_sum, scalar_product = _column_sum(), _scalar_product()
push_one, push_four = _push(1), _push(4)
pull_one, pull_four = _pull(1), _pull(4)


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
