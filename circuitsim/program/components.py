"""Connected components of an edge list, labelled by their smallest node; the same labels at every size."""

from __future__ import annotations

import numpy as np

SMALL = 2000
"""Below this many nodes and edges a plain union–find beats importing scipy (the small path must not pay for it)."""


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
    if max(n, a.size) <= SMALL:
        return _union_find(n, a, b)
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    graph = coo_matrix((np.ones(a.size, dtype=np.int8), (a, b)), shape=(n, n))
    count, label = connected_components(graph, directed=False)
    smallest = np.full(count, n, dtype=np.int64)
    np.minimum.at(smallest, label, np.arange(n))
    return smallest[label]


def _union_find(n: int, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    parent = list(range(n))

    def find(u: int) -> int:
        while parent[u] != u:
            parent[u] = u = parent[parent[u]]
        return u

    for u, v in zip(a.tolist(), b.tolist()):
        u, v = find(u), find(v)
        if u != v:
            parent[max(u, v)] = min(u, v)
    return np.array([find(u) for u in range(n)], dtype=np.int64)
