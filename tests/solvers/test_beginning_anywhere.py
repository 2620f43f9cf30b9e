"""The general solver begins with the diodes of the solve before: fewer rounds, the same bits."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import circuitsim
from circuitsim.analysis.solve import Prepared, prepared
from circuitsim.bench.families import make
from circuitsim.circuit.elements import CURRENT, RESISTOR, VOLTAGE
from circuitsim.errors import ConvergenceError
from circuitsim.program import analyse, quadratic_program
from circuitsim.solvers import active_set, contracted
from circuitsim.solvers.active_set import ActiveSet
from circuitsim.solvers.doubt import beyond_doubt


def general(circuit: circuitsim.Circuit) -> Prepared:
    """Prepared for the general solver, however small the circuit."""
    made = prepared(circuit)
    assert isinstance(made, Prepared)
    return dataclasses.replace(made, quick="general solver: the kernel is not asked")


def values(circuit: circuitsim.Circuit, count: int, spread: float) -> list[np.ndarray]:
    """New sources; every fourth time new resistances too."""
    rng = np.random.default_rng(11)
    kind, _, _, own, _ = circuit.arrays()
    found = []
    for k in range(count):
        changes = np.isin(kind, (VOLTAGE, CURRENT) if k % 4 else (VOLTAGE, CURRENT, RESISTOR))
        factor = 1.0 + spread * rng.uniform(-1.0, 1.0, kind.size)
        found.append(np.where(changes, own * np.where(kind == RESISTOR, np.abs(factor) + 0.1, factor), own))
    return found


def same(one: circuitsim.OperatingPoint, other: circuitsim.OperatingPoint) -> bool:
    return (
        one.voltages.tobytes() == other.voltages.tobytes()
        and one.currents.tobytes() == other.currents.tobytes()
        and np.array_equal(one.unique, other.unique)
        and one.intervals == other.intervals
    )


@pytest.mark.parametrize(
    ("family", "unknowns"),
    [
        ("grid", 400), ("grid", 3_600), ("erdos-renyi", 400), ("scale-free", 300), ("ladder", 500), ("bridges", 400),
        ("selectors", 400), ("crossbar-1d1r", 400), ("drn", 200), ("grid-scaled", 400),
    ],
)  # fmt: skip
def test_the_same_bits_in_fewer_rounds(family: str, unknowns: int) -> None:
    circuit = make(family, unknowns, 0)
    kept = general(circuit)
    mine = theirs = 0
    for spread in (0.1, 2.0):
        for value in values(circuit, 8, spread):
            point, other = kept.solve(value), general(circuit.with_column(value)).solve()
            assert point.certificate.ok and same(point, other)
            if spread == 0.1:
                mine, theirs = mine + int(str(point.solver["rounds"])), theirs + int(str(other.solver["rounds"]))
    assert mine <= theirs
    if family in ("grid", "erdos-renyi", "ladder"):
        assert mine < 0.8 * theirs


def test_the_same_bits_where_values_tie() -> None:
    """Whole numbers everywhere: equal potentials by chance, diodes that carry exactly nothing, loops of them."""
    rng = np.random.default_rng(5)
    tried = 0
    for _ in range(12):
        n = int(rng.integers(6, 24))
        circuit = circuitsim.Circuit("ties")
        for k in range(1, n):
            circuit.resistor(f"R{k}", str(k), "0", float(rng.choice([1.0, 2.0, 10.0])))
        for k in range(2 * n):
            a, c = (str(x) for x in rng.choice(n, 2, replace=False))
            if k % 3:
                circuit.diode(f"D{k}", a, c)
            else:
                circuit.resistor(f"Q{k}", a, c, float(rng.choice([1.0, 2.0])))
        for k in range(3):
            circuit.current_source(f"I{k}", "0", str(int(rng.integers(1, n))), 1.0)
        kept = general(circuit)
        for _ in range(8):
            value = {f"I{k}": float(x) for k, x in enumerate(rng.choice([0.0, 1.0, -1.0, 0.5], 3))}
            assert same(kept.solve(value), general(circuit.with_values(value)).solve())
            tried += 1
    assert tried == 96


def bridge() -> circuitsim.Circuit:
    """A diode across a Wheatstone bridge, which R4 unbalances either way."""
    circuit = circuitsim.Circuit("bridge")
    circuit.voltage_source("V1", "top", "0", 2.0)
    for name, first, second in (("R1", "top", "a"), ("R2", "a", "0"), ("R3", "top", "b"), ("R4", "b", "0")):
        circuit.resistor(name, first, second, 1.0)
    circuit.diode("D1", "a", "b")
    return circuit


def test_which_ends_are_beyond_doubt() -> None:
    """A diode that carries, one that blocks, a tie, nearly a tie."""
    for ohms, clear in ((0.5, True), (2.0, True), (1.0, True), (1.0 + 1e-13, False), (1.0 - 1e-13, False)):
        structure = analyse(bridge().with_values({"R4": ohms}))
        program = quadratic_program(structure)
        network = contracted.prepare(program)
        none = np.zeros(1, dtype=bool)
        settled, done, _ = active_set.primal_dual(network, none, np.zeros(program.n + 1), 10)
        found = active_set.canonical(network, settled)
        assert done and (found is not None) is clear
        assert found is None or (beyond_doubt(network, found) and np.array_equal(found.on, found.equal))


def test_a_point_in_doubt_leaves_no_guess() -> None:
    kept = general(bridge())
    for ohms, known in ((0.5, True), (1.0 + 1e-13, False), (2.0, True), (1.0, True), (0.5, True)):
        value = {"R4": ohms}
        assert same(kept.solve(value), general(kept.circuit.with_values(value)).solve())
        assert ("conducting" in kept.structure.memo) is known


def test_where_the_guess_leads_nowhere_the_rounds_begin_with_none(monkeypatch: pytest.MonkeyPatch) -> None:
    circuit = make("grid", 300, 0)
    kept = general(circuit)
    first, second = values(circuit, 3, 2.0)[1:]
    kept.solve(first)
    expected = general(circuit.with_column(second)).solve()

    def fails(*_: object, **__: object) -> None:
        raise ConvergenceError("nowhere")

    with monkeypatch.context() as patch:
        patch.setattr(ActiveSet, "soon", property(lambda _: 1))
        assert same(kept.solve(second), expected)
    kept.solve(first)
    rounds = active_set.primal_dual
    with monkeypatch.context() as patch:
        patch.setattr(active_set, "primal_dual", lambda *a, **k: (fails if k.get("keep") else rounds)(*a, **k))
        assert same(kept.solve(second), expected)


def test_a_canonical_end_that_leads_elsewhere_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The point stands as the rounds left it, certified; nothing is kept for the next solve."""
    circuit = make("grid", 300, 0)
    expected = general(circuit).solve()
    monkeypatch.setattr(active_set, "canonical", lambda *_: None)
    kept = general(circuit)
    point = kept.solve()
    assert point.certificate.ok and "conducting" not in kept.structure.memo
    np.testing.assert_allclose(point.voltages, expected.voltages, rtol=0, atol=1e-12)


def test_a_chain_of_diodes_comes_on_at_once_where_it_would_come_on_one_by_one() -> None:
    """From none conducting, each round lets one more diode conduct; from all, none has to go."""
    circuit = circuitsim.Circuit("chain")
    circuit.voltage_source("V1", "n0", "0", 1.0)
    for k in range(300):
        circuit.diode(f"D{k}", f"n{k}", f"n{k + 1}")
    circuit.resistor("R1", "n300", "0", 2.0)
    for point in (general(circuit).solve(), prepared(circuit).solve()):
        assert point["n300"] == 1.0 and point.current("D150") == 0.5
        assert point.solver["steps"] == 0 and int(str(point.solver["rounds"])) < 50


def test_where_factors_are_too_large_to_keep_nothing_is_carried_on(monkeypatch: pytest.MonkeyPatch) -> None:
    circuit = make("grid", 400, 0)
    expected = general(circuit).solve()
    monkeypatch.setattr("circuitsim.solvers.linear.KEPT", 100)
    kept = general(circuit)
    point = kept.solve()
    assert point.certificate.ok and not {"conducting", "factor"} & set(kept.structure.memo)
    np.testing.assert_allclose(point.voltages, expected.voltages, rtol=0, atol=1e-12)
