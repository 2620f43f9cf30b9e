"""Strongly connected components of a directed graph: where something can go round."""

from __future__ import annotations

import numpy as np

from circuitsim.kernels import kernel
from circuitsim.program.incidence import by_node


def strong_labels(n: int, tail: np.ndarray, head: np.ndarray) -> np.ndarray:
    """Label of the strongly connected component of each of ``n`` nodes under the arcs tail → head.

    Parameters
    ----------
    n : int
    tail, head : (m,) int arrays

    Returns
    -------
    (n,) int64 array
        Two nodes have the same label iff arcs lead from each to the other.
    """
    ptr, position = by_node(n, tail)
    label = np.full(n, -1, dtype=np.int64)
    work = [np.full(n, -1, dtype=np.int64) for _ in range(5)]
    kernel(_tarjan, max(n, tail.size), bitwise_stable=True)(ptr, head[position], label, *work)
    return label


def _tarjan(ptr, target, label, found, low, came_from, next_at, stack):
    """Depth-first search (Tarjan 1972) without recursion."""
    clock, height, parts = 0, 0, 0
    for root in range(found.size):
        if found[root] >= 0:
            continue
        u = root
        while u >= 0:
            if found[u] < 0:
                found[u] = low[u] = clock
                clock += 1
                next_at[u] = ptr[u]
                stack[height] = u
                height += 1
            if next_at[u] < ptr[u + 1]:
                v = target[next_at[u]]
                next_at[u] += 1
                if found[v] < 0:
                    came_from[v] = u
                    u = v
                elif label[v] < 0:
                    low[u] = min(low[u], found[v])
                continue
            if low[u] == found[u]:
                while True:
                    height -= 1
                    label[stack[height]] = parts
                    if stack[height] == u:
                        break
                parts += 1
            p = came_from[u]
            if p >= 0:
                low[p] = min(low[p], low[u])
            u = p
