"""Panels of a figure: columns that measure the same quantity share an axis."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from circuitsim.units import Quantity

PANELS = 12
"""Largest number of panels of about 3 inches: as many as the largest side of a picture holds (`figure.LARGEST`)."""


class Panel(NamedTuple):
    """An axis and its columns.

    Attributes
    ----------
    name : str
        Of the axis.
    unit : str
    columns : list of str
    """

    name: str
    unit: str
    columns: list[str]


def panels_of(columns: Iterable[tuple[str, str]]) -> list[Panel]:
    """The panels of columns (name, unit).

    Voltages come first, then currents and powers. Each other column (an expression, a measurement) has a panel of its
    own, up to `PANELS`.

    >>> [panel.columns for panel in panels_of([("i(R1)", "A"), ("v(a)", "V"), ("gain", ""), ("v(b)", "V")])]
    [['v(a)', 'v(b)'], ['i(R1)'], ['gain']]
    """
    shared = {own.unit: Panel(own.label, own.unit, []) for own in Quantity}
    others = []
    for name, unit in columns:
        if unit in shared:
            shared[unit].columns.append(name)
        else:
            others.append(Panel(name, unit, [name]))
    return [*(panel for panel in shared.values() if panel.columns), *others][:PANELS]
