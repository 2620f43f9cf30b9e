"""Columns and rows of a circuit, and the range of an element's value."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from circuitsim.circuit.elements import ELEMENTS
from circuitsim.errors import TopologyError

if TYPE_CHECKING:
    import numpy as np


class CircuitArrays(NamedTuple):
    """The circuit as read-only arrays, one entry an element (n_elements,) in the order they were added.

    Attributes
    ----------
    kind : int8 array
        Row of the element table (`circuitsim.circuit.elements`).
    first, second : int64 arrays
        Node indices of the terminals; 0 is ground.
    value : float64 array
        Ω, V, A, H, F or a gain; nan for diodes and devices.
    n_nodes : int
        Number of nodes, ground included.
    """

    kind: np.ndarray
    first: np.ndarray
    second: np.ndarray
    value: np.ndarray
    n_nodes: int


class Element(NamedTuple):
    """One element, for people: name, kind (``"resistor"`` …), node names and value (None for a diode or a device)."""

    name: str
    kind: str
    first: str
    second: str
    value: float | None


def checked_value(code: int, name: str, value: float | None) -> float:
    """``value`` as a float in the range the element table allows; nan for an element without a value.

    Raises
    ------
    TopologyError
        Missing, unexpected, not finite or out of range.
    """
    row = ELEMENTS[code]
    if not row.parameter:
        if value is not None and not math.isnan(value):
            raise TopologyError(f"{name}: {row.name} takes no value")
        return math.nan
    if value is None:
        raise TopologyError(f"{name}: {row.name} needs its {row.parameter}{' in ' * bool(row.unit)}{row.unit}")
    number = float(value)
    if not math.isfinite(number):
        raise TopologyError(f"{name}: the {row.parameter} must be finite, not {number}")
    if number < row.minimum:
        wrong = "must be positive" if row.minimum > 0.0 else "must not be negative"
        raise TopologyError(f"{name}: the {row.parameter} {wrong} ({f'{number:g} {row.unit}'.strip()})")
    return number
