"""Kinds of elements as a circuit stores them."""

from circuitsim._moved import missing
from circuitsim.circuit.elements import AMPLIFIER, CAPACITOR, CURRENT, DIODE, INDUCTOR, RESISTOR, VOLTAGE

__all__ = ["AMPLIFIER", "CAPACITOR", "CURRENT", "DIODE", "INDUCTOR", "RESISTOR", "VOLTAGE"]


def __getattr__(name: str) -> object:
    raise missing("circuitsim.elements", name)
