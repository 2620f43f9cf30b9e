"""A deck is a circuit that also knows what its file asks for: analyses take their defaults from its cards, its circuit
follows what it says, a change that cannot be followed is refused, warnings show."""

import pickle
import random
import warnings
from pathlib import Path

import numpy as np
import pytest

import circuitsim
from circuitsim import Circuit, Deck, DeckWarning, TopologyError, UsageError, loads, solve
from circuitsim.errors import Location, NetlistError
from circuitsim.netlist.roles import make_roles, read_roles

TEXT = """a filter with a diode
.param r=1k
V1 in 0 2 AC 1 SIN(2 1 1k)
R1 in out {r} tol=1%
C1 out 0 100n
D1 out b
R2 b 0 1k
.op
.dc V1 0 2 1
.tran 10u 2m
.meas tran high MAX v(out)
.meas tran late FIND v(out) AT=1
.ac dec 1 10 1k
.tf v(out) V1
.sens v(out)
.print dc v(out)
"""


@pytest.fixture
def deck() -> Deck:
    return loads(TEXT)


def test_a_deck_is_a_circuit(deck: Deck) -> None:
    assert isinstance(deck, Circuit) and len(deck) == 5 and deck["R1"].value == 1e3
    assert repr(deck).endswith("2 R, 1 D, 1 V, 1 C; .op, .dc, .tran, .meas, .ac, .tf, .sens, .print)")
    assert deck.title == deck.circuit.title == "a filter with a diode"
    assert deck.with_values({"R1": 2e3})["R1"].value == 2e3
    with pytest.raises(TopologyError, match="a deck is immutable"):
        deck.resistor("R3", "b", "0", 1.0)
    own = deck.circuit
    own.resistor("R3", "b", "0", 1e3)
    assert len(own) == 6 and len(deck) == 5 and type(own) is Circuit


def test_each_analysis_takes_the_cards_of_a_deck(deck: Deck) -> None:
    found = circuitsim.sweep(deck)
    assert list(found.columns) == ["v(out)"] and found["v(out)"].tolist() == pytest.approx([0.0, 0.5, 1.0])
    run = circuitsim.transient(deck)
    assert run.times.size == 201 and run.times[-1] == 2e-3
    assert circuitsim.transient(deck, 1e-3).times[-1] == 1e-3
    assert circuitsim.ac(deck).frequencies.tolist() == [10.0, 100.0, 1000.0]
    assert circuitsim.poles(deck).stable
    assert circuitsim.transfer_function(deck).gain.value == pytest.approx(0.5)
    assert circuitsim.sensitivity(deck).outputs == ("v(out)",)
    spread = circuitsim.worst_case(deck, observe="v(out)")["v(out)"]
    assert spread.least.value < 1.0 < spread.most.value  # by tol= of R1
    assert circuitsim.steady_state(deck).shooting.period == pytest.approx(1e-3)


def test_arguments_come_before_cards(deck: Deck) -> None:
    other = circuitsim.time_domain.Sine(0.0, 3.0, 2e3)
    run = circuitsim.transient(deck, 1e-3, {"v1": other}, points=5)
    assert run.times.size == 5 and run.voltage("in").tolist() == pytest.approx([0.0] * 5, abs=1e-9)
    assert circuitsim.sweep(deck, columns="v(b)", V1=[2.0, 4.0])["v(b)"].tolist() == pytest.approx([1.0, 2.0])
    assert circuitsim.sweep(deck, {"r": [0.0]}, "v(b)")["v(b)"].tolist() == [2.0]
    assert circuitsim.ac(deck, [50.0], {"V1": 2.0})["in"].tolist() == [2.0]
    with pytest.raises(UsageError, match=r"tolerances\['R1'\] must be a finite number above 0, not -0.1"):
        circuitsim.montecarlo(deck, {"R1": -0.1}, "v(b)")
    assert circuitsim.worst_case(loads("t\nI1 0 a 1\nR1 a 0 2\n"), {"I1": 1}, "v(a)")["v(a)"].most.value == 4.0
    found = circuitsim.worst_case(deck, {"R1": 0.5, "R2": "10%"}, "v(b)")["v(b)"]
    assert found.least.value == pytest.approx(2 * 0.9 / 2.4) and found.most.value == pytest.approx(2 * 1.1 / 1.6)


