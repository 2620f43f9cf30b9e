"""Devices that ngspice has no model of, written as what it has: resistors, steep diodes and sources, or a formula."""

from __future__ import annotations

from typing import TYPE_CHECKING

from circuitsim.models.smooth import WithoutModel
from circuitsim.netlist.definitions import IDEAL_MODEL
from circuitsim.units import exact

if TYPE_CHECKING:
    from circuitsim.models import Device
    from circuitsim.netlist.writer import Names


def lines(device: Device, name: str, first: str, second: str, elements: Names, nodes: Names) -> list[str]:
    """The cards of a device between two nodes.

    Parameters
    ----------
    name : str
        Of the device, as written.
    elements, nodes : Names
        The names in use, of elements and of nodes.
    """
    if isinstance(device, WithoutModel):
        return _formula(device, name, first, second, elements, nodes)
    inside = dict(zip(device.model.terminals, (first, second)))
    cards = []
    for part in device.expand():
        for node in (part.first, part.second):
            if node not in inside:
                inside[node] = nodes.legal(node, f"{name}.{node}")
        letter = "V" if part.letter == "R" and part.value == 0.0 else part.letter  # ngspice would take 1 mΩ
        own = elements.legal(part.name, f"{letter}{name}.{part.name}")
        value = IDEAL_MODEL if part.value is None else exact(part.value)
        cards.append(f"{own} {inside[part.first]} {inside[part.second]} {value}")
    return cards


def _formula(device: WithoutModel, name: str, first: str, second: str, elements: Names, nodes: Names) -> list[str]:
    """A source whose current is a formula of its own voltage, behind the resistance in series."""
    cards, series = [], device.row()[0]
    if series > 0.0:
        inner = nodes.legal(name, f"{name}.junction")
        cards.append(f"{elements.legal(name, f'R{name}.series')} {first} {inner} {exact(series)}")
        first = inner
    volts = f"(v({first},{second}))"
    if "0" in (first, second):
        volts = f"(v({first}))" if second == "0" else f"(-v({second}))"
    own = elements.legal(name, f"B{name}")
    return [*cards, f"{own} {first} {second} I={device.junction_text(volts)}"]


__all__ = ["lines"]
