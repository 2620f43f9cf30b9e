"""Curves of two-terminal circuits: against laws, against hand results, and the command."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

import circuitsim
from circuitsim.analysis.curve import curve, device_curve
from circuitsim.cli import main
from circuitsim.errors import UsageError
from circuitsim.models.curve import point
from circuitsim.models.rounded_diode import RoundedDiode
from circuitsim.models.table import Table

REGULATOR = """a regulator
V1 in 0 12
R1 in out 470
D1 0 out zener
RL out 0 1k
.model zener D(Vrev=5.1 Rrev=10 Vfwd=0.7)
"""


def test_breakpoints_of_a_regulator() -> None:
    """The divider holds 5.1 V at out where 7.497 V are at in; above it the Zener's 10 Ω lie beside the load."""
    found = curve(circuitsim.loads(REGULATOR), ("in", "0"), np.linspace(-5.0, 20.0, 11), without=["V1"])
    assert found.breakpoints is not None
    low, high = found.breakpoints
    assert (low.voltage, low.current) == pytest.approx((-0.7 * 1.47, -0.7e-3), rel=1e-12)
    assert (high.voltage, high.current) == pytest.approx((5.1 * 1.47, 5.1e-3), rel=1e-12)
    assert low.above == high.below == pytest.approx(1.0 / 1470.0, rel=1e-12)
    assert high.above == pytest.approx(1.0 / (470.0 + 10e3 / 1010.0), rel=1e-12)
    assert low.below == pytest.approx(1.0 / (470.0 + 1e3 / 1001.0), rel=1e-12)
    v = [-6.0, low.voltage, high.voltage, 21.0]
    i = [
        low.current + (v[0] - low.voltage) * low.below,
        low.current,
        high.current,
        high.current + (v[3] - high.voltage) * high.above,
    ]
    np.testing.assert_allclose(found.points["i"], np.interp(found.points["v(in,0)"], v, i), rtol=1e-12, atol=1e-17)


def test_vertical_and_level_pieces() -> None:
    """A clamp has vertical pieces; points beyond have no bounded current and are marked."""
    circuit = circuitsim.loads("t\nD1 a 0 c\nR1 a 0 1k\n.model c D(Vfwd=2 Vrev=3 Ron=0 Rrev=0)\n")
    found = device_curve(circuit, "D1", [-4.0, -1.0, 1.0, 3.0])
    assert found.breakpoints is not None
    assert [tuple(b) for b in found.breakpoints] == [
        (pytest.approx(-3.0), pytest.approx(0.0, abs=1e-15), math.inf, 0.0),
        (pytest.approx(2.0), pytest.approx(0.0, abs=1e-15), 0.0, math.inf),
    ]
    assert [s.value for s in found.points.status] == ["infeasible", "solved", "solved", "infeasible"]
    limiter = circuitsim.loads("t\nD1 a 0 l\n.model l LIMITER(IMAX=2m RON=100)\n")
    bends = device_curve(limiter, "D1", [0.0, 5.0]).breakpoints
    assert bends is not None and [tuple(b) for b in bends] == [pytest.approx((0.2, 2e-3, 0.01, 0.0))]


def test_a_narrow_piece_is_found() -> None:
    """The diodes change within 1e-6 of the range; no grid of points would show it."""
    circuit = circuitsim.loads(
        "t\nR1 a 0 1k\nD1 a b\nR2 b c 1\nV1 c 0 1\nD2 0 d\nI1 d e 0\nD3 a e\nV2 e f 1.00001\nR3 f 0 1\n"
    )
    bends = curve(circuit, ("a", "0"), [-5.0, 10.0]).breakpoints
    assert bends is not None
    assert [b.voltage for b in bends] == pytest.approx([1.0, 1.00001], rel=1e-12)


def test_smooth_devices_have_points_alone() -> None:
    circuit = circuitsim.loads("t\nD1 a b d\nR1 b 0 1\n.model d D(IS=1n N=1.5 RS=0.5)\n")
    volts = np.linspace(-1.0, 0.9, 39)
    found = device_curve(circuit, "D1", volts)
    assert found.breakpoints is None
    assert not found.points.warnings  # alone it has no path to ground, and needs none
    law = circuit.device_of("D1").law
    np.testing.assert_allclose(found.points["i"], [law(float(v))[0] for v in volts], rtol=1e-9, atol=1e-24)


def test_load_lines_end_on_laws_with_kinks_and_limits() -> None:
    """From zero volts to a point beyond a kink; steps of Newton's method alone alternate between two voltages here."""
    rng = np.random.default_rng(5)
    limited = RoundedDiode(vfwd=0.5863404577551045, ron=4.71, vrev=39.0, ilimit=0.162, revilimit=0.04)
    kinked = Table(v1=-1.0, i1=-1e-9, v2=0.4, i2=1e-9, v3=0.5, i3=0.3, v4=9.0, i4=0.4)
    for device in (limited, kinked):
        row, law = np.array(device.row()), type(device).junction
        for volts in [0.5864366679223761, *rng.uniform(0.3, 3.0, 300).tolist()]:
            amperes = law(row, volts)[0]
            if amperes > 0.0:
                _, v, i, _, _ = point(law, row, volts, amperes, volts / amperes, 0.0)
                assert (v, i) == (pytest.approx(volts, rel=1e-13), pytest.approx(amperes, rel=1e-9))


def test_a_level_piece_ends_at_its_breakpoint() -> None:
    """A load line of 1e90 Ω that meets the rising piece next to the breakpoint: its level neighbour ends there."""
    table = Table(v1=-0.5, i1=0.0, v2=-0.4, i2=0.0, v3=6.0, i3=1e-4)
    for ohms in (1e60, 1e90):
        _, volts, amperes, _, _ = point(type(table).junction, np.array(table.row()), 8.0, 0.0, ohms, 8.0)
        assert volts == pytest.approx(-0.4, rel=1e-14) and amperes == pytest.approx(0.0, abs=1e-20)


def test_errors_say_what_to_do() -> None:
    circuit = circuitsim.loads(REGULATOR)
    with pytest.raises(UsageError, match="V1 fixes the voltage between in and 0; leave it out: --without V1"):
        curve(circuit, ("in", "0"), [0.0, 1.0])
    with pytest.raises(UsageError, match="two different nodes"):
        curve(circuit, ("in", "in"), [0.0])
    sensed = circuitsim.loads("t\nV1 a 0 1\nR1 a b 1\nF1 0 b V1 2\nR2 b 0 1\n")
    with pytest.raises(UsageError, match="V1 cannot be left out: its current controls F1"):
        curve(sensed, ("a", "0"), [0.0], without=["V1"])


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    deck, picture = tmp_path / "my.cir", tmp_path / "my.svg"
    deck.write_text(REGULATOR)
    asked = ["curve", str(deck), "--between", "in", "0", "--without", "V1", "--volts=-5:20:5"]
    assert main([*asked, "--breakpoints", "--plot", str(picture)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "v,i,below,above" and len(lines) == 3 and picture.read_text().startswith("<?xml")
    assert main([*asked, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["between"] == ["in", "0"] and found["breakpoints"][1]["voltage"] == pytest.approx(7.497)
    assert main(["curve", str(deck), "--device", "D1", "--volts=0,1", "--format", "table"]) == 0
    assert "300 mA" in capsys.readouterr().out
    assert main(["curve", str(deck), "--volts=0,1"]) == 2
    assert main(["curve", str(deck), "--device", "D1", "--volts=x"]) == 2
    assert "--volts" in capsys.readouterr().err
