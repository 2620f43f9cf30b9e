"""The junction diode: Shockley's equation with a series resistance, with breakdown and temperature as in ngspice.

With vt = N k T / q, u the junction's voltage and T the temperature:

    forward     u ≥ −3 vt           i = IS (e^{u/vt} − 1)
    reverse     −xbv ≤ u < −3 vt    i = −IS (1 − (3 vt / (e |u|))³)
    breakdown   u < −xbv            i = −IS (e^{−(u + xbv)/vb} − (3 vt / (e xbv))³),   vb = NBV k T / q

IS is the value at T, times area and m, and the sidewall's current JSW times the perimeter PJ and m: it changes with T
as with N = 1, and does not move xbv. xbv makes the current at −BV equal to −IBV m; if IBV m is below IS BV q / k T,
it is BV. Two further effects, where the card states ISR or IKF:

    recombination      i = … + ISR (e^{w/vr} − 1) ((1 − w/VJ)² + 0.005)^{M/2},   w = max(u, −3 vt),   vr = NR k T / q
    high injection     i → i / (1 + √(i / IKF))   for i > 0

Its charge acts in transient and AC analysis: q = TT i + ∫ C du with the depletion capacitance

    C = CJO (1 − u/VJ)^{−M}   for u < FC VJ, beyond that its tangent

Source: ngspice, dioload.c and diotemp.c. Breakdown there begins with a step of the cubic term, 1e-7 of IS; version 39
has no recombination current below −3 vt, where it steps by up to ISR; later ones hold it constant, as here.
"""

from __future__ import annotations

import math
from typing import Any

from circuitsim.models.base import DIODE, POSITIVE, ROOM, SERIES, ElementModel, Parameter, Region
from circuitsim.models.smooth import Limits, SmoothDevice, quadrature

BOLTZMANN = 1.38064852e-23 / 1.6021766208e-19
"""k / q, V/K."""

ZERO_CELSIUS = 273.15

MOST_GRADED, MOST_FORWARD = 0.9, 0.95
"""Maximum M of the depletion capacitance, and maximum FC (ngspice, diotemp.c)."""

WIDTH = 0.005
"""Keeps the recombination current positive at a junction voltage of VJ (ngspice, dioload.c)."""

FORWARD, OFF, BREAKDOWN = Region("forward", True), Region("off", False), Region("reverse breakdown", True)


CJO, FC, TT, RATE, BASE = range(11, 16)
"""Entries of a row; in a stage of a transient run, the current `RATE` (1/s) times the charge beyond `BASE` (C) is
added."""


def charge(p: Any, u: Any, current: Any, slope: Any) -> tuple[Any, Any]:
    """Charge (C) and capacitance (F) of a junction at a voltage u with this current (A) and slope (S).

    The arguments are those of `SmoothDevice.junction`.
    """
    cjo, potential, fc = p[11], p[8], p[12]
    m = min(p[9], MOST_GRADED)
    edge, left = fc * potential, 1.0 - fc
    if u < edge:
        capacitance = cjo * (1.0 - u / potential) ** -m
        stored = -cjo * potential * math.expm1((1.0 - m) * math.log1p(-u / potential)) / (1.0 - m)
    else:
        steep = cjo * left ** (-1.0 - m)
        capacitance = steep * (left - m * fc + m * u / potential)
        stored = cjo * potential * (1.0 - left ** (1.0 - m)) / (1.0 - m)
        stored += (u - edge) * (steep * (left - m * fc) + 0.5 * steep * m / potential * (u + edge))
    return stored + p[13] * current, capacitance + p[13] * slope


def shockley(p: Any, u: Any) -> tuple[Any, Any]:
    """Current (A) and slope (S) without recombination, high injection and charge."""
    saturation, vt = p[1], p[2]
    if u >= -3.0 * vt:
        rise = math.expm1(u / vt) if u / vt <= 700.0 else math.inf
        return saturation * rise, saturation / vt * (1.0 + rise)
    if u >= -p[3]:
        q = 3.0 * vt / (u * math.e)
        cubic = q * q * q
        return -saturation * (1.0 + cubic), 3.0 * saturation * cubic / u
    x = -(u + p[3]) / p[4]
    rise = math.exp(x) if x <= 700.0 else math.inf
    return -saturation * (rise - p[5]), saturation / p[4] * rise


def recombination(p: Any, w: Any) -> tuple[Any, Any, Any]:
    """Recombination current (A) at w ≥ −3 vt, and both parts of its slope (S): of its exponential, and of its other
    factor."""
    if not p[6] > 0.0:
        return 0.0, 0.0, 0.0
    beside = 1.0 - w / p[8]
    square = beside * beside + WIDTH
    rise, factor = math.expm1(w / p[7]) if w / p[7] <= 700.0 else math.inf, p[6] * square ** (0.5 * p[9])
    return factor * rise, factor * (1.0 + rise) / p[7], -factor * rise * p[9] * beside / (p[8] * square)


