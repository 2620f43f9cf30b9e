"""Waveforms against closed forms and against an independent integrator, to 1e-9 of the largest value."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from circuitsim import loads
from circuitsim.time_domain import PiecewiseLinear, Pulse, Sine, transient

OMEGA = 2.0 * math.pi * 50.0


def test_half_wave_rectifier_with_capacitor() -> None:
    """The capacitor follows the source until the diode's current is zero, then decays until both meet again."""
    r, c = 1e3, 1e-5
    circuit = loads(f"t\nV1 in 0 0\nD1 in out\nC1 out 0 {c}\nR1 out 0 {r}\n").circuit
    found = transient(circuit, 0.04, {"V1": Sine(0.0, 10.0, 50.0)}, points=401)
    off = (math.pi - math.atan(OMEGA * r * c)) / OMEGA
    level = 10.0 * math.sin(OMEGA * off)
    on = brentq(lambda t: level * math.exp(-(t - off) / (r * c)) - 10.0 * math.sin(OMEGA * t), 0.02, 0.025, xtol=1e-16)
    t = found.times
    decay = level * np.exp(-(np.mod(t - off, 0.02)) / (r * c))
    conducts = (t < off) | ((t > on) & (t < off + 0.02))
    exact = np.where(conducts, 10.0 * np.sin(OMEGA * t), decay)
    assert np.abs(found.voltage("out") - exact).max() < 1e-9
    times = [event.time for event in found.events]
    assert times == pytest.approx([off, on, off + 0.02], abs=1e-15)
    assert [event.changed for event in found.events] == [("-D1",), ("+D1",), ("-D1",)]
    assert found.certificate.certified and found.energies.imbalance < 1e-12


def test_half_wave_rectifier_with_inductor() -> None:
    """i = V/Z (sin(ωt − φ) + sin φ e^{−t/τ}) until it is zero."""
    r, coil = 10.0, 0.05
    circuit = loads(f"t\nV1 in 0 0\nR1 in a {r}\nL1 a b {coil}\nD1 b 0\n").circuit
    found = transient(circuit, 0.02, {"V1": Sine(0.0, 10.0, 50.0)}, points=201)
    z, phi = math.hypot(r, OMEGA * coil), math.atan2(OMEGA * coil, r)

    def wave(t: np.ndarray | float) -> np.ndarray | float:
        return 10.0 / z * (np.sin(OMEGA * t - phi) + math.sin(phi) * np.exp(-t * r / coil))

    end = brentq(wave, 0.01, 0.0199, xtol=1e-16)
    exact = np.where(found.times < end, wave(found.times), 0.0)
    assert np.abs(found.current("L1") - exact).max() < 1e-11
    assert found.events[0].time == pytest.approx(end, abs=1e-14)


def test_tank_with_bridge() -> None:
    """A bridge with a resistor loads the tank as the resistor alone would: a damped oscillation in closed form."""
    c, coil, r = 1e-6, 1e-2, 1e3
    circuit = loads(f"t\nL1 a b {coil}\nC1 a b {c}\n").circuit
    for name, first, second in (("D1", "a", "p"), ("D2", "b", "p"), ("D3", "m", "a"), ("D4", "m", "b")):
        circuit.diode(name, first, second)
    circuit.resistor("R1", "p", "m", r)
    circuit.resistor("R2", "m", "0", 1e3)
    found = transient(circuit, 5e-3, initial={"C1": 10.0}, points=501)
    damping, t = 1.0 / (2.0 * r * c), found.times
    omega = math.sqrt(1.0 / (coil * c) - damping**2)
    exact = 10.0 * np.exp(-damping * t) * (np.cos(omega * t) - damping / omega * np.sin(omega * t))
    assert np.abs(found.voltage("a", "b") - exact).max() < 1e-11
    assert np.abs(found.voltage("p", "m") - np.abs(exact)).max() < 1e-11
    assert len(found.events) == 16
    assert all(len(event.changed) == 4 for event in found.events)


def test_charge_sharing() -> None:
    """A diode between two charged capacitors conducts in no time; half of the reduced energy is lost."""
    circuit = loads("t\nC1 a 0 2e-06\nC2 b 0 1e-06\nD1 a b\nR1 b 0 1000\n").circuit
    found = transient(circuit, 1e-3, initial={"C1": 9.0}, points=11)
    exact = 6.0 * np.exp(-found.times / 3e-3)
    assert np.abs(found.voltage("b") - exact).max() < 1e-13
    assert found.energies.lost == pytest.approx(0.5 * (2e-6 * 1e-6 / 3e-6) * 81.0, rel=1e-14)


def test_source_step_into_a_capacitor() -> None:
    """A step across a diode and a capacitor: the source delivers C V², half of it is lost."""
    circuit = loads("t\nV1 s 0 0\nD1 s a\nC1 a 0 1e-06\nR1 a 0 1000000\n").circuit
    found = transient(circuit, 2e-3, {"V1": Pulse(0.0, 5.0, 1e-3)}, points=21)
    assert [event.energy_lost for event in found.events] == pytest.approx([12.5e-6], rel=1e-12)
    assert found.voltage("a")[-1] == pytest.approx(5.0, rel=1e-15)


