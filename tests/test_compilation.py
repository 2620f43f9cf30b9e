"""How kernels are compiled: whole, once, with numba's own results, and no more than so much of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core.runtime import _nrt_python, rtsys

from circuitsim import _jit
from circuitsim.bench.families import make
from circuitsim.netlist import dumps

ROOT = Path(__file__).parents[1]

PROGRAM = """
import sys
import numba, numpy as np
from circuitsim._jit import jit

@jit()
def inner(a, b):
    c = np.zeros(a.size)
    for k in range(a.size):
        c[k] = a[k] * b[k]
    if c.size > 5:
        raise ValueError("too long")
    return c.sum()

@jit()
def outer(a, b):
    return inner(a, b) + inner(b, a) + a.copy().size

@jit(parallel=True)
def shared(a, out):
    for k in numba.prange(a.size):
        out[k] = inner(a, a) + k

@numba.njit
def stranger(a):
    return inner(a, a) + np.sqrt((a * a).sum())

x, out = np.full(4, 0.5), np.zeros(4)
shared(x, out)
print(outer(x, x), inner(x, x), stranger(x), out.tolist())
try:
    outer(np.ones(7), np.ones(7))
except ValueError as error:
    print(error)
"""


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A program in a process of its own."""
    own = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_NUM_THREADS": "2", **environment}
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, env=own, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    return done


