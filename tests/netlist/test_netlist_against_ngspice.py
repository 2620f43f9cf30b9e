"""ngspice reads a deck as we do: random decks with sub-circuits, parameters and expressions, and their flat text."""

from __future__ import annotations

import math
import re
import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from circuitsim.netlist import dumps, loads

pytestmark = [
    pytest.mark.ngspice,
    pytest.mark.skipif(shutil.which("ngspice") is None, reason="ngspice is not installed"),
]

NODES = st.sampled_from(["0", "a", "B", "n1"])
NUMBERS = st.sampled_from(["1", "2k", "4.7K", ".5", "1MEG", "100ohm", "3e2", "10mil", "1e3meg", "33R", "2m"])
VALUES = st.one_of(
    NUMBERS,
    st.sampled_from(
        [
            "{p}",
            "'p*q'",
            "{q > 2 ? p : 2*p}",
            "R={f(p, q)}",
            "{2**3**2 + 9/q}",
            "{max(p, q)**2}",
            "{p}  m=2",
            "r = 2k m = {q}",
        ]
    ),
)
SEPARATORS = st.sampled_from([" ", "\t ", "\n+ ", "\n* between\n+", " $ why\n+", ";why\n + ", ", "])


@st.composite
def scopes(draw, calls):
    """The cards of one scope, resistors between its nodes, and calls of what is defined already."""
    cards = []
    for k in range(draw(st.integers(1, 4))):
        gap = draw(SEPARATORS)
        cards.append(f"R{k}{gap}{draw(NODES)} {draw(NODES)}{gap if gap != ', ' else ' '}{draw(VALUES)}")
    for k in range(draw(st.integers(0, 2)) if calls else 0):
        given_ = draw(st.sampled_from(["", " p=7", " PARAMS: q={q+1}", " p={2*p} q=3"]))
        cards.append(f"X{k} {draw(NODES)} {draw(NODES)} {draw(st.sampled_from(calls))}{given_}")
    return draw(st.permutations(cards))


@st.composite
def decks(draw):
    lines, names = ["a random deck", ".func f(x,y) {x*y + p}"], []
    for name in ("s1", "S2", "s3"):
        cards = draw(scopes(names))
        header = draw(st.sampled_from(["p=3 q=2", "PARAMS: p=1k q={p/100}", "q=1 p={q*2}"]))
        lines += [
            f".subckt {name} a b {header}",
            *cards,
            "Rleak a 0 1k",
            "Rleak2 b 0 1k",
            "Rleak3 n1 0 5",
            f".ends {name}",
        ]
        names.append(name.lower())
    top = [
        *draw(scopes(names)),
        "X9 a b s3 p=2",
        "I1 0 a DC 1m",
        "V1 b 0 {p + q}",
        "Rl n1 0 10",
        "Rm a 0 10k",
        ".param p=2 q={p + 1}",
    ]
    return "\n".join([*lines, *draw(st.permutations(top)), ".op", ".end", ""])


def voltages(folder, text):
    """Node voltages by name, as ngspice prints them."""
    (folder / "t.cir").write_text(text)
    run = subprocess.run(["ngspice", "-b", "t.cir"], cwd=folder, capture_output=True, text=True, timeout=60)
    found = re.findall(r"^\t(\S+)\s+(-?[0-9.]+e[-+][0-9]+)\s*$", run.stdout, re.M)
    return {n.lower(): float(v) for n, v in found if "#branch" not in n}, run


@settings(max_examples=max(25, settings().max_examples // 10))
@given(decks())
def test_the_deck_and_its_flat_text_are_one_circuit(tmp_path_factory, text):
    folder = tmp_path_factory.mktemp("ng")
    circuit = loads(text)
    direct, run = voltages(folder, text)
    assert set(direct) == {n.lower() for n in circuit.node_names[1:]}, run.stdout + run.stderr
    flat, _ = voltages(folder, dumps(circuit))
    assert set(flat) == set(direct)
    largest = max(abs(v) for v in direct.values())
    for node, voltage in direct.items():
        assert math.isclose(flat[node], voltage, rel_tol=1e-4, abs_tol=1e-6 * largest), node
