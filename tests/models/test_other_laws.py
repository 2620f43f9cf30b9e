"""Varistor, sinh cell, table, limiter, rounded diode: documented laws, bisection by hand, decks, refusals."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from bisection import device_voltage

import circuitsim
from circuitsim import netlist
from circuitsim.errors import InfeasibleError, NetlistError, UnboundedError
from circuitsim.models.smooth import SmoothDevice

Law = Callable[[float], float]


def rounded(v: float) -> float:
    """D(Vfwd=0.6 Ron=0.5 Epsilon=0.2 Roff=1k Vrev=5 Rrev=2 RevEpsilon=0.4 RevIlimit=3), two in a row, three beside."""
    u, goff = v / 2.0, 1e-3
    sign, knee, resistance, width = (1.0, 0.6, 0.5, 0.2) if u >= 0.0 else (-1.0, 5.0, 2.0, 0.4)
    x, current = abs(u) - knee, abs(u) * goff
    if x > 0.0:
        extra = 1.0 / resistance - goff
        current += extra * (x - width / 2.0) if x > width else extra * x * x / (2.0 * width)
    if u < 0.0:
        current = 3.0 * math.tanh(current / 3.0)
    return 3.0 * sign * current


def limited(v: float) -> float:
    """D(Ron=0.1 Ilimit=2) with Roff=1MEG."""
    current = abs(v) * 1e-6 + (v * (10.0 - 1e-6) if v > 0.0 else 0.0)
    return 2.0 * math.tanh(current / 2.0) if v > 0.0 else -current


LAWS: dict[str, tuple[str, str, Law]] = {
    "varistor": ("VARISTOR(VNOM=18 INOM=1m ALPHA=25)", "m=2", lambda v: math.copysign(2e-3 * (abs(v) / 18) ** 25, v)),
    "sinh": ("SINH(G=1u V0=0.2)", "", lambda v: 2e-7 * math.sinh(v / 0.2)),
    "table": (
        "PWL(-3 -1m -1 0 2 0 3 10m 5 11m)",
        "m=3",
        lambda v: (
            3.0 * float(np.interp(v, [-3, -1, 2, 3, 5, 105], [-1e-3, 0, 0, 1e-2, 1.1e-2, 6.1e-2]))
            if v > -3.0
            else 3.0 * (-1e-3 + (v + 3.0) * 5e-4)
        ),
    ),
    "rounded": ("D(Vfwd=0.6 Ron=0.5 Epsilon=0.2 Roff=1k Vrev=5 Rrev=2 RevEpsilon=0.4 RevIlimit=3)", "m=3 n=2", rounded),
    "limited": ("D(Ron=0.1 Ilimit=2 Roff=1MEG)", "", limited),
}


@pytest.mark.parametrize("name", LAWS)
def test_bisection_by_hand(name: str) -> None:
    model, own, law = LAWS[name]
    c = netlist.loads(f"t\nV1 in 0 0\nR1 in a 1\nD1 a 0 x {own}\n.model x {model}\n")
    for volts in (60.0, 12.0, 2.5, 1e-3, -0.7, -3.0, -20.0):
        for ohms in (0.5, 100.0, 1e6):
            point = circuitsim.solve(c.with_values({"V1": volts, "R1": ohms}))
            voltage = device_voltage(law, volts, ohms)
            assert point["a"] == pytest.approx(voltage, rel=2e-12, abs=1e-15 * abs(volts))
            # Where the device takes nearly all of the voltage its law tells the current, else the resistor.
            current = law(voltage) if abs(voltage) > 0.9 * abs(volts) else (volts - voltage) / ohms
            assert point.current("D1") == pytest.approx(current, rel=1e-9, abs=1e-14 * abs(volts) / ohms)
    assert netlist.loads(netlist.dumps(c)).devices == c.devices


@pytest.mark.parametrize("name", LAWS)
def test_energy(name: str) -> None:
    model, own, law = LAWS[name]
    device = netlist.loads(f"t\nV1 in 0 0\nD1 in 0 x {own}\n.model x {model}\n").device_of("D1")
    for volts in (2.5, 4.0, -1.5, -12.0):
        steps = np.linspace(0.0, volts, 20_001)
        integral = np.trapezoid([law(v) for v in steps.tolist()], steps)
        assert device.energy(volts) == pytest.approx(integral, rel=1e-5)


@pytest.mark.parametrize("name", LAWS)
def test_currents_at_many_voltages(name: str) -> None:
    model, own, law = LAWS[name]
    device = netlist.loads(f"t\nV1 in 0 0\nD1 in 0 x {own}\n.model x {model}\n").device_of("D1")
    if isinstance(device, SmoothDevice):
        volts = np.linspace(-13.0, 13.0, 522).reshape(2, -1)
        expected = np.array([law(v) for v in volts.ravel().tolist()]).reshape(2, -1)
        np.testing.assert_allclose(device.junction_currents(volts), expected, rtol=1e-12)


def test_the_limiter() -> None:
    c = netlist.loads("t\nV1 in 0 0\nR1 in a 10\nD1 a 0 x m=2\n.model x LIMITER(IMAX=1 IREV=0.25 RON=10)\n")
    expected = [(60.0, 2.0, "limiting"), (6.0, 0.4, "passing"), (-3.0, -0.2, "passing")]
    expected += [(-90.0, -0.5, "limiting in reverse")]
    for volts, current, state in expected:
        point = circuitsim.solve(c.with_values({"V1": volts}))
        assert point.current("D1") == pytest.approx(current, rel=1e-13) and point.state("D1") == state
    stuck = netlist.loads("t\nI1 0 a 3\nD1 a 0 x\n.model x LIMITER(IMAX=1)\n")
    with pytest.raises(UnboundedError) as error:
        circuitsim.solve(stuck)
    assert "D1" in error.value.elements


def test_a_smooth_limit_in_a_cut_is_named() -> None:
    c = netlist.loads("t\nI1 0 a 3\nD1 a 0 x\n.model x D(Ron=0.1 Ilimit=2)\n")
    with pytest.raises(UnboundedError, match="D1 passes at least 0 A and at most 2 A"):
        circuitsim.solve(c)
    level = netlist.loads("t\nI1 0 a 3\nD1 a 0 x\n.model x PWL(0 0 1 1 2 1)\n")
    with pytest.raises(UnboundedError, match="D1 passes at most 1 A"):
        circuitsim.solve(level)


def test_an_ideal_clamp() -> None:
    c = netlist.loads("t\nV1 in 0 9\nR1 in a 10\nD1 a 0 x\n.model x D(Vfwd=2 Vrev=3 Ron=0 Rrev=0)\n")
    assert circuitsim.solve(c)["a"] == 2.0 and circuitsim.solve(c.with_values({"V1": -9.0}))["a"] == -3.0
    with pytest.raises(InfeasibleError):
        circuitsim.solve(netlist.loads("t\nV1 a 0 9\nD1 a 0 x\n.model x D(Vfwd=2 Vrev=3 Ron=0 Rrev=0)\n"))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("PWL(0 0 1 1m 2 0.5m)", "its current falls from 0.001 to 0.0005 A between 1 and 2 V: no monotone law"),
        ("PWL(0 0 1 1m 1 2m)", "its voltages must rise: 1 V comes after 1 V"),
        ("PWL(0 0)", "a table needs at least two points"),
        ("PWL(0 0 1)", "a table needs pairs of voltage and current"),
        ("VARISTOR(ALPHA=0.5)", "the exponent ALPHA must be positive (0.5)"),
        ("NPN(BF=1)", "D1: model x is of type NPN, not D"),
    ],
)
def test_what_a_deck_cannot_say(model: str, message: str) -> None:
    with pytest.raises(NetlistError) as error:
        netlist.loads(f"t\nV1 a 0 1\nD1 a 0 x\n.model x {model}\n")
    assert message in str(error.value)
