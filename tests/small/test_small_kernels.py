"""Prepared small circuits: the same answer whatever was solved before, values by name and by array, topology."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import circuitsim
from circuitsim.bench.families import make
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CURRENT, RESISTOR, VOLTAGE
from circuitsim.errors import TopologyError


def new_values(circuit: Circuit, count: int) -> list[np.ndarray]:
    """Value columns with other sources; one of them with other resistances too, and the first once more at the end."""
    rng = np.random.default_rng(7)
    a = circuit.arrays()
    sources = (a.kind == VOLTAGE) | (a.kind == CURRENT)
    columns = [np.where(sources, a.value * rng.uniform(-1.0, 1.2, a.value.size), a.value) for _ in range(count)]
    columns[1] = np.where(a.kind == RESISTOR, a.value * rng.uniform(0.5, 2.0, a.value.size), columns[1])
    return [*columns, columns[0]]


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


def test_a_resistance_that_becomes_zero_is_another_topology() -> None:
    circuit = circuitsim.loads("t\nV1 1 0 1\nR1 1 2 1\nR2 2 0 1\n")
    ready = circuitsim.prepared(circuit)
    assert ready.solve({"R1": 0.0})["2"] == ready.solve([1.0, 0.0, 1.0])["2"] == 1.0
    assert ready.solve({"R2": 0.0})["2"] == 0.0
    assert ready.solve()["2"] == 0.5
    short = circuitsim.prepared(circuit.with_values({"R1": 0.0}))
    assert short.solve()["2"] == 1.0 and short.solve([1.0, 1.0, 1.0])["2"] == 0.5
