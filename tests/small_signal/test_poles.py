"""Poles and stability: closed forms, states that topology leaves out, couplings, rates over forty decades."""

from pathlib import Path

import numpy as np
import pytest
from helpers import loaded

import circuitsim
from circuitsim import ac, poles
from circuitsim.cli import main
from circuitsim.errors import ConvergenceError, UsageError

RADIUS = 2 * np.pi * 1e4


def test_butterworth() -> None:
    found = poles(circuitsim.load("netlists/lowpass-butterworth.cir"))
    expected = RADIUS * np.array([-0.5 - 0.75**0.5 * 1j, -1.0, -0.5 + 0.75**0.5 * 1j])
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
        # R2 L1 + R1 L2 is all that an ideal transformer leaves of R1 R2 + s (R2 L1 + R1 L2) + s^2 (L1 L2 - M^2).
        ("V1 in 0 1\nR1 in a 1\nL1 a 0 1\nL2 b 0 4\nR2 b 0 2\nK1 L1 L2 1", [-1 / 3]),
        ("V1 in 0 1\nR1 in a 1\nL1 a 0 1\nL2 b 0 4\nR2 b 0 2\nK1 L1 L2 .5", np.roots([3, 6, 2])),
        # One flux, two capacitors seen through one pair of turns.
        ("I1 0 a 0\nL1 a 0 1\nC1 a 0 1\nL2 b 0 4\nC2 b 0 2\nK1 L1 L2 1", [-1j / 3, 1j / 3]),
        # Windings in series, aiding and opposing: L1 + L2 + 2 M and L1 + L2 - 2 M.
        ("V1 a 0 1\nR1 a b 12\nL1 b c 1\nL2 c 0 4\nK1 L1 L2 .5", [-12 / 7]),
        ("V1 a 0 1\nR1 a b 12\nL1 b c 1\nL2 c 0 4\nK1 L1 L2 -.5", [-4.0]),
        ("V1 a 0 1\nR1 a b 12\nL1 b c 1\nL2 c 0 1\nK1 L1 L2 -1", []),
        # A shorted secondary: the leakage inductance L1 (1 - k^2); the current of the secondary stays.
        ("V1 a 0 1\nR1 a b 3\nL1 b 0 1\nL2 c 0 4\nV2 c 0 0\nK1 L1 L2 .5", [-4.0, 0.0]),
        ("V1 in 0 1\nR1 in a 1p\nC1 a 0 1f\nR2 in b 1G\nC2 b 0 1k", [-1e27, -1e-12]),
    ],
)
def test_states(cards: str, expected: list[complex]) -> None:
    found = poles(circuitsim.loads(f"states\n{cards}\n.end"))
    assert found.values.size == len(expected) and (found.bounds <= 1e-9 * np.abs(found.values)).all()
    in_order = sorted(expected, key=lambda s: (np.real(s), np.imag(s)))
    found_order = sorted(found.values, key=lambda s: (s.real.round(6), s.imag))
    np.testing.assert_allclose(found_order, in_order, rtol=1e-9, atol=1e-20 if "1G" in cards else 1e-9)


@pytest.mark.parametrize(
    ("cards", "expected"),
    [
        ("I1 0 a 0\nL1 a 0 10n\nC1 a 0 1n", "marginal"),
        ("V1 in 0 1\nR1 in a 1k\nL1 a 0 10n\nL2 a 0 2u", "marginal"),  # current stays in the loop
        ("V1 in 0 1\nC1 in a 1n\nC2 a 0 2p\nR1 in 0 1k", "marginal"),  # charge stays between the capacitors
        ("V1 in 0 1\nR1 in a 1G\nL1 a 0 10n\nC1 a 0 1n", "stable"),  # a quality of 3e8
        ("V1 in 0 1\nR1 in a 1p\nC1 a 0 1f\nR2 in b 1G\nC2 b 0 1k", "stable"),
        ("I1 0 a 0\nL1 a 0 1m\nC1 a 0 1u\nG1 0 a a 0 1n", "unstable"),
        ("I1 0 a 0\nL1 a 0 1m\nC1 a 0 1u\nR1 a 0 1024\nG1 0 a a 0 9.765625e-4", "marginal"),  # gain and loss cancel
        ("I1 0 a 0\nL1 a 0 1m\nC1 a 0 1u\nR1 a 0 1k\nG1 0 a a 0 1m", "unstable"),  # 1m as a double is above 1/1000
        ("V1 a 0 1\nR1 a 0 1", "stable"),  # no states
    ],
)
def test_stability(cards: str, expected: str) -> None:
    found = poles(loaded(cards))
    assert (found.stability, found.stable) == (expected, expected == "stable")
    assert (found.values.real == 0.0).any() == (expected == "marginal")


