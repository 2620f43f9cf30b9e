"""Bundled decks and first decks: from a wheel as from a checkout, every command that is suggested runs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import circuitsim
from circuitsim import examples
from circuitsim.cli import EPILOG, main
from circuitsim.errors import NetlistError, UsageError

from .conftest import Command

ROOT = Path(__file__).parents[2]
ZENER = "t\n.include {file}\nV1 in 0 9\nR1 in out 1k\nX1 out 0 zener vz=4\n"


def test_list_has_every_deck(command: Command) -> None:
    listed = json.loads(command("examples", "list", "--format", "json").out)
    decks = [*(ROOT / "netlists").rglob("*.cir")]
    assert sorted(Path(row["path"]).resolve() for row in listed) == sorted(decks)
    table = command("examples", "list").out.splitlines()
    assert [line.split()[0] for line in table] == [row["name"] for row in listed]
    assert all(row["title"] and row["title"] in line for row, line in zip(listed, table))


def test_show(command: Command) -> None:
    assert command("examples", "show", "divider").out == (ROOT / "netlists/divider.cir").read_text(encoding="utf-8")
    assert command("examples", "show", "transistor").out == command("examples", "show", "refused/transistor").out
    code, _, err = command("examples", "show", "rectifier-brige")
    assert code == 2 and "did you mean rectifier-bridge" in err


def test_a_copy_has_what_the_deck_needs(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written = command("examples", "copy", "zener-stack", "learn-divider").out.split()
    assert sorted(written) == ["learn-divider.cir", "learn-divider.csv", "parts/zener.inc", "zener-stack.cir"]
    assert circuitsim.solve(circuitsim.load("zener-stack.cir"))["out"] == pytest.approx(8.4)
    assert command("examples", "copy", "zener-stack").code == 0  # the same content
    Path("zener-stack.cir").write_text("mine\nR1 a 0 1\n")
    refused = command("examples", "copy", "zener-stack")
    assert refused.code == 2 and "--force" in refused.err
    assert Path("zener-stack.cir").read_text() == "mine\nR1 a 0 1\n"
    assert command("examples", "copy", "zener-stack", "--force").code == 0
    assert Path("zener-stack.cir").read_bytes() == (ROOT / "netlists/zener-stack.cir").read_bytes()


def test_the_first_steps_of_the_help(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    steps = EPILOG.partition("first steps:\n")[2].splitlines()
    commands = [line.strip().split("  ")[0].split()[1:] for line in steps if "COMMAND" not in line]
    assert len(commands) >= 3
    for words in commands:
        assert command(*words).code == 0, words


FIRST = {
    "linear": ("solve", "sweep"),
    "rectifier": ("solve", "sweep", "graph"),
    "diode": ("solve", "sweep"),
    "amplifier": ("solve", "sweep"),
    "time": ("tran",),
    "learning": ("train",),
}


@pytest.mark.parametrize("kind", FIRST)
def test_first_decks(command: Command, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy needs nothing else; the commands run on it, and it has neither errors nor warnings."""
    monkeypatch.chdir(tmp_path)
    assert command("examples", "copy", f"first/{kind}").code == 0
    for name in FIRST[kind]:
        more = ["--data", "learning.csv", "--epochs", "1", "--out", "run"] if name == "train" else []
        done = command(*(["train", "circuit"] if more else [name]), f"{kind}.cir", *more)
        assert done.code == 0 and "warning" not in done.err, done.err


def test_first_decks_have_known_answers() -> None:
    expected = {"linear": ("out", 7.5), "rectifier": ("plus", 10.0), "diode": ("z", 3.3), "amplifier": ("out", -5.0)}
    for kind, (node, volts) in expected.items():
        assert circuitsim.solve(circuitsim.load(examples.path(f"first/{kind}")))[node] == pytest.approx(volts, rel=1e-9)


def test_bundled_sub_circuits_need_no_path(tmp_path: Path) -> None:
    deck = tmp_path / "my.cir"
    deck.write_text(ZENER.format(file="zener.inc"))
    assert circuitsim.solve(circuitsim.load(deck))["out"] == 4.0
    assert circuitsim.solve(circuitsim.loads(ZENER.format(file="zener.inc")))["out"] == 4.0
    # A file of the deck's own folder comes first.
    (tmp_path / "zener.inc").write_text(".subckt zener k a vz=1\nR1 k a 1k\n.ends\n")
    assert circuitsim.solve(circuitsim.load(deck))["out"] == 4.5


@pytest.mark.parametrize("file", ["nowhere/zener.inc", "../zener.inc", "C:\\parts\\zener.inc", "../divider.cir"])
def test_a_name_with_a_folder_is_no_bundled_sub_circuit(tmp_path: Path, file: str) -> None:
    deck = tmp_path / "my.cir"
    deck.write_text(ZENER.format(file=file))
    with pytest.raises(NetlistError):
        circuitsim.load(deck)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(UsageError, match="no bundled deck"):
        examples.path("../../etc/passwd")


def test_a_wheel_has_the_decks(tmp_path: Path) -> None:
    """Built, unpacked, and used without the checkout."""
    pytest.importorskip("setuptools", minversion="70.1", reason="building a wheel needs setuptools 70.1 or newer")
    source = tmp_path / "source"
    hidden = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in ("circuitsim", "netlists"):
        shutil.copytree(ROOT / name, source / name, ignore=hidden)
    for name in ("setup.py", "setup.cfg", "pyproject.toml", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    build = ["pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", "wheels", "./source"]
    done = subprocess.run([sys.executable, "-m", *build], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = (tmp_path / "wheels").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    decks = {
        path.relative_to(ROOT / "netlists")
        for path in (ROOT / "netlists").rglob("*")
        if path.suffix in (".cir", ".csv", ".inc")
    }
    packed = tmp_path / "site/circuitsim/examples/netlists"
    assert {path.relative_to(packed) for path in packed.rglob("*") if path.is_file()} == decks
    shutil.rmtree(source)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    (tmp_path / "my.cir").write_text(ZENER.format(file="zener.inc"))
    for words in (
        ["examples", "copy"],
        ["solve", "netlists/rectifier-half-wave.cir"],
        ["examples", "copy", "first/diode"],
        ["solve", "my.cir"],
    ):
        run = [sys.executable, "-P", "-m", "circuitsim", *words]
        done = subprocess.run(run, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert main(["check", str(tmp_path / "netlists/divider.cir")]) == 0
