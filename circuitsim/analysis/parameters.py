"""What a quantity can depend on: element values and parameters of devices, as directions of the elementary circuit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.analysis.small_signal import Change
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import ELEMENTS
from circuitsim.circuit.expansion import expanded
from circuitsim.models import Device
from circuitsim.models.smooth import SmoothDevice

STEP = 1e-4
"""Relative step of the difference quotients of a device's own law, of fourth order."""

CENTRAL = ((-2.0, 1.0 / 12.0), (-1.0, -8.0 / 12.0), (1.0, 8.0 / 12.0), (2.0, -1.0 / 12.0))
FORWARD = ((0.0, -25.0 / 12.0), (1.0, 4.0), (2.0, -3.0), (3.0, 4.0 / 3.0), (4.0, -0.25))
"""Steps and weights of difference quotients of fourth order."""


class DependsOn(NamedTuple):
    """A number of the circuit.

    Attributes
    ----------
    name : str
        Of an element, or ``D1.vfwd``.
    value : float
    unit : str
    change : Change
        Of the elementary circuit, per unit of the number.
    """

    name: str
    value: float
    unit: str
    change: Change


def dependencies(point: OperatingPoint) -> list[DependsOn]:
    """All element values of a circuit, and the parameters of its devices."""
    circuit = point.circuit
    parts = expanded(circuit).parts
    kind, value = circuit.arrays().kind.tolist(), circuit.arrays().value.tolist()
    names = circuit.names
    found = []
    for k, code in enumerate(kind):
        if k in circuit.devices:
            found += _of_device(point, k, parts[k])
        elif ELEMENTS[code].parameter and ELEMENTS[code].letter not in "LC":
            found.append(DependsOn(names[k], value[k], ELEMENTS[code].unit, Change(((k, 1.0),))))
    return found


def _of_device(point: OperatingPoint, k: int, parts: Sequence[int]) -> list[DependsOn]:
    """The parameters of one device; one whose change adds or removes a part of the device is left out."""
    circuit, found = point.circuit, []
    device = circuit.devices[k]
    for name, number in device.parameters().items():
        row = device.model.parameter_called(name)
        assert row is not None
        change = _change(point, k, parts, name, number)
        if change is not None:
            found.append(DependsOn(f"{circuit.names[k]}.{name}", number, row.unit, change))
    return found


def _change(point: OperatingPoint, k: int, parts: Sequence[int], name: str, number: float) -> Change | None:
    device, drop = point.circuit.devices[k], float(point.drops[k])
    if isinstance(device, SmoothDevice):
        slope = _quotient(device, name, number, lambda d: (d.law(drop)[0],), abs(drop))
        return None if slope is None else Change(currents=((k, slope[0]),))
    slopes = _quotient(device, name, number, lambda d: tuple(p.value or 0.0 for p in d.expand()), abs(drop))
    if slopes is None:
        return None
    return Change(tuple((e, slope) for e, slope in zip(parts, slopes) if slope != 0.0))


def _quotient(
    device: Device, name: str, number: float, law: Callable[[Device], tuple[float, ...]], scale: float
) -> tuple[float, ...] | None:
    """Derivatives of ``law`` by a parameter; None where the device would consist of other parts."""
    step = STEP * (abs(number) or scale or 1.0)
    shape = [p[:4] for p in device.expand()]
    for rule in (CENTRAL, FORWARD, tuple((-at, -weight) for at, weight in FORWARD)):
        try:
            near = [device.with_value(name, number + at * step) for at, _ in rule]
        except ValueError:
            continue  # out of range on that side
        if any([p[:4] for p in d.expand()] != shape for d in near):
            continue
        rows = [law(d) for d in near]
        return tuple(sum(w * row[c] for (_, w), row in zip(rule, rows)) / step for c in range(len(rows[0])))
    return None


def names_of(circuit: Circuit) -> list[str]:
    """Names of all element values and device parameters."""
    found = []
    for k, code in enumerate(circuit.columns()[0]):
        if k in circuit.devices:
            found += [f"{circuit.names[k]}.{name}" for name in circuit.devices[k].parameters()]
        elif ELEMENTS[code].parameter:
            found.append(circuit.names[k])
    return found


__all__ = ["DependsOn", "dependencies", "names_of"]
