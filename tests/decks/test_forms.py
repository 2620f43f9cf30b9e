"""The table of forms: the page says what the command says; every outcome is of an example as expected."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest
from deck_corpus import decks

from circuitsim.cli import main
from circuitsim.netlist import forms
from circuitsim.netlist.forms import Form, Outcome

ROOT = Path(__file__).parents[2]
ADVICE = "run: circuitsim forms --into docs/netlist.md"


def test_the_page_holds_the_table():
    page = (ROOT / "docs" / "netlist.md").read_text(encoding="utf-8")
    assert forms.replaced(page, forms.table()) == page, ADVICE


def test_the_page_holds_the_number_of_decks():
    text = (ROOT / "docs" / "netlist.md").read_text(encoding="utf-8")
    said = re.search(r"over (\d+) decks in the styles", text)
    assert said is not None and 0.8 * len(decks()) <= int(said[1]) <= len(decks())


@pytest.mark.parametrize(
    ("cards", "outcome"),
    [
        ("R1 in 0 1k", Outcome.READ),
        ("R1 in 0 1k tol=1", Outcome.NOTED),
        (".tf v(out) Vbase", Outcome.READ),
        (".noise v(out) Vbase dec 10 1 1k", Outcome.APPROXIMATED),
        ("Q1 a b c npn", Outcome.REFUSED),
    ],
)
def test_outcomes(cards, outcome):
    assert Form("N", cards).outcome() is outcome


def test_every_form_names_its_programs():
    found = [form for _, own in forms.groups() for form in own]
    assert len(found) > 100
    assert all(form.programs and set(form.programs) <= set(forms.PROGRAMS) for form in found)


def test_the_command(capsys, tmp_path):
    assert main(["forms"]) == 0
    assert capsys.readouterr().out == forms.table()
    page = tmp_path / "page.md"
    page.write_text(f"a\n{forms.BEGIN}\nold\n{forms.END}\nb\n", encoding="utf-8")
    assert main(["forms", "--into", str(page)]) == 0
    assert page.read_text(encoding="utf-8") == f"a\n{forms.BEGIN}\n{forms.table()}{forms.END}\nb\n"
    page.write_text("without markers", encoding="utf-8")
    assert main(["forms", "--into", str(page)]) == 2
    assert "there is no <!-- forms -->" in capsys.readouterr().err


def test_docstrings():
    assert doctest.testmod(forms).failed == 0
