"""The ideal current limiter: a short for currents from −IREV to IMAX.

A current source antiparallel to an ideal diode passes i = I − i_D ≤ I, without a drop where i < I. Two in series limit
both directions. Exact.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from circuitsim.models.base import RADIUS, Device, ElementModel, Parameter, Part, Region, Symbol, arrow, circle

PASSING, LIMITING, REVERSE = Region("passing", True), Region("limiting", True), Region("limiting in reverse", True)


class Limiter(Device):
    """Parameters of one limiter.

    Attributes
    ----------
    imax : float
        Maximum current, A (≥ 0).
    irev : float or None
        Maximum reverse current, A (≥ 0); None: unlimited.
    ron : float
        Resistance in series, Ω (≥ 0).
    m : float
        Limiters in parallel.
    """

    imax: float
    irev: float | None
    ron: float
    m: float

    def expand(self) -> tuple[Part, ...]:
        """Resistance, then source and diode for each limit."""
        behind = "second" if self.irev is None else "between"
        parts = [
            Part("R", "ron", "first", "before", self.ron / self.m),
            Part("I", "imax", "before", behind, self.imax * self.m),
            Part("D", "passes", behind, "before"),
        ]
        if self.irev is not None:
            parts += [
                Part("I", "irev", "between", "second", -self.irev * self.m),
                Part("D", "returns", "between", "second"),
            ]
        return tuple(parts)

    def region(self, currents: Mapping[str, float]) -> Region:
        """Which of its diodes block."""
        if not currents["passes"] > 0.0:
            return LIMITING
        return PASSING if currents.get("returns", 1.0) > 0.0 else REVERSE

    def law(self, voltage: float) -> tuple[float, float]:
        """Smallest and largest current."""
        most, least = self.imax * self.m, -math.inf if self.irev is None else -self.irev * self.m
        if self.ron > 0.0:
            current = min(max(voltage * self.m / self.ron, least), most)
            return current, current
        return (least if voltage <= 0.0 else most), (most if voltage >= 0.0 else least)

    def energy(self, voltage: float) -> float:
        """Co-content, W; infinite in reverse if the reverse current is unlimited without a drop."""
        return self.trapezoids(voltage, (self.imax * self.ron, -(self.irev or 0.0) * self.ron))


MODEL = ElementModel(
    "D",
    "current limiter",
    ("first", "second"),
    "v = RON i while −IREV ≤ i ≤ IMAX",
    Symbol(RADIUS, (*arrow(-0.1, 0.11), ((0.13, 0.1), (0.13, -0.1))), circle(RADIUS)),
    device=Limiter,
    card_type="LIMITER",
    parameters=(
        Parameter("imax", "A", 0.0, "limit IMAX", 1e-3, trainable=True),
        Parameter("irev", "A", 0.0, "limit IREV in reverse", trainable=True),
        Parameter("ron", "Ω", 0.0, "resistance RON", 0.0, trainable=True),
    ),
    counts=("m",),
    dialect="a model of circuitsim; ngspice has none",
)
Limiter.model = MODEL
