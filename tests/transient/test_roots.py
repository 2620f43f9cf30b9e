"""The first root of several waveforms on a window, and how long windows are."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from numpy.polynomial import chebyshev

from circuitsim import Circuit
from circuitsim.time_domain import Sine, loop, transient
from circuitsim.time_domain.kernels import KERNELS, time_kernel
from circuitsim.time_domain.roots import POINTS, first_root


@pytest.mark.parametrize("seed", range(40))
def test_the_first_root_of_several_waveforms(seed: int) -> None:
    """Against the eigenvalues of companion matrices, whatever the order of the waveforms."""
    rng = np.random.default_rng(seed)
    series = np.zeros((6, POINTS))
    series[:, :14] = rng.normal(size=(6, 14)) * 0.8 ** np.arange(14)
    left = chebyshev.chebval(-1.0, series.T)
    series *= np.where(left < 0.0, -1.0, 1.0)[:, None]
    expected, which = np.inf, -1
    for k, row in enumerate(series):
        roots = chebyshev.chebroots(row[:14])
        shares = 0.5 * (1.0 + roots.real[(abs(roots.imag) < 1e-9) & (abs(roots.real) < 1.0)])
        if shares.size and shares.min() < expected:
            expected, which = shares.min(), k
    for order in (np.arange(6), np.arange(6)[::-1]):
        share, found = first_root(series[order], np.zeros(6, dtype=np.int64), np.ones(6))
        assert share == pytest.approx(expected, abs=1e-12)
        assert (int(order[found]) if found >= 0 else -1) == which


def test_windows_are_about_as_long_as_the_next_event_is_away() -> None:
    """Three phases, six diodes: twice the longest time between two events, up to a power of two."""
    circuit, waves = Circuit("six pulses"), {}
    for k in range(3):
        circuit.voltage_source(f"V{k}", f"a{k}", "0", 0.0)
        circuit.resistor(f"R{k}", f"a{k}", f"s{k}", 0.5)
        circuit.diode(f"DP{k}", f"s{k}", "p")
        circuit.diode(f"DM{k}", "m", f"s{k}")
        waves[f"V{k}"] = Sine(0.0, 10.0, 50.0, phase=-120.0 * k)
    circuit.add("C", "C1", "p", "m", 1e-4)
    circuit.resistor("RL", "p", "m", 100.0)
    found = transient(circuit, 0.2, waves, {}, method="exact")
    times = np.array([event.time for event in found.events])
    late = found.segments.start > 0.04
    lengths = np.ldexp(1.0, found.segments.library.exponent - found.segments.halvings)
    assert times.size == 120  # a pair turns on, and off, at one time
    assert lengths[late].max() <= 4.0 * np.diff(times[times > 0.02]).max()
    assert late.sum() <= 1.5 * (times > 0.04).sum()  # two windows for the longer of two distances between events


def test_windows_are_seldom_tried_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """After an event in a cascade one part decays ten thousand times faster than the next events come: rates tell how
    short the window has to be, before any series is computed."""
    circuit, lower, upper = Circuit("cascade"), "0", "s"
    circuit.voltage_source("V1", "a", "0", 0.0)
    circuit.resistor("Rs", "a", "s", 10.0)
    for k in range(4):
        circuit.add("C", f"CA{k}", upper, f"u{k}", 1e-6)
        circuit.diode(f"DA{k}", lower, f"u{k}")
        circuit.diode(f"DB{k}", f"u{k}", f"l{k}")
        circuit.add("C", f"CB{k}", lower, f"l{k}", 1e-6)
        lower, upper = f"l{k}", f"u{k}"
    circuit.resistor("RL", lower, "0", 1e7)
    tries, stretch = Counter[bool](), loop.decay_stretch

    def counted(*arguments: object) -> int:
        more = stretch(*arguments)
        tries[more == 0] += 1
        return int(more)

    monkeypatch.setattr(loop, "decay_stretch", counted)
    monkeypatch.setattr(time_kernel, "_ready", {name: time_kernel.plain(name) for name in KERNELS})
    found = transient(circuit, 0.06, {"V1": Sine(0.0, 10.0, 50.0)}, {}, method="exact")
    windows = found.segments.start.size
    assert tries[True] == windows > 30
    assert tries[False] <= 0.1 * windows
