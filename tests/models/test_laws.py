"""Every device against its law in words of the test: behind a source and a resistance, its energy, its derivatives, in
batches, written and read back, at limits, refused."""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import pytest
from helpers import loaded, root, slope, solved
from scipy.integrate import quad

import circuitsim
from circuitsim.errors import ConvergenceError, TopologyError, UsageError
from circuitsim.models.junction_diode import JunctionDiode
from circuitsim.models.piecewise_diode import PiecewiseLinearDiode

THERMAL = 1.38064852e-23 / 1.6021766208e-19 * 300.15
"""kT/q at 27 °C, V."""
Law = Callable[[float], float]


class Device(NamedTuple):
    """Cards of a device from a to ground, its current at a voltage, a resistance in series; or its voltage at a
    current."""

    cards: str
    current: Law | None
    series: float = 0.0
    voltage: Law | None = None

    def behind(self, volts: float, ohms: float) -> tuple[float, float]:
        """Voltage and current behind a source and a resistance, by bisection."""
        if self.voltage is not None:
            i = root(lambda x: ohms * x + self.voltage(x) - volts, *sorted((0.0, volts / ohms)))
            return self.voltage(i), i
        total = ohms + self.series
        u = root(lambda x: x + total * self.current(x) - volts, min(volts, 0.0), max(volts, 0.0))
        # Where the device takes nearly all of the voltage its law tells the current, else the resistances.
        i = self.current(u) if abs(u) > 0.999 * abs(volts) else (volts - u) / total
        return u + self.series * i, i


def junction(**p: float) -> Device:
    """The law in the head of the model, and its card."""
    cells, n = p.get("m", 1.0) * p.get("area", 1.0), p.get("n", 1.0)
    saturation, vt, vb = p.get("is", 1e-14) * cells, n * THERMAL, p.get("nbv", n) * THERMAL
    bv, knee = p.get("bv", math.inf), math.inf
    if bv < math.inf:
        # IS (e^{(BV − knee)/vb} − 1 + knee/VT) = IBV m
        through = p.get("ibv", 1e-3) * p.get("m", 1.0) / saturation
        knee = -root(lambda x: math.exp((bv + x) / vb) - 1.0 - x / THERMAL - through, -bv, 80.0 * vb - bv)

    def current(u: float) -> float:
        cubic = (3.0 * vt / (math.e * max(-u, 3.0 * vt))) ** 3
        if u >= -3.0 * vt:
            i = saturation * math.expm1(u / vt)
        elif u >= -knee:
            i = -saturation * (1.0 - cubic)
        else:
            i = -saturation * (math.exp(-(u + knee) / vb) - (3.0 * vt / (math.e * knee)) ** 3)
        if "isr" in p:
            w = max(u, -3.0 * vt)
            factor = (1.0 - w / p.get("vj", 1.0)) ** 2 + 0.005
            rise = math.expm1(w / (p.get("nr", 1.0) * THERMAL))
            i += p["isr"] * cells * rise * factor ** (p.get("mj", 0.5) / 2.0)
        return i / (1.0 + math.sqrt(i / (p["ikf"] * cells))) if "ikf" in p and i > 0.0 else i

    own = " ".join(f"{key}={p[key]!r}" for key in ("area", "m") if key in p)
    words = " ".join(f"{'m' if key == 'mj' else key}={x!r}" for key, x in p.items() if key not in ("area", "m"))
    return Device(f"D1 a 0 x {own}\n.model x D({words or 'is=1e-14'})", current, p.get("rs", 0.0) / cells)


def straight(m: float = 1.0, n: float = 1.0, **p: float) -> Device:
    """The piecewise-linear law of the documents, and its card."""
    vfwd, ron, vrev = p.get("vfwd", 0.0), p.get("ron", 1.0), p.get("vrev", math.inf)
    rrev, goff = p.get("rrev", ron), 1.0 / p.get("roff", math.inf)

    def current(v: float) -> float:
        v /= n
        if v >= vfwd:
            return m * ((v - vfwd) / ron + vfwd * goff) if ron else math.inf
        if v < -vrev:
            return m * ((v + vrev) / rrev - vrev * goff) if rrev else -math.inf
        return m * v * goff

    words = " ".join(f"{key}={x!r}" for key, x in p.items())
    return Device(f"D1 a 0 x m={m} n={n}\n.model x D({words})", current)


