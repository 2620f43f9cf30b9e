"""Values of sources one time after the other and of many times at once, and the times at which they turn switches."""

from __future__ import annotations

import numpy as np
import pytest

from circuitsim.circuit.waveforms import (
    AmplitudeModulation,
    Constant,
    Exponential,
    PiecewiseLinear,
    Pulse,
    Sine,
)
from circuitsim.netlist import loads
from circuitsim.time_domain import implicit, transient

WAVES = [
    Pulse(-1.0, 2.0, 0.3e-3, 1e-5, 2e-5, 0.2e-3, 0.7e-3, 5),
    Pulse(0.0, 1.0, 0.0, 0.0, 0.0, 1e-3, 2e-3),
    PiecewiseLinear([0.0, 1e-3, 1e-3, 3e-3], [0.0, 1.0, -1.0, 2.0]),
    PiecewiseLinear([0.5e-3, 1e-3, 1.7e-3], [0.0, 1.0, 0.0], 0.5e-3),
    Sine(1.0, 3.0, 1e3, 0.4e-3, 200.0, 30.0),
    Exponential(0.0, 5.0, 1e-3, 1e-4, 3e-3, 2e-4),
    AmplitudeModulation(1.0, 1.0, 100.0, 2e3, 1e-3),
    Constant(4.0),
]


@pytest.mark.parametrize("order", ["ascending", "any"])
def test_values_are_those_of_the_waveforms(order: str) -> None:
    rng = np.random.default_rng(3)
    corners = np.concatenate([wave.corners(0.0, 6e-3, 100) for wave in WAVES])
    times = np.concatenate([rng.uniform(0.0, 6e-3, 400), corners, np.nextafter(corners, 0.0)])
    if order == "ascending":
        times.sort()
    for time in times.tolist():
        for wave in WAVES:
            np.testing.assert_allclose(wave.value(time), wave.at(np.array([time]))[0], rtol=0.0, atol=2e-13)


def test_many_corners() -> None:
    rng = np.random.default_rng(4)
    at = np.sort(rng.uniform(0.0, 1.0, 5000))
    wave = PiecewiseLinear(at, rng.standard_normal(at.size))
    times = np.linspace(0.0, 1.0, 7001)
    np.testing.assert_allclose([wave.value(t) for t in times.tolist()], np.interp(times, at, wave.values), atol=1e-9)


def test_a_converter_takes_few_attempts_to_find_its_turns(monkeypatch) -> None:
    """Each event by the gate is where the ramp crosses the threshold; steps are counted, not seconds."""
    deck = (
        "boost\nV1 in 0 5\nL1 in x 100u\nS1 x 0 g 0 SW\nD1 x out DI\nC1 out 0 47u IC=5\nR1 out 0 50\n"
        "Vg g 0 PULSE(0 1 0 10n 10n 5u 10u)\n.model SW SW(VT=0.5 VH=0.1 RON=10m ROFF=1Meg)\n"
        ".model DI D(IS=1e-9 N=0.5)\n.tran 1u 100u UIC\n"
    )
    attempts = []
    step = implicit.runge_kutta_step
    monkeypatch.setattr(implicit, "runge_kutta_step", lambda *given: attempts.append(1) or step(*given))
    run = transient(loads(deck))
    turned = [event for event in run.events if event.changed[0][1:] == "S1"]
    assert len(turned) == 20
    for number, event in enumerate(turned):
        edge = 1e-5 * (number // 2) + (6e-9 if number % 2 == 0 else 5.01e-6 + 6e-9)
        assert event.time == pytest.approx(edge, abs=2e-14) and event.error < 2e-14
    assert len(attempts) < 240 and run.steps < 100


def test_no_corner_of_a_pulse_cut_short_is_left_out() -> None:
    wave = Pulse(0.0, 1.0, 0.0, 0.5, 0.0, 5.0, 2.0)
    assert wave.corners(0.0, 4000.0, 1500).tolist() == [2.0 * (k // 2) + 0.5 * (k % 2) for k in range(1, 1501)]
    assert wave.at(np.array([2.0, 2.25, 2.5, 3.9])).tolist() == [0.0, 0.5, 1.0, 1.0]
