"""Forests: currents by leaf elimination (Kirchhoff's current law), and the largest edge on the path between two nodes,
for many pairs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim._graphs import Tracks, choose_forest, grow_forest
from circuitsim.kernels import kernel


class RootedForest(NamedTuple):
    """A forest with a root chosen for every tree.

    Attributes
    ----------
    order : (k,) int array
        The nodes with edges, in each tree from the root outwards.
    edge : (k,) int array
        For each of them the edge to its parent; −1 at a root.
    parent : (k,) int array
        Its parent; itself at a root.
    """

    order: np.ndarray
    edge: np.ndarray
    parent: np.ndarray


def spanning_forest(n: int, tail: np.ndarray, head: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Those of ``edges`` that form a spanning forest, taken in order; nodes are 0…n."""
    kept = np.empty(min(n, edges.size), dtype=np.int64)
    count = kernel(choose_forest, max(n, edges.size))(n + 1, tail, head, edges, kept)
    return kept[:count]


def rooted(n: int, tail: np.ndarray, head: np.ndarray, scale: np.ndarray) -> RootedForest:
    """Root each tree of a forest on the nodes 0…n where ``scale`` (n + 1,) is largest, on a tie at the smaller number.

    The tree of the largest ``scale`` of all comes first.
    """
    f = tail.size
    node, parent, edge, root, queue = (np.empty(n + 1, np.int64) for _ in range(5))
    tracks = Tracks(np.empty(n + 2, np.int64), np.empty(n + 1, np.int64), np.empty(2 * f, np.int64), queue)
    grow = kernel(grow_forest, max(n, f))
    found = grow(n + 1, f, tail, head, int(np.argmax(scale)), scale, tracks, node, parent, edge, root)
    node, parent, edge = node[:found], parent[:found], edge[:found]
    tree = root[node]
    at = np.flatnonzero(np.append(True, tree[1:] != tree[:-1])) if found else node
    roots = tree[at]
    return RootedForest(np.insert(node, at, roots), np.insert(edge, at, -1), np.insert(parent, at, roots))


def forest_flow(n: int, tail: np.ndarray, head: np.ndarray, need: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Currents tail → head (f,), A, on a forest with net currents ``need`` (n + 1,) out of its nodes, by leaf
    elimination.

    Each tree is rooted at the node of the largest ``scale`` (n + 1,), where the rounding residual is relatively
    smallest.
    """
    flow = np.zeros(tail.size)
    if tail.size:
        rest = need.copy()
        eliminate = kernel(_eliminate_leaves, max(n, tail.size))
        eliminate(*rooted(n, tail, head, scale), tail, rest, flow)
    return flow


def _eliminate_leaves(order, edge, parent, tail, rest, flow):
    for k in range(order.size - 1, -1, -1):
        e = edge[k]
        if e >= 0:
            u, p = order[k], parent[k]
            flow[e] = rest[u] if tail[e] == u else -rest[u]
            rest[p] += rest[u]


def path_maxima(
    n: int, tail: np.ndarray, head: np.ndarray, size: np.ndarray, start: np.ndarray, end: np.ndarray
) -> np.ndarray:
    """Largest ``size`` on the path between two nodes of a forest.

    The edges are joined in ascending order by union–find without path compression: in its tree, of logarithmic depth,
    the last edge between two nodes is the largest on their path in the forest.

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
            # Links towards the root are later ones: the earlier of the two comes first.
            if joined[u] > joined[v]:
                u, v = v, u
            last[q] = joined[u]
            if joined[u] == tail.size:
                break
            u = parent[u]
