"""Symbolic analysis: everything about a factorisation that does not depend on the weights.

A fill-reducing order; elimination tree, postorder, column counts and supernodes of a symmetric graph, without forming
the factor; row structure of the supernodes, the list of updates between them, and where each edge's weight goes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from circuitsim._jit import jit
from circuitsim.kernels import compiled
from circuitsim.program.components import by_node
from circuitsim.solvers.minimum_degree import adjacency as adjacency_of
from circuitsim.solvers.minimum_degree import minimum_degree as minimum_degree_of

adjacency, minimum_degree = compiled(adjacency_of), compiled(minimum_degree_of)


def sparse(ptr: np.ndarray, idx: np.ndarray) -> csr_array:
    """`adjacency` as a sparse array, for scipy."""
    return csr_array((np.ones(idx.size, dtype=bool), idx, ptr), shape=(ptr.size - 1, ptr.size - 1))


FAR = 0.2
"""Mean distance of neighbours' numbers, relative to the number of nodes, above which nodes are renumbered first: poor
numberings cost cache misses (a factor of four at half a million nodes) and some fill."""


def fill_reducing(n: int, a: np.ndarray, b: np.ndarray, ptr: np.ndarray, idx: np.ndarray) -> np.ndarray:
    """Elimination order of a graph by approximate minimum degree; parameters as of `analyse` and of `adjacency`.

    Returns
    -------
    (n,) int64 array
        ``order[k]`` is the node eliminated k-th.
    """
    reach = np.abs(idx - np.repeat(np.arange(n), np.diff(ptr)))
    if not reach.size or reach.mean() <= FAR * n:
        return minimum_degree(ptr, idx)
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    near = reverse_cuthill_mckee(sparse(ptr, idx), symmetric_mode=True).astype(np.int64)
    place = _inverse(near, n)
    return near[minimum_degree(*adjacency(n, place[a], place[b]))]


@jit()
def level_sizes(ptr, idx, levels):
    """Numbers of nodes at distances up to ``levels`` from node 0 (levels + 1,), by breadth-first search."""
    size, far, queue = np.zeros(levels + 1, np.int64), np.full(ptr.size - 1, -1), np.zeros(ptr.size - 1, np.int64)
    far[0], size[0], done, found = 0, 1, 0, 1
    while done < found and far[queue[done]] < levels:
        u = queue[done]
        done += 1
        for p in range(ptr[u], ptr[u + 1]):
            v = idx[p]
            if far[v] < 0:
                far[v] = far[u] + 1
                size[far[v]] += 1
                queue[found] = v
                found += 1
    return size


@jit()
def supernode_rows(ptr, idx, parent, count, first):
    """Rows below each (uncut) supernode.

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
    return begin, target, lo, owner, above


@jit()
def held_rows(ptr, rows, begin, lo, group, of_target):
    """Where the rows that each update changes are among the rows of its target (see `updates`).

    Parameters
    ----------
    group, of_target : ndarray
        ``of_target[group[t]:group[t + 1]]``: the updates of panel t.

    Returns
    -------
    held_ptr, held : ndarray of int64, int32
        ``held[held_ptr[u]:held_ptr[u + 1]]``: places among the rows of the target of update u.
    """
    m, pairs = ptr.size - 1, lo.size
    start, held_ptr = np.empty(pairs, np.int64), np.zeros(pairs + 1, np.int64)
    for s in range(m):
        for u in range(begin[s], begin[s + 1]):
            start[u] = ptr[s] + lo[u]
            held_ptr[u + 1] = held_ptr[u] + ptr[s + 1] - start[u]
    held = np.empty(held_ptr[pairs], np.int32)
    local = np.empty(rows[rows.size - 1] + 1 if rows.size else 0, np.int32)  # ground is the last row
    for t in range(m):
        if group[t] < group[t + 1]:
            for p in range(ptr[t], ptr[t + 1]):
                local[rows[p]] = p - ptr[t]
        for u in of_target[group[t] : group[t + 1]]:
            for q in range(held_ptr[u], held_ptr[u + 1]):
                held[q] = local[rows[start[u] + q - held_ptr[u]]]
    return held_ptr, held


@jit()
def place_edges(low, high, edge_ptr, cut, ptr, rows, offset):
    """Index into the values for each edge, given its ends in elimination order; those of panel t are
    ``edge_ptr[t]:edge_ptr[t + 1]``."""
    place = np.empty(low.size, np.int64)
    local = np.empty(cut[cut.size - 1] + 1, np.int64)
    for t in range(cut.size - 1):
        if edge_ptr[t] < edge_ptr[t + 1]:
            for p in range(ptr[t], ptr[t + 1]):
                local[rows[p]] = p - ptr[t]
        for q in range(edge_ptr[t], edge_ptr[t + 1]):
            place[q] = offset[t] + (low[q] - cut[t]) * (ptr[t + 1] - ptr[t]) + local[high[q]]
    return place


