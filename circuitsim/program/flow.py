"""Currents on forests: Kirchhoff's current law by leaf elimination."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.kernels import kernel


class RootedForest(NamedTuple):
    """A forest with a root chosen for every tree.

    Attributes
    ----------
    order : (k,) int array
        The nodes that edges touch, every tree from its root outwards.
    edge : (k,) int array
        For each of them the edge to its parent; −1 at a root.
    parent : (k,) int array
        That parent; itself at a root.
    """

    order: np.ndarray
    edge: np.ndarray
    parent: np.ndarray


def spanning_forest(n: int, tail: np.ndarray, head: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Those of ``edges`` that join something new, taken in order; nodes are 0…n."""
    parent = np.arange(n + 1)
    keep = np.zeros(edges.size, dtype=bool)
    kernel(_join, max(n, edges.size), alike=True)(tail[edges], head[edges], parent, keep)
    return edges[keep]


def _join(tail, head, parent, keep):
    for e in range(tail.size):
        u, v = tail[e], head[e]
        while parent[u] != u:
            parent[u] = parent[parent[u]]
            u = parent[u]
        while parent[v] != v:
            parent[v] = parent[parent[v]]
            v = parent[v]
        if u != v:
            parent[max(u, v)] = min(u, v)
            keep[e] = True


def rooted(n: int, tail: np.ndarray, head: np.ndarray, scale: np.ndarray) -> RootedForest:
    """Root each tree of a forest on the nodes 0…n where ``scale`` (n + 1,) is largest, the smaller number on a tie."""
    f = tail.size
    order, edge, parent = np.empty(2 * f, np.int64), np.empty(2 * f, np.int64), np.empty(2 * f, np.int64)
    ptr, free, at = np.zeros(n + 2, np.int64), np.empty(n + 1, np.int64), np.empty(2 * f, np.int64)
    grow = kernel(_grow, max(n, f), alike=True)
    count = grow(tail, head, scale, ptr, free, at, np.zeros(n + 1, np.int8), order, edge, parent)
    return RootedForest(order[:count], edge[:count], parent[:count])


def _grow(tail, head, scale, ptr, free, at, seen, order, edge, parent):
    """Fill in a `RootedForest`; returns its size. Every tree is walked twice: to find its root, and from there."""
    for ends in (tail, head):
        for e in range(ends.size):
            ptr[ends[e] + 1] += 1
    for k in range(seen.size):
        ptr[k + 1] += ptr[k]
        free[k] = ptr[k]
    for ends in (tail, head):
        for e in range(ends.size):
            at[free[ends[e]]] = e
            free[ends[e]] += 1
    found = 0
    for start in range(seen.size):
        if seen[start] or ptr[start] == ptr[start + 1]:
            continue
        begin, root = found, start
        for walk in (1, 2):
            found = begin + 1
            seen[root], order[begin], edge[begin], parent[begin] = walk, root, -1, root
            visited = begin
            while visited < found:
                u = order[visited]
                visited += 1
                if walk == 1 and (scale[u] > scale[root] or (scale[u] == scale[root] and u < root)):
                    root = u
                for p in range(ptr[u], ptr[u + 1]):
                    e = at[p]
                    v = head[e] if tail[e] == u else tail[e]
                    if seen[v] < walk:
                        seen[v], order[found], edge[found], parent[found] = walk, v, e, u
                        found += 1
    return found


def forest_flow(n: int, tail: np.ndarray, head: np.ndarray, need: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Currents tail → head (f,), A, on a forest that carry away ``need`` (n + 1,) from its nodes, by leaf elimination.

    Each tree is rooted at the node of the largest ``scale`` (n + 1,): what is left over from rounding stays there,
    where it is smallest in proportion.
    """
    flow = np.zeros(tail.size)
    if tail.size:
        rest = need.copy()
        kernel(_eliminate_leaves, max(n, tail.size), alike=True)(*rooted(n, tail, head, scale), tail, rest, flow)
    return flow


def _eliminate_leaves(order, edge, parent, tail, rest, flow):
    for k in range(order.size - 1, -1, -1):
        e = edge[k]
        if e >= 0:
            u, p = order[k], parent[k]
            flow[e] = rest[u] if tail[e] == u else -rest[u]
            rest[p] += rest[u]
