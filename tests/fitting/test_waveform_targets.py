"""Decks fitted to waveforms and measurements: closed forms, differences, resumption, what is refused."""

import csv
import math
from pathlib import Path

import numpy as np
import pytest

from circuitsim import transient
from circuitsim.cli import main
from circuitsim.errors import NetlistError, UsageError
from circuitsim.fitting import MeasureTarget, TimedDeck, WaveformFit, WaveTarget, read_targets
from circuitsim.netlist import load, loads
from circuitsim.netlist.roles import read_roles
from circuitsim.trained import load_run

NETLISTS = Path(__file__).resolve().parents[2] / "netlists"
LOWPASS = """RC low-pass with a loss
*! input V1
*! trainable R1 C1 D1.vfwd S1.ron
V1 in 0 0
R1 in a 2k
D1 a out dm
C1 out 0 1u ic=0.2
R2 out 0 5k
S1 out 0 out 0 load
.model dm D(Vfwd=0.3 Ron=10 Roff=1Meg)
.model load SW(VT=2 VH=0.5 RON=700 ROFF=1Meg)
.tran 10u 4m uic
.meas tran top MAX v(out)
.meas tran mean AVG v(out) FROM=1m
.end
"""


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def train(deck: Path | str, data: Path, *words: str) -> int:
    return main(["train", "circuit", str(deck), "--data", str(data), *words])


def fit_of(text: str, data: Path, steady: bool = False) -> WaveformFit:
    deck = loads(text)
    roles = read_roles(deck)[0]
    targets = read_targets(data, deck, roles.inputs)
    ends = [float(own.times[-1]) for own in targets if isinstance(own, WaveTarget)]
    return WaveformFit(TimedDeck(deck, roles, steady, max(ends) if ends and not steady else None), targets)


WAVES = """sample,time,V1,v(out),i(R1)
a,0,0,,
a,1e-3,5,1.2,
a,2e-3,5,2.2,1e-3
a,3.5e-3,0,,-1e-3
b,0,3,0.4,
b,3e-3,4,2,
"""


def differences(fit, samples: list[int], step: float) -> list[float]:
    """Central differences of the loss by each number."""
    found = []
    for k in range(4):
        losses = []
        for sign in (1.0, -1.0):
            fit.parameters["numbers"][k] += sign * step
            losses.append(fit.measured(samples)["loss"])
            fit.parameters["numbers"][k] -= sign * step
        found.append((losses[0] - losses[1]) / (2.0 * step))
    return found


def test_the_gradient_of_waveforms_against_differences(tmp_path: Path) -> None:
    """Two samples with inputs of their own, cells without a target, numbers of a diode and a switch."""
    fit = fit_of(LOWPASS, written(tmp_path, "waves.csv", WAVES))
    assert fit.timed.names == ["R1", "D1.vfwd", "C1", "S1.ron"]
    assert [own.wanted for own in fit.targets if isinstance(own, WaveTarget)] == [4, 2]
    gradients, metrics = fit.gradient((fit.samples,), np.random.default_rng(0))
    assert gradients is not None and set(gradients) == {"numbers"}
    assert metrics["loss"] == fit.measured([0, 1])["loss"] > 0.0
    assert gradients["numbers"] == pytest.approx(differences(fit, [0, 1], 1e-4), rel=1e-5)


def test_the_gradient_of_measurements_against_differences(tmp_path: Path) -> None:
    data = written(
        tmp_path,
        "measures.csv",
        "measurement,target,minimum,maximum,scale,weight\n"
        "top,2.2,,,,\nmean,,,1,0.5,2\nlate WHEN v(out)=1 RISE=1,1e-4,,,,\n",
    )
    fit = fit_of(LOWPASS.replace("V1 in 0 0", "V1 in 0 5"), data)
    assert [own.scale for own in fit.targets if isinstance(own, MeasureTarget)] == [2.2, 0.5, 1e-4]
    gradients, metrics = fit.gradient((fit.samples,), np.random.default_rng(0))
    assert gradients is not None and {"loss", "top", "mean", "late"} == set(metrics)
    misses = (metrics["top"] - 2.2) / 2.2, max(metrics["mean"] - 1.0, 0.0) / 0.5, metrics["late"] / 1e-4 - 1.0
    assert metrics["loss"] == pytest.approx((misses[0] ** 2 + 2.0 * misses[1] ** 2 + misses[2] ** 2) / 4.0, rel=1e-12)
    assert gradients["numbers"] == pytest.approx(differences(fit, [0], 1e-5), rel=1e-4, abs=1e-9)


