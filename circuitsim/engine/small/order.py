"""Approximate minimum-degree order of elimination, and the resulting pattern of the factor."""

from __future__ import annotations

import numpy as np

from circuitsim.solvers.minimum_degree import minimum_degree

FASTER = 3
"""Updates of a fully connected block count less by this factor, since they are faster."""


def eliminate(n, a, b, late, limit):
    """Minimum-degree order of a graph (edges a–b over 0 … n, n is ground) and the factor's pattern.

    Coordinates marked ``late`` come after all others. Gives up where a factorisation takes more than ``limit`` updates
    (`FASTER`).

    Returns
    -------
    position : (n,) int array
        Step at which each coordinate is eliminated; empty if it gave up.
    ptr, members : int arrays
        For each step the coordinates adjacent to the eliminated one.
    """
    at, near = neighbours(n, a, b)
    order, position = minimum_degree(at, near), np.empty(n, np.int64)
    step = 0
    for last in range(2):
        for k in range(n):
            if late[order[k]] == (last == 1):
                position[order[k]] = step
                step += 1
    for k in range(n):
        order[position[k]] = k
    # A coordinate is adjacent to its own neighbours, and to those of coordinates eliminated into it.
    ptr, members, used, updates = np.zeros(n + 1, np.int64), np.empty(2 * a.size + n, np.uint32), 0, 0
    child, sibling, mark = np.full(n, -1, np.int64), np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    for step in range(n):
        k, begin, above = order[step], used, n
        mark[k] = step
        members = lengthened(members, used, used + n)
        for q in range(at[k], at[k + 1]):
            i = near[q]
            if position[i] > step:
                mark[i] = step
                members[used] = i
                used += 1
                above = min(above, position[i])
        c = child[step]
        while c >= 0:
            for q in range(ptr[c], ptr[c + 1]):
                i = members[q]
                if mark[i] != step:
                    mark[i] = step
                    members[used] = i
                    used += 1
                    above = min(above, position[i])
            c = sibling[c]
        ptr[step + 1] = used
        size = used - begin
        updates += size * size if size < n - step - 1 else size * size // FASTER
        if updates > limit:
            return position[:0], ptr, members[:0]
        if above < n:
            sibling[step] = child[above]
            child[above] = step
    return position, ptr, members[:used]


def neighbours(n, a, b):
    """Start of each coordinate's neighbours in one array, and this array, without repetitions."""
    count = np.zeros(n + 1, np.int64)
    for e in range(a.size):
        if a[e] < n and b[e] < n and a[e] != b[e]:
            count[a[e]] += 1
            count[b[e]] += 1
    at = np.zeros(n + 1, np.int64)
    for k in range(n):
        at[k + 1] = at[k] + count[k]
    near, put = np.empty(at[n], np.int32), at[:n].copy()
    for e in range(a.size):
        i, j = a[e], b[e]
        if i < n and j < n and i != j:
            near[put[i]] = j
            near[put[j]] = i
            put[i] += 1
            put[j] += 1
    mark, used = np.full(n, -1, np.int64), 0
    for k in range(n):
        begin = at[k]
        at[k] = used
        for q in range(begin, put[k]):
            j = near[q]
            if mark[j] != k:
                mark[j] = k
                near[used] = j
                used += 1
    at[n] = used
    return at, near[:used].copy()


def lengthened(array, used, size):
    """The array, or a longer one with the same first ``used`` numbers if it has no more than ``size``."""
    if size < array.size:
        return array
    longer = np.empty(array.size + size + 1, array.dtype)
    for q in range(used):
        longer[q] = array[q]
    return longer
