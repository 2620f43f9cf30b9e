"""Coupled inductors over frequency: closed forms, independent dense equations, ideal couplings, poles."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import circuitsim
from circuitsim.cli import main
from circuitsim.errors import ConvergenceError, UsageError
from circuitsim.netlist import load
from circuitsim.small_signal import ac, poles

PAIR = "pair\nV1 in 0 1\nR1 in a 1\nL1 a 0 1m\nL2 b 0 4m\nR2 b 0 10\n"


def test_resonators_are_an_even_and_an_odd_one() -> None:
    """Half the difference of the impedances with L (1 + k) and L (1 - k)."""
    found = ac(load("netlists/coupled-resonators.cir"))
    w, c, q = 2 * np.pi * 455e3, 180e-12, 50
    coil = 1 / (w * w * c)
    s = 2j * np.pi * found.frequencies

    def impedance(share: float) -> np.ndarray:
        return np.asarray(1 / (s * c + 1 / (q * w * coil) + 1 / (s * coil * share)))

    expected = 0.5e-3 * (impedance(1 + 1 / q) - impedance(1 - 1 / q))
    np.testing.assert_allclose(found["out"], expected, rtol=1e-11)
    assert found.residuals.max() < 1e-14
    resonators = found.circuit
    squares = np.sort([1 / (coil * c * (1 + sign / q)) for sign in (1.0, 1.0, -1.0, -1.0)])
    values = poles(resonators, {("L1", "L2"): 1 / q}).values
    np.testing.assert_allclose(np.abs(values) ** 2, squares, rtol=1e-11)
    np.testing.assert_allclose(values.real, -w / (2 * q), rtol=1e-11)


@pytest.mark.parametrize("factor", [0.0, 0.5, -0.9, 1.0 - 1e-9, 1.0, -1.0])
def test_a_loaded_transformer(factor: float) -> None:
    """The primary shows s L1 + w^2 M^2 / (R2 + s L2)."""
    f = np.array([0.0, 10.0, 1e3, 1e5])
    s, mutual = 2j * np.pi * f, factor * 2e-3
    found = ac(circuitsim.loads(PAIR), f, {"V1": 1.0}, couplings={("L1", "L2"): factor})
    primary = 1.0 / (1.0 + s * 1e-3 - s * s * mutual * mutual / (10.0 + s * 4e-3))
    secondary = -s * mutual * primary / (10.0 + s * 4e-3)
    np.testing.assert_allclose(found.current("L1"), primary, rtol=1e-12)
    np.testing.assert_allclose(found.current("L2"), secondary, rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(found["b"], -10.0 * secondary, rtol=1e-12, atol=1e-300)


def test_a_floating_winding() -> None:
    """An open secondary without a path to ground: its voltage is that of the turns."""
    circuit = circuitsim.loads("open\nV1 a 0 1\nL1 a 0 1m\nL2 b c 4m\n")
    found = ac(circuit, [1e3], {"V1": 1.0}, couplings={("L1", "L2"): 0.5})
    np.testing.assert_allclose(found["b"] - found["c"], 1.0, rtol=1e-14)


@pytest.mark.parametrize(
    ("cards", "factors", "expected"),
    [
        # R2 L1 + R1 L2 is all that an ideal transformer leaves of R1 R2 + s (R2 L1 + R1 L2) + s^2 (L1 L2 - M^2).
        ("V1 in 0 1\nR1 in a 1\nL1 a 0 1\nL2 b 0 4\nR2 b 0 2", [1.0], [-1 / 3]),
        ("V1 in 0 1\nR1 in a 1\nL1 a 0 1\nL2 b 0 4\nR2 b 0 2", [0.5], np.roots([3, 6, 2])),
        # One flux, two capacitors seen through one pair of turns.
        ("I1 0 a 0\nL1 a 0 1\nC1 a 0 1\nL2 b 0 4\nC2 b 0 2", [1.0], [-1j / 3, 1j / 3]),
        # Windings in series, aiding and opposing: L1 + L2 + 2 M and L1 + L2 - 2 M.
        ("V1 a 0 1\nR1 a b 12\nL1 b c 1\nL2 c 0 4", [0.5], [-12 / 7]),
        ("V1 a 0 1\nR1 a b 12\nL1 b c 1\nL2 c 0 4", [-0.5], [-4.0]),
        ("V1 a 0 1\nR1 a b 12\nL1 b c 1\nL2 c 0 1", [-1.0], []),
        # A shorted secondary: the leakage inductance L1 (1 - k^2); the current of the secondary stays.
        ("V1 a 0 1\nR1 a b 3\nL1 b 0 1\nL2 c 0 4\nV2 c 0 0", [0.5], [-4.0, 0.0]),
    ],
)
def test_states(cards: str, factors: list[float], expected: list[complex]) -> None:
    found = poles(circuitsim.loads(f"states\n{cards}\n.end"), {("L1", "L2"): factors[0]}).values
    assert found.size == len(expected)
    in_order = sorted(expected, key=lambda s: (np.real(s), np.imag(s)))
    np.testing.assert_allclose(sorted(found, key=lambda s: (s.real.round(6), s.imag)), in_order, atol=1e-9)


@pytest.mark.parametrize(
    ("couplings", "message"),
    [
        ({("L1", "R1"): 0.5}, "L1 and R1 are not two inductors"),
        ({("L1", "L2"): 1.5}, "must lie between -1 and 1"),
        ({("L1", "L2"): float("nan")}, "must lie between -1 and 1"),
    ],
)
def test_wrong_couplings(couplings: dict, message: str) -> None:
    circuit = circuitsim.loads(PAIR)
    with pytest.raises(UsageError, match=message):
        ac(circuit, [1.0], {"V1": 1.0}, couplings=couplings)
    with pytest.raises(UsageError, match=message):
        poles(circuit, couplings)


def test_factors_that_store_negative_energy() -> None:
    circuit = circuitsim.loads(PAIR + "L3 c 0 1m\nR3 c 0 1\n")
    factors = {("L1", "L2"): 0.9, ("L2", "L3"): 0.9, ("L1", "L3"): -0.9}
    with pytest.raises(UsageError, match="negative energy"):
        ac(circuit, [1.0], {"V1": 1.0}, couplings=factors)


def test_ideal_windings_in_parallel_leave_a_current_open() -> None:
    """Of equal voltages at all frequencies, also where rounding makes the matrix regular."""
    circuit = circuitsim.loads("parallel\nV1 a 0 1\nR1 a b 1\nL1 b 0 1m\nL2 b 0 1m\nL3 c 0 3m\nR3 c 0 1\n")
    factors = {("L1", "L2"): 1.0, ("L1", "L3"): 1 / 3, ("L2", "L3"): 1 / 3}
    for hertz in (1.0, 7.0, 1234.5, 1e6):
        with pytest.raises(ConvergenceError, match="ideally coupled windings in parallel"):
            ac(circuit, [hertz], {"V1": 1.0}, couplings=factors)
    with pytest.raises(ConvergenceError, match="ideally coupled windings in parallel"):
        poles(circuit, factors)


@pytest.mark.parametrize("words", ["", "--poles"])
def test_the_command_takes_couplings(words: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    deck = tmp_path / "pair.cir"
    deck.write_text(PAIR.replace("in 0 1", "in 0 AC 1") + "K1 L1 L2 {k}\n.param k=0.5\n.ac list 1k\n.end\n")
    assert main(["ac", str(deck), "--columns", "i(L2)", *words.split()]) == 0
    out, err = capsys.readouterr()
    assert "K1" not in err
    value = float(out.splitlines()[-1].split(",")[1 if not words else 0])
    s = 2j * np.pi * 1e3
    primary = 1.0 / (1.0 + s * 1e-3 - s * s * 1e-6 / (10.0 + s * 4e-3))
    _, fast = sorted(np.roots([3e-6, 14e-3, 10.0]), key=abs)
    assert value == pytest.approx(abs(s * 1e-3 * primary / (10.0 + s * 4e-3)) if not words else fast, rel=1e-9)
