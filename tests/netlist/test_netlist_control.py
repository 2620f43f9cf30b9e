"""``.control`` blocks: analyses and outputs as cards, alterations up to the first analysis (held against ngspice)."""

from __future__ import annotations

import math
import re
import shutil
import subprocess

import pytest

from circuitsim import solve
from circuitsim.errors import NetlistError
from circuitsim.netlist import loads
from circuitsim.netlist.deck import DcSweep, OperatingPointRequest, Output

DECK = """a divider
V1 1 0 1
R1 1 2 1k tc=0.01
R2 2 0 rm
R3 2 0 1k m=2
I1 0 3 1m
R4 3 0 {1k}
.model rm R(r=1k tc1=0.01)
.temp 77
.control
%s
.endc
.end
"""


def test_analyses_and_outputs_are_those_of_the_cards():
    deck = loads(DECK % "dc V1 0 2 1\nprint v(2) v(1) > file\nop\nplot v(1,2) @r1[i] v1#branch\nrun")
    dc, printed, point, plotted = deck.analyses[1:]
    assert isinstance(dc, DcSweep) and list(dc.sweeps[0].values) == [0.0, 1.0, 2.0]
    assert isinstance(printed, Output) and printed.requests == ("v(2)", "v(1)")
    assert isinstance(point, OperatingPointRequest)
    assert isinstance(plotted, Output) and plotted.requests == ("v(1,2)", "@r1[i]", "v1#branch")
    assert (dc.location.line, dc.location.column) == (11, 1)


def test_the_same_analysis_again_is_one():
    deck = loads(DECK.replace(".temp 77", ".dc V1 0 2 1") % "dc  v1 0 2 1")
    assert len(deck.analyses) == 1


def test_an_analysis_that_is_wrong_is_an_error_with_its_column():
    with pytest.raises(NetlistError) as caught:
        loads(DECK % "  dc V9 0 2 1")
    (problem,) = caught.value.problems
    assert (problem.location.line, problem.location.column) == (11, 6)


SCRIPTS = [
    "alter R1 = 2k",
    "alter r1 2k",
    "alter @r1[resistance]=2k",
    "alter R1 resistance = 3k",
    "alter R2 = 3k",
    "alter R3 r = 4k",
    "alter R4 = 5k",
    "alter V1 dc = 5\nalter I1 dc 3m",
    "alter V1 = 4",
    "set temp=127",
    "option temp = 50",
    "let x = 3\nlet y = 2*x\nalter V1 = y",
    "let x = 3k\nalter R1 = $&x",
    "alter R1 = {2*1500}",
    "let unused = vecmax(7)\nset color0 = white",
]


@pytest.mark.ngspice
@pytest.mark.skipif(shutil.which("ngspice") is None, reason="ngspice is not installed")
@pytest.mark.parametrize("script", SCRIPTS)
def test_alterations_are_those_of_ngspice(script, tmp_path):
    text = DECK % f"{script}\nop"
    (tmp_path / "t.cir").write_text(DECK % f"{script}\nop\nset numdgt=15\nprint v(1) v(2) v(3)")
    run = subprocess.run(["ngspice", "-b", "t.cir"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    theirs = {name: float(value) for name, value in re.findall(r"^v\((\d)\) = (\S+)$", run.stdout, re.M)}
    point = solve(loads(text).circuit)
    assert len(theirs) == 3, run.stdout + run.stderr
    assert all(math.isclose(point.voltage(name), value, rel_tol=1e-9) for name, value in theirs.items())


def test_what_stands_behind_the_first_analysis_does_not_act():
    deck = loads(DECK % "op\nalter V1=7")
    assert deck.circuit["V1"].value == 1.0
    assert [p.kind for p in deck.problems] == ["control"]
