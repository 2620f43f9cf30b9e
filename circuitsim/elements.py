"""Kinds of elements as a circuit stores them, and controlled sources and ideal amplifiers to add to a circuit."""

from circuitsim.circuit.elements import AMPLIFIER, CAPACITOR, CURRENT, DIODE, INDUCTOR, RESISTOR, VOLTAGE
from circuitsim.controlled.elements import (
    current_by_current,
    current_by_voltage,
    ideal_amplifier,
    ideal_transformer,
    voltage_by_current,
    voltage_by_voltage,
)

__all__ = [
    "AMPLIFIER",
    "CAPACITOR",
    "CURRENT",
    "DIODE",
    "INDUCTOR",
    "RESISTOR",
    "VOLTAGE",
    "current_by_current",
    "current_by_voltage",
    "ideal_amplifier",
    "ideal_transformer",
    "voltage_by_current",
    "voltage_by_voltage",
]
