"""Linear systems of the nodal matrix: analyse → factor → solve (`circuitsim.solvers.protocol`), and the choice of a
method.

NodalPattern(n, a, b, resistors, …)      topology: orderings, symbolic factorisation, each when first needed
    .solver(g)          → LinearSolver   at given conductances: the decision list is here
        .factor(closed) → Factored       the diodes ``closed`` as shorts, all others absent
            .solve(current)              potentials for injected currents, several columns at once if asked
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from circuitsim.solvers import dense
from circuitsim.solvers.protocol import ACCURACY, Factored, LinearSolver, unit_of

if TYPE_CHECKING:
    from circuitsim.solvers.laplacian import Factor, Symbolic

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
    def symbolic(self) -> Symbolic:
        """Symbolic factorisation for supernodal elimination."""
        from circuitsim.solvers import laplacian

        return laplacian.analyse(self.n, self.a, self.b)

    @cached_property
    def small_diameter(self) -> bool:
        """Whether the graph has a small diameter: no small separators."""
        from circuitsim.solvers import conjugate
        from circuitsim.solvers.laplacian.graph import adjacency

        a, b = self.a[: self.resistors], self.b[: self.resistors]
        ptr, idx = adjacency(self.n, a, b)
        return bool(conjugate.small_diameter(ptr, idx, conjugate.LEVELS, conjugate.WIDEST))

    def solver(self, g: np.ndarray) -> LinearSolver:
        """The method for conductances ``g`` (r,), S; this and `direct` make the choice."""
        if self.grounded and self.n >= ITERATIVE:
            from circuitsim.solvers import conjugate

            if g.min() * EVEN >= g.max() and self.small_diameter:
                return conjugate.DiagonalSolver(self.n, self.a, self.b, g)
        return self.direct(g)

    def direct(self, g: np.ndarray) -> Dense | Supernodal:
        """The direct method."""
        return Dense(self, g) if self.n <= DENSE and not self.compiled else Supernodal(self, g)


@dataclass(frozen=True, eq=False)
class Dense:
    """Subtraction-free elimination in numpy (`circuitsim.solvers.dense`)."""

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
        pattern, r = self.pattern, self.pattern.resistors
        unit = unit_of(self.g)
        a, b = np.append(pattern.a[:r], pattern.a[closed]), np.append(pattern.b[:r], pattern.b[closed])
        w = np.append(self.g / unit, np.full(closed.size, dense.SHORT))
        return DenseFactored(closed, dense.factor(pattern.n, a, b, w), unit)

    def with_conductances(self, siemens: np.ndarray, previous: Factored | None = None) -> DenseFactored:
        """The nodal matrix with conductances ``siemens`` (d,), S, in place of all diodes."""
        pattern, unit = self.pattern, unit_of(self.g)
        w = np.append(self.g, siemens) / unit
        return DenseFactored(np.arange(0), dense.factor(pattern.n, pattern.a, pattern.b, w), unit)

    between = with_conductances


@dataclass(frozen=True, eq=False)
class DenseFactored:
    """`Factored` of `Dense`."""

    closed: np.ndarray
    factor: dense.DenseFactor
    unit: float

    def solve(self, current: np.ndarray, accuracy: float = ACCURACY) -> np.ndarray:
        """See `Factored.solve`."""
        return dense.solve(self.factor, current / self.unit)


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
        return np.append(self.pattern.symbolic.pattern.order, self.pattern.n)

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
        found = replace(self.with_conductances(siemens), kept=bool(self._between))
        self._between[:] = [found if self._between else None]
        return found

    def _factored(
        self, closed: np.ndarray, g: np.ndarray, w: np.ndarray, previous: Factored | None
    ) -> SupernodalFactored:
        from circuitsim.solvers import laplacian

        before, kept = (previous.factor, previous.kept) if isinstance(previous, SupernodalFactored) else (None, False)
        made = laplacian.factor(self.pattern.symbolic, w, before, recycle=before is not None and not kept)
        return SupernodalFactored(closed, g, made, self._unit)


@dataclass(frozen=True, eq=False)
class SupernodalFactored:
    """`Factored` of `Supernodal`; the memory of a ``kept`` one is not reused."""

    closed: np.ndarray
    g: np.ndarray
    factor: Factor
    unit: float
    kept: bool = False

    def solve(self, current: np.ndarray, accuracy: float = ACCURACY) -> np.ndarray:
        """See `Factored.solve`."""
        from circuitsim.solvers import laplacian

        x = np.empty((current.shape[0] + 1, *current.shape[1:]))
        x[:-1] = laplacian.solve(self.factor, current / self.unit)
        x[-1] = 0.0
        return x
