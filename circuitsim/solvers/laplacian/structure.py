"""Row structure of the supernodes, the list of updates between them, and where each edge's weight goes."""

from __future__ import annotations

import numpy as np

from circuitsim._jit import jit


@jit()
def _sort_lists(n, ptr, values):
    """Sort each list of numbers below n, all together: hand them out again in ascending order of the number."""
    place = np.zeros(n + 1, np.int64)
    for v in values:
        place[v + 1] += 1
    for v in range(n):
        place[v + 1] += place[v]
    owner = np.empty(values.size, np.int32)
    for s in range(ptr.size - 1):
        for p in range(ptr[s], ptr[s + 1]):
            owner[place[values[p]]] = s
            place[values[p]] += 1
    free = ptr.copy()
    q = 0
    for v in range(n):
        while q < place[v]:  # by now the end of v's owners
            values[free[owner[q]]] = v
            free[owner[q]] += 1
            q += 1


@jit()
def supernode_rows(ptr, idx, parent, count, first):
    """Rows below each (uncut) supernode, sorted.

    Returns
    -------
    row_ptr : ndarray of int64, shape (supernodes + 1,)
    rows : ndarray of int32
    """
    n = parent.size
    m = first.size - 1
    row_ptr = np.zeros(m + 1, np.int64)
    owner = np.empty(n, np.int32)
    for s in range(m):
        owner[first[s] : first[s + 1]] = s
        row_ptr[s + 1] = row_ptr[s] + count[first[s + 1] - 1] - 1
    rows = np.empty(row_ptr[m], np.int32)
    child = np.full(m, -1, np.int32)
    sibling = np.full(m, -1, np.int32)
    seen = np.full(n, -1, np.int32)
    for s in range(m):
        end = first[s + 1]
        put = row_ptr[s]
        for p in range(ptr[first[s]], ptr[end]):
            i = idx[p]
            if i >= end and seen[i] != s:
                seen[i] = s
                rows[put] = i
                put += 1
        c = child[s]
        while c >= 0:
            for p in range(row_ptr[c], row_ptr[c + 1]):
                i = rows[p]
                if i >= end and seen[i] != s:
                    seen[i] = s
                    rows[put] = i
                    put += 1
            c = sibling[c]
        if parent[end - 1] >= 0:
            above = owner[parent[end - 1]]
            sibling[s] = child[above]
            child[above] = s
    _sort_lists(n, row_ptr, rows)
    return row_ptr, rows


@jit()
def panel_rows(row_ptr, rows, first, cut, owner):
    """Full row lists of the panels (cut supernodes): own columns, the rest of the supernode, rows below, ground."""
    n = cut[cut.size - 1]
    m = cut.size - 1
    ptr = np.zeros(m + 1, np.int64)
    for t in range(m):
        s = owner[t]
        ptr[t + 1] = ptr[t] + first[s + 1] - cut[t] + row_ptr[s + 1] - row_ptr[s] + 1
    out = np.empty(ptr[m], np.int32)
    for t in range(m):
        s = owner[t]
        q = ptr[t]
        for i in range(cut[t], first[s + 1]):
            out[q] = i
            q += 1
        for p in range(row_ptr[s], row_ptr[s + 1]):
            out[q] = rows[p]
            q += 1
        out[q] = n
    return ptr, out


@jit()
def updates(cut, ptr, rows):
    """Which panel updates which: for panel t, sources ``source[begin[t]:begin[t+1]]`` ascending, with row range lo..hi.

    Rows ``lo:hi`` (local to the source) are columns of t; rows from ``lo`` to the end, ground included, are updated.
    """
    n = cut[cut.size - 1]
    m = cut.size - 1
    owner = np.empty(n, np.int32)
    above = np.full(m, -1, np.int32)
    for t in range(m):
        owner[cut[t] : cut[t + 1]] = t
    begin = np.zeros(m + 1, np.int64)
    for sweep in range(2):
        if sweep == 1:
            for t in range(m):
                begin[t + 1] += begin[t]
            source = np.empty(begin[m], np.int32)
            lo = np.empty(begin[m], np.int64)
            hi = np.empty(begin[m], np.int64)
            free = begin[:m].copy()
        else:
            source = np.empty(0, np.int32)
            lo = np.empty(0, np.int64)
            hi = np.empty(0, np.int64)
            free = np.empty(0, np.int64)
        for s in range(m):
            p = ptr[s] + cut[s + 1] - cut[s]
            end = ptr[s + 1] - 1
            if p < end:
                above[s] = owner[rows[p]]
            while p < end:
                t = owner[rows[p]]
                q = p + 1
                while q < end and rows[q] < cut[t + 1]:
                    q += 1
                if sweep == 0:
                    begin[t + 1] += 1
                else:
                    source[free[t]] = s
                    lo[free[t]] = p - ptr[s]
                    hi[free[t]] = q - ptr[s]
                    free[t] += 1
                p = q
    return begin, source, lo, hi, owner, above


@jit()
def place_edges(a, b, position, cut, ptr, rows, offset, owner):
    """Edges grouped by the panel that holds them, and each one's place in the value array.

    Returns
    -------
    edge_ptr, edges : ndarray
        Edges of panel t, ascending: ``edges[edge_ptr[t]:edge_ptr[t + 1]]``. Loops are in no panel.
    place : ndarray of int64
        Index into the values for ``edges``.
    """
    n = position.size
    m = cut.size - 1
    edge_ptr = np.zeros(m + 1, np.int64)
    home = np.full(a.size, -1, np.int32)
    for e in range(a.size):
        if a[e] != b[e]:
            i = position[a[e]] if a[e] < n else n
            j = position[b[e]] if b[e] < n else n
            home[e] = owner[min(i, j)]
            edge_ptr[home[e] + 1] += 1
    for t in range(m):
        edge_ptr[t + 1] += edge_ptr[t]
    edges = np.empty(edge_ptr[m], np.int64)
    free = edge_ptr[:m].copy()
    for e in range(a.size):
        if home[e] >= 0:
            edges[free[home[e]]] = e
            free[home[e]] += 1
    place = np.empty(edge_ptr[m], np.int64)
    local = np.empty(n + 1, np.int64)
    for t in range(m):
        if edge_ptr[t] == edge_ptr[t + 1]:
            continue
        height = ptr[t + 1] - ptr[t]
        for p in range(ptr[t], ptr[t + 1]):
            local[rows[p]] = p - ptr[t]
        for q in range(edge_ptr[t], edge_ptr[t + 1]):
            e = edges[q]
            i = position[a[e]] if a[e] < n else n
            j = position[b[e]] if b[e] < n else n
            place[q] = offset[t] + (min(i, j) - cut[t]) * height + local[max(i, j)]
    return edge_ptr, edges, place
