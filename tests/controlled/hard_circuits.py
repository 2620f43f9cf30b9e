"""Random circuits with controlled sources that nothing makes well posed: floating parts, singular equations, loops of
sources, op-amps between any nodes, values over nine decades, operating points at breakpoints."""

from collections.abc import Callable

import numpy as np

from circuitsim import Circuit
from circuitsim.models import Device


def hard_circuit(
    seed: int,
    most_nodes: int = 8,
    most_diodes: int = 5,
    device: Callable[[np.random.Generator], Device] | None = None,
) -> Circuit:
    """One circuit: small integers for even seeds, values over nine decades for odd ones; with ``device`` four of five
    diodes are devices that it makes."""
    random, of_devices = np.random.default_rng([seed, 45]), np.random.default_rng([seed, 46])
    n, wide = int(random.integers(3, most_nodes + 1)), bool(seed % 2)
    circuit = Circuit(f"hard circuit {seed}")
    names = ["0", *(f"n{k}" for k in range(1, n))]
    tree = random.random() < 0.7

    def pair() -> tuple[str, str]:
        a, b = random.choice(n, 2, replace=False)
        return names[a], names[b]

    def ohms() -> float:
        if wide and random.random() < 0.7:
            return float(f"{10.0 ** random.uniform(-4.5, 4.5):.{int(random.integers(1, 4))}g}")
        return float(random.choice([1.0, 1.0, 2.0, 10.0]))

    def gain() -> float:
        if wide and random.random() < 0.5:
            return float(f"{random.choice([-1.0, 1.0]) * 10.0 ** random.uniform(-3, 6):.2g}")
        return float(random.choice([-10.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 1.0, 2.0, 10.0]))

    for k in range(1, n):
        if tree:
            circuit.resistor(f"R{k}", names[k], names[int(random.integers(k))], ohms())
        elif random.random() < 0.8:
            circuit.resistor(f"R{k}", *pair(), ohms())
    for k in range(int(random.integers(0, n // 2 + 1))):
        circuit.resistor(f"RX{k}", *pair(), ohms())
    for k in range(int(random.integers(1, 3))):
        circuit.voltage_source(f"V{k}", *pair(), float(random.choice([-1.0, 0.0, 1.0, 1.0, 2.0, -0.06])))
    for k in range(int(random.integers(0, 2))):
        circuit.current_source(f"I{k}", *pair(), float(random.choice([-1.0, 1.0, 1e-3])))
    for k in range(int(random.integers(0, most_diodes + 1))):
        if device is None or of_devices.random() < 0.2:
            circuit.diode(f"D{k}", *pair())
        else:
            circuit.device(f"D{k}", *pair(), device(of_devices))
    for k in range(int(random.integers(1, 4))):
        choice = int(random.integers(5))
        control = circuit.names[int(random.integers(len(circuit)))]
        if choice == 0:
            circuit.vcvs(f"E{k}", *pair(), pair(), gain())
        elif choice == 1:
            circuit.vccs(f"G{k}", *pair(), pair(), gain())
        elif choice == 2:
            circuit.ccvs(f"H{k}", *pair(), control, gain())
        elif choice == 3:
            circuit.cccs(f"F{k}", *pair(), control, gain())
        else:
            output, reference = pair()
            circuit.opamp(f"U{k}", output, *pair(), reference)
    return circuit
