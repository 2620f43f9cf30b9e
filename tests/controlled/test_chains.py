"""Circuits of many small blocks, each with one operating point whatever its sources are."""

from __future__ import annotations

import numpy as np
import pytest
from random_controlled import random_circuit

import circuitsim
from circuitsim import Circuit
from circuitsim.analysis import controlled
from circuitsim.bench.families import GAIN, chain
from circuitsim.errors import CircuitError


def mesh(diodes: int, seed: int = 0) -> Circuit:
    """A buffered mesh of diodes and resistors; a current that it controls returns into it: one block."""
    random, circuit = np.random.default_rng(seed), Circuit("a mesh")
    n = max(4, diodes // 2)
    circuit.voltage_source("V1", "in", "0", 5.0)
    circuit.resistor("R0", "in", "n0", 1e3)
    for k in range(1, n):
        circuit.resistor(f"R{k}", f"n{k - 1}", f"n{k}", float(random.uniform(1e2, 1e4)))
        circuit.resistor(f"RG{k}", f"n{k}", "0", float(random.uniform(1e3, 1e5)))
    for k in range(diodes):
        a, b = random.choice(n, 2, replace=False)
        circuit.diode(f"D{k}", f"n{a}", f"x{k}")
        circuit.resistor(f"RD{k}", f"x{k}", f"n{b}", 500.0)
        circuit.current_source(f"I{k}", f"n{a}", f"n{b}", float(random.normal(0.0, 1e-3)))
    circuit.vccs("G1", "n1", "0", (f"n{n - 1}", "0"), 1e-6)
    return circuit


def test_random_circuits_agree_with_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = 0
    circuits = [random_circuit(seed, 14, 8) for seed in range(40_000, 40_300)] + [mesh(k, k) for k in (5, 20, 50)]
    for circuit in circuits:
        try:
            point = circuitsim.solve(circuit)
        except CircuitError:
            continue
        if point.uniqueness is not circuitsim.Uniqueness.UNIQUE or point.kink.any():
            continue
        with monkeypatch.context() as patch:
            patch.setattr(controlled, "_changed", lambda *arguments, **options: None)
            patch.setattr(controlled, "sections", lambda *arguments: None)
            other = circuitsim.solve(circuit)
        assert other.uniqueness is circuitsim.Uniqueness.UNIQUE
        np.testing.assert_allclose(point.voltages, other.voltages, rtol=1e-13, atol=1e-24)
        np.testing.assert_allclose(point.currents, other.currents, rtol=1e-11, atol=1e-24)
        compared += 1
    assert compared > 50


def test_a_chain_by_hand_with_all_diodes_changing_state() -> None:
    count = 60
    ready = circuitsim.prepared(chain(count))
    for volts in (1.0, -2.0, 0.25, 0.0):
        point, v = ready.solve({"V0": volts}), volts
        assert point.uniqueness is circuitsim.Uniqueness.UNIQUE and point.certificate.certified
        for k in range(1, count + 1):
            share = 1.0 + 0.1 * (k % 3 - 1)  # R2 / R1
            v *= -share / (1.0 + (1.0 + share) / GAIN)
            assert point[f"o{k}"] == pytest.approx(v, rel=1e-9)
            assert point[f"d{k}"] == pytest.approx(max(v, 0.0), rel=1e-9)


def test_a_thousand_buffered_sections_need_no_solve_each() -> None:
    circuit, v = Circuit("buffers"), 1.0
    circuit.voltage_source("V0", "o0", "0", v)
    for k in range(1, 1001):
        circuit.resistor(f"RA{k}", f"o{k - 1}", f"m{k}", 1e3)
        circuit.resistor(f"RB{k}", f"m{k}", "0", 1e3)
        circuit.diode(f"D{k}", f"m{k}", f"d{k}")
        circuit.resistor(f"RC{k}", f"d{k}", "0", 500.0)
        circuit.vcvs(f"E{k}", f"o{k}", "0", (f"m{k}", "0"), -3.0)
    point = circuitsim.solve(circuit)
    assert point.uniqueness is circuitsim.Uniqueness.UNIQUE
    for k in range(1, 1001):
        v *= -3.0 * (0.25 if v > 0.0 else 0.5)
        assert point[f"o{k}"] == pytest.approx(v, rel=1e-9)


def test_the_answer_does_not_depend_on_the_start() -> None:
    ready = circuitsim.prepared(mesh(40, 3))
    cold = ready.solve({"V1": -3.0})
    warm = ready.solve({"V1": -3.0}, start=ready.solve({"V1": 8.0}))
    assert np.array_equal(cold.currents > 0.0, warm.currents > 0.0)
    np.testing.assert_allclose(warm.voltages, cold.voltages, rtol=1e-14)
