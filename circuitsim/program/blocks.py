"""Blocks of a network: the edges that share a cycle. Source-free blocks carry no current."""

from __future__ import annotations

import numpy as np

from circuitsim.kernels import kernel
from circuitsim.program.incidence import by_node


def block_labels(n: int, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Label of the block (biconnected component) of each edge of a multigraph; −1 for self-loops.

    Parameters
    ----------
    n : int
        Number of nodes.
    a, b : (m,) int arrays
        Ends of the edges.

    Returns
    -------
    (m,) int64 array
        Two edges have the same label iff some simple cycle holds both; a bridge has a label of its own.
    """
    ptr, position = by_node(n, np.concatenate([a, b]))
    label = np.full(a.size, -1, dtype=np.int64)
    work = [np.full(n, -1, dtype=np.int64) for _ in range(4)]
    stack = np.empty(a.size, dtype=np.int64)
    kernel(_tarjan, max(n, a.size), bitwise_stable=True)(ptr, position % max(a.size, 1), a, b, label, *work, stack)
    return label


def _tarjan(ptr, edge_at, a, b, label, found, low, entered_by, next_at, stack):
    """Depth-first search (Hopcroft & Tarjan 1973) without recursion: an edge stack is cut wherever a block ends."""
    clock, height, blocks = 0, 0, 0
    for root in range(found.size):
        if found[root] >= 0:
            continue
        found[root] = low[root] = clock
        clock += 1
        next_at[root] = ptr[root]
        u = root
        while u >= 0:
            if next_at[u] < ptr[u + 1]:
                e = edge_at[next_at[u]]
                next_at[u] += 1
                v = b[e] if a[e] == u else a[e]
                if e == entered_by[u] or v == u:
                    continue
                if found[v] < 0:
                    stack[height] = e
                    height += 1
                    found[v] = low[v] = clock
                    clock += 1
                    entered_by[v] = e
                    next_at[v] = ptr[v]
                    u = v
                elif found[v] < found[u]:
                    stack[height] = e
                    height += 1
                    low[u] = min(low[u], found[v])
            else:
                e = entered_by[u]
                if e < 0:
                    u = -1
                    continue
                p = b[e] if a[e] == u else a[e]
                low[p] = min(low[p], low[u])
                if low[u] >= found[p]:
                    while True:
                        height -= 1
                        label[stack[height]] = blocks
                        if stack[height] == e:
                            break
                    blocks += 1
                u = p
