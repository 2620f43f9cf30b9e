"""What a prepared circuit keeps from solve to solve changes times, never answers."""

from __future__ import annotations

import numpy as np
import pytest

import circuitsim
from circuitsim.analysis.solve import _certified, prepared
from circuitsim.bench.families import make
from circuitsim.certificate import certify
from circuitsim.circuit.elements import CURRENT, RESISTOR, VOLTAGE
from circuitsim.program import analyse, quadratic_program
from circuitsim.solvers.contracted import _demand, demand


def changed(circuit: circuitsim.Circuit, codes: tuple[int, ...], seed: int) -> dict[str, float]:
    kind, _, _, value, _ = circuit.arrays()
    factor = np.random.default_rng(seed).uniform(0.5, 1.5, kind.size)
    return {circuit.names[k]: float(value[k] * factor[k]) for k in np.flatnonzero(np.isin(kind, codes)).tolist()}


@pytest.mark.parametrize("family", ["crossbar-1d1r", "grid", "erdos-renyi", "scale-free"])
def test_new_values_have_the_bits_of_a_fresh_solve(family: str) -> None:
    circuit = make(family, 2000, 0)
    kept = prepared(circuit)
    for seed, codes in enumerate([(VOLTAGE, CURRENT), (VOLTAGE, CURRENT), (RESISTOR,), (VOLTAGE,)]):
        values = changed(circuit, codes, seed)
        again, fresh = kept.solve(values), circuitsim.solve(circuit.with_values(values))
        assert np.array_equal(again.voltages, fresh.voltages) and np.array_equal(again.currents, fresh.currents)


@pytest.mark.parametrize("family", ["crossbar-1d1r", "grid", "erdos-renyi"])
def test_a_start_saves_rounds_and_leads_to_the_same_point(family: str) -> None:
    circuit = make(family, 2000, 1)
    kept = prepared(circuit)
    first = kept.solve()
    values = {name: 1.0001 * value for name, value in changed(circuit, (VOLTAGE, CURRENT), 3).items()}
    near = kept.solve(values)
    warm = kept.solve(values, start=near)
    assert warm.solver["rounds"] < first.solver["rounds"]
    assert np.abs(warm.voltages - near.voltages).max() <= 1e-12 * np.abs(near.voltages).max()
    assert warm.certificate.ok


def test_the_compiled_certificate_is_that_of_numpy_and_sees_a_wrong_answer() -> None:
    circuit = make("grid", 2000, 0)
    arrays, point = circuit.arrays(), circuitsim.solve(circuit)
    for wrong in (0.0, 1e-3):
        voltages = point.voltages + wrong * np.arange(arrays.n_nodes)
        slow = certify(arrays, arrays.value, voltages, point.currents)
        quick = _certified(arrays, arrays.value, voltages, point.currents, slow.tolerance)
        assert quick.ok is slow.ok is (wrong == 0.0)
        for name, ratio in slow.relative.items():
            assert abs(quick.relative[name] - ratio) <= 1e-14 + 1e-9 * ratio


def test_needs_are_the_same_compiled_and_in_numpy() -> None:
    program = quadratic_program(analyse(make("grid", 900, 0)))
    x = np.append(np.random.default_rng(0).normal(size=program.n), 0.0)
    need, scale = demand(program, x)
    plain, size = program.c.copy(), program.c_scale.copy()
    _demand(program.a, program.b, program.g, program.e, x, plain, size)
    assert np.abs(need - plain).max() <= 1e-14 * size.max() and np.abs(scale - size).max() <= 1e-13 * size.max()
