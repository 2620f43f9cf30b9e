"""Stable, marginal or unstable."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import circuitsim
from circuitsim.cli import main
from circuitsim.small_signal import poles


@pytest.mark.parametrize(
    ("cards", "expected"),
    [
        ("I1 0 a 0\nL1 a 0 10n\nC1 a 0 1n", "marginal"),
        ("V1 in 0 1\nR1 in a 1k\nL1 a 0 10n\nL2 a 0 2u", "marginal"),  # current stays in the loop
        ("V1 in 0 1\nC1 in a 1n\nC2 a 0 2p\nR1 in 0 1k", "marginal"),  # charge stays between the capacitors
        ("V1 in 0 1\nR1 in a 1G\nL1 a 0 10n\nC1 a 0 1n", "stable"),  # a quality of 3e8
        ("V1 in 0 1\nR1 in a 1p\nC1 a 0 1f\nR2 in b 1G\nC2 b 0 1k", "stable"),  # rates of 1e27 and 1e-12 per second
        ("I1 0 a 0\nL1 a 0 1m\nC1 a 0 1u\nG1 0 a a 0 1n", "unstable"),
        ("I1 0 a 0\nL1 a 0 1m\nC1 a 0 1u\nR1 a 0 1024\nG1 0 a a 0 9.765625e-4", "marginal"),  # gain and loss cancel
        ("I1 0 a 0\nL1 a 0 1m\nC1 a 0 1u\nR1 a 0 1k\nG1 0 a a 0 1m", "unstable"),  # 1m as a double is above 1/1000
        ("V1 a 0 1\nR1 a 0 1", "stable"),  # no states
    ],
)
def test_closed_forms(cards: str, expected: str) -> None:
    found = poles(circuitsim.loads(f"stability\n{cards}\n"))
    assert found.stability == expected
    assert found.stable is (expected == "stable")
    assert (found.values.real == 0.0).any() == (expected == "marginal")


def test_slow_and_fast_poles_have_their_digits() -> None:
    found = poles(circuitsim.loads("t\nV1 in 0 1\nR1 in a 1p\nC1 a 0 1f\nR2 in b 1G\nC2 b 0 1k\n"))
    np.testing.assert_allclose(found.values, [-1e-12, -1e27], rtol=1e-9)
    assert (found.bounds < 1e-9 * np.abs(found.values)).all() and found.rounding == 0.0


def test_text_and_json_show_the_word(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    deck = tmp_path / "tank.cir"
    deck.write_text("tank\nI1 0 a 0 AC 1\nL1 a 0 10n\nC1 a 0 1n\n")
    assert main(["-q", "ac", str(deck), "--poles", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["stable"], found["stability"], found["rounding"]) == (False, "marginal", 0.0)
    assert found["real"] == [0.0, 0.0]
    assert main(["-q", "ac", str(deck), "--poles", "--format", "table"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "marginal"


def test_a_pole_that_rounding_alone_puts_on_the_axis_says_so() -> None:
    """A tank behind half a farad loses 1e-31 of its energy in a period: no 30 digits tell it from none."""
    cards = "V1 a 0 1\nR1 a b 1k\nC1 b 0 .5\nL1 b c 1n\nC2 c 0 1p\nR2 c b 1e24\n"
    found = poles(circuitsim.loads(f"t\n{cards}"))
    tank = np.abs(found.values) > 1.0
    assert found.stability in ("stable", "marginal")
    assert (found.bounds[tank] < 1e-20 * np.abs(found.values[tank])).all()
    assert (found.rounding > 0.0) == (found.stability == "marginal")