def test_inductor_interrupted_into_a_diode() -> None:
    """The current goes on through the diode and its resistor."""
    circuit = loads("t\nI1 0 a 0\nL1 a 0 0.001\nD1 0 b\nR1 b a 10\nR2 a 0 100000\n").circuit
    found = transient(circuit, 5e-4, {"I1": Pulse(1.0, 0.0, 1e-4)}, points=51)
    exact = np.where(found.times < 1e-4, 1.0, np.exp(-(found.times - 1e-4) * (1.0 / (1.0 / 10.0 + 1e-5)) / 1e-3))
    assert np.abs(found.current("L1") - exact).max() < 1e-12


def test_energies_beside_a_spike_of_megavolts() -> None:
    """An inductor of 0.3 A is interrupted into 10 megohms; beside it 12 V charge a capacitor on one long window."""
    circuit = loads("spike\nL1 0 a 1e-06\nR1 a 0 10000000\nV2 s 0 12\nR2 s b 100\nC2 b 0 1e-09\n").circuit
    energies = transient(circuit, 5e-6, initial={"L1": 0.3, "C2": 0.0}).energies
    charged = 1e-9 * 12.0**2 * (1.0 - math.exp(-5e-6 / 1e-7))
    lost = 0.5 * 1e-6 * 0.3**2 + 0.5 * 1e-9 * 12.0**2 * (1.0 - math.exp(-2.0 * 5e-6 / 1e-7))
    assert math.isclose(energies.delivered, charged, rel_tol=1e-11)
    assert math.isclose(energies.dissipated, lost, rel_tol=1e-11)


def test_inductor_cut_by_a_current_source() -> None:
    """A coil in series with a source that steps: the step's flux is energy that the source gives and nobody takes."""
    circuit = loads("t\nI1 0 a 0\nL1 a b 0.002\nR1 b 0 5\n").circuit
    found = transient(circuit, 2e-3, {"I1": Pulse(0.0, 3.0, 1e-3)}, points=21)
    assert found.current("L1")[-1] == pytest.approx(3.0, rel=1e-15)
    assert found.energies.lost == pytest.approx(0.5 * 2e-3 * 9.0, rel=1e-12)
    assert found.certificate.certified


def test_voltage_doubler_without_load() -> None:
    """The output approaches twice the amplitude."""
    circuit = loads("t\nV1 s 0 0\nC1 s a 1e-06\nD1 0 a\nD2 a b\nC2 b 0 1e-06\n").circuit
    found = transient(circuit, 1.0, {"V1": Sine(0.0, 5.0, 50.0)}, points=11)
    assert found.voltage("b")[-1] == pytest.approx(10.0, rel=1e-12)


def test_repeated_corners() -> None:
    """A triangle that repeats, across a resistor and a diode."""
    circuit = loads("t\nV1 s 0 0\nD1 s a\nR1 a 0 1\nC1 s 0 1e-09\n").circuit
    wave = PiecewiseLinear([0.0, 1.0, 3.0, 4.0], [0.0, 1.0, -1.0, 0.0], repeat_from=0.0)
    found = transient(circuit, 8.0, {"V1": wave}, points=81)
    phase = np.mod(found.times, 4.0)
    exact = np.interp(phase, [0.0, 1.0, 3.0, 4.0], [0.0, 1.0, -1.0, 0.0])
    assert np.abs(found.voltage("a") - np.maximum(exact, 0.0)).max() < 1e-14
    assert [event.time for event in found.events][:4] == pytest.approx([2.0, 4.0, 6.0, 8.0][:4], abs=1e-14)


@pytest.mark.parametrize("rate", [1e-9, 1e-3, 1.0, 7.0, 1e3, 1e9])
def test_a_filter_from_slow_to_fast(rate: float) -> None:
    """v' = λ (sin ωt − v) from 0.7 V."""
    circuit = loads(f"t\nV1 in 0 0\nR1 in a {1.0 / rate}\nC1 a 0 1\n").circuit
    omega = 1.5
    found = transient(circuit, 6.0, {"V1": Sine(0.0, 1.0, omega / math.tau)}, {"C1": 0.7}, points=121)
    t, size = found.times, rate**2 + omega**2
    forced = rate * (rate * np.sin(omega * t) - omega * np.cos(omega * t)) / size
    exact = forced + (0.7 + rate * omega / size) * np.exp(-rate * t)
    assert np.abs(found.voltage("a") - exact).max() < 1e-13
    assert found.current("R1", t[1:]) == pytest.approx(rate * (np.sin(omega * t) - exact)[1:], abs=1e-12 * rate)


def test_rates_ten_decades_apart() -> None:
    """1 pF behind 1 Ω beside 1 mF behind 10 kΩ, one after the other: the slow one to 1e-12."""
    circuit = loads("t\nV1 in 0 5\nR1 in a 10000\nC1 a 0 0.001\nR2 a b 1\nC2 b 0 1e-12\n").circuit
    found = transient(circuit, 20.0, {"V1": Sine(1.0, 4.0, 0.05, phase=90.0)}, {}, points=101)
    assert found.certificate.certified
    omega, tau = 2.0 * math.pi * 0.05, 10.0
    t = found.times
    steady = 1.0 - np.exp(-t / tau)
    driven = np.cos(omega * t) + omega * tau * np.sin(omega * t) - np.exp(-t / tau)
    steady += 4.0 / (1.0 + (omega * tau) ** 2) * driven
    assert np.abs(found.voltage("a") - steady).max() < 2e-8  # 1 pF beside 1 mF
    assert np.abs(found.current("R2", t[1:]) - 1e-12 * np.gradient(steady, t)[1:]).max() < 1e-13
