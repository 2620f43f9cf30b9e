"""Continuous Hopfield networks, and their kinship with resistive networks (Scellier 2024, App. E.2).

    E(s) = ½ Σ s² − Σ_{j<k} w_jk s_j s_k − Σ b_k s_k,    lower_k ≤ s_k ≤ upper_k

With G_j the sum of the conductances at node j and I_j the current that sources drive into it, the energy of a resistive
network becomes that of a Hopfield network in the variables

    s_j = √G_j v_j,    w_jk = g_jk / √(G_j G_k),    b_j = I_j / √G_j.

Potentials that sources hold are no units: they are in the biases. A diode between a node and a held potential is a
bound; one between two free nodes has no counterpart. The inverse exists where no weight is negative and the spectral
radius of the weights is below one (so that the energy is convex).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.blocks.hopfield import DeepHopfieldBlock
from circuitsim.circuit import Circuit
from circuitsim.circuit.amplifiers import without_amplifiers
from circuitsim.errors import ConvergenceError, TopologyError, UsageError
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

    def residual(self, state: np.ndarray) -> float:
        """Largest |s − argmin over that unit alone|: 0 is a stationary state."""
        aim = np.clip(self.weights @ state + self.bias, self.lower, self.upper)
        return float(np.abs(aim - state).max(initial=0.0))

    def relax(self, start: np.ndarray | None = None, tolerance: float = 1e-14, sweeps: int = 100_000) -> np.ndarray:
        """A stationary state, by exact coordinate descent (Scellier 2024, Eq. 54).

        Raises
        ------
        ConvergenceError
            A sweep still moves a unit by more than the tolerance (times max(1, |s|)) after so many sweeps.
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

    def state(self, voltages: np.ndarray) -> np.ndarray:
        """(n,) the units at node potentials."""
        first = np.array([np.flatnonzero(self.coordinate == k)[0] for k in range(self.root.size)], dtype=np.int64)
        return self.root * (voltages / self.gain - self.offset)[first]


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
    program, _ = feasible_program(structure, quadratic_program(structure))
    n, g = program.n, program.g
    total, bias = np.zeros(n + 1), program.c.copy()
    weights = np.zeros((n + 1, n + 1))
    for end, sign in ((program.a, -1.0), (program.b, 1.0)):
        np.add.at(total, end, g)
        np.add.at(bias, end, sign * g * program.e)
    np.add.at(weights, (program.a, program.b), g)
    np.add.at(weights, (program.b, program.a), g)
    names = [""] * n
    for node, k in reversed(list(enumerate(structure.coordinate.tolist()))):
        if k < n:
            names[k] = str(circuit.node_names[node])
    bare = np.flatnonzero(total[:n] == 0.0)
    if bare.size:
        raise TopologyError(f"no resistor touches node {names[bare[0]]}: it has no conductance to be a unit with")
    lower, upper = np.full(n, -np.inf), np.full(n, np.inf)
    for tail, head, bound, diode in zip(
        program.tail.tolist(), program.head.tolist(), program.bound.tolist(), program.diode.tolist()
    ):
        if tail < n and head < n:
            name = circuit.names[diode]
            raise TopologyError(f"{name} joins two free nodes, {names[tail]} and {names[head]}: no unit's bound")
        if head == n:
            upper[tail] = min(upper[tail], bound)
        else:
            lower[head] = max(lower[head], 0.0 - bound)
    root = np.sqrt(total[:n])
    network = ContinuousHopfieldNetwork(
        weights[:n, :n] / np.outer(root, root), bias[:n] / root, lower * root, upper * root, tuple(names)
    )
    arrays = structure.arrays
    fed = structure.currents
    lift = program.offset[arrays.first[fed]] - program.offset[arrays.second[fed]]
    constant = float(0.5 * (g * program.e**2).sum() + (arrays.value[fed] * lift).sum())
    # A resistor within one tree of sources is in no unit, but it has an energy.
    inner = structure.resistors[
        structure.coordinate[arrays.first[structure.resistors]]
        == structure.coordinate[arrays.second[structure.resistors]]
    ]
    drop = program.offset[arrays.first[inner]] - program.offset[arrays.second[inner]]
    constant += float((0.5 * drop**2 / arrays.value[inner]).sum())
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
        """(n,) the units at node potentials (n_nodes,), V."""
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
    j, k = np.unravel_index(int(np.argmin(weights)), weights.shape) if size else (0, 0)
    if size and weights[j, k] < 0.0:
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
            continue
        _bound(circuit, name, float(low), True)
        _bound(circuit, name, float(high), False)
        for b in range(a):
            if weights[a, b]:
                resistance = 1.0 / (weights[a, b] * root[a] * root[b])
                circuit.resistor(f"R{name}.{network.names[b]}", name, network.names[b], resistance)
    return HopfieldCircuit(circuit, root)


def _bound(circuit: Circuit, name: str, level: float, lower: bool) -> None:
    """A diode that bounds a node's voltage from below or above, V; none for an infinite one."""
    if not np.isfinite(level):
        return
    held = f"{name}.{'low' if lower else 'high'}"
    if level == 0.0:
        anode, cathode = ("0", name) if lower else (name, "0")
    else:
        circuit.voltage_source(f"V{held}", held, "0", level)
        anode, cathode = (held, name) if lower else (name, held)
    circuit.diode(f"D{held}", anode, cathode)


def from_block(block: DeepHopfieldBlock, x: np.ndarray) -> ContinuousHopfieldNetwork:
    """A deep Hopfield network with one input clamped, as one network of units; layers follow each other.

    Parameters
    ----------
    block : DeepHopfieldBlock
        With ``ernoult`` units.
    x : (n_inputs,) array

    Raises
    ------
    UsageError
        Another activation.
    """
    if block.activation != "ernoult":
        raise UsageError(f"only units with E = ½ s² are units of a continuous network, not '{block.activation}' ones")
    layers = block.options["layers"]
    at = np.concatenate([[0], np.cumsum(layers)])
    weights = np.zeros((at[-1], at[-1]))
    bias = np.concatenate([block.parameters[f"bias{k}"] for k in range(1, len(layers) + 1)]).astype(float)
    pull = np.asarray(x, float)
    bias[: at[1]] += pull if block.options["inputs"] is None else pull @ block.parameters["weights0"]
    for k in range(1, len(layers)):
        below, above = slice(at[k - 1], at[k]), slice(at[k], at[k + 1])
        weights[below, above] = block.parameters[f"weights{k}"]
        weights[above, below] = block.parameters[f"weights{k}"].T
    lower, upper = np.zeros(at[-1]), np.ones(at[-1])
    if not block.clamped:
        lower[at[-2] :], upper[at[-2] :] = -np.inf, np.inf
    names = tuple(f"s{layer}_{k}" for layer, units in enumerate(layers, start=1) for k in range(units))
    return ContinuousHopfieldNetwork(weights, bias, lower, upper, names)
