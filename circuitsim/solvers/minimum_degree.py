"""Approximate minimum degree ordering (Amestoy, Davis & Duff 1996) on a quotient graph.

Eliminated nodes become *elements* (cliques, stored by their members); the others are *variables*, each with a list of
its elements, then variables. Indistinguishable variables are merged and carry a weight. All data are plain arrays, and
ties are broken by position in a list, so the order depends on the graph alone. The functions run interpreted or
compiled.
"""

from __future__ import annotations

import numpy as np

DENSE = 10.0
"""Nodes with more neighbours than this times √n are ordered last without further analysis."""


def adjacency(n, a, b):
    """Neighbours of every node: starts of the rows (n + 1,), and their entries, sorted, without ground, loops or
    repetitions.

    Parameters
    ----------
    n : int
        Number of nodes; node ``n`` is ground and leaves no trace here.
    a, b : (m,) int arrays
        Edge ends, in 0..n.
    """
    raw = np.zeros(n + 1, np.int64)
    for i, j in zip(a, b):
        if i != j and i < n and j < n:
            raw[i + 1] += 1
            raw[j + 1] += 1
    for i in range(n):
        raw[i + 1] += raw[i]
    unsorted = np.empty(raw[n], np.int32)
    free = raw[:n].copy()
    for i, j in zip(a, b):
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


def unlink(i, head, after, before, degree):
    """Take variable i out of its degree list."""
    nxt, prv = after[i], before[i]
    if nxt >= 0:
        before[nxt] = prv
    if prv >= 0:
        after[prv] = nxt
    else:
        head[degree[i]] = nxt


def link(i, d, head, after, before):
    """Put node i first in the list of degree d."""
    if head[d] >= 0:
        before[head[d]] = i
    after[i] = head[d]
    before[i] = -1
    head[d] = i


def _compact(store, start, size):
    """Copy the live lists to the front of a fresh store of the same length."""
    fresh = np.empty(store.size, np.int32)
    used = 0
    for i in range(start.size):
        if start[i] >= 0:
            p = start[i]
            start[i] = used
            for k in range(size[i]):
                fresh[used + k] = store[p + k]
            used += size[i]
    return fresh, used


def _gather_element(k, store, used, start, size, n_elem, weight, stamp, head, after, before, degree):
    """Form element k from pivot k: the union of its variables and of the elements it touches, which are absorbed.

    Members get a negative weight (the mark "in the pivot's element") and leave their degree lists.
    """
    p, elements, length = start[k], n_elem[k], size[k]
    weight[k] = -weight[k]
    begin = p if elements == 0 else used
    end = begin
    external = 0
    for step in range(elements + 1):
        if step < elements:
            e = store[p + step]
            q, many = start[e], size[e]
        else:
            e = k
            q, many = p + elements, length - elements
        for t in range(many):
            i = store[q + t]
            if weight[i] <= 0:
                continue
            external += weight[i]
            weight[i] = -weight[i]
            store[end] = i
            end += 1
            unlink(i, head, after, before, degree)
        if e != k:
            start[e] = -1
            stamp[e] = 0
    start[k], size[k], n_elem[k] = begin, end - begin, -1
    return begin, end, external, (end if elements else used)


def _scan(begin, end, store, start, n_elem, weight, stamp, degree, mark):
    """Leave ``stamp[e] - mark`` = weight of element e outside the pivot's element, for each touched e."""
    for q in range(begin, end):
        i = store[q]
        w = -weight[i]
        for p in range(start[i], start[i] + n_elem[i]):
            e = store[p]
            if stamp[e] >= mark:
                stamp[e] -= w
            elif stamp[e] != 0:
                stamp[e] = degree[e] + mark - w


def _approximate(i, k, store, start, size, n_elem, weight, stamp, mark):
    """Clean the list of variable i, put element k in front, return its outside degree and a hash of the list."""
    p1 = start[i]
    p2 = p1 + n_elem[i]
    p4 = p1 + size[i]
    put = p1
    d = np.int64(0)
    h = np.int64(0)
    for p in range(p1, p2):
        e = store[p]
        if stamp[e] == 0:
            continue
        outside = stamp[e] - mark
        if outside > 0:
            d += outside
            h += e
            store[put] = e
            put += 1
        else:  # aggressive absorption: every member of e is a member of k
            start[e] = -1
            stamp[e] = 0
    kept = put
    for p in range(p2, p4):
        j = store[p]
        if weight[j] > 0:
            d += weight[j]
            h += j
            store[put] = j
            put += 1
    if d > 0:
        # Room for k in front: i was reached through k or through an element absorbed into it, so a slot came free.
        store[put] = store[kept]
        store[kept] = store[p1]
        store[p1] = k
        n_elem[i] = kept - p1 + 1
        size[i] = put - p1 + 1
    return d, h


def _adopt(i, j, after_member, tail):
    """Append the members of j to those of i: they will be eliminated together."""
    after_member[tail[i]] = j
    tail[i] = tail[j]


