"""The junction diode: Shockley's law behind a resistance, with breakdown and temperature as in ngspice.

With vt = N k T / q, u the junction's voltage and T the temperature:

    forward     u ≥ −3 vt           i = IS (e^{u/vt} − 1)
    reverse     −xbv ≤ u < −3 vt    i = −IS (1 − (3 vt / (e |u|))³)
    breakdown   u < −xbv            i = −IS (e^{−(u + xbv)/vb} − (3 vt / (e xbv))³),   vb = NBV k T / q

IS is that at T, times area and m. xbv is such that the current at −BV is −IBV m; where IBV m is below IS BV q / k T
it is BV.
Source: ngspice 39, dioload.c and diotemp.c (breakdown there begins with a step of the last term, 1e-7 of IS).
"""

from __future__ import annotations

import math
from typing import Any

from circuitsim.models.base import POSITIVE, ROOM, TRIANGLE, ElementModel, Parameter, Region, Symbol
from circuitsim.models.smooth import Limits, SmoothDevice

BOLTZMANN = 1.38064852e-23 / 1.6021766208e-19
"""k / q, V/K."""

ZERO_CELSIUS = 273.15

FORWARD, OFF, BREAKDOWN = Region("forward", True), Region("off", False), Region("reverse breakdown", True)


def junction(p: Any, u: Any) -> tuple[Any, Any]:
    """Current (A) and slope (S); p: resistance, IS, vt, xbv, vb, the cubic term at xbv.

    The arguments are those of `SmoothDevice.junction`.
    """
    saturation, vt = p[1], p[2]
    if u >= -3.0 * vt:
        x = u / vt
        if x > 700.0:
            return math.inf, math.inf
        rise = math.expm1(x)
        return saturation * rise, saturation / vt * (1.0 + rise)
    if u >= -p[3]:
        q = 3.0 * vt / (u * math.e)
        cubic = q * q * q
        return -saturation * (1.0 + cubic), 3.0 * saturation * cubic / u
    x = -(u + p[3]) / p[4]
    if x > 700.0:
        return -math.inf, math.inf
    rise = math.exp(x)
    return -saturation * (rise - p[5]), saturation / p[4] * rise


def by_parameters(p: Any, u: Any, out: Any) -> None:
    """Derivatives of the current by the entries of p.

    The arguments are those of `SmoothDevice.by_parameters`.
    """
    saturation, vt = p[1], p[2]
    out[0] = out[3] = out[4] = out[5] = 0.0
    if u >= -3.0 * vt:
        x = u / vt
        rise = math.expm1(x) if x <= 700.0 else math.inf
        out[1], out[2] = rise, -saturation * (1.0 + rise) * (x / vt)
        return
    if u >= -p[3]:
        q = 3.0 * vt / (u * math.e)
        cubic = q * q * q
        out[1], out[2] = -(1.0 + cubic), -3.0 * saturation * cubic / vt
        return
    x = -(u + p[3]) / p[4]
    rise = math.exp(x) if x <= 700.0 else math.inf
    steep = saturation * rise / p[4]
    out[1], out[2] = p[5] - rise, 0.0
    out[3], out[4], out[5] = steep, steep * x, saturation


