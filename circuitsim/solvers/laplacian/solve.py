"""Solve with a factor; residual and one step of refinement from the edge list."""

from __future__ import annotations

import numpy as np

from circuitsim.solvers.laplacian import substitute
from circuitsim.solvers.laplacian.factor import Factor


def solve(factor: Factor, rhs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Potentials for injected currents.

    Parameters
    ----------
    factor : Factor
    rhs : array_like, shape (n,) or (n, c)
        Net current into each node, one column a case.

    Returns
    -------
    x : ndarray, shape of `rhs`
        Potentials; zero at the pinned nodes.
    leftover : ndarray, shape (pinned,) or (pinned, c)
        Net current of each pinned node's component: current that has nowhere to go.
    """
    s = factor.symbolic
    rhs = np.asarray(rhs, dtype=np.float64)
    if rhs.ndim not in (1, 2) or rhs.shape[0] != s.n:
        raise ValueError(f"right-hand side must have shape ({s.n},) or ({s.n}, c), not {rhs.shape}")
    work = rhs.reshape(s.n, 1 if rhs.ndim == 1 else rhs.shape[1])[s.pattern.order]
    substitute.forward(s.first, s.row_ptr, s.rows, s.offset, factor.values, work)
    leftover = work[s.pattern.position[factor.pinned]]
    substitute.backward(s.first, s.row_ptr, s.rows, s.offset, factor.values, factor.pivots, work)
    x = work[s.pattern.position]
    return x.reshape(rhs.shape), leftover.reshape(factor.pinned.shape + rhs.shape[1:])
