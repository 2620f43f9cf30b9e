"""circuitsim itself, through its public face."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from circuitsim.analysis.batch_solution import BatchSolution
from circuitsim.analysis.batched import batched
from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.analysis.solve import prepared
from circuitsim.bench.competitors import NoAnswer
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CURRENT, VOLTAGE


class Adapter:
    """``prepared(circuit)`` is the build, ``.solve()`` the solve; its own certificate is part of the time, and read."""

    tolerances: tuple[float | None, ...] = (None,)

    def build(self, circuit: Circuit, tolerance: float | None) -> None:
        """Analyse the circuit."""
        self._circuit = circuit
        self._prepared = prepared(circuit)
        self._last: OperatingPoint | None = None
        self._values: np.ndarray | None = None

    def solve(self) -> np.ndarray:
        """The certified operating point's potentials."""
        return self._read(self._prepared.solve(self._values))

    def solve_warm(self) -> np.ndarray:
        """The same from the diodes that conducted last time."""
        return self._read(self._prepared.solve(self._values, start=self._last))

    def _read(self, point: OperatingPoint) -> np.ndarray:
        # An operating point makes its parts when they are asked for: what a user reads belongs to the time.
        if not point.certificate.certified:
            raise NoAnswer("no certificate")
        self._last = point
        return point.voltages

    def update(self, value: np.ndarray) -> None:
        """New source values: all element values in an array, as the other adapters get them, and not a name for each
        (a dictionary takes longer to make than the circuit to solve)."""
        self._values = value

    def batch(self, values: np.ndarray) -> Callable[[], object]:
        """A call that solves for many source values (samples, sources) at once, on what was built; one thread."""
        kind = self._circuit.arrays().kind
        sources = np.flatnonzero((kind == VOLTAGE) | (kind == CURRENT)).tolist()
        solver = batched(self._circuit, [self._circuit.names[k] for k in sources])
        return lambda: _certified(solver.solve(values, threads=1))


def _certified(solution: BatchSolution) -> None:
    if not solution.certified.all():
        raise NoAnswer(f"{int((~solution.certified).sum())} of {len(solution)} samples without a certificate")