class JunctionDiode(SmoothDevice):
    """Parameters of one junction diode.

    Attributes
    ----------
    is_ : float
        Saturation current of unit area at ``tnom``, A (> 0).
    n : float
        Emission coefficient (> 0).
    rs : float
        Resistance in series, unit area, Ω (≥ 0).
    bv : float or None
        Breakdown voltage, V (> 0); None: it never breaks down.
    ibv : float
        Current at the breakdown voltage, A (> 0).
    nbv : float or None
        Emission coefficient in breakdown (> 0); None: ``n``.
    eg, xti, tnom : float
        Gap, eV; exponent of IS in the temperature; temperature at which the card's values hold, °C.
    temp : float
        Of the device, °C.
    area, m : float
        Area; devices in parallel.
    """

    junction, by_parameters = staticmethod(junction), staticmethod(by_parameters)

    n: float
    rs: float
    bv: float | None
    ibv: float
    nbv: float | None
    eg: float
    xti: float
    tnom: float
    temp: float
    area: float
    m: float

    def check(self) -> None:
        """Refuse temperatures below absolute zero and values that leave the range of doubles."""
        if min(self.temp, self.tnom) <= -ZERO_CELSIUS:
            raise ValueError("the temperature must be above -273.15 °C")
        row = self.row()
        if not all(math.isfinite(number) for number in row[:3]) or row[1] < POSITIVE:
            raise ValueError(f"its saturation current at {self.temp:g} °C is out of a double's range")

    def row(self) -> tuple[float, ...]:
        """Resistance, IS, vt, xbv, vb, the cubic term at xbv."""
        kelvin, nominal = self.temp + ZERO_CELSIUS, self.tnom + ZERO_CELSIUS
        thermal, ratio = BOLTZMANN * kelvin, kelvin / nominal
        cells = self.area * self.m
        growth = (ratio - 1.0) * self.eg / (self.n * thermal) + self.xti / self.n * math.log(ratio)
        saturation = getattr(self, "is") * cells * (math.exp(growth) if growth < 700.0 else math.inf)
        vt, vb = self.n * thermal, (self.n if self.nbv is None else self.nbv) * thermal
        knee = _knee(saturation, thermal, vb, self.bv, self.ibv * self.m) if 0.0 < saturation < math.inf else math.inf
        cubic = (3.0 * vt / (knee * math.e)) ** 3
        return self.rs / cells, saturation, vt, knee, vb, cubic

    def limits(self) -> Limits:
        """−IS in reverse, unless it breaks down."""
        return Limits(-self.row()[1] if self.bv is None else -math.inf, math.inf)

    def junction_energy(self, voltage: float) -> float:
        """Piece by piece."""
        _, saturation, vt, knee, vb, cubic = self.row()
        low = -3.0 * vt
        near = max(voltage, low)
        energy = saturation * (vt * math.expm1(min(near / vt, 700.0)) - near)
        if voltage < low:
            # ∫ −IS (1 + (3 vt/(e u))³) du
            far, third = max(voltage, -knee), (3.0 * vt / math.e) ** 3
            energy += saturation * (low - far) + 0.5 * saturation * third * (1.0 / far**2 - 1.0 / low**2)
        if voltage < -knee:
            beyond = -(voltage + knee)
            energy += saturation * (vb * math.expm1(min(beyond / vb, 700.0)) - cubic * beyond)
        return energy

    def region_at(self, voltage: float) -> Region:
        """Forward above the thermal voltage, breakdown beyond its knee."""
        row = self.row()
        return FORWARD if voltage > row[2] else BREAKDOWN if voltage < -row[3] else OFF


def _knee(saturation: float, thermal: float, vb: float, bv: float | None, ibv: float) -> float:
    """xbv, V: the knee from which the exponential passes through (−BV, −IBV)."""
    if bv is None:
        return math.inf
    if ibv < saturation * bv / thermal:
        return bv
    knee = bv - vb * math.log1p(ibv / saturation)
    for _ in range(100):
        inside = ibv / saturation + 1.0 - knee / thermal
        new = bv - vb * math.log(inside) if inside > 0.0 else bv
        if abs(new - knee) <= 1e-16 * bv:
            break
        knee = new
    return max(knee, 3.0 * thermal)


_DYNAMIC = frozenset(
    (
        "level",
        "cjo",
        "cj0",
        "cj",
        "cjp",
        "cjsw",
        "vj",
        "pb",
        "php",
        "vjsw",
        "m",
        "mj",
        "mjsw",
        "fc",
        "fcs",
        "tt",
        "kf",
        "af",
        "cta",
        "ctp",
        "ctc",
        "tpb",
        "tphp",
        "tlevc",
        "tm1",
        "tm2",
        "ttt1",
        "ttt2",
        "tt1",
        "tt2",
        "cthj",
        "rth0",
        "vp",
        "fv_max",
        "bv_max",
        "id_max",
        "te_max",
        "pd_max",
        "vpk",
        "ipk",
        "iave",
        "irms",
        "diss",
        "mfg",
        "type",
    )
)
"""Parameters of capacitances, charges, noise and ratings."""

MODEL = ElementModel(
    "D",
    "junction diode",
    ("anode", "cathode"),
    "i = IS (e^{u/(N VT)} − 1), v = u + RS i",
    "∫ i dv",
    "",
    "{name} {first} {second} {value}",
    Symbol(0.12, (((0.12, 0.13), (0.12, -0.13)),), TRIANGLE),
    device=JunctionDiode,
    card_type="D",
    parameters=(
        Parameter("is", "A", POSITIVE, "saturation current IS", 1e-14, trainable=True),
        Parameter("n", "", POSITIVE, "emission coefficient N", 1.0, trainable=True),
        Parameter("rs", "Ω", 0.0, "series resistance RS", 0.0, trainable=True),
        Parameter("bv", "V", POSITIVE, "breakdown voltage BV", trainable=True),
        Parameter("ibv", "A", POSITIVE, "breakdown current IBV", 1e-3, trainable=True),
        Parameter("nbv", "", POSITIVE, "breakdown emission coefficient NBV", trainable=True),
        Parameter("eg", "eV", 0.1, "activation energy EG", 1.11),
        Parameter("xti", "", meaning="temperature exponent XTI", default=3.0),
        Parameter("tnom", "°C", -273.15, "nominal temperature TNOM", ROOM),
    ),
    counts=("m", "area"),
    thermal=True,
    idle=_DYNAMIC,
)
JunctionDiode.model = MODEL
