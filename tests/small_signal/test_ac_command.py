"""``circuitsim ac``: columns, poles, pictures, what decks say, errors."""

from __future__ import annotations

import cmath
import csv
import io
import json
import math
import shutil
import subprocess
from pathlib import Path

import pytest

from circuitsim import ac
from circuitsim.analysis.switched import circuit_at_operating_point
from circuitsim.cli import main
from circuitsim.errors import UsageError
from circuitsim.netlist import loads
from circuitsim.netlist.deck import SmallSignal, Spacing
from circuitsim.small_signal.deck import frequencies

LOWPASS = str(Path(__file__).parents[2] / "netlists" / "lowpass-butterworth.cir")
RC = "rc\nV1 in 0 DC 1 AC 2 90\nR1 in a 1k\nC1 a 0 1u\n"


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(list(words))
    out, err = capsys.readouterr()
    return code, out, err


def deck(tmp_path: Path, text: str) -> str:
    path = tmp_path / "deck.cir"
    path.write_text(text + ".end\n")
    return str(path)


def test_columns(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "ac", LOWPASS)
    assert (code, err) == (0, "")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert list(rows[0]) == ["frequency", "v(out)", "v(out) dB", "v(out) phase"]
    assert len(rows) == 41
    for row in rows:
        ratio = float(row["frequency"]) / 1e4
        assert float(row["v(out)"]) == pytest.approx(0.5 / math.sqrt(1 + ratio**6), rel=1e-9)
        assert float(row["v(out) dB"]) == pytest.approx(-20 * math.log10(2) - 10 * math.log10(1 + ratio**6), rel=1e-9)
    assert float(rows[-1]["v(out) phase"]) == pytest.approx(-270, abs=2)  # continuous: not +90


@pytest.mark.parametrize("command", ["ac", "tran"])
def test_cards_of_another_analysis_take_no_note(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, command: str
) -> None:
    deck = tmp_path / "both.cir"
    deck.write_text("both\nV1 in 0 SIN(0 1 1k) AC 1\nR1 in out 1k\nC1 out 0 1n\n.ac dec 5 10 1k\n.tran 10u 1m\n.end\n")
    code, out, err = run(capsys, command, str(deck))
    assert code == 0 and out and "note: " + str(deck) not in err and not err.startswith("warning")


def test_transfer_functions_and_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = deck(tmp_path, RC)
    words = ("--from", "1", "--to", "100", "--points", "2", "--format", "json")
    code, out, _ = run(capsys, "ac", path, "--columns", "v(a) i(R1)", "--over", "v(in)", *words)
    found = json.loads(out)
    assert code == 0
    assert found["frequency"] == pytest.approx([1, 10**0.5, 10, 10**1.5, 100])
    assert found["worst_residual"] <= 1e-12
    for k, f in enumerate(found["frequency"]):
        expected = 1 / (1 + 2j * math.pi * f * 1e-3)
        assert found["v(a)/v(in)"][k] == pytest.approx(abs(expected))
        assert found["v(a)/v(in) phase"][k] == pytest.approx(math.degrees(cmath.phase(expected)))
        assert found["i(R1)/v(in)"][k] == pytest.approx(abs(1 - expected) / 1e3)


