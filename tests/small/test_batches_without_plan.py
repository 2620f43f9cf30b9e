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
