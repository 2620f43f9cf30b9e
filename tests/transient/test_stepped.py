"""Waveforms at several values of elements and parameters, against closed forms and single runs."""

import math
from pathlib import Path

import numpy as np
import pytest

from circuitsim import transient
from circuitsim.cli import main
from circuitsim.netlist import loads
from circuitsim.time_domain import transient_sweep

CHARGING = """charging
V1 in 0 5
R1 in out {r}
C1 out 0 1u ic=0
.param r=1k double={2*r}
.tran 100u 5m uic
.meas tran half WHEN v(out)=2.5
.meas tran late FIND v(out) AT=4m
"""
RECTIFIER = """half-wave rectifier
.param c=10u
V1 in 0 SIN(0 10 50)
D1 in out
C1 out 0 {c}
R1 out 0 1k
.tran 1m 40m
.step param c list 5u 10u
.meas tran ripple PP v(out) FROM=20m
"""
CLOSING = """a switch with and without hysteresis
V1 in 0 10
R1 in c 1k
C1 c 0 1u ic=0
S1 c 0 c 0 sw
.param h=1
.model sw SW(vt=5 vh={h} ron=1 roff=1g)
.tran 100u 2m uic
"""


def charged(times: np.ndarray, seconds: np.ndarray) -> np.ndarray:
    return 5.0 * (1.0 - np.exp(-times / seconds))


def test_against_closed_forms() -> None:
    """Parameters, those that follow them in expressions of columns, elements and the temperature, first fastest."""
    deck = loads(CHARGING)
    found = transient_sweep(deck, {"r": [1e3, 2e3], "C1": [1e-6, 2e-6, 3e-6]}, "v(out) {v(out)*double}")
    waves, measured = found.waves, found.measured
    assert waves.shape == (51, 2, 3) and measured.shape == (2, 3)
    seconds = waves["r"] * waves["C1"]
    assert waves["v(out)"] == pytest.approx(charged(waves["time"], seconds), abs=1e-12)
    assert waves.columns["{v(out)*double}"] == pytest.approx(2.0 * waves["r"] * waves["v(out)"], rel=1e-12)
    assert measured["r"].tolist() == [1e3, 2e3] * 3
    seconds = measured["r"] * measured["C1"]
    assert measured["half"] == pytest.approx(seconds * math.log(2.0), rel=1e-11)
    assert measured["late"] == pytest.approx(charged(np.full(6, 4e-3), seconds), rel=1e-11)
    assert measured.grid("late").shape == (2, 3)


def test_one_run_is_that_of_the_deck() -> None:
    deck = loads(RECTIFIER)
    found, run = transient_sweep(deck, {}, "v(out) i(D1)"), transient(deck)
    assert found.waves["v(out)"].tobytes() == run.voltage("out").tobytes()
    assert found.waves["time"].tobytes() == run.times.tobytes()
    assert found.events.columns[0] == [event.time for event in run.events]
    assert len(found.measured) == 1


def test_a_run_with_an_error_keeps_what_was_before() -> None:
    found = transient_sweep(loads(CLOSING), {"h": [0.0, 1.0]}, "v(c)")
    end = 1e-3 * math.log(2.0)
    waves = found.waves.grid("v(c)")
    times = found.waves.grid("time")[:, 0]
    before = times < end
    assert waves[before, 0] == pytest.approx(10.0 * (1.0 - np.exp(-times[before] / 1e-3)), abs=1e-4)
    assert np.isnan(waves[~before, 0]).all() and not np.isnan(waves[:, 1]).any()
    assert [failure.row for failure in found.measured.failures] == [0]
    assert "hysteresis" in str(found.measured.failures[0].error)
    assert len(found.waves.failures) == np.count_nonzero(~before)


def test_ended_early_it_has_the_runs_done() -> None:
    deck, vary = loads(CHARGING), {"r": [1e3, 2e3], "V1": [5.0, 6.0, 7.0]}
    whole = transient_sweep(deck, vary, "v(out)")
    found = transient_sweep(deck, vary, "v(out)", progress=lambda done, runs: done == 4)
    n = len(whole.waves) // 6
    assert len(found.measured) == 4 and found.waves.shape == (n, 4)
    assert found.waves["v(out)"].tobytes() == whole.waves["v(out)"][: 4 * n].tobytes()
    assert found.measured["V1"].tolist() == [5.0, 5.0, 6.0, 6.0]


def test_a_rawfile_has_a_plot_for_each_run(tmp_path: Path) -> None:
    (tmp_path / "own.cir").write_text(RECTIFIER)
    path = tmp_path / "own.raw"
    assert not main(["tran", str(tmp_path / "own.cir"), "--columns", "v(out)", "--output", str(path), "--binary"])
    _, *plots = path.read_bytes().split(b"Title: half-wave rectifier ")
    assert [plot.partition(b"\n")[0] for plot in plots] == [b"(c=5e-06)", b"(c=1e-05)"]
    waves = transient_sweep(loads(RECTIFIER), {"c": [5e-6, 1e-5]}, "v(out)").waves
    for plot, volts in zip(plots, waves.grid("v(out)").T):
        head, _, body = plot.partition(b"Binary:\n")
        assert b"Plotname: Transient Analysis\n" in head
        assert np.frombuffer(body, "<f8").reshape(-1, 2)[:, 1].tolist() == volts.tolist()
