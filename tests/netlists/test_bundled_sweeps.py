"""The sweeps that the decks themselves ask for: `.dc` over one and two sources, `.step param`."""

from __future__ import annotations

import csv
import io
from itertools import pairwise
from pathlib import Path

import pytest

from circuitsim.cli import main

NETLISTS = Path(__file__).parents[2] / "netlists"


def rows_of(name: str, columns: str, capsys: pytest.CaptureFixture[str]) -> list[list[float]]:
    """The numbers of ``circuitsim sweep`` on the deck, row by row."""
    assert main(["sweep", str(NETLISTS / f"{name}.cir"), "--columns", columns]) == 0
    header, *rows = csv.reader(io.StringIO(capsys.readouterr().out))
    numeric = [k for k, title in enumerate(header) if title != "status"]
    return [[float(row[k]) for k in numeric] for row in rows]


def shaper(v: float) -> float:
    """Output of the function generator: the intervals of its breakpoints, each a linear balance in mA."""
    if v <= 1:
        return v
    if (out := (v + 0.5) / 1.5) <= 2:  # (v − x)/1 = (x − 1)/2
        return out
    if (out := (v + 2.5) / 2.5) <= 2.5:  # … + (x − 2)/1
        return out
    return (v + 7.5) / 4.5  # … + (x − 2.5)/0.5


def test_function_generator(capsys: pytest.CaptureFixture[str]) -> None:
    rows = rows_of("function-generator", "v(out)", capsys)
    assert [row[0] for row in rows] == [k / 2 for k in range(21)]
    assert [row[1] for row in rows] == [pytest.approx(shaper(row[0]), rel=1e-9, abs=1e-15) for row in rows]
    slopes = {round((b[1] - a[1]) / 0.5, 9) for a, b in pairwise(rows)}
    assert {1.0, round(2 / 3, 9), round(2 / 9, 9)} < slopes


def test_dead_zone(capsys: pytest.CaptureFixture[str]) -> None:
    """out = in ∓ width outside the dead zone, nothing inside it; the first source of `.dc` runs fastest."""
    rows = rows_of("sweep-dead-zone", "v(out)", capsys)
    assert [row[:2] for row in rows] == [[float(v), float(width)] for width in (1, 2) for v in range(-4, 5)]
    for v, width, out in rows:
        assert out == pytest.approx(max(abs(v) - width, 0.0) * (1 if v > 0 else -1), rel=1e-9, abs=1e-15)


def test_maximum_power(capsys: pytest.CaptureFixture[str]) -> None:
    """P = (10 V/(1 kΩ + R))² R, 25 mW at R = 1 kΩ and less at 0.5, 1.5 and 2 kΩ."""
    rows = rows_of("step-load", "p(Rload)", capsys)
    assert [row[0] for row in rows] == [500.0, 1000.0, 1500.0, 2000.0]
    assert [row[1] for row in rows] == [pytest.approx((10 / (1e3 + r)) ** 2 * r, rel=1e-9) for r, _ in rows]
    assert max(rows, key=lambda row: row[1])[0] == 1000.0
