"""Small-signal responses: closed forms, independent dense solutions, tangents of devices, states of diodes."""

from __future__ import annotations

import numpy as np
import pytest

import circuitsim
from circuitsim.errors import ConvergenceError, TopologyError, UsageError
from circuitsim.small_signal import ac

BOLTZMANN, CHARGE = 1.38064852e-23, 1.6021766208e-19


def test_butterworth() -> None:
    f = np.logspace(2, 6, 41)
    found = ac(circuitsim.load("netlists/lowpass-butterworth.cir"), f, {"V1": 1.0})
    s = 1j * f / 1e4
    expected = 0.5 / ((s + 1) * (s * s + s + 1))
    np.testing.assert_allclose(found["out"], expected, rtol=1e-12)
    np.testing.assert_allclose(found.current("Rload"), expected / 600, rtol=1e-12)
    np.testing.assert_allclose(found.current("C2"), 2j * np.pi * f * expected / (2 * np.pi * 1e4 * 600), rtol=1e-12)
    assert found.residuals.max() < 1e-14
    assert found.kinks == ()


def test_diodes_stay_as_they_conduct() -> None:
    text = "diodes\nV1 in 0 {v}\nR1 in a 1k\nD1 a b ideal\nR2 b 0 1k\nC1 b 0 1u\n.model ideal D\n.end"
    f = np.array([10.0, 100.0, 1e4])
    on = ac(circuitsim.loads(text.format(v=2)), f, {"V1": 1.0})
    np.testing.assert_allclose(on["b"], 1 / (2 + 2j * np.pi * f * 1e-3), rtol=1e-12)
    off = ac(circuitsim.loads(text.format(v=-2)), f, {"V1": 1.0})
    np.testing.assert_array_equal(off["b"], 0.0)
    np.testing.assert_allclose(off["a"], 1.0, rtol=1e-12)
    kink = ac(circuitsim.loads(text.format(v=0)), f, {"V1": 1.0})
    assert kink.kinks == ("D1",)


def test_smooth_devices_are_their_tangents() -> None:
    """A junction that carries 1 mA: a resistance of n V_T / I."""
    text = "junction\nI1 0 a 1m\nD1 a 0 dm\nC1 a 0 1n\n.model dm D(is=1e-14 n=1.5)\n.end"
    f = np.array([1e3, 1e6, 1e7])
    found = ac(circuitsim.loads(text), f, {"I1": 1.0})
    volts = 1.5 * BOLTZMANN * 300.15 / CHARGE
    slope = (1e-3 + 1e-14) / volts
    np.testing.assert_allclose(found["a"], 1 / (slope + 2j * np.pi * f * 1e-9), rtol=1e-9)
    np.testing.assert_allclose(found.current("D1"), slope * found["a"], rtol=1e-9)


def test_piecewise_linear_devices_have_the_slope_of_their_region() -> None:
    text = "zener\nV1 in 0 10\nR1 in a 1k\nD1 0 a z\nC1 a 0 1u\n.model z D(Vrev=5 Rrev=10 Ron=0.1 Roff=1G)\n.end"
    f = np.array([1.0, 1e3, 1e5])
    found = ac(circuitsim.loads(text), f, {"V1": 1.0})
    np.testing.assert_allclose(found["a"], 1e-3 / (1e-3 + 0.1 + 2j * np.pi * f * 1e-6), rtol=1e-9)
    np.testing.assert_allclose(found.current("D1"), -found["a"] / 10, rtol=1e-9)


def test_parts_that_only_capacitors_tie() -> None:
    divider = circuitsim.loads("capacitors\nV1 in 0 1\nC1 in a 1n\nC2 a 0 3n\n.end")
    found = ac(divider, [1.0, 1e9], {"V1": 1.0})
    np.testing.assert_allclose(found["a"], 0.25, rtol=1e-14)
    with pytest.raises(ConvergenceError, match="at 0 Hz the small-signal equations have no single solution"):
        ac(divider, [0.0], {"V1": 1.0})


def test_an_undamped_resonance_has_no_response() -> None:
    tank = circuitsim.loads("tank\nI1 0 a 0\nL1 a 0 1\nC1 a 0 1\nR1 b 0 1\nV1 b 0 0\n.end")
    assert np.isfinite(ac(tank, [0.1], {"I1": 1.0})["a"]).all()
    with pytest.raises(ConvergenceError, match="resonance without resistance"):
        ac(tank, [0.5 / np.pi], {"I1": 1.0}, tolerance=1e-30)


@pytest.mark.parametrize(
    ("frequencies", "sources", "error", "message"),
    [
        ([-1.0], {"V1": 1.0}, UsageError, "finite and not negative"),
        ([], {"V1": 1.0}, UsageError, "finite and not negative"),
        ([1.0], {}, UsageError, "no source has an amplitude"),
        ([1.0], {"Rload": 1.0}, UsageError, "Rload is no independent source"),
        ([1.0], {"V1": complex("nan")}, UsageError, "amplitude of V1 is not finite"),
        ([1.0], {"V9": 1.0}, TopologyError, "V9"),
    ],
)
def test_wrong_arguments(frequencies: list, sources: dict, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        ac(circuitsim.load("netlists/lowpass-butterworth.cir"), frequencies, sources)
