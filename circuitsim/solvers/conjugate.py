"""Conjugate gradients on the network with its shorted nodes merged: the linear circuits of graphs that fill in.

Graphs without thin separators (random ones, say) have factors that grow with the cube of their size; for the same
reason currents spread in them within a few steps, and conjugate gradients (Hestenes & Stiefel 1952), scaled by the
diagonal, converge in tens of steps whatever the size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from circuitsim._jit import jit
from circuitsim.errors import ConvergenceError
from circuitsim.program.components import component_labels
from circuitsim.solvers.linear import ACCURACY, Factored, NodalPattern, by_column, unit_of

NAME = "conjugate gradients scaled by the diagonal"
LEVELS = 40
"""A breadth-first search reaches all nodes of a graph without thin separators within so many levels."""
WIDEST = 0.2
"""Its widest level then holds more than this share of the nodes (of a square mesh of 2,000 nodes 3 %)."""
STEPS = 2000
"""Conjugate gradients that need more steps are the wrong method."""
HOPELESS = "conjugate gradients did not converge: use a factorisation"


class Merged(NamedTuple):
    """A Laplacian with groups of shorted nodes merged, scaled to a unit diagonal.

    Attributes
    ----------
    row : (n + 1,) int array
        Unknown of each node; −1 in ground's group.
    ptr, idx, w : int64, int32 and float arrays
        Neighbours of each unknown but ground, and the scaled conductances between.
    root : (k,) float array
        1 / √diagonal.
    """

    row: np.ndarray
    ptr: np.ndarray
    idx: np.ndarray
    w: np.ndarray
    root: np.ndarray


def merge(n: int, a: np.ndarray, b: np.ndarray, g: np.ndarray, u: np.ndarray, v: np.ndarray) -> Merged:
    """The network of conductances ``g`` between a–b with the nodes u–v shorted; n is ground.

    Every node must have a path of conductances to ground.
    """
    group = component_labels(n + 1, u, v)
    row = np.cumsum(group == np.arange(n + 1)) - 1
    row = row[group]
    ground = row[n]
    row = np.where(row == ground, -1, row - (row > ground))
    ptr, idx, w, diagonal = neighbours(int(row.max(initial=-1)) + 1, a, b, g, row)
    root = 1.0 / np.sqrt(diagonal)
    _scale(ptr, idx, w, root)
    return Merged(row, ptr, idx, w, root)


def solve(
    merged: Merged, current: np.ndarray, guess: np.ndarray | None, accuracy: float
) -> tuple[np.ndarray, np.ndarray]:
    """Potentials for injected currents, each group at one potential and ground's at 0, and the currents they leave.

    Parameters
    ----------
    merged : Merged
    current : (n,) float array
    guess : (n + 1,) float array, optional
        Potentials to start from; otherwise 0 V.
    accuracy : float
        Size of the remaining currents against the injected ones, both in the norm scaled by the diagonal.

    Returns
    -------
    x : (n + 1,) float array
    missing : (k,) float array
        Injected currents that the potentials leave unexplained, by unknown (see `at_nodes`): those the steps went by,
        which differ from the true ones by the rounding of what was injected.

    Raises
    ------
    ConvergenceError
        Not within `STEPS` steps.
    """
    guess = np.zeros(current.size + 1) if guess is None else guess
    b, x = _by_unknown(merged.row, merged.root.size, current, guess)
    b *= merged.root
    x /= merged.root
    steps, r = _descend(merged.ptr, merged.idx, merged.w, b, x, accuracy, STEPS)
    if steps >= STEPS:
        raise ConvergenceError(HOPELESS)
    return at_nodes(merged, x * merged.root), r / merged.root


def at_nodes(merged: Merged, x: np.ndarray) -> np.ndarray:
    """Of every node (n + 1,) what is known of the unknowns; 0 for ground's group."""
    return _at_nodes(merged.row, x)


@dataclass(frozen=True, eq=False)
class DiagonalSolver:
    """Conjugate gradients scaled by the diagonal, see `circuitsim.solvers.linear.LinearSolver`."""

    pattern: NodalPattern
    g: np.ndarray
    method_name = NAME
    direct = False

    @property
    def order(self) -> np.ndarray:
        """The nodes as they are numbered."""
        return np.arange(self.pattern.n + 1)

    def factor(self, closed: np.ndarray, previous: Factored | None = None) -> DiagonalFactored:
        """See `LinearSolver.factor`; nothing is factored."""
        if isinstance(previous, DiagonalFactored) and np.array_equal(previous.closed, closed):
            return previous
        unit, r, (a, b) = unit_of(self.g), self.g.size, (self.pattern.a, self.pattern.b)
        merged = merge(self.pattern.n, a[:r], b[:r], self.g / unit, a[closed], b[closed])
        return DiagonalFactored(closed, merged, unit)


