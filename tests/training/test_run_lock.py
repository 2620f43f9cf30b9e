"""Runs and their folders: one process at a time trains in a folder; options that would not act are errors."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from circuitsim.cli import main
from circuitsim.errors import UsageError
from circuitsim.training import RunDirectory

ROOT = Path(__file__).parents[2]
DIVIDER = ["train", "circuit", "netlists/learn-divider.cir", "--data", "netlists/learn-divider.csv", "--epochs", "2"]


@pytest.fixture(autouse=True)
def in_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def test_one_process_at_a_time_trains_in_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The lock is the system's: it ends with the process that holds it, also when that is killed."""
    run = tmp_path / "run"
    assert main([*DIVIDER, "--out", str(run)]) == 0
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            textwrap.dedent(f"""
                import sys
                from circuitsim.training import RunDirectory
                with RunDirectory({str(run)!r}).locked():
                    print("locked", flush=True)
                    sys.stdin.read()
            """),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None and holder.stdout.readline() == "locked\n"
    before = (run / "config.json").read_bytes(), (run / "checkpoint.npz").read_bytes()
    capsys.readouterr()
    assert main(["train", "resume", "--out", str(run), "--epochs", "4"]) == 2
    assert "another process trains in" in capsys.readouterr().err
    assert before == ((run / "config.json").read_bytes(), (run / "checkpoint.npz").read_bytes())
    with pytest.raises(UsageError, match="another process"), RunDirectory(run).locked():
        pass
    os.kill(holder.pid, signal.SIGKILL)
    holder.communicate()
    assert main(["train", "resume", "--out", str(run), "--epochs", "4"]) == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--momentum", "0.5"], "--momentum acts only with --optimizer momentum, not with adam"),
        (["--momentum", "0.5", "--optimizer", "sgd"], "--momentum acts only with --optimizer momentum, not with sgd"),
        (["--lr-decay", "0.9"], "--lr-decay acts only with --schedule exponential, not with constant"),
        (["--lr-final", "0.1", "--schedule", "exponential"], "--lr-final acts only with --schedule cosine"),
        (["--eta", "0.2"], "--eta acts only with --method coupled, not with ep"),
        (["--beta", "1e-6", "--method", "implicit"], "--beta acts only with --method ep or agnostic"),
        (["--gamma", "1e-6"], "--gamma acts only with --method frequency"),
        (["--low", "-1"], "--low acts only with --loss squared and data of classes"),
        (["--temperature", "0.1"], "--temperature acts only with --loss cross-entropy"),
        (["--lr-current", "0.1"], "--lr-current acts only where a current source is trainable"),
        (["--lr-device", "0.1"], "--lr-device acts only where a parameter of a device is trainable"),
    ],
)
def test_options_that_would_not_act_are_errors(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*DIVIDER, *words]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("family", "words", "said"),
    [
        ("ffebm", ["--momentum", "0.5"], "--momentum acts only with --optimizer sgd, not with adam"),
        ("drn", ["--method", "bp", "--beta", "0.1"], "--beta acts only with --method ep, not with bp"),
        ("dhn", ["--method", "bp", "--variant", "positive"], "--variant acts only with --method ep, not with bp"),
    ],
)
def test_options_of_other_families_too(
    family: str, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", family, "--dataset", "digits", *words]) == 2
    assert said in capsys.readouterr().err


def test_options_that_act_are_none(tmp_path: Path) -> None:
    assert main([*DIVIDER, "--optimizer", "momentum", "--momentum", "0.5", "--out", str(tmp_path / "a")]) == 0
    assert main([*DIVIDER, "--schedule", "cosine", "--lr-final", "0.1", "--out", str(tmp_path / "b")]) == 0


def test_threads_wait_without_spinning_in_a_process_of_our_own() -> None:
    """Spinning threads stop each other where other programs run; a program that imports us keeps its own setting."""
    told = "import os, sys; sys.argv = ['circuitsim', 'examples']; from circuitsim.cli import main; main()\n"
    asked = "print(os.environ.get('OMP_WAIT_POLICY'))"
    environment = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}

    def last_line(program: str, **more: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", program], env={**environment, **more}, capture_output=True, text=True, check=True
        )
        return done.stdout.splitlines()[-1]

    assert last_line(told + asked) == "passive"
    assert last_line(told + asked, OMP_WAIT_POLICY="active") == "active"
    assert last_line("import os, circuitsim.layered\n" + asked) == "None"
