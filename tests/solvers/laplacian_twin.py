"""Plain numpy twins of the kernels: short, slow, obviously right. Tests hold the kernels equal to them."""

from __future__ import annotations

import numpy as np


def weight_matrix(n: int, a: np.ndarray, b: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Symmetric (n + 1) × (n + 1) matrix of summed weights, ground last, zero diagonal."""
    matrix = np.zeros((n + 1, n + 1))
    np.add.at(matrix, (a, b), weights)
    np.add.at(matrix, (b, a), weights)
    np.fill_diagonal(matrix, 0.0)
    return matrix


def eliminate(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eliminate nodes 0..n-1 of a weight matrix in this order.

    Returns
    -------
    shares : ndarray, shape (n + 1, n)
        l_ik below the diagonal, zero elsewhere.
    pivots : ndarray, shape (n,)
    """
    matrix = matrix.copy()
    n = matrix.shape[0] - 1
    shares = np.zeros((n + 1, n), dtype=matrix.dtype)
    pivots = np.zeros(n, dtype=matrix.dtype)
    for k in range(n):
        column = matrix[k + 1 :, k].copy()
        pivots[k] = column.sum()
        if pivots[k] > 0:
            shares[k + 1 :, k] = column / pivots[k]
            matrix[k + 1 :, k + 1 :] += np.outer(shares[k + 1 :, k], column)
    return shares, pivots


def substitute(shares: np.ndarray, pivots: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """Potentials; 0 where the pivot is zero."""
    n = pivots.size
    left = np.array(rhs, dtype=shares.dtype)
    for k in range(n):
        left[k + 1 :] += np.multiply.outer(shares[k + 1 : n, k], left[k])
    x = np.zeros_like(left)
    for k in range(n - 1, -1, -1):
        own = left[k] / pivots[k] if pivots[k] > 0 else np.zeros_like(left[k])
        x[k] = own + np.tensordot(shares[k + 1 : n, k], x[k + 1 :], 1)
    return x
