"""Proofs about a matrix of doubles with bounded errors: it is regular, or a P-matrix.

A linear complementarity problem has a unique solution for every constant iff its matrix is a P-matrix (Samelson, Thrall
& Wesler 1958). Bounds include the rounding of the tests themselves (Rump 2010), so there is no margin to choose. A
failed test proves nothing; small matrices are then decided in rational arithmetic
(`circuitsim.controlled.rational`).
"""

from __future__ import annotations

import numpy as np

EPS = float(np.finfo(float).eps)

MINORS = 20
"""Maximum number of ports whose principal minors are checked one by one: 2²⁰ Schur complements take 100 MB."""


def inverse_error(a: np.ndarray, da: np.ndarray, inverse: np.ndarray) -> np.ndarray:
    """Bounds on the differences between ``inverse`` and the inverse of any matrix within ``da`` of ``a``.

    Infinite unless all of these are proven regular.

    Parameters
    ----------
    a, da, inverse : (…, n, n) float arrays
        With largest entries of rows and columns of about one, so that norms are meaningful.
    """
    n = a.shape[-1]
    size = np.abs(inverse)
    left = np.abs(np.eye(n) - inverse @ a) + size @ ((n + 3) * EPS * np.abs(a) + da)
    left *= 1.0 + 2 * n * EPS
    norm = left.sum(axis=-1).max(axis=-1, initial=0.0)[..., None, None]
    once = (left @ size) * (1.0 + 2 * n * EPS)
    with np.errstate(divide="ignore", invalid="ignore"):
        error = once + norm / (1.0 - norm) * once.max(axis=-2, keepdims=True, initial=0.0)
    return np.asarray(np.where((norm < 1.0) & np.isfinite(error), error * (1.0 + 8 * EPS), np.inf))


def equilibrated(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Powers of two for rows (…, n, 1) and columns (…, 1, n) that scale largest entries to about one; 1 for zeros."""
    size = np.abs(a)
    left = _power(size.max(axis=-1, keepdims=True, initial=0.0))
    return left, _power((size * left).max(axis=-2, keepdims=True, initial=0.0))


def _power(largest: np.ndarray) -> np.ndarray:
    known = (largest > 0.0) & (largest < np.inf)
    return np.exp2(-np.round(np.log2(np.where(known, largest, 1.0))))


def inverted(a: np.ndarray, da: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Inverses of matrices (…, n, n), zero for singular ones, and error bounds (`inverse_error`), infinite for matrices
    that may be singular."""
    left, right = equilibrated(a)
    scaled = a * left * right
    good = np.isfinite(scaled).all(axis=(-2, -1)) & (np.linalg.det(scaled) != 0.0)
    scaled = np.where(good[..., None, None], scaled, np.eye(a.shape[-1]))
    try:
        found = np.linalg.inv(scaled)
    except np.linalg.LinAlgError:
        return np.zeros_like(a), np.full_like(a, np.inf)
    error = inverse_error(scaled, da * left * right, found)
    back = right.swapaxes(-1, -2) * left.swapaxes(-1, -2)
    good = good[..., None, None]
    return np.where(good, found * back, 0.0), np.where(good, error * back, np.inf)


def is_p_matrix(m: np.ndarray, dm: np.ndarray) -> bool:
    """Whether all principal minors of all matrices within ``dm`` of ``m`` are proven positive."""
    diagonal = m.diagonal()
    if not m.size:
        return True
    if not (diagonal > dm.diagonal()).all():
        return False
    root = np.sqrt(diagonal)
    scaled = m / root[:, None] / root
    off = dm / root[:, None] / root + 4 * EPS * np.abs(scaled)
    if not (np.isfinite(scaled).all() and np.isfinite(off).all()):
        return False
    symmetric, error = 0.5 * (scaled + scaled.T), (0.5 * (off + off.T)).sum(axis=1).max()
    rounding = 8 * len(m) * EPS * np.linalg.norm(symmetric)  # of LAPACK's eigenvalues
    if np.linalg.eigvalsh(symmetric).min() > error + rounding:
        return True
    return len(m) <= MINORS and positive_minors(scaled, off)


def in_watts(m: np.ndarray, load: np.ndarray) -> np.ndarray:
    """The matrix of ports with voltages and currents multiplied by √(1/ρ) and √ρ, ρ = ``load`` (d,) in Ω, not by 1 and
    ρ.

    Products y z are then powers: the symmetric part of a passive circuit's matrix is positive semidefinite. Scaling
    keeps P-matrices.
    """
    root = np.sqrt(load)
    return np.asarray(m * root / root[:, None])


def positive_minors(m: np.ndarray, dm: np.ndarray) -> bool:
    """Whether all principal minors are positive, by Schur complements of all leading entries (Tsatsomeros & Li 2000)
    with bounds of their errors.

    Work and memory grow as 2^d.
    """
    matrices, errors = m[None].astype(float), dm[None].astype(float)
    for left in range(len(m), 0, -1):
        pivot, error = matrices[:, 0, 0], errors[:, 0, 0]
        if not (pivot > error).all():
            return False
        if left == 1:
            return True
        low = (pivot - error)[:, None, None]
        a, b = matrices[:, 1:, :1], matrices[:, :1, 1:]
        da, db = errors[:, 1:, :1], errors[:, :1, 1:]
        outer = a * b / pivot[:, None, None]
        off = (np.abs(a) * db + da * (np.abs(b) + db) + np.abs(outer) * error[:, None, None]) / low
        inside, own = matrices[:, 1:, 1:], errors[:, 1:, 1:]
        less = inside - outer
        more = (own + off) * (1.0 + 8 * EPS) + 4 * EPS * (np.abs(outer) + np.abs(less))
        matrices, errors = np.concatenate([inside, less]), np.concatenate([own, more])
        if not (np.isfinite(matrices).all() and np.isfinite(errors).all()):
            return False
    return True