def test_warnings_of_a_deck_come_once(deck: Deck) -> None:
    with pytest.warns(DeckWarning, match="uses the DC values of V1, which vary over time") as caught:
        solve(deck)
    assert caught[0].filename == __file__ and deck.notes[-1].kind == "time"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solve(deck)
        circuitsim.transient(deck)
        loads("t\nV1 a 0 5\nR1 a 0 1k\nC1 a 0 1u\n.tran 1u 1m\n.ac dec 1 1 10\n")
    latch = loads("t\nV1 a 0 1\nS1 a b a 0 m\nR1 b 0 1\n.model m sw(vt=.5)\n")
    assert solve(latch).voltage("b") == pytest.approx(0.5)
    for one in (latch, latch.circuit):
        with pytest.warns(DeckWarning, match="S1: switches keep the states on their cards"):
            circuitsim.batched(one, ["V1"], [("b", "0")])
    with pytest.warns(DeckWarning, match="the first line is the title") as caught:
        found = loads("V1 a 0 5\nR1 a b 10M\nR2 b 0 1k\nV2 a 0 1\n")
    assert len(caught) == 1 and caught[0].filename == __file__
    assert [p.kind for p in caught[0].message.problems] == ["title", "mega"]  # type: ignore[union-attr]
    assert {p.kind for p in found.notes} >= {"title", "mega"}


def test_all_analyses_in_one_call(deck: Deck) -> None:
    with pytest.warns(DeckWarning, match="late"):
        found = circuitsim.run(deck)
    assert list(found) == ["op", "dc", "tran", "meas", "ac", "tf", "sens"]
    highest = found["tran"].voltage("out").max()
    assert found["meas"] == {"late": None, "high": pytest.approx(highest, rel=1e-3)}
    assert len(repr(found).splitlines()) >= len(found) and "<" in found._repr_html_()
    assert list(circuitsim.run(loads("t\nV1 a 0 1\nR1 a 0 1\n"))) == ["op"]
    stepped = loads("t\n.param r=1k\nV1 a 0 1\nR1 a b {r}\nC1 b 0 1u ic=0\n.tran 1m 5m uic\n.step param r 1k 2k 1k\n")
    assert circuitsim.run(stepped)["tran"].waves.shape == (6, 2)
    clipped = loads("t\nV1 a 0 SIN(1 2 1k)\nR1 a b 1k\nC1 b 0 1n\n.tran 1m 5m\n.four 1k v(a)\n.four 10 v(a)\n")
    with pytest.warns(DeckWarning, match=r"\.four is left out: the run of 0\.005 s has 0 periods"):
        (series,) = circuitsim.run(clipped)["four"]
    assert series.mean == pytest.approx(1.0) and series.amplitude[0] == pytest.approx(2.0)
    with pytest.raises(UsageError, match=r"use circuitsim\.transient"):
        circuitsim.sweep(stepped)
    failing = loads("t\nV1 a 0 1\nR1 a b 1\nC1 b 0 1\n.ac lin 1 1 1\n.op\n")
    with pytest.raises(UsageError, match="no source has an amplitude") as caught:
        circuitsim.run(failing)
    assert caught.value.partial_result["op"]["b"] == 1.0


def test_a_deck_elaborates_again_with_other_parameters() -> None:
    deck = loads("t\n.param r=1 q={2*r}\n.subckt s a\nR1 a 0 {q}\n.ends\nX1 n s\nR2 n 0 {sqrt(r)}\n.temp {r+9}\n")
    assert deck.parameters == {"r": 1, "q": 2} and deck.temperature == 10.0
    for values, expected in (({"R": 9}, [18, 3]), ({"q": 7}, [7, 1]), ({}, [2, 1])):
        assert [e.value for e in deck.elaborate(values)] == expected
    assert [e.value for e in deck.circuit] == [2, 1]
    refusals = (({"x": 1}, "no parameter of the deck is called 'x'"), ({"r": float("nan")}, "not finite"))
    for values, message in refusals:
        with pytest.raises(UsageError, match=message):
            deck.elaborate(values)
    for degrees in (-300.0, np.inf, np.nan):
        with pytest.raises(UsageError, match="absolute zero"):
            deck.elaborate({}, degrees)
    with pytest.raises(NetlistError, match=r"sqrt\(-1\)"):
        deck.elaborate({"r": -1})


