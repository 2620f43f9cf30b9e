"""Currents in loops of diodes, chosen by the kernel: against the engine, and where it leaves them to that."""

from __future__ import annotations

import dataclasses

import numpy as np

import circuitsim
from circuitsim.analysis.convex import Prepared
from circuitsim.analysis.small_circuit import WHY_LOOPS, LazyOperatingPoint
from circuitsim.analysis.solve import prepared


def tangled(seed: int) -> circuitsim.Circuit:
    """A few nodes, each with a resistor to ground and a current, and more diodes than a forest could have."""
    rng = np.random.default_rng(seed)
    circuit = circuitsim.Circuit(f"tangled {seed}")
    n = 7
    for k in range(n):
        circuit.resistor(f"R{k}", f"n{k}", "0", float(rng.choice([1.0, 2.0, 1000.0])))
        circuit.current_source(f"I{k}", "0", f"n{k}", float(rng.choice([-1.0, 0.0, 1.0, 1e-6])))
    for k in range(14):
        a, c = rng.choice(n, 2, replace=False)
        circuit.diode(f"D{k}", f"n{a}", f"n{c}")
    return circuit


def check(point: circuitsim.OperatingPoint) -> int:
    """Compare with the engine; how many currents are not unique."""
    circuit = point.circuit
    made = prepared(circuit)
    assert isinstance(made, Prepared)
    engine = dataclasses.replace(made, small="engine").solve()
    size = np.abs(engine.currents).max()
    assert np.abs(point.currents - engine.currents).max() <= 1e-11 * size
    assert np.array_equal(point.unique, engine.unique)
    assert point.certificate.worst < 1e-12
    assert (point.solver["why"] == WHY_LOOPS) >= (not point.unique.all())
    assert [w.kind for w in point.warnings].count("nonunique-current") == (not point.unique.all())
    return int((~point.unique).sum())


def test_small_tangles() -> None:
    points = [circuitsim.solve(tangled(seed)) for seed in range(60)]
    mine = [point for point in points if isinstance(point, LazyOperatingPoint)]
    assert len(mine) > 50  # where the active sets repeat or decades are too many, the engine takes over
    assert sum(check(point) > 0 for point in mine) > 20
