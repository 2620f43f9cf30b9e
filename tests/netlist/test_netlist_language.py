"""Decks as people write them: comments, continuation lines, elements, sub-circuits, analyses."""

from __future__ import annotations

import pytest

import circuitsim
from circuitsim.errors import NetlistError, TopologyError, UsageError
from circuitsim.netlist import loads
from circuitsim.netlist.deck import DcSweep, OperatingPointRequest, Output, Step, Temperature


def flat(text: str) -> list[tuple]:
    """Name, nodes and value of each element."""
    return [(e.name, e.first, e.second, e.value) for e in loads(f"t\n{text}\n")]


RESISTOR = """
R1 a b 1k
  R1\ta  b\t1k \x20
R1 a b 1k ; a comment
R1 a b 1k;a comment
R1 a b 1k $ a comment
R1 a b 1k\t$ a comment
R1 a b 1k // a comment
* c / R1 a / * c / + b /  /   + 1k / * c
R1 a / +b / +1k
R1 a b ; c / + 1k $ c
R1 (a b) 1k
R1 (a,b) 1k
R1 a,b,1k
R1 a b R=1k
R1 a b r = 1k
R1 a b {1k}
R1 a b '2 * 500'
R1 a b R={2*500}
R1 a b R='2*500'
R1 a b 1000ohm
R1 a b 2k m=2
R1 a b 2k M = {1+1}
R1 a b 1k tc=1,2
R1 a b 1k / .end / R2 a b 1
R1 a b rr / .param rr=1k
$ all of it a comment / R1 a b 1k
R1 a b 1k / .control / Q1 a b c / + x / .endc
"""
"""R1 a b 1k in many ways; a stroke is the end of a line."""


@pytest.mark.parametrize("row", RESISTOR.strip("\n").split("\n"))
def test_one_resistor_in_many_ways(row):
    text = row.replace(" / ", "\n")
    assert flat(text) == [("R1", "a", "b", 1000.0)]
    assert flat(text.replace("\n", "\r\n")) == flat(text.replace("\n", "\r")) == [("R1", "a", "b", 1000.0)]


SOURCES = """
5  5
5  DC 5
5  dc=5
5  DC 5 AC 1
5  5 AC 1 90
5  AC 1 DC 5
0  AC 1
0  DC
None  AC 1 90 5
3  PULSE(3 5 1 1 1 1 1)
7  7 PULSE(3 5)
7  PULSE(3 5) DC 7
3  pulse (3,5)
3  SIN(3 5)
8  sin 3 5 1k 0 0 90
4  PWL(0 4 1 5)
4  PWL(1 4 2 5)
3  PWL(-1 2 1 4)
4  PWL(-2 2 -1 4)
3  EXP(3 5 1 1 1 1)
3  SFFM(3 5 1 1 1)
0  AM(3 5 1 1)
5  DC {2+3} AC 1 SIN(0 1 1k)
3  SIN({1+2} 1 1k)
3  AC SIN(3 5)
2  DC 2 AC SIN(3 5)
3  AC 1 SIN(3 5)
3  AC 1 90 SIN(3 5)
0  sin
0  AC 15 sin
3  DC 3 sin
0  pulse()
5  SIN(0 1 1 -1) DC 5
-0.005  -5m
"""
"""The value at DC of what stands on a source's card; None: an error."""


@pytest.mark.parametrize("row", SOURCES.strip().splitlines())
def test_sources(row):
    value, text = row.split("  ", 1)
    if value == "None":
        with pytest.raises(NetlistError):
            flat(f"V1 a 0 {text}")
    else:
        assert flat(f"V1 a 0 {text}") == [("V1", "a", "0", pytest.approx(float(value), rel=1e-15))]
        assert flat(f"I1 a 0 {text}") == [("I1", "a", "0", pytest.approx(float(value), rel=1e-15))]


def test_multipliers_fold_into_values():
    found = {n: v for n, _, _, v in flat("R1 a b 6 m=2\nI1 a b 6 m=2\nL1 a b 6 m=2\nC1 a b 6 m=2\nV1 a b 6 m=2")}
    assert found == {"R1": 3, "I1": 12, "L1": 3, "C1": 12, "V1": 6}
    sub = ".subckt s a\nR1 a 0 6 m=2\nI1 a 0 6\nV1 a 0 6\nD1 a 0\n.ends\n.subckt o a\nX1 a s m=2\n.ends\nX1 n o m={1+1}"
    assert [v for *_, v in flat(sub)] == [0.75, 24, 6, None]
    declared = ".subckt s a m=1\nR1 a 0 6\n.ends\nX1 n s m=2"
    assert flat(declared) == [("X1.R1", "n", "0", 6)]


