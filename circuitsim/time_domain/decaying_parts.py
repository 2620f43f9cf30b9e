"""Kernels: the decaying parts of a mode, by a singular value decomposition with relative accuracy for small values.

Branch currents over the decaying parts follow by Kirchhoff's current law along the mode's tree.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from circuitsim.time_domain.mode_kernels import FIXED, FREE, C, L, R, of_class, shared, unknowns
from circuitsim.time_domain.small_matrices import (
    CANCELLED,
    backward,
    forward,
    placed,
    remainder,
    rooted,
    rotated,
    times,
    without_rounding,
)

RANK = 1e-15
"""Singular values below this fraction of the largest, times their number, are zero."""
UNDRIVEN = 1e-13
"""Relative magnitude below which a source does not affect a state."""


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
    (k, s), weighed = push.shape, times(np.diag(farads), over)
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
    force[:many] = times(right, slope)
    directions = right.T.copy()
    backward(root, directions)
    shape[:, :many] = directions
    backward(root, slope)
    c = unmoved(slope, many, force, shape)
    # The parts include the sources' share of the resistors' voltages, so their slopes include the sources' slopes, and
    # a fast part is small.
    start, lift, current = np.zeros((c, s + k)), np.zeros((c, flow.shape[0])), np.zeros((flow.shape[0], s + c))
    by_flow, carried = times(np.diag(1.0 / size), left), times(np.diag(size), left).T
    start[:many, :s], start[:many, s:] = times(by_flow, sources), times(right, root.T)
    lift[:many, flowing] = by_flow
    current[flowing, s : s + many] = carried
    current[flowing, :s] = remainder(sources, carried, start[:many, :s], UNDRIVEN)
    drive = force[:c] + times(start[:, :s], system)
    along = -times(shape[:, :c], start[:, :s])
    return rate[:c], start, lift, drive, shape[:, :c].copy(), along, slope, current


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
    found, rest = many, remainder(given, shape[:, :many], drive[:many], UNDRIVEN)
    for j in range(given.shape[1]):
        if rest[:, j].any():
            shape[:, found], drive[found, j] = rest[:, j], 1.0
            found += 1
    return found


def over_parts(rows, parting):
    """Convert sums over states to sums over the changes of w and the decaying parts: one row per state or part, one
    column per sum.

    The residual where the terms of a sum cancel is set to zero: the error bounds of the parts exclude it, so the sign
    of a diode's current would be that of rounding.
    """
    (k, s), many = parting.along.shape, parting.rate.size
    weights = np.eye(s + many, s + k)
    weights[:s, s:], weights[s:, s:] = parting.along.T, parting.shape.T
    return without_rounding(weights, rows)


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
    current : (m, s + c) float array
        Branch currents as sums over w and y.
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
    current: np.ndarray
    resistors: np.ndarray


def of_capacitors(mode, value, storing, system):
    """The decaying parts of a mode.

    Computed from the currents of the resistors outside the tree: they are independent, so each has the digits of its
    own size; Kirchhoff's current law gives all others.

    Parameters
    ----------
    mode : circuitsim.time_domain.mode_kernels.Mode
    value : (m,) float array
        Ω, F.
    storing : (q,) int array
        Capacitors.
    system : (s, s) float array
        Generator of the sources' states.
    """
    net, s = mode.net, system.shape[0]
    cut, tree, rest, t, order = net.cut, net.tree, net.rest, net.twigs.size, np.concatenate((net.twigs, net.links))
    loops, outside, ohms = slice(t + rest[C], t + rest[R]), slice(t + rest[R], t + rest[L]), value[order]
    # L⁻¹ d and L, where d are the voltages of capacitors and sources across the resistors outside the tree and L Lᵀ
    # are the loop resistances: the resistor currents are L⁻ᵀ L⁻¹ d.
    onto, begin, flow = unknowns(net, R, True, mode.voltage[order], mode.current[order])
    image = times(np.diag(ohms[of_class(net, R)]), onto)
    root = times(onto.T, image)
    rooted(root)
    flow -= times(image.T, begin)
    forward(root, flow)
    # Current sources change the charges.
    given = mode.current[order][:, :s]
    push = -times(cut[tree[C] : tree[R], rest[FREE] :], given[t + rest[FREE] :])
    found = decompose(mode.storing, flow, value[storing], push, system)
    rate, start, by_flow, drive, shape, along, slope, flows = found
    backward(root, flows)
    # The other currents: of capacitors in loops, of the tree, of conducting diodes.
    i, charge = np.zeros((order.size, s + rate.size)), times(np.diag(ohms[loops]), mode.voltage[order[loops]])
    i[:, :s], i[outside] = given, flows
    i[loops, :s] = times(charge[:, :s], system) + times(charge[:, s:], slope)
    i[loops, s:] = -times(charge[:, s:], times(shape, np.diag(rate)))
    i[tree[C] : tree[L]] = -times(cut[tree[C] : tree[L], rest[C] :], i[t + rest[C] :])
    shared(net, FIXED, True, mode.role[order], i, i)
    current = np.zeros((mode.role.size, s + rate.size))
    placed(i, order, current)
    return Parting(rate, start, times(by_flow, root.T), np.diag(root), drive, shape, along, current, order[outside])
