"""Near misses, loudness, words of earlier versions."""

from __future__ import annotations

import io
import re
from importlib import import_module
from pathlib import Path

import pytest

from circuitsim._moved import MOVED
from circuitsim.cli import main

from .conftest import Command

FLOATING = "t\nV1 a 0 1\nD1 b a\nD2 b c\nR1 c 0 1\n"


@pytest.mark.parametrize(
    ("words", "question"),
    [
        (("slove", "x"), "did you mean solve?"),
        (("solve", "x", "--ouput", "y"), "did you mean --output?"),
        (("solve", "x", "--tolerence=1"), "did you mean --tolerance?"),
        (("reproduce", "cosine", "--budget", "1"), "an option of another sub-command; circuitsim reproduce --help"),
        (("solve", "x", "--format", "jsn"), "did you mean json?"),
        (("examples", "lst"), "did you mean list?"),
        (("examples", "show", "rectifer"), "did you mean rectifier or first/rectifier"),
    ],
)
def test_near_misses_are_named(command: Command, words: tuple[str, ...], question: str) -> None:
    code, out, err = command(*words)
    assert (code, out) == (2, "") and question in err


def test_what_is_near_nothing_has_no_question(command: Command) -> None:
    assert "did you mean" not in command("zzzzqqq").err


def test_decks_that_are_not_there_have_a_way_out(
    command: Command, deck, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = deck()
    monkeypatch.chdir(tmp_path)
    bundled = command("solve", "learn-divider.cir")
    assert (bundled.code, bundled.out) == (2, "")
    assert "hint: a bundled deck has this name: circuitsim examples copy learn-divider" in bundled.err
    assert "/dev/null is a pipe or a device; - reads a deck from standard input" in command("solve", "/dev/null").err
    assert "no parameter of the deck; there are " in command("sweep", place, "--vary", "qqq=1:2:1").err


def test_version_in_one_letter(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["-V"])
    assert capsys.readouterr().out.startswith("circuitsim ")


@pytest.mark.parametrize("first", [True, False])
def test_quiet_leaves_results_and_errors(command: Command, deck, first: bool) -> None:
    path = deck(FLOATING)
    loud = command("solve", path)
    assert loud.err
    quiet = command("-q", "solve", path) if first else command("solve", path, "--quiet")
    assert (quiet.code, quiet.out, quiet.err) == (loud.code, loud.out, "")
    assert command("-q", "solve", "nothing.cir").err.startswith("error: ")


def test_verbose_says_time_and_memory(command: Command, deck) -> None:
    err = command("solve", deck(), "-v").err
    assert err.splitlines()[-1].startswith("time ") and "memory" in err


@pytest.mark.parametrize("words", [("-q",), ("-v",), ("--color", "never"), ("--debug",)])
def test_common_options_stand_anywhere(command: Command, words: tuple[str, ...]) -> None:
    first = command(*words, "examples", "list")
    assert first.code == 0 and len(first.out.splitlines()) > 50
    assert command("examples", *words, "list").out == command("examples", "list", *words).out == first.out


@pytest.mark.parametrize("words", [("-V",), ("solve", "-V"), ("train", "rbm", "--version")])
def test_version_anywhere(capsys: pytest.CaptureFixture[str], words: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit):
        main(list(words))
    assert capsys.readouterr().out.startswith("circuitsim ")


def test_ranges_may_begin_with_a_minus(command: Command, deck) -> None:
    words = ("curve", deck("t\nR1 a 0 2\n"), "--device", "R1", "--volts", "-2:2:2")
    found = command(*words)
    assert found.code == 0 and found.out.splitlines()[1].startswith("-2.0,solved,-1.0")


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("words", "variables", "coloured"),
    [
        ([], {}, True),
        ([], {"NO_COLOR": "1"}, False),
        ([], {"TERM": "dumb"}, False),
        (["--color", "never"], {}, False),
        (["--color=always"], {"NO_COLOR": "1"}, True),
    ],
)
def test_messages_have_colours_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, words: list[str], variables: dict[str, str], coloured: bool
) -> None:
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert main(["solve", "nothing\x1b[31m.cir", *words]) == 2
    head = "\x1b[1;31merror\x1b[0m: " if coloured else "error: "
    assert terminal.getvalue().startswith(head)
    # Codes of a name stay escaped.
    assert "\\x1b[31m" in terminal.getvalue() and "\x1b[31m" not in terminal.getvalue()


def test_messages_in_a_file_have_no_colour(command: Command) -> None:
    assert command("solve", "nothing.cir").err.startswith("error: ")


@pytest.mark.parametrize("old", MOVED)
def test_what_went_says_what_to_write_now(command: Command, deck, old: str) -> None:
    """Commands and options exit with 2 and the hint, Python names raise it."""
    first, *more = old.split()
    if first == "circuitsim":
        code, out, err = command(*(word.replace("COMMAND", "solve") for word in more), deck())
        assert (code, out) == (2, "") and MOVED[old] in err
    else:
        module, _, name = first.rpartition(".")
        if MOVED[old].startswith("kept"):
            assert getattr(import_module(module), name) is not None
            return
        with pytest.raises(AttributeError, match=re.escape(MOVED[old])):
            getattr(import_module(module), name)


def test_the_page_has_what_went() -> None:
    page = (Path(__file__).parents[2] / "docs/analyses.md").read_text(encoding="utf-8")
    rows = [f"| `{old}` | {now} |" for old, now in MOVED.items()]
    assert len(rows) <= 60 and "\n".join(rows) in page
