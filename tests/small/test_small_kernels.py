"""Kernels of small circuits: the same bits interpreted and compiled, the same answers as the general solver."""

from __future__ import annotations

import itertools
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import circuitsim
from circuitsim.analysis.small_circuit import TOO_DENSE, SmallCircuitSolver, small_circuit_solver
from circuitsim.analysis.solve import Prepared
from circuitsim.bench.families import make
from circuitsim.certificate import EQUATIONS, certify, worst_violations
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CURRENT, DIODE, RESISTOR, VOLTAGE
from circuitsim.engine.small import kernels, order, plan, samples, single
from circuitsim.engine.small.outcome import Outcome
from circuitsim.errors import TopologyError

FAMILIES = ("grid", "erdos-renyi", "scale-free", "ladder", "bridges", "selectors", "crossbar-1d1r", "grid-scaled")


def run(solve, make_plan, circuit: Circuit):
    """Plan and results of one circuit by given kernels."""
    a = circuit.arrays()
    columns = [column.copy() for column in a[:4]]
    made = make_plan(*columns, a.n_nodes, np.zeros(a.n_nodes, dtype=bool), 2**62)
    closed = np.zeros((1, made.diode.size), dtype=bool)
    results = (
        closed,
        np.empty((1, a.n_nodes)),
        np.empty((1, a.kind.size)),
        np.empty((1, 7)),
        np.empty((1, 8)),
        np.empty(1, np.int64),
        np.empty(1, np.int64),
    )
    inputs, x = np.zeros(0, np.int64), np.zeros((1, 0))
    with np.errstate(all="ignore"):
        solve(made, *columns, inputs, x, 40, True, 0, 1, *results)
    return made, results


def compiled_plan(*arguments) -> plan.Plan:
    """The plan as compiled code packs it."""
    return single.unpack(kernels.small_kernel.compiled("prepare")(*arguments))


@pytest.mark.parametrize("family", FAMILIES)
def test_interpreted_and_compiled_give_the_same_bits(family: str) -> None:
    for seed, size in ((0, 12), (1, 40), (2, 70)):
        circuit = make(family, size, seed)
        plain_plan, plain = run(samples.solve_samples, plan.plan, circuit)
        fast_plan, fast = run(kernels.small_kernel.compiled("solve_samples"), compiled_plan, circuit)
        for one, other in zip((*plain_plan, *plain), (*fast_plan, *fast)):
            assert np.array_equal(one, other, equal_nan=True)


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
        assert quick.certificate.certified and quick.certificate.worst < 1e-11


def test_the_loop_measures_what_the_certificate_does() -> None:
    rng = np.random.default_rng(3)
    for seed in range(5):
        circuit = make("grid", 30, seed)
        a = circuit.arrays()
        v, i = rng.normal(size=a.n_nodes), rng.normal(size=a.kind.size)
        i = np.where(a.kind == CURRENT, a.value, i)
        worst, relative = np.empty(7), np.empty(7)
        low, still = np.zeros(a.n_nodes), np.zeros(a.n_nodes, dtype=bool)
        worst_violations(
            a.kind, a.first, a.second, a.value, a.value, v, low, still, i, np.empty((2, a.n_nodes)), worst, relative
        )
        expected = certify(a, a.value, v, i, v[a.first] - v[a.second])
        found = dict(zip(EQUATIONS, relative.tolist()))
        for name in ("kcl", "kvl", "source", "diode_reverse"):
            assert found[name] == pytest.approx(expected.relative[name], rel=1e-12)
        # The scale of a diode's drop is here the larger potential at its ends.
        d = a.kind == DIODE
        reach = np.maximum(np.abs(v[a.first[d]]), np.abs(v[a.second[d]]))
        assert found["diode_drop"] == pytest.approx(((v[a.first] - v[a.second])[d] / reach).max(), rel=1e-12)
        assert worst.tolist() == pytest.approx([getattr(expected, name) for name in EQUATIONS], rel=1e-12, abs=1e-13)


