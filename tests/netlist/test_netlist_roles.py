"""Comment directives: inputs, outputs, what may change; every complaint with its place; the writer gives them back."""

from __future__ import annotations

import json

import pytest

from circuitsim import netlist
from circuitsim.cli import main
from circuitsim.errors import NetlistError, UsageError
from circuitsim.netlist.roles import Adjustable, make_roles, read_roles

DECK = """a deck that can learn
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
.op
"""


def roles_of(text: str):
    return read_roles(netlist.loads(text, "my.cir"))


def test_roles_of_a_deck() -> None:
    roles, warnings = roles_of(DECK)
    assert warnings == ()
    assert roles.inputs == ("V1", "Ib")
    assert roles.outputs == (("out", "0"), ("a", "b"), ("b", "0"))
    inf = float("inf")
    assert roles.trainable == (
        Adjustable("It", -inf, inf),
        Adjustable("R1", 10.0, 1e6),
        Adjustable("R2", 1e3, 1e6),
        Adjustable("R3", 1e3, 1e6),
    )
    assert roles.require() is roles


def test_the_directives_are_comments_to_the_language() -> None:
    assert len(netlist.loads(DECK)) == 6


def test_bounds_where_none_are_given() -> None:
    roles = make_roles(netlist.loads(DECK), trainable="R?")
    assert {(a.minimum, a.maximum) for a in roles.trainable} == {(1.0, 3e6)}


@pytest.mark.parametrize(
    ("line", "message", "column"),
    [
        ("*! input R2", "R2 is a resistor; inputs are voltage or current sources", 10),
        ("*! input V9", "no element is called 'V9'", 10),
        ("*! input X*", "no element matches 'X*'", 10),
        ("*! input", "input names nothing", 4),
        ("*! output v(nowhere)", "no node is called 'nowhere'", 11),
        ("*! output v(out) v(out,out)", "v(out,out) is always 0 V", 18),
        ("*! output 0", "0 is always 0 V", 11),
        ("*! output out v(out,0)", "v(out,0) is an output twice", 15),
        ("*! trainable V1", "V1 is a voltage source; resistors, current sources and parameters of devices", 14),
        ("*! trainable R1 min=1Q3", "'1Q3' is not a number", 17),
        ("*! trainable R1 low=3", "'low' is no option of trainable", 17),
        ("*! trainable R1 min=5k max=2k", "the bounds 5000 and 2000 Ω are none", 14),
        ("*! trainable R1 min=0 max=2k", "the bounds 0 and 2000 Ω are none", 14),
        ("*! trainable R1 min=2k max=3k", "R1 has 1000 Ω, outside its bounds 2000 … 3000 Ω", 14),
        ("*! trainable min=1 max=2", "trainable names no element", 14),
        ("*! trainable Rz", "Rz has 0 Ω: a short has no conductance to train", 14),
    ],
)
def test_complaints_name_file_line_and_column(line: str, message: str, column: int) -> None:
    with pytest.raises(NetlistError) as caught:
        roles_of(f"bad\nV1 a 0 1\nR1 a out 1k\nR2 out 0 1k\nRz out x 0\n{line}\n")
    (problem,) = caught.value.problems
    assert problem.message.startswith(message)
    assert (problem.location.file, problem.location.line, problem.location.column) == ("my.cir", 6, column)


def test_an_input_is_not_trained() -> None:
    for order in (("input I1", "trainable I1"), ("trainable I1", "input I1")):
        with pytest.raises(NetlistError, match="I1 cannot be an input and trainable"):
            roles_of("bad\nI1 a 0 1\nR1 a 0 1k\n" + "".join(f"*! {line}\n" for line in order))


def test_all_complaints_at_once_and_unknown_words_only_warn() -> None:
    with pytest.raises(NetlistError) as caught:
        roles_of(DECK.replace("V1 Ib", "V7").replace("v(out)", "v(q)"))
    assert len(caught.value.problems) == 2
    _, (warning,) = roles_of(DECK + "*! inptu V1\n")
    assert warning.message == "'inptu' is no directive; the line has no effect"
    assert warning.hint == "did you mean input?"


def test_what_is_given_replaces_what_the_deck_says() -> None:
    circuit = netlist.loads(DECK)
    base, _ = roles_of(DECK)
    roles = make_roles(circuit, outputs="v(b)", trainable=["R1 min=1 max=1e4", "R2"], base=base)
    assert roles.inputs == base.inputs and roles.outputs == (("b", "0"),)
    assert roles.trainable == (Adjustable("R1", 1.0, 1e4), Adjustable("R2", 2.0, 2e6))
    with pytest.raises(UsageError, match="output: no node is called"):
        make_roles(circuit, outputs="v(q)", base=base)
    with pytest.raises(UsageError, match="no outputs: write"):
        make_roles(circuit, inputs="V1", trainable="R1").require()


def test_the_writer_gives_the_roles_back() -> None:
    deck = netlist.loads(DECK)
    roles, _ = read_roles(deck)
    text = netlist.dumps(deck.circuit, roles)
    assert "*! trainable R* min=1k max=1MEG\n" in text
    assert roles_of(text)[0] == roles


def test_the_writer_spells_out_names_that_change() -> None:
    text = DECK.replace("R2 b out 2k", "X1 b out part").replace("R* min", "X* R3 min")
    text += ".subckt part p q\nR2 p q 2k\n.ends"
    deck = netlist.loads(text)
    roles, _ = read_roles(deck)
    again, _ = roles_of(netlist.dumps(deck.circuit, roles))
    assert [(a.minimum, a.maximum) for a in again.trainable] == [(a.minimum, a.maximum) for a in roles.trainable]
    assert {a.name for a in again.trainable} == {"It", "R1", "R.X1.R2", "R3"}
    assert again[:2] == roles[:2]


def test_check_and_convert(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.cir").write_text(DECK)
    assert main(["check", "my.cir"]) == 0
    assert "trainable         4  It, R1, R2, R3" in capsys.readouterr().out
    assert main(["check", "my.cir", "--format", "json"]) == 0
    roles = json.loads(capsys.readouterr().out)["roles"]
    assert roles["inputs"] == ["V1", "Ib"] and roles["trainable"][0] == {"name": "It", "min": None, "max": None}
    assert main(["convert", "my.cir"]) == 0
    assert "*! input V1 Ib\n" in capsys.readouterr().out
    (tmp_path / "my.cir").write_text(DECK.replace("input V1", "input R1"))
    assert main(["check", "my.cir"]) == 2
    assert "my.cir:2:10: R1 is a resistor" in capsys.readouterr().out
