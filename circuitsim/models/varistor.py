"""The varistor (metal oxide, silicon carbide): i = m INOM sign(v) (|v| / VNOM)^ALPHA."""

from __future__ import annotations

import math
from typing import Any

from circuitsim.models.base import POSITIVE, SERIES, ElementModel, Parameter, Region, Symbol, zigzag
from circuitsim.models.smooth import WithoutModel
from circuitsim.units import exact

CONDUCTING, OFF = Region("conducting", True), Region("off", False)


def junction(p: Any, u: Any) -> tuple[Any, Any]:
    """Current (A) and slope (S); p: resistance, current at the nominal voltage, that voltage, exponent.

    The arguments are those of `SmoothDevice.junction`.
    """
    size = abs(u) / p[2]
    if size == 0.0:
        return 0.0, (p[1] / p[2] if p[3] == 1.0 else 0.0)
    if p[3] * math.log(size) > 650.0:
        return math.copysign(math.inf, u), math.inf
    current = p[1] * size ** p[3]
    return (current if u > 0.0 else -current), p[3] * current / abs(u)


def by_parameters(p: Any, u: Any, out: Any) -> None:
    """Derivatives of the current by the entries of p.

    The arguments are those of `SmoothDevice.by_parameters`.
    """
    current, slope = junction(p, u)
    out[0], out[1], out[2] = 0.0, current / p[1], -u / p[2] * slope
    out[3] = current * math.log(abs(u) / p[2]) if current != 0.0 else 0.0


class Varistor(WithoutModel):
    """Parameters of one varistor.

    Attributes
    ----------
    vnom, inom : float
        A point of its curve, V and A (> 0).
    alpha : float
        Exponent (≥ 1).
    rs : float
        Resistance in series, Ω (≥ 0).
    m : float
        Varistors in parallel.
    """

    junction, by_parameters = staticmethod(junction), staticmethod(by_parameters)

    vnom: float
    inom: float
    alpha: float
    rs: float
    m: float

    def row(self) -> tuple[float, ...]:
        """See `junction`."""
        return self.rs / self.m, self.inom * self.m, self.vnom, self.alpha

    def junction_energy(self, voltage: float) -> float:
        """|v| i / (ALPHA + 1)."""
        return voltage * junction(self.row(), voltage)[0] / (self.alpha + 1.0)

    def junction_text(self, volts: str) -> str:
        """See `junction`."""
        _, amperes, nominal, exponent = map(exact, self.row())
        return f"{amperes}*sgn{volts}*pow(abs{volts}/{nominal},{exponent})"

    def region_at(self, voltage: float) -> Region:
        """Conducting from its nominal voltage."""
        return CONDUCTING if abs(voltage) >= self.vnom else OFF


MODEL = ElementModel(
    "D",
    "varistor",
    ("first", "second"),
    "i = INOM sign(u) (|u|/VNOM)^ALPHA, v = u + RS i",
    Symbol(0.3, (((-0.2, -0.16), (0.2, 0.16)), ((0.2, 0.16), (0.26, 0.16))), graded=zigzag(0.3, 0.085)),
    device=Varistor,
    card_type="VARISTOR",
    parameters=(
        Parameter("vnom", "V", POSITIVE, "nominal voltage VNOM", 1.0, trainable=True),
        Parameter("inom", "A", POSITIVE, "nominal current INOM", 1e-3, trainable=True),
        Parameter("alpha", "", 1.0, "exponent ALPHA", 30.0, trainable=True),
        SERIES,
    ),
    counts=("m",),
    dialect="a model of circuitsim; ngspice has none",
)
Varistor.model = MODEL