def test_the_pattern_holds_all_fill_and_late_coordinates_come_last() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        n, m = 25, 50
        a, b = rng.integers(0, n + 1, m), rng.integers(0, n + 1, m)
        late = np.zeros(n + 1, dtype=bool)
        late[rng.choice(n, 4, replace=False)] = True
        position, ptr, members = order.eliminate(n, a, b, late, 2**62)
        assert sorted(position.tolist()) == list(range(n))
        assert set(position[late[:n]].tolist()) == set(range(n - 4, n))
        rows, _, col, slot, supernode_end = plan.arrange(n, position, ptr, members)
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
        pattern = [rows[ptr[k] : ptr[k + 1]].tolist() for k in range(n)]
        for k, end in enumerate(supernode_end.tolist()):
            assert all(pattern[j - 1] == [j, *pattern[j]] for j in range(k + 1, end))
            assert end == n or pattern[end - 1] != [end, *pattern[end]]


def status_of(deck: str) -> int:
    _, results = run(samples.solve_samples, plan.plan, circuitsim.loads(deck))
    return int(results[5][0])


def test_what_is_not_unique_is_left_to_the_general_solver() -> None:
    settled = "t\nV1 1 0 1\nR1 1 2 1\nD1 2 3\nR2 3 0 1\n"
    assert status_of(settled) == Outcome.CONVERGED
    parallel_diodes = settled + "D2 2 3\n"
    assert status_of(parallel_diodes) == Outcome.NONUNIQUE_CURRENTS
    parallel_sources = settled + "V2 1 0 1\n"
    assert status_of(parallel_sources) == Outcome.SINGULAR
    held_by_a_blocking_diode = settled + "D3 4 0\n"
    assert status_of(held_by_a_blocking_diode) in (Outcome.SINGULAR, Outcome.MAX_ITERATIONS)
    contradiction = "t\nV1 1 0 1\nD1 1 0\n"
    assert status_of(contradiction) == Outcome.MAX_ITERATIONS
    nowhere_to_go = "t\nI1 0 1 1\nD1 0 1\n"
    assert status_of(nowhere_to_go) == Outcome.MAX_ITERATIONS
    for deck in (parallel_diodes, parallel_sources):
        point = circuitsim.solve(circuitsim.loads(deck))
        assert point["3"] == 0.5 and not point.unique.all() and point.certificate.certified


def new_values(circuit: Circuit, count: int) -> list[np.ndarray]:
    """Value columns with other sources; one of them with other resistances too, and the first once more at the end."""
    rng = np.random.default_rng(7)
    a = circuit.arrays()
    sources = (a.kind == VOLTAGE) | (a.kind == CURRENT)
    columns = [np.where(sources, a.value * rng.uniform(-1.0, 1.2, a.value.size), a.value) for _ in range(count)]
    columns[1] = np.where(a.kind == RESISTOR, a.value * rng.uniform(0.5, 2.0, a.value.size), columns[1])
    return [*columns, columns[0]]


@pytest.mark.parametrize("family", FAMILIES)
def test_one_at_a_time_gives_the_same_bits_interpreted_and_compiled(family: str) -> None:
    for seed, size in ((0, 12), (2, 40)):
        circuit = make(family, size, seed)
        a = circuit.arrays()
        late = np.zeros(a.n_nodes, dtype=bool)
        answers = []
        for find in (kernels.small_kernel.plain, kernels.small_kernel.compiled):
            packed = find("prepare")(*(column.copy() for column in a[:4]), a.n_nodes, late, 2**62)
            numbers, guess = np.zeros(packed[single.NUMBERS]), np.zeros(0)
            guess.flags.writeable = False
            m, d = a.kind.size, single.part(packed, 8).size
            for value in new_values(circuit, 3):
                out = np.zeros(2 * m + a.n_nodes + 15 + d)
                out[:m] = value
                answers.append((*find("solve_once")(packed, numbers, guess, 40, out), out))
        for one, other in zip(answers[:4], answers[4:]):
            for x, y in zip(one, other):
                assert np.array_equal(x, y, equal_nan=True)