def test_a_parameter_that_chooses_cards_cannot_vary() -> None:
    deck = loads("t\n.param k=2 s={k} r=1k\n.if (s == 2)\nR1 a 0 {r}\n.else\nnonsense\n.endif\nV1 a 0 1\n")
    assert deck.elaborate({"r": 5.0})["R1"].value == 5.0
    for name in ("s", "k"):
        with pytest.raises(UsageError, match=f"parameter {name} decides the .if of line 3"):
            deck.elaborate({name: 1.0})
    pin = "t\n.param s=1\nI1 0 a 1m\nX1 a pin state={s}\n.subckt pin a state=0\n.if (state == 0)\nR1 a 0 1k\n.else\n"
    deck = loads(f"{pin}R1 a 0 3k\n.endif\n.ends\n")
    assert circuitsim.sweep(deck, {"s": [1.0, 1.0]}, "v(a)")["v(a)"].tolist() == [3.0, 3.0]
    with pytest.raises(UsageError, match=r"s = 0 changes an \.if of a sub-circuit"):
        circuitsim.sweep(deck, {"s": [1.0, 0.0]}, "v(a)")


def test_origins_and_directives() -> None:
    circuit = loads("t\nR1 a 0 1\n.subckt s a\n\nR1 a 0\n+ 1\n.ends\nX1 a s\nX2 a s\nR2 a 0 1\n", file="f.cir")
    assert [str(circuit.origin(k)) for k in range(5)] == [f"f.cir:{line}:1" for line in (2, 5, 5, 10)] + ["None"]
    deck = loads("t\nR1 a\n*! input  V1\n+ 0 1\n  *!output a b\n* ! no\n.end\n*! after\n")
    places = [(d.text, d.location.line, d.location.column) for d in deck.directives]
    assert places == [("input  V1", 3, 1), ("output a b", 5, 3)] and len(deck.circuit) == 1


LEARNS = """a deck that can learn
*! input V1 Ib
*! output v(out) v(a, b) b
*! trainable R* min=1k max=1MEG
*! trainable R1 min=10 max=1MEG
*! trainable It
V1 a 0 1
Ib 0 b 1m
It 0 b 1m
R1 a b 1k
R2 b out 2k
R3 out 0 3k
"""


def test_roles_of_a_deck() -> None:
    deck = loads(LEARNS)
    roles, problems = read_roles(deck)
    assert problems == () and roles.inputs == ("V1", "Ib") and roles.require() is roles
    assert roles.outputs == (("out", "0"), ("a", "b"), ("b", "0"))
    limits = [("It", -np.inf, np.inf), ("R1", 10.0, 1e6), ("R2", 1e3, 1e6), ("R3", 1e3, 1e6)]
    assert [tuple(one) for one in roles.trainable] == limits
    text = circuitsim.dumps(deck.circuit, roles)
    assert "*! trainable R* min=1k max=1MEG\n" in text and read_roles(loads(text))[0] == roles
    # Names that the writer changes are spelt out.
    nested = LEARNS.replace("R2 b out 2k", "X1 b out part").replace("R* min", "X* R3 min")
    deck = loads(f"{nested}.subckt part p q\nR2 p q 2k\n.ends\n")
    again = read_roles(loads(circuitsim.dumps(deck.circuit, read_roles(deck)[0])))[0]
    assert again[:2] == roles[:2] and {one.name for one in again.trainable} == {"It", "R1", "R.X1.R2", "R3"}
    assert sorted(again.trainable)[1][1:] == (1e3, 1e6)
    # What is given replaces what the deck says.
    other = make_roles(deck, outputs="v(b)", trainable=["R1 min=1 max=1e4", "R3"], base=roles)
    assert other.inputs == roles.inputs and other.outputs == (("b", "0"),)
    assert [tuple(one) for one in other.trainable] == [("R1", 1.0, 1e4), ("R3", 3.0, 3e6)]
    with pytest.raises(UsageError, match="output: no node is called"):
        make_roles(deck, outputs="v(q)", base=roles)
    with pytest.raises(UsageError, match="no outputs: write"):
        make_roles(deck, inputs="V1", trainable="R1").require()
    with pytest.raises(NetlistError) as caught:
        read_roles(loads(LEARNS.replace("V1 Ib", "V7").replace("v(out)", "v(q)")))
    assert len(caught.value.problems) == 2


