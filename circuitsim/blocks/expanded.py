"""Circuits with devices as blocks: solved and differentiated as the elementary elements they consist of."""

from __future__ import annotations

from circuitsim.blocks.circuit import Analyse, CircuitBlock
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
        self._outside = circuit
        super().__init__(expanded(circuit).circuit, roles, tolerance, analyse)

    def trained(self) -> Circuit:
        """The circuit, devices included, at the present parameters."""
        inside = super().trained()
        return self._outside.with_values({a.name: inside[a.name].value or 0.0 for a in self.roles.trainable})
