"""Kernels: products, solutions and singular values of small matrices, most of whose entries are zero; matrix
exponentials, their action on a state, and their Chebyshev series on a window.

Circuits' system matrices are far from normal in units of V and A and nearly normal in units of √J. So the spectral
radius, not a norm, bounds the steps: Taylor's series of e^{A h} converges to rounding within `TERMS` terms if h times
the radius is at most one.
"""

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


TERMS = 19
"""Terms of Taylor's series; 1 / 19! is below rounding."""
STEPS = 16
"""Maximum number of steps of Taylor's series on a state; beyond it the matrix exponential is cheaper."""
DEGREE = 16
"""Degree of Taylor's series of a matrix exponential."""
PRODUCTS = 24
"""Number of matrix products of a matrix exponential, approximately."""


def put(values, out):
    """``out`` = values, (n,)."""
    for i in range(out.size):
        out[i] = values[i]


def exponential(system, radius, time):
    """e^{A t} − 1 by Taylor's series and squaring, applied to e^{A h} − 1 so that slow modes keep their digits.

    Parameters
    ----------
    system : (n, n) float array
    radius : float
        Largest absolute eigenvalue, 1/s.
    time : float
        s.
    """
    n = system.shape[0]
    doublings = max(0, math.frexp(radius * time)[1] + 1)
    step = math.ldexp(time, -doublings)
    e = np.zeros((n, n))
    for k in range(DEGREE, 0, -1):
        for i in range(n):
            e[i, i] += 1.0
        e = step / k * times(system, e)
    for _ in range(doublings):
        e = 2.0 * e + times(e, e)
    return e


def later(system, radius, time, z):
    """e^{A t} z."""
    n, out = z.size, z.copy()
    steps = max(1.0, math.ceil(radius * time))
    if steps > STEPS:
        change = exponential(system, radius, time)
        for i in range(n):
            for j in range(n):
                out[i] += change[i, j] * z[j]
        return out
    h = time / steps
    term, image = np.empty(n), np.empty(n)
    for _ in range(int(steps)):
        put(out, term)
        for k in range(1, TERMS + 1):
            share, largest = h / k, 0.0
            for i in range(n):
                found = 0.0
                for j in range(n):
                    found += system[i, j] * term[j]
                image[i] = share * found
                largest = max(largest, abs(image[i]))
            if largest == 0.0:
                break
            for i in range(n):
                term[i] = image[i]
                out[i] += image[i]
    return out


def evaluate(system, radius, voltage, current, mode, start, state, where, times, v, i):
    """Branch voltages and currents at times (n,) in the segments ``where`` (n,), into ``v`` and ``i`` (m, n)."""
    for k in range(times.size):
        s = where[k]
        m = mode[s]
        z = later(system[m], radius[m], times[k] - start[s], state[s])
        for b in range(v.shape[0]):
            drop, flow = 0.0, 0.0
            for j in range(z.size):
                drop += voltage[m, j, b] * z[j]
                flow += current[m, j, b] * z[j]
            v[b, k], i[b, k] = drop, flow
