"""Order of elimination: the coordinate with the fewest neighbours comes next (minimum degree).

Written for graphs of up to some thousand coordinates, where memory access counts most: lists of neighbours, then rows
of bits, no elements to be absorbed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.engine.small.pointers import pointer, retain

slot = np.uint64
ONE, SIX, LOWEST_SIX, NOTHING = slot(1), slot(6), slot(63), slot(0)

WIDE = 2_600
"""Most coordinates that may be left when each is joined to five others or more, and twice as many when each is joined
to four: of meshes and crossbars with as many left millions of updates are still to come, which counting would take
milliseconds to find out."""

DENSE = 4
"""Rows of bits take the place of lists once each coordinate is joined to so many others and at most `WIDE` are left."""

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
    members = np.empty(size, np.uint32)
    step, updates, read, ends = 0, 0, 0, count.sum()
    while step < n:
        k = next_of_least_degree(queue)
        level = degree[k]
        used, size = ptr[step], level - n * late[k]
        rest = n - step
        if too_wide(size, rest) or read // PATIENCE > limit or exceeds(updates, ends, rest, limit):
            break
        if size >= DENSE and rest <= WIDE:
            step, members = eliminate_rows(near, lists, queue, mark, late, step, updates, limit, position, ptr, members)
            break
        updates += size * size
        members = lengthened(members, used, used + size * (size + 3) // 2)
        put = used
        for q in range(lists.at[k], lists.at[k] + count[k]):
            members[put] = near[q]
            put += degree[near[q]] < queue.number[GONE]
        ptr[step + 1] = used + size
        position[k] = step
        take_out(queue, k)
        ends -= size
        step += 1
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
    return position[: n if step == n else 0], ptr, members[: ptr[n]]


def too_wide(size, rest):
    """Whether more coordinates are left than `WIDE` allows where each is joined to ``size`` others or more."""
    return size >= 4 and rest > (WIDE if size > 4 else 2 * WIDE)


def exceeds(updates, ends, rest, limit):
    """Whether a factor takes more updates than ``limit``, as far as can be foreseen.

    By how many the ``rest`` are joined to (``ends`` in all) they will take about so many, be it a mesh's last
    separators or a block in which all are joined to all (whose updates go faster).
    """
    return updates + ends * ends // (8 * rest) > limit


def eliminate_rows(near, lists, queue, row, late, step, updates, limit, position, ptr, members):
    """The rest of the order, with a row of bits for the neighbours of each coordinate that is left.

    Lists are best while each coordinate is joined to few; of many, 64 are joined to another's at once.

    Parameters
    ----------
    row : (n,) uint32 array
        Filled: the row of each coordinate.

    Returns
    -------
    step : int
        The coordinates eliminated; fewer than all: it gave up.
    members : int array
    """
    n, degree, gone = position.size, queue.degree, queue.number[GONE]
    left, rest = np.empty(n, np.int64), 0
    for k in range(n):
        if degree[k] < gone:
            left[rest] = k
            row[k] = rest
            rest += 1
    width, ends = slot((rest + 63) // 64), 0
    words = np.zeros(rest * np.int64(width), np.uint64)
    for i in range(rest):
        k = left[i]
        ends += degree[k] - n * late[k]
        for q in range(lists.at[k], lists.at[k] + lists.length[k]):
            if degree[near[q]] < gone:
                bit = slot(row[near[q]])
                words[slot(i) * width + (bit >> SIX)] |= ONE << (bit & LOWEST_SIX)
    while step < n:
        k = next_of_least_degree(queue)
        level = degree[k]
        used, size = ptr[step], level - n * late[k]
        updates += size * size
        if exceeds(updates, ends, n - step, limit):
            break
        members = lengthened(members, used, used + size * (size + 3) // 2)
        put, at = used, slot(row[k]) * width
        for w in range(slot(0), width):
            word = words[at + w]
            while word != NOTHING:
                members[put] = left[(w << SIX) + ones((word - ONE) & ~word)]
                put += 1
                word &= word - ONE
        ptr[step + 1] = used + size
        position[k] = step
        take_out(queue, k)
        ends -= size
        step += 1
        for p in range(used, used + size):
            j = members[p]
            into, now = slot(row[j]) * width, n * late[j] - 2  # without itself and the one eliminated
            for w in range(slot(0), width):
                word = words[into + w] | words[at + w]
                words[into + w] = word
                now += np.int64(ones(word))
            turn_off(words, width, row[j], row[j])
            turn_off(words, width, row[j], row[k])
            ends += now - degree[j]
            recount(queue, j, now, level)
        before = step
        step = eliminate_alike(queue, level, used, used + size, step, position, ptr, members)
        for s in range(before, step):
            size -= 1
            updates += size * size
            ends -= 2 * size
            for p in range(used + step - before, ptr[before]):
                turn_off(words, width, row[members[p]], row[members[used + s - before]])
    return step, members


def ones(word):
    """How many bits of an unsigned number of 64 are set."""
    count = NOTHING
    while word != NOTHING:
        word &= word - ONE
        count += ONE
    return count


def turn_off(words, width, i, j):
    """Clear bit ``j`` of row ``i``."""
    words[slot(i) * width + (slot(j) >> SIX)] &= ~(ONE << (slot(j) & LOWEST_SIX))


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
        near = lengthened(near, used, used + 2 * (length + size))
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
        take_out(queue, np.int64(j))
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


def lengthened(array, used, size):
    """The array, or a longer one that starts with its first ``used`` numbers, if it has no more than ``size``."""
    if size < array.size:
        return array
    longer = np.empty(array.size + size + 1, array.dtype)
    for q in range(used):
        longer[q] = array[q]
    return longer
