"""Solve with a factor: forward and back substitution.

One right-hand side is a vector. Several go in groups of `GROUP`, the numbers of a node side by side, so that one vector
instruction serves the group. Everything is in elimination order.
"""

from __future__ import annotations

import numpy as np

from circuitsim._jit import jit
from circuitsim.solvers.laplacian.factor import (
    LANES,
    Factor,
    column_sum,
    pull_four,
    pull_one,
    push_four,
    push_one,
    scalar_product,
)

#: Right-hand sides worked on together.
GROUP = LANES


@jit()
def _tallest(row_ptr):
    height = 0
    for t in range(row_ptr.size - 1):
        height = max(height, row_ptr[t + 1] - row_ptr[t])
    return height


@jit()
def forward(first, row_ptr, rows, offset, values, x):
    """x_j += l_kj x_k for each eliminated k: currents move to the nodes that are left (and to ground)."""
    moved = np.empty(_tallest(row_ptr) + LANES, np.float64)
    for t in range(first.size - 1):
        own, width = first[t], first[t + 1] - first[t]
        below, height = row_ptr[t] + width, row_ptr[t + 1] - row_ptr[t]
        tall = height - width - 1
        for k in range(width - 1):
            share = offset[t] + k * height
            for i in range(k + 1, width):
                x[own + i] += values[share + i] * x[own + k]
        for i in range(0, tall, LANES):
            column_sum(values, offset[t] + width + i, height, width, x, own, moved, i)
        for i in range(tall):
            x[rows[below + i]] += moved[i]


@jit()
def backward(first, row_ptr, rows, offset, values, pivots, x):
    """x_k = x_k / p_k + Σ_j l_kj x_j from the last node back; x_k = 0 where p_k = 0."""
    fetched = np.empty(_tallest(row_ptr) + LANES, np.float64)
    for t in range(first.size - 2, -1, -1):
        own, width = first[t], first[t + 1] - first[t]
        below, height = row_ptr[t] + width, row_ptr[t + 1] - row_ptr[t]
        tall = height - width - 1
        for i in range(tall):
            fetched[i] = x[rows[below + i]]
        for i in range(tall, tall + LANES):
            fetched[i] = 0.0
        eighths = (tall + LANES - 1) // LANES
        for k in range(width - 1, -1, -1):
            p, share = pivots[own + k], offset[t] + k * height
            known = x[own + k] / p if p > 0.0 else 0.0
            for i in range(k + 1, width):
                known += values[share + i] * x[own + i]
            x[own + k] = known + scalar_product(values, share + width, fetched, 0, eighths)


@jit()
def _nothing(x, begin, end):
    """Whether all these numbers are zero."""
    k = begin
    while k < end and x[k] == 0.0:
        k += 1
    return k == end


@jit()
def forward_group(first, row_ptr, rows, offset, values, x):
    """`forward` for a group of right-hand sides; ``x`` is flat, `GROUP` values a node."""
    moved = np.empty(_tallest(row_ptr) * GROUP, np.float64)
    for t in range(first.size - 1):
        node, width = first[t], first[t + 1] - first[t]
        below, height = row_ptr[t] + width, row_ptr[t + 1] - row_ptr[t]
        tall, start, own = height - width - 1, offset[t], node * GROUP
        if _nothing(x, own, own + width * GROUP):
            continue
        moved[: tall * GROUP] = 0.0
        k = 0
        while k < width:
            base = start + k * height
            if k + 4 <= width:
                for j in range(3):
                    here = own + (k + j) * GROUP
                    push_one(values, base + j * height + k + j + 1, height, 3 - j, x, here, x, here + GROUP)
                push_four(values, base + k + 4, height, width - k - 4, x, own + k * GROUP, x, own + (k + 4) * GROUP)
                push_four(values, base + width, height, tall, x, own + k * GROUP, moved, 0)
                k += 4
            else:
                here = own + k * GROUP
                push_one(values, base + k + 1, height, width - k - 1, x, here, x, here + GROUP)
                push_one(values, base + width, height, tall, x, here, moved, 0)
                k += 1
        for i in range(tall):
            target = rows[below + i] * GROUP
            for m in range(GROUP):
                x[target + m] += moved[i * GROUP + m]


