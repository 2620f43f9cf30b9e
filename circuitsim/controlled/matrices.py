"""P-matrices: for these, and only these, a linear complementarity problem has one solution whatever its constant is.

(Samelson, Thrall & Wesler 1958.) A test that fails by rounding proves nothing, so each has a margin.
"""

from __future__ import annotations

import numpy as np

MARGIN = 1e-9
"""Share of its terms that a quantity must be above to count as positive."""

ROUNDING = 1e-11
"""Diagonal entry, of ports whose voltages and currents have one unit (P − Q = 1), that rounding cannot make."""

MINORS = 20
"""Most ports whose principal minors are checked one by one."""


def is_p_matrix(m: np.ndarray) -> bool:
    """Whether all principal minors of ``m`` are proven positive.

    A row that is zero but for rounding, of a diode whose current the rest of the circuit sets, is no proof.
    """
    diagonal = m.diagonal()
    if not m.size:
        return True
    if not (diagonal > ROUNDING).all():
        return False
    if not (diagonal > MARGIN * np.abs(m).max(axis=1) * (len(m) > 1)).all() or not (diagonal > 0.0).all():
        # A small diagonal beside large entries may still be a P-matrix: only the minors can tell.
        return bool((diagonal > 0.0).all()) and len(m) <= MINORS and positive_minors(m)
    root = np.sqrt(diagonal)
    scaled = m / root[:, None] / root
    if np.linalg.eigvalsh(0.5 * (scaled + scaled.T)).min() > MARGIN * len(m):
        return True
    return dominant(scaled) or (len(m) <= MINORS and positive_minors(scaled))


def in_watts(m: np.ndarray, load: np.ndarray) -> np.ndarray:
    """The matrix of ports with voltages and currents times √(1/ρ) and √ρ, ρ = ``load`` (d,) in Ω, in place of 1 and ρ.

    Products y z are powers then: the symmetric part of a passive circuit's matrix has no negative eigenvalue. Whether
    it is a P-matrix is the same question.
    """
    root = np.sqrt(load)
    return np.asarray(m * root / root[:, None])


def dominant(m: np.ndarray) -> bool:
    """Whether ``m`` with positive diagonal is dominated by it after a scaling of columns: an H-matrix."""
    comparison = -np.abs(m)
    np.fill_diagonal(comparison, m.diagonal())
    try:
        scale = np.linalg.solve(comparison, np.ones(len(m)))
    except np.linalg.LinAlgError:
        return False
    held = comparison @ np.maximum(scale, 0.0)
    return bool((scale > 0.0).all() and (held > MARGIN * np.abs(comparison) @ np.abs(scale)).all())


def positive_minors(m: np.ndarray) -> bool:
    """Whether all principal minors are positive, by Schur complements of all leading entries (Tsatsomeros & Li 2000).

    Work and memory grow as 2^d.
    """
    matrices, sizes = m[None].astype(float), np.abs(m)[None]
    for left in range(len(m), 0, -1):
        pivot, size = matrices[:, 0, 0], sizes[:, 0, 0]
        if not (pivot > MARGIN * size).all():
            return False
        if left == 1:
            return True
        outer = matrices[:, 1:, :1] * matrices[:, :1, 1:] / pivot[:, None, None]
        inside = matrices[:, 1:, 1:]
        grown = sizes[:, 1:, 1:] + np.abs(outer)
        matrices, sizes = np.concatenate([inside, inside - outer]), np.concatenate([sizes[:, 1:, 1:], grown])
    return True
