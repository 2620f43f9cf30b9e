"""Edge lists to sorted adjacency, and relabelling: the graph work before any ordering."""

from __future__ import annotations

import numpy as np

from circuitsim._jit import jit


@jit()
def adjacency(n, a, b):
    """Neighbours of every node, sorted, without ground, loops or repetitions.

    Parameters
    ----------
    n : int
        Number of nodes; node ``n`` is ground and leaves no trace here.
    a, b : ndarray of int64, shape (m,)
        Edge ends, in 0..n.

    Returns
    -------
    ptr : ndarray of int64, shape (n + 1,)
    idx : ndarray of int32, shape (ptr[n],)
        The neighbours of node i are ``idx[ptr[i]:ptr[i + 1]]``.
    """
    raw = np.zeros(n + 1, np.int64)
    for e in range(a.size):
        if a[e] != b[e] and a[e] < n and b[e] < n:
            raw[a[e] + 1] += 1
            raw[b[e] + 1] += 1
    for i in range(n):
        raw[i + 1] += raw[i]
    unsorted = np.empty(raw[n], np.int32)
    free = raw[:n].copy()
    for e in range(a.size):
        i, j = a[e], b[e]
        if i != j and i < n and j < n:
            unsorted[free[i]] = j
            free[i] += 1
            unsorted[free[j]] = i
            free[j] += 1
    # Transposing a symmetric graph leaves it the same and its rows sorted; repeated neighbours then lie side by side.
    last = np.full(n, -1, np.int64)
    ptr = np.zeros(n + 1, np.int64)
    for i in range(n):
        for p in range(raw[i], raw[i + 1]):
            j = unsorted[p]
            if last[j] != i:
                last[j] = i
                ptr[j + 1] += 1
    for i in range(n):
        ptr[i + 1] += ptr[i]
        last[i] = -1
        free[i] = ptr[i]
    idx = np.empty(ptr[n], np.int32)
    for i in range(n):
        for p in range(raw[i], raw[i + 1]):
            j = unsorted[p]
            if last[j] != i:
                last[j] = i
                idx[free[j]] = i
                free[j] += 1
    return ptr, idx


@jit()
def relabel(ptr, idx, order, position):
    """Adjacency after renaming node ``order[k]`` to k; rows come out unsorted."""
    n = order.size
    new_ptr = np.zeros(n + 1, np.int64)
    new_idx = np.empty(idx.size, np.int32)
    q = 0
    for k in range(n):
        i = order[k]
        for p in range(ptr[i], ptr[i + 1]):
            new_idx[q] = position[idx[p]]
            q += 1
        new_ptr[k + 1] = q
    return new_ptr, new_idx


@jit()
def mean_reach(ptr, idx):
    """Mean of |i − j| over the edges, as a share of the number of nodes: small where neighbours have near numbers."""
    n = ptr.size - 1
    reach = 0.0
    for i in range(n):
        for p in range(ptr[i], ptr[i + 1]):
            reach += abs(idx[p] - i)
    return reach / max(1, n * idx.size)


@jit()
def breadth_first(ptr, idx):
    """Nodes in breadth-first order, component by component, each from a far end: neighbours come close together."""
    n = ptr.size - 1
    queue = np.empty(n, np.int64)
    seen = np.zeros(n, np.int8)  # how many of the two searches have met the node
    end = 0
    for first in range(n):
        if seen[first] > 0:
            continue
        begin = end
        root = np.int64(first)
        for search in range(2):
            queue[begin] = root
            seen[root] = search + 1
            get, end = begin, begin + 1
            while get < end:
                i = queue[get]
                get += 1
                for p in range(ptr[i], ptr[i + 1]):
                    if seen[idx[p]] == search:
                        seen[idx[p]] = search + 1
                        queue[end] = idx[p]
                        end += 1
            root = queue[end - 1]
    return queue
