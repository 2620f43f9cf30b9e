"""Time functions: their values against ngspice at output times, `.tran` of circuits without memory."""

from __future__ import annotations

import re
import shutil
import subprocess

import numpy as np
import pytest

from circuitsim.analysis import sweep
from circuitsim.errors import NetlistError, UsageError
from circuitsim.netlist import loads
from circuitsim.netlist.deck import Transient, output_times
from circuitsim.netlist.waveform import Grid, Waveform

SOURCES = [
    "PULSE(1 5 2u 1u 2u 3u 10u)",
    "PULSE(1 5 2.5u)",
    "PULSE(5 1 0 2u 1u 1u 6u)",
    "SIN(1 2 100k 2u 1e5 30)",
    "SIN(1 2)",
    "SIN(0 2 0)",
    "EXP(1 5 2u 1u 6u 2u)",
    "EXP(1 5)",
    "SFFM(1 2 300k 3 50k)",
    "SFFM(1 2 300k 3 50k 20 40)",
    "AM(2 1 50k 300k 2u)",
    "PWL(1u 1 3u 4 5u 2)",
    "PWL(0 1 3u 4 7.5u 1) r=0",
    "PWL(0 1 3u 4 7.5u 4) r=3u td=1u",
    "DC 7 SIN(1 2 100k)",
    "DC 7",
]
GRID = Grid(1e-6, 12e-6)


@pytest.mark.ngspice
@pytest.mark.skipif(shutil.which("ngspice") is None, reason="ngspice is not installed")
def test_values_against_ngspice(tmp_path):
    cards = [f"V{k} n{k} 0 {text}\nR{k} n{k} 0 1k" for k, text in enumerate(SOURCES)]
    deck = "\n".join(["waves", *cards, ".tran 1u 12u 0 5n", ""])
    shown = "\n".join(f"print v(n{k})" for k in range(len(SOURCES)))
    (tmp_path / "w.cir").write_text(deck + f".control\nset numdgt=12\nrun\nlinearize\n{shown}\n.endc\n.end\n")
    run = subprocess.run(["ngspice", "-b", "w.cir"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    rows = re.findall(r"^(\d+)\t(\S+)\t\s*$", run.stdout, re.M)
    theirs = np.array([float(v) for _, v in rows]).reshape(len(SOURCES), 13)
    found = sweep(loads(deck), {"time": [k * 1e-6 for k in range(13)]}, "v(*)")
    for k, text in enumerate(SOURCES):
        # ngspice interpolates between its own steps of 5 ns, on which a jump of PWL takes one step.
        assert found[f"v(n{k})"] == pytest.approx(theirs[k], rel=2e-4, abs=2e-4), text


def test_a_repeated_function_is_periodic():
    wave = Waveform("pwl", (0.0, 1.0, 2.0, 5.0, 3.0, 1.0), 0.0)
    found = wave.over(Grid(1.0, 7.0))
    for time in (0.25, 1.0, 2.5):
        assert found.value(time + 6.0) == pytest.approx(found.value(time), rel=1e-12)
    assert found.breakpoints(-1.0, 7.0, 10).tolist() == [0, 2, 3, 5, 6]


def test_output_times_hold_the_breakpoints():
    wave = Waveform("pulse", (0.0, 1.0, 0.5, 0.25, 0.25, 1.0, 4.0))
    card = Transient(1.0, 6.0, 0.0, None)
    assert list(output_times(card, [wave])) == [0, 0.5, 0.75, 1, 1.75, 2, 3, 4, 4.5, 4.75, 5, 5.75, 6]
    assert output_times(card, []).grid == Grid(1.0, 6.0)
    with pytest.raises(UsageError, match="points"):
        output_times(Transient(1.0, 1e9, 0.0, None), [])


def test_formulas_of_sources_at_each_time():
    deck = loads(
        "t\n.param a=2\nV1 in 0 PULSE(0 5 1m 1m 1m 1m)\nB1 c 0 V=v(in)*a+time*1k\nE1 d 0 c in 3\nI1 0 g 1m\nRg g 0 1\n"
        "G1 0 e VALUE={v(in)*i(I1)}\nRe e 0 1\nRc c 0 1\nRd d 0 1\n"
    )
    found = sweep(deck, {"time": [0.0, 1.5e-3, 2.5e-3]}, "v(in) v(c) v(d) v(e)")
    assert found["v(in)"] == pytest.approx([0, 2.5, 5])
    assert found["v(c)"] == pytest.approx([0, 6.5, 12.5])
    assert found["v(d)"] == pytest.approx([0, 12, 22.5])
    assert found["v(e)"] == pytest.approx([0, 2.5e-3, 5e-3])
    other = sweep(deck, {"V1": [1.0], "a": [3.0]}, "v(c) v(d)")
    assert (other["v(c)"][0], other["v(d)"][0]) == pytest.approx((3, 6))


def test_expressions_of_columns_read_what_is_swept():
    deck = loads("t\n.param r=1 q={2*r}\nV1 a 0 6\nR1 a b {q}\nR2 b 0 1\n")
    found = sweep(deck, {"r": [1.0, 2.5], "temp": [27.0, 50.0]}, "v(b) {v(b)*(1+q)} {r+temp} {i(R1)*R} R1:r")
    assert found["v(b)"] == pytest.approx([2, 1, 2, 1])
    assert found["{v(b)*(1+q)}"] == pytest.approx([6, 6, 6, 6])
    assert found["{r+temp}"] == pytest.approx([28, 29.5, 51, 52.5])
    assert found["R1:r"] == pytest.approx([2, 5, 2, 5])
    with pytest.raises(UsageError, match="no parameter is called 'z'"):
        sweep(deck, {"r": [1.0]}, "{z}")


def test_forms_of_other_programs():
    circuit = loads(
        "t\nV1 a 0 SINE(2 1 1k)\nE1 b 0 a 0 .5\nE2 c 0 VALUE={{if(v(a)>1,{3},0)}}\n"
        "B1 d 0 V={table(v(a),0,0,4,8)+fmod(7,4)+uramp(-1)+u(1)}\nR1 a 0 1\n"
    ).operating_circuit
    assert [e.value for e in circuit] == [2, 1, 3, 8, 1]


@pytest.mark.parametrize(
    ("cards", "message"),
    [
        ("B1 b 0 V=v(z)", "no element touches its control node z"),
        ("B1 b 0 V=i(R7)", "no element is called 'R7'"),
        ("B1 b 0 V=v(b)**2", "B1: a power of voltages or currents is not affine"),
        ("B1 b 0 V=1/v(a)", "division by zero"),
    ],
)
def test_formulas_without_a_value(cards, message):
    with pytest.raises(NetlistError, match=re.escape(message)):
        loads(f"t\nV1 a 0 0\nR1 a 0 1\n{cards}\n")
