"""Periodic steady states: closed forms, a thousand periods run one after the other, what is refused."""

import math
from pathlib import Path

import numpy as np
import pytest
from helpers import cascade

from circuitsim.errors import ConvergenceError
from circuitsim.netlist import loads
from circuitsim.time_domain import (
    Integral,
    PeriodicResult,
    Pulse,
    Sine,
    measure,
    steady_state,
    transient,
    waveform_gradient,
)
from circuitsim.time_domain.steady import ImplicitPeriodicResult

NETLISTS = Path(__file__).parents[2] / "netlists"
OMEGA = 100.0 * math.pi


RECTIFIER = """bridge with 0.1 Ω, 0.1 H and a capacitor, 500 Ω
V1 a b SIN(0 10 50)
Rs a s 0.1
Rg b 0 1meg
D0 s p
D1 b p
D2 m s
D3 m b
L1 p o 0.1
C1 o m 10m
R1 o m 500
"""


def test_a_linear_filter_in_two_periods() -> None:
    """R = 1 kΩ, C = 500 µF at 50 Hz: deviations take 500 periods to 1e-9; the phasor is the closed form."""
    circuit = loads("t\nV1 in 0 0\nR1 in out 1000\nC1 out 0 0.0005\n").circuit
    found = steady_state(circuit, {"V1": Sine(2.0, 10.0, 50.0)}, initial={"C1": -7.0})
    phasor = 10.0 / (1.0 + 1j * OMEGA * 0.5)
    exact = 2.0 + (phasor * np.exp(1j * OMEGA * found.times)).imag
    assert np.abs(found.voltage("out") - exact).max() <= 1e-12
    assert found.shooting.periods <= 3
    assert found.shooting.multipliers == pytest.approx([math.exp(-0.02 / 0.5)], rel=1e-12)
    assert found.shooting.mismatch < 1e-15


def test_a_rectifier_as_after_a_thousand_periods() -> None:
    found, late = steady_state(loads(RECTIFIER)), transient(loads(RECTIFIER), 20.0, points=2)
    times = np.linspace(0.0, 0.0199, 40)
    assert np.abs(late.voltage("o", "m", times=19.98 + times) - found.voltage("o", "m", times=times)).max() < 1e-11
    slowest = np.abs(found.shooting.multipliers).max()
    assert math.log(1e-9) / math.log(slowest) > 500.0
    assert found.shooting.periods <= 8
    assert found.certificate.certified
    mean = measure(found, "m AVG v(o,m)").value
    assert mean == pytest.approx(500.0 * measure(found, "m AVG i(L1)").value, rel=1e-12)


BUFFERED = "t\nV1 a 0 SIN(2 10 50)\nE1 in 0 a 0 1\nR1 in out 1k\nC1 out 0 {capacitance}\nC0 in 0 0\n.end\n"
PEAK = (
    "t\nV1 a 0 SIN(0 10 1k)\nRs a in 10\nD1 in out DM\nC1 out 0 1u\nRL out 0 {load}\n.model DM D(IS=4n N=1.9)\n.end\n"
)


def test_a_slow_filter_behind_an_amplifier_is_within_its_stated_error() -> None:
    """An error within a period counts 25 times in the periodic state."""
    found = steady_state(loads(BUFFERED.format(capacitance="500u")), accuracy=1e-6)
    phasor = 10.0 / (1.0 + 1j * OMEGA * 0.5)
    exact = 2.0 + (phasor * np.exp(1j * OMEGA * found.times)).imag
    assert isinstance(found, ImplicitPeriodicResult) and found.reason == "E1 is a formula of the time"
    assert found.shooting.multipliers == pytest.approx([math.exp(-0.02 / 0.5)], rel=1e-6)
    off = np.abs(found.voltage("out") - exact).max() / np.abs(exact).max()
    assert off <= 3.0 * found.difference and found.difference <= 1e-6 and not found.warnings


def test_a_rectifier_with_a_junction_diode_as_after_many_periods() -> None:
    deck = loads(PEAK.format(load="2k"))
    found, late = steady_state(deck), transient(deck, 0.012, points=2)
    times = np.linspace(0.0, 1e-3, 40)
    assert np.abs(late.voltage("out", times=0.011 + times) - found.voltage("out", times=times)).max() < 2e-4
    assert found.certificate.certified and found.shooting.periods <= 5


