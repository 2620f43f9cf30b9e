"""Near misses, loudness, completion."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from circuitsim.cli import COMMANDS, main

from .conftest import Command

FLOATING = "t\nV1 a 0 1\nD1 b a\nD2 b c\nR1 c 0 1\n"


@pytest.mark.parametrize(
    ("words", "question"),
    [
        (("slove", "x"), "did you mean solve?"),
        (("solve", "x", "--ouput", "y"), "did you mean --output?"),
        (("solve", "x", "--tolerence=1"), "did you mean --tolerance?"),
        (("solve", "x", "--format", "jsn"), "did you mean json?"),
        (("examples", "lst"), "did you mean list?"),
        (("init", "rectifer"), "did you mean rectifier?"),
    ],
)
def test_near_misses_are_named(command: Command, words: tuple[str, ...], question: str) -> None:
    code, out, err = command(*words)
    assert (code, out) == (2, "") and question in err


def test_what_is_near_nothing_has_no_question(command: Command) -> None:
    assert "did you mean" not in command("zzzzqqq").err


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


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_every_command(command: Command, shell: str, tmp_path: Path) -> None:
    text = command("completion", shell).out
    assert all(name in text for name in COMMANDS)
    if shutil.which(shell):
        (tmp_path / "script").write_text(text)
        subprocess.run([shell, "-n", tmp_path / "script"], check=True, timeout=30)


@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("circuitsim so", ["solve"]),
        ("circuitsim solve --toler", ["--tolerance"]),
        ("circuitsim examples --", ["--help", "--quiet", "--verbose"]),
    ],
)
def test_bash_offers(command: Command, tmp_path: Path, line: str, offered: list[str]) -> None:
    (tmp_path / "script").write_text(command("completion", "bash").out)
    words = line.split(" ")
    quoted = " ".join(f"'{word}'" for word in words)
    run = f". ./script; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _circuitsim; echo \"${{COMPREPLY[@]}}\""
    done = subprocess.run(["bash", "-c", run], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=30)
    assert sorted(done.stdout.split()) == offered
