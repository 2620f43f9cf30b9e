"""Circuits with controlled sources."""

from __future__ import annotations

from circuitsim.circuit import Circuit
from circuitsim.controlled.elements import voltage_by_voltage

GAIN = 1e5
"""Of the operational amplifiers."""


def stages(unknowns: int, seed: int) -> Circuit:
    """Inverting amplifiers of finite gain in a row, with a rectifier and its load behind each: three nodes a stage."""
    return chain(max(1, round(unknowns / 3)))


def chain(count: int) -> Circuit:
    """So many stages."""
    circuit = Circuit(f"op-amp-stages, {3 * count + 1} unknowns")
    circuit.voltage_source("V0", "o0", "0", 1.0)
    for k in range(1, count + 1):
        circuit.resistor(f"RA{k}", f"o{k - 1}", f"n{k}", 1e3)
        circuit.resistor(f"RB{k}", f"n{k}", f"o{k}", 1e3 * (1.0 + 0.1 * (k % 3 - 1)))
        voltage_by_voltage(circuit, f"E{k}", (f"o{k}", "0"), ("0", f"n{k}"), GAIN)
        circuit.diode(f"D{k}", f"o{k}", f"d{k}")
        circuit.resistor(f"RL{k}", f"d{k}", "0", 1e4)
    return circuit


__all__ = ["chain", "stages"]
