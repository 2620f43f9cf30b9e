"""Batches of circuits whose elimination the small driver gives up: the engine solves their samples."""

from __future__ import annotations

import numpy as np

import circuitsim
from circuitsim import Circuit
from circuitsim.circuit.elements import DIODE, RESISTOR, VOLTAGE

NODES, EDGES, DIODES = 2_800, 9_000, 60


def dense_circuit() -> Circuit:
    """Resistors between random nodes: elimination joins nearly all of them; diodes, two sources."""
    rng = np.random.default_rng(5)
    ring = np.arange(1, NODES)
    first = np.concatenate([ring, rng.integers(1, NODES, EDGES), rng.integers(1, NODES, DIODES), [1, 2, NODES - 1]])
    second = np.concatenate(
        [ring % (NODES - 1) + 1, rng.integers(1, NODES, EDGES), rng.integers(1, NODES, DIODES), [0, 0, 0]]
    )
    kind = np.repeat([RESISTOR, DIODE, VOLTAGE, RESISTOR], [ring.size + EDGES, DIODES, 2, 1])
    value = np.where(kind == RESISTOR, np.exp(rng.uniform(-1.0, 1.0, kind.size)), np.where(kind == VOLTAGE, 1.0, 0.0))
    return Circuit.from_arrays(kind, first, second, value, NODES)


def test_samples_of_a_circuit_with_too_much_fill() -> None:
    circuit = dense_circuit()
    kind = circuit.arrays().kind
    names = [name for name, code in zip(circuit.names, kind.tolist(), strict=True) if code == VOLTAGE]
    solver = circuitsim.batched(circuit, names, [(circuit.node_names[7], "0")])
    assert solver.plan is None
    volts = np.array([[2.0, -1.0], [-0.5, 3.0]])
    found = solver.solve(volts)
    assert found.certified.all()
    for row, voltages in zip(volts, found.voltages, strict=True):
        point = circuitsim.solve(circuit.with_values(dict(zip(names, row.tolist(), strict=True))))
        np.testing.assert_allclose(voltages, point.voltages, rtol=1e-12, atol=1e-12)


def test_responses_of_a_circuit_with_too_much_fill() -> None:
    """Derivatives of outputs by source values and conductances, against central differences of solutions."""
    circuit = dense_circuit()
    kind, first, second, value, _ = circuit.arrays()
    names = [name for name, code in zip(circuit.names, kind.tolist(), strict=True) if code == VOLTAGE]
    outputs = [(circuit.node_names[7], "0"), (circuit.node_names[90], circuit.node_names[1234])]
    solver = circuitsim.batched(circuit, names, outputs)
    volts = np.array([[2.0, -1.0], [2.0, -1.5]])
    found = solver.solve(volts)
    cotangent = np.array([[1.0, 0.5], [-0.3, 2.0]])
    adjoint, currents = solver.adjoint(found, cotangent)

    def total(values: np.ndarray, inputs: np.ndarray) -> np.ndarray:
        return (cotangent * solver.with_values(values).solve(inputs).output).sum(axis=1)

    step = 1e-6
    sources = np.flatnonzero(kind == VOLTAGE)
    for column, k in enumerate(sources.tolist()):
        moved = step * np.eye(2)[column]
        slope = (total(value, volts + moved) - total(value, volts - moved)) / (2 * step)
        np.testing.assert_allclose(-currents[:, k], slope, rtol=1e-6, atol=1e-9)
    resistor, step = int(np.flatnonzero((kind == RESISTOR) & (first == 7))[0]), 1e-4
    more, less = value.copy(), value.copy()
    more[resistor], less[resistor] = value[resistor] * (1 + step), value[resistor] * (1 - step)
    slope = (total(more, volts) - total(less, volts)) / (1 / more[resistor] - 1 / less[resistor])
    a, b = first[resistor], second[resistor]
    exact = (adjoint[:, a] - adjoint[:, b]) * (found.voltages[:, a] - found.voltages[:, b])
    np.testing.assert_allclose(exact, slope, rtol=1e-6)
