"""Order of elimination: the coordinate with the fewest neighbours comes next (minimum degree).

Written for graphs of up to some thousand coordinates, where memory access counts most: lists of neighbours, no
elements to be absorbed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.engine.small.pointers import pointer, retain

WIDE = 2_600
"""Most coordinates that may be left when each is joined to five others or more: of meshes and crossbars with as many
left (half of theirs) millions of updates are still to come, which counting would take milliseconds to find out."""

PATIENCE = 4
"""Entries of lists to read for each update that may be made: a node joined to thousands is read again whenever one of
them is eliminated."""


LOW, WAITING, TURN, GONE = range(4)
"""Where a `Queue` has its numbers."""


class Lists(NamedTuple):
    """Where each coordinate's list of neighbours is in one array of all."""

    at: np.ndarray  # (n + 1,): where it begins
    capacity: np.ndarray  # (n + 1,): how many fit in its place
    length: np.ndarray  # (n + 1,): how many there are
    used: np.ndarray  # (1,): where the last one ends


class Queue(NamedTuple):
    """Which coordinate comes next."""

    degree: np.ndarray  # (n,): how many each is joined to, n more if it comes late; number GONE if eliminated
    with_degree: np.ndarray  # (2 n + 1,): coordinates of each degree
    fewer: np.ndarray  # (n,): those that have come to be joined to fewer than the one eliminated, the latest on top
    number: np.ndarray  # (4,): a bound for the least degree, length of ``fewer``, whose turn it is else, see above


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
    near, lists = neighbours(n, a, b)
    queue = queued(n, lists.length, late)
    found = in_order(n, near, pointer(lists), pointer(queue), late, 2 * a.size + n, limit)
    retain(lists)
    retain(queue)
    return found


def in_order(n, near, lists, queue, late, size, limit):
    """`eliminate` with the lists and the queue made, and room for so many members at first."""
    count, degree, mark = lists.length, queue.degree, np.full(n, n, np.uint32)
    position, ptr = np.empty(n, np.int64), np.zeros(n + 1, np.int64)
    members = np.empty(size, np.int64)
    step, updates, read, ends = 0, 0, 0, count.sum()
    while step < n:
        k = next_of_least_degree(queue)
        level = degree[k]
        used, size = ptr[step], level - n * late[k]
        updates += size * size
        # By how many they are joined to, the rest will take about so many, be it a mesh's last separators or a block in
        # which all are joined to all (whose updates go faster).
        rest = n - step
        if updates + ends * ends // (8 * rest) > limit or (size >= 5 and rest > WIDE) or read // PATIENCE > limit:
            return position[:0], ptr, members
        if used + size * (size + 3) // 2 >= members.size:
            members = lengthened(members, used, 2 * members.size + size * (size + 3) // 2 + 1)
        put = used
        for q in range(lists.at[k], lists.at[k] + count[k]):
            members[put] = near[q]
            put += degree[near[q]] < queue.number[GONE]
        ptr[step + 1] = used + size
        position[k] = step
        take_out(queue, k)
        ends -= size
        step += 1
        if size == n - step:  # all that is left is joined to all that is left
            members = finish(ptr, members, position, step, late_last(members[used : used + size], late))
            break
        if size == 1:  # a leaf: its neighbour will see that it is gone
            ends -= 1
            recount(queue, members[used], degree[members[used]] - 1, level)
            continue
        for p in range(used, used + size):
            j = members[p]
            read += count[j] + size
            near = join_all(near, lists, queue, mark, j, members[used : used + size])
            now = count[j] + n * late[j]
            ends += now - degree[j]
            recount(queue, j, now, level)
        before = step
        step = eliminate_alike(queue, level, used, used + size, step, position, ptr, members)
        for s in range(before, step):
            rest = ptr[s + 1] - ptr[s]
            updates += rest * rest
            ends -= 2 * rest
    return position, ptr, members[: ptr[n]]


def queued(n, count, late):
    """The queue of all coordinates, with how many each is joined to."""
    degree, with_degree = np.empty(n, np.int64), np.zeros(2 * n + 1, np.int64)
    number = np.zeros(4, np.int64)
    number[GONE] = 4 * n
    for k in range(n):
        degree[k] = count[k] + n * late[k]
        with_degree[degree[k]] += 1
    return Queue(degree, with_degree, np.empty(n, np.int64), number)


def next_of_least_degree(queue):
    """The coordinate to eliminate next: the latest that came to be joined to fewer, else round and round."""
    degree, number = queue.degree, queue.number
    low, waiting, turn = number[LOW], number[WAITING], number[TURN]
    while queue.with_degree[low] == 0:
        low += 1
    while waiting > 0 and degree[queue.fewer[waiting - 1]] != low:
        waiting -= 1
    if waiting == 0:
        while degree[turn] != low:
            turn = turn + 1 if turn + 1 < degree.size else 0
    number[LOW], number[WAITING], number[TURN] = low, waiting, turn
    return queue.fewer[waiting - 1] if waiting > 0 else turn


def take_out(queue, k):
    """Note that a coordinate is eliminated."""
    queue.with_degree[queue.degree[k]] -= 1
    queue.degree[k] = queue.number[GONE]


def recount(queue, k, now, level):
    """Note by how many a coordinate is joined to others now, and that it waits if these are fewer than ``level``."""
    degree, number = queue.degree, queue.number
    queue.with_degree[degree[k]] -= 1
    degree[k] = now
    queue.with_degree[now] += 1
    if now < level and number[WAITING] < queue.fewer.size:
        queue.fewer[number[WAITING]] = k
        number[WAITING] += 1
    number[LOW] = min(number[LOW], now)


def join_all(near, lists, queue, mark, j, others):
    """Join a coordinate to ``others``, and leave out of its list which are eliminated; returns the array of lists."""
    degree, gone, used = queue.degree, queue.number[GONE], lists.used[0]
    begin, length, size = lists.at[j], lists.length[j], others.size
    if length + size > lists.capacity[j]:
        if used + 2 * (length + size) > near.size:
            near = lengthened(near, used, 2 * near.size + 2 * (length + size))
        for q in range(length):
            near[used + q] = near[begin + q]
        begin, lists.at[j], lists.capacity[j] = used, used, 2 * (length + size)
        lists.used[0] = used + 2 * (length + size)
    mark[j] = j
    put = begin
    for q in range(begin, begin + length):
        i = near[q]
        mark[i] = j
        near[put] = i
        put += degree[i] < gone  # without a branch, which half of the time would be foretold wrongly
    for q in range(size):
        i = others[q]
        near[put] = i
        put += mark[i] != j
    lists.length[j] = put - begin
    return near


def eliminate_alike(queue, level, begin, end, step, position, ptr, members):
    """Eliminate those of ``members[begin:end]`` that are joined to the rest of them only; returns the next step."""
    degree = queue.degree
    for p in range(begin, end):
        j = members[p]
        if degree[j] != end - begin - 1:
            continue
        members[p], members[begin] = members[begin], j
        begin += 1
        position[j] = step
        for q in range(begin, end):
            members[ptr[step] + q - begin] = members[q]
        ptr[step + 1] = ptr[step] + end - begin
        take_out(queue, j)
        step += 1
        for q in range(begin, end):
            recount(queue, members[q], degree[members[q]] - 1, level)
    return step


def neighbours(n, a, b):
    """The lists of a graph's neighbours, without repeats, in one array, and where they are."""
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
    return near, Lists(at, capacity, count, at[n:].copy())


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
