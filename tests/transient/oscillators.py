"""Circuits that switches make oscillate."""

from __future__ import annotations

from circuitsim import Circuit, loads


def relaxation_oscillator() -> Circuit:
    """A capacitor that a resistor charges and a switch discharges."""
    circuit = loads("t\nV1 s 0 10\nR1 s c 10000\n").circuit
    circuit.resistor("S1", "c", "0", 1e9)
    circuit.add("C", "C1", "c", "0", 1e-7)
    return circuit