def rounded(v: float) -> float:
    """Two in a row, three beside, of the card below."""
    u, goff = v / 2.0, 1e-3
    sign, knee, resistance, width = (1.0, 0.6, 0.5, 0.2) if u >= 0.0 else (-1.0, 5.0, 2.0, 0.4)
    x, current = abs(u) - knee, abs(u) * goff
    if x > 0.0:
        extra = 1.0 / resistance - goff
        current += extra * (x - width / 2.0) if x > width else extra * x * x / (2.0 * width)
    return 3.0 * sign * (current if u >= 0.0 else 3.0 * math.tanh(current / 3.0))


def limited(v: float) -> float:
    """Of the card below, with Roff=1MEG."""
    current = abs(v) * 1e-6 + (v * (10.0 - 1e-6) if v > 0.0 else 0.0)
    return 2.0 * math.tanh(current / 2.0) if v > 0.0 else -current


def piece(v: float) -> float:
    """The table below, its ends drawn out."""
    return 3.0 * float(np.interp(v, [-103, -3, -1, 2, 3, 105], [-0.051, -1e-3, 0, 0, 1e-2, 1e-2 + 102 * 5e-4]))


KNEES = "D(Vfwd=0.6 Ron=0.5 Epsilon=0.2 Roff=1k Vrev=5 Rrev=2 RevEpsilon=0.4 RevIlimit=3)"
SMOOTH = {
    "junction": junction(),
    "low leakage": junction(**{"is": 1e-18, "n": 1.8}),
    "series resistance": junction(**{"is": 1e-6, "rs": 0.3}),
    "Zener": junction(bv=5.1),
    "breakdown": junction(bv=100.0, ibv=1e-5, nbv=1.5, rs=2.0),
    "cells": junction(**{"is": 3e-12, "n": 1.3, "bv": 12.0, "m": 3.0, "area": 2.5, "rs": 0.1}),
    "recombination": junction(isr=1e-10, nr=2.0, vj=0.7, mj=0.33),
    "high injection": junction(ikf=3e-3, rs=0.2),
    "all of it": junction(**{"is": 1e-12, "isr": 1e-9, "nr": 1.8, "ikf": 1e-2, "bv": 5.1, "m": 2.0, "area": 1.5}),
    "varistor": Device(
        "D1 a 0 x m=2\n.model x VARISTOR(VNOM=18 INOM=1m ALPHA=25)",
        lambda v: math.copysign(2e-3 * (abs(v) / 18) ** 25, v),
    ),
    "sinh": Device("D1 a 0 x\n.model x SINH(G=1u V0=0.2)", lambda v: 2e-7 * math.sinh(v / 0.2)),
    "rounded": Device(f"D1 a 0 x m=3 n=2\n.model x {KNEES}", rounded),
    "limited": Device("D1 a 0 x\n.model x D(Ron=0.1 Ilimit=2 Roff=1MEG)", limited),
}
STRAIGHT = {
    "table": Device("D1 a 0 x m=3\n.model x PWL(-3 -1m -1 0 2 0 3 10m 5 11m)", piece),
    "drop": straight(vfwd=0.7),
    "leakage": straight(2.5, 3.0, vfwd=0.7, ron=0.3, roff=1e6),
    "two drops": straight(3.0, 1.0, vfwd=0.6, ron=2.0, vrev=5.1),
    "no drops": straight(1.0, 2.0, vfwd=0.0, ron=0.5, vrev=0.0, rrev=4.0),
    "all numbers": straight(vfwd=0.65, ron=1e-3, vrev=4.7, rrev=8.0, roff=1e7),
    "off as in reverse": straight(2.5, 3.0, vfwd=1.0, ron=3.0, vrev=2.0, rrev=7.0, roff=7.0),
}
LAWS = """
sinh by formula | I | 1e-6*sinh(v(a,0)/0.3) | 1e-6 * sinh(x / 0.3)
other way round | I | -1e-6*sinh(v(0,a)/0.3) | 1e-6 * sinh(x / 0.3)
diode | I | 1e-14*(exp(v(a)/0.02585)-1) | 1e-14 * expm1(x / 0.02585)
cubic | I | 1m*v(a) + 2m*pow(v(a),3) | 1e-3 * x + 2e-3 * x**3
tanh | I | 5m*tanh(v(a)/0.5) + v(a)/10k | 5e-3 * tanh(x / 0.5) + x / 1e4
root | I | 1m*sgn(v(a))*sqrt(abs(v(a))) | copysign(1e-3 * sqrt(abs(x)), x)
condition | I | v(a) > -1 && v(a) < 1 ? 1m*v(a) : 1m*sgn(v(a))*(2*sqrt(abs(v(a)))-1) | \
1e-3 * x if abs(x) < 1 else copysign(1e-3 * (2 * sqrt(abs(x)) - 1), x)
limits | I | max(min(2m*v(a), 3m), -1m) + 1u*pow(v(a),3) | max(min(2e-3 * x, 3e-3), -1e-3) + 1e-6 * x**3
asinh | I | 2m*asinh(4*v(a)) + 1m*atan(v(a)**2*v(a)) | 2e-3 * asinh(4 * x) + 1e-3 * atan(x**3)
wave | I | 1m*(v(a) + 0.9*sin(v(a))) | 1e-3 * (x + 0.9 * sin(x))
voltage: asinh | V | 0.3*asinh(i(B1)/1u) | 0.3 * asinh(x / 1e-6)
voltage: cubic | V | 10*i(B1) + 1k*pow(i(B1),3) | 10 * x + 1e3 * x**3
voltage: level at zero | V | 1e6*pow(i(b1),3) | 1e6 * x**3
voltage: sinh | V | 10*i(B1) + 0.1*sinh(i(B1)/10m) | 10 * x + 0.1 * sinh(x / 1e-2)
voltage: root | V | 2*sgn(i(B1))*sqrt(abs(i(B1))) | copysign(2 * sqrt(abs(x)), x)
voltage: condition | V | abs(i(B1)) < 1m ? 1k*i(B1) : sgn(i(B1))*(0.5 + 500*abs(i(B1))) | \
1e3 * x if abs(x) < 1e-3 else copysign(0.5 + 500 * abs(x), x)
voltage: wave | V | 100*i(B1) + 50m*sin(1k*i(B1)) | 100 * x + 0.05 * sin(1e3 * x)
voltage: logarithm | V | 25m*sgn(i(B1))*ln(1 + abs(i(B1))/1e-14) | copysign(0.025 * log1p(abs(x) / 1e-14), x)
"""
"""Currents by formulas of their own voltage and voltages by formulas of their own current, and the law in Python."""


