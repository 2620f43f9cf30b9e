"""OSQP called directly; it starts from its last solution."""

from __future__ import annotations

import numpy as np

from circuitsim.bench.competitors import NoAnswer
from circuitsim.bench.quadratic import matrices, vectors
from circuitsim.circuit import Circuit


class Adapter:
    """ADMM with polishing; new source values by ``update``, warm-started."""

    tolerances: tuple[float | None, ...] = (None, 1e-8, 1e-10, 1e-12)

    def build(self, circuit: Circuit, tolerance: float | None) -> None:
        """Matrices and ``setup``."""
        import osqp
        from scipy.sparse import vstack

        self._arrays = circuit.arrays()
        m = matrices(self._arrays)
        self._diodes = m.D.shape[0]
        self._solver = osqp.OSQP()
        tight = {} if tolerance is None else {"eps_abs": tolerance, "eps_rel": tolerance, "max_iter": 200_000}
        lower, upper = self._bounds(m.b)
        rows = vstack([m.E, m.D], format="csc")
        self._solver.setup(m.P, m.q, rows, lower, upper, verbose=False, polishing=True, **tight)

    def solve(self) -> np.ndarray:
        """Solve; an answer that missed its tolerance is an answer, and is judged."""
        result = self._solver.solve(raise_error=False)
        if result.x is None or not np.isfinite(result.x).all():
            raise NoAnswer(str(result.info.status))
        return np.concatenate([[0.0], result.x])

    def update(self, value: np.ndarray) -> None:
        """New vectors."""
        q, b = vectors(self._arrays, value)
        lower, upper = self._bounds(b)
        self._solver.update(q=q, l=lower, u=upper)

    def _bounds(self, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.concatenate([b, np.full(self._diodes, -np.inf)]), np.concatenate([b, np.zeros(self._diodes)])