def test_amplitudes_of_cards_and_options(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = deck(tmp_path, RC)
    words = ("--from", "1m", "--to", "1m", "--columns", "v(in)", "--format", "json")
    _, out, _ = run(capsys, "ac", path, *words)
    assert (json.loads(out)["v(in)"], json.loads(out)["v(in) phase"]) == ([2], [pytest.approx(90)])
    _, out, _ = run(capsys, "ac", path, *words, "--source", "v1=5<-30")
    assert (json.loads(out)["v(in)"], json.loads(out)["v(in) phase"]) == ([pytest.approx(5)], [pytest.approx(-30)])


def test_poles(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "ac", LOWPASS, "--poles", "--format", "json")
    found = json.loads(out)
    assert code == 0
    assert found["stable"] is True
    assert found["frequency"] == pytest.approx([1e4] * 3)
    assert found["damping"] == pytest.approx([0.5, 1.0, 0.5])


def test_picture(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    target = tmp_path / "bode.svg"
    assert run(capsys, "ac", LOWPASS, "--plot", str(target))[0] == 0
    text = target.read_text()
    assert "magnitude, dB" in text and "frequency" in text and "kHz" in text


def test_a_diode_at_a_kink_is_reported(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = deck(tmp_path, "kink\nV1 in 0 DC 0 AC 1\nR1 in a 1\nD1 a 0 ideal\nR2 a 0 1\n.model ideal D\n")
    code, _, err = run(capsys, "ac", path)
    assert code == 0
    assert "D1 is without current and voltage" in err


@pytest.mark.parametrize(
    ("text", "words", "code", "message"),
    [
        (RC.replace("AC 2 90", ""), (), 2, "no source has an amplitude"),
        (RC, ("--source", "R1"), 2, "R1 is no independent source"),
        (RC, ("--source", "V1=big"), 2, "--source big"),
        (RC, ("--from", "1"), 2, "give both --from and --to"),
        (RC, ("--points", "3"), 2, "--points and --linear need --from and --to"),
        (RC, ("--from", "0", "--to", "1"), 2, "above 0 unless --linear"),
        (RC, ("--columns", "p(R1)"), 2, "p(R1) has no amplitude"),
        (RC, ("--poles", "--plot", "x.png"), 2, "--plot draws responses"),
        (RC, ("--from", "1", "--to", "1MEG", "--points", "1000000"), 2, "frequencies are more than 1,000,000"),
        (RC + "B1 b 0 V={v(in)*v(in)}\nR2 b 0 1\n", (), 2, "B1 is a formula that is not affine"),
        (RC + ".ac dec 1 1 10\n.ac lin 2 1 10\n", (), 2, "more than one .ac card"),
        (RC + ".ac dec 1.5 1 10\n", (), 2, ".ac needs a whole number of points"),
        (RC + ".ac dec 1 0 10\n", (), 2, ".ac needs frequencies in ascending order"),
        (RC + ".ac 1 10\n", (), 2, ".ac needs dec, oct, lin or list"),
        ("tie\nI1 0 a AC 1\nC1 a b 1\nR1 c 0 1\n", ("--from", "1", "--to", "1"), 3, "a net current into the part of"),
        (
            "dc\nV1 a 0 AC 1\nC1 a b 1\nC2 b 0 1\n",
            ("--linear", "--from", "0", "--to", "1", "--points", "2"),
            3,
            "no single solution",
        ),
    ],
)
def test_errors(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, words: tuple[str, ...], code: int, message: str
) -> None:
    found, out, err = run(capsys, "ac", deck(tmp_path, text), *words)
    assert (found, out) == (code, "")
    assert message in err


@pytest.mark.parametrize(
    ("card", "expected"),
    [
        (".ac dec 2 1 100", [1, 10**0.5, 10, 10**1.5, 100]),
        (".ac oct 1 100 800", [100, 200, 400, 800]),
        (".ac lin 3 50 60", [50, 55, 60]),
        (".ac lin 1 50 50", [50]),
        (".ac list 1 50 1k", [1, 50, 1000]),
        (".ac dec {n} 1 {10*n}", [1, 10**0.5, 10, 10**1.5]),
    ],
)
def test_frequencies_of_cards(card: str, expected: list[float]) -> None:
    read = loads(f"t\n.param n=2\nR1 a 0 1\nV1 a 0 AC\n{card}\n.end")
    (found,) = (a for a in read.analyses if isinstance(a, SmallSignal))
    got = frequencies(found).tolist()
    if "10*n" in card:
        expected = [e for e in [*expected, 20 / 10**0.5] if e <= 20][:3]
    assert got == pytest.approx(expected)


def test_phasors_in_subcircuits_and_parallel_sources() -> None:
    text = """t
X1 a b stage gain=3
.subckt stage p q gain=1
V1 p 0 DC 1 AC {gain} {30*gain}
R1 p q 1
R2 q 0 1
I1 0 q AC 2 m=4
.ends
V2 c 0 AC
R3 c 0 1
.end"""
    read = loads(text)
    names = read.circuit.names
    found = {names[k]: value for k, value in read.following.phasors.items()}
    assert found == {"X1.V1": pytest.approx(3j), "X1.I1": pytest.approx(8), "V2": pytest.approx(1)}
    assert ac(read, frequencies(SmallSignal(Spacing.LIST, 1, (50.0,), None)))["b"][0] == pytest.approx(1.5j + 4)


def test_sources_that_follow_fixed_voltages_follow_their_amplitudes() -> None:
    """At the operating point E1 is a source of known voltage; here its control moves."""
    read = loads("t\nV1 in 0 DC 1 AC 1\nE1 out 0 in 0 5\nR1 out 0 1\nB1 b 0 V={2*v(in)+1}\nR2 b 0 1\n.end")
    assert not read.operating_circuit.laws
    assert len(circuit_at_operating_point(read, changed=None).laws) == 2
    found = ac(read, frequencies(SmallSignal(Spacing.LIST, 1, (50.0,), None)))
    assert found["out"][0] == pytest.approx(5)
    assert found["b"][0] == pytest.approx(2)
    with pytest.raises(UsageError, match="B2 is a formula that is not affine"):
        circuit_at_operating_point(loads("t\nV1 in 0 1\nB2 b 0 V={v(in)**2}\nR1 b 0 1\n.end"), changed=None)


def test_steps_are_left_out_with_a_note(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text = "t\nV1 a 0 SIN(0 1 1k) AC 1\nR1 a b 1k\nC1 b 0 1u\n.step temp 0 100 50\n.ac lin 1 1k 1k\n"
    for command, option, name in (("ac", "--poles", "ac --poles"), ("tran", "--steady", "--steady")):
        code, _, err = run(capsys, command, deck(tmp_path, text), option)
        assert code == 0 and f"note: {name} is of the circuit as the cards have it" in err


ZERO = "zero\nV1 a 0 DC 0 AC 1\nR1 a b 1k\nC1 b 0 1u\nR2 c 0 1k\nI1 c 0 0\n.ac dec 1 1 100\n"


def test_an_amplitude_of_zero(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """JSON has no infinity: the decibels of 0 are null, the amplitude is 0."""
    name = deck(tmp_path, ZERO)
    code, out, _ = run(capsys, "ac", name, "--format", "json", "--columns", "v(c) v(b)")
    found = json.loads(out, parse_constant=pytest.fail)
    assert code == 0 and found["v(c)"] == [0.0] * 3 and found["v(c) dB"] == [None] * 3
    assert found["v(b)"][0] == pytest.approx(1.0, rel=1e-4) and found["worst_error"] < 1e-9
    code, out, _ = run(capsys, "ac", name, "--format", "json", "--columns", "v(b)", "--over", "v(c)")
    assert code == 0 and json.loads(out, parse_constant=pytest.fail)["v(b)/v(c)"] == [None] * 3
    for form, infinite in (("csv", "-inf"), ("table", "-∞")):
        code, out, _ = run(capsys, "ac", name, "--format", form, "--columns", "v(c)")
        assert code == 0 and infinite in out


def phasors(text: str) -> dict[str, list[complex]]:
    """The variables of a complex ASCII rawfile."""
    head, values = text.split("Values:\n")
    assert "Flags: complex" in head and "Plotname: AC Analysis" in head
    names = [line.split("\t")[2] for line in head.split("Variables:\n")[1].splitlines()]
    numbers = [complex(*map(float, line.split("\t")[-1].split(","))) for line in values.splitlines()]
    return {name: numbers[k :: len(names)] for k, name in enumerate(names)}


def test_a_rawfile_holds_phasors(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    name, target = deck(tmp_path, ZERO), tmp_path / "out.raw"
    code, out, _ = run(capsys, "ac", name, "--columns", "v(b) i(C1) v(c)", "--output", str(target))
    assert (code, out) == (0, "")
    found = phasors(target.read_text())
    assert list(found) == ["frequency", "v(b)", "i(c1)", "v(c)"]
    for f, v, i in zip(found["frequency"], found["v(b)"], found["i(c1)"], strict=True):
        s = 2j * math.pi * f.real
        assert v == pytest.approx(1 / (1 + s * 1e-3), rel=1e-12) and i == pytest.approx(s * 1e-6 * v, rel=1e-12)
    assert found["v(c)"] == [0.0] * 3
    code, _, err = run(capsys, "ac", name, "--poles", "--output", str(target))
    assert code == 2 and "--poles" in err


def test_ngspice_reads_the_rawfile_of_phasors(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    if shutil.which("ngspice") is None:
        pytest.skip("ngspice is not installed")
    target = tmp_path / "out.raw"
    assert run(capsys, "ac", deck(tmp_path, ZERO), "--columns", "v(b)", "--output", str(target))[0] == 0
    script = tmp_path / "load.cir"
    script.write_text(
        f"* load\n.control\nset numdgt=14\nload {target}\nprint real(v(b)) imag(v(b))\nquit\n.endc\n.end\n"
    )
    shown = subprocess.run(["ngspice", "-b", str(script)], capture_output=True, text=True, timeout=60).stdout
    rows = [line.split() for line in shown.splitlines() if line[:1].isdigit()]
    for f, row in zip((1.0, 10.0, 100.0), rows, strict=True):
        got = complex(float(row[-2]), float(row[-1]))
        assert got == pytest.approx(1 / (1 + 2j * math.pi * f * 1e-3), rel=1e-9)
