"""Amplifier circuits against results worked out by hand."""

from __future__ import annotations

import pytest
from helpers import solved

from circuitsim.controlled.verdict import Uniqueness

AROUND = (-2.0, -1e-3, 0.0, 1e-3, 2.0)
LINEAR = {
    "inverting": ("V1 in 0 1\nR1 in n 1k\nR2 n out 2k\nX1 0 n out ideal_opamp", "out", -2.0),
    "finite gain": ("V1 in 0 1\nR1 in n 1k\nR2 n out 2k\nE1 out 0 0 n 1e5", "out", -2.0 / (1.0 + 3e-5)),
    "non-inverting": ("V1 in 0 1\nX1 in n out ideal_opamp\nR1 n 0 1k\nR2 n out 4k", "out", 5.0),
    "follower": ("V1 in 0 3\nX1 in out out ideal_opamp\nR1 out 0 1k", "out", 3.0),
    "summing": (
        "V1 a 0 1\nV2 b 0 2\nV3 c 0 -4\nR1 a n 1k\nR2 b n 2k\nR3 c n 4k\nRF n out 2k\nX1 0 n out ideal_opamp",
        "out",
        -2.0 * (1.0 + 1.0 - 1.0),
    ),
    "difference": (
        "V1 a 0 1\nV2 b 0 1.5\nR1 a n 1k\nR2 n out 3k\nR3 b p 1k\nR4 p 0 3k\nX1 p n out ideal_opamp",
        "out",
        1.5,
    ),
    "instrumentation": (
        "V1 a 0 1\nV2 b 0 1.01\nX1 a m x ideal_opamp\nX2 b q y ideal_opamp\nRG m q 100\nR1 x m 5k\nR2 q y 5k\n"
        "R3 x n 1k\nR4 n out 2k\nR5 y p 1k\nR6 p 0 2k\nX3 p n out ideal_opamp",
        "out",
        2.0 * 101.0 * 0.01,
    ),
    "gyrator": ("I1 0 a 1m\nG1 a 0 b 0 2m\nG2 0 b a 0 2m\nR1 b 0 1k", "a", 1e-3 / (4e-6 * 1e3)),
    "negative impedance": (
        "I1 0 a 1m\nRA a 0 500\nX1 a m out ideal_opamp\nR1 out a 1k\nR2 out m 1k\nR3 m 0 1k",
        "a",
        1.0,
    ),
    "current mirror": ("V1 in 0 5\nR1 in a 1k\nVS a 0 0\nF1 out 0 VS 2\nRL out 0 100", "out", -1.0),
    "hybrid pi": ("V1 in 0 10m\nRS in b 1k\nRP b 0 1k\nG1 c 0 b 0 40m\nRC c 0 5k", "c", -1.0),
    "transresistance": ("I1 0 a 1m\nVS a 0 0\nH1 out 0 VS 2k\nRL out 0 1k", "out", 2.0),
    "transformer": (
        "V1 in 0 10\nR1 in a 100\nX1 a 0 s 0 ideal_transformer ratio=2\nRL s 0 1.2k",
        "s",
        2.0 * 10.0 * 300.0 / 400.0,
    ),
    "cascade": (
        "V1 in 0 1\nR1 in a 1k\nR2 a x 2k\nX1 0 a x ideal_opamp\nR3 x b 1k\nR4 b y 3k\nX2 0 b y ideal_opamp\nR5 y 0 1k",
        "y",
        6.0,
    ),
}


