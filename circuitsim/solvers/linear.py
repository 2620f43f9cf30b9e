"""The one place where the factorisation of the network's Laplacian is chosen, by size."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from circuitsim.solvers import dense

DENSE = 120
"""Up to this many unknowns plain numpy solves in milliseconds, before a compiled kernel has even been loaded."""


class Laplacian(NamedTuple):
    """The network's Laplacian in one pattern: resistors of fixed conductance, and diodes that are shorts or absent.

    Attributes
    ----------
    n : int
        Number of unknowns; index n is earth.
    a, b : (r + d,) int arrays
        Ends of the resistors, then of the diodes.
    g : (r,) float array
        Conductances scaled by ``unit``.
    unit : float
        The largest conductance, S.
    order : (n + 1,) int array
        The nodes in their order of elimination; earth is last.
    symbolic : circuitsim.solvers.laplacian.Symbolic or None
        Analysis of the pattern for the compiled kernels; None where numpy does it.
    """

    n: int
    a: np.ndarray
    b: np.ndarray
    g: np.ndarray
    unit: float
    order: np.ndarray
    symbolic: Any

    @classmethod
    def analyse(cls, n: int, a: np.ndarray, b: np.ndarray, g: np.ndarray) -> Laplacian:
        """Prepare the pattern a–b, of which the first ``g.size`` edges are resistors of conductance g (S)."""
        unit = float(g.max()) if g.size else 1.0
        if n <= DENSE:
            return cls(n, a, b, g / unit, unit, np.arange(n + 1), None)
        from circuitsim.solvers import laplacian

        symbolic = laplacian.analyse(n, a, b)
        return cls(n, a, b, g / unit, unit, np.append(symbolic.pattern.order, n), symbolic)

    def factor(self, closed: np.ndarray, previous: Factored | None = None) -> Factored:
        """Factor with the edges ``closed`` as shorts and all other diodes absent.

        Parameters
        ----------
        closed : int array
            Positions in the pattern: resistors 0…r−1, diodes from r.
        previous : Factored, optional
            Of this Laplacian: only what differs is computed again, in the memory of ``previous``, which is used up.
        """
        r = self.g.size
        if self.symbolic is None:
            a, b = np.append(self.a[:r], self.a[closed]), np.append(self.b[:r], self.b[closed])
            w = np.append(self.g, np.full(closed.size, dense.SHORT))
            return Factored(self, dense.factor(self.n, a, b, w))
        from circuitsim.solvers import laplacian

        w = np.zeros(self.a.size)
        w[:r] = self.g
        w[closed] = laplacian.SHORT
        before = None if previous is None else previous.raw
        return Factored(self, laplacian.factor(self.symbolic, w, before, recycle=before is not None))


class Factored(NamedTuple):
    """A factored `Laplacian`."""

    laplacian: Laplacian
    raw: Any

    def solve(self, current: np.ndarray) -> np.ndarray:
        """Potentials (n + 1,), V, for injected ``current`` (n,), A.

        In a part without a path to earth one node is held at 0 V.
        """
        scaled = current / self.laplacian.unit
        if self.laplacian.symbolic is None:
            return dense.solve(self.raw, scaled)
        from circuitsim.solvers import laplacian

        return np.append(laplacian.solve(self.raw, scaled)[0], 0.0)
