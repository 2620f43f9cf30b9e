"""Measurements and Fourier series of waveforms: closed forms, the implicit method as the exact one, ngspice."""

import csv
import io
import math
import signal
import threading
from pathlib import Path

import numpy as np
import pytest
from spice import NEEDED, spice

from circuitsim import loads, transient
from circuitsim.cli import main
from circuitsim.errors import UsageError
from circuitsim.measurements import measure_all
from circuitsim.time_domain import Pulse, Sine, TransientResult, fourier, measure
from circuitsim.time_domain.signals import OverTime

OMEGA = 100.0 * math.pi
EDGE = math.asin(1.0 / 3.0) / OMEGA
"""The sine with its offset is positive from −EDGE to 10 ms + EDGE."""
SINES = 12.0 * math.cos(OMEGA * EDGE) - 4.5 * math.sin(2.0 * OMEGA * EDGE)
NAMES = {
    **vars(math),
    "w": OMEGA,
    "mean": (6.0 / OMEGA * math.cos(OMEGA * EDGE) + 0.01 + 2.0 * EDGE) / 0.02,
    "square": (5.5 * (0.01 + 2.0 * EDGE) + SINES / OMEGA) / 0.02,
    "arc": lambda level: math.asin(level) / math.pi,
}


@pytest.fixture(scope="module")
def sine() -> TransientResult:
    """3 V sin ωt + 1 V, half-wave rectified into 1 kΩ, for two periods; a step at 13 ms."""
    circuit = loads("t\nV1 in 0 0\nD1 in out\nR1 out 0 1000\nC1 in 0 1e-06\nV2 step 0 0\nR2 step 0 1\n").circuit
    waves = {"V1": Sine(1.0, 3.0, 50.0), "V2": Pulse(-1.0, 2.0, 13e-3)}
    return transient(circuit, 0.04, waves, points=2)


CLOSED = """
4 | MAX v(in)
-2 | MIN v(in)
6 | PP v(in)
0.025 | MAX_AT v(in) FROM=0.02
0.015 | MIN_AT v(in) TO=0.02
1 | MAX v(in) FROM=10m TO=12m
1 | AVG v(in)
sqrt(5.5) | RMS v(in) FROM=0 TO=20m
mean | AVG v(out)
0.02*mean | INTEG v(out) TO=20m
0.04*mean/1e3 | INTEG i(R1)
4 | FIND v(in) AT=5m
0.02+1e-2/6 | WHEN v(in) = 2.5 RISE=2
0.03-1e-2/6 | WHEN v(in)=2.5 FALL=LAST
0.02+1e-2/6 | WHEN v(in)=2.5 CROSS=3
0.01-1e-2/6 | WHEN v(in)=2.5 TD=5m
2 | FIND v(step) WHEN v(in)=-0.5 CROSS=LAST
13e-3 | WHEN v(step)=0
0.02+asin(1/3)/w | WHEN v(in)=v(step) RISE=1
0.01 | TRIG v(in) VAL=1 FALL=1 TARG v( in, 0 ) VAL=1 RISE=1
12e-3 | TRIG AT=1m TARG v(step) VAL=1 RISE=1
7 | MAX {2*v(out)-1}
4 | FIND v(in) AT={quarter}
1 | MAX v(in) FROM 10m TO 12m
4 | FIND v(in) AT 5m
0.03-1e-2/6 | WHEN v(in)=2.5 FALL LAST
0.01 | TRIG v(in) VAL 1 FALL 1 TARG v(in) VAL 1 RISE 1
1.01 | PARAM 2 * quarter + 1
2.01 | PARAM {1+1} * {quarter+1}
6 | PARAM='{1+1}*3'
1-6/pi | AVG v(in) TRIG v(in) VAL=1 FALL=1 TARG v(in) VAL=1 RISE=1
1-3*sin(w*3e-3) | MIN v(in) TRIG AT 0 TARG v(step) VAL=0 RISE=1
0.01 | TRIG v(in)=1 FALL=1 TARG v( in, 0 )=1 RISE=1
12e-3 | TRIG AT=1m TARG v(step)=v(in)-v(in)+1
1 | FIND v(in) AT=quarter*2+1m/2-0.5m
0.01+asin(0.5)/w | WHEN v(in)=-quarter*100 FALL=1
5.5 | AVG V(in)*V(in) FROM 0 TO 20m
-5.5 | AVG -V(in) * V(in) FROM 0 TO 20m
7 | MAX 2*v(out)-1
7 | MAX 2 * v(out) - 1 FROM=0
2 | FIND v(in)/ 2 AT 5m
0 | MIN abs( v(in) - 1 ) TO=4m
0.02+1e-2/6 | WHEN 2*v(in)=5 RISE=2
6 | PP '-v(in)'
5 | MAX v( in , 0 )-v(step)
square/1e3 | AVG v(out)*i(R1) FROM 0 TO 20m
None | WHEN v(in)=5
None | WHEN v(in)=2.5 RISE=9
None | WHEN v(in)=4
None | AVG v(in) TRIG v(in) VAL=1 FALL=1 TARG v(in) VAL=5
"""
"""None: an event that does not happen."""


