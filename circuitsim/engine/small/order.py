"""Order of elimination: the coordinate with the fewest neighbours comes next (minimum degree).

Written for graphs of up to some thousand coordinates, where memory access counts most: lists of neighbours, no
elements to be absorbed.
"""

from __future__ import annotations

import numpy as np

WIDE = 2_600
"""Most coordinates that may be left when each is joined to five others or more: of meshes and crossbars with as many
left (half of theirs) millions of updates are still to come, which counting would take milliseconds to find out."""

PATIENCE = 4
"""Entries of lists to read for each update that may be made: a node joined to thousands is read again whenever one of
them is eliminated."""


def eliminate(n, a, b, late, limit):
    """Minimum-degree order of a graph (edges a–b over 0 … n, n is ground) and the factor's pattern.

    Every coordinate has a list of those that it is joined to; one that outgrows its place moves to another twice as
    long. A coordinate without neighbours beyond those of the one just eliminated is eliminated with it: no list changes
    for that, since eliminated ones are skipped when a list is read. Coordinates marked ``late`` come after all others.
    Gives up where a factorisation will take more than ``limit`` updates, as far as can be foreseen, or the order itself
    does.

    Returns
    -------
    position : (n,) int array
        When each coordinate is eliminated; empty if it gave up.
    ptr, members : int arrays
        For each step the coordinates that the eliminated one is joined to then.
    """
    near, at, capacity, count = neighbours(n, a, b)
    used_up = at[n]
    mark = np.full(n, n, np.uint32)
    gone = 4 * n
    degree = np.empty(n, np.int64)
    with_degree = np.zeros(2 * n + 1, np.int64)  # coordinates of each degree
    for k in range(n):
        degree[k] = count[k] + n * late[k]
        with_degree[degree[k]] += 1
    position = np.empty(n, np.int64)
    ptr = np.zeros(n + 1, np.int64)
    members = np.empty(2 * a.size + n, np.int64)
    # Who has come to be joined to fewer than the one eliminated, the latest on top; all others wait for their turn.
    fewer, waiting = np.empty(n, np.int64), 0
    turn, low, step, updates, read, ends = 0, 0, 0, 0, 0, count.sum()
    while step < n:
        while with_degree[low] == 0:
            low += 1
        while waiting > 0 and degree[fewer[waiting - 1]] != low:
            waiting -= 1
        if waiting > 0:
            k = fewer[waiting - 1]
        else:
            while degree[turn] != low:  # round and round
                turn = turn + 1 if turn + 1 < n else 0
            k = turn
        level = low
        used, size = ptr[step], low - n * late[k]
        updates += size * size
        # By how many they are joined to, the rest will take about so many, be it a mesh's last separators or a block in
        # which all are joined to all (whose updates go faster).
        rest = n - step
        if updates + ends * ends // (8 * rest) > limit or (size >= 5 and rest > WIDE) or read // PATIENCE > limit:
            return position[:0], ptr, members
        if used + size * (size + 3) // 2 >= members.size:
            members = lengthened(members, used, 2 * members.size + size * (size + 3) // 2 + 1)
        put = used
        for q in range(at[k], at[k] + count[k]):
            members[put] = near[q]
            put += degree[near[q]] < gone
        ptr[step + 1] = used + size
        position[k] = step
        with_degree[low] -= 1
        degree[k] = gone
        ends -= size
        step += 1
        if size == n - step:  # all that is left is joined to all that is left
            members = finish(ptr, members, position, step, late_last(members[used : used + size], late))
            break
        if size == 1:  # a leaf: its neighbour will see that it is gone
            j = members[used]
            ends -= 1
            low, waiting = recount(j, degree[j] - 1, level, degree, with_degree, low, fewer, waiting)
            continue
        for p in range(used, used + size):
            j = members[p]
            begin, length = at[j], count[j]
            read += length + size
            if length + size > capacity[j]:
                if used_up + 2 * (length + size) > near.size:
                    near = lengthened(near, used_up, 2 * near.size + 2 * (length + size))
                for q in range(length):
                    near[used_up + q] = near[begin + q]
                begin, at[j], capacity[j] = used_up, used_up, 2 * (length + size)
                used_up += capacity[j]
            mark[j] = j
            kept = begin
            for q in range(begin, begin + length):
                i = near[q]
                mark[i] = j
                near[kept] = i
                kept += degree[i] < gone  # without a branch, which half of the time would be foretold wrongly
            for q in range(used, used + size):
                i = members[q]
                near[kept] = i
                kept += mark[i] != j
            count[j] = kept - begin
            now = count[j] + n * late[j]
            ends += now - degree[j]
            low, waiting = recount(j, now, level, degree, with_degree, low, fewer, waiting)
        begin, end = used, used + size
        for p in range(begin, end):
            j = members[p]
            if degree[j] != end - begin - 1:
                continue
            members[p], members[begin] = members[begin], j
            begin += 1
            rest = end - begin
            position[j] = step
            for q in range(begin, end):
                members[ptr[step] + q - begin] = members[q]
            ptr[step + 1] = ptr[step] + rest
            with_degree[degree[j]] -= 1
            degree[j] = gone
            updates += rest * rest
            ends -= 2 * rest
            step += 1
            for q in range(begin, end):
                i = members[q]
                low, waiting = recount(i, degree[i] - 1, level, degree, with_degree, low, fewer, waiting)
    return position, ptr, members[: ptr[n]]


def recount(k, now, level, degree, with_degree, low, fewer, waiting):
    """Note by how many a coordinate is joined to others now, and that it waits if these are fewer than ``level``.

    Returns
    -------
    low, waiting : int
        A bound for the least degree; how many wait.
    """
    with_degree[degree[k]] -= 1
    degree[k] = now
    with_degree[now] += 1
    if now < level and waiting < fewer.size:
        fewer[waiting] = k
        waiting += 1
    return min(low, now), waiting


def neighbours(n, a, b):
    """The lists of a graph's neighbours, without repeats: all in one array, where each begins, how many fit in its
    place and how many there are."""
    count = np.zeros(n + 1, np.int64)
    for e in range(a.size):
        if a[e] < n and b[e] < n and a[e] != b[e]:
            count[a[e]] += 1
            count[b[e]] += 1
    at = np.zeros(n + 1, np.int64)
    for k in range(n):
        at[k + 1] = at[k] + count[k]
    capacity = count.copy()
    count[:] = 0
    near = np.empty(4 * at[n] + n, np.uint32)
    for e in range(a.size):
        i, j = a[e], b[e]
        if i < n and j < n and i != j:
            near[at[i] + count[i]] = j
            near[at[j] + count[j]] = i
            count[i] += 1
            count[j] += 1
    mark = np.full(n, -1, np.int64)
    for k in range(n):
        kept = at[k]
        for q in range(at[k], at[k] + count[k]):
            j = near[q]
            if mark[j] != k:
                mark[j] = k
                near[kept] = j
                kept += 1
        count[k] = kept - at[k]
    return near, at, capacity, count


def finish(ptr, members, position, step, rest):
    """Eliminate the coordinates ``rest``, all joined to each other, as they stand; returns the lists of members."""
    used = ptr[step]
    longer = lengthened(members, used, used + rest.size * (rest.size - 1) // 2)
    for k in range(rest.size):
        position[rest[k]] = step + k
        for q in range(k + 1, rest.size):
            longer[used] = rest[q]
            used += 1
        ptr[step + k + 1] = used
    return longer


def lengthened(members, used, size):
    """A longer list that starts with the first ``used`` members."""
    longer = np.empty(size, members.dtype)
    for q in range(used):
        longer[q] = members[q]
    return longer


def late_last(members, late):
    """The members, those that come late after all others."""
    ordered = np.empty(members.size, np.int64)
    put = 0
    for wanted in (False, True):
        for q in range(members.size):
            if late[members[q]] == wanted:
                ordered[put] = members[q]
                put += 1
    return ordered
