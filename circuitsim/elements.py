"""Kinds of elements as a circuit stores them."""

from circuitsim._moved import at_first_use
from circuitsim.circuit.elements import AMPLIFIER, CAPACITOR, CURRENT, DIODE, INDUCTOR, RESISTOR, VOLTAGE

__all__ = ["AMPLIFIER", "CAPACITOR", "CURRENT", "DIODE", "INDUCTOR", "RESISTOR", "VOLTAGE"]

__getattr__ = at_first_use(__name__)
