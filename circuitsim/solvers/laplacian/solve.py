"""Solve with a factor; residual and one step of refinement from the edge list."""

from __future__ import annotations

import numpy as np

from circuitsim._jit import with_threads
from circuitsim.solvers.laplacian import substitute
from circuitsim.solvers.laplacian.factor import Factor


def solve(factor: Factor, rhs: np.ndarray, threads: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Potentials for injected currents.

    Parameters
    ----------
    factor : Factor
    rhs : array_like, shape (n,) or (n, c)
        Net current into each node, one column a case.
    threads : int
        Threads that share the columns; the result does not depend on it.

    Returns
    -------
    x : ndarray, shape of `rhs`
        Potentials; zero at the pinned nodes.
    leftover : ndarray, shape (pinned,) or (pinned, c)
        Net current of each pinned node's component: current that has nowhere to go.

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
    leftover = np.empty(factor.pinned.shape + rhs.shape[1:])
    pinned = s.pattern.position[factor.pinned]
    arguments = (s.first, s.row_ptr, s.rows, s.offset, factor.values, factor.pivots, s.pattern.order, pinned)
    if rhs.ndim == 1:
        substitute.solve_one(*arguments, rhs, x, leftover)
    elif threads == 1:
        substitute.solve_many(*arguments, rhs, x, leftover)
    else:
        with_threads(threads, substitute.solve_parallel, *arguments, rhs, x, leftover)
    return x, leftover


def residual(factor: Factor, rhs: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Current that is missing at each node, from the edge list, and the local scale to compare it with.

    Parameters
    ----------
    factor : Factor
    rhs, x : ndarray, shape (n,)

    Returns
    -------
    missing : ndarray, shape (n,)
        ``b_k − Σ w (x_k − x_j)``.
    scale : ndarray, shape (n,)
        ``Σ w (|x_k| + |x_j|) + |b_k|``.
    """
    pattern = factor.symbolic.pattern
    missing, scale = np.array(rhs, dtype=np.float64), np.abs(rhs)
    substitute.subtract_flows(pattern.a, pattern.b, factor.weights, np.ascontiguousarray(x), missing, scale)
    return missing, scale


def refine(factor: Factor, rhs: np.ndarray, x: np.ndarray) -> np.ndarray:
    """One step of iterative refinement; flows through shorts cannot be read off the potentials, so none may be left.

    Worth it only where currents nearly cancel: without that, `solve` is already accurate entry by entry.
    """
    missing, _ = residual(factor, rhs, x)
    return x + solve(factor, missing)[0]
