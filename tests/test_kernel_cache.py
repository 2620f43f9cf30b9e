"""Machine code on disk: never that of other sources or another processor; damaged files are made again."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]

PROGRAM = """
import numpy as np
from circuitsim._jit import cached, jit

@jit()
def twice(a):
    return 2 * a.sum()

@jit()
def total(a):
    return {number} + twice(a)

@jit()
def other(a):
    return {number} - a.sum()

at_hand = cached(total)
print(total(np.ones(3)), other(np.ones(3)), total(np.ones(2, dtype=np.int64)), at_hand)
"""


def run(folder: Path, **environment: str) -> str:
    """What the program prints in a process of its own."""
    path = os.pathsep.join((str(folder), str(ROOT)))
    own = {**os.environ, "PYTHONPATH": path, "NUMBA_CACHE_DIR": str(folder / "cache"), **environment}
    words = [sys.executable, "-c", "import program"]
    done = subprocess.run(words, env=own, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def files(folder: Path) -> list[Path]:
    return sorted(path for path in (folder / "cache").rglob("*") if path.is_file())


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the program and a cache of its kernels."""
    folder = tmp_path_factory.mktemp("filled")
    (folder / "program.py").write_text(PROGRAM.format(number=1))
    assert run(folder) == "7.0 -2.0 5 False"
    assert run(folder) == "7.0 -2.0 5 True"
    assert len(files(folder)) >= 3
    return folder


def cut(content: bytes, rng: np.random.Generator) -> bytes:
    return content[: len(content) // 2]


def empty(content: bytes, rng: np.random.Generator) -> bytes:
    return b""


def random_bytes(content: bytes, rng: np.random.Generator) -> bytes:
    return rng.bytes(len(content))


def flipped(content: bytes, rng: np.random.Generator) -> bytes:
    """One bit flipped in each of ten places."""
    found = bytearray(content)
    for at in rng.integers(0, len(found), 10).tolist():
        found[at] ^= 1 << int(rng.integers(0, 8))
    return bytes(found)


@pytest.mark.parametrize("damage", [cut, empty, random_bytes, flipped])
def test_damaged_files_are_made_again(filled: Path, damage: Callable[[bytes, np.random.Generator], bytes]) -> None:
    rng, before = np.random.default_rng(5), {path: path.read_bytes() for path in files(filled)}
    for path, content in before.items():
        path.write_bytes(damage(content, rng))
    assert run(filled).startswith("7.0 -2.0 5")
    assert run(filled) == "7.0 -2.0 5 True"
    assert set(files(filled)) == set(before)


def test_files_exchanged_for_each_other_are_made_again(filled: Path) -> None:
    paths = files(filled)
    contents = [path.read_bytes() for path in paths]
    for path, content in zip(paths, contents[1:] + contents[:1]):
        path.write_bytes(content)
    assert run(filled).startswith("7.0 -2.0 5")
    assert run(filled) == "7.0 -2.0 5 True"


def test_other_sources_of_the_same_size_and_time_are_compiled_anew(filled: Path) -> None:
    program = filled / "program.py"
    before, status = program.read_text(), program.stat()
    try:
        program.write_text(PROGRAM.format(number=4))
        os.utime(program, ns=(status.st_atime_ns, status.st_mtime_ns))
        assert program.stat().st_size == status.st_size
        assert run(filled) == "10.0 1.0 8 False"
    finally:
        program.write_text(before)
    assert run(filled) == "7.0 -2.0 5 False"
    os.utime(program, ns=(0, 0))
    assert run(filled) == "7.0 -2.0 5 True"


def test_code_of_another_processor_is_not_at_hand(filled: Path) -> None:
    assert run(filled, NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES="") == "7.0 -2.0 5 False"
    assert run(filled).startswith("7.0 -2.0 5")
