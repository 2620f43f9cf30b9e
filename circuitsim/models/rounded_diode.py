"""LTspice's idealised diode with rounded knees (Epsilon, RevEpsilon) or current limits (Ilimit, RevIlimit).

Like the piecewise-linear diode (`circuitsim.models.piecewise_diode`), but with x the voltage beyond a knee and ε its
rounding, a cell's slope rises linearly from 1/Roff to 1/R over 0 ≤ x < ε; beyond, the line is shifted outwards by ε/2.
A limit I turns a current i into I tanh(i/I).
"""

from __future__ import annotations

import math
from typing import Any

from circuitsim.models.base import POSITIVE, ZENER, ElementModel, Parameter, Region
from circuitsim.models.piecewise_diode import BREAKDOWN, FORWARD, OFF, check_slopes, segments, sides
from circuitsim.models.smooth import Limits, WithoutModel
from circuitsim.units import exact


def ramp(x: Any, rounding: Any) -> tuple[Any, Any]:
    """max(x, 0) rounded over 0 to ``rounding`` V, and its slope."""
    if x < 0.0:
        return 0.0, 0.0
    if x < rounding:
        return 0.5 * x * x / rounding, x / rounding
    return x - 0.5 * rounding, 1.0


def cell(p: Any, v: Any, side: Any) -> tuple[Any, Any, Any, Any, Any]:
    """Of one cell at v ≥ 0, with its parameters in one direction from ``side`` on: current (A) and slope (S), the
    rounded voltage beyond the knee (V) and its slope, and the slope of the limit."""
    beyond, rise = ramp(v - p[side], p[side + 2])
    current, slope, limit = v * p[1] + p[side + 1] * beyond, p[1] + p[side + 1] * rise, p[side + 3]
    if not limit < math.inf:
        return current, slope, beyond, rise, 1.0
    part = math.tanh(current / limit)
    left = (1.0 - part) * (1.0 + part)
    return limit * part, slope * left, beyond, rise, left


def junction(p: Any, u: Any) -> tuple[Any, Any]:
    """Current (A) and slope (S); p: 0, goff, then forward and reverse: knee, extra slope, rounding, limit; m, n.

    The arguments are those of `SmoothDevice.junction`.
    """
    current, slope, _, _, _ = cell(p, abs(u) / p[11], 2 if u >= 0.0 else 6)
    return math.copysign(current * p[10], u), slope * p[10] / p[11]


def by_parameters(p: Any, u: Any, out: Any) -> None:
    """Derivatives of the current with respect to p, except the numbers of cells.

    The arguments are those of `SmoothDevice.by_parameters`.
    """
    for k in range(12):
        out[k] = 0.0
    side, v, limit = 2 if u >= 0.0 else 6, abs(u) / p[11], p[5] if u >= 0.0 else p[9]
    current, _, beyond, rise, left = cell(p, v, side)
    scale = math.copysign(p[10], u) * left
    out[1], out[side], out[side + 1] = scale * v, -scale * p[side + 1] * rise, scale * beyond
    out[side + 2] = -0.5 * scale * p[side + 1] * rise * rise
    if limit < math.inf:  # homogeneous of degree 1 in the limit and the current without it
        free = v * p[1] + p[side + 1] * beyond
        out[side + 3] = math.copysign(p[10], u) * (current - free * left) / limit


def _side(volts: str, goff: float, side: tuple[float, ...]) -> str:
    """The current of a cell in one direction as a formula of its voltage ≥ 0; side: knee, extra slope, rounding,
    limit."""
    knee, slope, rounding, limit = side
    text = f"{exact(goff)}*{volts}"
    if knee < math.inf:
        beyond = f"max({volts}-{exact(knee)},0)"
        ramp = f"{exact(slope)}*{beyond}"
        if rounding > 0.0:
            bend = f"min({beyond},{exact(rounding)})"
            line = f"max({volts}-{exact(knee + rounding)},0)"
            ramp = f"{exact(0.5 * slope / rounding)}*{bend}*{bend}+{exact(slope)}*{line}"
        text += f"+{ramp}"
    return f"({text})" if limit == math.inf else f"{exact(limit)}*tanh(({text})/{exact(limit)})"


class RoundedDiode(WithoutModel):
    """Parameters of one idealised diode with rounded knees or limits.

    Attributes
    ----------
    vfwd, ron, vrev, rrev, roff : float or None
        As of `circuitsim.models.piecewise_diode.PiecewiseLinearDiode`; resistances above zero.
    epsilon, revepsilon : float
        Widths of the knees, V (≥ 0).
    ilimit, revilimit : float or None
        Limits of a cell's current, A (> 0); None: unlimited.
    m, n : float
        Cells in parallel, cells in series.
    """

    junction, by_parameters = staticmethod(junction), staticmethod(by_parameters)

    vfwd: float
    ron: float
    vrev: float | None
    rrev: float | None
    roff: float | None
    epsilon: float
    revepsilon: float
    ilimit: float | None
    revilimit: float | None
    m: float
    n: float

    def check(self) -> None:
        """Refuse slopes that fall."""
        check_slopes(self)

    def row(self) -> tuple[float, ...]:
        """See `junction`."""
        goff, (vfwd, ron), (vrev, rrev) = sides(self)
        most, least = (math.inf if limit is None else limit for limit in (self.ilimit, self.revilimit))
        forward = vfwd, 1.0 / ron - goff, self.epsilon, most
        return 0.0, goff, *forward, vrev, 1.0 / rrev - goff, self.revepsilon, least, self.m, self.n

    def limits(self) -> Limits:
        """The stated limits; zero in reverse if nothing conducts."""
        row = self.row()
        least = 0.0 if self.vrev is None and self.roff is None else -row[9] * self.m
        return Limits(least, row[5] * self.m)

    def junction_text(self, volts: str) -> str:
        """Both directions, each a sum of ramps, one of them quadratic within the rounding."""
        row = self.row()
        cells, length = exact(row[10]), exact(row[11])
        forward, reverse = (
            _side(f"max({sign}{volts}/{length},0)", row[1], row[at : at + 4]) for sign, at in (("", 2), ("-", 6))
        )
        return f"{cells}*({forward}-{reverse})"

    def region_at(self, voltage: float) -> Region:
        """The region, by the knees."""
        row, v = self.row(), voltage / self.n
        return FORWARD if v >= row[2] else BREAKDOWN if v < -row[6] else OFF


MODEL = ElementModel(
    "D",
    "rounded diode",
    ("anode", "cathode"),
    "the piecewise-linear diode's with rounded knees, I tanh(i/I)",
    ZENER,
    device=RoundedDiode,
    card_type="D",
    parameters=(
        *segments(POSITIVE),
        Parameter("epsilon", "V", 0.0, "width Epsilon of the forward knee", 0.0, trainable=True),
        Parameter("revepsilon", "V", 0.0, "width RevEpsilon of the breakdown knee", 0.0, trainable=True),
        Parameter("ilimit", "A", POSITIVE, "forward limit Ilimit", trainable=True),
        Parameter("revilimit", "A", POSITIVE, "breakdown limit RevIlimit", trainable=True),
    ),
    counts=("m", "n"),
    required=frozenset(("epsilon", "revepsilon", "ilimit", "revilimit")),
    dialect="an idealised diode of LTspice; ngspice has no such law",
)
RoundedDiode.model = MODEL