@jit()
def elimination_tree(ptr, idx, order, place):
    """Parent of each node: the first node after it that its elimination touches; -1 at a root (Liu 1986). Nodes are
    numbered by ``order``, with the inverse ``place``."""
    n = order.size
    parent = np.full(n, -1, np.int32)
    shortcut = np.full(n, -1, np.int32)
    for i in range(n):
        for p in range(ptr[order[i]], ptr[order[i] + 1]):
            k = place[idx[p]]
            while k != -1 and k < i:
                up = shortcut[k]
                shortcut[k] = i
                if up == -1:
                    parent[k] = i
                k = up
    return parent


@jit()
def postorder(parent):
    """Order in which every subtree is contiguous and children come before parents; ``post[k]`` is visited k-th."""
    n = parent.size
    child = np.full(n + 1, -1, np.int32)
    sibling = np.full(n, -1, np.int32)
    for i in range(n - 1, -1, -1):
        above = parent[i] if parent[i] >= 0 else n
        sibling[i] = child[above]
        child[above] = i
    post = np.empty(n, np.int64)
    k = 0
    i = child[n]
    while i >= 0:
        while child[i] >= 0:
            i = child[i]
        post[k] = i
        k += 1
        while i >= 0 and sibling[i] < 0:  # last of its family: the parent is next
            i = parent[i]
            if i >= 0:
                post[k] = i
                k += 1
        if i >= 0:
            i = sibling[i]
    return post


@jit()
def column_counts(ptr, idx, parent):
    """Entries of each column of the factor, diagonal included, for a postordered graph (Gilbert, Ng & Peyton 1994)."""
    n = parent.size
    count = np.ones(n, np.int64)
    first = np.arange(n)
    top = np.full(n, -1, np.int64)  # largest first-descendant among the leaves of row i seen so far
    leaf = np.full(n, -1, np.int64)
    shortcut = np.arange(n)
    for j in range(n):
        if parent[j] >= 0:
            first[parent[j]] = min(first[parent[j]], first[j])
            count[parent[j]] = 0  # only a leaf of the tree starts at one
    for j in range(n):
        if parent[j] >= 0:
            count[parent[j]] -= 1
        for p in range(ptr[j], ptr[j + 1]):
            i = idx[p]
            if i <= j or first[j] <= top[i]:
                continue
            top[i] = first[j]
            count[j] += 1
            if leaf[i] >= 0:
                q = leaf[i]
                while q != shortcut[q]:
                    q = shortcut[q]
                s = leaf[i]
                while s != q:
                    above = shortcut[s]
                    shortcut[s] = q
                    s = above
                count[q] -= 1
            leaf[i] = j
        if parent[j] >= 0:
            shortcut[j] = parent[j]
    for j in range(n):
        if parent[j] >= 0:
            count[parent[j]] += count[j]
    return count


@jit()
def _worth_merging(columns, zeros, total):
    """The relaxed-amalgamation rule: the wider the result, the smaller the fraction of stored zeros it may have."""
    if columns <= 4:
        return True
    share = zeros / total
    return share < 0.05 or (columns <= 48 and share < 0.1) or (columns <= 8 and share < 0.5)


