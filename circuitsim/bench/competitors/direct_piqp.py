"""PIQP called directly, its sparse solver."""

from __future__ import annotations

import numpy as np

from circuitsim.bench.competitors import NoAnswer
from circuitsim.bench.quadratic import matrices, vectors
from circuitsim.circuit import Circuit


class Adapter:
    """Interior point; new source values by ``update`` (no symbolic work)."""

    tolerances: tuple[float | None, ...] = (None, 1e-10, 1e-12, 1e-14)

    def build(self, circuit: Circuit, tolerance: float | None) -> None:
        """Matrices and ``setup``."""
        import piqp

        self._arrays = circuit.arrays()
        m = matrices(self._arrays)
        self._solver = solver = piqp.SparseSolver()
        if tolerance is not None:
            s = solver.settings
            s.eps_abs = s.eps_rel = s.eps_duality_gap_abs = s.eps_duality_gap_rel = tolerance
            s.max_iter = 500
        diodes = {"G": m.D, "h_u": np.zeros(m.D.shape[0])} if m.D.shape[0] else {}
        solver.setup(m.P, m.q, m.E, m.b, **diodes)

    def solve(self) -> np.ndarray:
        """Solve."""
        import piqp

        status = self._solver.solve()
        if status not in (piqp.PIQP_SOLVED, piqp.PIQP_MAX_ITER_REACHED):
            raise NoAnswer(str(status))
        return np.concatenate([[0.0], self._solver.result.x])

    def update(self, value: np.ndarray) -> None:
        """New vectors."""
        q, b = vectors(self._arrays, value)
        self._solver.update(c=q, b=b)
