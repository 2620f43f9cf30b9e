"""Compiled kernels: found again on disk unless sources, processor or files differ; nothing compiled for small work;
the same numbers as interpreted; memory given back."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import circuitsim
from circuitsim.bench.families import make
from circuitsim.netlist import dumps

ROOT = Path(__file__).parents[1]
PROGRAM = """
import numpy as np
from circuitsim._jit import cached, jit

@jit()
def twice(a):
    return 2 * a.sum()

@jit()
def total(a):
    if a.size > 5:
        raise ValueError("too long")
    return {number} + twice(a)

@jit()
def other(a):
    return {number} - a.sum()

at_hand = cached(total)
print(total(np.ones(3)), other(np.ones(3)), total(np.ones(2, dtype=np.int64)), at_hand)
try:
    total(np.ones(7))
except ValueError as error:
    print(error)
"""


def run(folder: Path, code: str = "import program", **environment: str) -> subprocess.CompletedProcess[str]:
    """A program in a process of its own, with a cache of its own."""
    path = os.pathsep.join((str(folder), str(ROOT)))
    # Python's own cache of byte code knows sources by size and time.
    own = {**os.environ, "PYTHONPATH": path, "NUMBA_CACHE_DIR": str(folder / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
    own |= environment
    done = subprocess.run(
        [sys.executable, "-c", code], env=own, capture_output=True, text=True, timeout=600, cwd=folder
    )
    assert done.returncode == 0, done.stderr
    return done


def printed(folder: Path, **environment: str) -> str:
    """What the program prints, and its exception."""
    first, second = run(folder, **environment).stdout.splitlines()
    assert second == "too long"
    return first


def files(folder: Path) -> list[Path]:
    return sorted(path for path in (folder / "cache").rglob("*") if path.is_file())


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the program and a cache of its kernels."""
    folder = tmp_path_factory.mktemp("filled")
    (folder / "program.py").write_text(PROGRAM.format(number=1))
    first, second = run(folder), run(folder)
    assert first.stdout == "7.0 -2.0 5 False\ntoo long\n" and first.stderr.count("compiling kernels once") == 1
    assert second.stdout == "7.0 -2.0 5 True\ntoo long\n" and not second.stderr
    return folder


def exchanged(contents: list[bytes]) -> list[bytes]:
    return contents[1:] + contents[:1]


def flipped(contents: list[bytes]) -> list[bytes]:
    """One bit flipped in each of ten places of each file."""
    rng, found = np.random.default_rng(5), [bytearray(content) for content in contents]
    for content in found:
        for at in rng.integers(0, len(content), 10).tolist():
            content[at] ^= 1 << int(rng.integers(0, 8))
    return [bytes(content) for content in found]


def test_damaged_files_are_made_again(filled: Path) -> None:
    paths = files(filled)
    for damage in (
        exchanged,
        flipped,
        lambda all_: [one[: len(one) // 2] for one in all_],
        lambda all_: [b""] * len(all_),
    ):
        damaged = damage([path.read_bytes() for path in paths])
        for path, content in zip(paths, damaged):
            path.write_bytes(content)
        assert printed(filled).startswith("7.0 -2.0 5") and files(filled) == paths
        assert all(path.read_bytes() != content for path, content in zip(paths, damaged))
    assert printed(filled) == "7.0 -2.0 5 True"


def test_other_sources_of_the_same_size_and_time_are_compiled_anew(filled: Path) -> None:
    program = filled / "program.py"
    before, status = program.read_text(), program.stat()
    try:
        program.write_text(PROGRAM.format(number=4))
        os.utime(program, ns=(status.st_atime_ns, status.st_mtime_ns))
        assert program.stat().st_size == status.st_size
        assert printed(filled) == "10.0 1.0 8 False"
    finally:
        program.write_text(before)
    assert printed(filled) == "7.0 -2.0 5 False"
    os.utime(program, ns=(0, 0))
    assert printed(filled) == "7.0 -2.0 5 True"


def test_code_of_another_processor_is_not_at_hand(filled: Path) -> None:
    assert printed(filled, NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES="") == "7.0 -2.0 5 False"
    assert printed(filled).startswith("7.0 -2.0 5")


def test_where_nothing_can_be_cached(tmp_path: Path) -> None:
    """Neither beside the source nor in a home of the user: compiled in each process, which is said once."""
    (tmp_path / "program.py").write_text(PROGRAM.format(number=1))
    (tmp_path / "__pycache__").write_text("a file where a directory would have to be")
    lost = {"HOME": "/proc/none", "XDG_CACHE_HOME": "/proc/none", "NUMBA_CACHE_DIR": "/proc/none"}
    done = run(tmp_path, **lost)
    assert done.stdout.startswith("7.0 -2.0 5") and done.stderr.count("in every process") == 1


def test_versions_of_numba_whose_internals_are_unknown(tmp_path: Path) -> None:
    """They compile kernels their own way."""
    (tmp_path / "program.py").write_text(PROGRAM.format(number=1))
    done = run(tmp_path, "import circuitsim._jit as own; own.Kernel = None; import program")
    assert done.stdout == "7.0 -2.0 5 False\ntoo long\n"


def test_threads_that_need_compiled_kernels_at_once(tmp_path: Path) -> None:
    code = """
from concurrent.futures import ThreadPoolExecutor
from circuitsim import _graphs, kernels
kernels.LOADING = -1
functions = (_graphs.find, _graphs.unite, _graphs.choose_forest, _graphs.incident)
with ThreadPoolExecutor(4) as pool:
    print(list(pool.map(lambda k: kernels.kernel(functions[k], 1, ahead=k % 2 * 1e12) is not None, range(4))))
"""
    assert run(tmp_path, code).stdout == "[True, True, True, True]\n"


@pytest.mark.parametrize(
    "words",
    [
        *(["tran", f"{ROOT}/netlists/{name}.cir"] for name in ("rectifier-bridge-smoothed", "buck-converter")),
        ["solve", "mesh.cir"],
    ],
    ids=["rectifier", "buck converter", "a mesh of 2,000 nodes"],
)
def test_a_single_deck_compiles_nothing(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "mesh.cir").write_text(dumps(make("grid", 2_000, 0)))
    code = f"from circuitsim.cli import main; raise SystemExit(main([*{words}, '--format', 'csv']))"
    done = run(tmp_path, code)
    assert len(done.stdout.splitlines()) > 400 and "compiling" not in done.stderr
    assert not list(tmp_path.glob("cache/*/*"))


@pytest.mark.skipif(platform.system() != "Linux", reason="resident memory is read from /proc")
def test_solves_give_their_memory_back() -> None:
    ready = circuitsim.prepared(make("ladder", 60, 0))

    def grown(count: int) -> int:
        """Pages of resident memory that so many solves take for good."""
        before, after = 0, 0
        for k in range(count):
            if k == count // 2:
                before = int(Path("/proc/self/statm").read_text().split()[1])
            ready.solve().currents.sum()
        after = int(Path("/proc/self/statm").read_text().split()[1])
        return after - before

    assert min(grown(2000) for _ in range(3)) < 200
