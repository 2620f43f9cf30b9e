"""Lemke's complementary pivoting for the linear complementarity problem, with the lexicographic ratio test.

Find z ≥ 0 with y = q + M z ≥ 0 and y z = 0. A covering vector d makes q + d t ≥ 0 for large t; pivots lower t to zero
along a path of almost complementary bases. The lexicographic rule excludes cycles, so that each path ends: in a
solution, or in a ray, which proves nothing outside special classes of M (Cottle, Pang & Stone 1992, ch. 4).
"""

from __future__ import annotations

import numpy as np

ZERO = 1e-11
"""Pivots below this fraction of their column count as zero."""


def lemke(q: np.ndarray, m: np.ndarray, cover: np.ndarray | None = None, pivots: int = 0) -> np.ndarray | None:
    """Which z are basic (d,) at a solution; None where the path ends in a ray.

    Parameters
    ----------
    q : (d,) float array
    m : (d, d) float array
    cover : (d,) float array, optional
        Positive; ones if not given.
    pivots : int
        Maximum number of pivots; by default 50 per row and 1,000 more.
    """
    d = q.size
    cover = np.ones(d) if cover is None else cover
    if (q >= 0.0).all():
        return np.zeros(d, dtype=bool)
    # Columns: y (d), z (d), the artificial t, then q. The block of y is the inverse basis: it orders ties.
    table = np.hstack([np.eye(d), -m, -cover[:, None], q[:, None]])
    basis = np.arange(d)
    entering = 2 * d
    row = _least(table, np.arange(d), cover, d)
    for _ in range(pivots or 50 * d + 1000):
        leaving = int(basis[row])
        table[row] /= table[row, entering]
        column = table[:, entering].copy()
        column[row] = 0.0
        table -= column[:, None] * table[row]
        basis[row] = entering
        if leaving == 2 * d:
            return _basic(basis, d)
        entering = leaving + d if leaving < d else leaving - d
        column = table[:, entering]
        up = np.flatnonzero(column > ZERO * np.abs(column).max())
        if not up.size:
            return None
        row = _least(table, up, column, d)
        # t leaves whenever it may: the path ends there.
        at = np.flatnonzero(basis == 2 * d)[0]
        if column[at] > ZERO * np.abs(column).max() and _tied(table, at, row, column):
            row = int(at)
    return None


def _tied(table: np.ndarray, at: int, row: int, column: np.ndarray) -> bool:
    mine, best = table[at, -1] / column[at], table[row, -1] / column[row]
    return bool(mine <= best + 1e-13 * abs(best))


def _basic(basis: np.ndarray, d: int) -> np.ndarray:
    found = np.zeros(d, dtype=bool)
    found[basis[(basis >= d) & (basis < 2 * d)] - d] = True
    return found


def _least(table: np.ndarray, rows: np.ndarray, column: np.ndarray, d: int) -> int:
    """The row with the lexicographically smallest (q, inverse basis) / column, for the first pivot too."""
    ratio = table[rows, -1] / column[rows]
    rows = rows[ratio <= ratio.min() + 1e-13 * np.abs(ratio.min())]
    for k in range(d):
        if rows.size == 1:
            break
        ratio = table[rows, k] / column[rows]
        rows = rows[ratio <= ratio.min() + 1e-13 * np.abs(ratio).max(initial=0.0)]
    return int(rows[0])
