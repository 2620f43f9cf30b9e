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


def check_slopes(device: Any) -> None:
    """Refuse resistances beyond a knee that are larger than the one between the knees."""
    ron, rrev, roff = device.ron, device.rrev, device.roff
    for name, resistance, knee in (("Ron", ron, device.vfwd), ("Rrev", ron if rrev is None else rrev, device.vrev)):
        if knee is not None and roff is not None and resistance > roff:
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
        if self.vfwd + self._vrev == 0.0 == self.ron + self._rrev:
            raise ValueError("without drops and resistances it is a short: write a resistor of 0 Ω")
        if not all(math.isfinite(part.value) for part in self.expand() if part.value is not None):
            raise ValueError("its cells together have values out of a double's range")

    @property
    def _vrev(self) -> float:
        return math.inf if self.vrev is None else self.vrev

    @property
    def _rrev(self) -> float:
        return self.ron if self.rrev is None else self.rrev

    @property
    def _goff(self) -> float:
        return GMIN if self.roff is None else 1.0 / self.roff

    def expand(self) -> tuple[Part, ...]:
        """Roff, and a branch of resistance, ideal diode and source for each conducting segment."""
        ohms = self.n / self.m
        parts: list[Part] = []
        if self._goff > 0.0:
            parts.append(Part("R", "roff", "anode", "cathode", ohms / self._goff))
        for diode, knee, resistance, volts, ohm, start, end in (
            ("forward", "vfwd", "ron", self.vfwd, self.ron, "anode", "cathode"),
            ("reverse", "vrev", "rrev", self._vrev, self._rrev, "cathode", "anode"),
        ):
            rise = 1.0 - ohm * self._goff
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
        v = voltage / self.n
        low = high = v * self._goff
        if -v >= self._vrev:
            high, low = (-i for i in self._beyond(-v - self._vrev, self._vrev, self._rrev))
        if v >= self.vfwd:
            least, high = self._beyond(v - self.vfwd, self.vfwd, self.ron)
            low = min(low, least) if -v >= self._vrev else least
        return low * self.m, high * self.m

    def _beyond(self, volts: float, knee: float, resistance: float) -> tuple[float, float]:
        """Minimum and maximum current of a cell ``volts`` beyond a knee, in its direction."""
        if resistance > 0.0:
            current = volts / resistance + knee * self._goff
            return current, current
        return (knee * self._goff if volts == 0.0 else math.inf), math.inf

    def energy(self, voltage: float) -> float:
        """Co-content of all cells, W."""
        return self.trapezoids(voltage, (self.vfwd * self.n, -self._vrev * self.n))


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
