"""Samples with conducting diodes of their own: right to their bound, in both forms, with and without kept factors."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from dense_oracle import random_circuit, steady_state
from test_sample_proof import exact_currents

import circuitsim
from circuitsim.analysis import single_samples, tree_proof
from circuitsim.analysis.batch import BatchSolver
from circuitsim.analysis.single_samples import Found, SingleSamples
from circuitsim.circuit import CircuitArrays
from circuitsim.circuit.elements import CURRENT, DIODE, VOLTAGE
from circuitsim.engine.network import Wiring
from circuitsim.program.structure import analyse_arrays

SEEDS = (0, 1, 3, 4)  # of 2 a diode is at a kink: the engine decides
NONE = np.zeros(0, dtype=np.int64)


def columns(seed: int, decades: float = 4.0, nodes: int = 30) -> CircuitArrays:
    """A random circuit."""
    return random_circuit(seed, nodes, decades, 8).circuit.arrays()


def solver_of(arrays: CircuitArrays) -> SingleSamples:
    """Its samples one by one."""
    made = SingleSamples(Wiring(analyse_arrays(arrays)).at(arrays.value), arrays)
    assert made.suits
    return made


def driven(arrays: CircuitArrays, seed: int) -> np.ndarray:
    """Values with random sources."""
    source = (arrays.kind == VOLTAGE) | (arrays.kind == CURRENT)
    return np.where(source, np.random.default_rng(seed).normal(size=source.size), arrays.value)


def solved(arrays: CircuitArrays, value: np.ndarray) -> Found:
    """The operating point."""
    found = solver_of(arrays).solve(value, NONE, None, 1e-9)
    assert found is not None
    return found


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("decades", [1.0, 7.0])
def test_currents_are_those_of_fractions(seed: int, decades: float) -> None:
    arrays = columns(seed, decades, 12)
    value = driven(arrays, seed)
    found = solved(arrays, value)
    closed = found.linear.closed.tolist()
    held = np.flatnonzero((arrays.kind == VOLTAGE) | (arrays.kind == CURRENT)).tolist()
    exact = exact_currents(arrays, closed, {e: float(value[e]) for e in held})
    largest = np.zeros(arrays.n_nodes)
    for end in (arrays.first, arrays.second):
        np.maximum.at(largest, end, np.abs(found.current))
    for e, current in exact.items():
        local = max(largest[arrays.first[e]], largest[arrays.second[e]])
        assert abs(Fraction(float(found.current[e])) - current) <= 1e-13 * local
    assert all(exact[e] > 0 for e in closed)


@pytest.mark.parametrize("seed", SEEDS)
def test_operating_points_are_those_of_the_dual(seed: int) -> None:
    case = random_circuit(seed)
    arrays = case.circuit.arrays()
    for k in range(6):
        value = driven(arrays, 10 * seed + k)
        found = solved(arrays, value)
        v, current = steady_state(case.circuit, value)
        assert found.v == pytest.approx(v, abs=1e-11 * np.abs(v).max())
        assert found.current[arrays.kind == DIODE] == pytest.approx(current, abs=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_interpreted_and_compiled_give_the_same_bits(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    arrays, found = columns(seed), []
    value, source = driven(arrays, seed), np.flatnonzero(arrays.kind == CURRENT)
    for find in (tree_proof.tree_kernel.plain, tree_proof.tree_kernel.compiled):
        monkeypatch.setattr(single_samples, "tree_kernel", lambda name, size, find=find: find(name))
        made = solver_of(arrays)
        point = made.solve(value, NONE, None, 1e-9)
        assert point is not None
        response = made.respond(point.linear.closed, source, np.ones(source.size), None, 1e-9)
        assert response is not None
        found.append((point.v, point.current, response.v, response.current))
    for one, other in zip(*found, strict=True):
        assert one.any() and one.tobytes() == other.tobytes()


@pytest.mark.parametrize("seed", SEEDS)
def test_other_diodes_are_not_proven(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Iterations that end with one diode more, or one less, than conduct."""
    arrays = columns(seed)
    value = driven(arrays, seed)
    right = set(solved(arrays, value).linear.closed.tolist())
    iterate = single_samples.nodal.iterate
    wrong = [right ^ {e} for e in np.flatnonzero(arrays.kind == DIODE).tolist()]
    for closed in wrong:
        other = np.array(sorted(closed), dtype=np.int64)
        monkeypatch.setattr(
            single_samples.nodal, "iterate", lambda *given, other=other: iterate(*given)._replace(closed=other)
        )
        assert solver_of(arrays).solve(value, NONE, None, 1e-9) is None


def test_wrong_potentials_are_mended_or_not_certified(monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = columns(0)
    value = driven(arrays, 0)
    right, iterate = solved(arrays, value), single_samples.nodal.iterate

    def off(*given: object) -> object:
        start = iterate(*given)
        return start._replace(v=start.v * (1.0 + 1e-3 * np.cos(np.arange(start.v.size))))

    monkeypatch.setattr(single_samples.nodal, "iterate", off)
    assert solved(arrays, value).current == pytest.approx(right.current, rel=1e-12, abs=1e-15)
    factor = type(right.linear.factored)
    solve = factor.solve
    monkeypatch.setattr(factor, "solve", lambda *given: 1.5 * solve(*given))
    assert solver_of(arrays).solve(value, NONE, None, 1e-9) is None


@pytest.mark.parametrize("room", [0, 5, 1 << 24])
def test_kept_factors_change_nothing(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Adjoints from the factors of the batch, from new ones, and of a batch solved before another one."""
    case = random_circuit(3, 500, 1.0, 60)
    solver = circuitsim.batched(case.circuit, case.sources, case.pairs)
    assert isinstance(solver, BatchSolver)
    solver = replace(solver, plan=None)
    rng = np.random.default_rng(0)
    x, cotangent = rng.normal(size=(12, 4)), rng.normal(size=(12, 2))
    found = solver.solve(x, threads=1)
    expected = solver.adjoint(found, cotangent)
    entries = next(iter(solver.engine._singles[0].kept.values())).factored.factor.values.size
    monkeypatch.setattr(single_samples, "KEPT", min(room, 5) * entries if room < 100 else room)
    again = solver.solve(x, threads=1)
    kept = len(solver.engine._singles[0].kept)
    assert kept == min(room, len(np.unique(found.closed, axis=0)))
    assert again.voltages.tobytes() == found.voltages.tobytes()
    assert [a.tobytes() for a in solver.adjoint(again, cotangent)] == [a.tobytes() for a in expected]
    solver.solve(-x)
    assert [a.tobytes() for a in solver.adjoint(found, cotangent)] == [a.tobytes() for a in expected]


def test_copies_hold_no_factors() -> None:
    case = random_circuit(3, 500, 1.0, 60)
    solver = circuitsim.batched(case.circuit, case.sources, case.pairs)
    assert isinstance(solver, BatchSolver)
    solver = replace(solver, plan=None)
    x = np.random.default_rng(0).normal(size=(4, 4))
    found = solver.solve(x, threads=1)
    assert solver.engine._singles[0].kept
    for copied in (copy.deepcopy(solver), pickle.loads(pickle.dumps(solver))):
        assert not copied.engine._singles[0].kept
        assert copied.solve(x, threads=1).voltages.tobytes() == found.voltages.tobytes()
