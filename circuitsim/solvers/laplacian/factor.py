"""Numeric factorisation: weights to shares and pivots, in full or only where weights changed.

A panel is stored by columns, ``height`` values apart. Row i of column k below the diagonal is the weight between the
i-th and the k-th node of the panel before elimination, the share l_ik = w_ik / p_k after it. The last row is ground.
There is no subtraction anywhere, so every number is accurate to a few roundings of itself, whatever the weights.

The hot loops are small matrix products kept in vector registers (`circuitsim._vectors`). LLVM splits a vector over as
many registers as the processor needs: eight lanes are one of AVX-512, two of AVX2, four of NEON.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import llvmlite.binding
import numpy as np

from circuitsim._jit import jit
from circuitsim._vectors import add, fma, load, splat, store, total
from circuitsim.solvers.laplacian.symbolic import Symbolic

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


#: Columns eliminated one by one before the rest of the panel is updated with them.
BLOCK = 8
#: Columns of later panels that are updated together, unless one panel has more.
TOGETHER = 64


@jit(fastmath={"contract", "reassoc"})
def sum_between(values, begin, end):
    """Sum of non-negative numbers in the compiler's order (vector lanes), which costs no accuracy."""
    s = 0.0
    for i in range(begin, end):
        s += values[i]
    return s


@jit()
def pack_weights(values, offset, height, depth, row, across, pivots, first, packed):
    """The right operand of an update, packed for `product`: weights l_jk p_k for rows j of ``row:row + across``."""
    put = 0
    for j in range(0, across, ACROSS):
        base = offset + row + j
        for k in range(first, first + depth):
            p = pivots[k]
            if j + ACROSS <= across:
                packed[put] = values[base] * p
                packed[put + 1] = values[base + 1] * p
                packed[put + 2] = values[base + 2] * p
                packed[put + 3] = values[base + 3] * p
            else:
                for t in range(ACROSS):
                    packed[put + t] = values[base + t] * p if j + t < across else 0.0
            put += ACROSS
            base += height


@jit()
def _eliminate_block(values, offset, height, begin, end, pivots, first, packed, work):
    """Eliminate columns begin..end of a panel, each updated with those before it; scratch as in `factor_panel`."""
    for k in range(begin, end):
        column, before = offset + k * height, offset + begin * height
        for j in range(begin, k):
            packed[j - begin] = values[offset + j * height + k] * pivots[first + j]
        if k > begin:
            for i in range(k + 1, height, LANES):
                column_sum(values, before + i, height, k - begin, packed, 0, work, i)
            for i in range(k + 1, height):
                values[column + i] += work[i]
        p = sum_between(values, column + k + 1, column + height)
        pivots[first + k] = p
        if p == 0.0:  # not connected to later nodes or ground: all shares are zero already
            continue
        for i in range(column + k + 1, column + height):
            values[i] /= p


@jit()
def factor_panel(values, offset, height, width, pivots, first, packed, work):
    """Eliminate the columns of a panel in place; writes ``pivots[first:first + width]``.

    Parameters
    ----------
    packed, work : ndarray
        Scratch, at least ``(width + ACROSS) * (BLOCK + ACROSS)`` and ``(height + OVERREAD) * (BLOCK + ACROSS)`` long.
    """
    for begin in range(0, width, BLOCK):
        end = min(begin + BLOCK, width)
        if begin > 0:
            tall = height - begin
            room = tall + OVERREAD
            pack_weights(values, offset, height, begin, begin, end - begin, pivots, first, packed)
            product(values, offset + begin, height, begin, tall, packed, end - begin, work, room)
            for j in range(end - begin):
                target, added = offset + (begin + j) * height + begin, j * room
                for i in range(j + 1, tall):
                    values[target + i] += work[added + i]
        _eliminate_block(values, offset, height, begin, end, pivots, first, packed, work)


@jit()
def add_update(values, base, height, held, begin, end, across, work, added, room):
    """Add an update to the panel at ``base``, in the rows ``held[begin:end]`` and the first ``across`` of them as
    columns; its columns are ``room`` apart in ``work`` from ``added`` on."""
    tall, start = end - begin, held[begin]
    if held[end - 1] - start == tall - 1:
        for j in range(across):
            column = base + (start + j) * height + start
            for i in range(j + 1, tall):
                values[column + i] += work[added + i]
            added += room
    else:
        for j in range(across):
            column = base + held[begin + j] * height
            for i in range(j + 1, tall):
                values[column + held[begin + i]] += work[added + i]
            added += room


