"""Controlled elements by the names of their controls: what Python programs build circuits with."""

from __future__ import annotations

from circuitsim.circuit.circuit import Circuit
from circuitsim.circuit.elements import BY_CURRENT_F, BY_CURRENT_H, BY_VOLTAGE_E, BY_VOLTAGE_G, NULLOR
from circuitsim.circuit.laws import CurrentControl, Law, Quantity, VoltageControl

Pair = tuple[str, str]


def voltage_by_voltage(circuit: Circuit, name: str, output: Pair, control: Pair, gain: float) -> None:
    """Add an E: v(output) = ``gain`` v(control).

    Parameters
    ----------
    circuit : Circuit
        The circuit that gets the element.
    name : str
        Its name.
    output : tuple of str
        Two nodes, positive first.
    control : tuple of str
        Two nodes: the controlling voltage.
    gain : float
        Voltage gain.
    """
    _by_voltage(circuit, BY_VOLTAGE_E, name, output, control, gain, Quantity.VOLTAGE)


def current_by_voltage(circuit: Circuit, name: str, output: Pair, control: Pair, transconductance: float) -> None:
    """Add a G: ``transconductance`` v(control) flows from the first output node through it to the second.

    Parameters
    ----------
    circuit : Circuit
        The circuit that gets the element.
    name : str
        Its name.
    output : tuple of str
        Two nodes, positive first.
    control : tuple of str
        Two nodes: the controlling voltage.
    transconductance : float
        In siemens.
    """
    _by_voltage(circuit, BY_VOLTAGE_G, name, output, control, transconductance, Quantity.CURRENT)


def current_by_current(circuit: Circuit, name: str, output: Pair, control: str, gain: float) -> None:
    """Add an F: ``gain`` times the current of ``control`` flows from the first output node to the second.

    Parameters
    ----------
    circuit : Circuit
        The circuit that gets the element.
    name : str
        Its name.
    output : tuple of str
        Two nodes, positive first.
    control : str
        The element whose current controls; the circuit has it already.
    gain : float
        Current gain.
    """
    law = Law(Quantity.CURRENT, currents=(CurrentControl(1.0, circuit.element_index(control)),))
    circuit.controlled(BY_CURRENT_F, name, *output, law, gain)


def voltage_by_current(circuit: Circuit, name: str, output: Pair, control: str, transresistance: float) -> None:
    """Add an H: v(output) = ``transresistance`` times the current of ``control``.

    Parameters
    ----------
    circuit : Circuit
        The circuit that gets the element.
    name : str
        Its name.
    output : tuple of str
        Two nodes, positive first.
    control : str
        The element whose current controls; the circuit has it already.
    transresistance : float
        In ohms.
    """
    law = Law(Quantity.VOLTAGE, currents=(CurrentControl(1.0, circuit.element_index(control)),))
    circuit.controlled(BY_CURRENT_H, name, *output, law, transresistance)


def ideal_amplifier(circuit: Circuit, name: str, output: Pair, inputs: Pair) -> None:
    """Add an ideal op-amp (nullor): v(inputs) = 0, and its output carries what that needs.

    Parameters
    ----------
    circuit : Circuit
        The circuit that gets the element.
    name : str
        Its name.
    output : tuple of str
        Two nodes, positive first.
    inputs : tuple of str
        Nodes of the inputs, + first.
    """
    control = VoltageControl(1.0, circuit.node(inputs[0]), circuit.node(inputs[1]))
    circuit.controlled(NULLOR, name, *output, Law(Quantity.NEITHER, voltages=(control,)))


def ideal_transformer(circuit: Circuit, name: str, first: Pair, second: Pair, ratio: float) -> None:
    """Add v(second) = ``ratio`` v(first), i(first) = −``ratio`` i(second): an E and an F, called ``name``.2 and .1.

    Parameters
    ----------
    circuit : Circuit
        The circuit that gets the element.
    name : str
        Its name.
    first, second : tuple of str
        The two ports, each two nodes, positive first.
    ratio : float
        Turns of the second port over those of the first.
    """
    voltage_by_voltage(circuit, f"{name}.2", second, first, ratio)
    current_by_current(circuit, f"{name}.1", first, f"{name}.2", -ratio)


def _by_voltage(
    circuit: Circuit, code: int, name: str, output: Pair, control: Pair, gain: float, quantity: Quantity
) -> None:
    law = Law(quantity, voltages=(VoltageControl(1.0, circuit.node(control[0]), circuit.node(control[1])),))
    circuit.controlled(code, name, *output, law, gain)
