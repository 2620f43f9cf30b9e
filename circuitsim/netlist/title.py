"""The first line of a deck: its title, or an element that its writer forgot to put a title before."""

from __future__ import annotations

import re

from circuitsim.errors import NetlistError, Problem
from circuitsim.netlist import definitions, includes, refused
from circuitsim.netlist.cards import Card, uncommented
from circuitsim.netlist.controlled import LETTERS
from circuitsim.netlist.expression import ExpressionError
from circuitsim.netlist.parts import CODES, Parts
from circuitsim.netlist.problems import Reporter
from circuitsim.netlist.scope import Scope
from circuitsim.netlist.source import Source
from circuitsim.netlist.tokens import WORD, CardError, tokens
from circuitsim.units import short

LONGEST = 1000
"""Characters of a title that are looked at."""

_ANALYSES = (".op", ".dc", ".step", ".temp", ".tran", ".ac")
_CARDS = frozenset((*definitions.CARDS, *includes.CARDS, *refused.OPTIONS, *_ANALYSES))
"""Dot cards that no title begins with."""

_OTHERS = frozenset((*refused.ELEMENTS, *refused.FOREIGN, "k", *LETTERS))
"""First letters of elements that are read elsewhere or refused."""

_NODE = re.compile(r"[0-9]+")
_VALUE = re.compile(r"[+-]?\.?[0-9]\S*|\{.*\}|'.*'")


def forgotten(source: Source, top: Scope) -> Problem | None:
    """A warning if the title reads like a card of the deck whose scope is ``top``.

    A dot card, or an element whose nodes the deck has (or that are numbers) and whose value is a number, an expression,
    or the name of a parameter, a model or a sub-circuit of the deck.
    """
    line = uncommented(source.line(1))[:LONGEST]
    words = line.split()
    if not words:
        return None
    if words[0].lower() not in _CARDS and not is_element(Card(source, 1, line), top):
        return None
    place = source.place(1, len(line) - len(line.lstrip()) + 1)
    return Problem(
        "title",
        f"the first line is the title: {short(line.strip())!r} is not read as a card",
        place,
        "put a title line before it, or read the deck with --no-title (title=False in Python)",
    )


def is_element(card: Card, top: Scope) -> bool:
    """Whether a line reads as an element between nodes of the deck."""
    words = card.text.replace("(", " ").replace(")", " ").replace(",", " ").split()
    letter = card.text[card.start()].lower() if words else ""
    if len(words) < 3 or not (letter == "x" or letter in CODES or letter in _OTHERS):
        return False
    if letter == "x":
        known = [word for word in words[1:] if word.lower() in top.subcircuits]
        return bool(known) and all(is_node(word, top) for word in words[1 : words.index(known[0])])
    if not all(is_node(word, top) for word in words[1:3]) or words[1] == words[2]:
        return False
    if letter not in CODES:
        return "=" in card.text or (len(words) > 5 and _VALUE.fullmatch(words[-1]) is not None)
    return parses(card, top)


def parses(card: Card, top: Scope) -> bool:
    """Whether a line is an element card, and the names in it are ones of the deck."""
    scratch = Scope()
    try:
        Parts(Reporter(), lambda *_: [0.0, 0.0]).element(scratch, card)
        words = [token for token in tokens(card)[3:] if token.kind == WORD]
    except (CardError, ExpressionError):
        return False
    names = [w.text.lower() for w in words if not _VALUE.fullmatch(w.text)]
    if CODES[card.text.split()[0][0]] in (CODES["v"], CODES["i"]):
        return len(scratch.kind) > 0
    return all(
        name in top.parameters or name in top.models or f"{name}=" in card.text.lower().replace(" ", "")
        for name in names
    )


def is_node(word: str, top: Scope) -> bool:
    """Whether a word is a node of the deck, or a number such as decks have for nodes."""
    return word.lower() in top.nodes or _NODE.fullmatch(word) is not None


def with_title(error: NetlistError, problem: Problem | None) -> NetlistError:
    """``error``, and that the title may be its cause."""
    return error if problem is None else NetlistError([problem, *error.problems])
