"""Kernels: products, solutions and singular values of small matrices, most of whose entries are zero."""

from __future__ import annotations

import math

import numpy as np

CANCELLED = 1e-15
"""Relative magnitude below which a sum counts as zero."""
LEAST = 1e-34
"""Squared lengths below this fraction of their sum are zero."""
SWEEPS = 40
"""Maximum number of sweeps of rotations; about six suffice."""
ORTHOGONAL = 1e-15
"""Cosine of the angle between two rows that counts as zero, times the square root of their length."""


def times(a, b):
    """The product of two matrices."""
    out = np.zeros((a.shape[0], b.shape[1]), b.dtype)
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            weight = a[i, k]
            if weight != 0.0:
                for c in range(b.shape[1]):
                    out[i, c] += weight * b[k, c]
    return out


def placed(rows, at, target):
    """Store the rows of a matrix as rows ``at`` of a target: numpy's assignment takes seconds to compile."""
    for k in range(at.size):
        for c in range(rows.shape[1]):
            target[at[k], c] = rows[k, c]


def remainder(given, matrix, rows, least):
    """Given numbers less a product of matrices, zero where the difference is below a fraction of the terms' sizes.
    Derivatives, the imaginary parts, are kept."""
    found, size = given.copy(), np.abs(given)
    for i in range(found.shape[0]):
        for k in range(matrix.shape[1]):
            weight = matrix[i, k]
            if weight != 0.0:
                for c in range(found.shape[1]):
                    found[i, c] -= weight * rows[k, c]
                    size[i, c] += abs(weight * rows[k, c])
        for c in range(found.shape[1]):
            if abs(found[i, c].real) <= least * size[i, c]:
                found[i, c] -= found[i, c].real
    return found


def without_rounding(matrix, rows):
    """The product of a matrix and rows; the residual where the terms of a sum cancel is zero."""
    return remainder(np.zeros((matrix.shape[0], rows.shape[1]), rows.dtype), -matrix, rows, CANCELLED)


def rooted(matrix):
    """Overwrite a symmetric positive definite ``matrix`` by L, L Lᵀ = matrix (Cholesky)."""
    n = matrix.shape[0]
    for j in range(n):
        for c in range(j):
            if matrix[j, c] != 0.0:
                for i in range(j, n):
                    matrix[i, j] -= matrix[i, c] * matrix[j, c]
        pivot = np.sqrt(matrix[j, j])
        for i in range(j, n):
            matrix[i, j] /= pivot
        for i in range(j):
            matrix[i, j] = 0.0


def forward(root, columns):
    """Overwrite ``columns`` by L⁻¹ columns."""
    for i in range(root.shape[0]):
        for c in range(i):
            if root[i, c] != 0.0:
                for j in range(columns.shape[1]):
                    columns[i, j] -= root[i, c] * columns[c, j]
        for j in range(columns.shape[1]):
            columns[i, j] /= root[i, i]


def backward(root, columns):
    """Overwrite ``columns`` by L⁻ᵀ columns."""
    forward(root.T[::-1, ::-1], columns[::-1])


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


def rotated(rows, count, k):
    """Make the first ``k`` columns of the first rows orthogonal to each other by rotations (one-sided Jacobi, Hestenes
    1958): then their lengths are the singular values, their directions the right singular vectors, and the columns
    appended as the unit matrix the left ones."""
    bound, whole = ORTHOGONAL * math.sqrt(k), 0.0
    for i in range(count):
        for c in range(k):
            whole += rows[i, c] * rows[i, c]
    least = LEAST * whole
    for _ in range(SWEEPS):
        still = True
        for i in range(count):
            for j in range(i + 1, count):
                a, b, both = 0.0, 0.0, 0.0
                for c in range(k):
                    a += rows[i, c] * rows[i, c]
                    b += rows[j, c] * rows[j, c]
                    both += rows[i, c] * rows[j, c]
                if a <= least or b <= least or abs(both) <= bound * math.sqrt(a) * math.sqrt(b):
                    continue
                still = False
                angle = 0.5 * (b - a) / both
                tangent = math.copysign(1.0, angle) / (abs(angle) + math.sqrt(1.0 + angle * angle))
                cosine = 1.0 / math.sqrt(1.0 + tangent * tangent)
                sine = cosine * tangent
                for c in range(rows.shape[1]):
                    one, other = rows[i, c], rows[j, c]
                    rows[i, c], rows[j, c] = cosine * one - sine * other, sine * one + cosine * other
        if still:
            return
