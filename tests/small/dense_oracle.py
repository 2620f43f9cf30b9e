"""Resistors, ideal diodes and sources solved with dense matrices of numpy, nothing of circuitsim's solvers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CURRENT, DIODE, RESISTOR, VOLTAGE


class Case(NamedTuple):
    """A random circuit: ``sources`` and output ``pairs`` by name."""

    circuit: Circuit
    sources: list[str]
    pairs: list[tuple[str, str]]


def random_circuit(seed: int, nodes: int = 40, decades: float = 1.0, diodes: int = 12) -> Case:
    """A ring with chords, some resistors to ground, two voltage sources (one between nodes), two current sources."""
    rng = np.random.default_rng(seed)
    ring = np.arange(1, nodes)
    extra = rng.integers(1, nodes, (2, nodes))
    extra = extra[:, extra[0] != extra[1]]
    far, row = rng.permutation(ring)[:4], rng.permutation(ring)[: diodes + 1]  # no loop of diodes
    ends = [
        (ring, ring % (nodes - 1) + 1),
        tuple(extra),
        (far[:3], np.zeros(3, int)),
        (row[:-1], row[1:]),
        (np.array([nodes, nodes + 1]), np.array([0, far[3]])),
        (np.array([nodes, nodes + 1]), far[:2]),
        tuple(rng.permutation(ring)[:4].reshape(2, 2)),
    ]
    count = [len(a) for a, _ in ends]
    kind = np.repeat([RESISTOR, RESISTOR, RESISTOR, DIODE, VOLTAGE, RESISTOR, CURRENT], count)
    value = np.where(kind == RESISTOR, 10.0 ** rng.uniform(-decades / 2, decades / 2, kind.size), 0.0)
    value[kind == VOLTAGE], value[kind == CURRENT] = rng.normal(size=2), rng.normal(size=2)
    circuit = Circuit.from_arrays(
        kind, np.concatenate([a for a, _ in ends]), np.concatenate([b for _, b in ends]), value, nodes + 2
    )
    names = circuit.node_names
    sources = [circuit.names[k] for k in np.flatnonzero((kind == VOLTAGE) | (kind == CURRENT))]
    return Case(circuit, sources, [(names[int(far[0])], "0"), (names[int(far[1])], names[int(far[2])])])


def linear(circuit: Circuit, value: np.ndarray, injected: np.ndarray, shorts: np.ndarray) -> np.ndarray:
    """Potentials (n_nodes, c), V, then currents of voltage sources and shorts, A, with currents injected into the nodes
    (n_nodes, c), A; values of voltage sources (m,) or (m, c), V; ``shorts`` are elements of 0 V."""
    kind, first, second, _, n = circuit.arrays()
    held = np.concatenate([np.flatnonzero(kind == VOLTAGE), shorts])
    matrix = np.zeros((n + held.size, n + held.size))
    for e in np.flatnonzero(kind == RESISTOR):
        a, b, g = first[e], second[e], 1.0 / value[e] if value.ndim == 1 else 1.0 / value[e, 0]
        matrix[a, a] += g
        matrix[b, b] += g
        matrix[a, b] -= g
        matrix[b, a] -= g
    rows = n + np.arange(held.size)
    matrix[rows, first[held]] = matrix[first[held], rows] = 1.0
    matrix[rows, second[held]] -= 1.0
    matrix[second[held], rows] -= 1.0
    matrix[0], matrix[:, 0], matrix[0, 0] = 0.0, 0.0, 1.0
    volts = np.where((kind == VOLTAGE)[:, None], value.reshape(kind.size, -1), 0.0)[held]
    right = np.concatenate([injected, np.broadcast_to(volts, (held.size, injected.shape[1]))])
    right[0] = 0.0
    return np.linalg.solve(matrix, right)


def injections(circuit: Circuit, value: np.ndarray) -> np.ndarray:
    """What current sources inject into the nodes (n_nodes, 1), A."""
    kind, first, second, _, n = circuit.arrays()
    i, found = np.flatnonzero(kind == CURRENT), np.zeros((n, 1))
    np.subtract.at(found[:, 0], first[i], value[i])
    np.add.at(found[:, 0], second[i], value[i])
    return found


def steady_state(circuit: Circuit, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Potentials (n_nodes,), V, and currents of the diodes, A: non-negative least squares of the dual program."""
    kind, first, second, _, n = circuit.arrays()
    d = np.flatnonzero(kind == DIODE)
    unit = np.zeros((n, d.size))
    unit[first[d], np.arange(d.size)], unit[second[d], np.arange(d.size)] = 1.0, -1.0
    none = d[:0]
    free = linear(circuit, value, injections(circuit, value), none)[:n, 0]
    still = np.where(kind == VOLTAGE, 0.0, value)
    moved = linear(circuit, still, unit, none)[:n]
    lower = np.linalg.cholesky(unit.T @ moved)
    current, _ = nnls(lower.T, np.linalg.solve(lower, unit.T @ free))
    return free - moved @ current, current
