"""Measurements on waveforms against closed forms, and against ngspice's own ``.meas``."""

from __future__ import annotations

import csv
import io
import json
import math
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from circuitsim.cli import main
from circuitsim.cli.progress import LateProgress
from circuitsim.errors import UsageError
from circuitsim.netlist import loads
from circuitsim.time_domain import Pulse, Sine, TransientResult, measure, signals, transient

OMEGA = 2.0 * math.pi * 50.0


@pytest.fixture(scope="module")
def sine() -> TransientResult:
    """3 V sin ωt + 1 V, half-wave rectified into 1 kΩ, for two periods; a step at 13 ms."""
    circuit = loads("t\nV1 in 0 0\nD1 in out\nR1 out 0 1000\nC1 in 0 1e-06\nV2 step 0 0\nR2 step 0 1\n").circuit
    waves = {"V1": Sine(1.0, 3.0, 50.0), "V2": Pulse(-1.0, 2.0, 13e-3)}
    return transient(circuit, 0.04, waves, points=2)


EDGE = math.asin(1.0 / 3.0) / OMEGA
"""The sine with its offset is positive from −EDGE to 10 ms + EDGE."""
_SINES = 12.0 * math.cos(OMEGA * EDGE) - 4.5 * math.sin(2.0 * OMEGA * EDGE)
SQUARE = (5.5 * (0.01 + 2.0 * EDGE) + _SINES / OMEGA) / 0.02
"""Mean square of the rectified sine."""
MEAN = (2.0 * 3.0 / OMEGA * math.cos(OMEGA * EDGE) + 1.0 * (0.01 + 2.0 * EDGE)) / 0.02


@pytest.mark.parametrize(
    ("text", "exact"),
    [
        ("m MAX v(in)", 4.0),
        ("m MIN v(in)", -2.0),
        ("m PP v(in)", 6.0),
        ("m MAX_AT v(in) FROM=0.02", 0.025),
        ("m MIN_AT v(in) TO=0.02", 0.015),
        ("m MAX v(in) FROM=10m TO=12m", 1.0),
        ("m AVG v(in)", 1.0),
        ("m RMS v(in) FROM=0 TO=20m", math.sqrt(1.0 + 4.5)),
        ("m AVG v(out)", MEAN),
        ("m INTEG v(out) TO=20m", 0.02 * MEAN),
        ("m INTEG i(R1)", 0.04 * MEAN / 1e3),
        ("m FIND v(in) AT=5m", 4.0),
        ("m WHEN v(in) = 2.5 RISE=2", 0.02 + 1e-2 / 6.0),
        ("m WHEN v(in)=2.5 FALL=LAST", 0.03 - 1e-2 / 6.0),
        ("m WHEN v(in)=2.5 CROSS=3", 0.02 + 1e-2 / 6.0),
        ("m WHEN v(in)=2.5 TD=5m", 0.01 - 1e-2 / 6.0),
        ("m FIND v(step) WHEN v(in)=-0.5 CROSS=LAST", 2.0),
        ("m WHEN v(step)=0", 13e-3),
        ("m WHEN v(in)=v(step) RISE=1", 0.02 + math.asin(1.0 / 3.0) / OMEGA),
        ("m TRIG v(in) VAL=1 FALL=1 TARG v( in, 0 ) VAL=1 RISE=1", 0.01),
        ("m TRIG AT=1m TARG v(step) VAL=1 RISE=1", 12e-3),
        ("m MAX {2*v(out)-1}", 7.0),
        ("m FIND v(in) AT={quarter}", 4.0),
        # As LTspice writes it: blanks in place of equals signs, a stretch between two events, a formula behind PARAM.
        ("m MAX v(in) FROM 10m TO 12m", 1.0),
        ("m FIND v(in) AT 5m", 4.0),
        ("m WHEN v(in)=2.5 FALL LAST", 0.03 - 1e-2 / 6.0),
        ("m TRIG v(in) VAL 1 FALL 1 TARG v(in) VAL 1 RISE 1", 0.01),
        ("m PARAM 2 * quarter + 1", 1.01),
        ("m PARAM {1+1} * {quarter+1}", 2.01),
        ("m PARAM='{1+1}*3'", 6.0),
        ("m AVG v(in) TRIG v(in) VAL=1 FALL=1 TARG v(in) VAL=1 RISE=1", 1.0 - 6.0 / math.pi),
        ("m MIN v(in) TRIG AT 0 TARG v(step) VAL=0 RISE=1", 1.0 - 3.0 * math.sin(OMEGA * 3e-3)),
        ("m TRIG v(in)=1 FALL=1 TARG v( in, 0 )=1 RISE=1", 0.01),
        ("m TRIG AT=1m TARG v(step)=v(in)-v(in)+1", 12e-3),
        ("m FIND v(in) AT=quarter*2+1m/2-0.5m", 1.0),
        ("m WHEN v(in)=-quarter*100 FALL=1", 0.01 + math.asin(0.5) / OMEGA),
        # Formulas without braces.
        ("m AVG V(in)*V(in) FROM 0 TO 20m", 1.0 + 4.5),
        ("m AVG -V(in) * V(in) FROM 0 TO 20m", -1.0 - 4.5),
        ("m MAX 2*v(out)-1", 7.0),
        ("m MAX 2 * v(out) - 1 FROM=0", 7.0),
        ("m FIND v(in)/ 2 AT 5m", 2.0),
        ("m MIN abs( v(in) - 1 ) TO=4m", 0.0),
        ("m WHEN 2*v(in)=5 RISE=2", 0.02 + 1e-2 / 6.0),
        ("m PP '-v(in)'", 6.0),
        ("m MAX v( in , 0 )-v(step)", 5.0),
        ("m AVG v(out)*i(R1) FROM 0 TO 20m", SQUARE / 1e3),
    ],
)
def test_against_closed_forms(sine: TransientResult, text: str, exact: float) -> None:
    found = measure(sine, text, {"quarter": 5e-3})
    assert found.name == "m"
    assert found.value == pytest.approx(exact, rel=1e-11, abs=1e-12)


