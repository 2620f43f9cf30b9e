"""``circuitsim convert``: what it prints reads back to the same operating point."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Command

NETLISTS = Path(__file__).parents[2] / "netlists"


@pytest.mark.parametrize("name", ["rectifier-bridge", "nested-subcircuits", "r2r-dac", "zener-stack"])
def test_the_flat_deck_has_the_same_operating_point(command: Command, tmp_path: Path, name: str) -> None:
    original = NETLISTS / f"{name}.cir"
    assert command("convert", original, "--output", tmp_path / "flat.cir") == (0, "", "")
    before = json.loads(command("solve", original, "--format", "json").out)
    after = json.loads(command("solve", tmp_path / "flat.cir", "--format", "json").out)
    assert after["nodes"] == pytest.approx(before["nodes"], rel=1e-12, abs=1e-15)


def test_flat_text(command: Command, deck) -> None:
    path = deck("n\nX1 in out div\nV1 in 0 6\n.subckt div a b r=1k\nR1 a b {r}\nR2 b 0 {2*r}\n.ends\n")
    result = command("convert", path)
    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines()[0] == "n"
    assert "V1 in 0 6" in result.out
    assert "in out 1000" in result.out


def test_the_deck_is_never_overwritten(command: Command, deck, tmp_path: Path) -> None:
    path = deck()
    before = (tmp_path / path).read_bytes()
    result = command("convert", path, "--output", path)
    assert result == (2, "", "error: --output 'my.cir' would overwrite the deck; choose another name\n")
    assert (tmp_path / path).read_bytes() == before


def test_sources_that_follow_others_stay_controlled(command: Command, deck) -> None:
    """A gain of what a source fixes is a gain in the flat deck; a formula of the time stays as it is, or is refused."""
    path = deck("n\nV1 a 0 PULSE(2 5 0 1u 1u 1m 2m)\nE1 e 0 a 0 3\nR4 e 0 1k\n")
    result = command("convert", path)
    assert (result.code, result.err) == (0, "")
    flat = deck(result.out)
    rows = command("sweep", flat, "--vary", "V1=0,1,2", "--columns", "v(e)").out.splitlines()[1:]
    assert [float(row.split(",")[-1]) for row in rows] == [0.0, 3.0, 6.0]
    timed = command("convert", deck("n\nB1 a 0 V=2+sin(time)\nR1 a 0 1k\n"))
    assert (timed.code, timed.err) == (0, "") and "\nB1 a 0 V=2+sin(time)\n" in timed.out
    refused = command("convert", deck("n\n.param k=2\nB1 a 0 V={k+sin(time)}\nR1 a 0 1k\n"))
    assert (refused.code, refused.out) == (2, "") and "B1 is a formula" in refused.err
