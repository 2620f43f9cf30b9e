"""The sinh cell of resistive memories (tunnelling, hopping): i = m G V0 sinh(v / V0)."""

from __future__ import annotations

import math
from typing import Any

from circuitsim.models.base import BOX, POSITIVE, SERIES, ElementModel, Parameter, Region, Symbol, zigzag
from circuitsim.models.smooth import WithoutModel
from circuitsim.units import exact

LINEAR, STEEP = Region("linear", False), Region("exponential", True)


def junction(p: Any, u: Any) -> tuple[Any, Any]:
    """Current (A) and slope (S); p: resistance, conductance at zero, scale of voltages.

    The arguments are those of `SmoothDevice.junction`.
    """
    x = u / p[2]
    if abs(x) > 700.0:
        return math.copysign(math.inf, u), math.inf
    return p[1] * p[2] * math.sinh(x), p[1] * math.cosh(x)


def by_parameters(p: Any, u: Any, out: Any) -> None:
    """Derivatives of the current by the entries of p.

    The arguments are those of `SmoothDevice.by_parameters`.
    """
    current, slope = junction(p, u)
    out[0], out[1], out[2] = 0.0, current / p[1], (current - u * slope) / p[2]


class SinhCell(WithoutModel):
    """Parameters of one cell.

    Attributes
    ----------
    g : float
        Conductance at zero volts, S (> 0).
    v0 : float
        Scale of voltages, V (> 0).
    rs : float
        Resistance in series, Ω (≥ 0).
    m : float
        Cells in parallel.
    """

    junction, by_parameters = staticmethod(junction), staticmethod(by_parameters)

    g: float
    v0: float
    rs: float
    m: float

    def row(self) -> tuple[float, ...]:
        """See `junction`."""
        return self.rs / self.m, self.g * self.m, self.v0

    def junction_energy(self, voltage: float) -> float:
        """G V0² (cosh(v/V0) − 1)."""
        half = math.sinh(min(0.5 * abs(voltage) / self.v0, 350.0))
        return 2.0 * self.g * self.m * self.v0**2 * half * half

    def junction_text(self, volts: str) -> str:
        """See `junction`."""
        _, slope, scale = self.row()
        return f"{exact(slope * scale)}*sinh({volts}/{exact(scale)})"

    def region_at(self, voltage: float) -> Region:
        """Exponential from V0."""
        return STEEP if abs(voltage) >= self.v0 else LINEAR


MODEL = ElementModel(
    "D",
    "sinh cell",
    ("first", "second"),
    "i = G V0 sinh(u/V0), v = u + RS i",
    Symbol(0.3, (BOX,), graded=zigzag(0.3, 0.085)),
    device=SinhCell,
    card_type="SINH",
    parameters=(
        Parameter("g", "S", POSITIVE, "conductance G at zero volts", 1e-6, trainable=True),
        Parameter("v0", "V", POSITIVE, "scale of voltages V0", 0.25, trainable=True),
        SERIES,
    ),
    counts=("m",),
    dialect="a model of circuitsim; ngspice has none",
)
SinhCell.model = MODEL
