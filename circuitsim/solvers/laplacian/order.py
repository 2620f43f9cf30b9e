"""The one place that chooses a fill-reducing ordering."""

from __future__ import annotations

import numpy as np

from circuitsim.solvers.laplacian import amd as _amd

METHODS = ("amd", "natural", "metis")


def fill_reducing(ptr: np.ndarray, idx: np.ndarray, method: str = "amd") -> np.ndarray:
    """Elimination order of a symmetric graph.

    Parameters
    ----------
    ptr, idx : ndarray
        Sorted adjacency (`graph.adjacency`).
    method : {"amd", "natural", "metis"}
        ``"amd"``: approximate minimum degree, ours. ``"metis"``: nested dissection by the optional package pymetis.
        ``"natural"``: nodes as numbered.

    Returns
    -------
    ndarray of int64, shape (n,)
        ``order[k]`` is the node eliminated k-th.

    Raises
    ------
    ValueError
        Unknown method.
    ImportError
        ``"metis"`` without pymetis.
    """
    n = ptr.size - 1
    if method == "natural":
        return np.arange(n)
    if method == "amd":
        return _amd.amd(ptr, idx, max(16, int(10 * np.sqrt(n))))
    if method == "metis":
        import pymetis

        order, _ = pymetis.nested_dissection(xadj=ptr, adjncy=idx)
        return np.asarray(order, dtype=np.int64)
    raise ValueError(f"unknown ordering {method!r}; known: {', '.join(METHODS)}")