def test_a_pole_that_rounding_alone_puts_on_the_axis_says_so() -> None:
    """A tank behind half a farad loses 1e-31 of its energy in a period: no 30 digits tell it from none."""
    found = poles(loaded("V1 a 0 1\nR1 a b 1k\nC1 b 0 .5\nL1 b c 1n\nC2 c 0 1p\nR2 c b 1e24"))
    tank = np.abs(found.values) > 1.0
    assert found.stability in ("stable", "marginal")
    assert (found.bounds[tank] < 1e-20 * np.abs(found.values[tank])).all()
    assert (found.rounding > 0.0) == (found.stability == "marginal")


def test_a_source_that_follows_the_voltage_of_a_coil(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A short at DC, none here: a negative resistance of 500 ohms beside 1 kOhm lets a tank grow; a buffer doubles."""
    text = "t\nL1 a 0 100u\nC1 a 0 100n\nG1 0 a a 0 2m\nR1 a 0 1k\nI1 0 a 0 AC 1m\nE1 o 0 a 0 2\nR2 o 0 1k\n"
    response = ac(circuitsim.loads(text), np.array([1e4, 5e4]))
    assert response["o"] == pytest.approx(2.0 * response["a"], rel=1e-9)
    assert np.abs(response["a"]).min() > 1e-3
    (tmp_path / "tank.cir").write_text(text)
    assert main(["ac", str(tmp_path / "tank.cir"), "--poles", "--format", "csv"]) == 0
    rows = [line.split(",") for line in capsys.readouterr().out.splitlines()]
    assert [float(row[rows[0].index("real")]) for row in rows[1:]] == pytest.approx([5e3, 5e3], rel=1e-9)


@pytest.mark.parametrize(
    ("couplings", "error", "message"),
    [
        ({("L1", "R1"): 0.5}, UsageError, "L1 and R1 are not two inductors"),
        ({("L1", "L2"): 1.5}, UsageError, "must lie between -1 and 1"),
        ({("L1", "L2"): float("nan")}, UsageError, "must be a finite number"),
        ({("L1", "L2"): 0.9, ("L2", "L3"): 0.9, ("L1", "L3"): -0.9}, UsageError, "negative energy"),
        # Of equal voltages at all frequencies, also where rounding makes the matrix regular.
        (
            {("L1", "L4"): 1.0, ("L1", "L3"): 1 / 3, ("L4", "L3"): 1 / 3},
            ConvergenceError,
            "ideally coupled windings in parallel",
        ),
    ],
)
def test_wrong_couplings(couplings: dict, error: type[Exception], message: str) -> None:
    circuit = loaded(
        "V1 in 0 1\nR1 in a 1\nL1 a 0 1m\nL2 b 0 4m\nR2 b 0 10\nL3 c 0 3m\nR3 c 0 1"
        + "\nL4 a 0 1m" * (len(couplings) == 3)
    )
    for hertz in (1.0, 7.0, 1234.5, 1e6):
        with pytest.raises(error, match=message):
            ac(circuit, [hertz], {"V1": 1.0}, couplings=couplings)
    with pytest.raises(error, match=message):
        poles(circuit, couplings)


def test_one_pole_is_one_pole() -> None:
    found = poles(circuitsim.loads("low-pass\nV1 a 0 1\nR1 a b 1k\nC1 b 0 1u\n"))
    assert repr(found) == "Poles('low-pass': 1 pole, stable)"
