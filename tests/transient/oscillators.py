"""Circuits that switches make oscillate."""

from __future__ import annotations

from circuitsim import Circuit


def relaxation_oscillator() -> Circuit:
    """A capacitor that a resistor charges and a switch discharges."""
    circuit = Circuit()
    circuit.voltage_source("V1", "s", "0", 10.0)
    circuit.resistor("R1", "s", "c", 1e4)
    circuit.resistor("S1", "c", "0", 1e9)
    circuit.add("C", "C1", "c", "0", 1e-7)
    return circuit
