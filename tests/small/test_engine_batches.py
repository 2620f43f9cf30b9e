"""Batches that the engine solves, with samples that share a linear circuit, against dense matrices."""

from __future__ import annotations

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from dense_oracle import linear, random_circuit, steady_state

import circuitsim
from circuitsim.analysis.batch import BatchSolver
from circuitsim.circuit.elements import CURRENT, DIODE, RESISTOR, VOLTAGE

SEEDS = range(6)


def without_plan(seed: int) -> BatchSolver:
    """A batch solver of a random circuit that has no kernel for its samples."""
    case = random_circuit(seed)
    return large(circuitsim.batched(case.circuit, case.sources, case.pairs))


def large(solver: object) -> BatchSolver:
    """The solver, as it is for circuits beyond one kernel."""
    assert isinstance(solver, BatchSolver)
    with mock.patch("circuitsim.analysis.small_circuit.LARGEST", 0):
        solver.solve()
    return solver


def values_of(solver: BatchSolver, x: np.ndarray) -> np.ndarray:
    """Values of all elements (samples, m)."""
    value = np.tile(solver.value, (len(x), 1))
    value[:, solver.inputs] = x
    return value


@pytest.mark.parametrize("seed", SEEDS)
def test_samples_against_least_squares_of_the_dual(seed: int) -> None:
    solver = without_plan(seed)
    x = np.random.default_rng(seed).normal(size=(20, 4))
    found = solver.solve(x)
    assert found.certified.all()
    for s, value in enumerate(values_of(solver, x)):
        v, current = steady_state(solver.circuit, value)
        assert found.voltages[s] == pytest.approx(v, abs=1e-11 * np.abs(v).max())
        assert found.currents[s, solver.circuit.arrays().kind == DIODE] == pytest.approx(current, abs=1e-9)


def test_results_do_not_depend_on_threads() -> None:
    solver = without_plan(3)
    x = np.random.default_rng(9).normal(size=(50, 4))
    one, four = solver.solve(x, threads=1), solver.solve(x, threads=4)
    for name in ("voltages", "currents", "closed", "relative", "iterations"):
        assert getattr(one, name).tobytes() == getattr(four, name).tobytes()
    # So many sets of conducting diodes that their responses are found by several threads.
    x = np.random.default_rng(8).normal(size=(400, 4)) * np.array([1.0, 5.0, 0.2, 2.0])
    one = solver.solve(x)
    assert len(np.unique(one.closed, axis=0)) > 16
    cotangent = np.random.default_rng(10).normal(size=one.output.shape)
    for alone, beside in zip(*(solver.adjoint(one, cotangent, threads=threads) for threads in (1, 4)), strict=True):
        assert alone.any() and alone.tobytes() == beside.tobytes()


