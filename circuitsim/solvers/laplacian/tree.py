"""Elimination tree, postorder, column counts and supernodes of a symmetric graph, without forming the factor."""

from __future__ import annotations

import numpy as np

from circuitsim._jit import jit


@jit()
def elimination_tree(ptr, idx):
    """Parent of each node: the first node after it that its elimination touches; -1 at a root (Liu 1986)."""
    n = ptr.size - 1
    parent = np.full(n, -1, np.int32)
    shortcut = np.full(n, -1, np.int32)
    for i in range(n):
        for p in range(ptr[i], ptr[i + 1]):
            k = idx[p]
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


def renumbered(parent: np.ndarray, post: np.ndarray) -> np.ndarray:
    """The same tree with node ``post[k]`` as k."""
    place = np.empty(parent.size + 1, np.int32)
    place[post] = np.arange(parent.size)
    place[-1] = -1
    found: np.ndarray = place[parent[post]]
    return found


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
    """The relaxed-amalgamation rule: the wider the result, the smaller the share of stored zeros it may have."""
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
