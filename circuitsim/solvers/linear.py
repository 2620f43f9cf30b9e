"""Linear systems of the nodal matrix: analyse → factor → solve (`LinearSolver`, `Factored`), and the choice of a
method.

NodalPattern(n, a, b, resistors, …)      topology: orderings, symbolic factorisation, each when first needed
    .solver(g)          → LinearSolver   at given conductances: the decision list is here
        .factor(closed) → Factored       the diodes ``closed`` as shorts, all others absent
            .solve(current)              potentials for injected currents, several columns at once if asked

Besides the supernodal factor (`circuitsim.solvers.laplacian`), there are two methods.

Dense: subtraction-free (GTH) elimination in numpy, the readable form of the compiled kernels. Eliminating node k of a
network of conductances w joins its neighbours i, j by w_ki w_kj / p_k (star–mesh), where the pivot p_k is the *sum* of
the conductances at k. Nothing is subtracted, so every number of the factor is accurate to a few ulps whatever the range
of the conductances (Grassmann, Taksar & Heyman 1985; Alfa, Xue & Ye 2002), and an ideal short is a conductance larger
than all others.

Conjugate gradients on the network with shorted nodes merged, for graphs whose factors fill in. Factors of graphs
without small separators (random ones, say) take time cubic in the size. For the same reason such graphs have a small
diameter, and diagonally preconditioned conjugate gradients (Hestenes & Stiefel 1952) converge in tens of steps whatever
the size.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

from circuitsim.errors import ConvergenceError
from circuitsim.program.components import component_labels

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from circuitsim.solvers.laplacian import Factor, Symbolic

ACCURACY = 1e-9
"""Relative residual of a solve by conjugate gradients."""


class Factored(Protocol):
    """The nodal matrix at one set of conducting diodes."""

    @property
    def closed(self) -> np.ndarray:
        """Positions of these diodes in the pattern."""

    def solve(self, current: np.ndarray, accuracy: float = ACCURACY) -> np.ndarray:
        """Potentials, V, with some correct digits; refinement supplies the others.

        Parameters
        ----------
        current : (n,) or (n, k) float array
            Injected currents, A, one column a case.
        accuracy : float
            Largest relative residual of iterative methods; direct ones reach about 1e-15.

        Returns
        -------
        (n + 1,) or (n + 1, k) float array
            Potentials, V, that of ground, 0 V, last.
        """


class LinearSolver(Protocol):
    """A method for the linear circuits of a pattern at given conductances."""

    @property
    def method_name(self) -> str:
        """Name shown to users."""

    @property
    def direct(self) -> bool:
        """Whether it is direct, so that it always succeeds."""

    @property
    def order(self) -> np.ndarray:
        """The nodes (n + 1,) in their order of elimination, ground last."""

    def factor(self, closed: np.ndarray, previous: Factored | None = None) -> Factored:
        """The nodal matrix with the edges ``closed`` (positions in the pattern) as shorts and all other diodes absent.

        ``previous``, a result for another set, saves work and changes no bits; it cannot be used afterwards.
        """


def unit_of(g: np.ndarray) -> float:
    """The largest conductance, S, by which the others are scaled."""
    return float(g.max(initial=0.0)) or 1.0


DENSE = 120
"""Maximum number of unknowns for plain numpy, which takes milliseconds, less than loading a compiled kernel."""
ITERATIVE = 2000
"""Minimum number of unknowns at which conjugate gradients beat factors of graphs without small separators."""
EVEN = 1e4
"""Maximum ratio of conductances for conjugate gradients."""


@dataclass(frozen=True, eq=False)
class NodalPattern:
    """Topology of a nodal matrix, with what follows from it alone.

    Attributes
    ----------
    n : int
        Number of unknowns; index n is ground.
    a, b : (r + d,) int arrays
        Ends of the resistors, then of the diodes.
    resistors : int
        The number r of resistors.
    grounded : bool
        Whether resistors alone connect every node to ground.
    compiled : bool
        Whether the circuit is large enough for compiled kernels at any number of unknowns.
    """

    n: int
    a: np.ndarray
    b: np.ndarray
    resistors: int
    grounded: bool
    compiled: bool = False

    @cached_property
    def neighbours(self) -> tuple[np.ndarray, np.ndarray]:
        """See `circuitsim.solvers.minimum_degree.adjacency`."""
        from circuitsim.solvers.laplacian.symbolic import adjacency

        return adjacency(self.n, self.a, self.b)

    @cached_property
    def symbolic(self) -> Symbolic:
        """Symbolic factorisation for supernodal elimination."""
        from circuitsim.solvers import laplacian

        return laplacian.analyse(self.n, self.a, self.b, *self.neighbours)

    @cached_property
    def small_diameter(self) -> bool:
        """Whether breadth-first search from node 0 reaches over half of the nodes, within `LEVELS`, one of them wide
        (`WIDEST`): the graph then has no small separators."""
        from circuitsim.solvers.laplacian.symbolic import level_sizes

        size = level_sizes(*self.neighbours, levels=LEVELS)
        return bool(size[LEVELS] == 0 and 2 * size.sum() > self.n and size.max() > WIDEST * self.n)

    def solver(self, g: np.ndarray) -> LinearSolver:
        """The method for conductances ``g`` (r,), S; this and `direct` make the choice."""
        if self.grounded and self.n >= ITERATIVE and g.min() * EVEN >= g.max() and self.small_diameter:
            return DiagonalSolver(self.n, self.a, self.b, g)
        return self.direct(g)

    def direct(self, g: np.ndarray) -> Dense | Supernodal:
        """The direct method."""
        return Dense(self, g) if self.n <= DENSE and not self.compiled else Supernodal(self, g)


@dataclass(frozen=True, eq=False)
class Dense:
    """Subtraction-free elimination in numpy."""

    pattern: NodalPattern
    g: np.ndarray
    method_name = "dense factors"
    direct = True

    @property
    def order(self) -> np.ndarray:
        """The identity: nodes keep their numbers."""
        return np.arange(self.pattern.n + 1)

    def factor(self, closed: np.ndarray, previous: Factored | None = None) -> DenseFactored:
        """See `LinearSolver.factor`."""
        w = np.zeros(self.pattern.a.size - self.g.size)
        w[closed - self.g.size] = SHORT * unit_of(self.g)
        return replace(self.with_conductances(w), closed=closed)

    def with_conductances(self, siemens: np.ndarray, previous: Factored | None = None) -> DenseFactored:
        """The nodal matrix with conductances ``siemens`` (d,), S, in place of all diodes."""
        n, a, b, unit = self.pattern.n, self.pattern.a, self.pattern.b, unit_of(self.g)
        share, pivot = np.zeros((n, n + 1)), np.zeros(n)
        np.add.at(share, (np.minimum(a, b), np.maximum(a, b)), np.append(self.g, siemens) / unit)
        for k in range(n):
            row = share[k, k + 1 :]
            pivot[k] = row.sum()
            if pivot[k] > 0.0:
                part = row / pivot[k]
                # Only the part above the diagonal is read again.
                share[k + 1 :, k + 1 :] += np.multiply.outer(row[:-1], part)
                share[k, k + 1 :] = part
        return DenseFactored(np.arange(0), share, pivot, unit)

    between = with_conductances


@dataclass(frozen=True, eq=False)
class DenseFactored:
    """`Factored` of `Dense`.

    Attributes
    ----------
    closed : int array
    share : (n, n + 1) float array
        Row k: the fraction of node k's current that goes to each later node, and (last column) to ground.
    pivot : (n,) float array
        Conductance of node k to all later nodes and ground; 0 for the last node of a part not tied to ground, which is
        held at 0 V and absorbs the part's net current.
    unit : float
        Largest conductance, S, by which the others are scaled.
    """

    closed: np.ndarray
    share: np.ndarray
    pivot: np.ndarray
    unit: float

    def solve(self, current: np.ndarray, accuracy: float = ACCURACY) -> np.ndarray:
        """See `Factored.solve`."""
        share, pivot, n = self.share, self.pivot, self.pivot.size
        flow = np.append(current / self.unit, np.zeros((1, *current.shape[1:])), axis=0)
        for k in range(n):
            flow[k + 1 :] += np.multiply.outer(share[k, k + 1 :], flow[k])
        x = np.zeros_like(flow)
        for k in range(n - 1, -1, -1):
            if pivot[k] > 0.0:
                x[k] = flow[k] / pivot[k] + share[k, k + 1 :] @ x[k + 1 :]
        return x


@dataclass(frozen=True, eq=False)
class Supernodal:
    """Sparse subtraction-free elimination in compiled panels (`circuitsim.solvers.laplacian`)."""

    pattern: NodalPattern
    g: np.ndarray
    method_name = "sparse factors"
    direct = True
    _between: list[SupernodalFactored | None] = field(default_factory=list, init=False)
    """The factor of `between`, from its second call on."""

    @cached_property
    def order(self) -> np.ndarray:
        """The fill-reducing order."""
        return np.append(self.pattern.symbolic.order, self.pattern.n)

    @cached_property
    def _unit(self) -> float:
        """The conductance, S, by which the others are scaled."""
        return unit_of(self.g)

    @cached_property
    def _weights(self) -> np.ndarray:
        """Weights of all edges of the pattern while all diodes block."""
        return np.append(self.g / self._unit, np.zeros(self.pattern.a.size - self.g.size))

    def factor(self, closed: np.ndarray, previous: Factored | None = None) -> SupernodalFactored:
        """See `LinearSolver.factor`."""
        from circuitsim.solvers import laplacian

        if (
            isinstance(previous, SupernodalFactored)
            and previous.g is self.g
            and np.array_equal(previous.closed, closed)
        ):
            return previous
        w = self._weights.copy()
        w[closed] = laplacian.SHORT
        return self._factored(closed, self.g, w, previous)

    def with_conductances(self, siemens: np.ndarray, previous: Factored | None = None) -> SupernodalFactored:
        """See `Dense.with_conductances`; ``previous`` is consumed."""
        w = np.append(self.g, siemens)
        return self._factored(np.arange(0), w, w / self._unit, previous)

    def between(self, siemens: np.ndarray) -> SupernodalFactored:
        """`with_conductances`, for the same ``siemens`` in every call."""
        if self._between and self._between[0] is not None:
            return self._between[0]
        found = self.with_conductances(siemens)
        self._between[:] = [found if self._between else None]
        return found

    def _factored(
        self, closed: np.ndarray, g: np.ndarray, w: np.ndarray, previous: Factored | None
    ) -> SupernodalFactored:
        from circuitsim.solvers import laplacian

        before = previous.factor if isinstance(previous, SupernodalFactored) else None
        return SupernodalFactored(closed, g, laplacian.factor(self.pattern.symbolic, w, before), self._unit)


@dataclass(frozen=True, eq=False)
class SupernodalFactored:
    """`Factored` of `Supernodal`."""

    closed: np.ndarray
    g: np.ndarray
    factor: Factor
    unit: float

    def solve(self, current: np.ndarray, accuracy: float = ACCURACY) -> np.ndarray:
        """See `Factored.solve`."""
        from circuitsim.solvers import laplacian

        x = np.empty((current.shape[0] + 1, *current.shape[1:]))
        x[:-1] = laplacian.solve(self.factor, current / self.unit)
        x[-1] = 0.0
        return x


SHORT = 1e120
"""Conductance of an ideal short in a network scaled so that its largest conductance is 1."""

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
        """See `LinearSolver.factor`; nothing is factored. Every node must have a path of conductances to ground."""
        if isinstance(previous, Merged) and np.array_equal(previous.closed, closed):
            return previous
        from scipy.sparse import coo_array

        n, r, unit = self.n, self.g.size, unit_of(self.g)
        group = component_labels(n + 1, self.a[closed], self.b[closed])
        _, row = np.unique(np.where(group == group[n], n + 1, group), return_inverse=True)
        k = int(row[n])
        i, j = row[self.a[:r]], row[self.b[:r]]
        there = i != j
        i, j, g = i[there], j[there], self.g[there] / unit
        root = 1.0 / np.sqrt((np.bincount(i, g, k + 1) + np.bincount(j, g, k + 1))[:k])
        inner = (i < k) & (j < k)
        i, j = i[inner], j[inner]
        scaled = -g[inner] * root[i] * root[j]
        diagonal = np.arange(k)
        entries = np.concatenate([scaled, scaled, np.ones(k)])
        places = np.concatenate([i, j, diagonal]), np.concatenate([j, i, diagonal])
        return Merged(closed, row, coo_array((entries, places), shape=(k, k)).tocsr(), root, unit)


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
