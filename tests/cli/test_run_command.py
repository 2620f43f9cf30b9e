"""``circuitsim run``: all analyses of a deck, each as its own command does."""

from __future__ import annotations

import io
from itertools import pairwise
from pathlib import Path

import pytest

import circuitsim
from circuitsim.cli import main

DECK = """a filter
V1 in 0 2 AC 1 SIN(2 1 1k)
R1 in out 1k
C1 out 0 100n
.op
.tran 10u 2m
.meas tran high MAX v(out)
.ac dec 1 10 1k
"""


@pytest.fixture
def deck(tmp_path: Path) -> str:
    path = tmp_path / "filter.cir"
    path.write_text(DECK)
    return str(path)


def test_tables_and_measurements(deck: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", deck]) == 0
    shown = capsys.readouterr().out
    heads = [shown.index(head) for head in ("Operating point\n", "Transient analysis\n", "AC analysis\n")]
    assert heads == sorted(heads) and "high" in shown
    assert "more rows (--output DIR writes all, --plot DIR draws them)" in shown
    assert len(shown.splitlines()) < 120


def test_files_are_those_of_the_commands(deck: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "results"
    assert main(["run", deck, "--output", str(out), "--plot", str(out)]) == 0
    assert sorted(p.name for p in out.iterdir()) == ["ac.csv", "ac.png", "op.csv", "op.png", "tran.csv", "tran.png"]
    capsys.readouterr()
    assert main(["tran", deck]) == 0
    assert capsys.readouterr().out == (out / "tran.csv").read_text()


def test_the_exit_code_is_the_worst(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.cir"
    path.write_text(DECK.replace("AC 1 ", ""))
    assert main(["run", str(path)]) == 2
    shown = capsys.readouterr()
    assert "no source has an amplitude" in shown.err and "high" in shown.out
    assert main(["run", "nowhere.cir"]) == 2
    assert main(["run", str(path), "--output", str(path)]) == 2
    assert "is a file; name a folder" in capsys.readouterr().err


def test_a_deck_from_standard_input_is_read_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(DECK.encode())))
    assert main(["run", "-"]) == 0
    assert "AC analysis" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("cards", "headings"),
    [
        ("", ["Operating point"]),
        (".temp 50\n", ["Operating point"]),
        (".temp 20 50\n", ["DC sweep"]),
        (".op\n.step param r 1 2 1\n.param r=1\n", ["Operating point", "DC sweep"]),
        (".step param r 1 2 1\n.param r=1\n.dc V1 0 1 1\n", ["DC sweep"]),
    ],
)
def test_what_is_run(cards: str, headings: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command and Python agree."""
    path = tmp_path / "my.cir"
    path.write_text(f"t\nV1 a 0 1\nR1 a 0 2\n{cards}")
    assert main(["run", str(path)]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert [line for line, under in pairwise(shown) if under and set(under) == {"-"}] == headings
    assert len(circuitsim.run(circuitsim.load(path))) == len(headings)


def test_what_each_command_leaves_out_is_not_said(deck: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", deck]) == 0
    shown = capsys.readouterr().err
    assert "the operating point is solved" not in shown and "no effect" not in shown
