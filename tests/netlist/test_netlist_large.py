"""Large decks: runs of plain lines give what the ordinary reader gives, line by line."""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from circuitsim import solve
from circuitsim.circuit.name_table import NameTable
from circuitsim.errors import NetlistError, TopologyError
from circuitsim.netlist import cards, plain, read_deck, read_deck_text
from circuitsim.netlist.deck import Deck
from circuitsim.netlist.source import Source

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
        read = read_deck_text(deck)
    except NetlistError as error:
        return (str(error),)
    circuit = read.circuit
    columns = tuple(column.tobytes() for column in circuit.columns())
    places = [circuit.origin(k) for k in range(len(circuit))]
    said = repr((read.problems, read.notes, read.analyses))
    return columns, list(circuit.names), list(circuit.node_names), places, said


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """Every text is read in runs."""
    monkeypatch.setattr(cards, "LARGE", 0)
    taken: list[bool] = []
    take = plain.Lines.take
    monkeypatch.setattr(plain.Lines, "take", lambda self, scope: taken.append(take(self, scope)) or taken[-1])
    yield taken


def test_random_decks_are_read_as_line_by_line(runs: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    good = 0
    for seed in range(500):
        deck = random_deck(seed)
        monkeypatch.setattr(plain, "PATIENCE", (1, 1024)[seed % 2])
        in_runs = outcome(deck)
        with monkeypatch.context() as ordinary:
            ordinary.setattr(cards, "LARGE", 10**9)
            assert in_runs == outcome(deck), seed
        good += len(in_runs) > 1
    assert good > 250
    assert sum(runs) > 5_000


def test_every_value_node_and_comment_beside_plain_lines(runs: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f"R1 a b {value}" for value in VALUES] + [f"R1 {node} b 5" for node in NODES]
    lines += [f"{name}1 a b 5" for name in NAMES] + [f"R1 a b 5\n{comment}\n+ m=2" for comment in COMMENTS]
    monkeypatch.setattr(plain, "PATIENCE", 1)
    lines += [f"R1{gap}a b 5" for gap in GAPS] + [f"R1 a b 5 {comment}" for comment in COMMENTS] + list(CARDS)
    for line in lines:
        deck = f"{START}R0 a 0 1\n{line}\nV9 b 0 1\n"
        in_runs = outcome(deck)
        with monkeypatch.context() as ordinary:
            ordinary.setattr(cards, "LARGE", 10**9)
            assert in_runs == outcome(deck), line
    assert sum(runs) > len(lines)


def test_numbers_are_rounded_as_python_rounds_them(runs: list[bool]) -> None:
    draw = random.Random(1)
    texts = []
    for _ in range(20_000):
        digits = "".join(draw.choice("0123456789") for _ in range(draw.randrange(1, 22)))
        point = draw.randrange(len(digits) + 1)
        texts.append(f"{digits[:point]}.{digits[point:]}e{draw.randrange(-60, 60)}")
    deck = read_deck_text("numbers\n" + "\n".join(f"I{k} a 0 {text}" for k, text in enumerate(texts)) + "\n")
    assert deck.circuit.columns()[3].tolist() == [float(text) for text in texts]
    assert sum(runs) == 1


def test_blocks_are_filled_and_long_names_fit(runs: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    plain._columns.cache_clear()
    monkeypatch.setattr(plain, "BLOCK", 7)
    monkeypatch.setattr(plain, "CHARACTERS", 100)
    lines = [f"R{'x' * (k % 90 * 7)}{k} n{'y' * (k % 50 * 9)}{k} m{k % 11} {k + 1}" for k in range(1000)]
    in_runs = outcome("long names\n" + "\n".join(lines))
    plain._columns.cache_clear()
    monkeypatch.undo()
    assert in_runs == outcome("long names\n" + "\n".join(lines))
    assert sum(runs) > 1


def ladder(path: Path, count: int) -> Deck:
    lines = "".join(f"R{k} n{k} n{k + 1} {1 + k % 7}\n" for k in range(count))
    path.write_text(f"a ladder\nV1 n0 0 1\n{lines}Rend n{count} 0 1k\n.op\n.end\n")
    return read_deck(path)


def test_a_large_circuit_is_a_circuit(tmp_path: Path) -> None:
    deck = ladder(tmp_path / "ladder.cir", plain.LARGE + 10)
    circuit = deck.circuit
    assert isinstance(circuit.names, NameTable)
    assert circuit["r17"].value == 4.0
    assert circuit.origin(circuit.element_index("Rend")) == (str(tmp_path / "ladder.cir"), plain.LARGE + 13)
    assert circuit.node_names[circuit.node_index("N5")] == "n5"
    assert circuit.node_index("gnd") == circuit.node_index("0") == 0
    with pytest.raises(TopologyError, match="did you mean"):
        circuit.element_index("R12x")
    assert circuit.count() == {"R": plain.LARGE + 11, "V": 1}
    again = pickle.loads(pickle.dumps(deck))
    assert again.circuit["R17"] == circuit["R17"]
    assert pickle.dumps(circuit.names) == pickle.dumps(again.circuit.names)
    other = circuit.with_values({"R17": 9.0})
    other.resistor("Rnew", "n3", "fresh", 1.0)
    assert (other["Rnew"].second, other["R17"].value, circuit["R17"].value) == ("fresh", 9.0, 4.0)
    assert "Rnew" not in circuit
    with pytest.raises(TopologyError, match="taken"):
        other.resistor("rNEW", "n3", "fresh", 1.0)
    total = 1000.0 + sum(1 + k % 7 for k in range(plain.LARGE + 10))
    assert np.isclose(solve(circuit).current("V1"), -1.0 / total, rtol=1e-9)


def test_names_of_any_spelling_are_found() -> None:
    draw = random.Random(3)
    table, known = NameTable(), {}
    for _ in range(3000):
        name = "".join(draw.choice("abAB0_µΩK") for _ in range(draw.randrange(1, 9)))
        if name.lower() not in known:
            known[name.lower()] = len(table)
            table.append(name)
            assert table[-1] == name
    copy = pickle.loads(pickle.dumps(table))
    copy.append("another")
    for key, k in known.items():
        assert table.find(key) == copy.find(key) == k
    assert table.find("another") is None
    assert list(copy) == [*table, "another"]
    assert table[5:2000] == list(table)[5:2000]
    assert table[::-7] == list(table)[::-7]


@pytest.mark.parametrize("stretch", [7, 64])
def test_lines_of_a_text(monkeypatch: pytest.MonkeyPatch, stretch: int) -> None:
    from circuitsim.netlist import source

    monkeypatch.setattr(source, "STRETCH", stretch)
    for seed in range(300):
        draw = random.Random(seed)
        text = "".join(draw.choice("ab\n\n") for _ in range(draw.randrange(60)))
        lines = text.split("\n")
        for content in (text, text.encode()):
            found = [Source("deck", "", content).line(number) for number in range(-1, len(lines) + 3)]
            assert found == ["", "", *lines, "", ""]
            read = Source("deck", "", content)
            order = draw.sample(range(1, len(lines) + 1), len(lines))
            assert [read.line(number) for number in order] == [lines[number - 1] for number in order]
            assert (read.count_lines(), read.has("b"), read.text) == (len(lines), "b" in text, text)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\n\x1a", "* µ\n".encode(), b"R7 a b 1 $ c\n"])
def test_a_file_kept_as_bytes_reads_as_its_text(end: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from circuitsim.netlist import source

    path = tmp_path / "deck.cir"
    for bad in (b"", b"R9 a b -3\n", b"R1 a b 4\n", b"Q1 a b c\n"):
        path.write_bytes(b"a deck\nV1 a 0 1\nR1 a b 2\n+ m=2\nR2 b 0 1k ; comment\n" + bad + b".op" + end)
        found = []
        for large in (0, 1 << 20):
            monkeypatch.setattr(source, "LARGE", large)
            try:
                deck = read_deck(path)
                found.append(repr((list(deck.circuit), deck.title, deck.problems, deck.circuit.origin(2))))
            except NetlistError as error:
                found.append(str(error))
        assert found[0] == found[1]
