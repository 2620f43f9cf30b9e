"""Currents in loops of ideal diodes and other elements without resistance, at times between stages.

Such currents are not unique; an operating point has those of least norm, which equal, vanishing wire resistances would
give. They have a breakpoint where a diode of a loop stops carrying, which the dense output of a step cannot represent.
So they are computed from the currents that enter the loops, which it can.
"""

from __future__ import annotations

import numpy as np

from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import DIODE, RESISTOR, VOLTAGE
from circuitsim.engine.small.least_norm import WireLoops

CONDUCTS = 1e-9
"""Voltage of a diode, relative to the largest, up to which it may conduct: below the accuracy of any run."""


def least_norm(circuit: Circuit, voltage: np.ndarray, current: np.ndarray) -> None:
    """Replace currents in loops without a resistance by those of least norm in which no diode carries backwards.

    Parameters
    ----------
    circuit : Circuit
    voltage, current : (n, m) float arrays
        Branch voltages, V, and currents, A, at n times; currents are replaced.
    """
    kind, _, _, value, _ = circuit.arrays()
    wires = np.flatnonzero((kind == DIODE) | (kind == VOLTAGE) | ((kind == RESISTOR) & (value == 0.0)))
    wires = WireLoops.of(circuit.arrays(), wires).elements
    diode = kind[wires] == DIODE
    if not diode.any():
        return
    conducts = ~diode | (np.abs(voltage[:, wires]) <= CONDUCTS * np.abs(voltage).max(initial=0.0))
    patterns, which = np.unique(conducts, axis=0, return_inverse=True)
    for k, pattern in enumerate(patterns):
        loops = WireLoops.of(circuit.arrays(), wires[pattern])
        if loops.one_way.any():
            for t in np.flatnonzero(which.ravel() == k).tolist():
                current[t, loops.elements] = loops.least_norm(current[t, loops.elements])
