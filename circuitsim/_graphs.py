"""Graph primitives on arrays, interpreted or compiled: union–find, adjacency, spanning forests."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Tracks(NamedTuple):
    """Work space of `grow_forest`, for up to n nodes and m edges."""

    ptr: np.ndarray  # (n + 1,)
    put: np.ndarray  # (n,)
    edge: np.ndarray  # (2 m,)
    queue: np.ndarray  # (n,)


def new_tracks(n, m):
    """The `Tracks` for n nodes and m edges."""
    nodes = np.empty((2, n), np.int64)
    return Tracks(np.empty(n + 1, np.int64), nodes[0], np.empty(2 * m, np.int64), nodes[1])


def find(leader, k):
    """The representative of the set of ``k``, with path halving."""
    while leader[k] != k:
        leader[k] = leader[leader[k]]
        k = leader[k]
    return k


def unite(leader, a, b):
    """Unite the sets of two elements under the smaller representative; returns whether they were disjoint."""
    a, b = find(leader, a), find(leader, b)
    leader[max(a, b)] = min(a, b)
    return a != b


def choose_forest(n, first, second, edges, kept):
    """Fill in the edges of a spanning forest over n nodes, preferring earlier ``edges`` (Kruskal 1956); returns their
    number."""
    leader, count = np.empty(n, np.int64), 0
    for k in range(n):
        leader[k] = k
    for e in edges:
        if unite(leader, first[e], second[e]):
            kept[count] = e
            count += 1
    return count


def incident(n, m, first, second, tracks):
    """Fill in, for the first m edges, pointers and edge numbers at each of n nodes, in ascending order."""
    ptr, put, edge = tracks.ptr, tracks.put, tracks.edge
    ptr[: n + 1] = 0
    for e in range(m):
        ptr[first[e] + 1] += 1
        ptr[second[e] + 1] += 1
    for k in range(n):
        ptr[k + 1] += ptr[k]
        put[k] = ptr[k]
    for e in range(m):
        edge[put[first[e]]] = e
        put[first[e]] += 1
        edge[put[second[e]]] = e
        put[second[e]] += 1


def grow_forest(n, m, first, second, start, strength, tracks, node, parent, edge, root):
    """Breadth-first spanning forest of m edges over n nodes, grown from ``start`` first.

    Parameters
    ----------
    strength : (n,) float array
        The strongest node of each other tree is its root; ties go to the smallest number.
    tracks : Tracks
    node, parent, edge : int arrays
        Filled in the order of discovery: each non-root node, its parent, the edge between them.
    root : (n,) int array
        Filled: root of each node's tree.

    Returns
    -------
    int
        Number of non-root nodes.
    """
    if m == 0:
        for k in range(n):
            root[k] = k
        return 0
    incident(n, m, first, second, tracks)
    root[:n] = -1
    queue = tracks.queue
    found = 0
    for step in range(n):
        seed = start if step == 0 else (step - 1 if step <= start else step)
        if root[seed] >= 0:
            continue
        begin = found
        while True:
            root[seed] = seed
            queue[0] = seed
            head, tail = 0, 1
            while head < tail:
                u = queue[head]
                head += 1
                for p in range(tracks.ptr[u], tracks.ptr[u + 1]):
                    e = tracks.edge[p]
                    v = first[e] + second[e] - u
                    if root[v] < 0:
                        root[v] = seed
                        node[found], parent[found], edge[found] = v, u, e
                        found += 1
                        queue[tail] = v
                        tail += 1
            strongest = seed
            for k in range(begin, found):
                v = node[k]
                if strength[v] > strength[strongest] or (strength[v] == strength[strongest] and v < strongest):
                    strongest = v
            if step == 0 or strongest == seed:
                break
            for k in range(tail):
                root[queue[k]] = -1
            found, seed = begin, strongest
    return found


def least_at_nodes(first, second, weight, least, holder):
    """Fill in the smallest and second smallest |weight| of the edges at each node (2, n), and the edge of the smallest
    (n,; −1: none).

    Returning arrays would cost callers reference counting for every edge.
    """
    least[:] = np.inf
    holder[:] = -1
    for e in range(weight.size):
        for k in (first[e], second[e]):
            if holder[k] != e and abs(weight[e]) < least[0, k]:
                least[1, k], least[0, k], holder[k] = least[0, k], abs(weight[e]), e
            elif holder[k] != e and abs(weight[e]) < least[1, k]:
                least[1, k] = abs(weight[e])


def voltage_forest(n, first, second, strength):
    """Nodes, parents, edges and roots of a breadth-first forest grown from node 0 (`grow_forest`)."""
    m = first.size
    node, parent, edge = np.empty(m, np.int64), np.empty(m, np.int64), np.empty(m, np.int64)
    root = np.empty(n, np.int64)
    found = grow_forest(n, m, first, second, 0, strength, new_tracks(n, m), node, parent, edge, root)
    return node[:found], parent[:found], edge[:found], root


def make_root(u, parent, edge):
    """Make a node the root of its tree, given the ``parent`` of each node, −1 at roots, and the ``edge`` to it."""
    above, along = -1, -1
    while u >= 0:
        p, e = parent[u], edge[u]
        parent[u], edge[u] = above, along
        u, above, along = p, u, e
