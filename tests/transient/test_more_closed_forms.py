"""More waveforms against closed forms and an independent integrator, to 1e-9 of the largest value."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

from circuitsim import Circuit
from circuitsim.time_domain import PiecewiseLinear, Pulse, Sine, Switch, transient

OMEGA = 2.0 * math.pi * 50.0


def bridge() -> Circuit:
    """A source between a and b, its rectified voltage between p and ground."""
    circuit = Circuit()
    circuit.voltage_source("V1", "a", "b", 0.0)
    for k, (anode, cathode) in enumerate((("a", "p"), ("b", "p"), ("0", "a"), ("0", "b")), 1):
        circuit.diode(f"D{k}", anode, cathode)
    return circuit


def test_bridge_with_capacitor() -> None:
    """As the half-wave rectifier, twice in a period."""
    r, c = 1e3, 1e-5
    circuit = bridge()
    circuit.add("C", "C1", "p", "0", c)
    circuit.resistor("R1", "p", "0", r)
    found = transient(circuit, 0.04, {"V1": Sine(0.0, 10.0, 50.0)}, points=401)
    off = (math.pi - math.atan(OMEGA * r * c)) / OMEGA
    level = 10.0 * math.sin(OMEGA * off)
    on = brentq(lambda t: level * math.exp(-(t - off) / (r * c)) + 10.0 * math.sin(OMEGA * t), 0.01, 0.015, xtol=1e-16)
    since = np.mod(found.times - off, 0.01)
    conducts = (found.times < off) | (since > on - off)
    exact = np.where(conducts, np.abs(10.0 * np.sin(OMEGA * found.times)), level * np.exp(-since / (r * c)))
    assert np.abs(found.voltage("p") - exact).max() < 1e-9


def test_bridge_with_inductor() -> None:
    """In each half period i = V/Z (sin(ωt − φ) + sin φ e^{−t/τ}) + i₀ e^{−t/τ}."""
    r, coil = 10.0, 0.05
    circuit = bridge()
    circuit.add("L", "L1", "p", "x", coil)
    circuit.resistor("R1", "x", "0", r)
    found = transient(circuit, 0.06, {"V1": Sine(0.0, 10.0, 50.0)}, points=301)
    z, phi, tau = math.hypot(r, OMEGA * coil), math.atan2(OMEGA * coil, r), coil / r
    first = 0.0
    for half in range(6):
        own = (found.times >= 0.01 * half) & (found.times < 0.01 * (half + 1))

        def wave(t: np.ndarray | float, first: float = first) -> np.ndarray | float:
            decay = np.exp(-t / tau)
            return 10.0 / z * (np.sin(OMEGA * t - phi) + math.sin(phi) * decay) + first * decay

        assert np.abs(found.current("L1")[own] - wave(found.times[own] - 0.01 * half)).max() < 1e-11
        first = float(wave(0.01))


def test_peak_detector() -> None:
    circuit = Circuit()
    circuit.voltage_source("V1", "in", "0", 0.0)
    circuit.diode("D1", "in", "out")
    circuit.add("C", "C1", "out", "0", 1e-6)
    circuit.resistor("R1", "out", "0", 1e6)
    wave = PiecewiseLinear([0.0, 1e-3, 2e-3, 3e-3, 4e-3, 6e-3, 7e-3], [0.0, 3.0, 0.0, 2.0, 1.0, 5.0, 0.0])
    found = transient(circuit, 0.01, {"V1": wave}, points=201)
    t, v = found.times, np.interp(found.times, wave.times, wave.values)
    after = np.where(t < 6e-3, 3.0 * np.exp(-(t - 1e-3)), 5.0 * np.exp(-(t - 6e-3)))
    meets = brentq(lambda x: 3.0 * math.exp(-(x - 1e-3)) - np.interp(x, wave.times, wave.values), 4e-3, 6e-3)
    held = ((t > 1e-3) & (t < meets)) | (t > 6e-3)
    assert np.abs(found.voltage("out") - np.where(held, after, v)).max() < 1e-9


def test_clamp() -> None:
    """From three quarters of the period on the output is the sine and its amplitude."""
    circuit = Circuit()
    circuit.voltage_source("V1", "in", "0", 0.0)
    circuit.add("C", "C1", "in", "out", 1e-6)
    circuit.diode("D1", "0", "out")
    found = transient(circuit, 0.1, {"V1": Sine(0.0, 5.0, 50.0)}, points=101)
    sine = 5.0 * np.sin(OMEGA * found.times)
    late = found.times > 0.015
    assert np.abs(found.voltage("out")[late] - sine[late] - 5.0).max() < 1e-9


def test_cockcroft_walton() -> None:
    """Without load two stages reach four times the amplitude."""
    circuit = Circuit()
    circuit.voltage_source("V1", "s", "0", 0.0)
    nodes = ["0", "a1", "b1", "a2", "b2"]
    for k, (first, second) in enumerate((("s", "a1"), ("0", "b1"), ("a1", "a2"), ("b1", "b2")), 1):
        circuit.add("C", f"C{k}", first, second, 1e-7)
        circuit.diode(f"D{k}", nodes[k - 1], nodes[k])
    found = transient(circuit, 4.0, {"V1": Sine(0.0, 5.0, 50.0)}, points=3)
    assert found.voltage("b2")[-1] == pytest.approx(20.0, abs=1e-9)
    assert found.voltage("b1")[-1] == pytest.approx(10.0, abs=1e-9)


def test_ringing() -> None:
    """v = V (1 − e^{−αt} (cos βt + α/β sin βt))."""
    r, coil, c = 10.0, 1e-3, 1e-6
    circuit = Circuit()
    circuit.voltage_source("V1", "in", "0", 0.0)
    circuit.resistor("R1", "in", "a", r)
    circuit.add("L", "L1", "a", "out", coil)
    circuit.add("C", "C1", "out", "0", c)
    found = transient(circuit, 1e-3, {"V1": Pulse(0.0, 5.0)}, initial={}, points=501)
    alpha = 0.5 * r / coil
    beta = math.sqrt(1.0 / (coil * c) - alpha**2)
    t = found.times
    exact = 5.0 * (1.0 - np.exp(-alpha * t) * (np.cos(beta * t) + alpha / beta * np.sin(beta * t)))
    assert np.abs(found.voltage("out") - exact).max() < 1e-9


@pytest.mark.parametrize("inverting", [False, True], ids=["boost", "buck-boost"])
@pytest.mark.parametrize("load", [20.0, 2000.0], ids=["continuous", "discontinuous"])
def test_converters(inverting: bool, load: float) -> None:
    """Against scipy's integrator of order 8, restarted where each mode ends."""
    coil, c, period, on, r_on, r_off, source = 1e-4, 1e-5, 1e-5, 4e-6, 0.1, 1e6, 5.0
    circuit = Circuit()
    circuit.voltage_source("Vin", "in", "0", source)
    circuit.voltage_source("Vg", "g", "0", 0.0)
    ends = (("in", "a"), ("a", "0"), ("out", "a")) if inverting else (("a", "0"), ("in", "a"), ("a", "out"))
    circuit.resistor("S1", *ends[0], r_off)
    circuit.add("L", "L1", *ends[1], coil)
    circuit.diode("D1", *ends[2])
    circuit.add("C", "C1", "out", "0", c)
    circuit.resistor("R1", "out", "0", load)
    switch, sign = Switch(("g", "0"), 0.5, 0.0, r_on, r_off), -1.0 if inverting else 1.0
    gate = Pulse(0.0, 1.0, 0.0, 0.0, 0.0, on, period)
    found = transient(circuit, 20 * period, {"Vg": gate}, {"C1": 8.0 * sign}, points=21, switches={"S1": switch})

    def rates(mode: str) -> object:
        """Of the coil's current and |v(out)|; ``free``: the diode conducts; ``idle``: both block."""

        def rate(_: float, x: np.ndarray) -> list[float]:
            i, v = x
            if mode == "on":
                return [(source - r_on * i) / coil, -v / (load * c)]
            if mode == "idle":
                return [(source - r_off * i) / coil, -v / (load * c)]
            leak = (source + v) / r_off if inverting else v / r_off
            return [(-v if inverting else source - v) / coil, (i - leak - v / load) / c]

        return rate

    def empty(_: float, x: np.ndarray) -> float:
        return float(x[0] - ((source + x[1]) / r_off if inverting else x[1] / r_off))

    empty.terminal, empty.direction = True, -1.0  # type: ignore[attr-defined]
    x, t = np.array([0.0, 8.0]), 0.0
    options = {"method": "DOP853", "rtol": 1e-13, "atol": 1e-14}
    for _ in range(20):
        x = solve_ivp(rates("on"), (t, t + on), x, **options).y[:, -1]
        run = solve_ivp(rates("free"), (t + on, t + period), x, events=empty, **options)
        x = run.y[:, -1]
        if run.status == 1:
            # L / Roff is 0.1 ns: the coil carries what the open switch passes.
            x = solve_ivp(rates("idle"), (run.t[-1], t + period), x, "Radau", rtol=1e-11, atol=1e-13).y[:, -1]
        t += period
    assert found.voltage("out")[-1] == pytest.approx(sign * x[1], rel=1e-9)
    assert found.current("L1")[-1] == pytest.approx(x[0], rel=1e-8, abs=1e-10)