def test_ground_and_names_as_first_written():
    assert flat("R1 GND Out 1\nR2 oUT 0 1\nr3 gnd 00 1") == [
        ("R1", "0", "Out", 1),
        ("R2", "Out", "0", 1),
        ("r3", "0", "00", 1),
    ]


def test_node_names_with_the_signs_ngspice_allows():
    for name in (
        "n[1]",
        "n<1>",
        "n:1",
        "a#b",
        "a%b&c!d",
        "x@y~z",
        "n/1|h^i",
        "-5",
        "+5",
        "n-1",
        "n*1",
        "n?1",
        "n.1",
        "a$b",
        "µ",
    ):
        assert flat(f"R1 {name} 0 1") == [("R1", name, "0", 1)]


def test_diodes():
    text = "D1 a b\nD2 a b 1N4148\nD3 a b dd 2 off\n.model 1N4148 D(is=1n)\n.model DD d"
    assert flat(text) == [("D1", "a", "b", None), ("D2", "a", "b", None), ("D3", "a", "b", None)]


@pytest.mark.parametrize(
    ("text", "value"),
    [  # each computed by ngspice 39
        (".param r=1\n.subckt t a b\nR1 a b {r}\n.ends\n.subckt s a b r=4\nX1 a b t\n.ends\nX1 n 0 s", 4),
        (".param r=1\n.subckt t a b r=2\nR1 a b {r}\n.ends\n.subckt s a b\n.param r=4\nX1 a b t\n.ends\nX1 n 0 s", 2),
        (
            ".param r=1\n.subckt t a b\n.param q={r*2}\nR1 a b {q}\n.ends\n.subckt s a b\n.param r=4\nX1 a b t\n.ends\n"
            "X1 n 0 s",
            8,
        ),
        (".subckt t a b\nR1 a b {q}\n.param q={w*2}\n.param w=3\n.ends\nX1 n 0 t", 6),
        (".subckt s a b \n.param r=3\nR1 a b {r}\n.ends\nX1 n 0 s r=4", 4),
        (".subckt s a b r=3 q={r*2}\nR1 a b {q}\n.ends\nX1 n 0 s r=4", 8),
        (".subckt s a b PARAMS: r=3\nR1 a b {r}\n.ends\nX1 n 0 s PARAMS: r = 4", 4),
        (".subckt s a b params: r=3\nR1 a b {r}\n.ends\nX1 n 0 s", 3),
        (".param k=3\n.subckt s a b r={k}\nR1 a b {r}\n.ends\nX1 n 0 s ", 3),
        (".param q=2\n.subckt s a b p=1\nR1 a b {p}\n.ends\nX1 n 0 s p={2*q}", 4),
        (".param r=7\n.subckt s a b r=3\nR1 a b {r}\n.ends\nX1 n 0 s r={r*2}", 14),
        (".subckt s a b r=3\nR1 a b {r}\n.ends\n.subckt t a b r=5\nX1 a b s r={r+1}\n.ends\nX1 n 0 t r={2**3}", 9),
        (".param r=7\n.subckt s a b r=3\nR1 a b {r}\n.ends\nX1 n 0 s r={r}", 7),
        (".subckt s a b\n.func f(x) {x*3}\nR1 a b {f(3)}\n.ends\nX1 n 0 s", 9),
        ("X1 n 0 s\n.subckt s (a b)\nR1 a b 2\n.ENDS S", 2),
    ],
)
def test_parameters_of_subcircuits(text, value):
    assert [v for *_, v in flat(text)] == [value]


def test_what_a_call_passes_means_the_caller():
    """ngspice 39 says 6, 10 and 4: it depends on which value happens to be evaluated first. There is a warning."""
    for header, passed in (("p=1 q=5", "p={2*q} q=3"), ("p=1 q=5", "p={2*q}"), ("p=1 q={w+1}", "p={2*q}")):
        deck = loads(f"t\n.param q=2 w=3\n.subckt s a {header}\nR1 a 0 {{p}}\n.ends\nX1 n s {passed}\n")
        assert deck.circuit["X1.R1"].value == 4
        assert [p.kind for p in deck.problems] == ["parameter-scope"]
    swap = "t\n.param p=2 q=4\n.subckt s a p=1 q=5\nR1 a 0 {p}\nR2 a 0 {q}\n.ends\nX1 n s p={q} q={p}\n"
    assert [e.value for e in loads(swap)] == [4, 2]