def module(tmp_path: Path) -> tuple[str, dict[str, str]]:
    """Code that runs `PROGRAM` from a file, and the environment in which nothing is cached yet."""
    (tmp_path / "program.py").write_text(PROGRAM)
    path = os.pathsep.join((str(tmp_path), str(ROOT)))
    return "import program", {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": path}


def test_nested_kernels_compiled_whole_loaded_again_and_called_from_strangers(tmp_path: Path) -> None:
    code, environment = module(tmp_path)
    expected = "6.0 1.0 2.0 [1.0, 2.0, 3.0, 4.0]\ntoo long\n"
    first, second = run(code, **environment), run(code, **environment)
    assert first.stdout == second.stdout == expected
    assert first.stderr.count("compiling kernels, once") == 1
    assert not second.stderr


TYPED = """
from typing import NamedTuple
import numpy as np
from circuitsim._jit import jit

class {name}(NamedTuple):
    a: np.ndarray

@jit()
def total(memory):
    return memory.a.sum() + {number}

print(total({name}(np.ones(3))))
"""


def test_a_cache_with_types_that_are_gone_is_compiled_anew(tmp_path: Path) -> None:
    own = {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": os.pathsep.join((str(tmp_path), str(ROOT)))}
    program = tmp_path / "typed.py"
    for name, number, expected in (("Before", 0, "3.0\n"), ("After", 10, "13.0\n")):
        program.write_text(TYPED.format(name=name, number=number))
        done = run("import typed", **own)
        assert done.stdout == expected and "compiling kernels" in done.stderr
    assert run("import typed", **own).stderr == ""


def test_numbas_own_pipeline_where_its_internals_are_missing(tmp_path: Path) -> None:
    code, environment = module(tmp_path)
    missing = f"import sys; sys.modules['circuitsim._compile'] = None; {code}"
    done = run(missing, **environment)
    assert done.stdout == "6.0 1.0 2.0 [1.0, 2.0, 3.0, 4.0]\ntoo long\n"
    assert done.stderr.count("compiling kernels, once") == 1


def test_where_nothing_can_be_cached(tmp_path: Path) -> None:
    """Neither beside the source nor in a home of the user: compiled in each process, which is said once."""
    code, environment = module(tmp_path)
    (tmp_path / "__pycache__").write_text("a file where a directory would have to be")
    lost = {"HOME": "/proc/none", "XDG_CACHE_HOME": "/proc/none", "NUMBA_CACHE_DIR": "/proc/none"}
    for _ in range(2):
        done = run(code, **{**environment, **lost, "PYTHONDONTWRITEBYTECODE": "1"})
        assert done.stdout.startswith("6.0 1.0 2.0")
        assert done.stderr.count("in each process anew") == 1


def test_numba_is_bound_to_versions_whose_internals_are_known() -> None:
    bound = (ROOT / "setup.cfg").read_text()
    assert "numba>=0.68,<0.69" in bound
    assert tuple(int(part) for part in numba.__version__.split(".")[:2]) < (0, 69)
    assert _jit.Kernel is not None


SIZES = """
import json
from numba.core.codegen import JITCodeLibrary
from circuitsim.analysis.solve import prepared
from circuitsim.bench.families import make
from circuitsim.engine.small import kernels

JITCodeLibrary._optimize_final_module = lambda library: None  # half of the time, and sizes are those before it
kernels.load()
prepared(make("ladder", 12, 0)).solve()
for name in ("prepare", "solve_once"):
    found = kernels.small_kernel.compiled(name).overloads.values()
    print(json.dumps([name, [[one.metadata["parts"], one.metadata["bytes of bitcode"]] for one in found]]))
"""

MOST = {"prepare": (60, 165_000), "solve_once": (71, 316_000)}
"""Functions linked together, and bytes of bitcode to optimise: what compilation takes, whatever the machine."""


def test_how_much_there_is_to_compile(tmp_path: Path) -> None:
    done = run(SIZES, NUMBA_CACHE_DIR=str(tmp_path))
    found = dict(json.loads(line) for line in done.stdout.splitlines())
    assert found.keys() == MOST.keys()
    for name, overloads in found.items():
        assert len(overloads) == 1, f"{name} is compiled for several types of arguments"
        parts, size = overloads[0]
        assert 0.5 * MOST[name][0] < parts <= MOST[name][0]
        assert 0.5 * MOST[name][1] < size <= MOST[name][1]


WAVES = """
import json, sys
from numba.core.codegen import JITCodeLibrary
from circuitsim.netlist import load
from circuitsim import transient
from circuitsim.time_domain.kernels import KERNELS, time_kernel

JITCodeLibrary._optimize_final_module = lambda library: None
for name in ("advance", "advance_decays", "evaluate_decays"):
    time_kernel._ready[name] = time_kernel.compiled(name)
for deck in DECKS:
    transient(load(deck))
for name, kernel in time_kernel._compiled.items():
    found = kernel.overloads.values()
    if found:
        print(json.dumps([name, [[one.metadata["parts"], one.metadata["bytes of bitcode"]] for one in found]]))
"""
MOST_OF_WAVES = {"advance": (90, 280_000), "advance_decays": (114, 384_000), "evaluate_decays": (25, 122_000)}


def test_how_much_there_is_to_compile_of_waveforms(tmp_path: Path) -> None:
    """What a run of thousands of segments compiles; the kernels of its few modes stay interpreted."""
    decks = [str(ROOT / f"netlists/{name}.cir") for name in ("half-wave-smoothed", "buck-converter")]
    code = WAVES.replace("DECKS", repr(decks))
    found = dict(json.loads(line) for line in run(code, NUMBA_CACHE_DIR=str(tmp_path)).stdout.splitlines())
    assert found.keys() == MOST_OF_WAVES.keys()
    for name, overloads in found.items():
        assert len(overloads) == 1, f"{name} is compiled for several types of arguments"
        parts, size = overloads[0]
        assert 0.5 * MOST_OF_WAVES[name][0] < parts <= MOST_OF_WAVES[name][0]
        assert 0.5 * MOST_OF_WAVES[name][1] < size <= MOST_OF_WAVES[name][1]


@pytest.mark.parametrize(
    "name",
    [
        "half-wave-smoothed",
        "rectifier-bridge-smoothed",
        "buck-converter",
        "cockcroft-walton",
    ],
)
def test_first_waveforms_compile_nothing(tmp_path: Path, name: str) -> None:
    deck = ROOT / "netlists" / f"{name}.cir"
    code = f"from circuitsim.cli import main; raise SystemExit(main(['tran', {str(deck)!r}, '--format', 'csv']))"
    done = run(code, NUMBA_CACHE_DIR=str(tmp_path / "cache"))
    assert len(done.stdout.splitlines()) > 400
    assert "compiling" not in done.stderr
    assert not list(tmp_path.glob("cache/*/*"))


def test_a_single_deck_of_two_thousand_nodes_compiles_nothing(tmp_path: Path) -> None:
    (tmp_path / "mesh.cir").write_text(dumps(make("grid", 2_000, 0)))
    code = "from circuitsim.cli import main; raise SystemExit(main(['solve', 'mesh.cir', '--format', 'csv']))"
    done = run(f"import os; os.chdir({str(tmp_path)!r}); {code}", NUMBA_CACHE_DIR=str(tmp_path / "cache"))
    assert "compiling" not in done.stderr
    assert not list(tmp_path.glob("cache/*/*"))


INDICES = """
import numba, numpy as np
from circuitsim._jit import jit

def plain(a, i):
    return a[i] + 10.0 * a[-1]

plain.__module__ = "circuitsim.kernel"
ours, theirs = jit()(plain), numba.njit(plain)
a = np.array([1.0, 2.0, 3.0])
print([ours(a, k) for k in range(3)])
try:
    print(theirs(a, -1) if numba.config.BOUNDSCHECK is None else ours(a, -1))
except IndexError as error:
    print(error)
"""


def test_only_constant_indices_count_from_the_end() -> None:
    """In kernels of this package; a run with tests of all indices refuses others."""
    done = run(INDICES, NUMBA_CACHE_DIR="")
    assert done.stdout.split("\n") == ["[31.0, 32.0, 33.0]", "33.0", ""]
    done = run(INDICES, NUMBA_CACHE_DIR="", NUMBA_BOUNDSCHECK="1")
    assert done.stdout.split("\n") == ["[31.0, 32.0, 33.0]", "index is out of bounds", ""]


def _stretches(a: np.ndarray, m: np.ndarray, first: int, stop: int) -> tuple[np.ndarray, float]:
    """Slices and rows that outlive what they are of, ranges of all kinds, arrays taken in turns."""
    b, c = np.zeros(a.size), np.ones(a.size)
    total = 0.0
    for step in range(3):
        b, c = c, b
        part = b[first:stop] if step % 2 == 0 else a[step:]
        for k in range(part.size - 1, -1, -1):
            part[k] += m[step, -1] + k
            total += part[k]
        row = m[step]
        for k in range(1, row.size, 2):
            total -= row[k] * m[step][:stop][0]
        c = np.copy(part) if step == 1 else c
        for k in range(len(c)):
            total += c[k]
    for k in range(stop, first):
        total += k
    return (a if total > 1e9 else b)[first:][:stop], total


@pytest.mark.parametrize(("first", "stop"), [(0, 5), (2, 4), (-3, -1), (-9, 99), (4, 2)])
def test_values_in_place_of_variables(first: int, stop: int) -> None:
    """Arrays, slices, rows and loops as interpreted, and every array freed (`circuitsim._lowering`)."""
    kernel = _jit.jit(fastmath=False)(_stretches)
    given = [(np.arange(5.0), np.arange(12.0).reshape(3, 4), first, stop) for _ in range(3)]
    expected, total = _stretches(*given[0])
    kernel(*given[1])
    _nrt_python.memsys_enable_stats()
    before = rtsys.get_allocation_stats()
    found, same = kernel(*given[2])
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(given[2][0], given[0][0])
    assert same == total
    del found
    after = rtsys.get_allocation_stats()
    _nrt_python.memsys_disable_stats()
    assert after.alloc - before.alloc == after.free - before.free > 0
