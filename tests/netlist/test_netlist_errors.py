"""Every error and warning of the language: its category, line, column and name, and that it says what to do next."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from circuitsim.errors import NetlistError
from circuitsim.netlist import loads

MESSAGES = Path(__file__).parent / "messages.txt"
"""What decks without a title say: a line "sort kind line:column | names | part of the message", then the deck, indented
by four blanks."""


def said() -> list[tuple[str, ...]]:
    """Sort, kind, place, names, message and deck of each."""
    found = []
    for block in re.split(r"\n(?! {4})", MESSAGES.read_text(encoding="utf-8").rstrip("\n")):
        head, *deck = block.replace("\\u200b", "\u200b").split("\n")
        about, names, message = head.split(" | ")
        found.append((*about.split(), names, message, "a title\n" + "".join(f"{line[4:]}\n" for line in deck)))
    return found


@pytest.mark.parametrize(("sort", "kind", "place", "names", "message", "text"), said())
def test_messages(sort: str, kind: str, place: str, names: str, message: str, text: str) -> None:
    if sort == "error":
        with pytest.raises(NetlistError) as caught:
            loads(text, file="my.cir")
        problems = caught.value.problems
        assert all(problem.hint for problem in problems)
    else:
        deck = loads(text, file="my.cir")
        problems = deck.problems if sort == "warning" else deck.notes
        assert len(deck.problems) == (sort == "warning")
        assert set(problems) <= set(deck.circuit.notes)
    problem = next(problem for problem in problems if message in problem.message)
    location = problem.location
    assert (problem.kind, location.file, f"{location.line}:{location.column}") == (kind, "my.cir", place)
    assert ", ".join(problem.names) == names
    if sort == "error":
        assert location.text == text.split("\n")[location.line - 1]


def test_all_problems_at_once_in_the_order_of_the_deck():
    lines = [f"R{k} a b 1 m=0" if k % 2 else f"S{k} a b c d m" for k in range(30)]
    with pytest.raises(NetlistError) as caught:
        loads("t\n" + "\n".join(lines))
    problems = caught.value.problems
    assert [p.location.line for p in problems] == list(range(2, 32))
    shown = str(caught.value)
    assert shown.count("my.cir") == 0 and shown.count("<deck>:") == 20
    assert shown.endswith("… and 10 more")


def test_text_of_an_error_points_at_the_word():
    with pytest.raises(NetlistError) as caught:
        loads("t\nR1 a\n\t+ b 1d5\n", file="my.cir")
    assert str(caught.value) == (
        "my.cir:3:6: '1d5' is not a number\n     + b 1d5\n         ^\n    hint: write the exponent with e: 1e5"
    )


def test_an_error_in_a_subcircuit_names_its_callers_once():
    text = "t\n.subckt in a r=1\nR1 a 0 1 m={r}\n.ends\n.subckt out a r=1\nXi a in r={r}\n.ends\n"
    text += "Xo n out r=-1\nXp n out r=-2\n"
    with pytest.raises(NetlistError) as caught:
        loads(text, file="f.cir")
    first, second = caught.value.problems
    assert first.location.callers == ("in Xo.Xi, called at f.cir:6:1", "in Xo, called at f.cir:8:1")
    assert second.location.callers == ("in Xp.Xi, called at f.cir:6:1", "in Xp, called at f.cir:9:1")
    assert first.names == ("Xo.Xi.R1",)


def test_an_error_in_a_parameter_says_where_it_was_used():
    with pytest.raises(NetlistError) as caught:
        loads("t\n.param a={1/0}\nR1 n 0 {a}\n", file="f.cir")
    problem = caught.value.problems[0]
    assert (problem.location.line, problem.location.column) == (2, 12)
    assert problem.location.callers == ("used at f.cir:3",)
    assert len(caught.value.problems) == 1


def test_the_first_line_is_never_a_card_but_one_that_looks_like_one_is_named():
    deck = loads("R1 a 0 1k\nR2 a 0 2k\n")
    assert list(deck.circuit.names) == ["R2"]
    (problem,) = deck.problems
    assert (problem.kind, problem.location.line) == ("title", 1)
    assert not loads("* R1 a 0 1k\nR2 a 0 2k\n").problems
    assert not loads("Resistor from a to b\nR2 a 0 2k\n").problems


@pytest.mark.parametrize("text", ["", "only a title", "t\n.op\n.end\n", "t\n* R1 a 0 1\n", "t\n.end\nR1 a 0 1\n"])
def test_a_deck_without_elements_is_refused(text):
    with pytest.raises(NetlistError, match="the deck has no elements") as caught:
        loads(text)
    assert caught.value.problems[0].kind == "empty"
