"""DAQP called directly: a dual active-set method on dense matrices, for small problems."""

from __future__ import annotations

from ctypes import c_int

import numpy as np

from circuitsim.bench.competitors import NoAnswer
from circuitsim.bench.quadratic import matrices, vectors
from circuitsim.circuit import Circuit

LARGEST = 1200
"""Beyond so many unknowns dense matrices are not worth trying."""


class Adapter:
    """Dense; new source values mean a new call with the matrices at hand."""

    tolerances: tuple[float | None, ...] = (None, 1e-10, 1e-12)

    def build(self, circuit: Circuit, tolerance: float | None) -> None:
        """Dense matrices."""
        self._arrays = arrays = circuit.arrays()
        if arrays.n_nodes > LARGEST:
            raise NoAnswer(f"dense matrices of {arrays.n_nodes - 1} unknowns (tried up to {LARGEST})")
        m = matrices(arrays)
        self._H, self._f, self._b = m.P.toarray(), m.q, m.b
        self._A = np.ascontiguousarray(np.vstack([m.E.toarray(), m.D.toarray()]))
        self._sense = np.concatenate([np.full(m.E.shape[0], 5), np.zeros(m.D.shape[0])]).astype(c_int)
        self._options = {} if tolerance is None else {"primal_tol": tolerance, "dual_tol": tolerance}

    def solve(self) -> np.ndarray:
        """Solve; ``eps_prox`` < 0 lets DAQP regularise where the Hessian is singular."""
        import daqp

        upper = np.concatenate([self._b, np.zeros(self._sense.size - self._b.size)])
        lower = np.where(self._sense == 5, upper, -1e30)
        x, _, flag, _ = daqp.solve(
            self._H, self._f, self._A, upper, lower, self._sense, eps_prox=-1.0, iter_limit=100_000, **self._options
        )
        if flag < 1:
            raise NoAnswer(f"exit flag {flag}")
        return np.concatenate([[0.0], np.asarray(x)])

    def update(self, value: np.ndarray) -> None:
        """New vectors."""
        self._f, self._b = vectors(self._arrays, value)
