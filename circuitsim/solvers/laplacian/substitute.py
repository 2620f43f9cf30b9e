"""Forward and back substitution with a panel factor, many right-hand sides side by side.

Right-hand sides are an n × c array in elimination order, the c numbers of a node next to each other.
"""

from __future__ import annotations

from circuitsim._jit import jit


@jit()
def forward(first, row_ptr, rows, offset, values, x):
    """x_j += l_kj x_k for each eliminated k: currents move to the nodes that are left (and to earth)."""
    c = x.shape[1]
    for t in range(first.size - 1):
        height = row_ptr[t + 1] - row_ptr[t]
        for k in range(first[t + 1] - first[t]):
            base = offset[t] + k * height
            node = first[t] + k
            for i in range(k + 1, height - 1):
                share = values[base + i]
                row = rows[row_ptr[t] + i]
                for m in range(c):
                    x[row, m] += share * x[node, m]


@jit()
def backward(first, row_ptr, rows, offset, values, pivots, x):
    """x_k = x_k / p_k + Σ_j l_kj x_j from the last node back; x_k = 0 where p_k = 0."""
    c = x.shape[1]
    for t in range(first.size - 2, -1, -1):
        height = row_ptr[t + 1] - row_ptr[t]
        for k in range(first[t + 1] - first[t] - 1, -1, -1):
            base = offset[t] + k * height
            node = first[t] + k
            p = pivots[node]
            for m in range(c):
                x[node, m] = x[node, m] / p if p > 0.0 else 0.0
            for i in range(k + 1, height - 1):
                share = values[base + i]
                row = rows[row_ptr[t] + i]
                for m in range(c):
                    x[node, m] += share * x[row, m]