def test_nesting_local_names_and_global_nodes():
    text = """
.subckt outer in out
.subckt inner p q
Rin p m 1
Rout m vdd 2
.ends inner
X1 in k inner
.model local D
D1 k out local
.ends outer
.global VDD
Xa a b outer
V1 Vdd 0 5
"""
    assert flat(text) == [
        ("Xa.X1.Rin", "a", "Xa.X1.m", 1),
        ("Xa.X1.Rout", "Xa.X1.m", "Vdd", 2),
        ("Xa.D1", "Xa.k", "b", None),
        ("V1", "Vdd", "0", 5),
    ]


def test_an_inner_node_may_be_named_from_outside():
    assert flat(".subckt s a\nR1 a m 1\n.ends\nX1 n s\nR2 x1.M 0 1") == [
        ("X1.R1", "n", "x1.M", 1),
        ("R2", "x1.M", "0", 1),
    ]


def test_a_port_called_ground_is_ground():
    assert flat(".subckt s a 0\nR1 a 0 1\n.ends\nX1 n 0 s") == [("X1.R1", "n", "0", 1)]


def test_origins():
    circuit = loads("t\nR1 a 0 1\n.subckt s a\n\nR1 a 0\n+ 1\n.ends\nX1 a s\nX2 a s\nR2 a 0 1\n", file="f.cir")
    assert [circuit.origin(k) for k in range(5)] == [("f.cir", 2), ("f.cir", 5), ("f.cir", 5), ("f.cir", 10), None]


def test_analyses():
    deck = loads(
        "t\nV1 a 0 1\nI1 a 0 1\nR1 a 0 1\n.param top=1 r=5\n.op\n.DC v1 0 {top} .25 I1 1 0 -.5\n"
        ".step param R list 1 2k\n.step param r 1 3 1\n.temp 27 50\n.print dc v(a, 0) i(V1) a\n.save all\n"
    )
    op, dc, listed, stepped, temp, print_, save = deck.analyses
    assert isinstance(op, OperatingPointRequest) and op.location.line == 6
    assert isinstance(dc, DcSweep) and isinstance(listed, Step) and isinstance(temp, Temperature)
    assert [(s.name, s.start, s.stop, s.step, list(s.values)) for s in dc.sweeps] == [
        ("v1", 0, 1, 0.25, [0, 0.25, 0.5, 0.75, 1]),
        ("I1", 1, 0, -0.5, [1, 0.5, 0]),
    ]
    assert (listed.sweep.name, list(listed.sweep.values)) == ("R", [1, 2000])
    assert isinstance(stepped, Step) and list(stepped.sweep.values) == [1, 2, 3]
    assert temp.values == (27, 50)
    assert isinstance(print_, Output) and print_[:3] == ("print", "dc", ("v(a, 0)", "i(V1)", "a"))
    assert save == Output("save", "", ("all",), save.location)


@pytest.mark.parametrize(
    ("start", "stop", "step", "expected"),
    [
        ("0", "1", "0.1", [k * 0.1 for k in range(10)] + [1]),
        ("0", "1", "0.3", [0, 0.3, 0.6, 0.9]),
        ("5", "5", "-1", [5]),
        ("0", "1", "2", [0]),
        ("1e308", "-1e308", "-1e308", [1e308, 0, -1e308]),
        ("0", "1.7976931348623157e308", "8.9884656743115785e307", [0, 8.9884656743115785e307, 1.7976931348623157e308]),
    ],
)
def test_points_of_a_sweep(start, stop, step, expected):
    (dc,) = loads(f"t\nV1 a 0 1\n.dc V1 {start} {stop} {step}\n").analyses
    assert list(dc.sweeps[0].values) == pytest.approx(expected, rel=1e-12)


