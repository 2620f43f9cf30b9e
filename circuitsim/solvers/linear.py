"""The one place where the factorisation of the network's Laplacian is chosen, by size."""

from __future__ import annotations

from typing import NamedTuple

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
    """

    n: int
    a: np.ndarray
    b: np.ndarray
    g: np.ndarray
    unit: float

    @classmethod
    def analyse(cls, n: int, a: np.ndarray, b: np.ndarray, g: np.ndarray) -> Laplacian:
        """Prepare the pattern a–b, of which the first ``g.size`` edges are resistors of conductance g (S)."""
        unit = float(g.max()) if g.size else 1.0
        return cls(n, a, b, g / unit, unit)

    def solve(self, closed: np.ndarray, current: np.ndarray) -> np.ndarray:
        """Potentials (n + 1,), V, with the diodes ``closed`` as shorts, for injected ``current`` (n,), A.

        In a part without a path to earth one node is held at 0 V.
        """
        r = self.g.size
        closed = np.flatnonzero(closed) + r
        a, b = np.append(self.a[:r], self.a[closed]), np.append(self.b[:r], self.b[closed])
        w = np.append(self.g, np.full(closed.size, dense.SHORT))
        return dense.solve(dense.factor(self.n, a, b, w), current / self.unit)