@jit()
def supernodes(parent, count):
    """First columns of the relaxed supernodes of a postordered graph, with n appended.

    Columns share a supernode where the structure of one is that of the next plus itself; then a supernode is merged
    with the one right before it, where that is its child and few explicit zeros arise.
    """
    n = parent.size
    first = np.empty(n + 1, np.int64)
    zeros = np.empty(n + 1, np.int64)
    groups = 0
    j = 0
    while j < n:
        begin = j
        while j + 1 < n and parent[j] == j + 1 and count[j + 1] == count[j] - 1:
            j += 1
        j += 1
        first[groups] = begin
        zeros[groups] = 0
        groups += 1
        below = count[j - 1] - 1
        while groups > 1:
            start = first[groups - 1]
            before = first[groups - 2]
            if parent[start - 1] < 0 or parent[start - 1] >= j:
                break
            extra = (start - before) * (j - start + below - (count[start - 1] - 1))
            stored = zeros[groups - 2] + zeros[groups - 1] + extra
            width = j - before
            if not _worth_merging(width, stored, width * (width + 1) // 2 + width * below):
                break
            zeros[groups - 2] = stored
            groups -= 1
    first[groups] = n
    return first[: groups + 1].copy()


@jit()
def split_wide(first, widest):
    """Cut supernodes wider than ``widest`` into near-equal pieces."""
    pieces = 0
    for s in range(first.size - 1):
        pieces += (first[s + 1] - first[s] + widest - 1) // widest
    cut = np.empty(pieces + 1, np.int64)
    owner = np.empty(pieces, np.int64)
    put = 0
    for s in range(first.size - 1):
        width = first[s + 1] - first[s]
        parts = (width + widest - 1) // widest
        for t in range(parts):
            cut[put] = first[s] + t * width // parts
            owner[put] = s
            put += 1
    cut[pieces] = first[first.size - 1]
    return cut, owner


#: Widest panel: small enough that its diagonal block stays in the first-level cache.
WIDEST = 64


@dataclass(frozen=True, eq=False, repr=False)
class Symbolic:
    """The panels of a factorisation, ready for numbers.

    A panel is a set of consecutive columns ``first[t]:first[t+1]`` with one list of rows: its own columns, rows below,
    and ground last. Its values are stored by columns, ``height × width``, from ``offset[t]``. ``order[k]`` is the node
    eliminated k-th; ``count[k]`` are the entries of its column of the factor, diagonal included, ground not.
    """

    order: np.ndarray
    count: np.ndarray
    first: np.ndarray
    row_ptr: np.ndarray
    rows: np.ndarray
    offset: np.ndarray
    above: np.ndarray
    update_ptr: np.ndarray
    target: np.ndarray
    lo: np.ndarray
    held_ptr: np.ndarray
    held: np.ndarray
    edge_ptr: np.ndarray
    edges: np.ndarray
    place: np.ndarray
    panel_of_edge: np.ndarray

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """The arguments of `panel.factor_active`."""
        return (
            self.first,
            self.row_ptr,
            self.offset,
            self.update_ptr,
            self.target,
            self.lo,
            self.held_ptr,
            self.held,
            self.edge_ptr,
            self.edges,
            self.place,
        )


def analyse(n: int, a: np.ndarray, b: np.ndarray, ptr: np.ndarray, idx: np.ndarray) -> Symbolic:
    """Symbolic factorisation of the Laplacian of a graph with ground.

    Parameters
    ----------
    n : int
        Unknowns 0..n-1; index n is ground.
    a, b : (m,) int arrays
        Edge ends. Repeated edges add up, loops are ignored.
    ptr, idx : int arrays
        Their `adjacency`.
    """
    order = fill_reducing(n, a, b, ptr, idx)
    parent = elimination_tree(ptr, idx, order, _inverse(order, n))
    post = postorder(parent)
    order, place = order[post], _inverse(post, -1)
    position = _inverse(order, n)
    ptr, idx = adjacency(n, position[a], position[b])
    parent = place[parent[post]].astype(np.int32)
    count = column_counts(ptr, idx, parent)
    uncut = supernodes(parent, count)
    below_ptr, below = supernode_rows(ptr, idx, parent, count, uncut)
    lists = csr_array((np.ones(below.size, dtype=bool), below, below_ptr), shape=(uncut.size - 1, n))
    lists.sort_indices()
    first, owner = split_wide(uncut, WIDEST)
    row_ptr, rows = panel_rows(below_ptr, lists.indices, uncut, first, owner)
    offset = np.concatenate(([0], np.cumsum(np.diff(first) * np.diff(row_ptr))))
    begin, target, lo, home, above = updates(first, row_ptr, rows)
    held_ptr, held = held_rows(row_ptr, rows, begin, lo, *by_node(first.size - 1, target))
    low, high = np.minimum(position[a], position[b]), np.maximum(position[a], position[b])
    inside = np.flatnonzero(low < high)
    panel_of_edge = np.full(a.size, -1, np.int64)
    panel_of_edge[inside] = home[low[inside]]
    edge_ptr, order_of_panel = by_node(first.size - 1, panel_of_edge[inside])
    edges = inside[order_of_panel]
    place = place_edges(low[edges], high[edges], edge_ptr, first, row_ptr, rows, offset)
    return Symbolic(
        order,
        count,
        first,
        row_ptr,
        rows,
        offset,
        above,
        begin,
        target,
        lo,
        held_ptr,
        held,
        edge_ptr,
        edges,
        place,
        panel_of_edge,
    )


def _inverse(order: np.ndarray, last: int) -> np.ndarray:
    """The inverse of a permutation, and a ``last`` entry."""
    found = np.full(order.size + 1, last)
    found[order] = np.arange(order.size)
    return found
