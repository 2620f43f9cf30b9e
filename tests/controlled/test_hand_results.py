"""Circuits against results worked out by hand: the table of `hand.toml`."""

import math
import tomllib
from pathlib import Path

import pytest
from helpers import solved

from circuitsim.analysis.operating_point import Uniqueness

TABLE = tomllib.loads((Path(__file__).parent / "hand.toml").read_text(encoding="utf-8"))
NAMES = {**vars(math), "thermal": 1.38064852e-23 / 1.6021766208e-19 * 300.15}
"""Of the table's expressions; kT/q at 27 °C, V."""


@pytest.mark.parametrize("name", TABLE)
def test_each_has_its_only_operating_point(name: str) -> None:
    row = TABLE[name]
    for x in row.get("at", [0]):
        point = solved(row["deck"].replace("@", str(x)))
        expected = eval(row["volts"], {**NAMES, "x": x})
        assert point[row["node"]] == pytest.approx(expected, rel=row.get("within", 1e-9), abs=1e-15)
        assert point.uniqueness in (None, Uniqueness.UNIQUE)


def test_nothing_but_a_loop_carries_current() -> None:
    """The 1 A through D1 leaves 1e-96 V of rounding elsewhere, which counts as zero."""
    point = solved(
        "R1 n1 0 10\nR2 n2 0 1\nR3 n3 n2 1\nR4 n4 n3 1\nR5 n5 n2 1\nRX n2 0 1\nV0 n1 n3 0\nV1 n1 n5 0\n"
        "I0 n4 n5 -1\nD0 0 n4\nD1 n4 n3\nB0 n2 n5 I=-10*v(n5,n2)\n"
    )
    assert not point.voltages.any() and point.current("D1") == 1.0


def test_a_transformer_conserves_power() -> None:
    point = solved(TABLE["transformer"]["deck"])
    assert point.power("X1.Esecond") + point.power("X1.Ffirst") == pytest.approx(0.0, abs=1e-15)
    assert point.current("X1.Ffirst") == pytest.approx(-2.0 * point.current("X1.Esecond"), rel=1e-12)
