"""ngspice reads decks as we do: formulas, time functions, control blocks, random decks, and what the writer writes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spice import NEEDED, spice
from test_cases import rows

from circuitsim import Circuit, dumps, loads, solve, sweep, transient
from circuitsim.time_domain import measure

pytestmark = NEEDED
FEW = settings(max_examples=max(10, settings().max_examples // 10))


def flat(deck: str) -> str:
    """The text that the writer writes, without its end."""
    return dumps(loads(deck)).removesuffix(".end\n").removesuffix(".op\n")


def voltages(deck: str) -> dict[str, complex]:
    """Node voltages at the operating point."""
    found, log = spice(deck, "op\nprint all")
    assert found, log
    return {name.removeprefix("v(").removesuffix(")"): values[0] for name, values in found.items()}


def test_expressions() -> None:
    answers = [answer for answer, _ in rows("expressions_as_in_ngspice")]
    cards = [text.strip().rsplit("V1 n 0 ", 1)[1] for _, text in rows("expressions_as_in_ngspice")]
    deck = "\n".join(["t", ".param a=3 b=5", *(f"V{k} n{k} 0 {card}\nR{k} n{k} 0 1" for k, card in enumerate(cards))])
    theirs = voltages(deck)
    for k, answer in enumerate(answers):
        assert theirs[f"n{k}"] == pytest.approx(float(answer), rel=1e-6), cards[k]


@pytest.mark.parametrize("card", ["V={k}*v(a)", "V='k'*v(a)", "V={v(a)} > 2 ? {k} : 0"])
def test_formulas(card: str) -> None:
    deck = f"t\nV1 a 0 3\n.param k=2\nB1 o 0 {card}\nR1 o 0 1k\n"
    assert solve(loads(deck))["o"] == pytest.approx(voltages(deck)["o"], rel=1e-6)


SCRIPTS = """
alter R1 = 2k
alter r1 2k
alter @r1[resistance]=2k
alter R1 resistance = 3k
alter R2 = 3k
alter R3 r = 4k
alter R4 = 5k
alter V1 dc = 5 / alter I1 dc 3m
alter V1 = 4
set temp=127
option temp = 50
let x = 3 / let y = 2*x / alter V1 = y
let x = 3k / alter R1 = $&x
alter R1 = {2*1500}
let unused = vecmax(7) / set color0 = white
"""
ALTERED = (
    "a divider\nV1 1 0 1\nR1 1 2 1k tc=0.01\nR2 2 0 rm\nR3 2 0 1k m=2\nI1 0 3 1m\nR4 3 0 {1k}\n"
    ".model rm R(r=1k tc1=0.01)\n.temp 77\n"
)


@pytest.mark.parametrize("script", SCRIPTS.strip().split("\n"))
def test_alterations_in_control_blocks(script: str) -> None:
    lines = script.replace(" / ", "\n")
    theirs, log = spice(ALTERED, f"{lines}\nop\nprint v(1) v(2) v(3)")
    point = solve(loads(f"{ALTERED}.control\n{lines}\nop\n.endc\n.end\n").circuit)
    assert [point[name] for name in "123"] == pytest.approx([theirs[f"v({name})"][0] for name in "123"], rel=1e-9), log


SOURCES = """
PULSE(1 5 2u 1u 2u 3u 10u)
PULSE(1 5 2.5u)
PULSE(5 1 0 2u 1u 1u 6u)
SIN(1 2 100k 2u 1e5 30)
SIN(1 2)
SIN(0 2 0)
EXP(1 5 2u 1u 6u 2u)
EXP(1 5)
SFFM(1 2 300k 3 50k)
SFFM(1 2 300k 3 50k 20 40)
AM(2 1 50k 300k 2u)
PWL(1u 1 3u 4 5u 2)
PWL(0 1 3u 4 7.5u 1) r=0
PWL(0 1 3u 4 7.5u 4) r=3u td=1u
DC 7 SIN(1 2 100k)
DC 7
"""


def test_sources_over_time() -> None:
    sources = SOURCES.strip().split("\n")
    cards = [f"V{k} n{k} 0 {text}\nR{k} n{k} 0 1k" for k, text in enumerate(sources)]
    deck = "\n".join(["waves", *cards, ".tran 1u 12u 0 5n", ""])
    asked = [f"v(n{k})[{j}]" for k in range(len(sources)) for j in range(13)]
    theirs, _ = spice(deck, "run\nlinearize\n" + "\n".join(f"print {name}" for name in asked))
    found = sweep(loads(deck), {"time": [k * 1e-6 for k in range(13)]}, "v(*)")
    for k, text in enumerate(sources):
        # ngspice interpolates between its own steps of 5 ns, on which a jump of PWL takes one step.
        expected = [theirs[name][0] for name in asked[13 * k : 13 * k + 13]]
        assert found[f"v(n{k})"] == pytest.approx(expected, rel=2e-4, abs=2e-4), text


def test_capacitances_and_inductances_over_temperature() -> None:
    """Coefficients on cards and in models, scale."""
    cards = (
        "t\n.options temp=77\nV1 a 0 SIN(0 1 1k)\nR1 a b 1k\nC1 b 0 cm 100n\n.model cm C(tc1=2m tc2=1u)\n"
        "C2 b c 100n tc1=2m\nR2 c 0 1k tc1=1m\nL1 c d 10m tc1=-3m tc2=1u\nL2 d e lm 20m\n.model lm L(tc1=4m)\n"
        "R3 e 0 1k\nC3 e 0 10n scale=3\n"
    )
    theirs, _ = spice(cards, "tran 1u 5m 0 0.2u\nmeas tran x find v(b) at=0.74m\nmeas tran y find v(e) at=4.3m")
    run = transient(loads(cards + ".tran 10u 5m\n.end\n"))
    assert measure(run, "x FIND v(b) AT=0.74m").value == pytest.approx(theirs["x"][0], rel=1e-4)
    assert measure(run, "y FIND v(e) AT=4.3m").value == pytest.approx(theirs["y"][0], rel=1e-4)


# Random resistors: any combination of what a card and its model may state, at any temperature.

OPTIONAL = (
    *(("tc1", f"{k}e-5") for k in (-450, -3, 7, 420)),
    *(("tc2", "1e-5"), ("tc2", "-1e-6"), ("tce", "1"), ("tce", "-0.5"), ("temp", "-40"), ("temp", "100")),
    *(("dtemp", "-20"), ("dtemp", "15"), ("scale", "2"), ("m", "3"), ("l", "5u"), ("l", "20u"), ("w", "3u")),
)
OF_MODELS = ("narrow=0.2u", "short=0.1u", "tc1=0.004", "tc2=2e-6", "tce=0.3", "tnom=50", "defw=4u")


@st.composite
def resistors(draw: st.DrawFn) -> str:
    """A resistor's card behind its nodes."""
    first = draw(st.sampled_from(["1k", "m1", "m2", "1k m1", "m2 2k", "R=3k", "m2 r=4k", "{500+2*temper}"]))
    # ngspice 39 forgets what stands beside a value that is an expression with temper.
    more = [] if "temper" in first else draw(st.lists(st.sampled_from(OPTIONAL), max_size=4))
    return " ".join([first, *(f"{key}={value}" for key, value in dict(more).items())])


