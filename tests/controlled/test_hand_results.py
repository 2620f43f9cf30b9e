"""Circuits against results worked out by hand: the table of `hand.toml`."""

from __future__ import annotations

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


def test_a_transformer_conserves_power() -> None:
    point = solved(TABLE["transformer"]["deck"])
    assert point.power("X1.Esecond") + point.power("X1.Ffirst") == pytest.approx(0.0, abs=1e-15)
    assert point.current("X1.Ffirst") == pytest.approx(-2.0 * point.current("X1.Esecond"), rel=1e-12)
