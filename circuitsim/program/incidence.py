"""Which edges touch which node: counting sort, interpreted for small graphs and compiled for large ones."""

from __future__ import annotations

import numpy as np

from circuitsim.kernels import COMPILED, kernel


def by_node(n: int, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positions of ``ends`` grouped by node.

    Parameters
    ----------
    n : int
        Number of nodes.
    ends : (m,) int array
        A node for every position.

    Returns
    -------
    ptr : (n + 1,) int64 array
    position : (m,) int64 array
        Node k stands at the positions ``position[ptr[k]:ptr[k + 1]]``, ascending.
    """
    ptr = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(np.bincount(ends, minlength=n), out=ptr[1:])
    if max(n, ends.size) <= COMPILED:
        return ptr, np.argsort(ends, kind="stable")
    position = np.empty(ends.size, dtype=np.int64)
    kernel(_place, max(n, ends.size))(ends, ptr[:-1].copy(), position)
    return ptr, position


def _place(ends, free, position):
    for k in range(ends.size):
        position[free[ends[k]]] = k
        free[ends[k]] += 1
