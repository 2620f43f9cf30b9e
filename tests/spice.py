"""ngspice, where it is installed."""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

PROGRAM = shutil.which("ngspice")


NEEDED = [
    pytest.mark.ngspice,
    pytest.mark.skipif(PROGRAM is None, reason="ngspice is not installed (Debian: apt-get install ngspice)"),
]
"""Marks of tests that run it."""


def needed(test):
    """Mark one test."""
    for mark in NEEDED:
        test = mark(test)
    return test


def spice(deck: str, control: str, **files: str) -> tuple[dict[str, list[complex]], str]:
    """What the commands of a control block print about a deck, by name in lower case (rows of tables together), and
    everything that ngspice says."""
    assert PROGRAM is not None
    with tempfile.TemporaryDirectory() as folder:
        text = f"{deck}\n.control\nset numdgt=15\n{control}\nquit\n.endc\n.end\n"
        for name, content in {"deck.cir": text, **files}.items():
            Path(folder, name).write_text(content, encoding="utf-8")
        words = [PROGRAM, "-b", "deck.cir"]
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    found: dict[str, list[complex]] = {}
    for name, value in re.findall(r"^(\S+)\s+= +(\S+)", done.stdout, re.MULTILINE):
        found.setdefault(name.lower(), []).append(complex(*map(float, value.split(","))))
    return found, done.stdout + done.stderr
