"""Kernels: a normal tree (a spanning forest that takes branches in the order of their roles) and its cut-sets."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim._graphs import Tracks, find, grow_forest

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
            a, b = find(root, first[e]), find(root, second[e])
            if a == b:
                links[left] = e
                left += 1
            else:
                root[b] = a
                twigs[t] = e
                t += 1
    return t


def cut_sets(nodes, first, second, twigs, links, cut):
    """Fill in the cut-set matrix (t, l) of a forest, from the tree path between the ends of each link."""
    t, one, two = twigs.size, first[twigs], second[twigs]
    of = np.full((8, nodes), -1)
    tracks = Tracks(np.empty(nodes + 1, np.int64), of[0], np.empty(2 * t, np.int64), of[1])
    node, parent, edge, root, above, by = of[2], of[3], of[4], of[5], of[6], of[7]
    depth = np.zeros(nodes)  # at first no node is preferred as a root
    for k in range(grow_forest(nodes, t, one, two, 0, depth, tracks, node, parent, edge, root)):
        above[node[k]], by[node[k]], depth[node[k]] = parent[k], edge[k], depth[parent[k]] + 1.0
    for k in range(links.size):
        a, b = first[links[k]], second[links[k]]
        while a != b:
            if depth[a] >= depth[b]:
                cut[by[a], k] += 1.0 if one[by[a]] == a else -1.0
                a = above[a]
            else:
                cut[by[b], k] -= 1.0 if one[by[b]] == b else -1.0
                b = above[b]
