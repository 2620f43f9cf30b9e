"""Controlled elements by the names of their controls: what Python programs build circuits with."""

from __future__ import annotations

from circuitsim.circuit.circuit import Circuit
from circuitsim.circuit.elements import BY_CURRENT_F, BY_CURRENT_H, BY_VOLTAGE_E, BY_VOLTAGE_G, NULLOR
from circuitsim.circuit.laws import CurrentControl, Law, Quantity, VoltageControl

Pair = tuple[str, str]


def voltage_by_voltage(circuit: Circuit, name: str, output: Pair, control: Pair, gain: float) -> None:
    """Add an E: v(output) = ``gain`` v(control); pairs of node names, positive first."""
    _by_voltage(circuit, BY_VOLTAGE_E, name, output, control, gain, Quantity.VOLTAGE)


def current_by_voltage(circuit: Circuit, name: str, output: Pair, control: Pair, transconductance: float) -> None:
    """Add a G: ``transconductance`` (S) times v(control) flows from the first output node through it to the second."""
    _by_voltage(circuit, BY_VOLTAGE_G, name, output, control, transconductance, Quantity.CURRENT)


def current_by_current(circuit: Circuit, name: str, output: Pair, control: str, gain: float) -> None:
    """Add an F: ``gain`` times the current of the element ``control``, which the circuit has already."""
    law = Law(Quantity.CURRENT, currents=(CurrentControl(1.0, circuit.element_index(control)),))
    circuit.controlled(BY_CURRENT_F, name, *output, law, gain)


def voltage_by_current(circuit: Circuit, name: str, output: Pair, control: str, transresistance: float) -> None:
    """Add an H: v(output) = ``transresistance`` (Ω) times the current of ``control``, which the circuit has already."""
    law = Law(Quantity.VOLTAGE, currents=(CurrentControl(1.0, circuit.element_index(control)),))
    circuit.controlled(BY_CURRENT_H, name, *output, law, transresistance)


def ideal_amplifier(circuit: Circuit, name: str, output: Pair, inputs: Pair) -> None:
    """Add an ideal op-amp (nullor): v(inputs) = 0, and its output carries what that needs."""
    control = VoltageControl(1.0, circuit.node(inputs[0]), circuit.node(inputs[1]))
    circuit.controlled(NULLOR, name, *output, Law(Quantity.NEITHER, voltages=(control,)))


def ideal_transformer(circuit: Circuit, name: str, first: Pair, second: Pair, ratio: float) -> None:
    """Add v(second) = ``ratio`` v(first), i(first) = −``ratio`` i(second): an E and an F, called ``name``.2 and .1."""
    voltage_by_voltage(circuit, f"{name}.2", second, first, ratio)
    current_by_current(circuit, f"{name}.1", first, f"{name}.2", -ratio)


def _by_voltage(
    circuit: Circuit, code: int, name: str, output: Pair, control: Pair, gain: float, quantity: Quantity
) -> None:
    law = Law(quantity, voltages=(VoltageControl(1.0, circuit.node(control[0]), circuit.node(control[1])),))
    circuit.controlled(code, name, *output, law, gain)
