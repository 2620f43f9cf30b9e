"""Plain lines read together give what the reader of cards gives, line by line."""

from __future__ import annotations

import pickle
import random
from pathlib import Path

import numpy as np
import pytest

from circuitsim import solve
from circuitsim.errors import NetlistError, TopologyError
from circuitsim.netlist import load, loads
from circuitsim.netlist.deck import Deck

NAMES = ("R", "r", "C", "L", "V", "I", "i", "D", "E", "Rx", "Rü", "RK", "X")
NODES = ("0", "gnd", "GND", "a", "A", "b", "n1_2", "n1/2", "n//2", "ä", "Ä", "K", "k", "x.y", "+5V", "*", "a$b", "a,b")
VALUES = (
    "1",
    "0",
    "-0",
    "1k",
    "1K",
    "1.5meg",
    "1MEG",
    "1m",
    "1M",
    "2.2e3",
    "1e-3k",
    ".5",
    "5.",
    ".",
    "1e",
    "1e+2",
    "1E-2u",
    "1e22",
    "1e23",
    "1e-22",
    "1e-23",
    "123456789012345",
    "9007199254740993",
    "0.1234567890123456789",
    "17976931348623157e292",
    "1e999",
    "1e-999",
    "1e-400",
    "0e999",
    "1e00003",
    "1e00000003",
    "3.14159265358979",
    "2.2250738585072011e-308",
    "8.41e21",
    "-5",
    "+5",
    "5V",
    "10A",
    "1f",
    "5p",
    "4k7",
    "1,5",
    "{2*3}",
    "{x}",
    "x",
    "5 tc=0.1",
    "5 m=2",
    "5µ",
    "00000000000000000001.5",
    "0.000000000000000000000015",
    "12345678901234567890123456789",
    "1e5k",
    "1megohm",
    "1kohm",
)
COMMENTS = ("* a comment", "  * µ", "*! output v(a)", "", "   ", "\t", "; all of it", "$ all", "// all", "\x0b", "\x1c")
GAPS = (" ", "  ", "\t", " \t ", "\x0c", "\xa0", "  ")
CARDS = (
    ".param x=3",
    ".op",
    "X1 a b part",
    ".options temp=50",
    "+ 5",
    "+",
    ".end extra",
    "Q1 a b c",
    "?",
    ".model m D(is=1e-14)",
)
START = "a deck\n.subckt part p q\nRp p q 5\n.ends\n"


def random_deck(seed: int) -> str:
    """Plain lines among everything that is not plain; most decks without an error."""
    draw = random.Random(seed)
    errors, foreign = draw.random() < 0.3, draw.random() < 0.6
    lines = []
    for k in range(draw.randrange(40, 400)):
        gap = GAPS[draw.randrange(len(GAPS) if foreign else 4)]
        kind = draw.random()
        if kind < 0.75:
            name = f"{draw.choice('RRRRRRCLVIr')}{k if draw.random() < 0.99 or not errors else draw.randrange(k + 1)}"
            nodes = [draw.choice(("n", "N", "m_")) + str(draw.randrange(30)) for _ in range(2)]
            value = draw.choice((repr(draw.random() * 10.0 ** draw.randrange(-12, 12)), *VALUES[:8]))
            lines.append(gap.join([name, *nodes, value]))
        elif kind < 0.85:
            value = draw.choice(VALUES if errors else VALUES[:12])
            node = draw.choice(NODES if errors else NODES[:8])
            lines.append(gap.join([f"{draw.choice(NAMES if errors else NAMES[:7])}{k}", node, "0", value]))
        elif kind < 0.95 and foreign:
            lines.append(draw.choice(COMMENTS))
        elif foreign:
            lines.append(draw.choice(CARDS if errors else CARDS[:2]))
        words = lines[-1].split() if lines else []
        if draw.random() < 0.05 and (errors or (len(words) == 4 and words[0][0] not in ".*;$/")):
            lines[-1:] = [" ".join(words[:-1]), draw.choice(COMMENTS[:6]), "+ " + words[-1] if words else "+"]
    return START + draw.choice(("\n", "\r\n", "\n")).join(lines) + draw.choice(("", "\n"))