def formula(output: str, text: str, law: str) -> Device:
    """The device of a row."""
    found: Law = eval(f"lambda x: {law}", vars(math).copy())
    cards = f"B1 a 0 {output}={{{text}}}"
    return Device(cards, found) if output == "I" else Device(cards, None, 0.0, found)


FORMULAS = {row.split(" | ")[0]: formula(*row.split(" | ")[1:]) for row in LAWS.strip().split("\n")}
DEVICES = {**SMOOTH, **STRAIGHT, **FORMULAS}
DRIVEN = "V1 in 0 2\nR1 in a 100\n"


@pytest.mark.parametrize("name", DEVICES)
def test_the_law_behind_a_source_and_a_resistance(name: str) -> None:
    """Once read, once written and read back, in a batch, and with other values of one prepared circuit."""
    device = DEVICES[name]
    circuit = loaded(DRIVEN + device.cards)
    again, ready = circuitsim.loads(circuitsim.dumps(circuit)), circuitsim.prepared(circuit)
    assert name in FORMULAS or (circuitsim.dumps(again), again.devices) == (circuitsim.dumps(circuit), circuit.devices)
    sources = (100.0, 5.0, 0.65, 1e-3, -1e-6, -0.05, -2.0, -5.2, -20.0, -103.0)
    for ohms in (0.05, 100.0, 1e6):
        batch = circuitsim.batched(circuit.with_values({"R1": ohms}), ["V1"], [("a", "0")]).solve(
            np.array(sources)[:, None]
        )
        for volts, own in zip(sources, batch["a"].tolist()):
            values = {"V1": volts, "R1": ohms}
            point, other = circuitsim.solve(circuit.with_values(values)), circuitsim.solve(again.with_values(values))
            voltage, current = device.behind(volts, ohms)
            assert point["a"] == pytest.approx(voltage, rel=1e-11, abs=1e-15 * abs(volts))
            # A small share of the source's voltage lies across the resistor where the device blocks.
            assert point.current(circuit.names[2]) == pytest.approx(current, rel=1e-9, abs=1e-14 * abs(volts) / ohms)
            assert point.certificate.certified
            for same in (other["a"], ready.solve(values)["a"], own):
                assert same == pytest.approx(point["a"], rel=1e-9, abs=1e-15 * abs(volts))


