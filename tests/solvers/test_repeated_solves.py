"""Repeated solves of a prepared circuit: the point of a fresh solve, from any start."""

from __future__ import annotations

import dataclasses
import gc
from collections.abc import Callable

import numpy as np
import pytest
from local_scales import distance, same_bits

import circuitsim
from circuitsim.analysis.convex import Prepared
from circuitsim.analysis.solve import prepared
from circuitsim.bench.families import make
from circuitsim.circuit.elements import CURRENT, RESISTOR, VOLTAGE
from circuitsim.solvers.linear import Supernodal, SupernodalFactored


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


def test_a_chain_of_diodes_needs_few_linear_circuits() -> None:
    """From none conducting, each round could let one more diode conduct."""
    circuit = circuitsim.Circuit("chain")
    circuit.voltage_source("V1", "n0", "0", 1.0)
    for k in range(300):
        circuit.diode(f"D{k}", f"n{k}", f"n{k + 1}")
    circuit.resistor("R1", "n300", "0", 2.0)
    made = prepared(circuit)
    assert isinstance(made, Prepared)
    for point in (dataclasses.replace(made, small="engine").solve(), made.solve()):
        assert point["n300"] == 1.0 and point.current("D150") == 0.5
        assert int(str(point.solver["iterations"])) < 50


def test_where_values_tie_any_start_leads_to_the_same_point() -> None:
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
        made = prepared(circuit)
        assert isinstance(made, Prepared)
        kept = dataclasses.replace(made, small="engine")
        point = kept.solve()
        for _ in range(8):
            value = {f"I{k}": float(x) for k, x in enumerate(rng.choice([0.0, 1.0, -1.0, 0.5], 3))}
            cold, point = kept.solve(value), kept.solve(value, start=point)
            assert same_bits(cold, kept.solve(value))
            np.testing.assert_allclose(point.voltages, cold.voltages, rtol=0, atol=1e-12)
            np.testing.assert_allclose(point.currents, cold.currents, rtol=0, atol=1e-9)
            assert np.array_equal(point.unique, cold.unique)
            tried += 1
    assert tried == 96


def test_a_kept_factor_gives_the_bits_of_a_fresh_one() -> None:
    """Each solve takes the factor that the one before has left: as it is for the same set, else its memory."""
    circuit = make("grid", 300, 1)
    values = circuit.arrays().value.copy()
    sources = circuit.arrays().kind == VOLTAGE

    def engine() -> Prepared:
        made = prepared(circuit)
        assert isinstance(made, Prepared)
        return dataclasses.replace(made, small="engine")

    kept, first = engine(), engine().solve()
    other_start = engine().solve(np.where(sources, -values, values))
    for scale in (1.0, 0.7, 1.3, 0.9):
        other = np.where(sources, scale * values, values)
        for start in (None, None, None, first, first, first, None):
            point, fresh = kept.solve(other, start=start), engine().solve(other, start=start)
            np.testing.assert_array_equal(point.currents, fresh.currents)
            np.testing.assert_array_equal(point.voltages, fresh.voltages)
    solver = kept.resistances.solver
    assert isinstance(solver, Supernodal) and solver._between[0] is not None and solver._between[0].kept
    left = kept.resistances.take_factor()
    assert isinstance(left, SupernodalFactored) and kept.resistances.take_factor() is None
    kept.resistances.keep_factor(left)
    kept.solve(other, start=point)
    assert kept.resistances.take_factor() is left
    kept.resistances.keep_factor(left)
    kept.solve(values, start=other_start)
    assert left.factor.spent


def of_this_package(thing: object) -> bool:
    return any(str(getattr(owner, "__module__", "")).startswith("circuitsim") for owner in (thing, type(thing)))


def unreachable_after(action: Callable[[], object]) -> list[object]:
    """Objects of this package in reference cycles after ``action``; objects of other threads do not count."""
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        action()
        gc.collect()
        return [thing for thing in gc.garbage if of_this_package(thing)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


def test_a_large_solve_leaves_nothing_to_the_garbage_collector() -> None:
    def cycle() -> None:
        holder: list[object] = [circuitsim.solve(make("grid", 20, 0))]
        holder.append(holder)

    circuit = make("grid", 3500, 0)
    for _ in range(2):  # the second is the first with a kept factor
        circuitsim.solve(circuit)
    assert unreachable_after(cycle)
    assert not unreachable_after(lambda: circuitsim.solve(circuit))


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
