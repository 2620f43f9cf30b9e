"""The first line of a deck: a title, unless it reads as an element of the deck below."""

from __future__ import annotations

import pytest

from circuitsim import solve
from circuitsim.cli import main
from circuitsim.errors import NetlistError
from circuitsim.netlist import loads

REST = """R1 1 2 1k
R2 2 0 1k
.param level=3
.model dm D
.subckt cell a b
R1 a b 1k
.ends
"""


@pytest.mark.parametrize(
    "line",
    [
        "V1 1 0 DC 10",
        "V1 1 0 10",
        "v1 1 0 dc=10 ac 1",
        "V1 1 0 SIN(0 1 1k)",
        "V1 (1 0) 10",
        "I1 0 1 DC 1m",
        "R0 1 0 1k",
        "R0 1 0 {level}",
        "R0 1 0 level",
        "R0 1 0 R=1k tc=0.1",
        "C1 2 0 1u ic=2",
        "L1 1 0 1m",
        "D1 1 0 dm",
        "D1 2 0",
        "X1 1 2 cell",
        "E1 1 0 2 0 10",
        "G1 1 0 2 0 1m",
        "B1 1 0 V=2",
        "Vin 1 0 AC 1",
        "V1 1 0 PULSE (0 5 0 1n)",
        ".param r=1k",
        ".include parts.lib",
        ".subckt a b",
        ".temp 127",
        ".options temp=127",
        "V1 1 0 5 ; the source",
    ],
)
def test_an_element_in_the_place_of_the_title_is_named(line):
    (problem,) = loads(f"{line}\n{REST}").problems
    assert problem.kind == "title"
    assert problem.location.line == 1
    assert "--no-title" in problem.hint


@pytest.mark.parametrize(
    "line",
    [
        "a divider",
        "Resistor from 1 to 2",
        "R2R ladder, 8 bits",
        "RC filter",
        "Voltage divider 1 0",
        "Circuit 1",
        "",
        "Diode clipper",
        "D flip flop",
        "Rectifier 2 diodes",
        "X1 is called here",
        "E12 series 1k",
        "* V1 1 0 DC 10",
        ".title V1 1 0 DC 10",
        "Example 1 2 3",
        "V1 in out 10",
        "Vs 3",
        "Lesson 2 1 coils",
        "Deck 1 2 of the course",
        "(r=3k) 1 0 V1 EXTERNAL",
        "C64 1 2 joystick",
        "I 1 2 3 4",
    ],
)
def test_a_title_is_none(line):
    deck = loads(f"{line}\n{REST}")
    assert not [p for p in deck.problems if p.kind == "title"]
    assert deck.title == line


def test_without_a_title_the_first_line_is_a_card():
    circuit = loads("V1 1 0 DC 10\nR1 1 2 1k\nR2 2 0 1k\n", title=False)
    assert circuit.title == ""
    assert solve(circuit).voltage("2") == 5.0


def test_errors_that_it_may_cause_name_it():
    with pytest.raises(NetlistError) as caught:
        loads(".param r=1k\nV1 1 0 1\nR1 1 0 {r}\n")
    assert [problem.kind for problem in caught.value.problems] == ["title", "parameter"]


def test_the_command_line_warns_and_reads_without_title(tmp_path, capsys):
    deck = tmp_path / "bare.cir"
    deck.write_text("V1 1 0 DC 10\nR1 1 2 1k\nR2 2 0 1k\n")
    assert main(["solve", str(deck), "--format", "csv"]) == 0
    said = capsys.readouterr()
    assert "warning" in said.err and "--no-title" in said.err
    assert main(["solve", str(deck), "--format", "csv", "--no-title"]) == 0
    said = capsys.readouterr()
    assert not said.err and "node,2,5.0" in said.out
