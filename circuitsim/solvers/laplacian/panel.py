"""Dense work on one panel: factor it, and let it update a later one.

A panel is stored by columns, ``height`` values apart. Row i of column k below the diagonal is the weight between the
i-th and the k-th node of the panel before elimination, the share l_ik = w_ik / p_k after it. The last row is ground.
There is no subtraction anywhere, so every number is accurate to a few roundings of itself, whatever the weights.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from circuitsim._jit import jit
from circuitsim.solvers.laplacian.tile import ACROSS, OVERREAD, product

#: Columns eliminated one by one before the rest of the panel hears of them.
BLOCK = 8


@jit(fastmath={"contract", "reassoc"})
def total(v):
    """Sum of non-negative numbers; the order is the compiler's (vector lanes), which costs no accuracy."""
    s = 0.0
    for i in range(v.size):
        s += v[i]
    return s


@jit()
def pack_weights(values, offset, height, depth, row, across, pivots, first, packed):
    """The right operand of an update, as `product` wants it: weights l_jk p_k for rows j of ``row:row + across``."""
    for j in range(0, across, ACROSS):
        b0 = j * depth
        for k in range(depth):
            base = offset + k * height + row + j
            for t in range(ACROSS):
                packed[b0 + k * ACROSS + t] = values[base + t] * pivots[first + k] if j + t < across else 0.0


@jit()
def _eliminate_block(values, offset, height, begin, end, pivots, first):
    """Eliminate columns begin..end of a panel one by one, telling each other only."""
    for k in range(begin, end):
        column = values[offset + k * height + k + 1 : offset + (k + 1) * height]
        p = total(column)
        pivots[first + k] = p
        if p == 0.0:  # not tied to anything left: all shares are zero already
            continue
        for j in range(k + 1, end):
            share = column[j - k - 1] / p
            if share != 0.0:
                source = column[j - k :]
                target = values[offset + j * height + j + 1 : offset + (j + 1) * height]
                for i in range(target.size):
                    target[i] += source[i] * share
        for i in range(column.size):
            column[i] /= p


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
                target = values[offset + (begin + j) * height + begin : offset + (begin + j + 1) * height]
                added = work[j * room : j * room + tall]
                for i in range(j + 1, tall):
                    target[i] += added[i]
        _eliminate_block(values, offset, height, begin, end, pivots, first)


@jit()
def add_update(values, base, height, rows, local, first, across, tall, work, room, place):
    """Add the update in ``work`` to the panel at ``base``; ``rows`` names its rows, the first `across` its columns."""
    for i in range(tall):
        place[i] = local[rows[i]]
    start = place[0]
    together = place[tall - 1] - start == tall - 1
    for j in range(across):
        column = base + (rows[j] - first) * height
        added = work[j * room : j * room + tall]
        if together:
            target = values[column + start : column + start + tall]
            for i in range(j + 1, tall):
                target[i] += added[i]
        else:
            target = values[column : column + height]
            for i in range(j + 1, tall):
                target[place[i]] += added[i]


@jit()
def factor_range(begin, end, active, arrays, weight, values, pivots):
    """Left-looking factorisation of the active panels in ``begin:end``, in order; the others are taken as they are."""
    first, row_ptr, rows, offset, update_ptr, source, lo, hi, edge_ptr, edges, place = arrays
    local = np.empty(first[first.size - 1] + 1, np.int32)
    tallest, widest, most = 1, 1, BLOCK
    for t in range(first.size - 1):
        tallest = max(tallest, row_ptr[t + 1] - row_ptr[t])
        widest = max(widest, first[t + 1] - first[t])
    for u in range(source.size):
        most = max(most, hi[u] - lo[u])
    packed = np.empty((widest + ACROSS) * (most + ACROSS), np.float64)
    found = np.empty(tallest, np.int64)
    work = np.empty((tallest + OVERREAD) * (most + ACROSS), np.float64)
    for t in range(begin, end):
        if not active[t]:
            continue
        height = row_ptr[t + 1] - row_ptr[t]
        values[offset[t] : offset[t + 1]] = 0.0
        for q in range(edge_ptr[t], edge_ptr[t + 1]):
            values[place[q]] += weight[edges[q]]
        for p in range(row_ptr[t], row_ptr[t + 1]):
            local[rows[p]] = p - row_ptr[t]
        for u in range(update_ptr[t], update_ptr[t + 1]):
            s = source[u]
            row = lo[u]
            across = hi[u] - row
            high = row_ptr[s + 1] - row_ptr[s]
            depth = first[s + 1] - first[s]
            tall = high - row
            room = tall + OVERREAD
            pack_weights(values, offset[s], high, depth, row, across, pivots, first[s], packed)
            product(values, offset[s] + row, high, depth, tall, packed, across, work, room)
            names = rows[row_ptr[s] + row : row_ptr[s + 1]]
            add_update(values, offset[t], height, names, local, first[t], across, tall, work, room, found)
        factor_panel(values, offset[t], height, first[t + 1] - first[t], pivots, first[t], packed, work)


@jit(parallel=True)
def factor_tasks(task, active, arrays, weight, values, pivots):
    """The ranges ``task[:, 0]:task[:, 1]`` of independent panels, on numba's threads."""
    for q in prange(task.shape[0]):
        factor_range(task[q, 0], task[q, 1], active, arrays, weight, values, pivots)


@jit()
def independent_ranges(active, above, arrays, pieces):
    """Cut the active panels into about so many ranges that need nothing of each other, and the rest.

    Returns
    -------
    task : ndarray of int64, shape (tasks, 2)
        Ranges of whole subtrees, none with much more than its share of the work.
    rest : ndarray of bool
        The active panels in no range; they come afterwards, in order.
    """
    first, row_ptr, _, _, update_ptr, source, lo, hi, _, _, _ = arrays
    m = above.size
    own = np.zeros(m, np.float64)
    below = np.zeros(m, np.float64)
    low = np.arange(m)
    for t in range(m):
        if active[t]:
            width = float(first[t + 1] - first[t])
            own[t] = 1e3 + width * width * (row_ptr[t + 1] - row_ptr[t])
            for u in range(update_ptr[t], update_ptr[t + 1]):
                s = source[u]
                tall = row_ptr[s + 1] - row_ptr[s] - lo[u]
                own[t] += 300.0 + float(tall) * (hi[u] - lo[u]) * (first[s + 1] - first[s] + 16)
        below[t] += own[t]
        if above[t] >= 0:
            below[above[t]] += below[t]
            low[above[t]] = min(low[above[t]], low[t])
    share = own.sum() / pieces
    task = np.empty((m, 2), np.int64)
    rest = active.copy()
    many = 0
    held = np.inf
    for t in range(m):
        if below[t] > share or (above[t] >= 0 and below[above[t]] <= share):
            continue
        rest[low[t] : t + 1] = False
        if many > 0 and task[many - 1, 1] == low[t] and held + below[t] <= share:
            held += below[t]
        else:
            many += 1
            held = below[t]
            task[many - 1, 0] = low[t]
        task[many - 1, 1] = t + 1
    return task[:many].copy(), rest


@jit()
def mark_ancestors(above, active):
    """Extend a set of panels by all their ancestors (parents come after children)."""
    for t in range(active.size):
        if active[t] and above[t] >= 0:
            active[above[t]] = True
