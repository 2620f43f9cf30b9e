"""Values of sources one time after the other and of many times at once, and the times at which they turn switches."""

from __future__ import annotations

import numpy as np

from circuitsim.circuit.waveforms import (
    PiecewiseLinear,
    Pulse,
)


def test_many_corners() -> None:
    rng = np.random.default_rng(4)
    at = np.sort(rng.uniform(0.0, 1.0, 5000))
    wave = PiecewiseLinear(at, rng.standard_normal(at.size))
    times = np.linspace(0.0, 1.0, 7001)
    np.testing.assert_allclose([wave.value(t) for t in times.tolist()], np.interp(times, at, wave.values), atol=1e-9)


def test_no_corner_of_a_pulse_cut_short_is_left_out() -> None:
    wave = Pulse(0.0, 1.0, 0.0, 0.5, 0.0, 5.0, 2.0)
    assert wave.corners(0.0, 4000.0, 1500).tolist() == [2.0 * (k // 2) + 0.5 * (k % 2) for k in range(1, 1501)]
    assert wave.at(np.array([2.0, 2.25, 2.5, 3.9])).tolist() == [0.0, 0.5, 1.0, 1.0]