@pytest.mark.parametrize("name", {**SMOOTH, **STRAIGHT})
def test_the_energy_is_the_integral_of_the_law(name: str) -> None:
    device = DEVICES[name]
    circuit = loaded(f"V1 a 0 0\n{device.cards}")
    assert device.current is not None
    for u in (0.75, 0.3, -0.2, -4.9):
        i = device.current(u)
        integral = quad(device.current, 0.0, u, limit=500, epsabs=0.0)[0]
        point = circuitsim.solve(circuit.with_values({"V1": u + device.series * i}))
        assert point.current("D1") == pytest.approx(i, rel=1e-9)
        assert point.energy == pytest.approx(integral + 0.5 * device.series * i * i, rel=1e-6)


@pytest.mark.parametrize("name", DEVICES)
@pytest.mark.parametrize("volts", [3.0, 0.4, -0.3, -9.0])
def test_derivatives_by_all_numbers_are_differences(name: str, volts: float) -> None:
    there = loaded(DRIVEN + DEVICES[name].cards).with_values({"V1": volts})
    found = circuitsim.sensitivity(there, "v(a)")
    size = abs(circuitsim.solve(there)["a"])

    def potential(number: str, value: float) -> float:
        return circuitsim.solve(there.with_values({number: value}))["a"]

    for number, value in zip(found.names, found.numbers.tolist()):
        if value == 0.0 or math.isnan(found["v(a)", number]):
            continue  # the least that the parameter may be, or a kink: there is no central quotient
        near, wide = (slope(partial(potential, number), value, h * abs(value)) for h in (1e-5, 2e-5))
        slack = 1e-8 * size / abs(value) + 2.0 * abs(wide - near)
        assert found["v(a)", number] == pytest.approx(near, rel=1e-5, abs=slack), number


@pytest.mark.parametrize(
    ("model", "states"),
    [
        ("D(BV=5.1)", {5.0: "forward", 1e-3: "off", -3.0: "off", -20.0: "reverse breakdown"}),
        ("D(Vfwd=0.65 Ron=1m Vrev=4.7 Rrev=8)", {9.0: "forward", 0.6: "off", -4.0: "off", -9.0: "reverse breakdown"}),
        (
            "LIMITER(IMAX=2m IREV=0.5m RON=5k)",
            {60.0: "limiting", 6.0: "passing", -2.0: "passing", -90.0: "limiting in reverse"},
        ),
    ],
)
def test_states(model: str, states: dict[float, str]) -> None:
    cards = f"V1 in 0 0\nR1 in a 1k\nD1 a 0 x\n.model x {model}"
    assert {volts: solved(cards, {"V1": volts}).state("D1") for volts in states} == states


