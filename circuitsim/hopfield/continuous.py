"""Continuous Hopfield networks and their equivalence to resistive networks (Scellier 2024, App. E.2).

    E(s) = ½ Σ s² − Σ_{j<k} w_jk s_j s_k − Σ b_k s_k,    lower_k ≤ s_k ≤ upper_k

With G_j the sum of the conductances at node j and I_j the current that sources drive into it, the energy of a resistive
network becomes that of a Hopfield network in the variables

    s_j = √G_j v_j,    w_jk = g_jk / √(G_j G_k),    b_j = I_j / √G_j.

Nodes held by sources are not units: they enter the biases. A diode between a node and a held node is a bound; a
diode between two free nodes has no counterpart. The inverse exists where no weight is negative and the spectral
radius of the weights is below one (so that the energy is convex).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.circuit import Circuit
from circuitsim.circuit.amplifiers import without_amplifiers
from circuitsim.errors import ConvergenceError, TopologyError
from circuitsim.program import analyse, feasible_program, quadratic_program


class ContinuousHopfieldNetwork(NamedTuple):
    """Units with symmetric weights.

    Attributes
    ----------
    weights : (n, n) float array
        Symmetric, zero on the diagonal.
    bias, lower, upper : (n,) float arrays
        Bounds may be infinite; equal bounds clamp a unit.
    names : tuple of str
        One a unit.
    """

    weights: np.ndarray
    bias: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    names: tuple[str, ...]

    def energy(self, state: np.ndarray) -> float:
        """E(s)."""
        return float(0.5 * state @ state - 0.5 * state @ self.weights @ state - self.bias @ state)

    def relax(self, start: np.ndarray | None = None, tolerance: float = 1e-14, sweeps: int = 100_000) -> np.ndarray:
        """A stationary state, by exact coordinate descent (Scellier 2024, Eq. 54).

        Raises
        ------
        ConvergenceError
            A sweep still moves a unit by more than the tolerance (times max(1, |s|)) after the maximum number of
            sweeps.
        """
        state = np.clip(np.zeros(self.bias.size) if start is None else start, self.lower, self.upper)
        for _ in range(sweeps):
            before = state.copy()
            for k in range(state.size):
                state[k] = min(max(self.weights[k] @ state + self.bias[k], self.lower[k]), self.upper[k])
            if (np.abs(state - before) <= tolerance * np.maximum(1.0, np.abs(state))).all():
                return state
        raise ConvergenceError(
            f"no convergence of {self.bias.size} units in {sweeps} sweeps; the energy may have no minimum: are the "
            "weights too strong?"
        )


class ResistiveUnits(NamedTuple):
    """A resistive network as a Hopfield network.

    Attributes
    ----------
    network : ContinuousHopfieldNetwork
        One unit for each free potential: a node, or a tree of nodes that voltage sources join.
    root : (n,) float array
        √G of each unit, √S.
    constant : float
        E of the circuit less E of the network, W.
    coordinate, offset, gain : arrays (n_nodes,)
        v = gain (append(s / root, 0)[coordinate] + offset), V; the gain is that of the amplifiers before a node.
    """

    network: ContinuousHopfieldNetwork
    root: np.ndarray
    constant: float
    coordinate: np.ndarray
    offset: np.ndarray
    gain: np.ndarray

    def voltages(self, state: np.ndarray) -> np.ndarray:
        """(n_nodes,) potentials of the circuit's nodes, V."""
        return self.gain * (np.append(state / self.root, 0.0)[self.coordinate] + self.offset)


