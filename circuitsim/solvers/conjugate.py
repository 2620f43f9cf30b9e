"""Conjugate gradients on the network with shorted nodes merged, for graphs whose factors fill in.

Factors of graphs without small separators (random ones, say) take time cubic in the size. For the same reason such
graphs have a small diameter, and diagonally preconditioned conjugate gradients (Hestenes & Stiefel 1952) converge in
tens of steps whatever the size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from circuitsim._jit import jit
from circuitsim.errors import ConvergenceError
from circuitsim.program.components import component_labels
from circuitsim.solvers.protocol import ACCURACY, Factored, unit_of

if TYPE_CHECKING:
    from scipy.sparse import csr_array

NAME = "conjugate gradients scaled by the diagonal"
LEVELS = 40
"""Maximum number of levels of a breadth-first search in a graph without small separators."""
WIDEST = 0.2
"""Minimum fraction of the nodes in its widest level (in a square mesh of 2,000 nodes it is 3 %)."""
STEPS = 2000
"""Maximum number of steps."""


@dataclass(frozen=True, eq=False)
class DiagonalSolver:
    """Conjugate gradients with a diagonal preconditioner, a `LinearSolver`; attributes as in `NodalPattern`."""

    n: int
    a: np.ndarray
    b: np.ndarray
    g: np.ndarray
    method_name = NAME
    direct = False

    @property
    def order(self) -> np.ndarray:
        """The identity: nodes keep their numbers."""
        return np.arange(self.n + 1)

    def factor(self, closed: np.ndarray, previous: Factored | None = None) -> Merged:
        """See `LinearSolver.factor`; nothing is factored."""
        if isinstance(previous, Merged) and np.array_equal(previous.closed, closed):
            return previous
        a, b, r, unit = self.a, self.b, self.g.size, unit_of(self.g)
        return merged(self.n, a[:r], b[:r], self.g / unit, (a[closed], b[closed]), closed, unit)


@dataclass(frozen=True, eq=False)
class Merged:
    """A Laplacian with groups of shorted nodes merged, scaled to a unit diagonal: `Factored` of `DiagonalSolver`.

    Attributes
    ----------
    closed : int array
    row : (n + 1,) int array
        Unknown of each node; k in ground's group.
    matrix : (k, k) sparse array
    root : (k,) float array
        1 / √diagonal.
    unit : float
        Largest conductance, S, by which the others are scaled.
    """

    closed: np.ndarray
    row: np.ndarray
    matrix: csr_array
    root: np.ndarray
    unit: float

    def solve(self, current: np.ndarray, accuracy: float = ACCURACY) -> np.ndarray:
        """See `Factored.solve`; ``accuracy`` is that in the norm scaled by the diagonal.

        Raises
        ------
        ConvergenceError
            Not within `STEPS` steps.
        """
        if current.ndim == 2:
            return np.stack([self.solve(column, accuracy) for column in current.T], axis=1)
        k = self.root.size
        r = np.bincount(self.row[:-1], current / self.unit, k + 1)[:k] * self.root
        x, p, square = np.zeros(k), r.copy(), float(r @ r)
        enough = accuracy * accuracy * square
        for _ in range(STEPS):
            if square <= enough:
                return np.append(x * self.root, 0.0)[self.row]
            q = self.matrix @ p
            along = square / float(p @ q)
            x += along * p
            r -= along * q
            before, square = square, float(r @ r)
            p *= square / before
            p += r
        raise ConvergenceError("conjugate gradients did not converge: use a factorisation")


def merged(
    n: int,
    a: np.ndarray,
    b: np.ndarray,
    g: np.ndarray,
    shorts: tuple[np.ndarray, np.ndarray],
    closed: np.ndarray,
    unit: float,
) -> Merged:
    """The network of conductances ``g`` between a–b with the ends of ``shorts`` merged; n is ground.

    Every node must have a path of conductances to ground.
    """
    from scipy.sparse import coo_array

    group = component_labels(n + 1, *shorts)
    _, row = np.unique(np.where(group == group[n], n + 1, group), return_inverse=True)
    k = int(row[n])
    i, j = row[a], row[b]
    there = i != j
    i, j, g = i[there], j[there], g[there]
    root = 1.0 / np.sqrt((np.bincount(i, g, k + 1) + np.bincount(j, g, k + 1))[:k])
    inner = (i < k) & (j < k)
    i, j = i[inner], j[inner]
    scaled = -g[inner] * root[i] * root[j]
    diagonal = np.arange(k)
    entries = np.concatenate([scaled, scaled, np.ones(k)])
    places = np.concatenate([i, j, diagonal]), np.concatenate([j, i, diagonal])
    return Merged(closed, row, coo_array((entries, places), shape=(k, k)).tocsr(), root, unit)


@jit()
def small_diameter(ptr, idx, levels, widest):
    """Whether breadth-first search from node 0 reaches over half of the nodes, within ``levels``, one of them wide."""
    n = ptr.size - 1
    seen = np.zeros(n, np.bool_)
    queue = np.empty(n, np.int64)
    queue[0] = 0
    seen[0] = True
    begin, end, most = 0, 1, 1
    for _ in range(levels):
        stop = end
        for k in range(begin, stop):
            i = queue[k]
            for p in range(ptr[i], ptr[i + 1]):
                if not seen[idx[p]]:
                    seen[idx[p]] = True
                    queue[end] = idx[p]
                    end += 1
        begin = stop
        most = max(most, end - stop)
        if end == stop:
            return 2 * end > n and most > widest * n
    return False
