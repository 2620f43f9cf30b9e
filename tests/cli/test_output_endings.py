"""Every command against every ending of --output: what is written is what the name says, or it is an error."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from circuitsim.cli import COMMANDS, main

from .conftest import Command

DECK = """\
all analyses
V1 in 0 PULSE(0 5 1u 1u 1u 20u 50u) AC 1
R1 in a 1k
C1 a 0 1n
R2 a b 2k tol=5%
D1 b c
V2 c 0 2
.dc V2 0 2 1
.tran 5u 50u
.ac dec 1 1k 10k
"""
DATA = "V1,v(out)\n1,0.3\n"

LINES = {
    "solve": "my.cir",
    "check": "my.cir",
    "graph": "my.cir",
    "report": "my.cir",
    "convert": "my.cir",
    "sweep": "my.cir --vary V2=0:2:1",
    "sensitivity": "my.cir --observe v(b)",
    "curve": "my.cir --device D1 --volts -1:1:1",
    "montecarlo": "my.cir --tol R*=5% --samples 20 --observe v(b)",
    "worst-case": "my.cir --tol R*=5% --observe v(b)",
    "optimise": "my.cir --adjust R*=100:10k --target v(b)=1",
    "tran": "my.cir",
    "energy": "learn.cir --data learn.csv --capacitance 1p",
    "ac": "my.cir",
    "predict": "run --data learn.csv",
}
"""A command line of each command with --output FILE."""
LINES = {name: line for name, line in LINES.items() if name in COMMANDS}

ENDINGS = ("csv", "json", "raw", "txt", "png", "svg", "pdf", "html", "cir", "xlsx", "dat")
READ: dict[str, Callable[[str], bool]] = {
    "json": lambda text: isinstance(json.loads(text, parse_constant=pytest.fail), dict),
    "csv": lambda text: len({len(row) for row in csv.reader(io.StringIO(text))}) == 1,
    "raw": lambda text: text.startswith("Title:") and "\nVariables:\n" in text,
    "txt": lambda text: bool(text.strip()) and not text.startswith(("{", "Title:")),
    "cir": lambda text: ".end" in text.lower(),
    "html": lambda text: text.startswith("<!DOCTYPE html>"),
}
PICTURES = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


@pytest.fixture
def folder(deck: Callable[[str], str], tmp_path: Path) -> Path:
    """Decks, data and a trained model."""
    deck(DECK)
    learn = "*! input V1\n*! output v(out)\n*! trainable R*\nV1 in 0 1\nR1 in out 1k\nR2 out 0 1k\n"
    (tmp_path / "learn.cir").write_text("learn\n" + learn, encoding="utf-8")
    (tmp_path / "learn.csv").write_text(DATA, encoding="utf-8")
    return tmp_path


def test_every_command_with_an_output_file_is_here(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    found = set()
    for name in COMMANDS:
        with pytest.raises(SystemExit):
            main([name, "--help"])
        text = capsys.readouterr().out
        if "--output, -o FILE" in text:
            found.add(name)
    assert found == set(LINES)


@pytest.mark.parametrize("name", LINES)
def test_an_ending_is_written_or_refused(command: Command, folder: Path, name: str) -> None:
    if name == "predict":
        assert (
            command("train", "circuit", "learn.cir", "--data", "learn.csv", "--epochs", "1", "--out", "run").code == 0
        )
    written = set()
    for ending in ENDINGS:
        target = folder / f"out.{ending}"
        result = command("-q", name, *LINES[name].split(), "--output", target.name)
        if result.code == 2:
            assert f"out.{ending}" in result.err and not target.exists(), result.err
            continue
        assert result.code == 0, result.err
        written.add(ending)
        content = target.read_bytes()
        if ending in PICTURES:
            assert content.startswith(PICTURES[ending])
        else:
            assert READ[ending](content.decode()), ending
    assert written and not written & {"xlsx", "dat"}
    # In capitals too; standard output and devices have no ending.
    assert command("-q", name, *LINES[name].split(), "--output", "out.XLSX").code == 2


@pytest.mark.parametrize("name", sorted(set(LINES) - {"graph", "report", "convert"}))
def test_format_and_ending_agree(command: Command, folder: Path, name: str) -> None:
    result = command("-q", name, *LINES[name].split(), "--format", "json", "--output", "out.csv")
    assert result.code == 2 and "out.csv" in result.err and "disagree" in result.err
    assert not (folder / "out.csv").exists()


def test_a_picture_is_pointed_to_its_option(command: Command, deck: Callable[[str], str]) -> None:
    result = command("solve", deck("t\nV1 a 0 1\nR1 a 0 1\n"), "--output", "a.png")
    assert result.code == 2 and "--plot" in result.err


def test_null_device_and_standard_output(command: Command, deck: Callable[[str], str]) -> None:
    assert command("solve", deck("t\nV1 a 0 1\nR1 a 0 1\n"), "--output", "/dev/null").code == 0
    assert command("solve", "my.cir", "--output", "-").out
    assert command("solve", "my.cir", "--output", "plain").code == 0