@pytest.mark.parametrize("seed", range(8))
def test_affine_sources_follow_new_values(seed: int) -> None:
    chance = random.Random(seed)
    one, other = (chance.choice((-3, -0.5, 2, 7)) for _ in range(2))
    cards = chance.choice(
        (
            f"E1 c 0 a 0 {one}\nG1 0 d c 0 {other}m",
            f"E1 c 0 VALUE={{{one}*v(a)}}\nB1 0 d I={{v(c)*{other}m}}",
            f"B1 c 0 V={one}*v(a)\nG1 0 d VALUE={{{other}m*v(c,0)}} m=1",
        )
    )
    text = f"t\nV1 a 0 {{x}}\n.param x={{x0}}\n{cards}\nR1 c 0 1k\nR2 d e 1k\nR3 e 0 1k\nC1 e 0 1u\n"
    first, second = (loads(text.replace("{x0}", str(x))) for x in (2, 5))
    expected, gain = solve(second).voltages, one * other  # of v(e): 1 mS into 1 kΩ
    np.testing.assert_allclose(solve(first.circuit.with_values({"V1": 5})).voltages, expected, rtol=1e-12)
    np.testing.assert_allclose(solve(first.elaborate({"x": 2}).with_values({"V1": 5})).voltages, expected, rtol=1e-12)
    response = circuitsim.ac(first.circuit, [1.0], {"V1": 1.0})
    assert abs(response["e"][0]) == pytest.approx(abs(gain) / np.hypot(1, 2 * np.pi * 1e-3), rel=1e-9)
    assert circuitsim.transfer_function(first.circuit, "v(e)", "V1").gain.above == pytest.approx(gain, rel=1e-9)


def test_a_formula_that_cannot_follow_is_refused_where_it_would_have_to() -> None:
    deck = loads("t\nV1 a 0 2\nB1 c 0 V={v(a)*v(a)}\nR1 c 0 1k\nC1 c 0 1u\n")
    circuit = deck.circuit
    frozen = loads("t\nV1 a 0 2\nE1 c 0 a 0 3\nR2 c 0 1k\n")
    for refused in (
        lambda: circuit.with_values({"V1": 4}),
        lambda: solve(frozen).circuit.with_values({"v1": 4}),
        lambda: circuitsim.sweep(circuit, {"V1": [1.0, 4.0]}, "v(c)"),
    ):
        with pytest.raises(UsageError, match="is given by a formula of other elements"):
            refused()
    assert solve(circuit).voltage("c") == solve(circuit.with_values({"R1": 4})).voltage("c") == 4
    assert circuitsim.prepared(circuit).solve({"V1": 3.0})["c"] == pytest.approx(9.0)
    assert circuitsim.ac(circuit, [1.0], {"V1": 1.0})["c"] == pytest.approx([4.0])
    assert circuitsim.sensitivity(circuit, "v(c)")["v(c)", "V1"] == pytest.approx(4.0)
    assert circuitsim.sweep(deck, {"V1": [1.0, 4.0]}, "v(c)")["v(c)"] == pytest.approx([1, 16])


COUNT = 5000


