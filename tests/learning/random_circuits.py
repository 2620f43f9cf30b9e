"""Random circuits that can learn: a resistor graph with voltage and current inputs, and diodes between free nodes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim import Circuit
from circuitsim.netlist.roles import Roles, make_roles


class Case(NamedTuple):
    circuit: Circuit
    roles: Roles
    x: np.ndarray
    y: np.ndarray


def random_case(seed: int, nodes: int = 9, diodes: int = 5, batch: int = 6) -> Case:
    """Two voltage inputs (one floating between two nodes), one current input, a trainable current source, two outputs.

    Every node leaks to ground, so that a steady state always exists.
    """
    rng = np.random.default_rng(seed)
    circuit = Circuit(f"random circuit {seed}")
    names = [f"n{k}" for k in range(nodes)]
    circuit.voltage_source("V1", "in", "0", 1.0)
    circuit.voltage_source("V2", "float", "n0", 0.5)
    circuit.resistor("Rfloat", "float", "n1", 1.0)
    circuit.current_source("I1", "0", "n2", 0.1)
    circuit.current_source("Ib", "n3", "n4", 0.05)
    for k, name in enumerate(names):
        circuit.resistor(f"Rleak{k}", name, "0", float(np.exp(rng.uniform(0.5, 2.5))))
        circuit.resistor(f"Rin{k}", "in", name, float(np.exp(rng.uniform(-1, 1.5))))
    for k in range(2 * nodes):
        a, b = rng.choice(nodes, 2, replace=False)
        circuit.resistor(f"R{k}", names[a], names[b], float(np.exp(rng.uniform(-1, 1.5))))
    # From lower to higher numbers: no loops, so that currents are unique. The outputs can take any voltages.
    for k in range(diodes):
        a, b = sorted(rng.choice(nodes - 2, 2, replace=False))
        circuit.diode(f"D{k}", names[a], names[b])
    circuit.diode("Dout", names[-3], names[-2])
    roles = make_roles(
        circuit, "V1 V2 I1", f"v({names[-1]}) v({names[-2]},{names[4]})", ["R* min=1m max=1k", "Ib min=-9 max=9"]
    )
    x = rng.normal(size=(batch, 3)) * [2.0, 1.0, 0.5]
    y = rng.normal(size=(batch, 2)) * 0.3
    return Case(circuit, roles, x, y)


def value_at(case: Case, block, loss) -> float:
    """Mean loss of the free states: what gradients are gradients of."""
    return float(loss.value(block.relax(case.x).output, case.y).mean())
