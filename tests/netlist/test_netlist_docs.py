"""The examples of docs/netlist.md and of the modules' docstrings."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

from circuitsim.netlist import refused

PAGE = Path(__file__).parents[2] / "docs" / "netlist.md"


def test_the_page():
    result = doctest.testfile(str(PAGE), module_relative=False)
    assert result.attempted >= 8 and result.failed == 0


@pytest.mark.parametrize("name", ["circuitsim.units", "circuitsim.netlist", "circuitsim.circuit.circuit"])
def test_docstrings(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted and result.failed == 0


def test_the_page_names_every_card():
    text = PAGE.read_text(encoding="utf-8")
    for card in (*refused.OTHER_ANALYSES, ".if", ".macro", ".connect", ".alter", ".data", ".op", ".dc", ".step"):
        assert card in text, card
