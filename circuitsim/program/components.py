"""Connectivity of networks: connected components, spanning forests, blocks (biconnected components), strongly
connected components of directed graphs, and currents that no circulation can change.

Source-free blocks carry no current. Components are labelled by their smallest node; the same labels at every size.
Lists of the edges at each node come from a counting sort, interpreted for small graphs and compiled for large ones.
"""

from __future__ import annotations

import numpy as np

from circuitsim._graphs import incident, new_tracks, unite, voltage_forest
from circuitsim.kernels import kernel


def component_labels(n: int, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """For each of ``n`` nodes the smallest node of its component under the edges a–b.

    Parameters
    ----------
    n : int
        Number of nodes.
    a, b : (m,) integer arrays
        Ends of the edges.

    Returns
    -------
    (n,) int64 array
    """
    parent = np.arange(n)
    kernel(_join, a.size + n)(*map(np.ascontiguousarray, (a, b)), parent)
    return parent


def _join(a, b, parent):
    """Union–find on arrays, to be compiled: the smaller root wins, so in the end every root is its smallest node."""
    for e in range(a.size):
        unite(parent, a[e], b[e])
    # Parents are smaller than their children: one ascending pass finds all roots.
    for u in range(parent.size):
        parent[u] = parent[parent[u]]


def grown_forest(
    n: int, first: np.ndarray, second: np.ndarray, roots: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A breadth-first spanning forest of edges over ``n`` nodes, whose ``roots`` are at most one a tree; node 0 is one.

    Returns
    -------
    node, parent, edge : (k,) int arrays
        The non-root nodes, parents before children; the parent of each, the edge between them.
    root : (n,) int array
        The root of each node's tree.
    """
    nodes, ends = np.unique(np.concatenate([[0], first, second]), return_inverse=True)  # those with edges are few
    a, b = ends[1:].reshape(2, -1)
    strength, root = np.isin(nodes, roots).astype(float), np.arange(n)
    node, parent, edge, top = kernel(voltage_forest, ends.size)(nodes.size, a, b, strength)
    root[nodes] = nodes[top]
    return nodes[node], nodes[parent], edge, root


def by_node(n: int, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positions of ``ends`` grouped by node.

    Parameters
    ----------
    n : int
        Number of nodes.
    ends : (m,) int array
        A node for every position.

    Returns
    -------
    ptr : (n + 1,) int64 array
    position : (m,) int64 array
        Positions of node k: ``position[ptr[k]:ptr[k + 1]]``, ascending.
    """
    ptr = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(np.bincount(ends, minlength=n), out=ptr[1:])
    position = np.empty(ends.size, dtype=np.int64)
    kernel(_place, max(n, ends.size))(ends, ptr[:-1].copy(), position)
    return ptr, position


def _place(ends, free, position):
    for k in range(ends.size):
        position[free[ends[k]]] = k
        free[ends[k]] += 1


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
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    arcs = coo_array((np.ones(tail.size, dtype=bool), (tail, head)), shape=(n, n))
    label: np.ndarray = connected_components(arcs, connection="strong")[1]
    return label


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
    label = np.full(a.size, -1, dtype=np.int64)
    kernel(_hopcroft_tarjan, max(n, a.size))(n, a, b, label)
    return label


def _hopcroft_tarjan(n, a, b, label):
    """Depth-first search (Hopcroft & Tarjan 1973) without recursion: the edge stack is cut where a block ends."""
    tracks, stack, low = new_tracks(n, a.size), np.empty(a.size, np.int64), np.empty(n, np.int64)
    incident(n, a.size, a, b, tracks)
    ptr, next_at = tracks.ptr, tracks.put
    found, entered_by = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    clock, height, blocks = 0, 0, 0
    for root in range(n):
        if found[root] >= 0:
            continue
        found[root] = low[root] = clock
        clock += 1
        next_at[root] = ptr[root]
        u = root
        while u >= 0:
            if next_at[u] < ptr[u + 1]:
                e = tracks.edge[next_at[u]]
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


def on_cycles(n: int, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Which edges of a multigraph over ``n`` nodes, with ends ``a`` and ``b`` (m,), lie on a cycle of two or more.

    Returns
    -------
    (m,) bool array
    """
    label = block_labels(n, a, b)
    on: np.ndarray = np.append(np.bincount(label[label >= 0]) > 1, False)[label]
    return on


def unchangeable(n: int, first: np.ndarray, second: np.ndarray, both_ways: np.ndarray) -> np.ndarray:
    """Edges whose currents no circulation can change.

    Within a strongly connected component of the directions in which currents may change, every edge except bridges lies
    on a cycle.

    Parameters
    ----------
    n : int
        Number of nodes.
    first, second : (m,) int arrays
        Ends of the edges, whose currents may increase from first to second.
    both_ways : (m,) bool array
        The edges whose currents may also decrease; a diode's only if it carries a current.

    Returns
    -------
    (m,) bool array
    """
    falling = np.flatnonzero(both_ways)
    strong = strong_labels(n, np.concatenate([first, second[falling]]), np.concatenate([second, first[falling]]))
    inside = np.flatnonzero(strong[first] == strong[second])
    unique = np.ones(first.size, dtype=bool)
    unique[inside] = ~on_cycles(n, first[inside], second[inside])
    return unique