@dataclass(frozen=True, eq=False)
class DiagonalFactored:
    """`Factored` of `DiagonalSolver`."""

    closed: np.ndarray
    merged: Merged
    unit: float

    def solve(self, current: np.ndarray, accuracy: float = ACCURACY) -> np.ndarray:
        """See `Factored.solve`."""
        return by_column(lambda scaled: solve(self.merged, scaled, None, accuracy)[0], current / self.unit)


@jit()
def _by_unknown(row, k, current, guess):
    """Injected currents (n,) and potentials (n + 1,) of the nodes as those of the ``k`` unknowns that ``row`` names."""
    b, x = np.zeros(k), np.zeros(k)
    for node in range(current.size):
        i = row[node]
        if i >= 0:
            b[i] += current[node]
            x[i] = guess[node]
    return b, x


@jit()
def _at_nodes(row, x):
    """See `at_nodes`."""
    v = np.empty(row.size)
    for node in range(row.size):
        v[node] = x[row[node]] if row[node] >= 0 else 0.0
    return v


@jit()
def small_diameter(ptr, idx, levels, widest):
    """Whether breadth-first search from node 0 sees over half of the nodes, within ``levels``, one of them wide."""
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


@jit()
def neighbours(k, a, b, g, row):
    """Adjacency of ``k`` unknowns: ``ptr``, ``idx``, conductances, and the sum of all at each unknown.

    ``row`` is the unknown of each end of the edges a–b of conductance g; −1 is ground. Parallel edges stay apart.
    """
    ptr = np.zeros(k + 1, np.int64)
    diagonal = np.zeros(k)
    for e in range(a.size):
        i, j = row[a[e]], row[b[e]]
        if i == j:
            continue
        if i >= 0:
            diagonal[i] += g[e]
        if j >= 0:
            diagonal[j] += g[e]
        if i >= 0 and j >= 0:
            ptr[i + 1] += 1
            ptr[j + 1] += 1
    for i in range(k):
        ptr[i + 1] += ptr[i]
    free = ptr[:k].copy()
    idx = np.empty(ptr[k], np.int32)
    w = np.empty(ptr[k])
    for e in range(a.size):
        i, j = row[a[e]], row[b[e]]
        if i != j and i >= 0 and j >= 0:
            idx[free[i]], w[free[i]] = j, g[e]
            idx[free[j]], w[free[j]] = i, g[e]
            free[i] += 1
            free[j] += 1
    return ptr, idx, w, diagonal


@jit()
def _scale(ptr, idx, w, root):
    """Conductances scaled to a unit diagonal, in place."""
    for i in range(root.size):
        for at in range(ptr[i], ptr[i + 1]):
            w[at] *= root[i] * root[idx[at]]


@jit()
def _apply(ptr, idx, w, p, q):
    """q = A p, and p · q."""
    product = 0.0
    for i in range(p.size):
        s = p[i]
        for at in range(ptr[i], ptr[i + 1]):
            s -= w[at] * p[idx[at]]
        q[i] = s
        product += s * p[i]
    return product


@jit(fastmath={"contract", "reassoc"})
def go(alpha, p, q, x, r):
    """Go alpha along p; returns the new r · r."""
    square = 0.0
    for i in range(x.size):
        x[i] += alpha * p[i]
        r[i] -= alpha * q[i]
        square += r[i] * r[i]
    return square


@jit()
def _descend(ptr, idx, w, b, x, accuracy, most):
    """Conjugate gradients in place; returns the number of steps and what is still missing."""
    r = np.empty_like(x)
    q = np.empty_like(x)
    _apply(ptr, idx, w, x, q)
    for i in range(x.size):
        r[i] = b[i] - q[i]
    p = r.copy()
    square, whole = 0.0, 0.0
    for i in range(x.size):
        square += r[i] * r[i]
        whole += b[i] * b[i]
    enough = accuracy * accuracy * whole
    for step in range(most):
        if square <= enough:
            return step, r
        new = go(square / _apply(ptr, idx, w, p, q), p, q, x, r)
        beta = new / square
        square = new
        for i in range(x.size):
            p[i] = r[i] + beta * p[i]
    return most, r