def test_a_filter_learns_the_values_of_the_textbook(tmp_path: Path) -> None:
    """From 20 % beside them to C = 1/(ωR), L = 2R/ω of the Butterworth filter; the deck says so afterwards."""
    text = (NETLISTS / "learn-filter.cir").read_text()
    near = text.replace("10u\nL1", "3.7u\nL1").replace("a b 5m", "a b 14m").replace("b 0 1u", "b 0 2.6u")
    out = tmp_path / "run"
    deck = written(tmp_path, "near.cir", near)
    words = ("--epochs", "120", "--schedule", "cosine", "--out", str(out))
    assert train(deck, NETLISTS / "learn-filter.csv", *words) == 0
    assert {"trained.cir", "history.csv", "checkpoint.npz", "learning.png", "waveforms.png"} <= {
        path.name for path in out.iterdir()
    }
    rows = list(csv.DictReader((out / "history.csv").open()))
    assert float(rows[-1]["rms"]) < 5e-4 < 1e-2 < float(rows[0]["rms"])
    trained = load(out / "trained.cir")
    omega = 2.0 * math.pi * 1000.0
    assert trained.circuit["L1"].value == pytest.approx(100.0 / omega, rel=0.05)
    total = trained.circuit["C1"].value + trained.circuit["C2"].value
    assert total == pytest.approx(2.0 / (50.0 * omega), rel=0.05)
    # The deck runs as it was fitted.
    data = np.loadtxt(NETLISTS / "learn-filter.csv", delimiter=",", skiprows=1)
    found = transient(trained).voltage("b", times=data[:, 0])
    assert np.sqrt(((found - data[:, 1]) ** 2).mean()) == pytest.approx(float(rows[-1]["rms"]), rel=0.2)
    with pytest.raises(UsageError, match="circuitsim tran"):
        load_run(out)


