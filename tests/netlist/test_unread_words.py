"""No card has words that nobody reads: a word more is an error, a note, or it changes the deck."""

import re
from pathlib import Path

import pytest

from circuitsim import NetlistError
from circuitsim.netlist import loads

ROOT = Path(__file__).parents[2]
MORE = (
    " zzz",
    " zzz=7.25",
    "+7.25",
    "*2",
    " 5",
    " {7.25}",
    " +7.25",
    " *2",
    " v(zzz)",
    "*v(zzz)",
    " zzz yyy",
    " =7.25",
)
"""What is written behind a card."""

INSIDE = ("zzz", "zzz=7.25", "+7.25", "{7.25}")
"""What is written between two of its words."""

KEPT = frozenset(
    re.findall(
        r"\w+",
        "dc ac sin pulse pwl exp sffm am value vol cur table poly laplace v i r if max min abs limit param step list "
        "dec oct lin data tran op ic meas four lib include model subckt ends func params temp save print plot",
    )
)
"""Words that tell forms of cards apart."""


def decks():
    """All decks of the repository that are read without an error, with their folders."""
    for folder in ("netlists", "tests/decks"):
        for path in sorted((ROOT / folder).glob("**/*.cir")):
            text = path.read_text(encoding="utf-8", errors="replace")
            if len(text) < 10_000 and (base := fingerprint(text, path.parent)) is not None:
                yield path, text, base


def fingerprint(text, folder):
    """All that a deck says, with its notes; None for one that is refused."""
    try:
        deck = loads(text, folder=folder)
    except NetlistError:
        return None
    circuit, following = deck.circuit, deck.following
    devices = [(k, repr(d), d.parameters(), d.counts()) for k, d in sorted(circuit.devices.items())]
    formulas = [(k, one.code.tree, one.factor) for k, one in following.formulas.items()]
    columns = [list(column) for column in (*circuit.columns(), circuit.names, circuit.node_names)]
    acting = following.waves, following.initials, following.phasors, following.switches, following.couplings
    analyses = re.sub(r"location=Location\(.*?\)", "", repr(deck.analyses))
    said = [(p.kind, p.message) for p in (*deck.problems, *deck.notes)]
    rest = [d.text for d in deck.directives], deck.parameters, deck.temperature, said
    return repr((columns, sorted(circuit.laws.items()), devices, formulas, acting, analyses, rest))


def shape(line):
    """A card's form: its first letter or word, its key words, marks; names and numbers are alike."""
    numbers = re.sub(r"[-+]?\d[\w.+-]*", "9", line.lower())
    return re.sub(r"[a-z_]\w*", lambda m: m[0] if m[0] in KEPT else m[0][0] if m.start() == 0 else "n", numbers)


def cards():
    """One card of each form: the deck's lines, the number of its line, what is told apart from comments."""
    seen = set()
    for path, text, base in decks():
        lines = text.split("\n")
        for k, line in enumerate(lines):
            card = re.split(r";| \$", line)[0].strip()
            comment = card[:1] == "*" and card[:2] != "*!"
            if k == 0 or not card or comment or shape(card) in seen:
                continue
            seen.add(shape(card))
            yield path, lines, k, card, base


def covered(path, lines, k):
    """Whether a note or warning says that the whole card, or the word at its end, does nothing; or the card stands in a
    branch of ``.if`` that does not hold, where nothing is read."""
    strange = "\n".join([*lines[:k], "?strange", *lines[k + 1 :]])
    if fingerprint(strange, path.parent) is not None:
        return True
    deck = loads("\n".join(lines), folder=path.parent)
    first = lines[k].split()[0].lower()
    for problem in (*deck.problems, *deck.notes):
        if problem.location is not None and problem.location.line == k + 1:
            about = problem.message.lower().startswith(first) or "in .control" in problem.message
            if about or problem.kind in ("no-effect", "skipped"):
                return True
    return False


def declares(card, more):
    """Whether the word more has a meaning that the circuit does not show: a parameter that nothing reads, a condition
    that is as true as before, a parameter that is zero, the value of a parameter without effect."""
    word = card.split()[0].lower()
    if word == ".model" and "compactrel" in card.split()[-1]:
        return more in ("+7.25", "*2")
    if word in (".subckt", ".param"):
        return "zzz=7.25" in more or more.strip() == "*2"
    return word in (".if", ".elseif") and more.strip() in ("+7.25", "*2", "=7.25")


@pytest.mark.parametrize("inside", [False, True])
def test_a_word_more_is_read_or_said(inside: bool) -> None:
    silent = []
    for path, lines, k, card, base in cards():
        if inside and re.search(r"['{\"]", card):
            continue  # blanks inside of expressions do not part words
        words, missed = card.split(), []
        places = range(3 if words[0].lower() == ".model" else 1, len(words))  # 1, 2: another model, unused
        longer = [(m, " ".join([*words[:at], m, *words[at:]])) for at in places for m in INSIDE]
        for more, mutant in longer if inside else [(m, card + m) for m in MORE]:
            text = "\n".join([*lines[:k], mutant, *lines[k + 1 :]])
            if fingerprint(text, path.parent) == base and not declares(card, more):
                missed.append(f"{path.name}: {mutant}")
        silent += [] if missed and covered(path, lines, k) else missed
    assert silent == []