def test_the_gradient_of_a_rectifier_with_a_junction_diode_follows_its_beginning() -> None:
    def mean(load: float) -> PeriodicResult:
        return steady_state(loads(PEAK.format(load=load)), accuracy=1e-5)

    value = Integral("v(out)", 0.0, 1e-3)
    found = waveform_gradient(mean(2000.0), [value], ["RL", "C1"])
    up, down = (measure(mean(load), "area INTEG v(out)").value for load in (2020.0, 1980.0))
    assert found.gradient["RL"] == pytest.approx((up - down) / 40.0, rel=1e-3)


def test_charges_that_jump_every_period() -> None:
    """A square wave steps straight across two capacitors in series; the multiplier is that of the resistor alone."""
    circuit = loads("t\nV1 a 0 0\nC1 a b 1e-06\nC2 b 0 3e-06\nR1 b 0 1000\n").circuit
    found = steady_state(circuit, {"V1": Pulse(0.0, 4.0, 0.0, 0.0, 0.0, 1e-3, 2e-3)})
    decay = math.exp(-1e-3 / 4e-3)
    assert np.sort(np.abs(found.shooting.multipliers)) == pytest.approx([0.0, decay**2], abs=1e-9)
    # The step lifts b by a quarter of 4 V from the value −v/(…) that half a period later is its own negative.
    high = 1.0 / (1.0 + decay)
    assert found.voltage("b", times=[0.0, 1e-3]) == pytest.approx([high, -high], abs=1e-11)


def test_a_charge_that_nothing_changes_stays_as_it_began() -> None:
    circuit = loads("t\nV1 a 0 0\nR1 a b 1000\nC1 b c 1e-06\nC2 c 0 1e-06\n").circuit
    found = steady_state(circuit, {"V1": Sine(0.0, 1.0, 50.0)}, initial={"C1": 3.0, "C2": -1.0})
    gap = found.voltage("b", "c") - found.voltage("c")
    assert gap == pytest.approx(np.full(gap.size, 4.0), abs=1e-10)


def test_a_flux_that_grows_for_ever() -> None:
    circuit = loads("t\nV1 a 0 0\nL1 a 0 1\n").circuit
    with pytest.raises(ConvergenceError, match="charge or flux that grows"):
        steady_state(circuit, {"V1": Sine(1.0, 1.0, 50.0)}, initial={"L1": 0.0})


def test_a_rectifier_with_a_slow_filter_in_five_periods() -> None:
    """Its deviations need 343 periods to fall to 1e-9; 400 periods one after the other end at the same voltage."""
    circuit = loads("t\nV1 a 0 0\nRs a s 10\nD1 s p\nC1 p 0 0.005\nR1 p 0 1000\n").circuit
    wave = {"V1": Sine(0.0, 10.0, 50.0)}
    found = steady_state(circuit, wave)
    assert found.shooting.periods <= 5
    assert found.shooting.multipliers[0].real == pytest.approx(0.9414, abs=1e-4)
    long = transient(circuit, 8.0, wave, points=401)
    assert long.voltage("p")[-1] == pytest.approx(float(found.voltage("p")[0]), abs=1e-8)


def test_cascades_whose_newton_steps_are_shortened() -> None:
    """Full steps discharge them: 24 and 34 periods where these were replaced by plain ones. 400 periods one after the
    other end at the same voltage."""
    decks = [loads(f"cascade\nV1 a 0 SIN(0 10 50)\nRs a t0 10\n{cascade(n, '100u')}RL b{n} 0 10k\n") for n in (3, 5)]
    three, five = map(steady_state, decks)
    assert three.shooting.periods <= 15 and five.shooting.periods <= 15
    long = transient(decks[0], 8.0, points=401)
    assert long.voltage("b3")[-1] == pytest.approx(float(three.voltage("b3")[0]), abs=1e-8)


def test_rise_times_without_a_card() -> None:
    """A thousandth of the period where the pulse states none: it was all of it."""
    deck = "t\nV1 a 0 PULSE(0 4 0 0 0 0.5m 1m)\nR1 a b 1k\nC1 b 0 1u\n"
    swing = measure(steady_state(loads(deck)), "m PP v(b)").value
    share = math.exp(-0.5)  # of half a period
    assert swing == pytest.approx(4.0 * (1.0 - share) / (1.0 + share), rel=2e-3)