def _merge_twins(first, store, start, size, n_elem, weight, stamp, mark, chain, after_member, tail):
    """Merge variables with identical lists within one hash bucket; returns the next mark."""
    i = first
    while i >= 0 and chain[i] >= 0:
        for p in range(start[i] + 1, start[i] + size[i]):
            stamp[store[p]] = mark
        previous, j = i, chain[i]
        while j >= 0:
            same = size[j] == size[i] and n_elem[j] == n_elem[i]
            p = start[j] + 1
            while same and p < start[j] + size[j]:
                same = stamp[store[p]] == mark
                p += 1
            if same:
                weight[i] += weight[j]
                weight[j] = 0
                start[j] = -1
                _adopt(i, j, after_member, tail)
                j = chain[j]
                chain[previous] = j
            else:
                previous, j = j, chain[j]
        i = chain[i]
        mark += 1
    return mark


def _next_mark(mark, largest, stamp):
    """A mark above every stamp in use, starting again from small numbers before int64 could overflow."""
    if mark < 2 or mark + largest > 2**62:
        for i in range(stamp.size):
            if stamp[i] != 0:
                stamp[i] = 1
        return np.int64(2)
    return mark


def minimum_degree(ptr, idx):
    """Fill-reducing elimination order of a symmetric graph.

    Parameters
    ----------
    ptr, idx : ndarray
        See `adjacency`.

    Returns
    -------
    order : ndarray of int64, shape (n,)
        ``order[k]`` is the node eliminated k-th.
    """
    n = ptr.size - 1
    store = np.empty(idx.size + idx.size // 5 + 2 * n + 1, np.int32)
    for p in range(idx.size):
        store[p] = idx[p]
    used = np.int64(idx.size)
    start = np.empty(n, ptr.dtype)
    size, degree, tail = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)
    code = np.zeros(n, np.int32)
    n_elem = np.zeros(n, np.int32)  # -1: is an element
    weight = np.ones(n, np.int32)
    stamp = np.ones(n, np.int64)  # 0: absorbed element
    head = np.full(n + 1, -1, np.int32)
    after, before = np.full(n, -1, np.int32), np.full(n, -1, np.int32)
    buckets = 1  # a power of two
    while buckets < n:
        buckets *= 2
    bucket, chain = np.full(buckets, -1, np.int32), np.full(n, -1, np.int32)
    after_member = np.full(n, -1, np.int32)
    order = np.empty(n, np.int64)
    dense = max(16, int(DENSE * np.sqrt(n)))
    eliminated = 0
    for i in range(n - 1, -1, -1):
        start[i], tail[i] = ptr[i], i
        size[i] = ptr[i + 1] - ptr[i]
        degree[i] = size[i]
        if degree[i] > dense:  # last in the order
            eliminated += 1
            order[n - eliminated] = i
            weight[i] = 0
            start[i] = -1
        else:
            link(i, degree[i], head, after, before)
    done, lowest, largest, mark = 0, 0, 0, np.int64(2)
    while eliminated < n:
        while head[lowest] < 0:
            lowest += 1
        k = head[lowest]
        unlink(k, head, after, before, degree)
        if n_elem[k] > 0 and used + lowest >= store.size:
            store, used = _compact(store, start, size)
        fresh = n_elem[k] > 0  # else the element fits where the pivot's list was
        eliminated += weight[k]
        begin, end, outer, used = _gather_element(
            k, store, used, start, size, n_elem, weight, stamp, head, after, before, degree
        )
        degree[k] = outer
        mark = _next_mark(mark + largest, largest + n, stamp)
        _scan(begin, end, store, start, n_elem, weight, stamp, degree, mark)
        for q in range(begin, end):
            i = store[q]
            d, h = _approximate(i, k, store, start, size, n_elem, weight, stamp, mark)
            if d == 0:  # nothing outside the pivot's element: eliminate now, without further fill
                outer += weight[i]
                eliminated -= weight[i]
                weight[i] = 0
                start[i] = -1
                _adopt(k, i, after_member, tail)
            else:  # a bucket holds possible twins
                degree[i] = min(degree[i], d)
                code[i] = h & (bucket.size - 1)
                chain[i] = bucket[code[i]]
                bucket[code[i]] = i
        degree[k] = outer
        largest = max(largest, outer)
        mark = _next_mark(mark + largest, largest + n, stamp)
        for q in range(begin, end):
            i = store[q]
            if weight[i] < 0 and bucket[code[i]] >= 0:
                first = bucket[code[i]]
                bucket[code[i]] = -1
                mark = _merge_twins(first, store, start, size, n_elem, weight, stamp, mark, chain, after_member, tail)
        put = begin
        for q in range(begin, end):
            i = store[q]
            w = -weight[i]
            if w > 0:
                weight[i] = w
                degree[i] = min(degree[i] + outer - w, n - eliminated - w)
                store[put] = i
                put += 1
                link(i, degree[i], head, after, before)
                lowest = min(lowest, degree[i])
        size[k] = put - begin
        if fresh:
            used = put
        if put == begin:
            start[k] = -1
            stamp[k] = 0
        weight[k] = 0
        member = k
        while member >= 0:
            order[done] = member
            done += 1
            member = after_member[member]
    return order
