"""Currents on forests: Kirchhoff's current law by leaf elimination."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.kernels import kernel

NOISE = 1e-13
"""Currents below this share of the magnitudes they are sums of (and voltages, of the potentials) are rounding."""


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


def rooted_at_earth(n: int, tail: np.ndarray, head: np.ndarray) -> RootedForest:
    """The forest with earth as the root of its tree."""
    return rooted(n, tail, head, np.append(np.zeros(n), 1.0))


def tight_potentials(
    n: int, tail: np.ndarray, head: np.ndarray, bound: np.ndarray, forest: RootedForest | None = None
) -> np.ndarray:
    """Any potentials (n + 1,) with x_tail − x_head = bound on every edge of a forest, 0 at earth and off the forest.

    ``forest`` is that forest, `rooted_at_earth`, where it is known.
    """
    w = np.zeros(n + 1)
    if bound.any():
        forest = rooted_at_earth(n, tail, head) if forest is None else forest
        kernel(_descend, max(n, tail.size))(*forest, tail, bound, w)
    return w


def _descend(order, edge, parent, tail, bound, w):
    for k in range(order.size):
        e = edge[k]
        if e >= 0:
            w[order[k]] = w[parent[k]] + (bound[e] if tail[e] == order[k] else -bound[e])


def forest_flow(
    n: int, tail: np.ndarray, head: np.ndarray, need: np.ndarray, scale: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Currents tail → head on a forest that carry away ``need`` (n + 1,) from its nodes, by leaf elimination.

    Each tree is rooted at the node of the largest ``scale`` (n + 1,): what is left over from rounding stays there,
    where it is smallest in proportion.

    Returns
    -------
    flow, noise : (f,) float arrays
        Current of each edge and the scale of its rounding, A.
    """
    flow, noise = np.zeros(tail.size), np.zeros(tail.size)
    if tail.size:
        rest, size = need.copy(), scale.copy()
        kernel(_eliminate_leaves, max(n, tail.size), alike=True)(
            *rooted(n, tail, head, scale), tail, rest, size, flow, noise
        )
    return flow, noise


def _eliminate_leaves(order, edge, parent, tail, rest, size, flow, noise):
    for k in range(order.size - 1, -1, -1):
        e = edge[k]
        if e >= 0:
            u, p = order[k], parent[k]
            flow[e] = rest[u] if tail[e] == u else -rest[u]
            noise[e] = size[u]
            rest[p] += rest[u]
            size[p] += size[u]