def test_measurements_read_each_other_in_any_order(sine: TransientResult) -> None:
    texts = ["f PARAM='1/per'", "per TRIG v(in) VAL=1 FALL=1 TARG v(in) VAL=1 FALL=2", "half PARAM='per/2'"]
    found = measure_all(OverTime(sine), texts, {})
    assert found == pytest.approx({"f": 50.0, "per": 0.02, "half": 0.01}, rel=1e-9)
    chain = [f"m{k} PARAM='(m{k + 1}+m{k + 1})/2'" for k in range(1200)]  # deeper than calls may nest
    assert measure_all(OverTime(sine), [*chain, "m1200 MAX v(in)"], {})["m0"] == pytest.approx(4.0, rel=1e-12)
    for circle in (["a PARAM='b'", "b PARAM='a'"], [""]):
        with pytest.raises(UsageError, match=r"no parameter is called|incomplete"):
            measure_all(OverTime(sine), circle, {})
    assert measure_all(OverTime(sine), ["f PARAM='1/late'", "late WHEN v(in)=5"], {}) == {"late": None, "f": None}


@pytest.mark.parametrize("row", CLOSED.strip().split("\n"))
def test_closed_forms(sine: TransientResult, row: str) -> None:
    exact, text = row.split(" | ")
    found, expected = measure(sine, f"m {text}", {"quarter": 5e-3}), eval(exact, NAMES)
    assert found.name == "m"
    assert found.value == (None if expected is None else pytest.approx(expected, rel=1e-11, abs=1e-12))


CONDITIONS = """
1/3 | AVG V(a)>0.5
0.5-arc(0.9) | AVG if(V(a)>0.9,1,0)
sqrt(0.5-arc(0.99)) | RMS if(V(a)>0.99,1,0)
-0.5 | AVG floor(2*V(a))
5 | MAX if(V(a)>0.999,5,0)
2/pi | AVG abs(V(a))
0.5-arc(0.999) | AVG u(V(a)-0.999)
1e-3/12 | WHEN if(V(a)>0.5,1,0)=0.5 RISE=1
1 | PP if(abs(V(a))>0.5,1,0)
2e-3/pi | INTEG max(V(a),0)-min(V(a),0)
0 | DERIV abs(V(a)) AT=0.75m
"""


@pytest.mark.parametrize(("method", "step", "within"), [("exact", "20u", 1e-9), ("implicit", "2u", 2e-4)])
def test_formulas_with_conditions(method: str, step: str, within: float) -> None:
    """A sine of 1 V and 1 kHz, for a period."""
    run = transient(loads(f"t\nV1 a 0 SIN(0 1 1k)\nR1 a b 1k\nC1 b 0 1n ic=0\n.tran {step} 1m uic\n"), method=method)
    for row in CONDITIONS.strip().split("\n"):
        exact, text = row.split(" | ")
        tolerance = within * (1e3 if "DERIV" in text else 1.0)
        assert measure(run, f"m {text}").value == pytest.approx(eval(exact, NAMES), abs=tolerance), text


REFUSED = """
m | incomplete
m SKEW v(in) | SKEW is not supported
m PARAM=2*v(in) | not a number; measure
m WHEN v(in)=1 RISE=0 | neither LAST
m MAX v(in) FROM=1 | outside the run
m MAX v(in) FROM=2m TO=1m | ends before
m FIND v(in) | incomplete
m WHEN v(in) | quantity=value
m TRIG v(in) TARG v(in) VAL=1 | VAL=
m MAX v(nowhere) | nowhere
m WHEN v(in)=x | no parameter is called
m MAX v(in) MAYBE | does not belong
m MAX v(in)*MAYBE | MAYBE
m MAX v(in)* | expected
"""


@pytest.mark.parametrize("row", REFUSED.strip().split("\n"))
def test_what_is_refused(sine: TransientResult, row: str) -> None:
    text, said = row.split(" | ")
    with pytest.raises(UsageError, match=said):
        measure(sine, text)


