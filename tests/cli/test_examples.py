"""Bundled decks: listed, and in a wheel as in a checkout."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import Command

ROOT = Path(__file__).parents[2]
USES = (
    "examples copy",
    "solve netlists/rectifier-half-wave.cir",
    "solve netlists/zener-stack.cir",
    "examples copy first/diode",
)


def test_list_has_every_deck(command: Command) -> None:
    listed = json.loads(command("examples", "list", "--format", "json").out)
    assert {Path(row["path"]).resolve() for row in listed} == {*(ROOT / "netlists").rglob("*.cir")}
    for row, line in zip(listed, command("examples", "list").out.splitlines(), strict=True):
        assert line.split()[0] == row["name"] and row["title"] and row["title"] in line


def test_a_wheel_has_the_decks(tmp_path: Path) -> None:
    """Built, unpacked, and used without the checkout."""
    pytest.importorskip("setuptools", minversion="70.1", reason="building a wheel needs setuptools 70.1 or newer")
    source = tmp_path / "source"
    for name in ("circuitsim", "netlists"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("setup.py", "setup.cfg", "pyproject.toml", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)

    def python(*words: str) -> None:
        environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
        run = [sys.executable, "-P", "-m", *words]
        done = subprocess.run(run, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    python("pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", "wheels", "./source")
    (wheel,) = (tmp_path / "wheels").glob("*.whl")
    shutil.unpack_archive(wheel, tmp_path / "site", "zip")
    packed, own = tmp_path / "site/circuitsim/examples/netlists", ROOT / "netlists"
    decks = {path.relative_to(own) for path in own.rglob("*") if path.suffix in (".cir", ".csv", ".inc")}
    assert {path.relative_to(packed) for path in packed.rglob("*") if path.is_file()} == decks
    shutil.rmtree(source)
    for words in USES:
        python("circuitsim", *words.split())