@jit()
def _scratch(first, row_ptr, update_ptr, lo):
    """Arrays ``packed`` and ``work`` with room for every panel and update."""
    tallest, widest, most = 1, 1, BLOCK
    for s in range(first.size - 1):
        height = row_ptr[s + 1] - row_ptr[s]
        tallest = max(tallest, height)
        widest = max(widest, first[s + 1] - first[s])
        for u in range(update_ptr[s], update_ptr[s + 1]):
            end = lo[u + 1] if u + 1 < update_ptr[s + 1] else height - 1
            most = max(most, TOGETHER, end - lo[u])
    packed = np.empty((widest + ACROSS) * (most + ACROSS), np.float64)
    return packed, np.empty((tallest + OVERREAD) * (most + ACROSS), np.float64)


@jit()
def factor_active(active, arrays, weight, values, pivots):
    """Factor the active panels in order and reuse the others.

    Each panel immediately updates its active ancestors, while its numbers are in the cache, with one product for
    several of them. Ancestors of an active panel are active.
    """
    first, row_ptr, offset, update_ptr, target, lo, held_ptr, held, edge_ptr, edges, place = arrays
    panels = first.size - 1
    packed, work = _scratch(first, row_ptr, update_ptr, lo)
    for t in range(panels):
        if active[t]:
            for i in range(offset[t], offset[t + 1]):
                values[i] = 0.0
            for q in range(edge_ptr[t], edge_ptr[t + 1]):
                values[place[q]] += weight[edges[q]]
    for s in range(panels):
        height, depth = row_ptr[s + 1] - row_ptr[s], first[s + 1] - first[s]
        if active[s]:
            factor_panel(values, offset[s], height, depth, pivots, first[s], packed, work)
        u, last = update_ptr[s], update_ptr[s + 1]
        while u < last and not active[target[u]]:
            u += 1
        while u < last:
            row, next_row, v = lo[u], lo[u], u
            while v < last:
                end = lo[v + 1] if v + 1 < last else height - 1
                if v > u and end - row > TOGETHER:
                    break
                next_row = end
                v += 1
            tall, across = height - row, next_row - row
            room = tall + OVERREAD
            pack_weights(values, offset[s], height, depth, row, across, pivots, first[s], packed)
            product(values, offset[s] + row, height, depth, tall, packed, across, work, room)
            while u < v:
                t, skipped = target[u], lo[u] - row
                end = lo[u + 1] if u + 1 < v else next_row
                add_update(
                    values,
                    offset[t],
                    row_ptr[t + 1] - row_ptr[t],
                    held,
                    held_ptr[u],
                    held_ptr[u + 1],
                    end - lo[u],
                    work,
                    skipped * room + skipped,
                    room,
                )
                u += 1


@jit()
def mark_ancestors(above, active):
    """Extend a set of panels by all their ancestors (parents come after children)."""
    for t in range(active.size):
        if active[t] and above[t] >= 0:
            active[above[t]] = True


#: Weight of an ideal short, for weights scaled to about one. Products of a weight and a share (≤ 1) never exceed the
#: largest weight, so nothing overflows; the weakest share, 1e-30 / 1e120 times a weight 1e-30, is far from underflow.
SHORT = 1e120


class Factor(NamedTuple):
    """A factored Laplacian.

    Attributes
    ----------
    symbolic : Symbolic
    weights : (m,) float array
        The weights it was made from.
    values : float array
        Shares l_ik of all panels, by columns.
    pivots : (n,) float array
        In elimination order; zero at one node of each component without a path to ground, whose potential is zero.
    """

    symbolic: Symbolic
    weights: np.ndarray
    values: np.ndarray
    pivots: np.ndarray


def factor(symbolic: Symbolic, weights: np.ndarray, previous: Factor | None = None) -> Factor:
    """Factor the Laplacian with these edge weights.

    Parameters
    ----------
    symbolic : Symbolic
    weights : (m,) float array
        Not negative; zero is an open edge, `SHORT` an ideal connection.
    previous : Factor, optional
        Of the same `symbolic`, for its memory, so that it cannot be used afterwards: only panels that a changed weight
        can reach are computed again, with the same bits as a factorisation from nothing.
    """
    panels = symbolic.first.size - 1
    if previous is None:
        stored = int(symbolic.offset[-1])
        values, pivots, active = np.empty(stored + OVERREAD), np.empty(symbolic.order.size), np.ones(panels, np.bool_)
        values[stored:] = 0.0
    else:
        values, pivots, active = previous.values, previous.pivots, np.zeros(panels, np.bool_)
        touched = symbolic.panel_of_edge[weights != previous.weights]
        active[touched[touched >= 0]] = True
        mark_ancestors(symbolic.above, active)
    factor_active(active, symbolic.arrays, weights, values, pivots)
    return Factor(symbolic, weights, values, pivots)