def test_a_result_stays_what_it_was() -> None:
    circuit = make("grid", 40, 0)
    ready = circuitsim.prepared(circuit)
    values = new_values(circuit, 4)
    mine = values[0].copy()
    first = ready.solve(mine)
    early, expected = first.voltages, circuitsim.solve(first.circuit)
    mine[:] = 1.0
    kept = [ready.solve(value) for value in values]
    assert np.array_equal(early, expected.voltages) and np.array_equal(first.currents, expected.currents)
    assert first.certificate == expected.certificate and first.solver == expected.solver
    assert np.array_equal(first.circuit.arrays().value, values[0], equal_nan=True)
    with pytest.raises(ValueError, match="read-only"):
        first.voltages[1] = 0.0
    for value, point in zip(values, kept):
        assert np.array_equal(point.voltages, circuitsim.prepared(circuit).solve(value).voltages)
    copy = pickle.loads(pickle.dumps(first))
    assert copy.to_dict() == first.to_dict()


def test_threads_share_no_memory() -> None:
    circuit = make("grid", 100, 0)
    ready = circuitsim.prepared(circuit)
    values = new_values(circuit, 40)
    alone = [ready.solve(value).voltages for value in values]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(ready.solve, values))
    assert all(np.array_equal(one, other.voltages) for one, other in zip(alone, together))


def test_values_by_name_or_all_in_an_array() -> None:
    circuit = circuitsim.loads("t\nV1 1 0 1\nR1 1 2 1\nD1 2 3\nR2 3 0 1\nC1 3 0 1u\n")
    ready = circuitsim.prepared(circuit)
    assert ready.solve({"v1": 4.0})["3"] == ready.solve([4.0, 1.0, 0.0, 1.0, 1e-6])["3"] == 2.0
    point = ready.solve(np.array([4, 3, 7, 1, 1]))
    assert point["3"] == 1.0 and point.circuit["R1"].value == 3.0 and point.circuit["D1"].value is None
    assert point.warnings == ready.solve().warnings
    for wrong in ([1.0, 1.0], [[1.0] * 5], 1.0):
        with pytest.raises(TopologyError, match="5 element values are needed"):
            ready.solve(wrong)
    good = [1.0, 1.0, 0.0, 1.0, 1e-6]
    for k, bad, said in ((0, np.nan, "finite"), (1, -1.0, "negative"), (1, np.inf, "finite"), (4, np.nan, "finite")):
        with pytest.raises(TopologyError, match=said):
            ready.solve([*good[:k], bad, *good[k + 1 :]])
    with pytest.raises(TopologyError, match="takes no value"):
        ready.solve({"D1": 1.0})
    assert ready.solve(good)["3"] == 0.5


def test_a_small_circuit_takes_the_quick_way_and_other_values_keep_its_plan() -> None:
    circuit = make("grid", 60, 0)
    made = small_circuit_solver(circuit, 1e-9)
    assert isinstance(made, SmallCircuitSolver)
    point = made.solve(circuit.arrays().value)
    assert isinstance(point, circuitsim.OperatingPoint)
    assert np.array_equal(point.voltages, circuitsim.solve(circuit).voltages)
    ready = circuitsim.prepared(circuit)
    name = next(n for n in circuit.names if n.startswith("I"))
    moved = ready.solve({name: 0.05})
    assert np.array_equal(moved.voltages, circuitsim.solve(circuit.with_values({name: 0.05})).voltages)
    assert moved.circuit[name].value == 0.05 and circuit[name].value != 0.05


def test_what_fills_in_too_much_is_left_to_the_general_solver() -> None:
    assert small_circuit_solver(make("drn", 1000, 0), 1e-9) == TOO_DENSE


def test_a_resistance_that_becomes_zero_is_another_topology() -> None:
    circuit = circuitsim.loads("t\nV1 1 0 1\nR1 1 2 1\nR2 2 0 1\n")
    ready = circuitsim.prepared(circuit)
    assert ready.solve({"R1": 0.0})["2"] == ready.solve([1.0, 0.0, 1.0])["2"] == 1.0
    assert ready.solve({"R2": 0.0})["2"] == 0.0
    assert ready.solve()["2"] == 0.5
    short = circuitsim.prepared(circuit.with_values({"R1": 0.0}))
    assert short.solve()["2"] == 1.0 and short.solve([1.0, 1.0, 1.0])["2"] == 0.5
