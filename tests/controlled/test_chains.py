"""Circuits of many small blocks, each with one operating point whatever its sources are."""

from __future__ import annotations

import pytest

import circuitsim
from circuitsim import Circuit
from circuitsim.bench.families import GAIN, chain


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
