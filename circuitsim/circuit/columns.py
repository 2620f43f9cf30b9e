"""Columns and rows of a circuit, and the range of an element's value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from circuitsim.circuit.elements import DIODE, ELEMENTS
from circuitsim.errors import TopologyError
from circuitsim.models import ELEMENTARY
from circuitsim.units import NumberError, parse

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


def read_only(column: np.ndarray) -> np.ndarray:
    """The column, or a view, as circuits have theirs: one kind of array, one compilation of each kernel."""
    if not column.flags.writeable:
        return column
    view = column.view()
    view.flags.writeable = False
    return view


class Element(NamedTuple):
    """One element, for people: name, kind (``"resistor"`` …), node names and value (None for a diode or a device)."""

    name: str
    kind: str
    first: str
    second: str
    value: float | None


def spice_number(name: str, what: str, value: float | str) -> float:
    """A number, or the value of a SPICE number: ``"4.7k"``.

    Raises
    ------
    TopologyError
        Text that is no number.
    """
    if not isinstance(value, str):
        return float(value)
    try:
        return parse(value)
    except NumberError as error:
        raise TopologyError(f"{name}: {what}: {error}; write for instance 4.7k, 10MEG or 100n") from None


def checked_value(code: int, name: str, value: float | str | None) -> float:
    """``value`` as a float in the range the element table allows; nan for an element without a value.

    Raises
    ------
    TopologyError
        Missing, unexpected, not finite or out of range.
    """
    row = ELEMENTS[code]
    if not row.parameter:
        if value is not None and value == value:  # nan: none
            raise TopologyError(f"{name}: {row.name} takes no value")
        return math.nan
    if value is None:
        raise TopologyError(f"{name}: {row.name} needs its {row.parameter}{' in ' * bool(row.unit)}{row.unit}")
    number = spice_number(name, row.parameter, value)
    if not math.isfinite(number):
        raise TopologyError(f"{name}: the {row.parameter} must be finite, not {number}")
    if number < row.minimum:
        wrong = "must be positive" if row.minimum > 0.0 else "must not be negative"
        raise TopologyError(f"{name}: the {row.parameter} {wrong} ({f'{number:g} {row.unit}'.strip()})")
    return number


def checked_columns(
    kind: np.ndarray, first: np.ndarray, second: np.ndarray, value: np.ndarray, n_nodes: int
) -> CircuitArrays:
    """The columns with the types of `CircuitArrays`, their kinds and nodes in range; values of diodes are nan.

    Raises
    ------
    TopologyError
        Columns of unequal length, or a kind or node that does not exist.
    """
    import numpy as np

    kind = np.asarray(kind, dtype=np.int8)
    first, second = (np.ascontiguousarray(column, dtype=np.int64) for column in (first, second))
    value = np.where(kind == DIODE, np.nan, np.asarray(value, dtype=np.float64))
    if any(column.shape != kind.shape for column in (first, second, value)) or kind.ndim != 1:
        raise TopologyError("the columns kind, first, second and value must be vectors of one length")
    if kind.size and (kind.min() < 0 or kind.max() >= ELEMENTARY):
        raise TopologyError(f"element kinds must lie in 0…{ELEMENTARY - 1}")
    if kind.size and (min(first.min(), second.min()) < 0 or max(first.max(), second.max()) >= n_nodes):
        raise TopologyError(f"node indices must lie in 0…{n_nodes - 1}")
    return CircuitArrays(kind, first, second, value, n_nodes)


def check_values(kind: np.ndarray, value: np.ndarray, names: Sequence[str], rows: np.ndarray | None = None) -> None:
    """`checked_value` for all elements but diodes, or for some ``rows`` of the columns.

    Raises
    ------
    TopologyError
        The first value that is not finite or out of range.
    """
    import numpy as np

    rows = np.arange(kind.size) if rows is None else rows
    least = np.array([row.minimum for row in ELEMENTS])[kind[rows]]
    wrong = (kind[rows] != DIODE) & ~(np.isfinite(value[rows]) & (value[rows] >= least))
    for k in rows[wrong][:1].tolist():
        checked_value(int(kind[k]), names[k], float(value[k]))
