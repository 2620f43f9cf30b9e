"""Kernels: products and solutions of small matrices."""

from __future__ import annotations

import numpy as np


def placed(rows, places, out):
    """Copy rows to the first columns of these rows of ``out``."""
    for i in range(places.size):
        for c in range(rows.shape[1]):
            out[places[i], c] = rows[i, c]


def times(a, b):
    """The product of two matrices, most entries of the first of which are zero."""
    out = np.zeros((a.shape[0], b.shape[1]), b.dtype)
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            if a[i, k] != 0.0:
                for c in range(b.shape[1]):
                    out[i, c] += a[i, k] * b[k, c]
    return out


def solved(matrix, right):
    """Overwrite ``right`` by the solution for a symmetric positive definite ``matrix``, which is overwritten too
    (LDLᵀ)."""
    n, columns = right.shape
    for j in range(n):
        for i in range(j + 1, n):
            if matrix[i, j] != 0.0:
                share = matrix[i, j] / matrix[j, j]
                for k in range(j + 1, i + 1):
                    matrix[i, k] -= share * matrix[k, j]
                for c in range(columns):
                    right[i, c] -= share * right[j, c]
    for j in range(n - 1, -1, -1):
        for c in range(columns):
            right[j, c] = right[j, c] / matrix[j, j]
        for i in range(j):
            share = matrix[j, i]
            if share != 0.0:
                for c in range(columns):
                    right[i, c] -= share * right[j, c]
