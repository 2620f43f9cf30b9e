"""`dumps` and ``convert``: exact, legal, the same circuit again; what a flat deck cannot hold is refused by name."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from circuitsim import Circuit, Deck, UsageError, dumps, load, loads, solve, sweep, transient
from circuitsim.errors import CircuitError, NetlistError
from circuitsim.netlist import dump
from circuitsim.netlist.writer import text_of

ROOT = Path(__file__).parents[2]
DECKS = [*sorted((ROOT / "netlists").glob("*.cir")), *sorted((ROOT / "tests/decks").glob("*/*.cir"))]

NAMES = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8),
    st.sampled_from(["0", "GND", "x1.m", "time", "//", "*", "+", "$x", "n'", "{q}", "R1", "VR1", "="]),
).filter(lambda name: name.split() == [name])
VALUES = st.one_of(st.just(0.0), st.floats(1e-300, 1e300), st.integers(0, 10**6).map(float))


@st.composite
def circuits(draw: st.DrawFn) -> Circuit:
    """Circuits built by hand: any names, any values."""
    circuit = Circuit(draw(st.one_of(NAMES, st.sampled_from(["R1 a 0 1k", ".include x"]))))
    for k in range(draw(st.integers(1, 12))):
        name, letter = draw(NAMES), draw(st.sampled_from("RDVILC"))
        name = f"{name}{k}" if name in circuit or not name else name
        sign = -1.0 if letter in "VI" and draw(st.booleans()) else 1.0
        circuit.add(letter, name, draw(NAMES), draw(NAMES), None if letter == "D" else sign * draw(VALUES))
    return circuit


def shape(circuit: Circuit) -> list[Any]:
    """Kinds, nodes in the order of their appearance, exact values; a resistor of zero ohm is a source of zero volt."""
    seen, found = {0: 0}, list[Any]()
    for k, element in enumerate(circuit):
        ends = [seen.setdefault(int(column[k]), len(seen)) for column in circuit.columns()[1:3]]
        short = element.kind == "resistor" and element.value == 0
        found.append(("voltage source" if short else element.kind, *ends, element.value))
    return found


@given(circuits())
def test_any_circuit_comes_back(circuit: Circuit) -> None:
    again = loads(dumps(circuit))
    assert shape(again) == shape(circuit) == shape(loads(dumps(again))) and not again.notes


def test_the_text(tmp_path: Path) -> None:
    circuit = loads(
        "tµ\n.subckt s a\nR1 a m 0.1\nD1 m 0\nR2 a m 0\n.ends\nX1 µ s\nI1 µ 0 {1/3}\nVR.X1.R2 time 0 1e-9\n"
    )
    assert dumps(circuit) == (
        "tµ\n* node µ is written n__\n* node time is written n_time\n"
        "R.X1.R1 n__ X1.m 0.1\nD.X1.D1 X1.m 0 circuitsim_ideal\nV.X1.R2 n__ X1.m 0\nI1 n__ 0 0.3333333333333333\n"
        "VR.X1.R2 n_time 0 1e-09\n"
        ".model circuitsim_ideal D(is=1e-12 n=0.01)\n.op\n.end\n"
    )
    dump(circuit, tmp_path / "x.cir")
    assert load(tmp_path / "x.cir").title == "tµ"
    for folder in ("", tmp_path):
        with pytest.raises(UsageError, match="path must be the name of a file"):
            dump(circuit, folder)
    names = loads(dumps(loads("t\nR1 a 0 0\nVR1 a 0 0\nVR1_2 b 0 0\nR2 a b 0\n"))).names
    assert list(names) == ["VR1_3", "VR1", "VR1_2", "VR2"]  # of parts of zero ohm


@pytest.mark.parametrize(
    "title", ["", "é", "* c", "+ 1", "R1 a 0 1", ".include /etc/passwd", ".end", "x\\", "a\nb", "  x", "a\0b"]
)
def test_titles_and_names_smuggle_no_cards_in(title: str) -> None:
    nodes = ["0", "a\nR8 a 0 1\n", "0;"]
    circuit = Circuit.from_arrays([0], [1], [2], [5.0], 3, title, ["R1\n.include /etc/passwd\n*"], nodes)
    text = dumps(circuit)
    again = loads(text)
    assert len(again) == 1 and not again.notes and [line[0] for line in text.split("\n")[1:-1]].count("R") == 1
    assert loads(dumps(again)).title == again.title
    assert again.title == title or title not in ("", "é", "* c", "+ 1")


def told(deck: Deck) -> tuple[Any, ...]:
    """What a deck says beside its elements: its analyses, and a short run of its waveforms, switches and couplings."""
    kinds = {type(card).__name__ for card in deck.analyses} - {"OperatingPointRequest", "Temperature"}
    following = deck.following
    switches = {k: (one.numbers, one.closed) for k, one in following.switches.items()}
    phasors = {k: one for k, one in following.phasors.items() if one}
    waves = {k: one for k, one in following.waves.items() if "noise" not in one.name}
    return kinds, switches, phasors, waves, dict(following.initials), list(following.couplings.values())


@pytest.mark.parametrize("first", range(6))
def test_a_flat_deck_says_what_its_deck_says(first: int) -> None:
    same = refused = 0
    for path in DECKS[first::6]:
        try:
            deck = load(path)
            again = loads(text_of(deck))
        except NetlistError:
            continue
        except UsageError as error:
            assert re.search(r"\.(dc|step|temp)|formula", str(error))
            refused += 1
            continue
        assert told(again) == told(deck), path
        try:
            volts = np.sort(solve(deck.circuit).voltages)  # the flat deck has its nodes in another order
        except CircuitError:
            continue
        found = np.sort(solve(again.circuit).voltages)  # op-amps have a gain of 1e9 there
        np.testing.assert_allclose(found, volts, rtol=0, atol=1e-6 * abs(volts).max(), err_msg=str(path))
        same += 1
    assert same > 10 and refused < 20


ACTING = """t
.subckt cell a b f=1k
V1 a 0 DC 2 AC 3 45 SIN(1 2 {f})
R1 a b 1k
C1 b 0 1u ic=.5
D1 b 0 dm
.ends
X1 p q cell f=2k
I1 0 q PULSE(0 1m 1u 1u 1u .1m .2m) m=2
V2 q 0 PWL(0 0 1m 1 2m 0) r=0 td=1u
.model dm D(is=1e-14 cjo=4p tt=5n)
.tran 1u 1m
.meas tran top MAX i(X1.R1)
.print tran v(q) i(X1.R1)
.ac dec 10 1 1k
.tf v(q) I1
.dc I1 0 1m .5m
"""
WRITTEN = """V.X1.V1 p 0 DC 2 AC 3 45 SIN(1 2 2000)
C.X1.C1 q 0 1e-06 ic=0.5
I1 0 q PULSE(0 0.001 1e-06 1e-06 1e-06 0.0001 0.0002) m=2
V2 q 0 PWL(0 0 0.001 1 0.002 0) r=0 td=1e-06
.tran 1e-06 0.001 0
.meas tran top MAX i(R.X1.R1)
.print tran v(q) i(R.X1.R1)
.ac dec 10 1 1000
.tf v(q) I1
.dc I1 0 0.001 0.0005"""


def test_what_acts_over_time_is_written() -> None:
    deck = loads(ACTING)
    text = text_of(deck)
    assert set(WRITTEN.split("\n")) <= set(text.split("\n")), text
    assert re.search(r"\.model dm D\(.*cjo=4e-12 tt=5e-09.*\)", text)
    pulse = loads(
        "t\nV1 a 0 PULSE(0 1 1u 1u 1u 20u 50u) AC 1\nR1 a b 1k\nC1 b 0 10n\nS1 b 0 a 0 m\n.model m SW(vt=2)\n"
    )
    again = loads(dumps(pulse))
    assert transient(again, 1e-4).voltage("b").tolist() == transient(pulse, 1e-4).voltage("b").tolist()
    assert again.dynamics.phasors == pulse.dynamics.phasors


@pytest.mark.parametrize(
    ("cards", "named"),
    [
        (".param r=1k\nR2 a 0 {r}\n.dc param r 1 2 1", ".dc r"),
        (".param r=1k\nR2 a 0 {r}\n.step param r 1 2 1", ".step r"),
        (".param k=2\nB1 b 0 V={k*v(a)*v(a)}\nR2 b 0 1", "B1 has a non-affine formula"),
        (".temp 0 27", ".temp of several"),
    ],
)
def test_what_a_flat_deck_does_not_have_is_refused_by_name(cards: str, named: str) -> None:
    with pytest.raises(UsageError, match=re.escape(named)):
        text_of(loads(f"t\nV1 a 0 1\nR1 a 0 1k\n{cards}\n"))


@pytest.mark.parametrize("card", ["V1 1 3 1", "R1 1k 3k 1k", "I1 1m 3m 1m", "I2 1m 3m 1m", "dec R1 1k 100k 1"])
def test_sweeps_of_what_a_card_states(card: str) -> None:
    text = (
        f"t\nV1 a 0 1\nR1 a b 1k tc=1m m=2\nI1 0 b 1m m=3\nI2 0 b SIN(0 1m 1k) m=4\nR2 b 0 1k\n.temp 127\n.dc {card}\n"
    )
    deck = loads(text)
    found = [sweep(one, columns="v(b)")["v(b)"] for one in (deck, loads(text_of(deck)))]
    np.testing.assert_allclose(found[1], found[0], rtol=1e-12)


def test_currents_of_sources_alone_are_written_for_ngspice() -> None:
    """It prints no others: each other element has a source of 0 V in series."""
    deck = loads("""currents
V1 a 0 5
R1 a b 1k
D1 b c junction
D2 c 0 straight
I1 0 c 1m
G1 c 0 a 0 1u
F1 c 0 V1 0.01
L1 b q 1m
R2 q 0 5k
E1 e 0 a 0 2
R3 e 0 1k
.model junction D(is=1e-14)
.model straight D(vfwd=0.5 ron=1 vrev=5)
.dc V1 0 5 1
.print dc i(R1) i(D1) i(D2) p(R1) {v(a)*2+i(R1)*1k} {p(D2)+1} i(V1) i(L1) i(E1) i(I1) i(G1) i(F1)
.meas dc most MAX p(R1)
""")
    text = text_of(deck, ngspice=True)
    (card,) = (line for line in text.splitlines() if line.startswith(".print"))
    assert set(re.findall(r"\bi\((.)", card)) == set("VLE") and "{" not in card and "p(R" not in text
    found = [[*sweep(one).columns.values()] for one in (deck, loads(text))]
    np.testing.assert_allclose(found[1], found[0], rtol=1e-9, atol=1e-15)
