"""The table of forms: the page is up to date; every outcome is of an example as expected."""

import doctest
import re

import forms
import pytest
from deck_corpus import decks
from forms import Form, Outcome

ADVICE = "run: python tests/decks/forms.py"


def test_the_page_holds_the_table():
    page = forms.PAGE.read_text(encoding="utf-8")
    assert forms.replaced(page, forms.table()) == page, ADVICE


def test_the_page_holds_the_number_of_decks():
    text = forms.PAGE.read_text(encoding="utf-8")
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


def test_docstrings():
    assert doctest.testmod(forms).failed == 0
