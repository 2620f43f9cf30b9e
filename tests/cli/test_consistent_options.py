"""Options of all commands: one name, one meaning, one way to state a default."""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from circuitsim.cli import COMMANDS, _below, build_parser
from circuitsim.cli.deck import READING

from .conftest import Command

LIBRARY = ".subckt pair a b c\nRtop a b 2k\nRlow b c {low}\n.ends\n"
DECK = """V1 in 0 6
X1 in out 0 pair
.include low.inc
*! input V1
*! output v(out)
*! trainable x1.rtop min=100 max=10k
"""


def parsers() -> Iterator[argparse.ArgumentParser]:
    """The parser of every command and sub-command."""
    for command in COMMANDS:
        commands = next(a for a in build_parser(command)._actions if isinstance(a, argparse._SubParsersAction))
        yield from (commands.choices[command], *_below(commands.choices[command]))


def options() -> dict[str, list[tuple[str, argparse.Action]]]:
    """Every option, with the commands that have it."""
    found = defaultdict(list)
    for parser in parsers():
        for action in parser._actions:
            if action.option_strings and action.help != argparse.SUPPRESS:
                found[action.option_strings[0]].append((parser.prog, action))
    return found


def test_every_option_says_what_it_is_and_names_its_value() -> None:
    for name, uses in options().items():
        for command, action in uses:
            assert action.help, (command, name)
            assert action.nargs == 0 or action.metavar or action.choices, f"{command} {name}: no word for its value"


def test_defaults_stand_in_brackets() -> None:
    for name, uses in options().items():
        for command, action in uses:
            text = (action.help or "").replace("(default)", "")
            assert "default" not in text.replace("%(default)", ""), f"{command} {name}: {action.help}"


@pytest.mark.parametrize("name", ["--tolerance", "--dask", "--data-dir", "--checkpoint", "--lib", "-I"])
def test_an_option_has_one_help(name: str) -> None:
    """But ``--tolerance`` of sweeps over layers."""
    own = ("drn", "dhn", "table3") if name == "--tolerance" else ("data",)
    found = {
        (action.help or "").replace("%(default)g", "1e-09")
        for command, action in options()[name]
        if not set(own) & set(command.split())
    }
    assert len(found) == 1


def test_seeds_and_counts_are_called_n() -> None:
    for name in ("--seed", "--seeds", "--workers", "--top", "--samples", "--epochs", "--threads"):
        assert {action.metavar for _, action in options()[name]} == {"N"}, name


def test_every_command_that_reads_a_deck_reads_it_alike() -> None:
    for parser in parsers():
        decks = [a for a in parser._actions if a.dest == "deck" and not a.option_strings]
        own = {name for action in parser._actions for name in action.option_strings}
        assert not decks or READING.keys() <= own, parser.prog


@pytest.mark.parametrize("name", ["tran", "ac", "curve", "solve", "sensitivity", "montecarlo"])
@pytest.mark.parametrize("value", ["5", "0", "nan", "-1n", "x"])
def test_a_tolerance_lies_between_0_and_1(command: Command, name: str, value: str) -> None:
    code, out, err = command(name, "any.cir", f"--tolerance={value}")
    assert (code, out) == (2, "") and "--tolerance" in err


def test_decks_that_learn_take_libraries_folders_and_cards_without_a_title(command: Command, tmp_path: Path) -> None:
    parts, deck, data, library = (tmp_path / name for name in ("parts", "my.cir", "my.csv", "my.lib"))
    parts.mkdir()
    (parts / "low.inc").write_text(".param low=1k\n")
    library.write_text(LIBRARY)
    deck.write_text(DECK)
    data.write_text("V1,v(out)\n6,3\n3,1.5\n")
    words = (deck, "--data", data, "--lib", library, "-I", parts, "--allow-include", parts, "--no-title")
    code, _, err = command("train", "circuit", *words, "--compare")
    assert code == 0, err
