"""Voltages, currents and characteristics of piecewise-linear devices from those of their parts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.circuit import Circuit
from circuitsim.circuit.expansion import Expansion
from circuitsim.errors import ConvergenceError

HELD = 1000
"""Maximum number of output times, evenly chosen, at which devices are checked; their parts are checked at all times."""


class Terminals(NamedTuple):
    """How voltages and currents of a circuit follow from those of its elementary elements.

    Attributes
    ----------
    circuit : Circuit
        With devices.
    devices : tuple of int
    drops, flows : tuple of (int array, float array)
        For each device the elementary elements, with signs, whose voltages and currents add up to its own.
    """

    circuit: Circuit
    devices: tuple[int, ...]
    drops: tuple[tuple[np.ndarray, np.ndarray], ...]
    flows: tuple[tuple[np.ndarray, np.ndarray], ...]

    def of_parts(self, voltage: np.ndarray, current: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Branch voltages and currents (n, m) from those of the elementary elements."""
        m = len(self.circuit)
        found = voltage[:, :m], current[:, :m]
        for waves, of, own in ((voltage, self.drops, found[0]), (current, self.flows, found[1])):
            # The first part has the device's position: compute the sums before storing them.
            sums = [waves[:, places] @ signs for places, signs in of]
            for k, column in zip(self.devices, sums):
                own[:, k] = column
        return found

    def hold(self, voltage: np.ndarray, current: np.ndarray, tolerance: float) -> None:
        """Check the devices against their characteristics, independently of their parts.

        Raises
        ------
        ConvergenceError
            A device off its characteristic by more than the tolerance times the largest voltage and current of the run.
        """
        if not self.devices:
            return
        rows = np.unique(np.linspace(0, len(voltage) - 1, HELD).astype(np.int64))
        dv, di = (tolerance * max(waves.max(), -waves.min()) for waves in (voltage, current))
        for k in self.devices:
            device = self.circuit.device_of(self.circuit.names[k])
            for v, i in zip(voltage[rows, k].tolist(), current[rows, k].tolist()):
                if not device.law(v - dv)[0] - di <= i <= device.law(v + dv)[1] + di:
                    raise ConvergenceError(
                        f"{self.circuit.names[k]} is off its I–V curve: {i:.9g} A at {v:.9g} V; use a larger tolerance"
                    )


def terminals_of(circuit: Circuit, expansion: Expansion) -> Terminals:
    """The terminals of a circuit's piecewise-linear devices."""
    first, second = (column.tolist() for column in expansion.circuit.arrays()[1:3])
    start, end = (column.tolist() for column in circuit.arrays()[1:3])
    drops, flows = [], []
    for k, device in circuit.devices.items():
        parts = expansion.parts[k]
        drops.append(_path(start[k], end[k], [(p, first[p], second[p]) for p in parts]))
        pairs = device.entering(device.expand())
        flows.append((np.array([parts[p] for p, _ in pairs]), np.array([sign for _, sign in pairs])))
    return Terminals(circuit, tuple(circuit.devices), tuple(drops), tuple(flows))


def _path(start: int, end: int, parts: list[tuple[int, int, int]]) -> tuple[np.ndarray, np.ndarray]:
    """Parts on a path between two nodes, with +1 if they point along it."""
    via: dict[int, list[tuple[int, float]]] = {start: []}
    queue = [start]
    for node in queue:
        for part, a, b in parts:
            for here, there, sign in ((a, b, 1.0), (b, a, -1.0)):
                if here == node and there not in via:
                    via[there] = [*via[node], (part, sign)]
                    queue.append(there)
    return np.array([part for part, _ in via[end]]), np.array([sign for _, sign in via[end]])
