"""circuitsim itself, through its public face."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from circuitsim.analysis.batch import BatchSolution, batched
from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.analysis.solve import prepared
from circuitsim.bench.competitors import NoAnswer
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CURRENT, VOLTAGE


class Adapter:
    """``prepared(circuit)`` is the build, ``.solve()`` the solve; its own certificate is part of the time."""

    tolerances: tuple[float | None, ...] = (None,)

    def build(self, circuit: Circuit, tolerance: float | None) -> None:
        """Analyse the circuit."""
        self._circuit = circuit
        self._prepared = prepared(circuit)
        self._last: OperatingPoint | None = None
        self._values: dict[str, float] | None = None

    def solve(self) -> np.ndarray:
        """The certified operating point's potentials."""
        self._last = self._prepared.solve(self._values)
        return self._last.voltages

    def solve_warm(self) -> np.ndarray:
        """The same from the diodes that conducted last time."""
        self._last = self._prepared.solve(self._values, start=self._last)
        return self._last.voltages

    def update(self, value: np.ndarray) -> None:
        """New source values, by name."""
        self._values = dict(zip(self._names, value[self._sources].tolist()))

    @cached_property
    def _sources(self) -> np.ndarray:
        kind = self._circuit.arrays().kind
        return np.flatnonzero((kind == VOLTAGE) | (kind == CURRENT))

    @cached_property
    def _names(self) -> list[str]:
        return [self._circuit.names[k] for k in self._sources.tolist()]

    def batch(self, values: np.ndarray) -> Callable[[], object]:
        """A call that solves for many source values (samples, sources) at once, on what was built; one thread."""
        solver = batched(self._circuit, self._names)
        return lambda: _certified(solver.solve(values, threads=1))


def _certified(solution: BatchSolution) -> None:
    if not solution.ok.all():
        raise NoAnswer(f"{int((~solution.ok).sum())} of {len(solution)} samples without a certificate")