@FEW
@given(
    st.lists(resistors(), min_size=5, max_size=12),
    st.lists(st.sampled_from(OF_MODELS), unique=True),
    st.sampled_from(["-10", "27", "85"]),
    st.sampled_from(["", "tnom=20"]),
)
def test_resistances_over_temperature(cards: list[str], of_models: list[str], temperature: str, option: str) -> None:
    more = " ".join(of_models)
    lines = ["random resistors", f".temp {temperature}", f".options reltol=1e-6 {option}", "Vs s 0 1"]
    lines += [f".model m1 R(rsh=200 {more})", f".model m2 R(r=2k {more})"]
    lines += [f"Ra{k} s n{k} {card}\nRb{k} n{k} 0 1k" for k, card in enumerate(cards)]
    point, theirs = solve(loads("\n".join([*lines, ""]))), voltages("\n".join(lines))
    for k, card in enumerate(cards):
        assert point[f"n{k}"] == pytest.approx(theirs[f"n{k}"], rel=1e-9), (card, lines)


# Random decks with sub-circuits, parameters and expressions, and their flat text.

VALUES = (
    *("1", "2k", "4.7K", ".5", "1MEG", "100ohm", "3e2", "10mil", "1e3meg", "33R", "2m", "{p}", "'p*q'"),
    *("{q > 2 ? p : 2*p}", "R={f(p, q)}", "{2**3**2 + 9/q}", "{max(p, q)**2}", "{p}  m=2", "r = 2k m = {q}"),
)
GAPS = (" ", "\t ", "\n+ ", "\n* between\n+", " $ why\n+", ";why\n + ")
PASSED = ("", " p=7", " PARAMS: q={q+1}", " p={2*p} q=3")


