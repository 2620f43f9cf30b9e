"""The compact kernels: the same bits interpreted and compiled, the same answers as the general solver."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import circuitsim
from circuitsim.analysis.quick import quick_plan, quick_solve
from circuitsim.analysis.solve import Prepared
from circuitsim.bench.families import make
from circuitsim.certificate import EQUATIONS, certify, worst_violations
from circuitsim.circuit import Circuit
from circuitsim.compact import kernels, plan, ports, samples
from circuitsim.compact.settle import FREE, NO_REST, SETTLED, SHARED

FAMILIES = ("grid", "erdos-renyi", "scale-free", "ladder", "bridges", "selectors", "crossbar-1d1r", "grid-scaled")


def run(solve, make_plan, circuit: Circuit):
    """Plan and results of one circuit by given kernels."""
    a = circuit.arrays()
    made = make_plan(a.kind, a.first, a.second, a.value, a.n_nodes, np.zeros(a.n_nodes, dtype=bool), 2**62)
    closed = np.zeros((1, made.diode.size), dtype=bool)
    results = (
        closed, np.empty((1, a.n_nodes)), np.empty((1, a.kind.size)), np.empty((1, 7)), np.empty((1, 7)),
        np.empty(1, np.int64), np.empty(1, np.int64),
    )  # fmt: skip
    inputs, x = np.zeros(0, np.int64), np.zeros((1, 0))
    with np.errstate(all="ignore"):
        solve(made, a.kind, a.first, a.second, a.value, inputs, x, 40, 0, 1, *results)
    return made, results


@pytest.mark.parametrize("family", FAMILIES)
def test_interpreted_and_compiled_give_the_same_bits(family: str) -> None:
    for seed, size in ((0, 12), (1, 40), (2, 70)):
        circuit = make(family, size, seed)
        plain_plan, plain = run(samples.solve_samples, plan.plan, circuit)
        fast_plan, fast = run(kernels.compiled("solve_samples"), kernels.compiled("plan"), circuit)
        for one, other in zip((*plain_plan, *plain), (*fast_plan, *fast)):
            assert np.array_equal(one, other, equal_nan=True)


def test_ports_too_give_the_same_bits() -> None:
    circuit = make("drn", 40, 0)
    a = circuit.arrays()
    inputs = np.flatnonzero(a.kind == 2)
    x = a.value[inputs] * np.random.default_rng(0).uniform(-1.0, 1.0, (3, inputs.size))
    made = plan.plan(a.kind, a.first, a.second, a.value, a.n_nodes, np.zeros(a.n_nodes, dtype=bool), 2**62)
    answers = []
    for find in (kernels._find, kernels.compiled):
        through = ports.Ports(*find("ports")(made, a.first, a.second, a.value))
        results = (
            np.zeros((3, made.diode.size), dtype=bool), np.empty((3, a.n_nodes)), np.empty((3, a.kind.size)),
            np.empty((3, 7)), np.empty((3, 7)), np.empty(3, np.int64), np.empty(3, np.int64),
        )  # fmt: skip
        columns = (a.kind, a.first, a.second, a.value)
        find("solve_by_ports")(made, through, *columns, inputs, x, 40, 0, 3, *results)
        answers.append((*through, *results))
    for one, other in zip(*answers):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_general_solver_agrees(family: str) -> None:
    for seed in range(3):
        circuit = make(family, 150, seed)
        quick = circuitsim.solve(circuit)
        general = Prepared(circuit, "active-set", 1e-9, "asked for").solve()
        scale = np.abs(general.voltages).max()
        assert np.abs(quick.voltages - general.voltages).max() <= 1e-9 * scale
        assert np.array_equal(quick.unique, general.unique)
        assert np.abs(quick.currents - general.currents)[quick.unique].max() <= 1e-9 * np.abs(general.currents).max()
        assert quick.certificate.ok and quick.certificate.worst < 1e-11


def test_the_loop_measures_what_the_certificate_does() -> None:
    rng = np.random.default_rng(3)
    for seed in range(5):
        circuit = make("grid", 30, seed)
        a = circuit.arrays()
        v, i = rng.normal(size=a.n_nodes), rng.normal(size=a.kind.size)
        worst, relative = np.empty(7), np.empty(7)
        worst_violations(a.kind, a.first, a.second, a.value, a.value, v, i, np.empty((2, a.n_nodes)), worst, relative)
        expected = certify(a, a.value, v, i)
        assert dict(zip(EQUATIONS, relative.tolist())) == pytest.approx(expected.relative, rel=1e-12)
        assert worst.tolist() == pytest.approx([getattr(expected, name) for name in EQUATIONS], rel=1e-12, abs=1e-13)


def test_the_pattern_holds_all_fill_and_late_coordinates_come_last() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        n, m = 25, 50
        a, b = rng.integers(0, n + 1, m), rng.integers(0, n + 1, m)
        late = np.zeros(n + 1, dtype=bool)
        late[rng.choice(n, 4, replace=False)] = True
        position, ptr, members = plan.eliminate(n, a, b, late, 2**62)
        assert sorted(position.tolist()) == list(range(n))
        assert set(position[late[:n]].tolist()) == set(range(n - 4, n))
        rows, _, col, slot = plan.arrange(n, position, ptr, members)
        # The textbook way: eliminate on sets.
        near = [set() for _ in range(n)]
        for i, j in zip(a.tolist(), b.tolist()):
            if i < n and j < n and i != j:
                near[position[i]].add(int(position[j]))
                near[position[j]].add(int(position[i]))
        for k in range(n):
            above = sorted(j for j in near[k] if j > k)
            assert rows[ptr[k] : ptr[k + 1]].tolist() == above
            for i, j in itertools.permutations(above, 2):
                near[i].add(j)
        assert np.array_equal(rows[slot.astype(int)], np.repeat(np.arange(n), np.bincount(rows, minlength=n)))
        assert (col < rows[slot.astype(int)]).all()


def status_of(deck: str) -> int:
    _, results = run(samples.solve_samples, plan.plan, circuitsim.loads(deck))
    return int(results[5][0])


def test_what_is_not_unique_is_left_to_the_general_solver() -> None:
    settled = "t\nV1 1 0 1\nR1 1 2 1\nD1 2 3\nR2 3 0 1\n"
    assert status_of(settled) == SETTLED
    parallel_diodes = settled + "D2 2 3\n"
    assert status_of(parallel_diodes) == SHARED
    parallel_sources = settled + "V2 1 0 1\n"
    assert status_of(parallel_sources) == FREE
    held_by_a_blocking_diode = settled + "D3 4 0\n"
    assert status_of(held_by_a_blocking_diode) in (FREE, NO_REST)
    contradiction = "t\nV1 1 0 1\nD1 1 0\n"
    assert status_of(contradiction) == NO_REST
    nowhere_to_go = "t\nI1 0 1 1\nD1 0 1\n"
    assert status_of(nowhere_to_go) == NO_REST
    for deck in (parallel_diodes, parallel_sources):
        point = circuitsim.solve(circuitsim.loads(deck))
        assert point["3"] == 0.5 and not point.unique.all() and point.certificate.ok


def test_a_small_circuit_takes_the_quick_way_and_other_values_keep_its_plan() -> None:
    circuit = make("grid", 60, 0)
    made = quick_plan(circuit)
    assert not isinstance(made, str)
    point = quick_solve(circuit, made, 1e-9)
    assert isinstance(point, circuitsim.OperatingPoint)
    assert np.array_equal(point.voltages, circuitsim.solve(circuit).voltages)
    ready = circuitsim.prepared(circuit)
    name = next(n for n in circuit.names if n.startswith("I"))
    moved = ready.solve({name: 0.05})
    assert np.array_equal(moved.voltages, circuitsim.solve(circuit.with_values({name: 0.05})).voltages)
    assert moved.circuit[name].value == 0.05 and circuit[name].value != 0.05


def test_a_resistance_that_becomes_zero_is_another_topology() -> None:
    circuit = circuitsim.loads("t\nV1 1 0 1\nR1 1 2 1\nR2 2 0 1\n")
    ready = circuitsim.prepared(circuit)
    assert ready.solve({"R1": 0.0})["2"] == 1.0
    assert ready.solve({"R2": 0.0})["2"] == 0.0
    assert ready.solve()["2"] == 0.5
