"""The decaying parts of a mode, by a singular value decomposition with relative accuracy for small values.

Branch currents over the decaying parts follow by Kirchhoff's current law along the mode's tree.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.time_domain.modes import (
    FREE,
    ROUNDING,
    C,
    L,
    Mode,
    R,
    Role,
    difference,
    loops_of_diodes,
    without_rounding,
)

RANK = 1e-15
"""Singular values below this fraction of the largest, times their number, are zero."""
UNDRIVEN = 1e-13
"""Relative magnitude below which a source does not affect a state."""
BOTH_SCALED = 3
"""Option of LAPACK's `dgejsv`: accuracy for small singular values where both rows and columns are scaled."""


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

    def over(self, rows: np.ndarray) -> np.ndarray:
        """Sums over the changes of w and the decaying parts (s + c, r) from sums over the states (s + k, r).

        The residual where the terms of a sum cancel is set to zero: the error bounds of the parts exclude it, so the
        sign of a diode's current would be that of rounding.
        """
        s = self.along.shape[1]
        weights = np.eye(s + self.rate.size, len(rows))
        weights[:s, s:], weights[s:, s:] = self.along.T, self.shape.T
        return without_rounding(weights, rows)

    def alone(self, rows: np.ndarray, over: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sums over w and the parts from the same over the states (s + k, r) and over the changes (s + c, r): the terms
        of the sources become exact; and which do not depend on other states (r,), the others being as they were."""
        s = self.along.shape[1]
        left, size = rows - self.start.T @ over[s:], np.abs(rows) + np.abs(self.start.T) @ np.abs(over[s:])
        left = np.where(np.abs(left) > ROUNDING * size, left, 0.0)
        found, alone = over.copy(), np.asarray(~left[s:].any(axis=0))
        found[:s, alone] = left[:s, alone]
        return found, alone


def parts_of_capacitors(mode: Mode, value: np.ndarray, storing: np.ndarray, sources: np.ndarray) -> Parting:
    """The decaying parts of a mode of a circuit without inductors.

    Computed from the currents of the resistors outside the tree: they are independent, so each has the digits of its
    own size; Kirchhoff's current law gives all others.

    Parameters
    ----------
    mode : Mode
    value : (m,) float array
        Ω, F.
    storing, sources : int arrays
        Capacitors; voltage and current sources.
    """
    net, role, n, k = mode.net, mode.role, len(mode.system), mode.states.size
    (twigs, links, cut, tree, rest, _), s = net, n - k
    own, fed, generator = links[rest[R] : rest[L]], links[rest[FREE] :], mode.system[:s, :s]
    flow, root = _link_flows(mode, value)
    # Twice the energy is the sum of the squares of the states over this root; current sources change the charges.
    over, farads = mode.dependent[storing], value[storing, None]
    energy = np.linalg.cholesky(over[:, s:].T @ (farads * over[:, s:]))
    slope = -cut[tree[C] : tree[R], rest[FREE] :] @ mode.current[fed, :s]
    slope -= (farads * over[:, s:]).T @ (over[:, :s] @ generator)
    left, size, right = _singular(_solved(energy, flow[:, s:].T).T)
    slope, many = _solved(energy, slope), size.size
    force, shape, slope = right @ slope, _solved(energy, right.T, True), _solved(energy, slope, True)
    # What affects states without any resistor: charges of current sources, capacitors in loops with sources.
    rest_of_slope = difference(slope, shape, force, UNDRIVEN)
    loose = rest_of_slope.any(axis=0)
    shape, force = np.hstack([shape, rest_of_slope[:, loose]]), np.vstack([force, np.eye(s)[loose]])
    rate = np.append(size**2, np.zeros(int(loose.sum())))
    # The parts include the sources' share of the resistors' voltages, so their slopes include the sources' slopes, and
    # a fast part is small.
    start, lift, flows = np.zeros((rate.size, n)), np.zeros((rate.size, own.size)), np.zeros((own.size, s + rate.size))
    start[:many, :s], start[:many, s:] = (left / size).T @ flow[:, :s], right @ energy.T
    lift[:many] = (left / size).T @ root.T
    flows[:, :s], flows[:, s : s + many] = difference(flow[:, :s], left * size, start[:many, :s], UNDRIVEN), left * size
    along, drive = -shape @ start[:, :s], force + start[:, :s] @ generator
    current = np.zeros((role.size, s + rate.size))
    current[own] = _solved(root, flows, True)
    given = sources[role[sources] == Role.CURRENT]
    current[given, :s] = mode.current[given, :s]
    # The other currents: of capacitors in loops, of the tree, of conducting diodes.
    through, i, loops, inside = current[links], current[twigs], slice(rest[C], rest[R]), slice(tree[C], tree[L])
    charge = value[links[loops], None] * mode.dependent[links[loops]]
    through[loops, :s] += charge[:, :s] @ generator + charge[:, s:] @ slope
    through[loops, s:] -= charge[:, s:] @ (shape * rate)
    i[inside] -= cut[inside, rest[C] :] @ through[rest[C] :]
    loops_of_diodes(net, role, i, through)
    current[twigs], current[links] = i, through
    return Parting(rate, start, lift, np.diag(root), drive, shape, along, current, own)


def _link_flows(mode: Mode, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """L⁻¹ d (r, n) and L (r, r), where d are the voltages of capacitors and sources across the resistors outside the
    tree and L Lᵀ are the loop resistances: the resistor currents are L⁻ᵀ L⁻¹ d, and the power dissipated is the sum of
    the squares of L⁻¹ d."""
    (twigs, links, whole, tree, rest, _) = mode.net
    l, outer = slice(rest[R], rest[L]), slice(rest[FREE], None)
    cut, ohms = whole[tree[R] : tree[L], l], value[twigs[tree[R] : tree[L]], None]
    drops = whole[: tree[R], l].T @ mode.voltage[twigs[: tree[R]]]
    drops -= cut.T @ (ohms * (whole[tree[R] : tree[L], outer] @ mode.current[links[outer]]))
    root = np.linalg.cholesky(np.diag(value[links[l]]) + cut.T @ (ohms * cut))
    return _solved(root, drops), root


def _solved(root: np.ndarray, columns: np.ndarray, transposed: bool = False) -> np.ndarray:
    """L⁻¹ or, ``transposed``, L⁻ᵀ times columns."""
    found, n = columns.copy(), len(root)
    for i in range(n - 1, -1, -1) if transposed else range(n):
        known = root[i + 1 :, i] @ found[i + 1 :] if transposed else root[i, :i] @ found[:i]
        found[i] = (found[i] - known) / root[i, i]
    return found


def _singular(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The singular value decomposition of a matrix: U (r, c), the nonzero singular values (c,) in descending order, and
    Vᵀ (c, k), by one-sided Jacobi rotations (Drmač & Veselić 2008)."""
    r, k = matrix.shape
    if not matrix.any():
        return np.zeros((r, 0)), np.zeros(0), np.zeros((0, k))
    from scipy.linalg.lapack import dgejsv

    size, left, right, work, _, _ = dgejsv(matrix if r >= k else matrix.T, joba=BOTH_SCALED, jobr=0)
    size *= work[0] / work[1]
    own = size > RANK * max(r, k) * size[0]
    left, right = (left, right) if r >= k else (right, left)
    left, size, right = left[:, own], size[own], right[:, own].T
    # What a small row or column says of a vector keeps the digits of that row or column.
    rows, columns = (np.linalg.norm(matrix, axis=axis) for axis in (1, 0))
    left = np.where(rows[:, None] < size, matrix @ right.T / size, left)
    right = np.where(columns < size[:, None], left.T @ matrix / size[:, None], right)
    return left, size, right
