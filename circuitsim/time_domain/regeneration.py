"""Regeneration: circuits with feedback that switch because their operating point ceases to exist.

A comparator with positive feedback has three operating points between its thresholds. Where the one that a run follows
ends (a fold), parasitic capacitances decide the next one, however small they are: with them the waveform is unique and
leaves the fold for a stable operating point within picoseconds (parasitics and jumps: Chua & Alexander 1971; Sastry &
Desoer 1981).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from circuitsim.analysis.switching import Switch
from circuitsim.circuit import GROUND, Circuit
from circuitsim.errors import UsageError

PARASITICS = 1e-15, 1e-12
"""Capacitances of each controlling node, F: one below that of any pin; and that of a pin, for transitions whose times
double precision does not resolve with the first."""


def controlling(circuit: Circuit, switches: Iterable[Switch]) -> list[int]:
    """Nodes whose voltages control sources or switches, except ground."""
    laws = (pair for law in circuit.laws.values() for control in law.voltages for pair in (control.plus, control.minus))
    pairs = (switch.control for switch in switches if not isinstance(switch.control, str))
    return sorted({*laws, *(circuit.node_index(name) for pair in pairs for name in pair)} - {0})


def with_capacitances(circuit: Circuit, capacitances: Mapping[str, float]) -> Circuit:
    """The circuit with a capacitor from each named node to ground (F), after its own elements.

    Raises
    ------
    UsageError
        A capacitance that is not positive, or at ground.
    """
    made = circuit.with_values({}).carrying(None)
    for node, farads in capacitances.items():
        if not 0.0 < farads < math.inf:
            raise UsageError(f"the capacitance of {node} is {farads:g} F: it must be positive")
        if circuit.node_index(node) == GROUND:
            raise UsageError(f"{node} is ground: it has no capacitance to itself")
        name = f"C({node})"
        while name in made:
            name += "'"
        made.capacitor(name, node, "0", farads)
    return made
