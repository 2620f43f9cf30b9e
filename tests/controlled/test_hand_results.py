"""Amplifier circuits against results worked out by hand."""

from __future__ import annotations

import pytest

import circuitsim
from circuitsim.controlled.verdict import Uniqueness


def solved(cards: str) -> circuitsim.OperatingPoint:
    point = circuitsim.solve(circuitsim.loads(f"a circuit\n{cards}\n"))
    assert point.certificate.certified
    return point


LINEAR = {
    "inverting": ("V1 in 0 1\nR1 in n 1k\nR2 n out 2k\nX1 0 n out ideal_opamp", "out", -2.0),
    "finite gain": ("V1 in 0 1\nR1 in n 1k\nR2 n out 2k\nE1 out 0 0 n 1e5", "out", -2.0 / (1.0 + 3e-5)),
    "non-inverting": ("V1 in 0 1\nX1 in n out ideal_opamp\nR1 n 0 1k\nR2 n out 4k", "out", 5.0),
    "follower": ("V1 in 0 3\nX1 in out out ideal_opamp\nR1 out 0 1k", "out", 3.0),
    "summing": (
        "V1 a 0 1\nV2 b 0 2\nV3 c 0 -4\nR1 a n 1k\nR2 b n 2k\nR3 c n 4k\nRF n out 2k\nX1 0 n out ideal_opamp", "out",
        -2.0 * (1.0 + 1.0 - 1.0),
    ),
    "difference": (
        "V1 a 0 1\nV2 b 0 1.5\nR1 a n 1k\nR2 n out 3k\nR3 b p 1k\nR4 p 0 3k\nX1 p n out ideal_opamp", "out", 1.5,
    ),
    "instrumentation": (
        "V1 a 0 1\nV2 b 0 1.01\nX1 a m x ideal_opamp\nX2 b q y ideal_opamp\nRG m q 100\nR1 x m 5k\nR2 q y 5k\n"
        "R3 x n 1k\nR4 n out 2k\nR5 y p 1k\nR6 p 0 2k\nX3 p n out ideal_opamp", "out", 2.0 * 101.0 * 0.01,
    ),
    "gyrator": ("I1 0 a 1m\nG1 a 0 b 0 2m\nG2 0 b a 0 2m\nR1 b 0 1k", "a", 1e-3 / (4e-6 * 1e3)),
    "negative impedance": (
        "I1 0 a 1m\nRA a 0 500\nX1 a m out ideal_opamp\nR1 out a 1k\nR2 out m 1k\nR3 m 0 1k", "a", 1.0,
    ),
    "current mirror": ("V1 in 0 5\nR1 in a 1k\nVS a 0 0\nF1 out 0 VS 2\nRL out 0 100", "out", -1.0),
    "hybrid pi": ("V1 in 0 10m\nRS in b 1k\nRP b 0 1k\nG1 c 0 b 0 40m\nRC c 0 5k", "c", -1.0),
    "transresistance": ("I1 0 a 1m\nVS a 0 0\nH1 out 0 VS 2k\nRL out 0 1k", "out", 2.0),
    "transformer": (
        "V1 in 0 10\nR1 in a 100\nX1 a 0 s 0 ideal_transformer ratio=2\nRL s 0 1.2k", "s", 2.0 * 10.0 * 300.0 / 400.0,
    ),
    "cascade": (
        "V1 in 0 1\nR1 in a 1k\nR2 a x 2k\nX1 0 a x ideal_opamp\nR3 x b 1k\nR4 b y 3k\nX2 0 b y ideal_opamp\nR5 y 0 1k",
        "y", 6.0,
    ),
}


@pytest.mark.parametrize("name", LINEAR)
def test_linear_circuits(name: str) -> None:
    cards, node, volts = LINEAR[name]
    point = solved(cards)
    assert point[node] == pytest.approx(volts, rel=1e-9)
    assert point.uniqueness is Uniqueness.UNIQUE


def test_a_transformer_conserves_power() -> None:
    point = solved(LINEAR["transformer"][0])
    assert point.power("X1.Esecond") + point.power("X1.Ffirst") == pytest.approx(0.0, abs=1e-15)
    assert point.current("X1.Ffirst") == pytest.approx(-2.0 * point.current("X1.Esecond"), rel=1e-12)


@pytest.mark.parametrize("volts", [-2.0, -1e-3, 0.0, 1e-3, 2.0])
def test_super_diode(volts: float) -> None:
    """With the diode off the loop is open: the amplifier is at its gain times the input."""
    point = solved(f"V1 in 0 {volts}\nE1 o 0 in out 1e5\nD1 o out\nR1 out 0 1k")
    assert point["out"] == pytest.approx(max(volts, 0.0) / (1.0 + 1e-5), rel=1e-9, abs=1e-30)
    assert point["o"] == pytest.approx(volts / (1.0 + 1e-5) if volts > 0.0 else 1e5 * volts, rel=1e-9, abs=1e-30)
    assert point.uniqueness is Uniqueness.UNIQUE


@pytest.mark.parametrize("volts", [-2.0, -1e-3, 0.0, 1e-3, 2.0])
def test_precision_rectifier(volts: float) -> None:
    """Inverting, with two diodes: one closes the loop through the output, the other holds the amplifier."""
    point = solved(
        f"V1 in 0 {volts}\nR1 in n 1k\nR2 n out 2k\nD1 out o\nD2 o n\nX1 0 n o ideal_opamp\nRL out 0 10k"
    )
    assert point["out"] == pytest.approx(-2.0 * max(volts, 0.0), rel=1e-9, abs=1e-30)
    if volts:
        assert point.uniqueness is Uniqueness.UNIQUE


@pytest.mark.parametrize("volts", [-3.0, -0.5, 0.5, 3.0])
def test_full_wave_rectifier(volts: float) -> None:
    cards = (
        f"V1 in 0 {volts}\nR1 in n 1k\nR2 n h 1k\nD1 h o\nD2 o n\nX1 0 n o ideal_opamp\n"
        "R3 in m 2k\nR4 h m 1k\nR5 m out 2k\nX2 0 m out ideal_opamp"
    )
    assert solved(cards)["out"] == pytest.approx(abs(volts), rel=1e-9)


@pytest.mark.parametrize("volts", [(1.0, 2.0, 3.0), (5.0, -1.0, 2.0), (-1.0, 4.0, 3.5)])
def test_maximum_of_super_diodes(volts: tuple[float, ...]) -> None:
    cards = "".join(f"V{k} i{k} 0 {v}\nE{k} o{k} 0 i{k} out 1e6\nD{k} o{k} out\n" for k, v in enumerate(volts))
    assert solved(f"{cards}R1 out 0 1k")["out"] == pytest.approx(max(volts) / (1.0 + 1e-6), rel=1e-9)


def test_limits_of_an_amplifier() -> None:
    cards = "V1 in 0 {}\nX1 in n out limited_opamp gain=1e6 low=-12 high=12\nR1 n 0 1k\nR2 n out 9k"
    assert solved(cards.format(1.0))["out"] == pytest.approx(10.0 / (1.0 + 1e-5), rel=1e-9)
    assert solved(cards.format(3.0))["out"] == 12.0
    assert solved(cards.format(-3.0))["out"] == -12.0