@st.composite
def scopes(draw: st.DrawFn, calls: list[str]) -> list[str]:
    """Resistors between the nodes of a scope, and calls of what is defined already."""
    nodes, cards = st.sampled_from(["0", "a", "B", "n1"]), []
    for k in range(draw(st.integers(1, 4))):
        gap = draw(st.sampled_from(GAPS))
        cards.append(f"R{k}{gap}{draw(nodes)} {draw(nodes)}{gap}{draw(st.sampled_from(VALUES))}")
    for k in range(draw(st.integers(0, 2)) if calls else 0):
        call, passed = draw(st.sampled_from(calls)), draw(st.sampled_from(PASSED))
        cards.append(f"X{k} {draw(nodes)} {draw(nodes)} {call}{passed}")
    return draw(st.permutations(cards))


@st.composite
def decks(draw: st.DrawFn) -> str:
    """A deck of three sub-circuits."""
    lines, names = ["a random deck", ".func f(x,y) {x*y + p}"], list[str]()
    for name in ("s1", "S2", "s3"):
        header = draw(st.sampled_from(["p=3 q=2", "PARAMS: p=1k q={p/100}", "q=1 p={q*2}"]))
        leaks = ["Rleak a 0 1k", "Rleak2 b 0 1k", "Rleak3 n1 0 5"]
        lines += [f".subckt {name} a b {header}", *draw(scopes(names)), *leaks, f".ends {name}"]
        names.append(name.lower())
    top = ["X9 a b s3 p=2", "I1 0 a DC 1m", "V1 b 0 {p + q}", "Rl n1 0 10", "Rm a 0 10k", ".param p=2 q={p + 1}"]
    return "\n".join([*lines, *draw(st.permutations([*draw(scopes(names)), *top])), ""])


@FEW
@given(decks())
def test_a_deck_and_its_flat_text_are_one_circuit(deck: str) -> None:
    theirs, written = voltages(deck), voltages(flat(deck))
    point = solve(loads(deck))
    names = point.circuit.node_names[1:]
    largest = max(abs(theirs[name.lower()]) for name in names)
    for name in names:
        assert theirs[name.lower()] == pytest.approx(written[name.lower()], rel=1e-6, abs=1e-6 * largest)
        assert theirs[name.lower()] == pytest.approx(point[name], rel=1e-6, abs=1e-6 * largest)


FLAT = {
    "t\nI1 0 a 1\nR1 a b 0\nR2 b 0 2\n": {"a": 2, "b": 2},
    # in –1– out, out –1– 0; out –1– y, y –1– 0: 2 V over 1 Ω and 1 ∥ 2 Ω.
    "t\n.subckt s a b\nR1 a m 1\nR2 m b 0\nR3 b 0 1\n.ends\nV1 in 0 2\nX1 in out s\nX.2 out x1.y s\n": {
        **{"out": 0.8, "x1.m": 0.8, "x1.y": 0.4}
    },
    "t\nV1 a 0 5\nR1 a b 1k\nD1 b c\nR2 c 0 1k\nD2 0 b\n": {"c": 2.5},
    "t\nV1 n[1] 0 5\nR#1 n[1] n<2> 1\nR!2 n<2> 0 4\n": {"n<2>": 4},
    "t\nV1 a 0 5\nL1 a b 1m\nR1 b 0 1\nC1 b 0 1u\n": {"b": 5},
    "\nV1 a 0 5\nR1 a 0 1\n": {"a": 5},
    "* .param x={1\\\nV1 a 0 5\nR1 a 0 1\n": {"a": 5},
    "t\nV1 time 0 5\nRµ time é 1\nR2 é 0 1\n": {"n__": 2.5},
}


@pytest.mark.parametrize("deck", FLAT)
def test_flat_decks(deck: str) -> None:
    found = voltages(flat(deck))
    for node, volts in FLAT[deck].items():
        assert found[node] == pytest.approx(volts, abs=0.02 if "D1" in deck else 1e-6)


def test_every_sign_that_the_writer_keeps_is_taken() -> None:
    signs, cards = [c for c in map(chr, range(33, 127)) if not c.isalnum()], ["t"]
    for k, sign in enumerate(signs):
        circuit = Circuit("t")
        circuit.resistor(f"R{sign}a{k}", f"n{sign}{k}", "0", 1.0)
        circuit.resistor(f"R{k}b{sign}", f"n{sign}{k}", "0", 1.0)
        lines = [line for line in dumps(circuit).split("\n") if line.startswith("R")]
        cards += [*lines, f"I{k} 0 {lines[0].split()[1]} 2"]
    found = voltages("\n".join(cards))
    nodes = {card.split()[2].lower() for card in cards if card[0] == "I"}
    assert len(nodes) == len(signs) and np.allclose([found[node] for node in nodes], 1.0, rtol=1e-6)
