"""Laws of controlled elements: affine in voltages between nodes and in currents of elements."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import NamedTuple


class Quantity(enum.Enum):
    """The branch quantity that a controlled element determines."""

    VOLTAGE = "voltage"
    CURRENT = "current"
    NEITHER = "neither"
    """A nullor: its control is zero, its own voltage and current are free."""


class VoltageControl(NamedTuple):
    """``coefficient`` (v(plus) − v(minus)), by node numbers."""

    coefficient: float
    plus: int
    minus: int


class CurrentControl(NamedTuple):
    """``coefficient`` i(element), by the element's position."""

    coefficient: float
    element: int


class Law(NamedTuple):
    """constant + gain · (Σ voltages + Σ currents), where the gain is the element's value (1 without a value).

    Attributes
    ----------
    quantity : Quantity
        What the law determines; of a nullor the sum is zero.
    constant : float
        V or A.
    voltages : tuple of VoltageControl
    currents : tuple of CurrentControl
    """

    quantity: Quantity
    constant: float = 0.0
    voltages: tuple[VoltageControl, ...] = ()
    currents: tuple[CurrentControl, ...] = ()

    def renumbered(self, node: Callable[[int], int], element: Callable[[int], int]) -> Law:
        """The same law with other numbers of nodes and elements."""
        return self._replace(
            voltages=tuple(VoltageControl(c, node(p), node(m)) for c, p, m in self.voltages),
            currents=tuple(CurrentControl(c, element(k)) for c, k in self.currents),
        )
