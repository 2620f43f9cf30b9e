"""No card has words that nobody reads: a word more is an error, a note, or it changes the deck."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from circuitsim import NetlistError, solve
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
    formulas = [(k, one.code.program, one.factor) for k, one in following.formulas.items()]
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


def test_a_word_behind_a_card():
    silent = []
    for path, lines, k, card, base in cards():
        missed = []
        for more in MORE:
            mutated = "\n".join([*lines[:k], card + more, *lines[k + 1 :]])
            if fingerprint(mutated, path.parent) == base and not declares(card, more):
                missed.append(more)
        if missed and not covered(path, lines, k):
            silent += [f"{path.name}: {card}{more}" for more in missed]
    assert silent == []


def test_a_word_inside_a_card():
    silent = []
    for path, lines, k, card, base in cards():
        if re.search(r"['{\"]", card):
            continue  # blanks inside of expressions do not part words
        words, missed = card.split(), []
        for at in range(3 if words[0].lower() == ".model" else 1, len(words)):  # 1, 2: another model, unused
            for more in INSIDE:
                mutated = "\n".join([*lines[:k], " ".join([*words[:at], more, *words[at:]]), *lines[k + 1 :]])
                if fingerprint(mutated, path.parent) == base and not declares(card, more):
                    missed.append(" ".join([*words[:at], more, *words[at:]]))
        if missed and not covered(path, lines, k):
            silent += [f"{path.name}: {one}" for one in missed]
    assert silent == []


@pytest.mark.parametrize(
    ("card", "value"),
    [
        ("B1 o 0 V={k}*v(a)", 6.0),
        ("B1 o 0 V='k'*v(a)", 6.0),
        ("B1 0 o I={k}*v(a)*1m", 6.0),
        ("E1 o 0 VALUE={k}*v(a)", 6.0),
        ("E1 o 0 VALUE {k}*v(a)", 6.0),
        ("E1 o 0 vol='k*v(a)'+1", 7.0),
        ("E1 o 0 VALUE={k*v(a)}+1", 7.0),
        ("G1 0 o VALUE={k*v(a)}*1m", 6.0),
        ("G1 0 o cur='k*v(a)'*1m m=2", 12.0),
        ("B1 0 o I={k}*1m m=3", 6.0),
        ("B1 o 0 V=2*{k}*v(a) - {k*'k'}", 8.0),
        ("B1 o 0 V={v(a)} > 2 ? {k} : 0", 2.0),
        ("B1 a o R={k}*2k", 0.6),
        ("B1 o 0 tc1=1 V={k}*v(a)", 6.0),
        ("E1 o 0 TABLE {v(a)} = (0,0) (6,12)", 6.0),
        (".param q={k}*3\nB1 o 0 V={q}", 6.0),
        (".func f(x) {k}*x\nB1 o 0 V=f(v(a))", 6.0),
    ],
)
def test_the_whole_formula_is_read(card, value):
    found = solve(loads(f"t\nV1 a 0 3\n.param k=2\n{card}\nR1 o 0 1k\n"))
    assert found.voltage("o") == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("card", ["B1 o 0 V={k}*v(a)", "B1 o 0 V='k'*v(a)", "B1 o 0 V={v(a)} > 2 ? {k} : 0"])
def test_formulas_as_ngspice_reads_them(card, tmp_path):
    deck = f"t\nV1 a 0 3\n.param k=2\n{card}\nR1 o 0 1k\n"
    (tmp_path / "a.cir").write_text(f"{deck}.control\nop\nprint v(o)\n.endc\n.end\n")
    said = subprocess.run(["ngspice", "-b", "a.cir"], cwd=tmp_path, capture_output=True, text=True, check=False).stdout
    value = float(re.search(r"v\(o\) = (\S+)", said)[1])
    assert solve(loads(deck)).voltage("o") == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize(
    ("model", "use", "word"),
    [
        ("D(IS=1p) zzz", "", "zzz"),
        ("D(IS=1p zzz=1)", "", "zzz"),
        ("D(IS=1p) {3}", "D1 a 0 m", "3"),
        ("D zzz", "", "zzz"),
        ("SW(VT=1) zzz", "", "zzz"),
        ("SW(VT=1 zzz=1)", "", "zzz"),
        ("R(R=1 zzz=1)", "", "zzz"),
        ("C(CAP=1 zzz=1)", "C1 a 0 m", "zzz"),
    ],
)
def test_models_without_a_use_are_read_too(model, use, word):
    deck = loads(f"t\nR1 a 0 1\n{use}\n.model m {model}\n")
    assert any(p.kind == "unused-parameter" and word in p.message for p in deck.problems)
