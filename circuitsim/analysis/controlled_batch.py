"""Batches of circuits with controlled sources: one sample at a time, without nudges, with the transposed equations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from circuitsim.analysis.batch import BatchSolution, BatchSolver, samples_of
from circuitsim.analysis.controlled import PreparedControlled, prepared_controlled
from circuitsim.analysis.smooth_controlled import SmoothControlled
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CURRENT, DIODE, VOLTAGE
from circuitsim.errors import CircuitError, NoEnergyError, TopologyError, some


@dataclass(frozen=True, eq=False, repr=False)
class ControlledBatch(BatchSolver):
    """A circuit with controlled sources prepared for batches; same interface as `BatchSolver`.

    Attributes
    ----------
    devices : SmoothControlled, optional
        With the devices whose companion models are among the elements.
    """

    devices: SmoothControlled | None = None

    @cached_property
    def ready(self) -> PreparedControlled:
        """The circuit at these values, prepared."""
        return prepared_controlled(self.circuit.with_column(self.value), self.tolerance)

    def solve(
        self,
        values: np.ndarray | None = None,
        injected: np.ndarray | None = None,
        stiffness: float = 0.0,
        start: BatchSolution | None = None,
        threads: int | None = None,
    ) -> BatchSolution:
        """Operating points of a batch; see `BatchSolver.solve`. ``start`` and ``threads`` have no effect.

        Raises
        ------
        NoEnergyError
            A nudge: there is no energy to add it to.
        """
        own = self.circuit.arrays()
        rows, injected = samples_of(self.value[self.inputs], len(self.outputs), values, injected)
        if stiffness or injected.any():
            raise NoEnergyError(no_energy(self.circuit))
        count = len(rows)
        v, current = np.zeros((count, own.n_nodes)), np.zeros((count, own.kind.size))
        relative, iterations = np.full(count, np.inf), np.zeros(count, dtype=np.int64)
        for s, row in enumerate(rows):
            column = self.value.copy()
            column[self.inputs] = row
            try:
                point = self.point(column)
            except CircuitError:
                continue  # no certified operating point: the sample stays uncertified
            v[s], current[s], relative[s], iterations[s] = *point, 1
        output = v[:, self.outputs[:, 0]] - v[:, self.outputs[:, 1]]
        closed = current[:, own.kind == DIODE] > 0.0
        certified = relative <= self.tolerance
        return BatchSolution(self.circuit, v, current, closed, relative, certified, output, iterations, 0.0)

    def point(self, column: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Node voltages (V), currents (A) and largest relative residual for values of all elements.

        Raises
        ------
        CircuitError
            No certified operating point.
        """
        if self.devices is None:
            point = found = self.ready.solve(column)
        else:
            found = self.devices.first(column, None)
            assert found.elementary is not None
            point = found.elementary
        return point.voltages, point.currents, found.certificate.worst

    def column(self, solution: BatchSolution, s: int) -> np.ndarray:
        """The values for which sample ``s`` is linear."""
        column = self.value.copy()
        if self.smooth is not None:
            self.smooth.linearise(self._devices(solution, s, column.size), column)
        return column

    def adjoint(
        self, solution: BatchSolution, cotangent: np.ndarray, threads: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Adjoint of a solution by the transposed equations, with the signs of `BatchSolver.adjoint`."""
        own = self.circuit.arrays()
        n = own.n_nodes
        response, currents = np.zeros((len(solution), n)), np.zeros((len(solution), own.kind.size))
        for s, closed in enumerate(solution.closed):
            system = self.ready.system(own._replace(value=self.column(solution, s)))
            eq = system.eq
            inside = eq.own >= 0
            wanted = np.zeros(n)
            np.add.at(wanted, self.outputs[:, 0], cotangent[s])
            np.add.at(wanted, self.outputs[:, 1], -cotangent[s])
            right = np.zeros(eq.size)
            right[: n - 1] = wanted[1:]
            try:
                dual = system.factor(closed).transposed(right)
            except ArithmeticError:
                response[s], currents[s] = np.nan, np.nan
                continue
            response[s, 1:] = -dual[: n - 1]
            response[s, eq.pinned] = 0.0
            currents[s, inside] = -dual[eq.own[inside]]
        return response, currents

    def stiffness_limit(self) -> float:
        """Refused: there are no nudges.

        Raises
        ------
        NoEnergyError
        """
        raise NoEnergyError(no_energy(self.circuit))


def no_energy(circuit: Circuit) -> str:
    """The message for methods that need an energy function."""
    names = [circuit.names[k] for k in circuit.laws]
    return (
        f"{some(names)}: controlled sources have no energy function: use implicit differentiation (method implicit). "
        "Equilibrium and frequency propagation need the energies of sections: no smooth devices such as junction "
        "diodes, and controls without a loop (voltages, or currents of voltage sources: buffers between passive "
        "sections). Coupled learning and agnostic propagation need one energy of the whole circuit"
    )


def places_of(
    circuit: Circuit, inputs: Sequence[str], outputs: Sequence[tuple[str, str]]
) -> tuple[np.ndarray, np.ndarray]:
    """Elements of the inputs (k,) and nodes of the outputs (q, 2).

    Raises
    ------
    TopologyError
        Unknown names; inputs that are not independent sources.
    """
    kind = circuit.arrays().kind
    chosen = np.array([circuit.element_index(name) for name in inputs], dtype=np.int64)
    for k in chosen.tolist():
        if kind[k] not in (VOLTAGE, CURRENT):
            raise TopologyError(f"{circuit.names[k]} is not a source: inputs are voltage or current sources")
    pairs = [[circuit.node_index(p), circuit.node_index(q)] for p, q in outputs]
    return chosen, np.array(pairs, dtype=np.int64).reshape(-1, 2)
