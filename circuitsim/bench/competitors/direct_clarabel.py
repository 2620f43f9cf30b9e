"""Clarabel called directly."""

from __future__ import annotations

import numpy as np

from circuitsim.bench.competitors import NoAnswer
from circuitsim.bench.quadratic import matrices, vectors
from circuitsim.circuit import Circuit


class Adapter:
    """Interior point; new source values by ``update`` (presolve off, as that demands)."""

    tolerances: tuple[float | None, ...] = (None, 1e-9, 1e-11, 1e-13)

    def build(self, circuit: Circuit, tolerance: float | None) -> None:
        """Matrices and solver object."""
        import clarabel
        from scipy.sparse import triu, vstack

        self._arrays = circuit.arrays()
        m = matrices(self._arrays)
        self._diodes = m.D.shape[0]
        settings = clarabel.DefaultSettings()
        settings.verbose = settings.presolve_enable = False
        settings.max_threads = 1
        if tolerance is not None:
            settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
            settings.max_iter = 500
        cones = [clarabel.ZeroConeT(m.E.shape[0]), clarabel.NonnegativeConeT(self._diodes)]
        rows = vstack([m.E, m.D], format="csc")
        self._solver = clarabel.DefaultSolver(
            triu(m.P, format="csc"), m.q, rows, self._right(m.b), cones[: 1 + bool(self._diodes)], settings
        )

    def solve(self) -> np.ndarray:
        """Solve; an inaccurate answer is an answer, and is judged."""
        solution = self._solver.solve()
        status = str(solution.status)
        if "Solved" not in status and status not in ("InsufficientProgress", "MaxIterations"):
            raise NoAnswer(status)
        return np.concatenate([[0.0], solution.x])

    def update(self, value: np.ndarray) -> None:
        """New vectors."""
        q, b = vectors(self._arrays, value)
        self._solver.update(q=q, b=self._right(b))

    def _right(self, b: np.ndarray) -> np.ndarray:
        return np.concatenate([b, np.zeros(self._diodes)])
