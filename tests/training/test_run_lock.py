"""Runs and their folders: one process at a time trains in a folder; options that would not act are errors."""

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
