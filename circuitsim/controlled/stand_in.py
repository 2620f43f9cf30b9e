"""A circuit of elementary elements with the topology of one with controlled sources."""

from __future__ import annotations

from circuitsim.circuit.circuit import Circuit
from circuitsim.circuit.elements import CURRENT, VOLTAGE
from circuitsim.circuit.laws import Quantity


def stand_in(circuit: Circuit) -> Circuit:
    """The circuit with an independent source for each controlled one (1 V, 1 A); itself where there is none.

    For questions of topology (components, loops of sources, isolated nodes), not of values.
    """
    if not circuit.laws:
        return circuit
    kind, first, second, value, n = circuit.arrays()
    kind, value = kind.copy(), value.copy()
    for k, law in circuit.laws.items():
        kind[k], value[k] = CURRENT if law.quantity is Quantity.CURRENT else VOLTAGE, 1.0
    return Circuit.from_arrays(kind, first, second, value, n, circuit.title, circuit.names, circuit.node_names)