def from_circuit(circuit: Circuit) -> ResistiveUnits:
    """The Hopfield network of a resistive network.

    Raises
    ------
    TopologyError
        A diode between two free potentials, or a free potential without conductance; named.
    InfeasibleError
        Sources that contradict each other.
    """
    image = without_amplifiers(circuit)
    structure = analyse(image.circuit)
    program, _ = feasible_program(structure, quadratic_program(structure, structure.arrays.value))
    n = program.n
    # Rows of √g (1 at the one end, −1 at the other): their products are the conductances at nodes and between them.
    ends, scale = np.eye(n + 1), np.sqrt(program.g)[:, None]
    branches = scale * (ends[program.a] - ends[program.b])
    between = (branches.T @ branches)[:n, :n]
    bias = program.c[:n] - (branches.T @ (scale[:, 0] * program.e))[:n]
    first = np.unique(structure.coordinate, return_index=True)[1][:n]
    names = [str(circuit.node_names[node]) for node in first]
    root = np.sqrt(np.diag(between))
    if not root.all():
        raise TopologyError(
            f"no resistor touches node {names[np.argmin(root)]}: it has no conductance to be a unit with"
        )
    free = np.flatnonzero((program.tail < n) & (program.head < n))
    if free.size:
        one, other = names[program.tail[free[0]]], names[program.head[free[0]]]
        name = circuit.names[program.diode[free[0]]]
        raise TopologyError(f"{name} joins two free nodes, {one} and {other}: it is not the bound of a unit")
    lower, upper, above, below = np.full(n, -np.inf), np.full(n, np.inf), program.head == n, program.tail == n
    np.minimum.at(upper, program.tail[above], program.bound[above])
    np.maximum.at(lower, program.head[below], 0.0 - program.bound[below])
    weights = -between / np.outer(root, root)
    np.fill_diagonal(weights, 0.0)
    network = ContinuousHopfieldNetwork(weights, bias / root, lower * root, upper * root, tuple(names))
    # The energy of the circuit where the network's is zero.
    arrays, r, i = structure.arrays, structure.resistors, structure.currents
    drop = program.offset[arrays.first] - program.offset[arrays.second]
    constant = float((0.5 * drop[r] ** 2 / arrays.value[r]).sum() + (arrays.value[i] * drop[i]).sum())
    return ResistiveUnits(network, root, constant, structure.coordinate, program.offset, image.node)


class HopfieldCircuit(NamedTuple):
    """A Hopfield network as a circuit.

    Attributes
    ----------
    circuit : Circuit
        Node names are the units' names.
    root : (n,) float array
        s = root v, √S.
    """

    circuit: Circuit
    root: np.ndarray

    def state(self, voltages: np.ndarray) -> np.ndarray:
        """(n,) the units at node voltages (n_nodes,), V."""
        return self.root * voltages[1 : self.root.size + 1]


def to_circuit(network: ContinuousHopfieldNetwork, title: str = "continuous Hopfield network") -> HopfieldCircuit:
    """A resistive network with this energy.

    √G solves (1 − w) √G = 1 S^½, so that node j has the conductance √G_j to ground besides those of the weights.

    Raises
    ------
    TopologyError
        A negative weight, or weights of spectral radius one and more: no resistive network has this energy.
    """
    weights, size = network.weights, network.bias.size
    if (weights < 0.0).any():
        j, k = np.unravel_index(int(np.argmin(weights)), weights.shape)
        raise TopologyError(
            f"the weight between {network.names[j]} and {network.names[k]} is negative ({weights[j, k]:g}): "
            "no resistor is"
        )
    radius = float(np.abs(np.linalg.eigvalsh(weights)).max(initial=0.0))
    if radius >= 1.0:
        raise TopologyError(
            f"the weights have spectral radius {radius:g}, not below 1: the energy is not strictly convex, that of a "
            "grounded resistive network is"
        )
    root = np.linalg.solve(np.eye(size) - weights, np.ones(size))
    circuit = Circuit(title)
    for name in network.names:
        circuit.node(name)
    for a, name in enumerate(network.names):
        circuit.resistor(f"R{name}", name, "0", 1.0 / root[a])
        if network.bias[a]:
            circuit.current_source(f"I{name}", "0", name, network.bias[a] * root[a])
        low, high = network.lower[a] / root[a], network.upper[a] / root[a]
        if low == high:
            circuit.voltage_source(f"V{name}", name, "0", low)
        for side, level in (("low", low), ("high", high)):
            held = f"{name}.{side}" if level else "0"
            if np.isfinite(level) and low < high:
                if level:
                    circuit.voltage_source(f"V{held}", held, "0", level)
                circuit.diode(f"D{name}.{side}", *((held, name) if side == "low" else (name, held)))
        for b in np.flatnonzero(weights[a, :a]):
            other = network.names[b]
            circuit.resistor(f"R{name}.{other}", name, other, 1.0 / (weights[a, b] * root[a] * root[b]))
    return HopfieldCircuit(circuit, root)
