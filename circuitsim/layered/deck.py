"""A layered network as an ordinary circuit: resistors, diodes, sources and amplifiers, one node a unit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import AMPLIFIER, CURRENT, DIODE, RESISTOR, VOLTAGE
from circuitsim.errors import UsageError

if TYPE_CHECKING:
    from circuitsim.layered.network import DeepResistiveNetwork


class _BranchColumns:
    """Elements as they come, in arrays."""

    def __init__(self) -> None:
        self.parts: list[tuple[int, np.ndarray, np.ndarray, np.ndarray]] = []

    def add(self, kind: int, first: np.ndarray | int, second: np.ndarray | int, value: np.ndarray | float) -> None:
        one, two, number = np.broadcast_arrays(first, second, value)
        self.parts.append((kind, one.ravel(), two.ravel(), number.ravel()))

    def circuit(self, nodes: list[str], title: str) -> Circuit:
        kind = np.concatenate([np.full(first.size, code) for code, first, _, _ in self.parts])
        first, second, value = (np.concatenate([part[i] for part in self.parts]) for i in (1, 2, 3))
        return Circuit.from_arrays(kind, first, second, value, len(nodes), title, node_names=nodes)


def to_circuit(network: DeepResistiveNetwork, x: np.ndarray) -> Circuit:
    """The network with one input x, (inputs,), as a circuit.

    Nodes are called ``p1``, ``n1``, … (inputs +A x and −A x), ``h1_1``, ``h2_1``, … (hidden layer, unit) and ``out1``,
    …; with amplifiers a unit has its own name on their right side and ``…_in`` on their left. Conductances of zero are
    no elements; biases of zero neither.

    Raises
    ------
    UsageError
        x has another shape.
    """
    architecture, parameters = network.architecture, network.parameters
    x = np.asarray(x, float)
    if x.shape != (network.n_inputs,):
        raise UsageError(f"one input has shape ({network.n_inputs},), not {x.shape}")
    nodes, columns = ["0"], _BranchColumns()
    below = _named(nodes, [f"{sign}{k}" for sign in "pn" for k in range(1, len(x) + 1)])
    columns.add(VOLTAGE, below, 0, np.concatenate([x, -x]) * architecture.input_gain)
    for layer in range(1, architecture.depth + 1):
        units, is_output = architecture.units[layer], layer == architecture.depth
        names = [f"out{k}" if is_output else f"h{layer}_{k}" for k in range(1, units + 1)]
        right = left = _named(nodes, names)
        if architecture.gains[layer - 1] != 1:
            left = _named(nodes, [f"{name}_in" for name in names])
            columns.add(AMPLIFIER, left, right, architecture.gains[layer - 1])
        conductance = parameters[f"conductances{layer - 1}"].astype(float)
        j, k = np.nonzero(conductance)
        columns.add(RESISTOR, below[j], left[k], 1 / conductance[j, k])
        bias = parameters[f"bias{layer}"].astype(float)
        columns.add(CURRENT, 0, right[bias != 0], bias[bias != 0])
        if not is_output:
            columns.add(DIODE, 0, right[: units // 2], 0.0)
            columns.add(DIODE, right[units // 2 :], 0, 0.0)
        below = right
    return columns.circuit(nodes, f"deep resistive network {'-'.join(map(str, architecture.units))}")


def _named(nodes: list[str], names: list[str]) -> np.ndarray:
    """Indices of new nodes of these names."""
    start = len(nodes)
    nodes.extend(names)
    return np.arange(start, len(nodes))
