"""Circuits with devices as blocks: solved and differentiated as the elementary elements they consist of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from circuitsim.analysis.batch import BatchSolver
from circuitsim.analysis.batched import batched
from circuitsim.analysis.newton import smooth_devices
from circuitsim.analysis.tangent_batch import TangentBatch
from circuitsim.blocks.circuit import Analyse, CircuitBlock
from circuitsim.blocks.protocol import State
from circuitsim.certificate import TOLERANCE
from circuitsim.circuit import Circuit
from circuitsim.circuit.expansion import expanded
from circuitsim.errors import UsageError
from circuitsim.netlist.roles import Roles


class ExpandedBlock(CircuitBlock):
    """What `CircuitBlock` makes of a circuit with devices, whose own parameters stay as they are.

    States have the voltages and currents of the elementary circuit: the circuit's own nodes and elements come first.

    Raises
    ------
    UsageError
        A circuit with amplifiers, too.
    """

    def __init__(
        self, circuit: Circuit, roles: Roles, tolerance: float = TOLERANCE, analyse: Analyse | None = None
    ) -> None:
        if circuit.amplified:
            raise UsageError("a circuit with devices and amplifiers can be solved, but not trained")
        self._outside, expansion = circuit, expanded(circuit)
        self._smooth = smooth_devices(circuit, expansion)
        if analyse is None and self._smooth is not None:
            analyse = self._with_tangents
        super().__init__(expansion.circuit, roles, tolerance, analyse)

    def _with_tangents(
        self, circuit: Circuit, inputs: Sequence[str], outputs: Sequence[tuple[str, str]], tolerance: float
    ) -> TangentBatch:
        """The batch solver of the elementary elements, with the tangents of the smooth devices."""
        inner = batched(circuit, inputs, outputs, tolerance)
        assert isinstance(inner, BatchSolver) and self._smooth is not None
        return TangentBatch(inner, self._smooth)

    def energy(self, state: State, x: np.ndarray) -> np.ndarray:
        """(batch,) Σ of co-contents at a state, W; see `CircuitBlock.energy`."""
        total = super().energy(state, x)
        if self._smooth is None:
            return total
        v, own, value = state.voltages, self._smooth, self.values()  # type: ignore[attr-defined]
        along, drop = (v[:, self._first[place]] - v[:, self._second[place]] for place in (own.slope, own.rest))
        total = total - (0.5 * along**2 / value[own.slope] + drop * value[own.rest]).sum(axis=1)
        devices = [self._outside.devices[int(k)] for k in own.elements]
        return total + np.array([sum(d.energy(u) for d, u in zip(devices, row)) for row in drop.tolist()])

    def trained(self) -> Circuit:
        """The circuit, devices included, at the present parameters."""
        inside = super().trained()
        return self._outside.with_values({a.name: inside[a.name].value or 0.0 for a in self.roles.trainable})