@jit()
def _own_current(pivots, node, x):
    """Divide the currents of a node by its pivot."""
    p = pivots[node]
    for m in range(node * GROUP, (node + 1) * GROUP):
        x[m] = x[m] / p if p > 0.0 else 0.0


@jit()
def backward_group(first, row_ptr, rows, offset, values, pivots, x):
    """`backward` for a group of right-hand sides; ``x`` is flat, `GROUP` values a node."""
    fetched = np.empty(_tallest(row_ptr) * GROUP, np.float64)
    for t in range(first.size - 2, -1, -1):
        node, width = first[t], first[t + 1] - first[t]
        below, height = row_ptr[t] + width, row_ptr[t + 1] - row_ptr[t]
        tall, start, own = height - width - 1, offset[t], node * GROUP
        for i in range(tall):
            source = rows[below + i] * GROUP
            for m in range(GROUP):
                fetched[i * GROUP + m] = x[source + m]
        k = width
        while k > 0:
            if k % 4 == 0:
                k -= 4
                base = start + k * height
                for j in range(4):
                    _own_current(pivots, node + k + j, x)
                here = own + k * GROUP
                pull_four(values, base + width, height, tall, fetched, 0, x, here)
                pull_four(values, base + k + 4, height, width - k - 4, x, here + 4 * GROUP, x, here)
                for j in range(2, -1, -1):
                    there = here + j * GROUP
                    pull_one(values, base + j * height + k + j + 1, height, 3 - j, x, there + GROUP, x, there)
            else:
                k -= 1
                base = start + k * height
                here = own + k * GROUP
                _own_current(pivots, node + k, x)
                pull_one(values, base + width, height, tall, fetched, 0, x, here)
                pull_one(values, base + k + 1, height, width - k - 1, x, here + GROUP, x, here)


@jit()
def solve_one(first, row_ptr, rows, offset, values, pivots, order, rhs, x):
    """Solve for one vector in node order."""
    work = np.empty(order.size, np.float64)
    for k in range(order.size):
        work[k] = rhs[order[k]]
    forward(first, row_ptr, rows, offset, values, work)
    backward(first, row_ptr, rows, offset, values, pivots, work)
    for k in range(order.size):
        x[order[k]] = work[k]


@jit()
def _solve_group(begin, many, work, first, row_ptr, rows, offset, values, pivots, order, rhs, x):
    """Columns ``begin:begin + many`` of `solve_many`."""
    for k in range(order.size):
        for m in range(many):
            work[k * GROUP + m] = rhs[order[k], begin + m]
    forward_group(first, row_ptr, rows, offset, values, work)
    backward_group(first, row_ptr, rows, offset, values, pivots, work)
    for k in range(order.size):
        for m in range(many):
            x[order[k], begin + m] = work[k * GROUP + m]


@jit()
def solve_many(first, row_ptr, rows, offset, values, pivots, order, rhs, x):
    """Solve for the columns of ``rhs`` (n × c), `GROUP` at a time; a last short group is filled up with zeros."""
    cases = rhs.shape[1]
    work = np.zeros(order.size * GROUP, np.float64)
    for begin in range(0, cases, GROUP):
        many = min(GROUP, cases - begin)
        work[:] = 0.0
        _solve_group(begin, many, work, first, row_ptr, rows, offset, values, pivots, order, rhs, x)


def solve(factor: Factor, rhs: np.ndarray) -> np.ndarray:
    """Potentials for injected currents.

    Parameters
    ----------
    factor : Factor
    rhs : array_like, shape (n,) or (n, c)
        Net current into each node, one column a case.

    Returns
    -------
    x : ndarray, shape of `rhs`
        Potentials; zero at one node of each component without a path to ground, which takes the net current there.
    """
    s = factor.symbolic
    rhs = np.ascontiguousarray(rhs, dtype=np.float64)
    x = np.empty_like(rhs)
    kernel = solve_one if rhs.ndim == 1 else solve_many
    panels = s.first, s.row_ptr, s.rows, s.offset
    kernel(*panels, factor.values, factor.pivots, s.order, rhs, x)
    return x