def test_models_in_sub_circuits_with_parameters_cells_and_temperatures() -> None:
    deck = circuitsim.loads(
        "decks\n.param v=5.1\n.subckt s a k z=3\nD1 a k own m=2 n={z}\n.model own D(Vrev={z} Vfwd=0.5)\n.ends\n"
        "X1 a 0 s m=3\nX2 a 0 s z=4\nD2 a b outer\nD3 a b outer\nD4 a b\nR1 b 0 1k\n"
        ".model outer D(Vrev={v} Rrev=2 Ron=0 Roff=1g Vfwd={v/10} is=1e-14)\n"
    )
    assert [problem.message for problem in deck.problems] == ["model outer is a piecewise-linear diode; not used: is"]
    own, ideal = {"vfwd": 0.5, "ron": 1.0}, {"ron": 0.0, "rrev": 2.0, "roff": 1e9}
    c = deck.circuit
    assert c.device_of("X1.D1") == PiecewiseLinearDiode(**own, vrev=3.0, m=6, n=3)
    assert c.device_of("X2.D1") == PiecewiseLinearDiode(**own, vrev=4.0, m=2, n=4)
    assert c.device_of("D3") == PiecewiseLinearDiode(**ideal, vfwd=0.51, vrev=5.1) and c["D4"].kind == "ideal diode"
    again = circuitsim.loads(circuitsim.dumps(c))
    assert list(again.devices.values()) == list(c.devices.values()) and not again.notes
    assert deck.elaborate({"v": 7.5}).device_of("D2") == PiecewiseLinearDiode(**ideal, vfwd=0.75, vrev=7.5)


@pytest.mark.parametrize(
    ("cards", "ohms"),
    [
        (".param g=2m\n.func cell(x,s) {s*sinh(x/v0)}\nB1 p n I={cell(v(p,n), g)} m=2", "0"),
        (".param g=2m\n.func cell(x,s) {s*sinh(x/v0)}\nB1 p n I={cell(v(p,n), g)} m=2", "10"),
        ("B1 p n V={v0*asinh(i(B1)/4m)}", "10"),
        ("VS p q 0\nB1 q n V={v0*asinh(i(VS)/4m)}", "10"),
        ("VS q p 0\nB1 n q V={v0*asinh(i(VS)/4m)}", "10"),
        ("VS q p 0\nE1 q n VALUE={v0*asinh(-i(VS)/4m)}", "10"),
    ],
)
def test_formulas_in_sub_circuits(cards: str, ohms: str) -> None:
    """Values that the source fixes, and devices; currents sensed by a source in series."""
    point = solved(f".param v0=0.4\nV1 in 0 1\nR1 in a {ohms}\nX1 a 0 part m=3\n.subckt part p n\n{cards}\n.ends")
    assert -point.current("V1") == pytest.approx(12e-3 * math.sinh(point["a"] / 0.4), rel=1e-9)


def test_recombination_and_high_injection_over_temperature() -> None:
    """ISR as IS with NR, VJ by the gap of silicon, IKF by the area: the values that ngspice 39 prints."""
    model = "D(IS=1e-12 ISR=1e-9 NR=1.9 VJ=0.6 M=0.4 IKF=1m N=1.1 TNOM=40)"
    for temp, amperes in ((-20.0, 3.181656072518e-07), (27.0, 6.473342408115e-06), (80.0, 1.266861610928e-04)):
        point = solved(f"V1 a 0 0.45\nD1 a 0 x area=2 temp={temp}\n.model x {model}")
        assert point.current("D1") == pytest.approx(amperes, rel=1e-11)


def test_words_of_capacitance_alone_state_no_junction() -> None:
    """VJ and M belong to the recombination current and to the capacitance: a card with these alone is ideal."""
    deck = "V1 a 0 1\nR1 a b 1k\nD1 b 0 X\n.model X D(CJO=2p VJ=.7 M=.4{0})"
    with pytest.warns(Warning):
        ideal, real = loaded(deck.format("")), loaded(deck.format(" ISR=1n"))
    assert not ideal.devices
    found = real.device_of("D1")
    assert isinstance(found, JunctionDiode) and (found.vj, found.mj, found.isr) == (0.7, 0.4, 1e-9)
    assert "mj=0.4" in circuitsim.dumps(real) and " m=0.4" not in circuitsim.dumps(real)


