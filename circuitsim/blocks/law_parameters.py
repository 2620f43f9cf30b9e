"""Adjustable parameters of devices: their coordinates, values, and what the laws change with them.

The coordinate of a parameter whose bounds are above zero is its natural logarithm (saturation currents and resistances
span decades), of any other the parameter itself, in its unit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from circuitsim.analysis.parameters import quotient
from circuitsim.circuit import Circuit
from circuitsim.models import Device
from circuitsim.models.smooth import SmoothDevice
from circuitsim.netlist.roles import Adjustable


class LawParameters(NamedTuple):
    """The adjustable parameters of a circuit's devices; `of` makes them.

    Attributes
    ----------
    circuit : Circuit
    rows : tuple of (int, str)
        The place of the device in the circuit, and the parameter as its model spells it.
    logarithmic : (p,) bool array
        Whether a coordinate is a logarithm.
    low, high : (p,) float arrays
        Bounds, in the parameters' units.
    """

    circuit: Circuit
    rows: tuple[tuple[int, str], ...]
    logarithmic: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of(cls, circuit: Circuit, adjustable: Sequence[Adjustable]) -> LawParameters:
        """Those among what is adjustable."""
        places = [circuit.device_parameter(item.name) for item in adjustable]
        bounds = [item[1:3] for item, place in zip(adjustable, places) if place is not None]
        low, high = np.array(bounds, dtype=np.float64).reshape(-1, 2).T
        return cls(circuit, tuple(place for place in places if place is not None), low > 0.0, low, high)

    def coordinates(self, values: np.ndarray) -> np.ndarray:
        """Of values in their units."""
        return np.where(self.logarithmic, np.log(np.where(self.logarithmic, values, 1.0)), values)

    def start(self) -> np.ndarray:
        """Coordinates of the circuit's own values."""
        return self.coordinates(np.array([getattr(self.circuit.devices[device], name) for device, name in self.rows]))

    def numbers(self, coordinates: np.ndarray) -> list[float]:
        """Values in their units, within their bounds to the last bit."""
        values = np.where(self.logarithmic, np.exp(np.where(self.logarithmic, coordinates, 0.0)), coordinates)
        found: list[float] = np.clip(values, self.low, self.high).tolist()
        return found

    def values(self, coordinates: np.ndarray) -> dict[str, float]:
        """Values by name (``D1.vfwd``), in their units."""
        names, values = self.circuit.names, self.numbers(coordinates)
        return {f"{names[device]}.{name}": value for (device, name), value in zip(self.rows, values)}

    def derivatives(self, devices: Mapping[int, Device], coordinates: np.ndarray) -> list[np.ndarray]:
        """For each parameter the derivatives by its coordinate: of a smooth device's row, else of its parts' values."""
        found = []
        for (device, name), value, logarithmic in zip(self.rows, self.numbers(coordinates), self.logarithmic):
            slopes = quotient(devices[device], name, value, _numbers, 1.0)
            assert slopes is not None  # bounds leave a device of the same parts
            slope = np.array(slopes) * (value if logarithmic else 1.0)
            found.append(np.where(np.isfinite(slope), slope, 0.0))  # knees at infinity stay there
        return found


def _numbers(device: Device) -> tuple[float, ...]:
    """What the law of a device is made of."""
    if isinstance(device, SmoothDevice):
        return device.row()
    return tuple(part.value or 0.0 for part in device.expand())
