"""Random circuits with controlled sources and diodes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from circuitsim import Circuit
from circuitsim.models import Device

OHMS = (1e2, 1e3, 4.7e3, 1e4, 1e5)
GAINS = (-1e5, -10.0, -2.0, -0.5, 0.5, 1.0, 2.0, 10.0, 1e5)


def random_circuit(
    seed: int,
    most_nodes: int = 12,
    most_diodes: int = 6,
    device: Callable[[np.random.Generator], Device] | None = None,
    ideal: float = 0.2,
) -> Circuit:
    """A connected circuit of two nodes and more, with one to five controlled sources; with ``device`` all but a share
    ``ideal`` of the diodes are devices that it makes."""
    random, of_devices = np.random.default_rng(seed), np.random.default_rng([seed, 1])
    n = int(random.integers(3, most_nodes + 1))
    circuit = Circuit(f"random circuit {seed}")
    names = ["0", *(f"n{k}" for k in range(1, n))]

    def pair() -> tuple[str, str]:
        a, b = random.choice(n, 2, replace=False)
        return names[a], names[b]

    circuit.voltage_source("V1", names[1], "0", float(random.choice([-5.0, -1.0, 1.0, 2.0, 5.0])))
    for k in range(2, n):
        circuit.resistor(f"R{k}", names[k], names[int(random.integers(k))], float(random.choice(OHMS)))
    for k in range(int(random.integers(0, n))):
        circuit.resistor(f"RX{k}", *pair(), float(random.choice(OHMS)))
    for k in range(int(random.integers(0, most_diodes + 1))):
        ends = pair()
        if device is None or of_devices.random() < ideal:
            circuit.diode(f"D{k}", *ends)
        else:
            circuit.device(f"D{k}", *ends, device(of_devices))
    if random.random() < 0.5:
        circuit.current_source("I1", *pair(), float(random.choice([-1e-3, 1e-3, 2e-3])))
    held = list(random.permutation(np.arange(2, n)))
    for k in range(int(random.integers(1, 6))):
        choice, gain = random.random(), float(random.choice(GAINS))
        # Each voltage-like output ties a node of its own to ground: no loops of voltage sources.
        if choice < 0.4 and held:
            circuit.vcvs(f"E{k}", names[held.pop()], "0", pair(), gain)
        elif choice < 0.5 and held:
            circuit.opamp(f"U{k}", names[held.pop()], *pair())
        elif choice < 0.6 and held:
            control = circuit.names[int(random.integers(n - 1))]
            circuit.ccvs(f"H{k}", names[held.pop()], "0", control, gain * 1e2)
        elif choice < 0.8:
            circuit.vccs(f"G{k}", *pair(), pair(), float(random.choice([-1e-2, -1e-3, 1e-4, 1e-3])))
        else:
            circuit.cccs(f"F{k}", *pair(), circuit.names[int(random.integers(n - 1))], gain)
    return circuit
