"""A table of voltages and currents with linear interpolation and extrapolation: ``.model X PWL(v1 i1 v2 i2 …)``."""

from __future__ import annotations

import math
from itertools import groupby, pairwise
from typing import Any

from circuitsim.models.base import BOX, ElementModel, Parameter, Region, Symbol, zigzag
from circuitsim.models.smooth import Limits, WithoutModel
from circuitsim.units import exact

POINTS = 64
"""Maximum number of points of a table."""

ROUNDED = 1e-12
"""Relative distance from a breakpoint that rounding can cause."""

NOTHING = 1e-75
"""Distance from zero, V, that rounding can cause."""


def segment(p: Any, u: Any) -> Any:
    """The place in p of the point at which the segment at a voltage u begins."""
    k = 2
    while k < 2 * int(p[1]) - 2 and u >= p[k + 2]:
        k += 2
    return k


def junction(p: Any, u: Any) -> tuple[Any, Any]:
    """Current (A) and slope (S); p: 0, number of points, then alternating voltages and currents.

    The arguments are those of `SmoothDevice.junction`.
    """
    k = segment(p, u)
    v, i, w, j = p[k], p[k + 1], p[k + 2], p[k + 3]
    slope = (j - i) / (w - v)
    # From the nearer point: no cancellation near zero volts, which is a point.
    return (i + slope * (u - v) if u - v <= w - u else j + slope * (u - w)), slope


def by_parameters(p: Any, u: Any, out: Any) -> None:
    """Derivatives of the current by the entries of p.

    The arguments are those of `SmoothDevice.by_parameters`.
    """
    for k in range(2 * POINTS + 4):
        out[k] = 0.0
    k = segment(p, u)
    width = p[k + 2] - p[k]
    slope, share = (p[k + 3] - p[k + 1]) / width, (u - p[k]) / width
    out[k], out[k + 1], out[k + 2], out[k + 3] = -slope * (1.0 - share), 1.0 - share, -slope * share, share


class Table(WithoutModel):
    """Points of one table, V and A: ``v1``, ``i1``, ``v2``, ``i2`` …, and ``m`` in parallel."""

    junction, by_parameters = staticmethod(junction), staticmethod(by_parameters)

    m: float

    def points(self) -> list[tuple[float, float]]:
        """Voltages (V) and currents (A) of ``m`` in parallel, in order."""
        found = []
        for k in range(1, POINTS + 1):
            v, i = getattr(self, f"v{k}"), getattr(self, f"i{k}")
            if v is None or i is None:
                break
            found.append((v, i * self.m))
        return found

    def check(self) -> None:
        """Refuse tables that are too short, have gaps, or fall."""
        points = self.points()
        stated = sum(value is not None for value in self.parameters().values())
        if stated != 2 * len(points):
            raise ValueError(f"a table needs pairs of voltage and current without gaps, at most {POINTS}")
        if len(points) < 2:
            raise ValueError("a table needs at least two points")
        for (v, i), (w, j) in pairwise(points):
            if not v < w:
                raise ValueError(f"its voltages must increase: {w:g} V comes after {v:g} V")
            if j < i:
                raise ValueError(f"its current falls from {i:g} to {j:g} A between {v:g} and {w:g} V: not monotone")

    def row(self) -> tuple[float, ...]:
        """See `junction`; zero volts are added as a point."""
        from fractions import Fraction

        points = self.points()
        if all(v != 0.0 for v, _ in points):
            below = [k for k, (v, _) in enumerate(points) if v < 0.0]
            k = min(below[-1] if below else 0, len(points) - 2)
            (v, i), (w, j) = (tuple(map(Fraction, point)) for point in points[k : k + 2])
            points = sorted([*points, (0.0, float(i - v * (j - i) / (w - v)))])
        flat = [number for point in points for number in point]
        return 0.0, float(len(points)), *flat, *([0.0] * (2 * POINTS + 2 - len(flat)))

    def limits(self) -> Limits:
        """The first and the last current, if the table ends flat."""
        points = self.points()
        least = points[0][1] if points[0][1] == points[1][1] else -math.inf
        return Limits(least, points[-1][1] if points[-1][1] == points[-2][1] else math.inf)

    def rises(self) -> bool:
        """Whether all its currents differ."""
        return all(i < j for (_, i), (_, j) in pairwise(self.points()))

    def level(self, voltage: float) -> tuple[float, float] | None:
        """See `SmoothDevice.level`; voltages within rounding of an end belong to the segment."""
        points, rounding = self.points(), ROUNDED * abs(voltage) + NOTHING
        for _, run in groupby(points, key=lambda point: point[1]):
            piece = [*run]
            low = -math.inf if piece[0] == points[0] else piece[0][0]
            high = math.inf if piece[-1] == points[-1] else piece[-1][0]
            if len(piece) > 1 and low - rounding <= voltage <= high + rounding:
                return low, high
        return None

    def junction_energy(self, voltage: float) -> float:
        """By the trapezoidal rule between the points."""
        return self.trapezoids(voltage, (v for v, _ in self.points()))

    def junction_text(self, volts: str) -> str:
        """A straight line plus a ramp for each change of slope."""
        points = self.points()
        slopes = [(j - i) / (w - v) for (v, i), (w, j) in pairwise(points)]
        text = f"({exact(points[0][1])})+{exact(slopes[0])}*({volts}-({exact(points[0][0])}))"
        for (v, _), before, after in zip(points[1:], slopes, slopes[1:]):
            if after != before:
                text += f"+({exact(after - before)})*max({volts}-({exact(v)}),0)"
        return text

    def region_at(self, voltage: float) -> Region:
        """The segment, by the number of its first point."""
        knees = [v for v, _ in self.points()]
        piece = sum(voltage >= v for v in knees)
        return Region("below point 1" if piece == 0 else f"from point {piece}", False)


MODEL = ElementModel(
    "D",
    "table",
    ("first", "second"),
    "i over v linear between points",
    Symbol(0.3, (BOX,), graded=zigzag(0.3, 0.05)),
    device=Table,
    card_type="PWL",
    parameters=tuple(
        Parameter(f"{letter}{k}", unit, meaning=f"{what} of point {k}")
        for k in range(1, POINTS + 1)
        for letter, unit, what in (("v", "V", "voltage"), ("i", "A", "current"))
    ),
    counts=("m",),
    listed=True,
    dialect="a model of circuitsim; ngspice has none",
)
Table.model = MODEL
