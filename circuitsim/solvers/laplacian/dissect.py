"""Nested dissection by distances: separators for circuits that are spread out (meshes, crossbars, ladders of blocks).

Three far-apart corners A, B, C of a part are found by breadth-first search. Each node gets the scores d(A) − d(B),
d(A) − d(C), d(B) − d(C); a threshold on a score cuts the part in two, and the nodes below it with a neighbour above it
separate the sides. In a square mesh A and B are opposite corners: the first score cuts along a diagonal (best for a
mesh), the others cut straight (best for a crossbar, whose columns are then left alone). On graphs of small diameter
every cut is wide, and the part is left whole for minimum degree.
"""

from __future__ import annotations

import numpy as np

from circuitsim._jit import jit

#: A separator may take at most one node in so many.
THIN = 12
#: Where the cube of a separator's width is less than this share of the part, minimum degree does as well alone.
NECK = 0.25


@jit()
def _distances(ptr, idx, part, mine, root, queue, begin, distance):
    """Breadth-first search from ``root`` within part ``mine``; nodes in ``queue[begin:]``; returns where they end."""
    queue[begin] = root
    distance[root] = 0
    part[root] = -mine  # negative while visited
    get, put = begin, begin + 1
    while get < put:
        i = queue[get]
        get += 1
        for p in range(ptr[i], ptr[i + 1]):
            j = idx[p]
            if part[j] == mine:
                part[j] = -mine
                distance[j] = distance[i] + 1
                queue[put] = j
                put += 1
    for q in range(begin, put):
        part[queue[q]] = mine
    return put


@jit()
def _threshold(ptr, idx, part, mine, nodes, plus, minus, many, wide):
    """Best threshold on the score ``plus − minus``: its cost and itself; infinite cost where every cut is wide."""
    size = nodes.size
    lowest = np.int64(plus[nodes[0]] - minus[nodes[0]])
    highest = lowest
    for i in nodes:
        score = np.int64(plus[i] - minus[i])
        lowest = min(lowest, score)
        highest = max(highest, score)
    span = highest - lowest + 2
    many[:span] = 0
    wide[:span] = 0
    for i in nodes:
        score = plus[i] - minus[i] - lowest
        top = score
        for p in range(ptr[i], ptr[i + 1]):
            j = idx[p]
            if part[j] == mine:
                top = max(top, plus[j] - minus[j] - lowest)
        many[score] += 1
        wide[score] += 1  # separates at every threshold from its own score to just below its highest neighbour's
        wide[top] -= 1
    best = np.inf
    chosen = lowest
    neck = (NECK * size) ** (1.0 / 3.0)
    below, width = np.int64(0), np.int64(0)
    for t in range(span - 1):
        below += many[t]
        width += wide[t]
        lower, upper = below - width, size - below
        if min(lower, upper) * 4 >= size and width * THIN <= size:
            if width < neck:
                return np.inf, lowest
            cost = width * (1.0 + 2.0 * abs(lower - upper) / size)
            if cost < best:
                best, chosen = cost, t + lowest
    return best, chosen


@jit()
def _divide(ptr, idx, part, mine, nodes, plus, minus, threshold, late, taken, spare):
    """Sort ``nodes`` into lower part, upper part (at the end); separator nodes go to ``late``, filled from its end."""
    put_low, put_high = 0, nodes.size
    for i in nodes:
        if plus[i] - minus[i] > threshold:
            put_high -= 1
            spare[put_high] = i
            continue
        separator = False
        for p in range(ptr[i], ptr[i + 1]):
            j = idx[p]
            separator |= part[j] == mine and plus[j] - minus[j] > threshold
        if separator:
            taken -= 1
            late[taken] = i
        else:
            spare[put_low] = i
            put_low += 1
    for q in range(put_low):
        nodes[q] = spare[q]
    for q in range(put_high, nodes.size):
        nodes[q] = spare[q]
    return put_low, put_high, taken


@jit()
def _components(ptr, idx, part, mine, nodes, reached, distance, spare):
    """Lay out a part component by component (the first is ``spare[:reached]``); returns where each ends."""
    ends = np.empty(nodes.size, np.int64)
    many = 1
    ends[0] = reached
    for q in range(reached):
        part[spare[q]] = 0
    for i in nodes:
        if part[i] == mine:
            begin = reached
            reached = _distances(ptr, idx, part, mine, i, spare, begin, distance)
            for q in range(begin, reached):
                part[spare[q]] = 0
            ends[many] = reached
            many += 1
    for q in range(nodes.size):
        nodes[q] = spare[q]
    return ends[:many]


@jit()
def separate(ptr, idx, smallest):
    """Nested separators of a graph.

    Parameters
    ----------
    ptr, idx : ndarray
        Adjacency.
    smallest : int
        Parts of at most so many nodes are left whole.

    Returns
    -------
    late : ndarray of int64
        All separator nodes in the order to eliminate them, after everything else: inner separators first.
    """
    n = ptr.size - 1
    part = np.zeros(n, np.int32)
    da = np.empty(n, np.int32)
    db = np.empty(n, np.int32)
    dc = np.empty(n, np.int32)
    zero = np.zeros(n, np.int32)
    many = np.empty(2 * n + 2, np.int64)
    wide = np.empty(2 * n + 2, np.int64)
    queue = np.arange(n)
    spare = np.empty(n, np.int64)
    late = np.empty(n, np.int64)
    taken = n
    stack = [(0, n)]
    mine = 0
    while len(stack) > 0:
        begin, end = stack.pop()
        if end - begin <= smallest:
            continue
        mine += 1
        nodes = queue[begin:end]
        for i in nodes:
            part[i] = mine
        found = _distances(ptr, idx, part, mine, nodes[0], spare, 0, da)
        if found < nodes.size:
            start = begin
            for stop in _components(ptr, idx, part, mine, nodes, found, da, spare):
                if begin + stop - start > smallest:
                    stack.append((start, begin + stop))
                start = begin + stop
            continue
        a = spare[found - 1]
        _distances(ptr, idx, part, mine, a, spare, 0, da)
        b = spare[found - 1]
        _distances(ptr, idx, part, mine, b, spare, 0, db)
        c = b
        for i in nodes:
            if min(da[i], db[i]) > min(da[c], db[c]):
                c = i
        _distances(ptr, idx, part, mine, c, spare, 0, dc)
        best, chosen = _threshold(ptr, idx, part, mine, nodes, db, zero, many, wide)
        plus, minus = db, zero
        for first, second in ((da, dc), (db, dc)):
            cost, threshold = _threshold(ptr, idx, part, mine, nodes, first, second, many, wide)
            if cost * 1.25 < best:
                best, chosen, plus, minus = cost, threshold, first, second
        if best == np.inf:
            continue
        low, high, taken = _divide(ptr, idx, part, mine, nodes, plus, minus, chosen, late, taken, spare)
        stack.append((begin + high, end))
        stack.append((begin, begin + low))
    return late[taken:].copy()
