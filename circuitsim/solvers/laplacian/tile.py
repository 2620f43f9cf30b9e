"""The hot loops: small matrix products kept in vector registers (`circuitsim._vectors`).

LLVM splits a vector over as many registers as the processor needs: eight lanes are one of AVX-512, two of AVX2, four of
NEON.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding

from circuitsim._jit import jit
from circuitsim._vectors import add, fma, load, splat, store, total

LANES = 8
#: Columns of a tile.
ACROSS = 4
#: Rows of a tall tile: sixteen registers of sums where there are thirty-two wide ones.
TALL = 4 * LANES if llvmlite.binding.get_host_cpu_features().get("avx512f", False) else LANES
#: Values that may be read or written beyond the rows asked for: allocate that many more.
OVERREAD = LANES


def _tile(rows: int) -> Any:
    @jit()
    def tile(a, a0, lda, depth, b, b0, c, c0, ldc):
        """c[c0 + i + ldc j] = Σ_k a[a0 + i + lda k] b[b0 + 4 k + j] for i < rows, j < 4."""
        s0 = splat(0.0, rows)
        s1, s2, s3 = s0, s0, s0
        for k in range(depth):
            column, first = load(a, a0 + lda * k, rows), b0 + ACROSS * k
            s0 = fma(column, splat(b[first], rows), s0)
            s1 = fma(column, splat(b[first + 1], rows), s1)
            s2 = fma(column, splat(b[first + 2], rows), s2)
            s3 = fma(column, splat(b[first + 3], rows), s3)
        store(c, c0, s0)
        store(c, c0 + ldc, s1)
        store(c, c0 + 2 * ldc, s2)
        store(c, c0 + 3 * ldc, s3)

    return tile


_tall_tile, _short_tile = _tile(TALL), _tile(LANES)


@jit()
def push_one(a, a0, lda, tall, b, b0, c, c0):
    """c[c0 + 8 i + m] += a[a0 + i] b[b0 + m] for i < tall, m < 8."""
    own = load(b, b0, LANES)
    for i in range(tall):
        store(c, c0 + LANES * i, fma(own, splat(a[a0 + i], LANES), load(c, c0 + LANES * i, LANES)))


@jit()
def push_four(a, a0, lda, tall, b, b0, c, c0):
    """c[c0 + 8 i + m] += Σ_j a[a0 + i + lda j] b[b0 + 8 j + m] for i < tall, j < 4, m < 8."""
    r0, r1 = load(b, b0, LANES), load(b, b0 + LANES, LANES)
    r2, r3 = load(b, b0 + 2 * LANES, LANES), load(b, b0 + 3 * LANES, LANES)
    for i in range(a0, a0 + tall):
        at = c0 + LANES * (i - a0)
        s = fma(r0, splat(a[i], LANES), load(c, at, LANES))
        s = fma(r1, splat(a[i + lda], LANES), s)
        s = fma(r2, splat(a[i + 2 * lda], LANES), s)
        store(c, at, fma(r3, splat(a[i + 3 * lda], LANES), s))


@jit()
def pull_one(a, a0, lda, tall, b, b0, c, c0):
    """c[c0 + m] += Σ_i a[a0 + i] b[b0 + 8 i + m] for i < tall, m < 8."""
    s = splat(0.0, LANES)
    for i in range(tall):
        s = fma(load(b, b0 + LANES * i, LANES), splat(a[a0 + i], LANES), s)
    store(c, c0, add(load(c, c0, LANES), s))


@jit()
def pull_four(a, a0, lda, tall, b, b0, c, c0):
    """c[c0 + 8 j + m] += Σ_i a[a0 + i + lda j] b[b0 + 8 i + m] for i < tall, j < 4, m < 8."""
    s0 = splat(0.0, LANES)
    s1, s2, s3 = s0, s0, s0
    for i in range(a0, a0 + tall):
        row = load(b, b0 + LANES * (i - a0), LANES)
        s0 = fma(row, splat(a[i], LANES), s0)
        s1 = fma(row, splat(a[i + lda], LANES), s1)
        s2 = fma(row, splat(a[i + 2 * lda], LANES), s2)
        s3 = fma(row, splat(a[i + 3 * lda], LANES), s3)
    store(c, c0, add(load(c, c0, LANES), s0))
    store(c, c0 + LANES, add(load(c, c0 + LANES, LANES), s1))
    store(c, c0 + 2 * LANES, add(load(c, c0 + 2 * LANES, LANES), s2))
    store(c, c0 + 3 * LANES, add(load(c, c0 + 3 * LANES, LANES), s3))


@jit()
def column_sum(a, a0, lda, depth, b, b0, c, c0):
    """c[c0 + i] = Σ_k a[a0 + i + lda k] b[b0 + k] for k < depth, i < 8."""
    s = splat(0.0, LANES)
    for k in range(depth):
        s = fma(load(a, a0 + lda * k, LANES), splat(b[b0 + k], LANES), s)
    store(c, c0, s)


@jit()
def scalar_product(a, a0, b, b0, eighths):
    """Σ_k a[a0 + k] b[b0 + k] for k < 8 eighths: lane by lane, then halves of the lanes."""
    s = splat(0.0, LANES)
    for k in range(0, LANES * eighths, LANES):
        s = fma(load(a, a0 + k, LANES), load(b, b0 + k, LANES), s)
    return total(s)


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
        while i + TALL <= tall:
            _tall_tile(a, a0 + i, lda, depth, b, b0, c, ldc * j + i, ldc)
            i += TALL
        while i < tall:
            _short_tile(a, a0 + i, lda, depth, b, b0, c, ldc * j + i, ldc)
            i += LANES