def test_stretches_begin_at_the_first_output_time() -> None:
    """As in ngspice and LTspice, which keep nothing before it; ``FROM=0`` asks for all of the run."""
    run = transient(loads("t\nV1 a 0 PWL(0 0 1m 1 2m 1)\nR1 a b 1\nC1 b 0 1p\n.tran 10u 2m 1m\n"))
    assert run.times[0] == 1e-3
    for text, exact in {"AVG v(a)": 1.0, "AVG v(a) FROM=0": 0.75, "WHEN v(a)=0.5 TD=0.1m": 0.5e-3}.items():
        assert measure(run, f"m {text}").value == pytest.approx(exact, abs=1e-12)
    assert measure(run, "m WHEN v(a)=0.5").value is None
    with pytest.raises(UsageError, match="ends before it begins"):
        measure(run, "m MAX v(a) TO=0.5m")


def test_held_nodes_give_initial_values_to_uic() -> None:
    run = transient(
        loads(
            "t\nV1 in 0 SIN(0 10 50)\nD1 in out\nC1 out 0 10u\nC2 in out 1p ic=-4\nL1 x 0 1\nR2 x 0 1\nR1 out 0 1k\n"
            ".ic v(out)=3 v(in)=1 i(L1)=2\n.tran 10u 40m uic\n"
        )
    )
    assert run.current("L1", times=[0.0]).tolist() == [2.0] and run.voltage("x", times=[0.0]).tolist() == [-2.0]
    # C2 and the source hold the node: 1 pF against 10 µF takes its share of the charge.
    assert run.voltage("out", times=[0.0])[0] == pytest.approx(3.0 + 1e-7, abs=2e-7)


FLYBACK = """flyback with a snubber
V1 in 0 24
L1 in sw 100u
L2 0 d 25u
K1 L1 L2 0.99
S1 sw 0 g 0 SW
Vg g 0 PULSE(0 5 0 10n 10n 4u 10u)
D1 d out DD
C1 out 0 47u
R1 out 0 10
Rs sw s1 100
Cs s1 0 1n
.model SW SW(RON=10m ROFF=1meg VT=2.5 VH=0.5)
.model DD D(RON=10m ROFF=1meg VFWD=0.6)
.tran 1u 35u
"""
TEXTS = """m AVG v(out)
m AVG v(sw) FROM=10.3u TO=33.7u
m INTEG i(Cs) TO=12.345u
m RMS i(L1)
m RMS i(Cs) FROM=5u
m AVG par('v(sw)*i(L1)')
m MAX v(sw)
m PP i(L1) FROM=20u
m MIN i(Cs)
m WHEN v(sw)=30 CROSS=5
m WHEN v(s1)=20 FALL=LAST
m MAX v(in)
m AVG v(out) FROM=10.0000000001u TO=10.0000000002u"""


def test_measurements_of_implicit_runs_as_of_exact_ones() -> None:
    """The dense output of its steps."""
    exact, found = (transient(loads(FLYBACK), method=method) for method in ("exact", "implicit"))
    for text in TEXTS.split("\n"):
        assert measure(found, text).value == pytest.approx(measure(exact, text).value, rel=2e-5), text


RECTIFIER = """half-wave rectifier
V1 in 0 SIN(0 10 50)
R1 in a 10
D1 a out ideal
C1 out 0 100u
R2 out 0 500
.model ideal D{model}
"""
LINES = [
    "ripple PP v(out) from=30m to=60m",
    "mean AVG v(out) from=20m to=60m",
    "eff RMS i(V1) from=20m to=60m",
    "start WHEN v(out)=5 rise=1",
    "late FIND v(out) WHEN v(in)=0 fall=2",
]


class TestBesideNgspice:
    pytestmark = NEEDED

    def test_measurements(self) -> None:
        """Its diode with a small emission coefficient is nearly ideal: some 20 mV of 9 V."""
        asked = "\n".join(f"meas tran {line}" for line in LINES)
        theirs, log = spice(RECTIFIER.format(model="(is=1e-12 n=0.02)"), f"tran 10u 60m 0 5u uic\n{asked}")
        run = transient(loads(RECTIFIER.format(model="") + ".tran 10u 60m 0 5u uic\n"))
        for line in LINES:
            found = measure(run, line)
            assert found.value == pytest.approx(theirs[found.name][0], rel=0.01), log

    def test_fourier(self) -> None:
        """The last period, amplitudes and phases of sines: within its interpolation on 200 points."""
        deck = "t\nV1 in 0 SIN(0 2 1k)\nR1 in out 1k\nD1 out c DI\nVc c 0 1\nC1 out 0 1n\n.model DI D(IS=1e-14)\n"
        log = spice(deck, "tran 1u 5m 0 1u\nfourier 1k v(out)")[1]
        lines = log.split("Fourier analysis for v(out)")[1].splitlines()
        theirs = np.array([line.split()[:4] for line in lines if line[:2] in {f" {k}" for k in range(10)}][:10], float)
        ours = fourier(transient(loads(f"{deck}.tran 1u 5m 0 1u\n")), "v(out)", 1e3)
        assert ours.mean == pytest.approx(theirs[0, 2], abs=2e-3)
        assert ours.amplitude == pytest.approx(theirs[1:, 2], abs=2e-3)
        large = ours.amplitude > 0.05
        assert ours.phase[large] == pytest.approx(theirs[1:, 3][large], abs=0.5)


