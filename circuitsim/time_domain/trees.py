"""Kernels: a normal tree (a spanning forest that takes branches in the order of their roles) and its cut-sets."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

VOLTAGE, CONDUCTING, CAPACITOR, RESISTOR, INDUCTOR, BLOCKING, CURRENT, WINDING = range(8)
"""Roles of branches: `circuitsim.time_domain.modes.Role`."""
FIXED, C, R, L, FREE = range(5)
"""Classes of branches: class k has the range ``tree[k]`` to ``tree[k + 1]`` in the tree, and likewise in the links."""
FIRST_ROLE = np.array([0, 2, 3, 4, 5, 7])
"""The first role of each class (`circuitsim.time_domain.modes.Role`), and that of windings, which have no class."""


class Wiring(NamedTuple):
    """A normal tree: its branches, the links, the cut-set matrix between them, and the ranges of the classes.

    With ideal couplings the cut-set matrix also holds turns ratios, and windings are neither branches of the tree nor
    links; ``flows`` (windings, m) are their currents as sums over those of all other branches
    (`circuitsim.time_domain.modes`).
    """

    twigs: np.ndarray
    links: np.ndarray
    cut: np.ndarray
    tree: np.ndarray
    rest: np.ndarray
    flows: np.ndarray


def wired(nodes, first, second, role, order):
    """The normal tree of elements with these roles, within one role in the given order: a `Wiring`.

    Windings come last, after the ranges of the classes.
    """
    m = role.size
    twigs, links = np.empty(m, np.int64), np.empty(m, np.int64)
    tree, rest = np.zeros(FIRST_ROLE.size, np.int64), np.zeros(FIRST_ROLE.size, np.int64)
    t = forest(nodes, first, second, role, order, twigs, links, tree, rest)
    cut = np.zeros((t, m - t))
    cut_sets(nodes, first, second, twigs[:t], links[: m - t], cut)
    return Wiring(twigs[:t], links[: m - t], cut, tree, rest, np.zeros((0, 0)))


def forest(nodes, first, second, role, order, twigs, links, tree, rest):
    """Fill in a spanning forest that takes branches in ascending order of role, and within a role in the given order;
    the remaining branches (links); and the ranges of the classes of both.

    Returns the number of branches in the forest.
    """
    root, t, left, kind = np.arange(nodes), 0, 0, 0
    for k in range(FIRST_ROLE[FREE + 1] + 1):
        if k == FIRST_ROLE[kind]:
            tree[kind], rest[kind] = t, left
            kind += 1
        for e in order:
            if role[e] != k:
                continue
            a, b = root_of(root, first[e]), root_of(root, second[e])
            if a == b:
                links[left] = e
                left += 1
            else:
                root[b] = a
                twigs[t] = e
                t += 1
    return t


def root_of(root, node):
    """The root of a node's tree."""
    while root[node] != node:
        root[node] = root[root[node]]
        node = root[node]
    return node


def cut_sets(nodes, first, second, twigs, links, cut):
    """Fill in the cut-set matrix (t, l) of a forest, from the tree path between the ends of each link."""
    above, by, sign, depth = rooted(nodes, first, second, twigs)
    for k in range(links.size):
        a, b = first[links[k]], second[links[k]]
        while a != b:
            if depth[a] >= depth[b]:
                cut[by[a], k] += sign[a]
                a = above[a]
            else:
                cut[by[b], k] -= sign[b]
                b = above[b]


def rooted(nodes, first, second, twigs):
    """For each node of a forest: parent, branch to it, +1 where the branch begins at the node, depth."""
    begin, queue = np.zeros(nodes + 1, np.int64), np.empty(nodes, np.int64)
    for j in range(twigs.size):
        begin[first[twigs[j]]] += 1
        begin[second[twigs[j]]] += 1
    for u in range(nodes):
        begin[u + 1] += begin[u]
    beside = np.empty(2 * twigs.size, np.int64)
    for j in range(twigs.size):
        for u in (first[twigs[j]], second[twigs[j]]):
            begin[u] -= 1
            beside[begin[u]] = j
    above, by, depth = np.full(nodes, -1), np.full(nodes, -1), np.full(nodes, -1)
    sign = np.zeros(nodes)
    for start in range(nodes):
        if depth[start] >= 0:
            continue
        depth[start], queue[0], many, at = 0, start, 1, 0
        while at < many:
            u = queue[at]
            at += 1
            for place in range(begin[u], begin[u + 1]):
                j = beside[place]
                v = second[twigs[j]] if first[twigs[j]] == u else first[twigs[j]]
                if depth[v] < 0:
                    depth[v], above[v], by[v] = depth[u] + 1, u, j
                    sign[v] = 1.0 if first[twigs[j]] == v else -1.0
                    queue[many] = v
                    many += 1
    return above, by, sign, depth