def test_a_deck_elaborates_again_with_other_parameters():
    deck = loads("t\n.param r=1 q={2*r}\n.subckt s a\nR1 a 0 {q}\n.ends\nX1 n s\nR2 n 0 {sqrt(r)}\n")
    assert deck.parameters == {"r": 1, "q": 2}
    again = deck.elaborate({"R": 9})
    assert [e.value for e in again] == [18, 3] and [e.value for e in deck.circuit] == [2, 1]
    assert [e.value for e in deck.elaborate({"q": 7})] == [7, 1] and [e.value for e in deck.elaborate()] == [2, 1]
    with pytest.raises(UsageError, match="no parameter of the deck is called 'x'"):
        deck.elaborate({"x": 1})
    with pytest.raises(UsageError, match="not finite"):
        deck.elaborate({"r": float("nan")})
    with pytest.raises(NetlistError, match=r"sqrt\(-1\)"):
        deck.elaborate({"r": -1})
    with pytest.raises(TopologyError, match="a deck does not change"):
        deck.resistor("R9", "a", "0", 1.0)


def test_directives_are_comments_that_are_kept():
    deck = loads("t\nR1 a\n*! input  V1\n+ 0 1\n  *!output a b\n* ! no\n.end\n*! after\n")
    assert [(d.text, d.location.line, d.location.column) for d in deck.directives] == [
        ("input  V1", 3, 1),
        ("output a b", 5, 3),
    ]
    assert len(deck.circuit) == 1


def test_title_and_notes_of_the_circuit():
    deck = loads("  my title \nR1 a 0 1M\n.options x\n")
    assert deck.title == deck.circuit.title == "my title"
    assert [p.kind for p in deck.circuit.notes] == [p.kind for p in deck.notes] == ["mega", "no-effect"]
    assert [p.kind for p in deck.problems] == ["mega"]


def test_a_parameter_that_chooses_cards_cannot_vary():
    deck = loads("t\n.param k=2 s={k} r=1k\n.if (s == 2)\nR1 a 0 {r}\n.else\nnonsense\n.endif\nV1 a 0 1\n")
    assert deck.elaborate({"r": 5.0})["R1"].value == 5.0
    for name in ("s", "k"):
        with pytest.raises(UsageError, match=f"parameter {name} decides the .if of line 3"):
            deck.elaborate({name: 1.0})


CALLS = (
    "t\n.param s={top}\n.subckt pin a state=0 params: r=1k\n.param k={{state*2}}\n.if (state == 0)\nR1 a 0 {{r}}\n"
    ".elseif (k == 2)\nR1 a b {{r}}\nX1 b inner\n.else\n.param r2=4k\nR1 a 0 {{r2}}\n.endif\n"
    ".subckt inner p\n.if (r > 5k)\nR1 p 0 2k\n.else\nR1 p 0 3k\n.endif\n.ends\n.ends\n"
    "I1 0 x 1m\nX1 x pin\nI2 0 y 1m\nX2 y pin state={{s}} r=7k\nI3 0 z 1m\nX3 z pin state=5\n"
)


def test_conditions_of_sub_circuits_are_decided_in_every_call() -> None:
    deck = loads(CALLS.format(top=1))
    point = circuitsim.solve(deck)
    assert (point["x"], point["y"], point["z"]) == (1.0, 9.0, 4.0)  # 1k, 7k + 2k, 4k
    assert [name for name in deck.circuit.names if name.startswith("X2")] == ["X2.R1", "X2.X1.R1"]
    assert circuitsim.solve(loads(CALLS.format(top=0)))["y"] == 7.0
    assert circuitsim.sweep(deck, {"s": [1.0, 1.0]}, "v(y)")["v(y)"].tolist() == [9.0, 9.0]
    with pytest.raises(UsageError, match=r"s = 2 decides an \.if of a sub-circuit otherwise"):
        circuitsim.sweep(deck, {"s": [1.0, 2.0]}, "v(y)")


def test_a_call_sets_what_the_body_reads_undeclared() -> None:
    """LTspice's op-amps: the card declares no parameters, the calls set them."""
    body = "t\nV1 in 0 1\nX1 in out amp Gain=3{}\nR1 out 0 1k\n.subckt amp a b\nE1 b 0 a 0 {{gain}}\n.ends\n"
    deck = loads(body.format(""))
    assert circuitsim.solve(deck)["out"] == 3.0
    assert [note.kind for note in deck.notes] == ["assumed"]
    with pytest.raises(NetlistError, match="amp has no parameter 'other'"):
        loads(body.format(" other=1"))
