"""The one place that chooses a fill-reducing ordering."""

from __future__ import annotations

import numpy as np

from circuitsim.solvers.laplacian.amd import amd
from circuitsim.solvers.laplacian.graph import breadth_first, mean_reach, relabel

FAR = 0.2
"""Where neighbours' numbers differ by more than this share of all, nodes are renumbered first: numbers that mean
nothing cost cache misses (a factor of four at half a million nodes) and some fill."""


def fill_reducing(ptr: np.ndarray, idx: np.ndarray) -> np.ndarray:
    """Elimination order of a symmetric graph by approximate minimum degree.

    Parameters
    ----------
    ptr, idx : ndarray
        Sorted adjacency (`graph.adjacency`).

    Returns
    -------
    ndarray of int64, shape (n,)
        ``order[k]`` is the node eliminated k-th.
    """
    if mean_reach(ptr, idx) <= FAR:
        return amd(ptr, idx)
    near = breadth_first(ptr, idx)
    place = np.empty_like(near)
    place[near] = np.arange(near.size)
    return near[amd(*relabel(ptr, idx, near, place))]
