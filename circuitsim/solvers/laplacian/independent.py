"""The beginning of a minimum degree ordering: independent nodes of few neighbours, all at once.

In a mesh they are half of the nodes. Eliminated one by one they take longer than all others, since each one's
neighbours are updated; here each remaining node is updated once, and its degree is exact.
"""

from __future__ import annotations

import numpy as np

from circuitsim._jit import jit

FEW = 4
"""Most neighbours of such a node."""


@jit()
def unlink(i, head, after, before, degree):
    """Take variable i out of its degree list."""
    nxt, prv = after[i], before[i]
    if nxt >= 0:
        before[nxt] = prv
    if prv >= 0:
        after[prv] = nxt
    else:
        head[degree[i]] = nxt


@jit()
def link(i, d, head, after, before):
    """Put node i first in the list of degree d."""
    if head[d] >= 0:
        before[head[d]] = i
    after[i] = head[d]
    before[i] = -1
    head[d] = i


@jit()
def _choose(store, start, size, n_elem, weight, degree, is_late, head, after, before, order):
    """Make elements of independent nodes, those of the fewest neighbours first; returns how many these are."""
    blocked = is_late.copy()
    count = 0
    for wanted in range(FEW + 1):
        for k in range(start.size):
            if degree[k] != wanted or blocked[k] or weight[k] == 0:
                continue
            unlink(k, head, after, before, degree)
            order[count] = k
            count += 1
            n_elem[k] = -1
            for p in range(start[k], start[k] + size[k]):
                blocked[store[p]] = True
    return count


@jit()
def _sort_list(i, store, start, size, n_elem, weight, seen):
    """Put the elements of variable i in front of its list and take out variables that one of them joins to it; returns
    its degree."""
    begin, end = start[i], start[i] + size[i]
    put, degree = begin, 0
    seen[i] = i
    for p in range(begin, end):
        e = store[p]
        if n_elem[e] < 0:
            store[p], store[put] = store[put], e
            put += 1
            for q in range(start[e], start[e] + size[e]):
                j = store[q]
                if seen[j] != i:
                    seen[j] = i
                    degree += weight[j]
    n_elem[i] = put - begin
    for p in range(put, end):
        j = store[p]
        if seen[j] != i and weight[j] > 0:
            degree += weight[j]
            store[put] = j
            put += 1
    size[i] = put - begin
    return degree


@jit()
def eliminate_independent(store, start, size, n_elem, weight, degree, is_late, head, after, before, order):
    """Eliminate independent nodes of at most `FEW` neighbours in the state of `amd.amd`; returns how many these are."""
    count = _choose(store, start, size, n_elem, weight, degree, is_late, head, after, before, order)
    seen = np.full(start.size, -1, np.int32)
    for i in range(start.size):
        if n_elem[i] < 0 or weight[i] == 0:
            continue
        found = _sort_list(i, store, start, size, n_elem, weight, seen)
        if not is_late[i]:
            unlink(i, head, after, before, degree)
            link(i, found, head, after, before)
        degree[i] = found
    for q in range(count):
        weight[order[q]] = 0
    return count
