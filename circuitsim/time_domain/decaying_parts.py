"""Kernels: the decaying parts of a mode, by a singular value decomposition that keeps the digits of small values."""

from __future__ import annotations

import math

import numpy as np

from circuitsim._jit import jit

RANK = 1e-15
"""Singular values below this share of the largest, times their number, are zero."""
UNDRIVEN = 1e-13
"""Share of the magnitudes in a sum below which a source does not move a state."""
SWEEPS = 40
"""Most sweeps of rotations; about six suffice."""
ORTHOGONAL = 1e-15
"""Cosine of the angle between two rows that counts as zero, times the root of their length."""


@jit()
def stored_energy(own, value, coupling, k):
    """Twice the stored energy as a matrix of the states (k, k); ``own`` (m, n) are storing elements over them."""
    found = np.zeros((k, k))
    for e in range(own.shape[0]):
        for i in range(k):
            if own[e, i] != 0.0:
                for j in range(k):
                    found[i, j] += own[e, i] * value[e] * own[e, j]
        if coupling.size:
            for f in range(own.shape[0]):
                if coupling[e, f] != 0.0:
                    for i in range(k):
                        for j in range(k):
                            found[i, j] += own[e, i] * coupling[e, f] * own[f, j]
    return found


@jit()
def rooted(matrix):
    """``matrix`` becomes L, L Lᵀ = matrix (Cholesky)."""
    n = matrix.shape[0]
    for j in range(n):
        for i in range(j, n):
            for c in range(j):
                matrix[i, j] -= matrix[i, c] * matrix[j, c]
        pivot = math.sqrt(matrix[j, j])
        for i in range(j, n):
            matrix[i, j] /= pivot
        for i in range(j):
            matrix[i, j] = 0.0


@jit()
def triangular(rows):
    """The first rows (at most as many as columns) become those of a triangle with the same singular values
    (Householder), largest rows first; returns their number."""
    r, k = rows.shape
    order = np.argsort(-np.sum(rows * rows, axis=1))
    sorted_rows = rows[order]
    for j in range(min(r, k)):
        size = 0.0
        for i in range(j, r):
            size += sorted_rows[i, j] * sorted_rows[i, j]
        size = math.copysign(math.sqrt(size), sorted_rows[j, j])
        if size == 0.0:
            continue
        pivot = sorted_rows[j, j] + size
        for c in range(j + 1, k):
            share = sorted_rows[j, c]
            for i in range(j + 1, r):
                share += sorted_rows[i, j] / pivot * sorted_rows[i, c]
            share *= pivot / size
            sorted_rows[j, c] -= share
            for i in range(j + 1, r):
                sorted_rows[i, c] -= share * sorted_rows[i, j] / pivot
        sorted_rows[j, j] = -size
        for i in range(j + 1, r):
            sorted_rows[i, j] = 0.0
    for i in range(min(r, k)):
        for c in range(k):
            rows[i, c] = sorted_rows[i, c]
    return min(r, k)


@jit()
def rotated(rows, count):
    """Make the first rows orthogonal to each other by rotations (Hestenes 1958): then their lengths are the singular
    values, their directions the right singular vectors."""
    k = rows.shape[1]
    bound, whole = ORTHOGONAL * math.sqrt(k), 0.0
    for i in range(count):
        for c in range(k):
            whole += rows[i, c] * rows[i, c]
    least = (0.01 * RANK) ** 2 * whole
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
                for c in range(k):
                    one, other = rows[i, c], rows[j, c]
                    rows[i, c], rows[j, c] = cosine * one - sine * other, sine * one + cosine * other
        if still:
            return


@jit()
def decompose(own, flow, value, coupling, given, rate, start, drive, shape):
    """Fill in the decaying parts of a mode; returns their number. See `circuitsim.time_domain.decays.Parting`.

    Parameters
    ----------
    own : (m, n) float array
        Voltages of capacitors and currents of inductors over the k states first.
    flow : (r, n) float array
        Voltages of resistors over the root of their resistances.
    value, coupling : (m,), (m, m) float arrays
        F, H; the latter (0, 0) without mutual inductances.
    given : (k, s) float array
        What sources add to the slopes of the states.
    """
    k, s = given.shape
    root = stored_energy(own, value, coupling, k)
    rooted(root)
    rows = np.empty((flow.shape[0], k))
    for e in range(flow.shape[0]):
        for i in range(k):
            found = flow[e, i]
            for c in range(i):
                found -= root[i, c] * rows[e, c]
            rows[e, i] = found / root[i, i]
    count = rows.shape[0]
    if count > k:
        count = triangular(rows)
    rotated(rows, count)
    many = kept(rows, count, max(flow.shape[0], k), rate)
    for p in range(many):
        for j in range(k):
            for i in range(j + 1):
                start[p, j] += rows[p, i] * root[j, i]
        for i in range(k - 1, -1, -1):
            found = rows[p, i]
            for c in range(i + 1, k):
                found -= root[c, i] * shape[c, p]
            shape[i, p] = found / root[i, i]
        for i in range(k):
            for j in range(s):
                drive[p, j] += start[p, i] * given[i, j]
    return unmoved(given, many, drive, shape)


@jit()
def kept(rows, count, number, rate):
    """Directions of the rows that are not zero, the longest first, become the first ones, their squared lengths the
    rates; returns how many there are."""
    k, largest, many = rows.shape[1], 0.0, 0
    size = np.zeros(count)
    for i in range(count):
        for c in range(k):
            size[i] += rows[i, c] * rows[i, c]
        size[i] = math.sqrt(size[i])
        largest = max(largest, size[i])
    whole = rows[:count].copy()
    for i in np.argsort(-size):
        if size[i] > RANK * number * largest:
            rate[many] = size[i] * size[i]
            for c in range(k):
                rows[many, c] = whole[i, c] / size[i]
            many += 1
    return many


@jit()
def unmoved(given, many, drive, shape):
    """Add what moves states without any resistor: charges of current sources, capacitors in loops with sources."""
    k, s = given.shape
    found, rest = many, np.empty(k)
    for j in range(s):
        free = False
        for i in range(k):
            rest[i], size = given[i, j], abs(given[i, j])
            for p in range(many):
                rest[i] -= shape[i, p] * drive[p, j]
                size += abs(shape[i, p]) * abs(drive[p, j])
            if abs(rest[i]) <= UNDRIVEN * size:
                rest[i] = 0.0
            free |= rest[i] != 0.0
        if free:
            for i in range(k):
                shape[i, found] = rest[i]
            drive[found, j] = 1.0
            found += 1
    return found
