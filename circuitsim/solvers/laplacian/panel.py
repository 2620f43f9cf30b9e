"""Dense work on one panel: factor it, and let it update a later one.

A panel is stored by columns, ``height`` values apart. Row i of column k below the diagonal is the weight between the
i-th and the k-th node of the panel before elimination, and the share l_ik = w_ik / p_k after it. The last row is earth.
There is no subtraction anywhere, so every number is accurate to a few roundings of itself, whatever the weights.
"""

from __future__ import annotations

import numpy as np

from circuitsim._jit import jit


@jit(fastmath={"contract", "reassoc"})
def total(v):
    """Sum of non-negative numbers; the order is the compiler's (vector lanes), which costs no accuracy."""
    s = 0.0
    for i in range(v.size):
        s += v[i]
    return s


@jit()
def factor_panel(values, offset, height, width, pivots, first):
    """Eliminate the columns of a panel in place; writes ``pivots[first:first + width]``."""
    for k in range(width):
        column = values[offset + k * height : offset + (k + 1) * height]
        p = total(column[k + 1 :])
        pivots[first + k] = p
        if p == 0.0:  # not tied to anything left: all shares are zero already
            continue
        for j in range(k + 1, width):
            target = values[offset + j * height : offset + (j + 1) * height]
            share = column[j] / p
            if share != 0.0:
                for i in range(j + 1, height):
                    target[i] += column[i] * share
        for i in range(k + 1, height):
            column[i] /= p


@jit()
def update_block(values, offset, height, width, lo, hi, pivots, first, work):
    """Star–mesh update of the pairs (row ≥ lo, row in lo..hi) of an eliminated panel, by columns into ``work``."""
    tall = height - lo
    for j in range(hi - lo):
        out = work[j * tall : (j + 1) * tall]
        out[:] = 0.0
        k = 0
        while k + 4 <= width:
            base = offset + k * height
            c0 = values[base + lo : base + height]
            c1 = values[base + height + lo : base + 2 * height]
            c2 = values[base + 2 * height + lo : base + 3 * height]
            c3 = values[base + 3 * height + lo : base + 4 * height]
            w0 = c0[j] * pivots[first + k]
            w1 = c1[j] * pivots[first + k + 1]
            w2 = c2[j] * pivots[first + k + 2]
            w3 = c3[j] * pivots[first + k + 3]
            for i in range(j + 1, tall):
                out[i] += c0[i] * w0 + c1[i] * w1 + c2[i] * w2 + c3[i] * w3
            k += 4
        while k < width:
            base = offset + k * height
            c0 = values[base + lo : base + height]
            w0 = c0[j] * pivots[first + k]
            for i in range(j + 1, tall):
                out[i] += c0[i] * w0
            k += 1


@jit()
def factor_panels(
    active, first, row_ptr, rows, offset, update_ptr, source, lo, hi, edge_ptr, edges, place, weight, values, pivots
):
    """Left-looking factorisation of the panels marked active, in order; the others are taken as they are.

    Parameters
    ----------
    active : ndarray of bool
        Must be closed upwards in the elimination tree.
    weight : ndarray
        Weights of all edges.
    values, pivots : ndarray
        Overwritten for active panels.
    """
    n = first[first.size - 1]
    local = np.empty(n + 1, np.int64)
    work = np.empty(0, np.float64)
    for t in range(first.size - 1):
        if not active[t]:
            continue
        height = row_ptr[t + 1] - row_ptr[t]
        values[offset[t] : offset[t + 1]] = 0.0
        for q in range(edge_ptr[t], edge_ptr[t + 1]):
            values[place[q]] += weight[edges[q]]
        for p in range(row_ptr[t], row_ptr[t + 1]):
            local[rows[p]] = p - row_ptr[t]
        for u in range(update_ptr[t], update_ptr[t + 1]):
            s, begin, end = source[u], lo[u], hi[u]
            high = row_ptr[s + 1] - row_ptr[s]
            tall = high - begin
            if work.size < tall * (end - begin):
                work = np.empty(2 * tall * (end - begin), np.float64)
            update_block(
                values, offset[s], high, first[s + 1] - first[s], begin, end, pivots, first[s], work
            )
            names = rows[row_ptr[s] + begin : row_ptr[s + 1]]
            for j in range(end - begin):
                base = offset[t] + (names[j] - first[t]) * height
                for i in range(j + 1, tall):
                    values[base + local[names[i]]] += work[j * tall + i]
        factor_panel(values, offset[t], height, first[t + 1] - first[t], pivots, first[t])


@jit()
def mark_ancestors(above, active):
    """Extend a set of panels by all their ancestors (parents come after children)."""
    for t in range(active.size):
        if active[t] and above[t] >= 0:
            active[above[t]] = True