_RECTIFIED = "D1 {0} o\nD2 o n\nX1 0 n o ideal_opamp\n"
DIODES = {
    "inverting": ("V1 in 0 {}\nR1 in n 1k\nR2 n out 2k\nD1 n out\nX1 0 n out ideal_opamp", "out", {1: 0.0, -1: 2.0}),
    "non-inverting": (
        "V1 in 0 {}\nE1 o 0 in n 1e4\nD1 o out\nR1 n 0 1k\nR2 n out 4k",
        "out",
        {1: 5.0 / (1.0 + 5e-4), -1: 0.0},
    ),
    "instrumentation": (
        LINEAR["instrumentation"][0].replace("b 0 1.01", "b 0 {}") + "\nD1 out r\nR7 r 0 1k",
        "r",
        {1.01: 2.02, 0.99: 0.0},
    ),
    "summing": (
        "V1 a 0 1\nV2 b 0 {}\nR1 a n 1k\nR2 b n 2k\nRF n out 2k\nRL out 0 10k\n" + _RECTIFIED.format("out"),
        "out",
        {1: -3.0, -5: 0.0},
    ),
    "peak selector": (
        "V0 i 0 {}\nV1 j 0 1.5\nE0 o0 0 i out 1e4\nB1 o1 0 V=1e4*(-v(i)-v(out))\nE2 o2 0 j out 1e4\nD0 o0 out\n"
        "D1 o1 out\nD2 o2 out\nR1 out 0 1k",
        "out",
        {-2: 2.0 / 1.0001, 1: 1.5 / 1.0001, 3: 3.0 / 1.0001},
    ),
    "selector with buffer": (
        "V0 i 0 {}\nV1 j 0 1.5\nD0 i m\nD1 j m\nR0 m 0 1k\nX1 m out out ideal_opamp\nR1 out 0 1k",
        "out",
        {-2: 1.5, 3: 3.0},
    ),
    "gyrator": (
        "I1 0 a {}m\nG1 a 0 b 0 2m\nG2 0 b a 0 2m\nD1 b c\nRL c 0 1k\nRB b 0 4k",
        "a",
        {1: 0.3125, -1: -0.0625},
    ),
    "negative impedance": (
        LINEAR["negative impedance"][0].replace("a 1m", "a {}m") + "\nD1 a c\nRC c 0 1k",
        "a",
        {1: 0.5, -1: -1.0},
    ),
    "current mirror": (
        "V1 in 0 {}\nR1 in a 1k\nD1 a s\nVS s 0 0\nF1 out 0 VS 2\nRL out 0 100",
        "out",
        {5: -1.0, -5: 0.0},
    ),
    "hybrid pi": (
        "VCC p 0 {}\nRA p b 100k\nRB b 0 20k\nD1 b x\nVBE x y 0.6\nRP y e 1k\nF1 c e VBE 100\nRE e 0 1k\nRC p c 4k",
        "c",
        {12: 12.0 - 4e5 * 1.4 / (50e3 / 3.0 + 102e3), 3: 3.0},
    ),
    "cascade": (
        "V1 in 0 {}\nR1 in n 1k\nR2 n h 2k\n"
        + _RECTIFIED.format("h")
        + "R3 h b 1k\nR4 b y 3k\nX2 0 b y ideal_opamp\nR5 y 0 1k\nR6 o 0 1k",
        "y",
        {1: 6.0, -1: 0.0},
    ),
    "super-diode": (
        "V1 in 0 {}\nE1 o 0 in out 1e5\nD1 o out\nR1 out 0 1k",
        "out",
        {v: max(v, 0.0) / (1.0 + 1e-5) for v in AROUND},
    ),
    # With the diode off the loop is open: the amplifier is at its gain times the input.
    "output of a super-diode": (
        "V1 in 0 {}\nE1 o 0 in out 1e5\nD1 o out\nR1 out 0 1k",
        "o",
        {v: v / (1.0 + 1e-5) if v > 0.0 else 1e5 * v for v in AROUND},
    ),
    # One diode closes the loop through the output, the other holds the amplifier.
    "precision rectifier": (
        "V1 in 0 {}\nR1 in n 1k\nR2 n out 2k\n" + _RECTIFIED.format("out") + "RL out 0 10k",
        "out",
        {v: -2.0 * max(v, 0.0) for v in AROUND if v},
    ),
    "full-wave rectifier": (
        "V1 in 0 {}\nR1 in n 1k\nR2 n h 1k\n" + _RECTIFIED.format("h") + "R3 in m 2k\nR4 h m 1k\nR5 m out 2k\n"
        "X2 0 m out ideal_opamp",
        "out",
        {v: abs(v) for v in (-3.0, -0.5, 0.5, 3.0)},
    ),
    "maximum": (
        "V0 i 0 {}\nV1 j 0 2\nV2 k 0 -1\nE0 o 0 i out 1e6\nD0 o out\nE1 p 0 j out 1e6\nD1 p out\nE2 q 0 k out 1e6\n"
        "D2 q out\nR1 out 0 1k",
        "out",
        {v: max(v, 2.0) / (1.0 + 1e-6) for v in (-3.0, 1.0, 5.0)},
    ),
    "limits of an amplifier": (
        "V1 in 0 {}\nX1 in n out limited_opamp gain=1e6 low=-12 high=12\nR1 n 0 1k\nR2 n out 9k",
        "out",
        {1.0: 10.0 / (1.0 + 1e-5), 3.0: 12.0, -3.0: -12.0},
    ),
    # At its output a diode without current and without voltage: the state is at a kink for every input.
    "rectifier without a load": (
        "V1 in 0 {}\nR1 in m 1k\nR2 m o 1300\nD1 m d\nD2 d o\nE1 d 0 OPAMP 0 m",
        "o",
        {v: 1.3 * max(-v, 0.0) for v in (*AROUND, -0.3, 0.1)},
    ),
}
"""Cards with a gap for the source, a node, its potential at values of the source."""


@pytest.mark.parametrize("name", [*LINEAR, *(f"{name} with diodes" for name in DIODES)])
def test_each_has_its_only_operating_point(name: str) -> None:
    cards, node, results = LINEAR[name] if name in LINEAR else DIODES[name.removesuffix(" with diodes")]
    for value, volts in results.items() if isinstance(results, dict) else [(0, results)]:
        point = solved(cards.format(value))
        assert point[node] == pytest.approx(volts, rel=1e-9, abs=1e-15)
        assert point.uniqueness is Uniqueness.UNIQUE


def test_a_transformer_conserves_power() -> None:
    point = solved(LINEAR["transformer"][0])
    assert point.power("X1.Esecond") + point.power("X1.Ffirst") == pytest.approx(0.0, abs=1e-15)
    assert point.current("X1.Ffirst") == pytest.approx(-2.0 * point.current("X1.Esecond"), rel=1e-12)
