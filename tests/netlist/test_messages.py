"""Every error and warning of the language: its category, line, column and name, and that it says what to do next."""

import re
from pathlib import Path

import pytest

from circuitsim.errors import NetlistError
from circuitsim.netlist import loads
from circuitsim.netlist.roles import read_roles

MESSAGES = Path(__file__).parent / "messages.txt"
"""What decks without a title say: a line "sort kind line:column | names | part of the message", then the deck, indented
by four blanks. A bare error has no hint beside its message."""


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
    try:
        deck = loads(text, file="my.cir")
        warnings = (*deck.problems, *read_roles(deck)[1])
    except NetlistError as error:
        assert sort == "bare" or (sort == "error" and all(x.hint for x in error.problems))
        problems, lines = error.problems, text.split("\n")
        assert all(
            x.location.text == lines[x.location.line - 1] for x in problems if x.kind not in ("empty", "amplifier")
        )
    else:
        problems = warnings if sort == "warning" else deck.notes
        assert sort in ("warning", "note") and len(warnings) == (sort == "warning")
    problem = next(problem for problem in problems if message in problem.message)
    location = problem.location
    assert (problem.kind, location.file, f"{location.line}:{location.column}") == (kind, "my.cir", place)
    assert ", ".join(problem.names) == names


def test_the_page_names_every_card() -> None:
    page = (Path(__file__).parents[2] / "docs/netlist.md").read_text(encoding="utf-8")
    cards = ".noise .disto .pz .if .macro .connect .alter .data .op .dc .step .temp .sens .tf .ac .tran .meas"
    assert [card for card in cards.split() if card not in page] == []
