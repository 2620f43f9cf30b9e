"""The piecewise-linear diode: LTspice's idealised diode, with a forward drop and a breakdown (Zener) voltage.

With v and i per cell and goff = 1/Roff:

    off                 −Vrev ≤ v < Vfwd    i = v goff
    forward             v ≥ Vfwd            i = (v − Vfwd)/Ron + Vfwd goff
    reverse breakdown   v < −Vrev           i = (v + Vrev)/Rrev − Vrev goff

``m`` cells are in parallel, ``n`` in series. In parallel with Roff, each conducting segment is a branch of an ideal
diode, a source of the knee voltage, and the resistance that adds 1/Ron − goff. Exact, because the slopes only rise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from circuitsim.models.base import POSITIVE, ZENER, Device, ElementModel, Parameter, Part, Region

GMIN = 0.0
"""Conductance of an off cell without Roff, S. SPICE programs use 1e-12 S to help their iteration.
"""

OFF, FORWARD, BREAKDOWN = Region("off", False), Region("forward", True), Region("reverse breakdown", True)


def segments(minimum: float) -> tuple[Parameter, ...]:
    """The parameters of the three segments, with the minimum of the resistances beyond the knees, Ω."""
    return (
        Parameter("vfwd", "V", 0.0, "forward drop Vfwd", 0.0, trainable=True),
        Parameter("ron", "Ω", minimum, "forward resistance Ron", 1.0, trainable=True),
        Parameter("vrev", "V", 0.0, "breakdown voltage Vrev", trainable=True),
        Parameter("rrev", "Ω", minimum, "breakdown resistance Rrev", trainable=True),
        Parameter("roff", "Ω", POSITIVE, "off resistance Roff", trainable=True),
    )


def sides(device: Any) -> tuple[float, tuple[float, float], tuple[float, float]]:
    """Conductance of an off cell, S; knee, V, and resistance beyond it, Ω: forward, and in breakdown."""
    vrev, rrev = device.vrev, device.rrev
    reverse = math.inf if vrev is None else vrev, device.ron if rrev is None else rrev
    return (GMIN if device.roff is None else 1.0 / device.roff), (device.vfwd, device.ron), reverse


def check_slopes(device: Any) -> None:
    """Refuse resistances beyond a knee that are larger than the one between the knees."""
    roff = device.roff
    for name, (knee, resistance) in zip(("Ron", "Rrev"), sides(device)[1:]):
        if knee < math.inf and roff is not None and resistance > roff:
            raise ValueError(f"{name} ({resistance:g} Ω) must not be above Roff ({roff:g} Ω)")


class PiecewiseLinearDiode(Device):
    """Parameters of one piecewise-linear diode.

    Attributes
    ----------
    vfwd : float
        Forward knee of a cell, V (≥ 0).
    ron : float
        Forward resistance of a cell above the knee, Ω (≥ 0; zero is an ideal drop).
    vrev : float or None
        Breakdown voltage of a cell, V (≥ 0); None: it never breaks down.
    rrev : float or None
        Resistance of a cell in breakdown, Ω (≥ 0); None: ``ron``.
    roff : float or None
        Resistance of a cell between the knees, Ω (> 0); None: open.
    m, n : float
        Cells in parallel, cells in series.
    """

    vfwd: float
    ron: float
    vrev: float | None
    rrev: float | None
    roff: float | None
    m: float
    n: float

    def check(self) -> None:
        """Refuse slopes that fall, a short, and values out of range."""
        check_slopes(self)
        if [sum(own) for own in zip(*sides(self)[1:])] == [0.0, 0.0]:
            raise ValueError("without drops and resistances it is a short: write a resistor of 0 Ω")
        if not all(math.isfinite(part.value) for part in self.expand() if part.value is not None):
            raise ValueError("its cells together have values out of a double's range")

    def expand(self) -> tuple[Part, ...]:
        """Roff, and a branch of resistance, ideal diode and source for each conducting segment."""
        goff, *both = sides(self)
        ohms, parts = self.n / self.m, list[Part]()
        if goff > 0.0:
            parts.append(Part("R", "roff", "anode", "cathode", ohms / goff))
        for (volts, ohm), (diode, knee, resistance, start, end) in zip(
            both, (("forward", "vfwd", "ron", "anode", "cathode"), ("reverse", "vrev", "rrev", "cathode", "anode"))
        ):
            rise = 1.0 - ohm * goff
            if volts < math.inf and rise > 0.0:
                before, behind = f"{diode}1", f"{diode}2"
                parts += [
                    # Resistance first: in a blocked branch, its current is exactly zero.
                    Part("R", resistance, start, before, ohm / rise * ohms),
                    Part("D", diode, before, behind),
                    Part("V", knee, behind, end, volts * self.n),
                ]
        return tuple(parts)

    def region(self, currents: Mapping[str, float]) -> Region:
        """The region of the conducting branch."""
        if currents.get("forward", 0.0) > 0.0:
            return FORWARD
        return BREAKDOWN if currents.get("reverse", 0.0) > 0.0 else OFF

    def law(self, voltage: float) -> tuple[float, float]:
        """Smallest and largest current at ``voltage``; see the formulas above."""
        goff, forward, reverse = sides(self)
        v = voltage / self.n
        low = high = v * goff
        if -v >= reverse[0]:
            high, low = (-i for i in _beyond(-v, goff, *reverse))
        if v >= forward[0]:
            least, high = _beyond(v, goff, *forward)
            low = min(low, least) if -v >= reverse[0] else least
        return low * self.m, high * self.m

    def energy(self, voltage: float) -> float:
        """Co-content of all cells, W."""
        return self.trapezoids(voltage, (self.vfwd * self.n, -sides(self)[2][0] * self.n))


def _beyond(volts: float, goff: float, knee: float, resistance: float) -> tuple[float, float]:
    """Minimum and maximum current of a cell at a voltage from its knee on, in its direction."""
    if resistance > 0.0:
        current = (volts - knee) / resistance + knee * goff
        return current, current
    return (knee * goff if volts == knee else math.inf), math.inf


def zener(voltage: float, resistance: float) -> PiecewiseLinearDiode:
    """An ideal Zener diode.

    Parameters
    ----------
    voltage : float
        Breakdown voltage, V.
    resistance : float
        Resistance in breakdown, Ω.
    """
    return PiecewiseLinearDiode(vfwd=0.0, ron=0.0, vrev=voltage, rrev=resistance)


MODEL = ElementModel(
    "D",
    "piecewise-linear diode",
    ("anode", "cathode"),
    "i = v/Roff, (v − Vfwd)/Ron + Vfwd/Roff, (v + Vrev)/Rrev − Vrev/Roff",
    ZENER,
    device=PiecewiseLinearDiode,
    card_type="D",
    parameters=segments(0.0),
    counts=("m", "n"),
    dialect="an idealised diode of LTspice; ngspice needs its LTspice mode",
)
PiecewiseLinearDiode.model = MODEL
