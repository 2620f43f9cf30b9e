"""The one place that chooses a fill-reducing ordering."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from circuitsim._jit import jit
from circuitsim.kernels import register_module
from circuitsim.solvers import minimum_degree
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
    order = _compiled()
    if mean_reach(ptr, idx) <= FAR:
        return order(ptr, idx)
    near = breadth_first(ptr, idx)
    place = np.empty_like(near)
    place[near] = np.arange(near.size)
    return near[order(*relabel(ptr, idx, near, place))]


@cache
def _compiled() -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    register_module(minimum_degree)
    compiled: Callable[[np.ndarray, np.ndarray], np.ndarray] = jit()(minimum_degree.minimum_degree)
    return compiled
