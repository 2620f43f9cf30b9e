"""Every command against every ending of --output: what is written is what the name says, or it is an error."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from circuitsim.cli import COMMANDS

from .conftest import Command
from .test_command_line import OPTIONS, PARSERS

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
LEARN = "learn\n*! input V1\n*! output v(out)\n*! trainable R*\nV1 in 0 1\nR1 in out 1k\nR2 out 0 1k\n"
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
    "ac": "my.cir",
    "predict": "run --data learn.csv",
}
"""A command line of each command with --output FILE."""

READ: dict[str, Callable[[bytes], object]] = {
    "json": lambda data: isinstance(json.loads(data, parse_constant=pytest.fail), dict),
    "csv": lambda data: len({len(row) for row in csv.reader(io.StringIO(data.decode()))}) == 1,
    "raw": lambda data: data.startswith(b"Title:") and b"\nVariables:\n" in data,
    "txt": lambda data: data.strip() and not data.startswith((b"{", b"Title:")),
    "cir": lambda data: b".end" in data.lower(),
    "html": lambda data: data.startswith(b"<!DOCTYPE html>"),
    "png": lambda data: data.startswith(b"\x89PNG"),
    "svg": lambda data: data.startswith(b"<?xml"),
    "pdf": lambda data: data.startswith(b"%PDF"),
    "xlsx": lambda data: False,
    "dat": lambda data: False,
    "XLSX": lambda data: False,
}
"""Endings, and whether a file is what its ending says."""


def test_every_command_with_an_output_file_is_here() -> None:
    files = {action for action in OPTIONS["--output"] if action.metavar == "FILE"}
    found = [parser.prog.split()[1:] for parser in PARSERS if files & {*parser._actions}]
    assert [[name] for name in COMMANDS if name in LINES] == [words for words in found if len(words) == 1]


@pytest.mark.parametrize("name", LINES)
def test_an_ending_is_written_or_refused(command: Command, deck: Callable[[str], str], name: str) -> None:
    deck(DECK)
    Path("learn.cir").write_text(LEARN, encoding="utf-8")
    Path("learn.csv").write_text("V1,v(out)\n1,0.3\n", encoding="utf-8")
    if name == "predict":
        train = command("train", "circuit", "learn.cir", "--data", "learn.csv", "--epochs", "1", "--out", "run")
        assert train.code == 0
    words, written = ["-q", name, *LINES[name].split(), "--output"], 0
    for ending, right in READ.items():
        target = Path(f"out.{ending}")
        result = command(*words, target)
        if result.code == 2:
            assert target.name in result.err and not target.exists(), result.err
        else:
            written += 1
            assert result.code == 0 and right(target.read_bytes()), (ending, result.err)
    assert written
    Path("out.csv").unlink(missing_ok=True)
    if name not in ("graph", "report", "convert"):
        result = command(*words, "out.csv", "--format", "json")
        assert result.code == 2 and "disagree" in result.err and not Path("out.csv").exists()