def rectified(method: str = "exact", stop: float = 0.06) -> TransientResult:
    """10 V at 50 Hz, half-wave rectified into 1 kΩ; a square wave of 100 Hz and half a period."""
    circuit = loads("t\nV1 in 0 0\nD1 in out\nR1 out 0 1000\nV2 square 0 0\nR2 square 0 1\nC1 square 0 1e-09\n").circuit
    waves = {"V1": Sine(0.0, 10.0, 50.0), "V2": Pulse(-1.0, 1.0, 0.0, 0.0, 0.0, 5e-3, 10e-3)}
    return transient(circuit, stop, waves, {}, points=3, method=method)


@pytest.mark.parametrize(("method", "within"), [("exact", 1e-12), ("implicit", 2e-5)])
def test_half_waves_and_square_waves(method: str, within: float) -> None:
    run = rectified(method)
    found = fourier(run, "v(out)", 50.0, 20)
    exact, even = np.zeros(20), np.arange(2, 21, 2)
    exact[0], exact[even - 1] = 5.0, 20.0 / math.pi / (even**2 - 1)
    assert found.mean == pytest.approx(10.0 / math.pi, abs=10 * within)
    assert found.amplitude == pytest.approx(exact, abs=10 * within)
    assert found.phase[0] == pytest.approx(0.0, abs=1e3 * within)
    assert found.phase[even - 1] == pytest.approx(np.full(10, -90.0), abs=1e5 * within)
    assert found.distortion == pytest.approx(np.linalg.norm(exact[1:]) / 5.0, abs=within)
    square = fourier(run, "v(square)", 100.0, 7, 5)
    assert square.amplitude[::2] == pytest.approx(4.0 / math.pi / np.arange(1, 8, 2), abs=within)
    assert square.amplitude[1::2] == pytest.approx(np.zeros(3), abs=within)
    assert fourier(run, "p(R1)", 50.0).mean == pytest.approx(100.0 / 4.0 / 1e3, abs=within)
    assert fourier(run, "{2*v(in)-1}", 50.0, 3, -1).amplitude == pytest.approx([20.0, 0.0, 0.0], abs=20 * within)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("v(none)", 50.0, 9, 1), "none"),
        (("v(in)", 0.0, 9, 1), "positive frequency"),
        (("v(in)", 50.0, 0, 1), "harmonics"),
        (("v(in)", 50.0, 9, 2), "has 1 periods"),
        (("v(in) v(out)", 50.0, 9, 1), "not one quantity"),
        (("v(in)", 50.0, 9, -2), "periods"),
    ],
)
def test_fourier_series_that_are_refused(asked: tuple[str, float, int, int], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        fourier(rectified(stop=0.03), *asked)


@pytest.mark.parametrize("words", [[], ["--vary", "R1=500,1k"]])
def test_an_interrupt_keeps_what_is_done(words: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The signal comes while the run is under way; an interrupted set of runs shows those that have ended."""
    path = tmp_path / "deck.cir"
    stop = 40_000 if not words else 20
    path.write_text(
        f"{RECTIFIER.format(model='')}.meas tran early MAX v(out) TO=0.5\n.meas tran late AVG v(out) FROM={stop - 1}\n"
        f".tran 1 {stop}\n"
    )
    if words:
        words = ["--vary", "R2=" + ",".join(str(500 + k) for k in range(2000))]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where a shell started it so
    threading.Timer(2.0, signal.raise_signal, (signal.SIGINT,)).start()
    code = main(["tran", str(path), "--columns", "v(out)", *words])
    assert signal.signal(signal.SIGINT, before) is signal.default_int_handler
    out, err = capsys.readouterr()
    rows = list(csv.DictReader(io.StringIO(out)))
    assert code == 130 and len(rows) > 2
    if words:
        assert "results so far" in err and float(rows[-1]["time"]) == stop
    else:
        assert f"interrupted at {float(rows[-1]['time']):g} s" in err
        assert "early = " in err and "late is not measured: " in err
