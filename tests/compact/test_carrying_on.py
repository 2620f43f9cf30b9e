"""Solves from a point given (``start=``) and without one: each is a function of its arguments."""

from __future__ import annotations

import numpy as np
import pytest
from local_scales import distance, same_bits

import circuitsim
from circuitsim.analysis import quick
from circuitsim.analysis.quick import QuickPoint
from circuitsim.analysis.solve import Prepared, prepared
from circuitsim.bench.families import make
from circuitsim.circuit.elements import CURRENT, RESISTOR, VOLTAGE


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


def iterations(point: circuitsim.OperatingPoint) -> int:
    return int(str(point.solver["iterations"]))


@pytest.mark.parametrize(
    ("family", "unknowns"),
    [
        ("grid", 100), ("ladder", 100), ("bridges", 100), ("selectors", 100), ("erdos-renyi", 100), ("scale-free", 100),
        ("crossbar-1d1r", 100), ("drn", 100), ("grid", 900), ("scale-free", 900),
    ],
)  # fmt: skip
def test_a_start_saves_iterations_and_leads_to_the_same_point(family: str, unknowns: int) -> None:
    """Also where diodes close loops (the larger ones) or carry nothing though their ends are equal (the graphs)."""
    circuit = make(family, unknowns, 0)
    kept = prepared(circuit)
    cold = warm = 0
    previous = kept.solve()
    for value in values(circuit, 16):
        point, again = kept.solve(value), kept.solve(value, start=previous)
        assert point.certificate.ok and again.certificate.ok and distance(point, again) < 1e-9
        # Without a start nothing of earlier calls counts.
        assert same_bits(point, kept.solve(value))
        fresh = circuitsim.solve(circuit.with_column(value))
        assert distance(point, fresh) < 1e-9
        cold, warm, previous = cold + iterations(fresh), warm + iterations(again), point
    assert warm <= cold
    if family not in ("crossbar-1d1r", "drn", "bridges"):
        assert warm < 0.8 * cold
    if family == "grid" and unknowns > 100:
        assert not all(kept.solve().unique)


def test_the_same_point_whichever_diodes_of_a_loop_conduct() -> None:
    """Three diodes in a triangle, fed and drained anywhere: two of them carry, or all three could."""
    circuit = circuitsim.Circuit("triangle")
    for k, node in enumerate("abc"):
        circuit.voltage_source(f"V{k}", f"s{k}", "0", 1.0)
        circuit.resistor(f"R{k}", f"s{k}", node, 1.0 + k)
        circuit.resistor(f"G{k}", node, "0", 2.0)
    for first, second in ("ab", "bc", "ac", "ca"):
        circuit.diode(f"D{first}{second}", first, second)
    kept = prepared(circuit)
    rng = np.random.default_rng(3)
    shared, point = 0, kept.solve()
    for _ in range(60):
        value = {f"V{k}": v for k, v in enumerate(rng.choice([-1.0, 1.0, 2.0, 3.0], 3).tolist())}
        point, other = kept.solve(value, start=point), circuitsim.solve(circuit.with_values(value))
        assert np.array_equal(point.unique, other.unique)
        np.testing.assert_allclose(point.voltages, other.voltages, rtol=0, atol=1e-12)
        np.testing.assert_allclose(point.currents, other.currents, rtol=0, atol=1e-12)
        shared += not point.unique.all()
    assert shared > 10


def bridge() -> Prepared:
    """A diode across a Wheatstone bridge, which R4 unbalances either way."""
    circuit = circuitsim.Circuit("bridge")
    circuit.voltage_source("V1", "top", "0", 2.0)
    for name, first, second in (("R1", "top", "a"), ("R2", "a", "0"), ("R3", "top", "b"), ("R4", "b", "0")):
        circuit.resistor(name, first, second, 1.0)
    circuit.diode("D1", "a", "b")
    return prepared(circuit)


def test_where_a_diode_may_conduct_or_not_any_start_leads_to_the_same_point() -> None:
    kept = bridge()
    point = kept.solve({"R4": 0.5})  # it conducts,
    assert isinstance(point, QuickPoint)
    tie = kept.solve(start=point)  # now nothing drives it,
    assert tie["a"] == tie["b"] == 1.0
    for source in (0.0, 1e-300, 2.0):  # near zero volts equal potentials may be rounding.
        cold = kept.solve({"V1": source})
        assert distance(cold, kept.solve({"V1": source}, start=point)) < 1e-9
    for ohms in (0.5, 2.0, 1.0, 1.0 + 1e-15, 0.5, 1.0 - 1e-14, 2.0):
        cold = kept.solve({"R4": ohms})
        point = kept.solve({"R4": ohms}, start=point)
        assert same_bits(cold, kept.solve({"R4": ohms})) and distance(cold, point) < 1e-9


@pytest.mark.parametrize("unknowns", [100, 900])
def test_where_the_kernel_stops_early_the_engine_goes_on_to_the_same_point(
    unknowns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The larger one has loops of diodes."""
    circuit = make("grid", unknowns, 0)
    whole = circuitsim.solve(circuit)
    assert iterations(whole) > 2
    monkeypatch.setattr(quick, "ROUNDS", 1)
    point = prepared(circuit).solve()
    assert not isinstance(point, QuickPoint) and point.certificate.ok and distance(point, whole) < 1e-9
