"""Regeneration: circuits with feedback whose operating point ends at some time, where they switch.

A comparator with positive feedback has three operating points between its thresholds. Where the one that a run follows
ends (a fold), the next one is decided by parasitic capacitances, however small they are: with them the circuit has one
waveform, which leaves the fold towards a stable operating point within picoseconds (Chua & Alexander 1971, parasitic
effects on jumps; Sastry & Desoer 1981, jump behaviour of circuits).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable

from circuitsim.analysis.switching import Switch
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CAPACITOR

PARASITICS = 1e-15, 1e-12
"""Capacitances of each node that controls, F: below that of any pin; that of a pin, where double precision does not
tell the times of a transition apart that the first one has."""


def controlling(circuit: Circuit, switches: Iterable[Switch]) -> list[int]:
    """Nodes whose voltages control sources or switches, but ground."""
    laws = (pair for law in circuit.laws.values() for control in law.voltages for pair in (control.plus, control.minus))
    pairs = (switch.control for switch in switches if not isinstance(switch.control, str))
    return sorted({*laws, *(circuit.node_index(name) for pair in pairs for name in pair)} - {0})


def with_parasitics(circuit: Circuit, controls: Iterable[int], farads: float) -> Circuit:
    """The circuit with a capacitance between each controlling node and ground, behind its own elements."""
    kind, first, second, value, _ = circuit.arrays()
    columns = array("b", kind), array("q", first), array("q", second), array("d", value)
    names, taken = [str(name) for name in circuit.names], {str(name).lower() for name in circuit.names}
    for node in controls:
        name = f"C({circuit.node_names[node]})"
        while name.lower() in taken:
            name += "'"
        names.append(name)
        for column, entry in zip(columns, (CAPACITOR, node, 0, farads)):
            column.append(entry)
    nodes = [str(name) for name in circuit.node_names]
    return Circuit.from_columns(circuit.title, columns, names, nodes, devices=circuit.devices, laws=circuit.laws)
