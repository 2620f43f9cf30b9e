"""``circuitsim warm-up``: compile kernels ahead of their first use."""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
import time
from argparse import Namespace
from pathlib import Path

from circuitsim.cli.options import command

DIVIDER = """A voltage divider with a diode, to sweep and to train
*! input V1
*! output v(out)
*! trainable R* min=10 max=100k
V1 in 0 1
R1 in out 1k
R2 out 0 1k
R3 in b 1k
R4 b 0 1k
D1 b out ideal
.model ideal D
"""
RECTIFIER = """A smoothed rectifier
V1 in 0 SIN(0 1 50)
D1 in out ideal
C1 out 0 10u
R1 out 0 1k
.model ideal D
.tran 1m 40m
"""
AMPLIFIER = """An inverting amplifier with diodes in feedback and a load that is charged through a junction diode
*! input V1
V1 in 0 SIN(0 1 1k)
R1 in m 1k
R2 m out 10k
D1 m out ideal
E1 out 0 0 m 1e5
D2 out c junction
C1 c 0 1u
R3 c 0 1k
.model ideal D
.model junction D(IS=1p)
.tran 10u 2m
"""
PARALLEL = """Sources and ideal diodes in loops
V1 a 0 1
V2 a 0 1
D1 a b ideal
D2 a b ideal
D3 b c ideal
D4 a c ideal
R1 b 0 1k
R2 c 0 1k
.model ideal D
"""
SIDE = 145
"""Nodes along an edge of a mesh that is too large for the kernels of small circuits."""

COMMANDS = (
    "solve mesh.cir --format csv",
    "sweep divider.cir --vary V1=-5:5:0.001 --format csv",
    "tran rectifier.cir --format csv",
    "tran ringing.cir --format csv",
    "solve amplifier.cir --format csv",
    "tran amplifier.cir --format csv",
    "solve parallel.cir --format csv",
    "train circuit divider.cir --data data.csv --epochs 1 --out ideal",
    "train circuit junction.cir --data data.csv --epochs 1 --out junction",
    "train drn --preset drn-xs --dataset digits --epochs 1 --input-gain 30 --out drn",
    "train dhn --preset dhn-1h --dataset digits --epochs 1 --hidden 8 --out dhn",
    "train ffebm --dataset digits --epochs 1 --out chain",
    "train rbm --dataset digits --hidden 8 --epochs 1 --out rbm",
)
"""A solve, a batch, waveforms, controlled sources, loops of diodes, a training step of each kind of model."""


@command(
    "",
    """\
Compiles the kernels that are otherwise compiled at first use (about two minutes) and caches them for this
processor and version: beside the program, in the user's cache folder, or in NUMBA_CACHE_DIR.

examples:
  circuitsim warm-up
  NUMBA_CACHE_DIR=/opt/kernels circuitsim warm-up
""",
)
def run_warm_up(args: Namespace) -> int:
    """Compile the kernels, with one line per command on stderr, and print the seconds."""
    from circuitsim.kernels import compile_at_once

    begin = time.perf_counter()
    compile_at_once()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        _write_files()
        for k, line in enumerate(COMMANDS, 1):
            start = time.perf_counter()
            left_out = _failure(line.split())
            took = f"{time.perf_counter() - start:.1f} s"
            print(f"{k}/{len(COMMANDS)} {line}: {left_out or took}", file=sys.stderr, flush=True)
    print(f"kernels ready after {time.perf_counter() - begin:.1f} s")
    return 0


def _write_files() -> None:
    """Write the decks and data of the commands into the working directory."""
    right = [f"R{k} {k} {k + 1} 1" for k in range(SIDE * SIDE) if (k + 1) % SIDE]
    down = [f"RD{k} {k} {k + SIDE} 1" for k in range(SIDE * (SIDE - 1))]
    diodes = [f"D{k} {k} 0 ideal" for k in range(1, SIDE * SIDE, SIDE)]
    junction = DIVIDER.replace("*! trainable", "*! trainable D1.is min=1f max=1u\n*! trainable")
    files = {
        "mesh.cir": "\n".join(["A mesh", f"I1 0 {SIDE * SIDE - 1} 1", *right, *down, *diodes, ".model ideal D", ""]),
        "divider.cir": DIVIDER,
        "junction.cir": junction.replace("ideal D\n", "ideal D(IS=1p)\n"),
        "rectifier.cir": RECTIFIER,
        "amplifier.cir": AMPLIFIER,
        "parallel.cir": PARALLEL,
        "ringing.cir": RECTIFIER.replace("D1 in out", "L1 in a 1m\nD1 a out"),
        "data.csv": "V1,v(out)\n2,1.4\n1,0.7\n-1,-0.2\n",
    }
    for name, text in files.items():
        Path(name).write_text(text)


def _failure(words: list[str]) -> str:
    """Run a command without its output; returns the last line of its message if it fails."""
    from circuitsim.cli import main

    errors = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
        code = main(words)
    return errors.getvalue().strip().splitlines()[-1] if code else ""
