"""Currents in loops of diodes, chosen by the kernel: against the engine, and where it leaves them to that."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import circuitsim
from circuitsim.analysis.convex import Prepared
from circuitsim.analysis.small_circuit import WHY_LOOPS, LazyOperatingPoint
from circuitsim.analysis.solve import prepared
from circuitsim.bench.families import make
from circuitsim.engine.small.loops import MOST


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


@pytest.mark.parametrize("family", ["grid", "scale-free"])
def test_meshes(family: str) -> None:
    points = [circuitsim.solve(make(family, 900, seed)) for seed in range(3)]
    assert all(isinstance(point, LazyOperatingPoint) for point in points)
    assert sum(check(point) for point in points) > 3


def test_loops_through_sources_are_left_to_the_engine() -> None:
    circuit = circuitsim.Circuit("sourced")
    circuit.voltage_source("V1", "a", "b", 0.0)
    circuit.current_source("I1", "0", "a", 1.0)
    circuit.resistor("R1", "c", "0", 1.0)
    circuit.diode("D1", "a", "c")
    circuit.diode("D2", "b", "c")
    point = circuitsim.solve(circuit)
    assert not isinstance(point, LazyOperatingPoint) and point.certificate.certified
    assert point.current("D1") + point.current("D2") == pytest.approx(1.0)
    assert point.current("D1") == pytest.approx(2.0 / 3.0) and not point.unique.all()


def test_very_many_loops_are_left_to_the_engine() -> None:
    circuit = circuitsim.Circuit("chain of pairs")
    pairs = MOST // 2 + 1
    circuit.current_source("I1", "0", "n0", 1.0)
    for k in range(pairs):
        circuit.diode(f"D{k}", f"n{k}", f"n{k + 1}")
        circuit.diode(f"E{k}", f"n{k}", f"n{k + 1}")
    circuit.resistor("R1", f"n{pairs}", "0", 1.0)
    point = circuitsim.solve(circuit)
    assert not isinstance(point, LazyOperatingPoint)
    assert point.currents[1:-1] == pytest.approx(np.full(2 * pairs, 0.5), rel=1e-12)
