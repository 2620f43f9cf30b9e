"""Responses at several values: `.step` around `.ac`, against the formula of a low-pass and single runs."""

from __future__ import annotations

import json

import numpy as np
import pytest

import circuitsim
from circuitsim.cli import main
from circuitsim.errors import UsageError
from circuitsim.small_signal import ac, ac_sweep

DECK = """low-pass with a diode
V1 in 0 DC 1 AC 1
R1 in out {r}
C1 out 0 1u
D1 0 d ideal
R2 d out 1k
.model ideal D
.param r=1k
.ac dec 5 10 10k
.step param r list 500 1k
.step C1 list 1u 2u
.meas ac f3 WHEN vdb(out)=-3.0102999566 FALL=1
"""


def test_each_run_is_the_response_of_its_values() -> None:
    found = ac_sweep(circuitsim.loads(DECK), columns="v(out)")
    assert found.responses.shape == (16, 2, 2)
    hertz = found.responses.axes["frequency"][:16]
    grid = found.responses.grid("v(out)")
    for i, r in enumerate((500.0, 1e3)):
        for j, c in enumerate((1e-6, 2e-6)):
            assert grid[:, i, j] == pytest.approx(1.0 / np.sqrt(1.0 + (2.0 * np.pi * hertz * r * c) ** 2), rel=1e-12)
            assert found.measured.grid("f3")[i, j] == pytest.approx(1.0 / (2.0 * np.pi * r * c), rel=1e-9)
    assert "4 responses over r, C1" in repr(found)


def test_states_of_diodes_are_those_of_each_run() -> None:
    deck = circuitsim.loads("clamp\nV1 in 0 0 AC 1\nR1 in out 1k\nD1 out 0 ideal\n.model ideal D\n.ac lin 1 1 1\n")
    found = ac_sweep(deck, {"V1": [-1.0, 1.0]}, "v(out)").responses
    assert found["v(out)"].tolist() == [1.0, 0.0]
    alone = ac(deck.circuit.with_values({"V1": -1.0}), [1.0], {"V1": 1.0})
    assert alone["out"].tolist() == [1.0]


def test_a_run_without_a_response_is_marked() -> None:
    deck = circuitsim.loads("r\nI1 0 a 1 AC 1\nD1 a 0 ideal\nR1 a 0 1\n.model ideal D\n.ac lin 2 1 2\n")
    found = ac_sweep(deck, {"R1": [1.0, 2.0]})
    assert [status.value for status in found.responses.status] == ["solved"] * 4
    with pytest.raises(UsageError, match="small signals do not depend on the time"):
        ac_sweep(deck, {"time": [0.0, 1.0]})


def test_the_command_shows_runs_and_measurements(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "own.cir"
    path.write_text(DECK, encoding="utf-8")
    assert main(["ac", str(path), "--columns", "v(out)", "--plot", str(tmp_path / "a.png")]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[0] == "frequency,r,C1,status,v(out),v(out) dB,v(out) phase"
    assert len(out.splitlines()) == 1 + 64
    assert err.count("measured at r=") == 4
    assert main(["ac", str(path), "--measure", "low MIN vdb(out)", "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["axes"]["C1"] == [1e-6, 1e-6, 2e-6, 2e-6]
    assert set(data["columns"]) == {"f3", "low"}
    assert main(["ac", str(path), "--measure", "x FIND vdb(out) AT=1MEG"]) == 2
    assert "1MEG lies outside" in capsys.readouterr().err
    assert main(["ac", str(path), "--output", str(tmp_path / "a.raw")]) == 2
    assert "a rawfile holds one response" in capsys.readouterr().err
    path.write_text(DECK + ".meas ac far FIND vdb(out) AT=1MEG\n", encoding="utf-8")
    assert main(["ac", str(path), "--columns", "v(out)"]) == 0
    assert capsys.readouterr().err.count("1MEG lies outside") == 1


def test_colours_of_a_family_follow_the_run() -> None:
    axes = ac_sweep(circuitsim.loads(DECK), {"r": [500.0, 1e3, 2e3]}, "v(out) v(d)").plot().axes[0]
    colours = [line.get_color() for line in axes.lines]
    assert len(set(colours)) == 3 and colours[::2] == colours[1::2]
    assert [line.get_linestyle() for line in axes.lines] == ["-", "--"] * 3


def test_run_steps_the_response() -> None:
    found = circuitsim.run(circuitsim.loads(DECK))
    assert list(found) == ["ac"]
    assert found["ac"].measured["f3"].size == 4
