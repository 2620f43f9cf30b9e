"""The command line as a function, for the tests of this folder."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from circuitsim.cli import main

DIVIDER = "divider\nV1 in 0 6\nR1 in out 1k\nR2 out 0 2k\n"


class Result(NamedTuple):
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str


Command = Callable[..., Result]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    """``command("solve", path, …)`` → exit code, standard output, standard error."""

    def run(*words: str | Path) -> Result:
        capsys.readouterr()
        code = main([str(word) for word in words])
        return Result(code, *capsys.readouterr())

    return run


@pytest.fixture
def deck(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Write a deck ``my.cir`` into a folder that becomes the current one; returns its name."""
    monkeypatch.chdir(tmp_path)

    def write(text: str = DIVIDER) -> str:
        (tmp_path / "my.cir").write_text(text, encoding="utf-8")
        return "my.cir"

    return write
