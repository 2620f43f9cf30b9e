"""Solve with a factor."""

from __future__ import annotations

import numpy as np

from circuitsim.solvers.laplacian import substitute
from circuitsim.solvers.laplacian.factor import Factor


def solve(factor: Factor, rhs: np.ndarray) -> np.ndarray:
    """Potentials for injected currents.

    Parameters
    ----------
    factor : Factor
    rhs : array_like, shape (n,) or (n, c)
        Net current into each node, one column a case.

    Returns
    -------
    x : ndarray, shape of `rhs`
        Potentials; zero at one node of each component without a path to ground, which takes the net current there.

    Raises
    ------
    ValueError
        Wrong shape, or a factor whose memory was recycled.
    """
    s = factor.symbolic
    rhs = np.ascontiguousarray(rhs, dtype=np.float64)
    if rhs.ndim not in (1, 2) or rhs.shape[0] != s.n:
        raise ValueError(f"right-hand side must have shape ({s.n},) or ({s.n}, c), not {rhs.shape}")
    if factor.spent:
        raise ValueError("this factor's memory was recycled for a later one")
    x = np.empty_like(rhs)
    kernel = substitute.solve_one if rhs.ndim == 1 else substitute.solve_many
    panels = s.first, s.row_ptr, s.rows, s.offset
    kernel(*panels, factor.values, factor.pivots, s.pattern.order, rhs, x)
    return x