def test_sweeps_starts_and_new_values() -> None:
    c = loaded("V1 in 0 9\nR1 in a 10\nD1 a 0 z\n.model z D(Vfwd=0.7 Ron=2)")
    drops = circuitsim.sweep(c, {"D1.vfwd": [0.0, 0.7, 20.0], "D1.ron": [0.0, 2.0]}, "i(D1)")
    assert drops.units["D1.vfwd"] == "V"
    assert drops["i(D1)"] == pytest.approx([0.9, 0.83, 0.0, 0.75, 8.3 / 12, 0.0], rel=1e-13)
    for name, error, message in (("D1", UsageError, "no value to vary"), ("D1.vfwd", TopologyError, "not be negative")):
        with pytest.raises(error, match=message):
            circuitsim.sweep(c, {name: [-1.0]})
    ready = circuitsim.prepared(c)
    first = ready.solve()
    second = ready.solve({"V1": -9.0, "D1.vrev": 4.0, "D1.rrev": 5.0}, start=first)  # consists of more elements now
    assert second.current("D1") == pytest.approx(-5 / 15) and second.state("D1") == "reverse breakdown"
    third = ready.solve([3.0, 20.0, math.nan], start=second)
    assert third.current("D1") == pytest.approx(2.3 / 22, rel=1e-13) and third.circuit["R1"].value == 20.0
    assert c.device_of("D1").parameters() == {"vfwd": 0.7, "ron": 2.0}
    ready = circuitsim.prepared(loaded("V1 in 0 5\nR1 in a 1k\nD1 a 0 z\n.model z D(BV=5.1)"))
    cold, warm = ready.solve({"V1": 5.001}), ready.solve({"V1": 5.001}, start=ready.solve())
    assert warm["a"] == pytest.approx(cold["a"], rel=1e-12)
    assert warm.solver["newton_steps"] <= cold.solver["newton_steps"]
    assert ready.solve({"V1": -9.0, "D1.bv": 4.0}).state("D1") == "reverse breakdown"


def test_devices_are_values_and_keep_the_circuits_own_names() -> None:
    one = PiecewiseLinearDiode(vfwd=2, vrev=3, label="own")
    assert one == PiecewiseLinearDiode(vfwd=2.0, vrev=3.0) and hash(one) == hash(PiecewiseLinearDiode(vfwd=2, vrev=3))
    assert one.with_value("VFWD", 4.0) == PiecewiseLinearDiode(vfwd=4.0, vrev=3.0) and one.vfwd == 2.0
    with pytest.raises(AttributeError, match="immutable"):
        one.vfwd = 5.0
    for wrong, message in (({"ron": -1.0}, "must not be negative"), ({"amps": 1.0}, "no parameter 'amps'")):
        with pytest.raises(ValueError, match=message):
            PiecewiseLinearDiode(**wrong)
    c = loaded("I1 0 a 0\nD1 a 0 z\n.model z D(Vfwd=2 Vrev=3)")
    point = circuitsim.solve(c)
    assert point.intervals == {"a": (-3.0, 2.0)} and point.warnings[0].names == ("a",)
    assert list(point.circuit.names) == ["I1", "D1"] and point.elementary is not None
    parts = list(point.elementary.circuit.names)
    for name in parts[2:]:
        c.resistor(name, name, "0", 5.0)  # names of parts and nodes are new whatever the circuit's own are
    c.current_source("I2", "0", "a", 1.0)
    assert circuitsim.solve(c)["a"] == 3.0
    with pytest.raises(TopologyError, match="taken already"):
        c.device("I1", "a", "b", one)
    assert len(c.devices) == 1


class Claimed(PiecewiseLinearDiode):
    """Its law is not that of its parts."""

    def law(self, voltage: float) -> tuple[float, float]:
        return tuple(1.0001 * current + 1e-23 for current in super().law(voltage))  # type: ignore[return-value]


def test_a_device_beside_its_own_law_is_no_operating_point() -> None:
    c = loaded("V1 a 0 6\nR1 a b 1")
    c.device("D1", "b", "0", Claimed(vfwd=2.0))
    with pytest.raises(ConvergenceError, match="D1 is off its I–V curve"):
        circuitsim.solve(c)
    c = loaded("V1 a 0 6\nR1 a b 1\nR2 b 0 1")
    c.device("D1", "b", "0", Claimed(vfwd=20.0))
    assert circuitsim.solve(c)["b"] == 3.0  # 1e-23 A beside 3 A is rounding
