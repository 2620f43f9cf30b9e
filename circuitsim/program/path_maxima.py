"""Largest edge of the path between two nodes of a forest, for many pairs."""

from __future__ import annotations

import numpy as np

from circuitsim.kernels import kernel


def path_maxima(
    n: int, tail: np.ndarray, head: np.ndarray, size: np.ndarray, start: np.ndarray, end: np.ndarray
) -> np.ndarray:
    """Largest ``size`` on the path between two nodes of a forest.

    The edges are joined in ascending order by union–find without path compression; in its tree, of logarithmic depth,
    the last edge between two nodes is the largest of their path in the forest.

    Parameters
    ----------
    n : int
        Number of nodes.
    tail, head : (k,) int arrays
        Ends of the edges, which close no loop.
    size : (k,) float array
    start, end : (q,) int arrays
        The pairs of nodes.

    Returns
    -------
    (q,) float array
        NaN where the forest does not join the two nodes, 0 from a node to itself.
    """
    order = np.argsort(size, kind="stable")
    parent, joined = np.arange(n), np.full(n, order.size)
    last = np.full(start.size, -1, dtype=np.int64)
    items = max(n, order.size, start.size)
    kernel(_last_edges, items)(tail[order], head[order], start, end, parent, joined, np.ones(n, np.int64), last)
    return np.append(size[order], [np.nan, 0.0])[last]


def _last_edges(tail, head, start, end, parent, joined, count, last):
    """Position in ``tail`` of the last edge between start and end; its size where there is none, −1 for equal ends."""
    for e in range(tail.size):
        u, v = tail[e], head[e]
        while parent[u] != u:
            u = parent[u]
        while parent[v] != v:
            v = parent[v]
        if count[u] > count[v]:
            u, v = v, u
        parent[u] = v
        joined[u] = e
        count[v] += count[u]
    for q in range(start.size):
        u, v = start[q], end[q]
        while u != v:
            # The links towards the root are ever later ones: the earlier of the two comes first.
            if joined[u] > joined[v]:
                u, v = v, u
            last[q] = joined[u]
            if joined[u] == tail.size:
                break
            u = parent[u]
