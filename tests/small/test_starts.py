"""Where a solve begins: with no conducting diode, with those of a point given, or with those of the sample before."""

from __future__ import annotations

import numpy as np
import pytest

import circuitsim
from circuitsim.analysis.batch import BatchSolver
from circuitsim.analysis.small_circuit import LazyOperatingPoint
from circuitsim.bench.families import make
from circuitsim.circuit.elements import CURRENT, RESISTOR, VOLTAGE

FAMILIES = [
    ("grid", 100),
    ("ladder", 100),
    ("bridges", 100),
    ("selectors", 100),
    ("erdos-renyi", 100),
    ("scale-free", 100),
    ("crossbar-1d1r", 100),
    ("grid-scaled", 100),
    ("drn", 100),
    ("grid", 400),
]


def values(circuit: circuitsim.Circuit, count: int) -> list[np.ndarray]:
    """New values of all elements: sources first a little, then a lot; now and then resistances too."""
    rng = np.random.default_rng(7)
    kind, _, _, own, _ = circuit.arrays()
    found = []
    for k in range(count):
        spread = 0.1 if k < count // 2 else 2.0
        changes = np.isin(kind, (VOLTAGE, CURRENT) if k % 4 else (VOLTAGE, CURRENT, RESISTOR))
        factor = 1.0 + spread * rng.uniform(-1.0, 1.0, kind.size)
        found.append(np.where(changes, own * np.where(kind == RESISTOR, np.abs(factor) + 0.1, factor), own))
    return found


def same(one: circuitsim.OperatingPoint, other: circuitsim.OperatingPoint) -> bool:
    return one.voltages.tobytes() == other.voltages.tobytes() and one.currents.tobytes() == other.currents.tobytes()


def local_error(circuit: circuitsim.Circuit, one: np.ndarray, other: np.ndarray) -> float:
    """Largest difference of two sets of currents against the largest current at either end."""
    a = circuit.arrays()
    largest = np.zeros(a.n_nodes)
    np.maximum.at(largest, a.first, np.abs(other))
    np.maximum.at(largest, a.second, np.abs(other))
    scale = np.maximum(largest[a.first], largest[a.second])
    wrong = np.abs(one - other) > 0.0
    return float((np.abs(one - other)[wrong] / np.maximum(scale[wrong], 1e-22 * np.abs(other).max())).max(initial=0.0))


@pytest.mark.parametrize(("family", "unknowns"), FAMILIES)
def test_without_a_start_earlier_solves_change_no_bit(family: str, unknowns: int) -> None:
    circuit = make(family, unknowns, 0)
    kept = circuitsim.prepared(circuit)
    for value in values(circuit, 6):
        point, other = kept.solve(value), circuitsim.solve(circuit.with_column(value))
        assert same(point, other) and point.solver == other.solver


@pytest.mark.parametrize(("family", "unknowns"), FAMILIES)
def test_a_near_start_saves_iterations_and_any_leads_to_the_same_currents(family: str, unknowns: int) -> None:
    circuit = make(family, unknowns, 0)
    kept = circuitsim.prepared(circuit)
    last, cold, warm = None, 0, 0
    for k, value in enumerate(values(circuit, 8)):
        point, last = kept.solve(value), kept.solve(value, start=last)
        lazy = [isinstance(one, LazyOperatingPoint) for one in (last, point)]
        assert last.certificate.certified and lazy[0] == lazy[1]
        assert np.array_equal(point.unique, last.unique)
        assert local_error(circuit, last.currents, point.currents) <= 1e-9
        if k < 4 and isinstance(last, LazyOperatingPoint):  # near, and not through loops of sources
            cold, warm = cold + int(str(point.solver["iterations"])), warm + int(str(last.solver["iterations"]))
    assert warm <= cold


def test_the_answer_itself_as_start_needs_one_linear_circuit() -> None:
    kept = circuitsim.prepared(make("ladder", 100, 0))
    point = kept.solve()
    assert int(str(point.solver["iterations"])) > 1
    assert int(str(kept.solve(start=point).solver["iterations"])) == 1


def crowd(count: int) -> tuple[BatchSolver, np.ndarray]:
    """A mesh and random values of its sources."""
    circuit = make("grid", 100, 0)
    names = [name for name in circuit.names if name[0] in "VI"]
    base = np.array([circuit[name].value for name in names])
    solver = circuitsim.batched(circuit, names)
    assert isinstance(solver, BatchSolver)
    return solver, base * np.random.default_rng(2).uniform(0.5, 1.5, (count, len(names)))


def test_samples_begin_with_the_one_before_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("circuitsim.analysis.batch.SHARE", 1)
    solver, x = crowd(50)
    whole = solver.solve(x, threads=1)
    assert whole.certified.all()
    alone = [solver.solve(x[s : s + 1]) for s in range(len(x))]
    for s, one in enumerate(alone):
        scale = np.abs(one.voltages).max()
        assert np.abs(whole.voltages[s] - one.voltages[0]).max() <= 1e-12 * scale
    assert whole.iterations.sum() < 0.9 * sum(int(one.iterations[0]) for one in alone)
    for part in (solver.solve(x[16:48]), solver.solve(x, threads=3)):
        expected = whole.voltages if len(part) == len(x) else whole.voltages[16:48]
        assert part.voltages.tobytes() == expected.tobytes()


def test_currents_of_samples_beside_a_nanoohm() -> None:
    """1 nΩ between kiloohms: Ohm's law by hand is the reference."""
    circuit = circuitsim.loads("t\nV1 a 0 5\nR1 a b 1n\nR2 b c 1k\nD1 c d\nR3 d 0 1k\nD2 0 c\n")
    solver = circuitsim.batched(circuit, ["V1"])
    x = np.array([[5.0], [7.0], [-2.0], [0.5], [0.0]])
    found = solver.solve(x)
    assert found.certified.all()
    expected = np.where(x[:, 0] > 0.0, x[:, 0] / 2e3, x[:, 0] / 1e3)
    assert found.current("R1") == pytest.approx(expected, rel=1e-9)
    assert found.current("R3") == pytest.approx(np.maximum(expected, 0.0), rel=1e-9, abs=0.0)


def test_a_dead_end_behind_a_blocking_diode_carries_exactly_nothing() -> None:
    """A triangle of resistors that only a blocking diode joins to a second node of the circuit."""
    circuit = circuitsim.loads(
        "t\nV1 a 0 1.1\nR1 a b 3.3k\nR2 b 0 0.7k\nR3 b p 1.7\nR4 p q 2.9\nR5 q r 1.3k\nR6 r p 7.7\nD1 r a\nD2 0 q\n"
    )
    kept = circuitsim.prepared(circuit)
    for volts in (1.1, 0.3, 1e3 / 7.0):
        point = kept.solve({"V1": volts})
        assert isinstance(point, LazyOperatingPoint)
        for name in ("R3", "R4", "R5", "R6", "D1", "D2"):
            assert point.current(name) == 0.0
        assert point["p"] == point["q"] == point["r"] == point["b"]
