"""The share of the contract that runs in the test suite: all commands of the decks, a slice of each random family."""

import ast
from pathlib import Path

import pytest
from check import LISTS, arguments, compare, computed, listed_amiss
from corpus import FAMILIES
from store import amendments, read_json

import circuitsim

HERE = Path(__file__).parent
COMMANDS = {("circuitsim.cli", "main")}


@pytest.mark.parametrize("family", [*FAMILIES, *LISTS])
def test_answers_are_those_of_2634b2ce_but_for_amendments(family: str) -> None:
    stride = FAMILIES[family].stride if family in FAMILIES else 6
    amended = read_json("amended")
    found = computed(family, arguments("", ["--family", family, "--stride", str(stride)]))
    assert {key: apart for key, value in found.items() if (apart := compare(family, key, value, amended))} == {}


def test_every_amendment_changes_an_answer_and_says_why() -> None:
    assert listed_amiss(read_json("amended")) == []
    for entry in amendments():
        assert entry.issue and entry.reason and entry.old != entry.new, entry


def test_the_contract_imports_public_names_alone() -> None:
    own = {path.stem for path in HERE.glob("*.py")}
    for path in HERE.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                assert not any(alias.name.startswith("circuitsim.") for alias in node.names), path
            elif isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] == "circuitsim":
                names = {(str(node.module), alias.name) for alias in node.names} - COMMANDS
                assert all(module == "circuitsim" and name in circuitsim.__all__ for module, name in names), path
            elif isinstance(node, ast.ImportFrom):
                assert node.module in own or str(node.module).split(".")[0] not in {"tests", "conftest"}, path
