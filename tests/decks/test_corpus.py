"""Decks in the style of the SPICE programs that people use, each with its answer by hand or by ngspice.

The layout is described in `deck_corpus.py`. Every deck runs through the command line, as its user would run it.
"""

import contextlib
import io
import json
import re

import pytest
from deck_corpus import ABOUT, DIALECTS, FOLDER, answer, decks, differences, quantities

from circuitsim.cli import main

NAMES = [f"{path.parent.name}/{path.stem}" for path in decks()]


def run(deck, expected):
    """Exit code, JSON of the sweep or the operating point (None where there is none), and standard error."""
    listed = any(isinstance(value, list) for name, value in expected.items() if name not in ABOUT)
    words = ["sweep" if listed else "solve", str(deck), "--format", "json"]
    if words[0] == "sweep":
        words += ["--columns", " ".join(quantities(expected))]
    out, said = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(said):
        code = main([*words, "-v", *expected.get("options", [])])
    lines = [line for line in said.getvalue().splitlines(keepends=True) if not line.startswith("time ")]  # of -v
    return code, json.loads(out.getvalue()) if out.getvalue().startswith("{") else None, "".join(lines)


def columns(found, expected):
    """The values of the expected quantities, one a row, in the names and case of the answer."""
    if "columns" in found:
        lower = {name.lower(): values for name, values in found["columns"].items()}
        return {name: lower[name.lower()] for name in quantities(expected)}
    nodes = {name.lower(): value for name, value in found["nodes"].items()}
    branches = {name.lower(): value for name, value in found["branches"].items()}
    values = {}
    for name in quantities(expected):
        kind, first, second = re.fullmatch(r"([vi])\(([^,]+)(?:,(.+))?\)", name.lower()).groups()
        value = nodes[first] - (nodes[second] if second else 0.0) if kind == "v" else branches[first]["current"]
        values[name] = [value]
    return values


@pytest.mark.parametrize("name", NAMES)
def test_deck(name):
    deck = FOLDER / f"{name}.cir"
    expected = answer(deck)
    code, found, said = run(deck, expected)
    for text in expected.get("says", []):
        assert text in said
    if "error" in expected:
        line, column = expected["place"]
        assert code == 2
        assert expected["error"] in said
        assert f"{deck.name}:{line}:{column}:" in said
        return
    assert code == 0, said
    if "says" not in expected:
        assert not said
    assert not differences(expected, columns(found, expected))


def test_every_deck_has_an_answer_with_a_source():
    for deck in decks():
        expected = answer(deck)
        assert expected["source"] == "by hand" or re.fullmatch(r"(ngspice|Xyce|LTspice) \S+", expected["source"])
        assert quantities(expected) or ("error" in expected and "place" in expected)


def test_no_answer_is_without_its_deck():
    for dialect in DIALECTS:
        for path in (FOLDER / dialect).glob("*.json"):
            assert path.with_suffix(".cir").exists()