def test_a_wrong_start_is_found_out() -> None:
    """All diodes of the start conduct, or none, in several samples alike: not the states of the samples."""
    solver = without_plan(1)
    x = np.random.default_rng(5).normal(size=(6, 4))
    cold = solver.solve(x)
    for state in (True, False):
        start = replace(cold, closed=np.full_like(cold.closed, state))
        found = solver.solve(x, start=start)
        assert found.certified.all() and np.array_equal(found.closed, cold.closed)
        assert found.voltages == pytest.approx(cold.voltages, abs=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_adjoints_against_dense_matrices(seed: int) -> None:
    solver = without_plan(seed)
    rng = np.random.default_rng(seed)
    x = np.concatenate([rng.normal(size=(5, 4)), rng.normal(size=(1, 4)) * np.linspace(1.0, 2.0, 11)[:, None]])
    found = solver.solve(x)
    cotangent = rng.normal(size=(len(x), 2))
    cotangent[2] = 0.0
    response, current = solver.adjoint(found, cotangent)
    kind, first, second, value, n = solver.circuit.arrays()
    still = np.where((kind == VOLTAGE) | (kind == CURRENT), 0.0, value)
    diodes, held = np.flatnonzero(kind == DIODE), np.flatnonzero(kind == VOLTAGE)
    for s in range(len(x)):
        injected = np.zeros((n, 1))
        for column, (p, q) in enumerate(solver.outputs):
            injected[p] -= cotangent[s, column]
            injected[q] += cotangent[s, column]
        on = diodes[found.closed[s]]
        expected = linear(solver.circuit, still, injected, on)[:, 0]
        scale = np.abs(expected).max() + 1e-300
        assert response[s] == pytest.approx(expected[:n], abs=1e-11 * scale)
        assert current[s, np.concatenate([held, on])] == pytest.approx(expected[n:], abs=1e-11 * scale)
        r = np.flatnonzero(kind == RESISTOR)
        ohmic = (expected[first[r]] - expected[second[r]]) / value[r]
        assert current[s, r] == pytest.approx(ohmic, abs=1e-10 * scale)


def test_adjoint_with_nodes_that_only_blocking_diodes_hold() -> None:
    """b hangs between blocking diodes while V1 is negative: responses there are open, and nothing drives them."""
    circuit = circuitsim.loads("t\nV1 a 0 1\nD1 a b\nR1 b c 1\nD2 c d\nR2 d 0 2\nR3 a d 4\n")
    solver = large(circuitsim.batched(circuit, ["V1"], [("d", "0")]))
    found = solver.solve(np.array([[3.0], [-3.0]]))
    assert found.certified.all()
    # Conducting: 1 Ω parallel to 4 Ω above 2 Ω; blocking: 4 Ω above 2 Ω.
    assert found.output[:, 0] == pytest.approx([3.0 * 2.0 / 2.8, -1.0])
    _, current = solver.adjoint(found, np.ones((2, 1)))
    assert -current[:, circuit.element_index("V1")] == pytest.approx([2.0 / 2.8, 1.0 / 3.0])


def test_a_sample_without_a_steady_state_is_not_certified() -> None:
    circuit = circuitsim.loads("t\nI1 0 a 1\nD1 0 a\nR1 b 0 1\nV1 b 0 1\n")  # a has no way out for a positive current
    solver = large(circuitsim.batched(circuit, ["I1"]))
    found = solver.solve(np.array([[-1.0], [1.0], [-2.0]]))
    assert found.certified.tolist() == [True, False, True]
    assert found.current("D1")[[0, 2]] == pytest.approx([1.0, 2.0])


def test_currents_in_loops_of_diodes_are_those_of_least_norm() -> None:
    """Two diodes in parallel share the current equally in every sample, not only where the engine solved it."""
    circuit = circuitsim.loads("t\nV1 a 0 1\nR1 a b 2\nD1 b c\nD2 b c\nR2 c 0 3\n")
    solver = large(circuitsim.batched(circuit, ["V1"]))
    x = np.linspace(1.0, 2.0, 9)[:, None]
    found = solver.solve(x)
    again = solver.solve(x, start=found)
    for batch in (found, again):
        assert batch.certified.all()
        for name in ("D1", "D2"):
            assert batch.current(name) == pytest.approx(x[:, 0] / 10.0)


def mesh_with_diodes(side: int, volts: float) -> circuitsim.Circuit:
    """Resistors between neighbours, diodes of random directions across half of the cells, one of the five sources
    under a node of a diode: it holds a voltage between super-nodes."""
    rng = np.random.default_rng(side)
    node = 1 + np.arange(side * side).reshape(side, side)
    ends = [node[:-1], node[1:], node[:, :-1], node[:, 1:]]
    first, second = (np.concatenate([ends[k].ravel(), ends[k + 2].ravel()]) for k in (0, 1))
    cell = np.stack([node[:-1, :-1].ravel(), node[1:, 1:].ravel()])[:, rng.random((side - 1) ** 2) < 0.5]
    cell = np.where(rng.random(cell.shape[1]) < 0.5, cell, cell[::-1])
    low, high = rng.choice(side * side, (2, 5), replace=False) + 1
    low[:3], at = 0, np.where(np.arange(cell.shape[1]) == 0, low[3], cell[0])
    kind = np.repeat([RESISTOR, DIODE, VOLTAGE], [first.size, cell.shape[1], 5])
    value = np.concatenate([rng.uniform(0.5, 2.0, first.size), np.zeros(cell.shape[1]), np.full(5, volts)])
    ends = np.concatenate([first, at, high]), np.concatenate([second, cell[1], low])
    return circuitsim.Circuit.from_arrays(kind, *ends, value, side * side + 1)


@pytest.mark.parametrize("spread", [1.0, 0.01])
def test_far_and_near_samples_have_the_diodes_of_single_solves(spread: float) -> None:
    circuit = mesh_with_diodes(18, 1.0)
    kind = circuit.arrays().kind
    solver = circuitsim.batched(circuit, np.array(circuit.names)[kind == VOLTAGE].tolist(), [("n1", "0")])
    assert isinstance(solver, BatchSolver)
    x = 1.0 + spread * np.random.default_rng(0).normal(size=(20, 5))
    found = large(solver).solve(x)
    assert found.certified.all()
    for s in (0, 7, 19):
        alone = circuitsim.solve(circuit.with_values(dict(zip(np.array(circuit.names)[kind == VOLTAGE], x[s]))))
        assert np.array_equal(found.closed[s], alone.currents[kind == DIODE] > 0.0)
        assert found.voltages[s] == pytest.approx(alone.voltages, abs=1e-12 * np.abs(alone.voltages).max())


def test_a_large_circuit_takes_no_negative_nudge() -> None:
    solver = circuitsim.batched(mesh_with_diodes(4, 1.0), [], [("n1", "0")])
    with (
        mock.patch("circuitsim.analysis.small_circuit.LARGEST", 0),
        pytest.raises(circuitsim.UsageError, match="constant nudge"),
    ):
        solver.solve(stiffness=-0.1)
