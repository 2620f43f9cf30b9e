"""Connected components of an edge list, labelled by their smallest node; the same labels at every size."""

from __future__ import annotations

import numpy as np

from circuitsim._graphs import find, unite
from circuitsim.kernels import COMPILED, kernel, loaded


def component_labels(n: int, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """For each of ``n`` nodes the smallest node of its component under the edges a–b.

    Parameters
    ----------
    n : int
        Number of nodes.
    a, b : (m,) integer arrays
        Ends of the edges.

    Returns
    -------
    (n,) int64 array
    """
    if max(n, a.size) <= COMPILED and not loaded():
        leader = list(range(n))  # interpreted, lists are faster
        for u, v in zip(a.tolist(), b.tolist()):
            unite(leader, u, v)
        return np.array([find(leader, u) for u in range(n)], dtype=np.int64)
    parent = np.arange(n)
    kernel(_join, a.size + n, bitwise_stable=True)(a, b, parent)
    return parent


def _join(a, b, parent):
    """Union–find on arrays, to be compiled: the smaller root wins, so in the end every root is its smallest node."""
    for e in range(a.size):
        unite(parent, a[e], b[e])
    # Parents are smaller than their children: one pass upwards finds all roots.
    for u in range(parent.size):
        parent[u] = parent[parent[u]]
