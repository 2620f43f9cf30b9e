"""Solves that begin with the diodes of the one before: fewer rounds, the same bits."""

from __future__ import annotations

import numpy as np
import pytest

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


def same(one: circuitsim.OperatingPoint, other: circuitsim.OperatingPoint) -> bool:
    return one.voltages.tobytes() == other.voltages.tobytes() and one.currents.tobytes() == other.currents.tobytes()


def fresh(circuit: circuitsim.Circuit, value: np.ndarray) -> circuitsim.OperatingPoint:
    return circuitsim.solve(circuit.with_column(value))


@pytest.mark.parametrize(
    "family", ["grid", "ladder", "bridges", "selectors", "erdos-renyi", "scale-free", "crossbar-1d1r", "drn"]
)
def test_the_same_bits_in_fewer_rounds(family: str) -> None:
    circuit = make(family, 100, 0)
    kept = prepared(circuit)
    mine = theirs = 0
    for value in values(circuit, 16):
        point, other = kept.solve(value), fresh(circuit, value)
        assert same(point, other) and point.certificate.ok
        mine, theirs = mine + int(str(point.solver["rounds"])), theirs + int(str(other.solver["rounds"]))
    assert mine <= theirs
    if family in ("grid", "ladder", "bridges", "selectors"):
        assert mine < 0.8 * theirs


def bridge() -> Prepared:
    """A diode across a Wheatstone bridge, which R4 unbalances either way."""
    circuit = circuitsim.Circuit("bridge")
    circuit.voltage_source("V1", "top", "0", 2.0)
    for name, first, second in (("R1", "top", "a"), ("R2", "a", "0"), ("R3", "top", "b"), ("R4", "b", "0")):
        circuit.resistor(name, first, second, 1.0)
    circuit.diode("D1", "a", "b")
    return prepared(circuit)


def test_where_a_diode_may_conduct_or_not_the_rounds_begin_again() -> None:
    kept = bridge()
    assert isinstance(kept.solve({"R4": 0.5}), QuickPoint)  # it conducts,
    tie = kept.solve()  # now nothing drives it,
    assert same(tie, circuitsim.solve(kept.circuit)) and tie["a"] == tie["b"] == 1.0
    for ohms in (0.5, 2.0, 1.0, 1.0 + 1e-15, 0.5, 1.0 - 1e-14, 2.0):
        value = {"R4": ohms}
        assert same(kept.solve(value), circuitsim.solve(kept.circuit.with_values(value)))


def test_where_conductances_differ_by_many_decades_every_solve_begins_with_none() -> None:
    circuit = make("grid-scaled", 100, 0)
    kept = prepared(circuit)
    for value in values(circuit, 6):
        assert kept.solve(value).solver["rounds"] == fresh(circuit, value).solver["rounds"]


def test_a_point_that_rounds_do_not_reach_from_everywhere_has_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    circuit = make("grid", 100, 0)
    whole = circuitsim.solve(circuit)
    assert int(str(whole.solver["rounds"])) > 2
    monkeypatch.setattr(quick, "ROUNDS", 1)
    kept = prepared(circuit)
    for _ in range(2):  # the first time the general solver finds it, the second time it is known
        point = kept.solve()
        assert isinstance(point, QuickPoint) and same(point, whole)


def test_a_known_point_counts_only_where_the_kernel_is_as_good() -> None:
    kept = bridge()
    assert isinstance(kept.quick, quick.Quick)
    value = kept.circuit.with_values({"R4": 0.5}).arrays().value
    right = kept.solve({"R4": 0.5})
    confirmed = kept.quick.confirm(value, right)
    assert confirmed is not None and same(confirmed, right)
    assert kept.quick.confirm(value, kept.solve({"R4": 2.0})) is None  # there it blocks
