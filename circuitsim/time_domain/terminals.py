"""Voltages, currents and characteristics of piecewise-linear devices from those of their parts."""

from __future__ import annotations

from collections.abc import Iterable
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
        path = along(paths_to(end[k], ((p, first[p], second[p]) for p in parts)), start[k])
        drops.append((np.array([part for part, _ in path]), np.array([sign for _, sign in path])))
        pairs = device.entering(device.expand())
        flows.append((np.array([parts[p] for p, _ in pairs]), np.array([sign for _, sign in pairs])))
    return Terminals(circuit, tuple(circuit.devices), tuple(drops), tuple(flows))


Paths = dict[int, tuple[int, int, float]]
"""For each node joined to an end: the next node on a shortest path, the element, and +1 if it points along it."""


def paths_to(end: int, elements: Iterable[tuple[int, int, int]]) -> Paths:
    """Shortest paths to a node over elements, each with its terminals."""
    around = dict[int, list[tuple[int, int, float]]]()
    for k, a, b in elements:
        around.setdefault(a, []).append((b, k, -1.0))
        around.setdefault(b, []).append((a, k, 1.0))
    found, queue = {end: (end, -1, 0.0)}, [end]
    for here in queue:
        for there, k, sign in around.get(here, ()):
            if there not in found:
                found[there] = (here, k, sign)
                queue.append(there)
    return found


def along(paths: Paths, node: int) -> list[tuple[int, float]]:
    """The elements on the path from a node, with their signs."""
    found = []
    while paths[node][1] >= 0:
        node, k, sign = paths[node]
        found.append((k, sign))
    return found
