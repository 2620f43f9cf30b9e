"""Adjustable parameters of devices: their coordinates, values, and what the laws change with them.

The coordinate of a parameter whose bounds are above zero is its natural logarithm (saturation currents and resistances
span decades), of any other the parameter itself, in its unit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from circuitsim.analysis.parameters import quotient
from circuitsim.circuit import Circuit
from circuitsim.models import Device
from circuitsim.models.smooth import SmoothDevice
from circuitsim.netlist.roles import Adjustable


class LawParameter(NamedTuple):
    """One parameter of a device.

    Attributes
    ----------
    device : int
        Place in the circuit.
    name : str
        As its model spells it.
    logarithmic : bool
        Whether its coordinate is its logarithm.
    minimum, maximum : float
        Bounds, in its unit.
    """

    device: int
    name: str
    logarithmic: bool
    minimum: float
    maximum: float

    def coordinate(self, value: float) -> float:
        """Of a value in its unit."""
        return math.log(value) if self.logarithmic else value

    def value(self, coordinate: float) -> float:
        """In its unit, within its bounds to the last bit."""
        value = math.exp(coordinate) if self.logarithmic else coordinate
        return min(max(value, self.minimum), self.maximum)


class LawParameters(NamedTuple):
    """The adjustable parameters of a circuit's devices; `of` makes them."""

    circuit: Circuit
    rows: tuple[LawParameter, ...]

    @classmethod
    def of(cls, circuit: Circuit, adjustable: Sequence[Adjustable]) -> LawParameters:
        """Those among what is adjustable."""
        found = []
        for item in adjustable:
            place = circuit.device_parameter(item.name)
            if place is not None:
                found.append(LawParameter(*place, item.minimum > 0.0, item.minimum, item.maximum))
        return cls(circuit, tuple(found))

    def start(self) -> np.ndarray:
        """Coordinates of the circuit's own values."""
        return self._coordinates([getattr(self.circuit.devices[row.device], row.name) for row in self.rows])

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Smallest and largest coordinates."""
        low = self._coordinates([row.minimum for row in self.rows])
        return low, self._coordinates([row.maximum for row in self.rows])

    def _coordinates(self, values: Sequence[float]) -> np.ndarray:
        return np.array([row.coordinate(value) for row, value in zip(self.rows, values)])

    def values(self, coordinates: np.ndarray) -> dict[str, float]:
        """Values by name (``D1.vfwd``), in their units."""
        names = self.circuit.names
        pairs = zip(self.rows, coordinates.tolist())
        return {f"{names[row.device]}.{row.name}": row.value(coordinate) for row, coordinate in pairs}

    def derivatives(self, devices: Mapping[int, Device], coordinates: np.ndarray) -> list[np.ndarray]:
        """For each parameter the derivatives by its coordinate: of a smooth device's row, else of its parts' values."""
        found = []
        for row, coordinate in zip(self.rows, coordinates.tolist()):
            value = row.value(coordinate)
            slopes = quotient(devices[row.device], row.name, value, _numbers, 1.0)
            assert slopes is not None  # bounds leave a device of the same parts
            slope = np.array(slopes) * (value if row.logarithmic else 1.0)
            found.append(np.where(np.isfinite(slope), slope, 0.0))  # knees at infinity stay there
        return found


def _numbers(device: Device) -> tuple[float, ...]:
    """What the law of a device is made of."""
    if isinstance(device, SmoothDevice):
        return device.row()
    return tuple(part.value or 0.0 for part in device.expand())


__all__ = ["LawParameter", "LawParameters"]
