"""The forms of `.dc`, `.step`, `.data` and `.print` of ngspice, LTspice, Xyce and PSpice."""

from __future__ import annotations

import pytest

from circuitsim.analysis import sweep
from circuitsim.errors import UsageError
from circuitsim.netlist import loads
from circuitsim.netlist.deck import DcSweep, Output, Step, TableRange, Target, logarithmic

TOP = "t\n.param r=5\nV1 a 0 1\nR1 a b {r}\nR2 b 0 1k\nD1 b 0 dm\n.model dm D(ron=1 vfwd=.7)\n"


def ranges(card):
    deck = loads(TOP + card + "\n")
    (found,) = [a for a in deck.analyses if isinstance(a, DcSweep | Step)]
    swept = found.sweeps if isinstance(found, DcSweep) else (found.sweep,)
    return [(s.target.name, s.name.lower(), list(s.values)) for s in swept]


@pytest.mark.parametrize(
    ("card", "expected"),
    [
        (".step R1 1 3 1", [("ELEMENT", "r1", [1, 2, 3])]),
        (".step V1 list 1 5", [("ELEMENT", "v1", [1, 5])]),
        (".step lin R1:R 1 3 2", [("ELEMENT", "r1", [1, 3])]),
        (".step dec R2 1 1k 1", [("ELEMENT", "r2", [1, 10, 100, 1000])]),
        (".step oct param r 1 8 1", [("PARAMETER", "r", [1, 2, 4, 8])]),
        (".step param r dec 10 1 1", [("PARAMETER", "r", [10, 1])]),
        (".step r 1 2 1", [("PARAMETER", "r", [1, 2])]),
        (".step dm:vfwd 0.5 0.7 0.1", [("ELEMENT", "dm:vfwd", [0.5, 0.6, 0.7])]),
        (".step D dm(vfwd) list 0.5 0.6", [("ELEMENT", "dm:vfwd", [0.5, 0.6])]),
        (".step d1:ron list 2 3", [("ELEMENT", "d1.ron", [2, 3])]),
        (".step temp -40 60 50", [("TEMPERATURE", "temp", [-40, 10, 60])]),
        (".dc V1 list 1 2 7", [("ELEMENT", "v1", [1, 2, 7])]),
        (".dc lin V1 0 2 1 dec R2 1 10 1", [("ELEMENT", "v1", [0, 1, 2]), ("ELEMENT", "r2", [1, 10])]),
        (
            ".dc V1 0 1 1 R1 1 2 1 param r 1 2 1",
            [("ELEMENT", "v1", [0, 1]), ("ELEMENT", "r1", [1, 2]), ("PARAMETER", "r", [1, 2])],
        ),
        (".dc V1 dec 1 10 1", [("ELEMENT", "v1", [1, 10])]),
        (".dc temp list 0 25", [("TEMPERATURE", "temp", [0, 25])]),
    ],
)
def test_ranges(card, expected):
    assert [(t, n, pytest.approx(v)) for t, n, v in expected] == ranges(card)


def test_a_parameter_of_a_model_varies_in_its_elements():
    deck = loads(TOP + "D2 b 0 dm\n.step dm:ron 1 2 1\n")
    assert deck.analyses[0].sweep.elements == ("D1.ron", "D2.ron")


def test_tables():
    deck = loads(TOP + ".data t1\n+ r R2 V1:dc\n+ 1 2 3\n+ 4 {2+3} 6\n.enddata\n.step data=T1\n")
    (step,) = [a for a in deck.analyses if isinstance(a, Step)]
    assert isinstance(step.sweep, TableRange)
    assert [(r.target, r.name, list(r.values)) for r in step.sweep.ranges] == [
        (Target.PARAMETER, "r", [1, 4]),
        (Target.ELEMENT, "R2", [2, 5]),
        (Target.ELEMENT, "V1", [3, 6]),
    ]


def test_a_stepped_parameter_needs_no_param_card():
    deck = loads("t\nR1 a 0 {2*x}\n.step dec param X 10 1k 1\n")
    assert deck.circuit["R1"].value == 20 and deck.parameters == {"x": 10}
    assert deck.notes[0].message == "X has no .param: outside the sweep it is 10, the first of .step"
    assert deck.elaborate({"x": 100})["R1"].value == 200


def test_a_stepped_name_of_an_element_is_warned_of():
    (problem,) = loads("t\nR2 a 0 1\n.step param R2 list 1 2\n").problems
    assert "not the element of that name" in problem.message


@pytest.mark.parametrize(
    ("start", "stop", "count", "factor", "expected"),
    [
        (1, 1000, 1, 10, [1, 10, 100, 1000]),
        (1, 50, 1, 10, [1, 10]),
        (-1, -8, 1, 2, [-1, -2, -4, -8]),
        (100, 1, 2, 10, [100, 31.6227766016838, 10, 3.16227766016838, 1]),
        (2, 2, 5, 10, [2]),
    ],
)
def test_logarithmic_points(start, stop, count, factor, expected):
    assert list(logarithmic(start, stop, count, factor)) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize(
    ("text", "analysis", "requests"),
    [
        ("dc v(a) i(R1)", "dc", ("v(a)", "i(R1)")),
        ('tran FORMAT=CSV PRECISION = 10 FILE="a b.csv" v(a,b) {v(a)-v(b)}', "tran", ("v(a,b)", "{v(a)-v(b)}")),
        ("dc par('v(a)*2') 'i(r1)' v(*)", "dc", ("{v(a)*2}", "{i(r1)}", "v(*)")),
        ("dc v(a) (0,5) R1:R", "dc", ("v(a)", "R1:R")),
        ("v( a , b )", "", ("v( a , b )",)),
    ],
)
def test_requests(text, analysis, requests):
    deck = loads(f"{TOP}.print {text}\n")
    (found,) = [a for a in deck.analyses if isinstance(a, Output)]
    assert (found.analysis, found.requests) == (analysis, requests)


@pytest.mark.parametrize(
    ("card", "values", "expected"),
    [
        (".step RES RM(R) 1 3 1", [1, 2, 3], [10 / 3, 2, 10 / 7]),  # what is stepped multiplies the 1k on the card
        (".step RM2:R list 500 1k", [500, 1000], [10 / 3, 5]),
        (".step rm2:tc1 list 0 0.01", [0, 0.01], [10 / 3, 5]),  # R2 at 127 °C
        (".step PARAM r 1 2 1", [1, 2], [10 / 3, 2]),
    ],
)
def test_parameters_of_a_resistor_model_are_stepped(card, values, expected):
    cards = "V1 a 0 10\nR1 a b RM 1k\nR2 b 0 RM2 temp=127\n.param r=1\n.model RM RES(R={r})\n.model RM2 RES(R=500)\n"
    if "PARAM" in card:
        cards = cards.replace("R1 a b RM 1k", "R1 a b {1k*r}")
    deck = loads(f"t\n{cards}{card}\n")
    (step,) = [a.sweep for a in deck.analyses if isinstance(a, Step)]
    assert step.target is Target.PARAMETER
    assert list(step.values) == values
    found = sweep(deck, {f"param:{step.name}": step.values}, "v(b)")
    assert [row[-1] for row in found.rows()] == pytest.approx(expected, rel=1e-12)
    assert deck.elaborate({"RM2:R": 700.0})["R2"].value == 700.0
    with pytest.raises(UsageError, match="no parameter of the deck"):
        deck.elaborate({"RM2:kf": 1.0})
    with pytest.raises(UsageError, match="no parameter of the deck"):
        deck.elaborate({"RM3:R": 1.0})
