"""Nodes with at most two neighbours go first: their elimination never adds fill, and the graph that is left is smaller.

Ladders, trees and series connections vanish altogether; a crossbar loses the nodes between resistors and diodes.
"""

from __future__ import annotations

import numpy as np

from circuitsim._jit import jit
from circuitsim.solvers.laplacian.graph import adjacency


@jit()
def _pass(ptr, idx):
    """Independent nodes of at most two neighbours, ascending, and the edges left after eliminating them."""
    n = ptr.size - 1
    gone = np.zeros(n, np.bool_)
    kept = np.zeros(n, np.bool_)
    count = 0
    for i in range(n):
        if ptr[i + 1] - ptr[i] > 2 or kept[i]:
            continue
        gone[i] = True
        count += 1
        for p in range(ptr[i], ptr[i + 1]):
            kept[idx[p]] = True
    removed = np.empty(count, np.int64)
    rest = np.empty(n - count, np.int64)
    name = np.empty(n, np.int64)
    a = np.empty(idx.size // 2 + count, np.int64)
    b = np.empty(idx.size // 2 + count, np.int64)
    r, s = 0, 0
    for i in range(n):
        if gone[i]:
            removed[r] = i
            r += 1
        else:
            rest[s] = i
            name[i] = s
            s += 1
    m = 0
    for i in range(n):
        if gone[i]:
            if ptr[i + 1] - ptr[i] == 2:
                a[m], b[m] = name[idx[ptr[i]]], name[idx[ptr[i] + 1]]
                m += 1
            continue
        for p in range(ptr[i], ptr[i + 1]):
            if idx[p] > i and not gone[idx[p]]:
                a[m], b[m] = name[i], name[idx[p]]
                m += 1
    return removed, rest, a[:m], b[:m]


@jit()
def peel(ptr, idx, least):
    """Eliminate nodes of at most two neighbours, pass after pass, while a pass removes the share ``least`` of them.

    Parameters
    ----------
    ptr, idx : ndarray
        Sorted adjacency.
    least : float

    Returns
    -------
    first : ndarray of int64
        Nodes to eliminate first, in this order.
    core : ndarray of int64
        The others, ascending.
    ptr, idx : ndarray
        Adjacency of the core, nodes numbered by their place in `core`.
    """
    n = ptr.size - 1
    first = np.empty(n, np.int64)
    core = np.arange(n)
    done = 0
    while core.size > 0:
        removed, rest, a, b = _pass(ptr, idx)
        if removed.size <= least * core.size:
            break
        for i in removed:
            first[done] = core[i]
            done += 1
        for s in range(rest.size):
            rest[s] = core[rest[s]]
        core = rest
        ptr, idx = adjacency(core.size, a, b)
    return first[:done].copy(), core, ptr, idx
