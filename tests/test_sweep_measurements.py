"""`.meas dc`: measurements over a sweep, against closed forms of piecewise-linear circuits."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import circuitsim
from circuitsim.cli import main
from circuitsim.errors import DeckWarning, UsageError
from circuitsim.measurements import measure_sweep

CLAMP = """clamp at 2 V
V1 in 0 0
R1 in out 1k
R2 out 0 1k
D1 out k ideal
V2 k 0 2
.model ideal D
.dc V1 -1 9 0.5
.meas dc knee WHEN i(D1)=1n RISE=1
.meas dc half FIND v(in) WHEN v(out)=0.777
.meas dc top MAX v(out)
.meas dc slope DERIV v(out) AT=1
.meas dc mean AVG v(out) FROM=0 TO=4
.meas dc span PARAM='knee-half'
"""


def test_a_clamp() -> None:
    found = circuitsim.run(circuitsim.loads(CLAMP))
    values = found["meas"]
    assert values["knee"] == pytest.approx(4.0 + 1e-6, rel=1e-9)
    assert values["half"] == pytest.approx(1.554, rel=1e-10)
    assert values["top"] == pytest.approx(2.0)
    assert values["slope"] == pytest.approx(0.5, rel=1e-9)
    assert values["mean"] == pytest.approx(1.0)
    assert values["span"] == pytest.approx(4.0 + 1e-6 - 1.554, rel=1e-9)


def test_a_junction_diode_between_points() -> None:
    """Crossings are roots of the circuit itself, not of a line between the points of a coarse sweep."""
    deck = circuitsim.loads("diode\nV1 a 0 0\nD1 a 0 dm\n.model dm D(IS=1e-14 N=1)\n.dc V1 0.3 0.9 0.3\n")
    found = measure_sweep(deck, circuitsim.sweep(deck), ["on WHEN i(D1)=1m"])
    thermal = 1.380649e-23 * 300.15 / 1.602176634e-19  # ngspice's constants, of 2010, differ by 3e-7
    assert found["on"] == pytest.approx(thermal * math.log1p(1e-3 / 1e-14), rel=1e-6)
    there = circuitsim.solve(deck.circuit.with_values({"V1": found["on"]}))
    assert there.current("D1") == pytest.approx(1e-3, rel=1e-7)


def test_a_falling_sweep_crosses_in_its_own_order() -> None:
    deck = circuitsim.loads(CLAMP)
    down = circuitsim.sweep(deck, V1=np.arange(9.0, -1.5, -0.5).tolist())
    assert measure_sweep(deck, down, ["x WHEN v(out)=1 FALL=1", "y WHEN v(out)=1 RISE=1"]) == {
        "x": pytest.approx(2.0),
        "y": None,
    }


def test_what_cannot_be_measured_fails_alone() -> None:
    deck = circuitsim.loads(CLAMP + ".meas dc far FIND v(out) AT=20\n")
    with pytest.warns(DeckWarning, match="20 lies outside -1 to 9"):
        found = circuitsim.run(deck)
    assert found["meas"]["far"] is None and found["meas"]["top"] == pytest.approx(2.0)
    two = circuitsim.sweep(deck, V1=[0, 1], V2=[1, 2])
    with pytest.raises(UsageError, match="a sweep of one quantity"):
        measure_sweep(deck, two, ["top MAX v(out)"])


def test_the_command(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "clamp.cir"
    path.write_text(CLAMP, encoding="utf-8")
    assert main(["sweep", str(path), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["measurements"]["top"] == pytest.approx(2.0)
    assert main(["sweep", str(path), "--vary", "V1=0:2:1", "--measure", "top MAX v(out)"]) == 0
    assert capsys.readouterr().out == "name,value\ntop,1.0\n"
    assert main(["sweep", str(path), "--columns", "v(out)"]) == 0
    assert "measured: knee = 4" in capsys.readouterr().err