def junction(p: Any, u: Any) -> tuple[Any, Any]:
    """Current (A) and slope (S); p: resistance, IS, vt, xbv, vb, the cubic term at xbv; ISR, vr, VJ, M; IKF; CJO, FC,
    TT, `RATE`, `BASE`.

    The arguments are those of `SmoothDevice.junction`.
    """
    current, slope = shockley(p, u)
    if p[6] > 0.0:
        more, steep, other = recombination(p, max(u, -3.0 * p[2]))
        current += more
        if u >= -3.0 * p[2]:
            slope += steep + other
    if not abs(current) < math.inf:
        return current, math.inf
    if current > 0.0 and p[10] < math.inf:
        root = math.sqrt(current / p[10])
        current, slope = current / (1.0 + root), slope * ((1.0 + 0.5 * root) / (1.0 + root)) / (1.0 + root)
    if p[14] > 0.0:
        stored, capacitance = charge(p, u, current, slope)
        current, slope = current + p[14] * (stored - p[15]), slope + p[14] * capacitance
    return current, slope


def by_parameters(p: Any, u: Any, out: Any) -> None:
    """Derivatives of the current with respect to p. The arguments are those of `SmoothDevice.by_parameters`.

    A current that depends on u / vt has the derivative −u/vt times its slope by vt.
    """
    vt = p[2]
    for k in range(16):
        out[k] = 0.0
    current, slope = shockley(p, u)
    out[1] = current / p[1]
    if u >= -p[3]:
        out[2] = -u / vt * slope
    else:
        out[3], out[4], out[5] = slope, -(u + p[3]) / p[4] * slope, p[1]
    if p[6] > 0.0:
        w = max(u, -3.0 * vt)
        more, steep, other = recombination(p, w)
        current += more
        out[6], out[7], out[8] = more / p[6], -w / p[7] * steep, -w / p[8] * other
        out[9] = 0.5 * more * math.log((1.0 - w / p[8]) ** 2 + WIDTH)
        if u < -3.0 * vt:
            out[2] -= 3.0 * (steep + other)
    if current > 0.0 and p[10] < math.inf:
        root = math.sqrt(current / p[10])
        left = (1.0 + 0.5 * root) / ((1.0 + root) * (1.0 + root))
        for k in range(10):
            out[k] *= left
        out[10] = 0.5 * root * root * root / ((1.0 + root) * (1.0 + root))


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
    isr, nr : float or None
        Recombination current of unit area at ``tnom``, A (> 0); None: none. Its emission coefficient (> 0); None: 1.
    vj, mj : float or None
        Junction potential at ``tnom``, V (> 0), and grading coefficient (≥ 0): of the recombination current; None: 1 V
        and 0.5.
    ikf : float or None
        Knee current of high injection of unit area, A (> 0); None: no knee.
    cjo, fc, tt : float or None
        Depletion capacitance at 0 V of unit area and ``tnom``, F (≥ 0); the fraction of ``vj`` from which it follows
        its tangent (≥ 0); transit time, s (≥ 0). None: 0, 0.5, 0.
    jsw : float or None
        Sidewall saturation current of unit perimeter at ``tnom``, A (≥ 0); None: none.
    trs1, trs2, tbv1, tbv2, tikf : float or None
        Relative temperature coefficients of RS, BV and IKF, 1/K and 1/K²; None: 0.
    tcv : float or None
        Fall of BV with temperature, V/K; None: 0.
    eg, xti, tnom : float
        Gap, eV; exponent of IS in the temperature; temperature at which the card's values hold, °C.
    temp : float
        Of the device, °C.
    area, pj, m : float
        Area; perimeter; devices in parallel.
    """

    junction, by_parameters = staticmethod(junction), staticmethod(by_parameters)

    n: float
    rs: float
    bv: float | None
    ibv: float
    nbv: float | None
    isr: float | None
    nr: float | None
    vj: float | None
    mj: float | None
    ikf: float | None
    cjo: float | None
    fc: float | None
    tt: float | None
    jsw: float | None
    trs1: float | None
    trs2: float | None
    tbv1: float | None
    tbv2: float | None
    tcv: float | None
    tikf: float | None
    eg: float
    xti: float
    tnom: float
    temp: float
    area: float
    pj: float
    m: float

    def check(self) -> None:
        """Refuse temperatures below absolute zero, overflow, and a recombination current that falls with rising
        voltage."""
        if min(self.temp, self.tnom) <= -ZERO_CELSIUS:
            raise ValueError("the temperature must be above -273.15 °C")
        row = self.row()
        if (
            row[0] < 0.0
            or (self.bv is not None and self.by_temperature(self.bv, self.tbv1, self.tbv2, self.tcv) <= 0.0)
            or row[10] <= 0.0
        ):
            raise ValueError(f"its temperature coefficients make RS, BV or IKF negative at {self.temp:g} °C")
        if not all(math.isfinite(number) for number in (*row[:3], row[6])) or row[1] < POSITIVE:
            raise ValueError(f"its saturation current at {self.temp:g} °C is out of a double's range")
        # e^{w/vr} − 1 rises by at least 1/vr of itself per volt, the other factor falls by at most M/(2 VJ √WIDTH).
        least = 0.5 * row[9] * row[7] / math.sqrt(WIDTH)
        if row[6] > 0.0 and not row[8] >= least:
            raise ValueError(
                f"its recombination current would fall as the voltage rises: VJ must be at least {least:g} V"
            )

    def row(self) -> tuple[float, ...]:
        """Resistance, IS, vt, xbv, vb, the cubic term at xbv; ISR, vr, VJ, M; IKF."""
        kelvin, nominal = self.temp + ZERO_CELSIUS, self.tnom + ZERO_CELSIUS
        thermal, cells = BOLTZMANN * kelvin, self.area * self.m
        saturation = getattr(self, "is") * cells * self._growth(self.n)
        vt, vb = self.n * thermal, (self.nbv or self.n) * thermal
        bv = None if self.bv is None else self.by_temperature(self.bv, self.tbv1, self.tbv2, self.tcv)
        knee = _knee(saturation, thermal, vb, bv, self.ibv * self.m) if 0.0 < saturation < math.inf else math.inf
        saturation += (self.jsw or 0.0) * self.pj * self.m * self._growth(1.0)
        cubic = (3.0 * vt / (knee * math.e)) ** 3
        nr, mj = self.nr or 1.0, 0.5 if self.mj is None else self.mj
        potential = _potential_at(kelvin, nominal, self.vj or 1.0)
        recombination = (self.isr or 0.0) * cells * self._growth(nr)
        high = math.inf if self.ikf is None else self.by_temperature(self.ikf, self.tikf) * cells
        static = (
            self.by_temperature(self.rs, self.trs1, self.trs2) / cells,
            saturation,
            vt,
            knee,
            vb,
            cubic,
            recombination,
            nr * thermal,
            potential,
            mj,
            high,
        )
        depletion = (self.cjo or 0.0) * cells * self._depletion(kelvin) / self._depletion(nominal)
        fc = 0.5 if self.fc is None else min(self.fc, MOST_FORWARD)
        return *static, depletion, fc, self.tt or 0.0, 0.0, 0.0

    def by_temperature(
        self, value: float, linear: float | None, square: float | None = None, falls: float | None = None
    ) -> float:
        """A value at the device's temperature.

        Parameters
        ----------
        value : float
            At ``tnom``.
        linear, square : float or None
            Coefficients relative to it, 1/K and 1/K².
        falls : float or None
            Its fall, per K.
        """
        rise = self.temp - self.tnom
        return value * (1.0 + ((square or 0.0) * rise + (linear or 0.0)) * rise) - (falls or 0.0) * rise

    def _depletion(self, kelvin: float) -> float:
        """The depletion capacitance at a temperature, K, over that at room temperature."""
        nominal, stated = self.tnom + ZERO_CELSIUS, self.vj or 1.0
        potential, room = (_potential_at(own, nominal, stated) for own in (kelvin, ROOM + ZERO_CELSIUS))
        m = min(0.5 if self.mj is None else self.mj, MOST_GRADED)
        return 1.0 + m * (4e-4 * (kelvin - ROOM - ZERO_CELSIUS) - (potential / room - 1.0))

    def stores(self) -> bool:
        """Whether it has a charge."""
        return bool(self.cjo or self.tt)

    def _growth(self, emission: float) -> float:
        """A saturation current at the device's temperature over that at ``tnom``."""
        thermal, ratio = BOLTZMANN * (self.temp + ZERO_CELSIUS), (self.temp + ZERO_CELSIUS) / (self.tnom + ZERO_CELSIUS)
        growth = (ratio - 1.0) * self.eg / (emission * thermal) + self.xti / emission * math.log(ratio)
        return math.exp(growth) if growth < 700.0 else math.inf

    def limits(self) -> Limits:
        """−IS and recombination in reverse, without breakdown."""
        row = self.row()
        least = recombination(row, -3.0 * row[2])[0] - row[1] if self.bv is None else -math.inf
        return Limits(least, math.inf)

    def junction_energy(self, voltage: float) -> float:
        """Shockley's law and breakdown piece by piece; recombination and high injection by quadrature."""
        row = self.row()
        _, saturation, vt, knee, vb, cubic = row[:6]
        low = -3.0 * vt
        if voltage > 0.0 and row[10] < math.inf:
            return super().junction_energy(voltage)
        near = max(voltage, low)
        energy = saturation * (vt * math.expm1(min(near / vt, 700.0)) - near)
        if voltage < low:
            # ∫ −IS (1 + (3 vt/(e u))³) du
            far, third = max(voltage, -knee), (3.0 * vt / math.e) ** 3
            energy += saturation * (low - far) + 0.5 * saturation * third * (1.0 / far**2 - 1.0 / low**2)
        if voltage < -knee:
            beyond = -(voltage + knee)
            energy += saturation * (vb * math.expm1(min(beyond / vb, 700.0)) - cubic * beyond)
        if row[6] > 0.0:
            nodes, weights = quadrature(near)
            energy += sum(w * recombination(row, u)[0] for u, w in zip(nodes.tolist(), weights.tolist()))
            energy += (voltage - near) * recombination(row, low)[0]
        return energy

    def region_at(self, voltage: float) -> Region:
        """Forward above the thermal voltage, breakdown beyond its knee."""
        row = self.row()
        return FORWARD if voltage > row[2] else BREAKDOWN if voltage < -row[3] else OFF


