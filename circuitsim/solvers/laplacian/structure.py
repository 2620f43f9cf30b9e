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
    """Which panels each panel updates, and where its rows are in them.

    Returns
    -------
    begin, target, lo : ndarray of int64, int32, int64
        Panel s updates ``target[begin[s]:begin[s + 1]]``, ascending. Its rows from ``lo`` (local) to the next one's
        are columns of that target; rows from ``lo`` to the end, ground included, are updated.
    held_ptr, held : ndarray of int64, int32
        ``held[held_ptr[u]:held_ptr[u + 1]]``: these rows' places among the rows of the target of update u.
    owner, above : ndarray of int32
        The panel of each column; the first panel that each panel updates, -1 where there is none.
    """
    n = cut[cut.size - 1]
    m = cut.size - 1
    owner = np.empty(n, np.int32)
    above = np.full(m, -1, np.int32)
    for t in range(m):
        owner[cut[t] : cut[t + 1]] = t
    begin = np.zeros(m + 1, np.int64)
    target, lo = np.empty(0, np.int32), np.empty(0, np.int64)
    for sweep in range(2):
        put = 0
        for s in range(m):
            p = ptr[s] + cut[s + 1] - cut[s]
            end = ptr[s + 1] - 1
            if p < end:
                above[s] = owner[rows[p]]
            while p < end:
                t = owner[rows[p]]
                if sweep == 1:
                    target[put] = t
                    lo[put] = p - ptr[s]
                put += 1
                while p < end and rows[p] < cut[t + 1]:
                    p += 1
            begin[s + 1] = put
        if sweep == 0:
            target, lo = np.empty(put, np.int32), np.empty(put, np.int64)
    held_ptr, held = _held_rows(ptr, rows, begin, target, lo)
    return begin, target, lo, held_ptr, held, owner, above


@jit()
def _held_rows(ptr, rows, begin, target, lo):
    """Places of each update's rows among the rows of its target (see `updates`)."""
    m = ptr.size - 1
    pairs = target.size
    source, held_ptr = np.empty(pairs, np.int32), np.zeros(pairs + 1, np.int64)
    first, of_target = np.zeros(m + 1, np.int64), np.empty(pairs, np.int32)
    for s in range(m):
        for u in range(begin[s], begin[s + 1]):
            source[u] = s
            held_ptr[u + 1] = held_ptr[u] + ptr[s + 1] - ptr[s] - lo[u]
            first[target[u] + 1] += 1
    for t in range(m):
        first[t + 1] += first[t]
    free = first[:m].copy()
    for u in range(pairs):
        of_target[free[target[u]]] = u
        free[target[u]] += 1
    held = np.empty(held_ptr[pairs], np.int32)
    local = np.empty(rows[rows.size - 1] + 1 if rows.size else 0, np.int32)  # ground is the last row
    for t in range(m):
        if first[t] == first[t + 1]:
            continue
        for p in range(ptr[t], ptr[t + 1]):
            local[rows[p]] = p - ptr[t]
        for k in range(first[t], first[t + 1]):
            u = of_target[k]
            row = ptr[source[u]] + lo[u] - held_ptr[u]
            for q in range(held_ptr[u], held_ptr[u + 1]):
                held[q] = local[rows[row + q]]
    return held_ptr, held


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