def test_an_event_that_does_not_happen(sine: TransientResult) -> None:
    assert measure(sine, "m WHEN v(in)=5").value is None
    assert measure(sine, "m WHEN v(in)=2.5 RISE=9").value is None
    assert measure(sine, "m WHEN v(in)=4").value is None  # touched, not crossed
    assert measure(sine, "m AVG v(in) TRIG v(in) VAL=1 FALL=1 TARG v(in) VAL=5").value is None


@pytest.mark.parametrize(
    ("card", "said"),
    [
        ("m AVG v(b) FORM=1m", "does not belong"),
        ("m MAX v(nowhere)", "nowhere"),
        ("m TRIG v(b) VAL=1 RISE=1", "missing"),
        ("m PARAM='2*other'", "no number"),
    ],
)
def test_a_measurement_in_error_is_refused_before_the_run(
    card: str, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    deck = tmp_path / "d.cir"
    deck.write_text(f"*\nV1 a 0 1\nR1 a b 1k\nC1 b 0 1u\n.step param x 1 2 1\n.tran 10u 2m\n.meas tran {card}\n.end\n")
    monkeypatch.setattr("circuitsim.time_domain.transient", lambda *_, **__: pytest.fail("a run was made"))
    alone = tmp_path / "alone.cir"
    alone.write_text(deck.read_text().replace(".step", "*"))
    for path in (deck, alone):
        assert main(["tran", str(path)]) == 2
        assert said in capsys.readouterr().err


@pytest.mark.parametrize("step", [".step param x 1 2 1\n", ""], ids=["steps", "alone"])
def test_a_measurement_outside_the_run_fails_alone(
    step: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    deck = tmp_path / "d.cir"
    cards = f"{step}.tran 10u 2m uic\n.meas tran m AVG v(b) TO=3\n.meas tran top MAX v(b)\n.end\n"
    deck.write_text("*\nV1 a 0 1\nR1 a b 1k\nC1 b 0 1u\n" + cards)
    assert main(["tran", str(deck), "--format", "csv"]) == 0
    out, said = capsys.readouterr()
    assert "3 lies outside the run" in said and "0.864665" in said and len(out.splitlines()) > 200


def test_times_that_a_sweep_varies_are_not_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The end of a stretch is a parameter, whose value as written lies outside the run."""
    deck = tmp_path / "d.cir"
    cards = (
        ".param last=500 end={last*2}\n.step param last list 0.5m 1m\n.tran 10u 2m uic\n"
        ".meas tran top MAX v(b) TO=end\n.end\n"
    )
    deck.write_text("*\nV1 a 0 1\nR1 a b 1k\nC1 b 0 1u\n" + cards)
    assert main(["tran", str(deck), "--format", "csv"]) == 0
    said = capsys.readouterr().err
    assert "top = 0.632121" in said and "top = 0.864665" in said


def test_cards_that_name_no_analysis(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """LTspice's: of the deck's own analysis; those of others are left out."""
    deck = tmp_path / "d.cir"
    cards = ".tran 10u 2m uic\n.meas top MAX v(b)\n.meas ac gain MAX v(b)\n.end\n"
    deck.write_text("*\nV1 a 0 1\nR1 a b 1k\nC1 b 0 1u\n" + cards)
    assert main(["tran", str(deck), "--format", "csv"]) == 0
    said = capsys.readouterr().err
    assert "top = 0.864665" in said and "gain" not in said.replace(".meas ac gain MAX v(b)", "")


def test_what_a_run_alone_can_tell_is_accepted_before_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A time from a measurement before, a number of crossings, a quotient: of values that are not known yet."""
    deck = tmp_path / "d.cir"
    deck.write_text(
        "*\nV1 a 0 SIN(0 1 1k)\nR1 a b 1\nC1 b 0 1u\n.tran 1u 2m\n.meas tran t WHEN v(a)=0.5 RISE=2\n"
        ".meas tran e AVG v(a) FROM=t TO={t+0.5m}\n.meas tran f FIND v(a) AT=t\n.meas tran q PARAM 1/(f-1)\n"
        ".meas tran w PP v(a) TRIG AT=t TARG v(a) VAL=0 FALL=2\n.end\n"
    )
    assert main(["tran", str(deck), "--format", "csv"]) == 0
    said = capsys.readouterr().err
    for part in ("t = 0.00108333", "f = 0.5", "q = -2", "w = 1"):
        assert part in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("m", "missing"),
        ("m SKEW v(in)", "SKEW is not done"),
        ("m MAX v(in) FROM=1", "outside the run"),
        ("m MAX v(in) FROM=2m TO=1m", "ends before"),
        ("m FIND v(in)", "missing"),
        ("m WHEN v(in)", "quantity=value"),
        ("m TRIG v(in) TARG v(in) VAL=1", "VAL="),
        ("m MAX v(nowhere)", "nowhere"),
        ("m WHEN v(in)=x", "no number"),
        ("m MAX v(in) MAYBE", "does not belong"),
        ("m MAX v(in)*MAYBE", "MAYBE"),
        ("m MAX v(in)*", "expected"),
    ],
)
def test_what_is_refused(sine: TransientResult, text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        measure(sine, text)


DECK = """half-wave rectifier
V1 in 0 SIN(0 10 50)
R1 in a 10
D1 a out ideal
C1 out 0 100u
R2 out 0 500
{model}
.tran 10u 60m 0 5u uic
"""
LINES = [
    "ripple PP v(out) from=30m to=60m",
    "mean AVG v(out) from=20m to=60m",
    "eff RMS i(V1) from=20m to=60m",
    "start WHEN v(out)=5 rise=1",
    "late FIND v(out) WHEN v(in)=0 fall=2",
]


@pytest.mark.ngspice
@pytest.mark.skipif(shutil.which("ngspice") is None, reason="ngspice is not installed")
def test_against_ngspice(tmp_path: Path) -> None:
    """Its diode with a small emission coefficient is nearly ideal: some 20 mV of 9 V."""
    text = DECK.format(model=".model ideal D(is=1e-12 n=0.02)") + "".join(f".meas tran {line}\n" for line in LINES)
    path = tmp_path / "deck.cir"
    path.write_text(text + ".control\nrun\n.endc\n.end\n")
    done = subprocess.run(["ngspice", "-b", str(path)], capture_output=True, text=True, check=False, timeout=60)
    said = [line.split("=") for line in done.stdout.splitlines() if "=" in line]
    theirs = {
        words[0].strip(): float(words[1].split()[0])
        for words in said
        if words[0].strip() in {line.split()[0] for line in LINES}
    }
    run = transient(loads(DECK.format(model=".model ideal D")))
    for line in LINES:
        found = measure(run, line)
        assert found.value == pytest.approx(theirs[found.name], rel=0.01), line


def test_the_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "deck.cir"
    path.write_text(DECK.format(model=".model ideal D"))
    assert main(["tran", str(path), "--measure", "top MAX v(in)", "--measure", "never WHEN v(out)=99"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["name"] for row in rows] == ["top", "never"]
    assert float(rows[0]["value"]) == pytest.approx(10.0, rel=1e-12)
    assert rows[1]["value"] == "failed"
    assert main(["tran", str(path), "--measure", "top MAX v(in)", "--format", "table"]) == 0
    assert main(["tran", str(path), "--measure", "top MAX"]) == 2


CARDS = """half wave
V1 in 0 SIN(0 10 50)
D1 in out circuitsim_ideal
C1 out 0 10u
R1 out 0 {load}
.param load=1k late=10m
.model circuitsim_ideal D(is=1e-12 n=0.01)
.ic v(out)=12
.tran 10u 40m
.meas tran top MAX v(out)
.meas tran swing PP par('2 * v(out)') from='late + 1m' to={40m}
.meas tran both param = 'swing + top'
.meas tran fall DERIV v(out) AT=1m
.meas tran charge DERIV v(out) WHEN v(out)=5 RISE=1
.meas tran never WHEN v(out)=50
.meas dc other FIND v(out) AT=1
.end
"""
TIME_CONSTANT = 1e-2


def test_cards_of_a_deck_and_held_nodes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "deck.cir"
    path.write_text(CARDS)
    assert main(["tran", str(path), "--format", "json"]) == 0
    shown = capsys.readouterr()
    found = json.loads(shown.out)["measurements"]
    assert not shown.err
    assert list(found) == ["top", "swing", "both", "fall", "charge", "never"]
    assert found["top"] == pytest.approx(12.0, rel=1e-13)
    off = (math.pi - math.atan(OMEGA * TIME_CONSTANT)) / OMEGA
    meet = _meeting(
        lambda t: 10.0 * math.sin(OMEGA * t) - 10.0 * math.sin(OMEGA * off) * math.exp(-(t - off) / TIME_CONSTANT),
        0.02,
        0.025,
    )
    low = 10.0 * math.sin(OMEGA * meet)
    assert found["swing"] == pytest.approx(2.0 * (10.0 - low), rel=1e-11)
    assert found["both"] == pytest.approx(found["swing"] + found["top"], rel=1e-15)
    assert found["fall"] == pytest.approx(-12.0 * math.exp(-0.1) / TIME_CONSTANT, rel=1e-10)
    assert found["charge"] == pytest.approx(10.0 * OMEGA * math.sqrt(0.75), rel=1e-10)
    assert found["never"] is None
    assert main(["tran", str(path), "--format", "table"]) == 0
    assert "never   failed" in capsys.readouterr().out
    assert main(["tran", str(path)]) == 0
    assert "measured: top = 12, swing = " in capsys.readouterr().err


def _meeting(gap: Callable[[float], float], low: float, high: float) -> float:
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if gap(middle) * gap(high) < 0.0 else (low, middle)
    return middle


def test_held_nodes_give_initial_values_to_uic() -> None:
    text = CARDS.replace(".tran 10u 40m", ".tran 10u 40m uic").replace(".ic v(out)=12", ".ic v(out)=3 v(in)=1 i(L1)=2")
    run = transient(loads(text.replace("R1 out", "C2 in out 1p ic=-4\nL1 x 0 1\nR2 x 0 1\nR1 out")))
    assert run.current("L1", times=[0.0]).tolist() == [2.0]
    assert run.voltage("x", times=[0.0]).tolist() == [-2.0]
    # C2 and the source hold the node: 1 pF against 10 µF takes its share of the charge.
    assert run.voltage("out", times=[0.0])[0] == pytest.approx(3.0 + 1e-7, abs=2e-7)


@pytest.mark.parametrize(
    ("card", "said"),
    [
        (".ic v(nothing)=1", "no nothing"),
        (".ic out=1", "potentials and inductor currents"),
    ],
)
def test_initial_values_without_effect(card: str, said: str) -> None:
    deck = loads(CARDS.replace(".ic v(out)=12", card))
    assert any(said in problem.message for problem in deck.problems)


def test_an_interrupt_keeps_what_is_done(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch) -> None:
    """The signal comes while the run is under way; energies and certificate are those of its part."""
    path = tmp_path / "deck.cir"
    late_cards = ".meas tran early MAX v(out) TO=0.5\n.meas tran late AVG v(out) FROM=39\n"
    path.write_text(CARDS.replace(".tran 10u 40m", f"{late_cards}.tran 1m 40"))

    def late(self: LateProgress, done: float, whole: float) -> None:
        if done > 1.0 and not raised:
            raised.append(done)
            signal.raise_signal(signal.SIGINT)

    raised: list[float] = []
    monkeypatch.setattr(LateProgress, "update", late)
    before = signal.getsignal(signal.SIGINT)  # ignored in processes that a shell started in the background
    assert main(["tran", str(path), "--columns", "v(out)"]) == 130
    shown = capsys.readouterr()
    rows = list(csv.DictReader(io.StringIO(shown.out)))
    assert float(rows[-1]["time"]) == raised[0]
    assert len(rows) == math.floor(raised[0] / 1e-3) + 2
    assert f"interrupted at {raised[0]:g} s" in shown.err
    assert "early = " in shown.err and "not measured, as the run ended before: late AVG" in shown.err
    assert signal.getsignal(signal.SIGINT) is before


def test_stretches_begin_at_the_first_output_time() -> None:
    """As in ngspice and LTspice, which keep nothing before it; ``FROM=0`` asks for all of the run."""
    deck = "t\nV1 a 0 PWL(0 0 1m 1 2m 1)\nR1 a b 1\nC1 b 0 1p\n.tran 10u 2m 1m\n"
    run = transient(loads(deck))
    assert run.times[0] == 1e-3
    assert measure(run, "m AVG v(a)").value == pytest.approx(1.0, abs=1e-12)
    assert measure(run, "m AVG v(a) FROM=0").value == pytest.approx(0.75, abs=1e-12)
    assert measure(run, "m WHEN v(a)=0.5").value is None
    assert measure(run, "m WHEN v(a)=0.5 TD=0.1m").value == pytest.approx(0.5e-3, abs=1e-15)
    with pytest.raises(UsageError, match="ends before it begins"):
        measure(run, "m MAX v(a) TO=0.5m")


ARC = {level: math.asin(level) / math.pi for level in (0.5, 0.9, 0.99, 0.999)}
"""The sine is above a level for half a period less twice this share of half a period."""


@pytest.mark.parametrize(("method", "step", "within"), [("exact", 2e-5, 1e-9), ("implicit", 2e-6, 2e-4)])
@pytest.mark.parametrize(
    ("text", "exact"),
    [
        ("AVG V(a)>0.5", 1.0 / 3.0),
        ("AVG if(V(a)>0.9,1,0)", 0.5 - ARC[0.9]),
        ("RMS if(V(a)>0.99,1,0)", math.sqrt(0.5 - ARC[0.99])),
        ("AVG floor(2*V(a))", -0.5),
        ("MAX if(V(a)>0.999,5,0)", 5.0),
        ("AVG abs(V(a))", 2.0 / math.pi),
        ("AVG u(V(a)-0.999)", 0.5 - ARC[0.999]),
        ("WHEN if(V(a)>0.5,1,0)=0.5 RISE=1", 1e-3 / 12.0),
        ("PP if(abs(V(a))>0.5,1,0)", 1.0),
        ("INTEG max(V(a),0)-min(V(a),0)", 2e-3 / math.pi),
        ("DERIV abs(V(a)) AT=0.75m", 0.0),
    ],
)
def test_formulas_with_conditions(method: str, step: float, within: float, text: str, exact: float) -> None:
    """A sine of 1 V and 1 kHz, for a period."""
    circuit = loads("t\nV1 a 0 0\nR1 a b 1000\nC1 b 0 1e-09\n").circuit
    run = transient(circuit, 1e-3, {"V1": Sine(0.0, 1.0, 1e3)}, {}, step=step, method=method)
    assert measure(run, f"m {text}").value == pytest.approx(exact, abs=within * (1e3 if "DERIV" in text else 1.0))


def test_conditions_that_change_too_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "ALL_LOOKS", 20)
    run = transient(loads("t\nV1 a 0 PWL(0 0 1m 1)\nR1 a b 1\nC1 b 0 1p\n.tran 10u 1m\n"))
    with pytest.raises(UsageError, match="change more than 16 times"):
        measure(run, "m AVG floor(1e6*v(a))")