def test_a_rectifier_lowers_its_ripple(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    words = ("--steady", "--epochs", "40", "--lr", "0.1", "--schedule", "cosine", "--out", str(out), "--no-pictures")
    assert train(NETLISTS / "learn-ripple.cir", NETLISTS / "learn-ripple.csv", *words) == 0
    rows = list(csv.DictReader((out / "history.csv").open()))
    assert float(rows[0]["ripple"]) > 5.5 and float(rows[-1]["ripple"]) < 3.5
    assert float(rows[-1]["peak"]) < 0.92 and float(rows[-1]["mean"]) > 13.0
    shown = capsys.readouterr().out
    assert "periodic steady state" in shown and "≤ 0.9" in shown


def test_an_interrupted_run_goes_on_bit_for_bit(tmp_path: Path) -> None:
    data = written(tmp_path, "waves.csv", WAVES)
    deck = written(tmp_path, "lowpass.cir", LOWPASS)
    words = ("--batch", "1", "--scatter", "0.2", "--seed", "3", "--no-pictures")
    assert train(deck, data, *words, "--epochs", "6", "--out", str(tmp_path / "whole")) == 0
    assert train(deck, data, *words, "--epochs", "2", "--out", str(tmp_path / "part")) == 0
    assert main(["train", "resume", "--out", str(tmp_path / "part"), "--epochs", "6", "--no-pictures"]) == 0
    first, second = ((tmp_path / name / "trained.cir").read_bytes() for name in ("whole", "part"))
    assert first == second
    written(tmp_path, "waves.csv", WAVES.replace("1.2", "1.3"))
    assert main(["train", "resume", "--out", str(tmp_path / "part"), "--epochs", "8"]) != 0


def test_held_out_waveforms(tmp_path: Path) -> None:
    data = written(tmp_path, "waves.csv", WAVES)
    deck = written(tmp_path, "lowpass.cir", LOWPASS)
    words = ("--epochs", "2", "--split", "0.5", "--no-pictures", "--out", str(tmp_path / "run"))
    assert train(deck, data, *words) == 0
    row = list(csv.DictReader((tmp_path / "run" / "history.csv").open()))[-1]
    assert float(row["test_loss"]) > 0.0 and float(row["test_rms"]) > 0.0


def test_a_fitted_deck_reads_back(tmp_path: Path) -> None:
    """Time functions, couplings, switches, initial values, held nodes, measurements and roles survive."""
    text = """all of it
*! trainable L1 S1.vt W1.roff
V1 a 0 PWL(0 0 1m 5 2m 0) r=0 td=1m
V2 s 0 SIN(0 1 1k 1m)
L1 a b 1m ic=1m
L2 b d 2m
R3 d 0 10
K1 L1 L2 0.5
C1 b 0 1u
S1 b 0 a 0 sw ON
W1 b c V2 wsw
R1 c 0 1k
R2 s 0 1k
.model sw SW(vt=1 vh=0.1 ron=1 roff=1k)
.model wsw CSW(it=1m ih=0.1m ron=2 roff=3k)
.ic v(b)=1 i(L1)=2m
.tran 10u 3m
.meas tran x MAX v(b)
.end
"""
    deck = loads(text)
    timed = TimedDeck(deck, read_roles(deck)[0])
    values = timed.start * np.array([2.0, 0.9, 1.1])
    again = loads(timed.text(values))
    assert again.following.waves == deck.following.waves and again.following.couplings == deck.following.couplings
    other = TimedDeck(again, read_roles(again)[0])
    assert other.start == pytest.approx(values, rel=1e-15) and other.names == timed.names
    for name in ("b", "c"):
        assert other.run(values, points=50).voltage(name) == pytest.approx(timed.run(values, points=50).voltage(name))


@pytest.mark.parametrize(
    ("data", "words", "said"),
    [
        ("time,v(out)\n0,1\n1m,2\n", (), "not a finite number"),
        ("time,v(out)\n1,1\n0.5,2\n", (), "ascend"),
        ("time,p(R1)\n0,1\n1,2\n", (), "neither time"),
        ("time,V1\n0,1\n1,2\n", (), "no column is a target"),
        ("time,v(out)\n0,1,3\n", (), "3 cells"),
        ("sample,time,v(out)\na,0,1\nb,1,\n", (), "data.csv:3: a sample without a target value"),
        ("time,R1,v(out)\n0,1,1\n", (), "data.csv:1: R1 is no input of the circuit"),
        ("time,v(zz)\n0,1\n", (), "data.csv:1: 'v(zz)': no node"),
        ("time,v(out)\n0,1\n", ("--compare",), "--compare: not for waveforms"),
        ("time,v(out)\n", (), "a header and at least one row"),
        ("measurement,target\nother,1\n", (), "no .meas tran other"),
        ("measurement,aim\ntop,1\n", (), "no column 'aim'"),
        ("measurement,target,minimum\ntop,1,2\n", (), "state a target"),
        ("measurement,target\nx DERIV v(out) AT=1m,1\n", (), "no gradient"),
        ("time,v(out)\n1e-3,1\n", ("--beta", "1"), "--beta"),
        ("time,v(out)\n1e-3,1\n", ("--trainable", "R2 min=6k"), "outside its bounds"),
        ("time,v(out)\n1e-3,1\n", ("--trainable", "D1.what"), "D1.what"),
    ],
)
def test_refused(
    tmp_path: Path, data: str, words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    deck = written(tmp_path, "lowpass.cir", LOWPASS)
    assert train(deck, written(tmp_path, "data.csv", data), *words, "--epochs", "1") != 0
    assert said in capsys.readouterr().err


def test_what_acts_over_time_alone_is_refused_at_rest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    deck = written(tmp_path, "lowpass.cir", LOWPASS.replace("*! input V1", "*! input V1\n*! output v(out)"))
    assert train(deck, written(tmp_path, "rest.csv", "V1,v(out)\n1,0.5\n"), "--epochs", "1") != 0
    assert "no effect" in capsys.readouterr().err
    with pytest.raises(NetlistError, match="its bounds"):
        read_roles(loads(LOWPASS.replace("D1.vfwd", "D1.vfwd min=1 max=2")))


def test_a_deck_with_a_junction_diode(tmp_path: Path) -> None:
    """The gradient of the implicit method is that of the loss."""
    text = LOWPASS.replace("D(Vfwd=0.3 Ron=10 Roff=1Meg)", "D(IS=1n N=1.8 RS=1)").replace("D1.vfwd S1.ron", "D1.n")
    data = written(tmp_path, "m.csv", "measurement,target\nmean,0.5\ntop,0.3\n")
    fit = fit_of(text, data)
    rng = np.random.default_rng(0)
    gradients, _ = fit.gradient([fit.samples], rng)
    assert gradients is not None and fit.timed.names == ["R1", "D1.n", "C1"]
    values, ends = fit.values(), []
    direction = np.array([0.5, 0.7, -0.3])
    for share in (-1e-2, 1e-2):
        run = fit.run(0, values * np.exp(share * direction))
        ends.append(fit.loss(0, run).value)
    assert gradients["numbers"] @ direction == pytest.approx((ends[1] - ends[0]) / 2e-2, rel=2e-3)


def test_sources_that_follow_others_are_refused() -> None:
    """They kept their values at time 0."""
    deck = loads(
        "t\nV1 in 0 PULSE(0 1 0.1m 1u 1u 5m 10m)\nE1 x 0 in 0 2\nR1 x o 1k\nC1 o 0 1u ic=0\n"
        "*! trainable R1 min=100 max=10k\n.tran 10u 2m\n"
    )
    with pytest.raises(UsageError, match="E1 follows other sources"):
        TimedDeck(deck, read_roles(deck)[0])


def test_a_fit_sees_the_waveform_that_tran_shows() -> None:
    """The card's longest step is that of the fit too."""
    deck = loads(
        "t\nV1 in 0 SIN(0 5 1k)\nR1 in a 100\nD1 a out dm\nC1 out 0 1u ic=0\nR2 out 0 5k\n.model dm D(IS=1e-14)\n"
        "*! trainable R1 min=10 max=10k\n.tran 10u 2m 0 5u uic\n"
    )
    timed = TimedDeck(deck, read_roles(deck)[0])
    fitted, shown = timed.run(timed.start, points=21), transient(deck, points=21)
    assert np.array_equal(fitted.voltage("out"), shown.voltage("out"))