def _potential_at(kelvin: float, nominal: float, potential: float) -> float:
    """The junction potential at a temperature (K), V, from that at the nominal one (ngspice, diotemp.c, TLEVC=0)."""
    if kelvin == nominal:
        return potential
    return kelvin / nominal * (potential - _shift(nominal)) + _shift(kelvin)


def _shift(kelvin: float) -> float:
    """Contribution of silicon's band gap and density of states to a potential, proportional to temperature, V."""
    room = 300.15
    gap = 1.16 - 7.02e-4 * kelvin * kelvin / (kelvin + 1108.0)
    return gap - kelvin / room * 1.1150877 - 3.0 * BOLTZMANN * kelvin * math.log(kelvin / room)


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


_DYNAMIC = (
    "level cjo cj0 cj fc tt cjp cjsw vj pb php vjsw m mj mjsw fcs kf af cta ctp ctc tpb tphp tlevc tm1 tm2 ttt1 ttt2 "
    "tt1 tt2 cthj rth0 vp fv_max bv_max id_max te_max pd_max vpk ipk iave irms diss mfg type"
)
"""Parameters of capacitances, charges, noise and ratings; alone they do not make a junction diode."""

MODEL = ElementModel(
    "D",
    "junction diode",
    ("anode", "cathode"),
    "i = IS (e^{u/(N VT)} − 1), v = u + RS i; recombination ISR, high injection IKF",
    DIODE,
    device=JunctionDiode,
    card_type="D",
    parameters=(
        Parameter("is", "A", POSITIVE, "saturation current IS", 1e-14, trainable=True),
        Parameter("n", "", POSITIVE, "emission coefficient N", 1.0, trainable=True),
        SERIES,
        Parameter("bv", "V", POSITIVE, "breakdown voltage BV", trainable=True),
        Parameter("ibv", "A", POSITIVE, "breakdown current IBV", 1e-3, trainable=True),
        Parameter("nbv", "", POSITIVE, "breakdown emission coefficient NBV", trainable=True),
        Parameter("isr", "A", POSITIVE, "recombination current ISR", trainable=True),
        Parameter("nr", "", POSITIVE, "recombination emission coefficient NR", trainable=True),
        Parameter("vj", "V", POSITIVE, "junction potential VJ"),
        Parameter("mj", "", 0.0, "grading coefficient M"),
        Parameter("ikf", "A", POSITIVE, "high-injection knee current IKF", trainable=True),
        Parameter("cjo", "F", 0.0, "zero-bias depletion capacitance CJO"),
        Parameter("fc", "", 0.0, "forward-bias depletion coefficient FC"),
        Parameter("tt", "s", 0.0, "transit time TT"),
        Parameter("jsw", "A", 0.0, "sidewall saturation current JSW"),
        *(Parameter(f"t{of}{k}", unit) for of in ("rs", "bv") for k, unit in ((1, "1/K"), (2, "1/K²"))),
        Parameter("tcv", "V/K"),
        Parameter("tikf", "1/K"),
        Parameter("eg", "eV", 0.1, "activation energy EG", 1.11),
        Parameter("xti", "", meaning="temperature exponent XTI", default=3.0),
        Parameter("tnom", "°C", -273.15, "nominal temperature TNOM", ROOM),
    ),
    counts=("m", "area"),
    thermal=True,
    idle=frozenset(_DYNAMIC.split()),
    spellings={"m": "mj", "pb": "vj", "cj0": "cjo", "cj": "cjo", "js": "is", "ik": "ikf", "trs": "trs1"},
)
JunctionDiode.model = MODEL