def test_a_large_deck_is_a_deck(tmp_path: Path) -> None:
    lines = "".join(f"R{k} n{k} n{k + 1} {1 + k % 7}\n" for k in range(COUNT))
    path = tmp_path / "ladder.cir"
    path.write_text(f"a ladder\nV1 n0 0 1\n{lines}Rend n{COUNT} 0 1k\n.op\n.end\n")
    deck = circuitsim.load(path)
    circuit = deck.circuit
    assert circuit["r17"].value == 4.0 and circuit.count() == {"R": COUNT + 1, "V": 1}
    assert circuit.origin(circuit.element_index("Rend")) == Location(str(path), COUNT + 3)
    assert circuit.node_names[circuit.node_index("N5")] == "n5" and circuit.node_index("gnd") == 0
    with pytest.raises(TopologyError, match="did you mean"):
        circuit.element_index("R12x")
    assert pickle.loads(pickle.dumps(deck)).circuit["R17"] == circuit["R17"]
    other = circuit.with_values({"R17": 9.0})
    other.resistor("Rnew", "n3", "fresh", 1.0)
    assert (other["Rnew"].second, other["R17"].value, circuit["R17"].value) == ("fresh", 9.0, 4.0)
    assert "Rnew" not in circuit
    with pytest.raises(TopologyError, match="taken"):
        other.resistor("rNEW", "n3", "fresh", 1.0)
    total = 1000.0 + sum(1 + k % 7 for k in range(COUNT))
    assert np.isclose(solve(circuit).current("V1"), -1.0 / total, rtol=1e-9)


VALUES = """1 0 -0 1k 1K 1.5meg 1MEG 1m 2.2e3 1e-3k .5 5. . 1e 1e+2 1E-2u 1e23 1e-22 9007199254740993 1e999 1e-400 0e999
1e00000003 2.2250738585072011e-308 17976931348623157e292 8.41e21 -5 +5 5V 10A 1f 4k7 1,5 {2*3} {x} x 5µ 1e5k 1megohm
00000000000000000001.5 0.000000000000000000000015 12345678901234567890123456789"""
NODES = "0 gnd GND a A b n1_2 n1/2 n//2 ä Ä K x.y +5V * a$b a,b"


def outcome(lines: list[str]) -> object:
    """All that a deck of lines gives, to the last bit, or its errors."""
    try:
        circuit = loads("\n".join(["t", ".param x=3", *lines, ""])).circuit
    except NetlistError as error:
        return sorted((p.kind, p.message) for p in error.problems)
    return [column.tobytes() for column in circuit.columns()], list(circuit.names), list(circuit.node_names)


def test_plain_lines_together_are_what_each_is_alone() -> None:
    """A line whose value is on a continuation line is read alone. Numbers are rounded as Python does."""
    draw, read, values, nodes = random.Random(1), 0, VALUES.split(), NODES.split()
    for _ in range(200):
        lines, texts, strange = [], [], draw.random() < 0.2
        for k in range(draw.randrange(1, 100)):
            digits = "".join(draw.choice("0123456789") for _ in range(draw.randrange(1, 22)))
            point = draw.randrange(len(digits) + 1)
            texts.append(f"{digits[:point]}.{digits[point:]}e{draw.randrange(-60, 60)}")
            value = draw.choice(values if strange else values[:11]) if draw.random() < 0.2 else texts[-1]
            ends = draw.choices(nodes if strange else nodes[:8], k=2)
            lines.append(draw.choice((" ", "  ", "\t", " \t ")).join([f"{draw.choice('RCLIV')}{k}", *ends, value]))
        found = outcome(lines)
        assert found == outcome(["\n+ ".join(line.rsplit(None, 1)) for line in lines])
        read += isinstance(found, tuple)
        deck = loads("\n".join(["t", *(f"I{k} a 0 {text}" for k, text in enumerate(texts)), ""]))
        assert deck.circuit.columns()[3].tolist() == [float(text) for text in texts]
    assert 100 < read < 200


def test_numbers_of_analyses_keep_their_first_values() -> None:
    """As `.step` does not change them, a warning says so, of names behind names too."""
    deck = "t\nV1 a 0 AC 1\nR1 a 0 1k\n.param b={2*f}\n.step param f list 10 100\n.ac list {b}\n"
    with pytest.warns(DeckWarning, match="b keeps its value at the first value of f"):
        circuitsim.ac(loads(deck))
