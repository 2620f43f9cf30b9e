"""Parameters of a circuit (element values, device parameters) as directions of change of its elementary circuit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from circuitsim.analysis.operating_point import OperatingPoint, inner_parts
from circuitsim.circuit.elements import ELEMENTS
from circuitsim.circuit.expansion import expanded
from circuitsim.circuit.parameters import parameter
from circuitsim.models import Device
from circuitsim.models.smooth import SmoothDevice

STEP = 1e-4
"""Relative step of the fourth-order difference quotients of a device's characteristic."""

CENTRAL = ((-2.0, 1.0 / 12.0), (-1.0, -8.0 / 12.0), (1.0, 8.0 / 12.0), (2.0, -1.0 / 12.0))
FORWARD = ((0.0, -25.0 / 12.0), (1.0, 4.0), (2.0, -3.0), (3.0, 4.0 / 3.0), (4.0, -0.25))
"""Steps and weights of fourth-order difference quotients."""


Pairs = Sequence[tuple[int, float]]
"""Positions of elements, and amounts."""


class DependsOn(NamedTuple):
    """A parameter of the circuit.

    Attributes
    ----------
    name : str
        Of an element, or ``D1.vfwd``.
    value : float
    unit : str
    by_value : sequence of (int, float)
        Changes of values of elementary elements (Ω, V, A, gains) per unit of the parameter.
    """

    name: str
    value: float
    unit: str
    by_value: Pairs = ()


_VARIES = [bool(e.parameter) and e.letter not in "LC" for e in ELEMENTS]
"""Whether the value of an element of each kind affects the operating point."""


def dependencies(point: OperatingPoint) -> list[DependsOn]:
    """All element values of a circuit, except `inner_parts`, and the parameters of its devices, in the order of the
    elements."""
    circuit, rows = point.circuit, list[DependsOn]()
    kind, _, _, value, _ = circuit.arrays()
    parts = expanded(circuit).parts
    for k in (~inner_parts(circuit)[1]).nonzero()[0].tolist():
        if k in circuit.devices:
            rows += _of_device(point, k, parts[k])
        elif _VARIES[code := int(kind[k])]:
            rows.append(DependsOn(circuit.names[k], float(value[k]), ELEMENTS[code].unit, ((k, 1.0),)))
    return rows


def _of_device(point: OperatingPoint, k: int, parts: Sequence[int]) -> list[DependsOn]:
    """The parameters of one device, except those whose change adds or removes a part of the device."""
    circuit, device, drop, found = point.circuit, point.circuit.devices[k], float(point.drops[k]), []
    for name in device.parameters():
        own = parameter(circuit, f"{circuit.names[k]}.{name}")
        assert own is not None
        slopes = quotient(device, own.key, own.value, abs(drop))
        if slopes is None:
            continue
        values = of_parts(device, slopes, point.junctions.get(k, 0.0))
        changes = [(e, value) for e, value in zip(parts, values) if value != 0.0]
        found.append(DependsOn(own.name, own.value, own.unit, changes))
    return found


def of_parts(
    device: Device, slopes: Sequence[float] | np.ndarray, junction: float, row: Sequence[float] | None = None
) -> Sequence[float] | np.ndarray:
    """Derivatives of the values of a device's parts by a parameter, from the `quotient` ``slopes``; of a smooth device
    with this ``row`` in place of its own.

    Of a smooth device, at a voltage of its junction, V, the last part varies: the current source of its companion
    model. The derivatives of its current by the entries of its row are exact; those of the entries by the parameter are
    nearly constant.
    """
    if not isinstance(device, SmoothDevice):
        return slopes
    row = row or device.row()
    (current, slope), by_row = type(device).junction(row, junction), np.zeros(len(row))
    type(device).by_parameters(row, junction, by_row)
    by_row[0] = -current * slope
    changed = by_row != 0.0  # a knee at infinity has no effect
    return 0.0, 0.0, float(by_row[changed] @ np.array(slopes)[changed]) / (1.0 + row[0] * slope)


def quotient(device: Device, name: str, number: float, scale: float) -> tuple[float, ...] | None:
    """Derivatives of the numbers of a device by a parameter: of the row of a smooth one, of the values of another's
    parts.

    Parameters
    ----------
    device : Device
    name : str
        The parameter.
    number : float
        Its value.
    scale : float
        Scale of the differences where the value is zero.

    Returns
    -------
    tuple of float, or None where the device would consist of other parts
    """
    step = STEP * (abs(number) or scale or 1.0)
    shape = [p[:4] for p in device.expand()]
    for rule in (CENTRAL, FORWARD, tuple((-at, -weight) for at, weight in FORWARD)):
        try:
            near = [device.with_value(name, number + at * step) for at, _ in rule]
        except ValueError:
            continue  # out of range on that side
        if any([p[:4] for p in d.expand()] != shape for d in near):
            continue
        rows = [d.row() if isinstance(d, SmoothDevice) else [p.value or 0.0 for p in d.expand()] for d in near]
        weights = [weight for _, weight in rule]
        return tuple(_weighted(weights, column) / step for column in zip(*rows))
    return None


def _weighted(weights: Sequence[float], values: Sequence[float]) -> float:
    """Σ weight · value with weights that sum to zero; zero for equal values, infinite ones included."""
    if all(value == values[0] for value in values):
        return 0.0
    return sum(weight * value for weight, value in zip(weights, values))
