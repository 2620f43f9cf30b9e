"""Damaged decks of the corpus: read, or refused with a place in the deck; nothing else happens."""

import contextlib
import random

import pytest
from deck_corpus import decks

from circuitsim import solve
from circuitsim.analysis.operating_point import status_of
from circuitsim.errors import CircuitError, NetlistError, UsageError
from circuitsim.netlist import dumps, loads

TEXTS = [path.read_text(encoding="utf-8") for path in decks()]
WORDS = sorted({word for text in TEXTS for word in text.split()})
SIGNS = "(){}=,;'\"+-*/$@.:[]<>?!&|%^~\\#\t\n 0159aAkKmMuUxXrRvV\x00\x1fé\u2028"
DAMAGES = 400


def damaged(text: str, chance: random.Random) -> str:
    """``text`` with one to four changes: of characters, words or lines."""
    for _ in range(chance.randint(1, 4)):
        kind, at = chance.randrange(7), chance.randrange(len(text) + 1)
        if kind == 0:
            text = text[:at] + chance.choice(SIGNS) + text[at:]
        elif kind == 1:
            text = text[:at] + text[at + chance.randint(1, 5) :]
        elif kind == 2:
            text = text[:at] + f" {chance.choice(WORDS)} " + text[at:]
        else:
            lines = text.split("\n")
            k = chance.randrange(len(lines))
            if kind == 3:
                del lines[k]
            elif kind == 4:
                lines.insert(chance.randrange(len(lines)), lines[k])
            elif kind == 5:
                lines.insert(k, chance.choice(chance.choice(TEXTS).split("\n")))
            else:
                words = lines[k].split()
                chance.shuffle(words)
                lines[k] = " ".join(words)
            text = "\n".join(lines)
    return text


def attempt(text: str) -> bool:
    """Whether the deck is read; a refusal has a place and a hint, a circuit is solved or has no steady state."""
    try:
        deck = loads(text, title=len(text) % 7 != 0)
    except NetlistError as error:
        assert error.problems
        assert all(problem.location is not None and problem.message for problem in error.problems)
        return False
    with contextlib.suppress(UsageError):  # a formula that a flat deck cannot hold
        dumps(deck.circuit)
    try:
        solve(deck)
    except CircuitError as error:
        assert status_of(error) is not None
    return True


@pytest.mark.parametrize("seed", range(4))
def test_damaged_decks_are_read_or_refused(seed):
    chance = random.Random(seed)
    read = sum(attempt(damaged(chance.choice(TEXTS), chance)) for _ in range(DAMAGES // 4))
    assert read > DAMAGES // 40
