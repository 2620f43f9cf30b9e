"""Kernels: the decaying parts of a mode, by a singular value decomposition with relative accuracy for small values.

Branch currents over the decaying parts follow by Kirchhoff's current law along the mode's tree.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from circuitsim.time_domain.mode_kernels import (
    CANCELLED,
    CURRENT,
    FREE,
    C,
    L,
    R,
    add,
    fill,
    loops_of_diodes,
    placed,
    scaled,
    times,
    without_rounding,
)

RANK = 1e-15
"""Singular values below this fraction of the largest, times their number, are zero."""
UNDRIVEN = 1e-13
"""Relative magnitude below which a source does not affect a state."""
LEAST = (0.01 * RANK) ** 2
"""Squared lengths below this fraction of their sum are zero."""
SWEEPS = 40
"""Maximum number of sweeps of rotations; about six suffice."""
ORTHOGONAL = 1e-15
"""Cosine of the angle between two rows that counts as zero, times the square root of their length."""


def rooted(matrix):
    """Overwrite ``matrix`` by L, L Lᵀ = matrix (Cholesky); most matrices are nearly diagonal."""
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


def triangular(rows, k):
    """Overwrite the first rows (at most ``k``) such that their first ``k`` columns are triangular with the same
    singular values (Householder); returns their number.

    The pivot of a column is its largest entry, so that small rows keep their digits (Powell & Reid 1969); rows without
    that column are unchanged.
    """
    r, n = rows.shape
    for j in range(min(r, k)):
        pivot, square = j, 0.0
        for i in range(j, r):
            square += rows[i, j] * rows[i, j]
            if abs(rows[i, j]) > abs(rows[pivot, j]):
                pivot = i
        if square == 0.0:
            continue
        for c in range(n):
            rows[j, c], rows[pivot, c] = rows[pivot, c], rows[j, c]
        size = math.copysign(math.sqrt(square), rows[j, j])
        first = rows[j, j] + size
        for c in range(j + 1, n):
            share = rows[j, c]
            for i in range(j + 1, r):
                share += rows[i, j] / first * rows[i, c]
            share *= first / size
            rows[j, c] -= share
            for i in range(j + 1, r):
                rows[i, c] -= share * rows[i, j] / first
        rows[j, j] = -size
        for i in range(j + 1, r):
            rows[i, j] = 0.0
    return min(r, k)


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


def decompose(over, flow, farads, push, system):
    """The decaying parts of a mode: see `Parting`.

    Parameters
    ----------
    over : (q, n) float array
        Voltages of capacitors as sums over the states of the sources, then over the k states.
    flow : (r, n) float array
        The power dissipated in resistors is the sum of the squares of these rows.
    farads : (q,) float array
    push : (k, s) float array
        Contributions of sources to the slopes of charges, except through resistors and capacitors that they affect.
    system : (s, s) float array
        Generator of the sources' states.

    Returns
    -------
    rate, start, lift, drive, shape, along, slope, current : arrays
        ``lift`` and ``current`` refer to the rows of ``flow``.
    """
    (k, s), weighed = push.shape, scaled(over, farads)
    root = times(over[:, s:].T, weighed[:, s:])
    rooted(root)
    slope = push - times(weighed[:, s:].T, times(over[:, :s], system))
    flowing = np.flatnonzero((flow != 0.0).sum(axis=1))
    resistive, sources = flow[flowing][:, s:].T.copy(), flow[flowing][:, :s].copy()
    forward(root, resistive)
    rows, rate = np.eye(flowing.size, k + flowing.size, k), np.zeros(k + s)
    rows[:, :k] = resistive.T
    count = triangular(rows, k) if flowing.size > k else flowing.size
    rotated(rows, count, k)
    many = kept(rows, count, k, rate)
    forward(root, slope)
    force, shape = np.zeros((k + s, s)), np.zeros((k, k + s))
    right, left, size = rows[:many, :k], rows[:many, k:], np.sqrt(rate[:many])
    fill(times(right, slope), force)
    directions = right.T.copy()
    backward(root, directions)
    fill(directions, shape)
    backward(root, slope)
    c = unmoved(slope, many, force, shape)
    # The parts include the sources' share of the resistors' voltages, so their slopes include the sources' slopes, and
    # a fast part is small.
    start, lift, current = np.zeros((c, s + k)), np.zeros((c, flow.shape[0])), np.zeros((flow.shape[0], s + c))
    by_flow, carried = scaled(left, 1.0 / size), scaled(left, size).T.copy()
    fill(times(by_flow, sources), start)
    fill(times(right, root.T), start[:, s:])
    placed(by_flow.T, flowing, lift.T)
    placed(carried, flowing, current[:, s:])
    placed(without(carried, start[:many, :s], sources), flowing, current)
    drive = force[:c] + times(start[:, :s], system)
    along = -times(shape[:, :c], start[:, :s])
    return rate[:c], start, lift, drive, shape[:, :c].copy(), along, slope, current


def without(matrix, rows, given):
    """What a product leaves of given numbers, zero where the rest is rounding."""
    found, size = given - times(matrix, rows), np.abs(given) + times(np.abs(matrix), np.abs(rows))
    for i in range(found.shape[0]):
        for c in range(found.shape[1]):
            found[i, c] *= abs(found[i, c]) > UNDRIVEN * size[i, c]
    return found


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
    for i in range(root.shape[0] - 1, -1, -1):
        for c in range(i + 1, root.shape[0]):
            if root[c, i] != 0.0:
                for j in range(columns.shape[1]):
                    columns[i, j] -= root[c, i] * columns[c, j]
        for j in range(columns.shape[1]):
            columns[i, j] /= root[i, i]


def kept(rows, count, k, rate):
    """Replace the first rows by the directions of the first ``k`` columns of the nonzero rows, the longest first, and
    fill in their squared lengths as rates; returns their number."""
    largest, many = 0.0, 0
    size = np.zeros(count)
    for i in range(count):
        for c in range(k):
            size[i] += rows[i, c] * rows[i, c]
        size[i] = math.sqrt(size[i])
        largest = max(largest, size[i])
    whole = rows[:count].copy()
    for i in np.argsort(-size, kind="mergesort"):
        if size[i] > RANK * max(rows.shape[1] - k, k) * largest:
            rate[many] = size[i] * size[i]
            for c in range(rows.shape[1]):
                rows[many, c] = whole[i, c] / size[i] if c < k else whole[i, c]
            many += 1
    return many


def unmoved(given, many, drive, shape):
    """Add what affects states without any resistor: charges of current sources, capacitors in loops with sources."""
    found, rest = many, without(shape[:, :many], drive[:many], given)
    for j in range(given.shape[1]):
        if rest[:, j].any():
            fill(rest[:, j : j + 1], shape[:, found:])
            drive[found, j] = 1.0
            found += 1
    return found


def over_parts(rows, parting, out):
    """Convert sums over states to sums over the changes of w and the decaying parts: one row per state or part, one
    column per sum.

    The residual where the terms of a sum cancel is set to zero: the error bounds of the parts exclude it, so the sign
    of a diode's current would be that of rounding.
    """
    (k, s), many = parting.along.shape, parting.rate.size
    weights = np.eye(s + many, s + k)
    fill(parting.along.T, weights[:, s:])
    fill(parting.shape.T, weights[s:, s:])
    fill(without_rounding(weights, rows[: s + k]), out)


def of_parts(row, start, s, many, out):
    """Whether a sum over states depends on sources and decaying parts alone; the terms of the sources become exact."""
    for i in range(row.size - 1, -1, -1):
        left, size = row[i], abs(row[i])
        for p in range(many):
            term = out[s + p] * start[p, i]
            left -= term
            size += abs(term)
        small = abs(left) <= CANCELLED * size
        if i >= s and not small:
            return False
        if i < s:
            out[i] = 0.0 if small else left
    return True


def link_flows(net, value, voltage, current, flow, root):
    """Fill in L⁻¹ d and L, where d are the voltages of capacitors and sources across the resistors outside the tree and
    L Lᵀ are the loop resistances: the resistor currents are L⁻ᵀ L⁻¹ d.

    Parameters
    ----------
    net : Wiring
    value : (m,) float array
    voltage, current : (m, n) float arrays
        Of capacitors, sources and current sources over the states and those of the sources.
    flow : (l, n) float array
    root : (l, l) float array
    """
    t0, t1, l0, l1, outer = net.tree[R], net.tree[L], net.rest[R], net.rest[L], net.rest[FREE]
    cut, ohms = net.cut[t0:t1, l0:l1], value[net.twigs[t0:t1]]
    add(net.cut[:t0, l0:l1].T, voltage[net.twigs[:t0]], flow, 1.0)
    driven = times(net.cut[t0:t1, outer:], current[net.links[outer:]])
    add(cut.T, scaled(driven, ohms), flow, -1.0)
    fill(np.diag(value[net.links[l0:l1]]), root)
    add(cut.T, scaled(cut, ohms), root, 1.0)
    rooted(root)
    forward(root, flow)


def part_currents(net, role, value, own, system, parting, shared, current):
    """Fill in the currents of capacitors, sources and conducting diodes over w and the decaying parts.

    Parameters
    ----------
    net : Wiring
    role : (m,) int array
    value : (m,) float array
    own : (m, s + k) float array
        Voltages of capacitors over the states of the sources and the states.
    system : (s, s) float array
        Generator of the sources' states.
    parting : Parting
    shared : array
        See `circuitsim.time_domain.mode_kernels.loops_of_diodes`.
    current : (m, s + c) float array
        Those of current sources and of resistors outside the tree are there.
    """
    s, l0, l1, inside = system.shape[0], net.rest[C], net.rest[R], slice(net.tree[C], net.tree[L])
    through, i, plates = current[net.links], current[net.twigs], net.links[l0:l1]
    weight = scaled(own[plates], value[plates])
    add(weight[:, :s], system, through[l0:l1], 1.0)
    add(weight[:, s:], parting.slope, through[l0:l1], 1.0)
    add(weight[:, s:], scaled(parting.shape.T, parting.rate).T, through[l0:l1, s:], -1.0)
    add(net.cut[inside, l0:], through[l0:], i[inside], -1.0)
    loops_of_diodes(net, role, shared, i, through)
    placed(i, net.twigs, current)
    placed(through, net.links, current)


class Parting(NamedTuple):
    """The decaying parts of one mode.

    Attributes
    ----------
    rate : (c,) float array
    start : (c, s + k) float array
        y as sums over the states of the sources and the states.
    lift : (c, r) float array
        y as sums over the currents of `resistors`.
    weight : (r,) float array
        Square roots of the loop resistances of these currents, √Ω: `lift` has their rounding over √λ.
    drive : (c, s) float array
    shape, along : (k, c), (k, s) float arrays
        Changes of the states as sums over those of y and w.
    slope : (k, s) float array
        Slopes of the states as sums over w; those over y are −λ shape.
    current : (m, s + c) float array
        Branch currents as sums over w and y.
    value : (m,) float array
        Ω or F.
    resistors : (r,) int array
        Those outside the tree.
    """

    rate: np.ndarray
    start: np.ndarray
    lift: np.ndarray
    weight: np.ndarray
    drive: np.ndarray
    shape: np.ndarray
    along: np.ndarray
    slope: np.ndarray
    current: np.ndarray
    value: np.ndarray
    resistors: np.ndarray


def of_capacitors(net, role, of, value, shared, waves, dependent):
    """The decaying parts of a mode.

    Computed from the currents of the resistors outside the tree: they are independent, so each has the digits of its
    own size; Kirchhoff's current law gives all others.

    Parameters
    ----------
    net : Wiring
    role : (m,) int array
    of : Given
    value : (m,) float array
        Ω, F.
    shared : float array
        As in `circuitsim.time_domain.mode_kernels.loops_of_diodes`.
    waves : Waves
    dependent : (m, s + k) float array
        See `circuitsim.time_domain.modes.Mode`.
    """
    n, s, first = waves.system.shape[0], of.system.shape[0], net.rest[FREE]
    own, outer = net.links[net.rest[R] : net.rest[L]], net.links[first:]
    flow, root = np.zeros((own.size, n)), np.zeros((own.size, own.size))
    link_flows(net, value, waves.voltage, waves.current, flow, root)
    # Current sources change the charges.
    push = times(-net.cut[net.tree[C] : net.tree[R], first:], waves.current[outer][:, :s])
    over, farads = dependent[of.storing], value[of.storing]
    rate, start, by_flow, drive, shape, along, slope, flows = decompose(over, flow, farads, push, of.system)
    backward(root, flows)
    current = np.zeros((role.size, s + rate.size))
    placed(flows, own, current)
    for e in of.sources:
        if role[e] == CURRENT:
            fill(waves.current[e : e + 1, :s], current[e : e + 1])
    lift, weight = times(by_flow, root.T), np.diag(root)
    parts = Parting(rate, start, lift, weight, drive, shape, along, slope, current, value, own)
    part_currents(net, role, value, dependent, of.system, parts, shared, current)
    return parts
