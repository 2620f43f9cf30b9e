"""Poles: closed forms, polynomials, states that topology leaves out."""

from __future__ import annotations

import numpy as np
import pytest

import circuitsim
from circuitsim import ac
from circuitsim.analysis.switched import circuit_at_operating_point
from circuitsim.netlist import loads
from circuitsim.small_signal import poles


def test_butterworth() -> None:
    found = poles(circuitsim.load("netlists/lowpass-butterworth.cir"))
    radius = 2 * np.pi * 1e4
    expected = radius * np.array([-0.5 - 0.75**0.5 * 1j, -1.0, -0.5 + 0.75**0.5 * 1j])
    np.testing.assert_allclose(found.values, expected, rtol=1e-12)
    np.testing.assert_allclose(found.hertz, 1e4, rtol=1e-12)
    np.testing.assert_allclose(found.damping, [0.5, 1.0, 0.5], rtol=1e-12)
    assert found.stable


@pytest.mark.parametrize(
    ("cards", "expected"),
    [
        ("V1 a 0 1\nC1 a 0 1", []),  # a capacitor across a source
        ("V1 a 0 1\nR1 a b 1\nC1 b 0 1\nC2 b 0 3", [-0.25]),  # two in parallel are one state
        ("I1 0 a 1\nL1 a b 1\nR1 b 0 1", []),  # an inductor in series with a current source
        ("V1 a 0 1\nR1 a b 2\nL1 b c 1\nL2 c 0 3", [-0.5]),
        ("V1 in 0 1\nR1 in a 1\nL1 a 0 1\nL2 a 0 1", [-2.0, 0.0]),  # current circulates in two inductors for ever
        ("V1 in 0 1\nC1 in a 1\nC2 a 0 1\nR1 in 0 1", [0.0]),  # charge stays between two capacitors
        ("I1 0 a 0\nL1 a 0 1\nC1 a 0 1\nV1 b 0 0\nR1 b 0 1", [-1j, 1j]),
        # A gain of 3 in a Wien bridge: the limit of oscillation, 1/RC.
        ("E1 o 0 p 0 3\nR1 o x 1\nC1 x p 1\nR2 p 0 1\nC2 p 0 1", [-1j, 1j]),
        ("V1 a 0 1\nR1 a b 1\nC1 b 0 1\nD1 b c ideal\nC2 c 0 1\nR2 c 0 1\n.model ideal D", [-1.0]),
    ],
)
def test_states(cards: str, expected: list[complex]) -> None:
    found = poles(circuitsim.loads(f"states\n{cards}\n.end")).values
    assert found.size == len(expected)
    np.testing.assert_allclose(sorted(found, key=lambda s: (s.real.round(6), s.imag)), expected, atol=1e-9)


def test_a_source_that_follows_the_voltage_of_a_coil() -> None:
    """A short at DC, none here: a negative resistance of 500 ohms beside 1 kOhm lets a tank grow; a buffer doubles."""
    deck = loads("t\nL1 a 0 100u\nC1 a 0 100n\nG1 0 a a 0 2m\nR1 a 0 1k\nI1 0 a 0 AC 1m\nE1 o 0 a 0 2\nR2 o 0 1k\n")
    found = poles(circuit_at_operating_point(deck, changed=None))
    assert found.values.real == pytest.approx([5e3, 5e3], rel=1e-9)
    response = ac(deck, np.array([1e4, 5e4]))
    assert response["o"] == pytest.approx(2.0 * response["a"], rel=1e-9)
    assert np.abs(response["a"]).min() > 1e-3
