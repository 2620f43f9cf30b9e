"""Curves of two-terminal circuits: against laws and hand results; load lines that meet kinks and level pieces."""

import math

import numpy as np
import pytest
from helpers import loaded, solved

import circuitsim
from circuitsim.analysis.curve import curve, device_curve
from circuitsim.models.curve import load_line
from circuitsim.models.junction_diode import BASE, RATE, JunctionDiode, junction

REGULATOR = "V1 in 0 12\nR1 in out 470\nD1 0 out z\nRL out 0 1k\n.model z D(Vrev=5.1 Rrev=10 Vfwd=0.7)"


def test_breakpoints_of_a_regulator() -> None:
    """The divider holds 5.1 V at out where 7.497 V are at in; above it the Zener's 10 Ω lie beside the load."""
    found = curve(loaded(REGULATOR), ("in", "0"), np.linspace(-5.0, 20.0, 11), without=["V1"])
    assert found.breakpoints is not None
    low, high = found.breakpoints
    assert (low.voltage, low.current) == pytest.approx((-0.7 * 1.47, -0.7e-3), rel=1e-12)
    assert (high.voltage, high.current) == pytest.approx((5.1 * 1.47, 5.1e-3), rel=1e-12)
    assert low.above == high.below == pytest.approx(1.0 / 1470.0, rel=1e-12)
    assert high.above == pytest.approx(1.0 / (470.0 + 10e3 / 1010.0), rel=1e-12)
    assert low.below == pytest.approx(1.0 / (470.0 + 1e3 / 1001.0), rel=1e-12)
    v = [-6.0, low.voltage, high.voltage, 21.0]
    i = [low.current + (v[0] - v[1]) * low.below, low.current, high.current, high.current + (v[3] - v[2]) * high.above]
    np.testing.assert_allclose(found.points["i"], np.interp(found.points["v(in,0)"], v, i), rtol=1e-12, atol=1e-17)


def test_vertical_level_and_narrow_pieces() -> None:
    """A clamp has vertical pieces; points beyond have no bounded current and are marked."""
    clamp = loaded("D1 a 0 c\nR1 a 0 1k\n.model c D(Vfwd=2 Vrev=3 Ron=0 Rrev=0)")
    found = device_curve(clamp, "D1", [-4.0, -1.0, 1.0, 3.0])
    assert found.breakpoints is not None
    zero = pytest.approx(0.0, abs=1e-15)
    expected = [(pytest.approx(-3.0), zero, math.inf, 0.0), (pytest.approx(2.0), zero, 0.0, math.inf)]
    assert [tuple(b) for b in found.breakpoints] == expected
    assert [s.value for s in found.points.status] == ["infeasible", "solved", "solved", "infeasible"]
    bends = device_curve(loaded("D1 a 0 l\n.model l LIMITER(IMAX=2m RON=100)"), "D1", [0.0, 5.0]).breakpoints
    assert bends is not None and [tuple(b) for b in bends] == [pytest.approx((0.2, 2e-3, 0.01, 0.0))]
    # The diodes change within 1e-6 of the range; no grid of points would show it.
    narrow = "R1 a 0 1k\nD1 a b\nR2 b c 1\nV1 c 0 1\nD2 0 d\nI1 d e 0\nD3 a e\nV2 e f 1.00001\nR3 f 0 1"
    bends = curve(loaded(narrow), ("a", "0"), [-5.0, 10.0]).breakpoints
    assert bends is not None and [b.voltage for b in bends] == pytest.approx([1.0, 1.00001], rel=1e-12)


def test_smooth_devices_have_points_alone() -> None:
    circuit = loaded("D1 a b d\nR1 b 0 1\n.model d D(IS=1n N=1.5 RS=0.5)")
    volts = np.linspace(-1.0, 0.9, 39)
    found = device_curve(circuit, "D1", volts)
    assert found.breakpoints is None
    assert not found.points.warnings  # alone it has no path to ground, and needs none
    alone = circuitsim.sweep(loaded("V1 a 0 0\nD1 a 0 d\n.model d D(IS=1n N=1.5 RS=0.5)"), {"V1": volts}, "i(D1)")
    np.testing.assert_allclose(found.points["i"], alone["i(D1)"], rtol=1e-9, atol=1e-24)


@pytest.mark.parametrize(
    "model",
    [
        "D(vfwd=0.5863404577551045 ron=4.71 vrev=39 ilimit=0.162 revilimit=0.04)",
        "PWL(-1 -1n 0.4 1n 0.5 0.3 9 0.4)",
    ],
)
def test_load_lines_end_on_laws_with_kinks_and_limits(model: str) -> None:
    """From zero volts to a point beyond a kink, where steps of Newton's method alone alternate between two voltages."""
    places = [0.5864366679223761, *np.random.default_rng(5).uniform(0.3, 3.0, 100).tolist()]
    law = circuitsim.sweep(loaded(f"V1 a 0 0\nD1 a 0 d\n.model d {model}"), {"V1": places}, "i(D1)")["i(D1)"]
    ready = circuitsim.prepared(loaded(f"V1 in 0 0\nR1 in a 1\nD1 a 0 d\n.model d {model}"))
    for volts, amperes in [(v, i) for v, i in zip(places, law.tolist()) if i > 0.0]:
        point = ready.solve({"V1": 2.0 * volts, "R1": volts / amperes})
        assert point["a"] == pytest.approx(volts, rel=1e-12) and point.current("D1") == pytest.approx(amperes, rel=1e-9)


@pytest.mark.parametrize("ohms", [1e60, 1e90])
def test_a_level_piece_ends_at_its_breakpoint(ohms: float) -> None:
    """A load line that meets the rising piece next to the breakpoint: its level neighbour ends there."""
    point = solved(f"V1 in 0 8\nR1 in a {ohms}\nD1 a 0 t\n.model t PWL(-0.5 0 -0.4 0 6 0.1m)")
    assert point["a"] == pytest.approx(-0.4, rel=1e-14) and point.current("D1") == pytest.approx(0.0, abs=1e-20)


@pytest.mark.parametrize("ohms", [1.0, 8672.31, 16180.5, 1e9])
@pytest.mark.parametrize("begin", [-5.0, 0.0976, 0.6])
def test_a_charge_that_leaves_a_junction_meets_any_load_line(ohms: float, begin: float) -> None:
    """In a stage over time a charge drives the current: far above its voltage, the law is an exponential of it."""
    device = loaded("D1 a 0 d\n.model d D(IS=1n N=1.05 RS=0.02 CJO=100p)").devices[0]
    assert isinstance(device, JunctionDiode)
    row = np.array(device.row())
    row[RATE], row[BASE] = 1.86e8, 2.5366e-11
    u, j, _ = load_line(junction, row, 0.1167, ohms, begin)
    assert u + ohms * j == pytest.approx(0.1167, rel=1e-9, abs=1e-12 * ohms)
