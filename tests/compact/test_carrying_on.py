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
    ("family", "unknowns"),
    [
        ("grid", 100), ("ladder", 100), ("bridges", 100), ("selectors", 100), ("erdos-renyi", 100), ("scale-free", 100),
        ("crossbar-1d1r", 100), ("drn", 100), ("grid", 900), ("scale-free", 900),
    ],
)  # fmt: skip
def test_the_same_bits_in_fewer_rounds(family: str, unknowns: int) -> None:
    """Also where diodes close loops (the larger ones) or carry nothing though their ends are equal (the graphs)."""
    circuit = make(family, unknowns, 0)
    kept = prepared(circuit)
    mine = theirs = 0
    for value in values(circuit, 16):
        point, other = kept.solve(value), fresh(circuit, value)
        assert same(point, other) and point.certificate.ok
        mine, theirs = mine + int(str(point.solver["rounds"])), theirs + int(str(other.solver["rounds"]))
    assert mine <= theirs
    if family not in ("crossbar-1d1r", "drn", "bridges"):
        assert mine < 0.8 * theirs
    if family == "grid" and unknowns > 100:
        assert not all(kept.solve().unique)


def test_the_same_bits_whichever_diodes_of_a_loop_conduct() -> None:
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
    shared = 0
    for _ in range(60):
        value = {f"V{k}": v for k, v in enumerate(rng.choice([-1.0, 1.0, 2.0, 3.0], 3).tolist())}
        point, other = kept.solve(value), circuitsim.solve(circuit.with_values(value))
        assert same(point, other) and np.array_equal(point.unique, other.unique)
        shared += not point.unique.all()
    assert shared > 10


def test_batches_carry_on_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample has the bits that it has alone, whatever came before it in its thread."""
    circuit = make("grid", 100, 0)
    names = [name for name in circuit.names if name[0] in "VI"]
    base = np.array([circuit[name].value for name in names])
    x = base * np.random.default_rng(2).uniform(0.5, 1.5, (50, len(names)))
    monkeypatch.setattr("circuitsim.analysis.batch.MOST_PORTS", 0)
    solver = circuitsim.batched(circuit, names)
    many, alone = solver.solve(x, threads=1), [solver.solve(x[s : s + 1]) for s in range(len(x))]
    for s, one in enumerate(alone):
        assert many.voltages[s].tobytes() == one.voltages[0].tobytes()
        assert many.currents[s].tobytes() == one.currents[0].tobytes()
    assert many.rounds.sum() < 0.8 * sum(int(one.rounds[0]) for one in alone)
    assert np.array_equal(many.voltages, solver.solve(x, threads=3).voltages)


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
    # Near zero volts equal potentials may be rounding: the same bits there too.
    for source in (0.0, 1e-300, 2.0):
        assert same(kept.solve({"V1": source}), circuitsim.solve(kept.circuit.with_values({"V1": source})))
    for ohms in (0.5, 2.0, 1.0, 1.0 + 1e-15, 0.5, 1.0 - 1e-14, 2.0):
        value = {"R4": ohms}
        assert same(kept.solve(value), circuitsim.solve(kept.circuit.with_values(value)))


def test_where_conductances_differ_by_many_decades_every_solve_begins_with_none() -> None:
    circuit = make("grid-scaled", 100, 0)
    kept = prepared(circuit)
    for value in values(circuit, 6):
        assert kept.solve(value).solver["rounds"] == fresh(circuit, value).solver["rounds"]


@pytest.mark.parametrize("unknowns", [100, 900])
def test_a_point_that_rounds_do_not_reach_from_everywhere_has_the_same_bits(
    unknowns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The larger one has loops of diodes."""
    circuit = make("grid", unknowns, 0)
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
