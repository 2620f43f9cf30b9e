"""circuitsim itself, through its public face."""

from __future__ import annotations

import numpy as np

from circuitsim.analysis.solve import prepared
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CURRENT, VOLTAGE


class Adapter:
    """``prepared(circuit)`` is the build, ``.solve()`` the solve; its own certificate is part of the time."""

    tolerances: tuple[float | None, ...] = (None,)

    def build(self, circuit: Circuit, tolerance: float | None) -> None:
        """Analyse the circuit."""
        self._prepared = prepared(circuit)
        kind = circuit.arrays().kind
        self._sources = np.flatnonzero((kind == VOLTAGE) | (kind == CURRENT))
        self._names = [circuit.names[k] for k in self._sources.tolist()] if self._sources.size < 1e6 else []
        self._values: dict[str, float] | None = None

    def solve(self) -> np.ndarray:
        """The certified operating point's potentials."""
        return self._prepared.solve(self._values).voltages

    def update(self, value: np.ndarray) -> None:
        """New source values, by name."""
        self._values = dict(zip(self._names, value[self._sources].tolist()))
