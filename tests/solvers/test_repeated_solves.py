"""Repeated solves of a prepared circuit: the point of a fresh solve, from any start."""

import numpy as np
import pytest
from local_scales import distance

import circuitsim
from circuitsim.analysis.solve import prepared
from circuitsim.bench.families import make
from circuitsim.circuit.elements import CURRENT, RESISTOR, VOLTAGE


def changed(circuit: circuitsim.Circuit, codes: tuple[int, ...], seed: int) -> dict[str, float]:
    kind, _, _, value, _ = circuit.arrays()
    factor = np.random.default_rng(seed).uniform(0.5, 1.5, kind.size)
    return {circuit.names[k]: float(value[k] * factor[k]) for k in np.flatnonzero(np.isin(kind, codes)).tolist()}


@pytest.mark.parametrize("family", ["crossbar-1d1r", "grid", "erdos-renyi", "scale-free"])
def test_new_values_lead_to_the_point_of_a_fresh_solve(family: str) -> None:
    circuit = make(family, 2000, 0)
    kept = prepared(circuit)
    for seed, codes in enumerate([(VOLTAGE, CURRENT), (VOLTAGE, CURRENT), (RESISTOR,), (VOLTAGE,)]):
        values = changed(circuit, codes, seed)
        again, fresh = kept.solve(values), circuitsim.solve(circuit.with_values(values))
        assert again.certificate.certified and distance(again, fresh) < 1e-9


@pytest.mark.parametrize("family", ["crossbar-1d1r", "grid", "erdos-renyi"])
def test_a_start_saves_iterations_and_leads_to_the_same_point(family: str) -> None:
    circuit = make(family, 2000, 1)
    kept = prepared(circuit)
    first = kept.solve()
    values = {name: 1.0001 * value for name, value in changed(circuit, (VOLTAGE, CURRENT), 3).items()}
    near = kept.solve(values)
    warm = kept.solve(values, start=near)
    assert warm.solver["iterations"] < first.solver["iterations"]
    assert warm.certificate.certified and distance(warm, near) < 1e-9


@pytest.mark.parametrize("family", ["crossbar", "crossbar-1d1r"])
def test_without_sources_every_potential_and_current_is_exactly_zero(family: str) -> None:
    circuit = make(family, 4000, 0)
    kind, value = circuit.arrays().kind, circuit.arrays().value
    dark = np.where(np.isin(kind, (VOLTAGE, CURRENT)), 0.0, value)
    ready = prepared(circuit)
    for _ in range(2):
        ready.solve()
        point = ready.solve(dark)
        assert not point.voltages.any() and not point.currents.any() and point.certificate.certified