def outcome(deck: str) -> tuple[object, ...]:
    """All that a deck gives: its circuit to the last bit with places, problems and notes, or its errors."""
    try:
        read = loads(deck)
    except NetlistError as error:
        return (str(error),)
    circuit = read.circuit
    columns = tuple(column.tobytes() for column in circuit.columns())
    places = [circuit.origin(k) for k in range(len(circuit))]
    said = repr((read.problems, read.notes, read.analyses))
    return columns, list(circuit.names), list(circuit.node_names), places, said


def card_by_card(deck: str, monkeypatch: pytest.MonkeyPatch) -> tuple[object, ...]:
    """The outcome of a deck of which each line is a card."""
    with monkeypatch.context() as ordinary:
        ordinary.setattr("circuitsim.netlist.reader.take_plain_lines", lambda lines, scope: False)
        return outcome(deck)


def test_random_decks_are_read_as_line_by_line(monkeypatch: pytest.MonkeyPatch) -> None:
    good = 0
    for seed in range(500):
        deck = random_deck(seed)
        found = outcome(deck)
        assert found == card_by_card(deck, monkeypatch), seed
        good += len(found) > 1
    assert good > 250


def test_numbers_are_rounded_as_python_rounds_them() -> None:
    draw = random.Random(1)
    texts = []
    for _ in range(20_000):
        digits = "".join(draw.choice("0123456789") for _ in range(draw.randrange(1, 22)))
        point = draw.randrange(len(digits) + 1)
        texts.append(f"{digits[:point]}.{digits[point:]}e{draw.randrange(-60, 60)}")
    deck = loads("numbers\n" + "\n".join(f"I{k} a 0 {text}" for k, text in enumerate(texts)) + "\n")
    assert deck.circuit.columns()[3].tolist() == [float(text) for text in texts]


COUNT = 50_000


def ladder(path: Path, count: int) -> Deck:
    lines = "".join(f"R{k} n{k} n{k + 1} {1 + k % 7}\n" for k in range(count))
    path.write_text(f"a ladder\nV1 n0 0 1\n{lines}Rend n{count} 0 1k\n.op\n.end\n")
    return load(path)


def test_a_large_circuit_is_a_circuit(tmp_path: Path) -> None:
    deck = ladder(tmp_path / "ladder.cir", COUNT + 10)
    circuit = deck.circuit
    assert circuit["r17"].value == 4.0
    assert circuit.origin(circuit.element_index("Rend")) == (str(tmp_path / "ladder.cir"), COUNT + 13)
    assert circuit.node_names[circuit.node_index("N5")] == "n5"
    assert circuit.node_index("gnd") == circuit.node_index("0") == 0
    with pytest.raises(TopologyError, match="did you mean"):
        circuit.element_index("R12x")
    assert circuit.count() == {"R": COUNT + 11, "V": 1}
    again = pickle.loads(pickle.dumps(deck))
    assert again.circuit["R17"] == circuit["R17"]
    assert pickle.dumps(circuit.names) == pickle.dumps(again.circuit.names)
    other = circuit.with_values({"R17": 9.0})
    other.resistor("Rnew", "n3", "fresh", 1.0)
    assert (other["Rnew"].second, other["R17"].value, circuit["R17"].value) == ("fresh", 9.0, 4.0)
    assert "Rnew" not in circuit
    with pytest.raises(TopologyError, match="taken"):
        other.resistor("rNEW", "n3", "fresh", 1.0)
    total = 1000.0 + sum(1 + k % 7 for k in range(COUNT + 10))
    assert np.isclose(solve(circuit).current("V1"), -1.0 / total, rtol=1e-9)
