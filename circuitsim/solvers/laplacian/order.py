"""The one place that chooses a fill-reducing ordering."""

from __future__ import annotations

import numpy as np

from circuitsim.solvers.laplacian.amd import amd
from circuitsim.solvers.laplacian.dissect import separate
from circuitsim.solvers.laplacian.graph import breadth_first, mean_reach, relabel
from circuitsim.solvers.laplacian.peel import peel

METHODS = ("auto", "amd", "dissect", "natural")
#: Parts that nested dissection leaves to minimum degree.
SMALLEST = 5000
#: Fewer nodes are all left to minimum degree: in a mesh of 62,500 separators take as long again to find and save no
#: fill.
LARGE = 80_000
#: Where neighbours' numbers differ by more than this share of all, nodes are renumbered first: numbers that mean
#: nothing cost cache misses (a factor of four at half a million nodes) and some fill.
FAR = 0.2
#: Peeling goes on while a pass removes more than this share of the nodes.
WORTH_A_PASS = 0.0005


def _minimum_degree(ptr: np.ndarray, idx: np.ndarray, late: np.ndarray) -> np.ndarray:
    return amd(ptr, idx, max(16, int(10 * np.sqrt(ptr.size - 1))), late)


def _core(ptr: np.ndarray, idx: np.ndarray, method: str) -> np.ndarray:
    if mean_reach(ptr, idx) > FAR:
        near = breadth_first(ptr, idx)
        place = np.empty_like(near)
        place[near] = np.arange(near.size)
        ptr, idx = relabel(ptr, idx, near, place)
        return near[_choose(ptr, idx, method)]
    return _choose(ptr, idx, method)


def _choose(ptr: np.ndarray, idx: np.ndarray, method: str) -> np.ndarray:
    late = np.zeros(0, np.int64)
    if method == "dissect" or (method == "auto" and ptr.size > LARGE):
        late = separate(ptr, idx, SMALLEST)
    return _minimum_degree(ptr, idx, late)


def _permutation(order: np.ndarray, n: int) -> np.ndarray:
    order = np.array(order, dtype=np.int64)
    if order.shape != (n,) or not np.array_equal(np.sort(order), np.arange(n)):
        raise ValueError(f"an elimination order must name each of the {n} nodes once")
    return order


def fill_reducing(ptr: np.ndarray, idx: np.ndarray, method: str | np.ndarray = "auto") -> np.ndarray:
    """Elimination order of a symmetric graph.

    Parameters
    ----------
    ptr, idx : ndarray
        Sorted adjacency (`graph.adjacency`).
    method : {"auto", "amd", "dissect", "natural"} or array_like of int
        ``"amd"``: approximate minimum degree. ``"dissect"``: nested dissection by distances down to parts of
        `SMALLEST` nodes, these by minimum degree; the same as ``"amd"`` where no thin separator exists. ``"auto"``:
        ``"dissect"`` for graphs of `LARGE` nodes or more, else ``"amd"``. All three peel nodes of degree up
        to two first. ``"natural"``: nodes as numbered. An array is an order from elsewhere.

    Returns
    -------
    ndarray of int64, shape (n,)
        ``order[k]`` is the node eliminated k-th.

    Raises
    ------
    ValueError
        Unknown method, or an array that is no permutation.
    """
    n = ptr.size - 1
    if not isinstance(method, str):
        return _permutation(method, n)
    if method not in METHODS:
        raise ValueError(f"unknown ordering {method!r}; known: dense, {', '.join(METHODS)}")
    if method == "natural":
        return np.arange(n)
    first, core, core_ptr, core_idx = peel(ptr, idx, WORTH_A_PASS)
    if core.size == 0:
        return first
    return np.concatenate([first, core[_core(core_ptr, core_idx, method)]])
