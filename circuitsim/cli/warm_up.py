"""``circuitsim warm-up``: compile all kernels ahead of their first use."""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from circuitsim.circuit.elements import VOLTAGE

EPILOG = """\
Kernels are compiled at their first use and stored on disk, for this processor and this version. Decks of up to some
thousand nodes run without compiled kernels until there are some, so this command is never needed: it spares large
decks, long sweeps and training a wait of some seconds each.

Kernels are stored beside the program, in the user's cache directory, or in the directory NUMBA_CACHE_DIR. Run this
command with the same setting, and as the user, that will run circuitsim (when a container image is built, for example).

examples:
  circuitsim warm-up
  circuitsim warm-up --only solve
  NUMBA_CACHE_DIR=/opt/kernels circuitsim warm-up
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``warm-up``."""
    parser.epilog = EPILOG
    parser.add_argument(
        "--only",
        metavar="PART",
        action="append",
        choices=tuple(PARTS),
        help=f"one of {', '.join(PARTS)}; may be repeated",
    )


def run(args: argparse.Namespace) -> int:
    """Compile the kernels, with one line a part on stderr, and print the seconds."""
    from circuitsim.controlled.kernels import controlled_kernel
    from circuitsim.engine.small.kernels import load

    begin = time.perf_counter()
    load()
    controlled_kernel.load()
    chosen = args.only or list(PARTS)
    for k, name in enumerate(chosen):
        print(f"{k + 1}/{len(chosen)} {name} …", file=sys.stderr, flush=True)
        start = time.perf_counter()
        left_out = PARTS[name]()
        note = f" ({left_out})" if left_out else ""
        print(f"{k + 1}/{len(chosen)} {name}: {time.perf_counter() - start:.1f} s{note}", file=sys.stderr, flush=True)
    print(f"kernels ready after {time.perf_counter() - begin:.1f} s")
    return 0


def _solve() -> str:
    """Circuits of every kind with code of its own in the solvers, small and large, and new values."""
    from circuitsim.analysis.solve import prepared
    from circuitsim.bench.families import make

    for family, unknowns in DECKS:
        ready = prepared(make(family, unknowns, 0))
        ready.solve(start=ready.solve())
    prepared(make("grid", 300, 0), "coordinate-descent").solve()
    return ""


DECKS = (
    ("grid", 700),
    ("grid-scaled", 100),
    ("crossbar-1d1r", 600),
    ("drn", 200),
    ("erdos-renyi", 1_000),
    ("grid", 20_500),
    ("erdos-renyi", 6_000),
    ("crossbar", 20_500),
    ("op-amp-stages", 300),
)
"""Families and sizes (`circuitsim.bench.families`) whose solves use all kernels of the solvers."""


def _sweep() -> str:
    """Batches of samples, dense and sparse in diodes, large and linear, and their linear responses."""
    import numpy as np

    import circuitsim
    from circuitsim.bench.families import make

    for family, unknowns, samples in BATCHES:
        circuit = make(family, unknowns, 0)
        sources = [name for name, kind in zip(circuit.names, circuit.arrays().kind.tolist()) if kind == VOLTAGE]
        batch = circuitsim.batched(circuit, sources, [(circuit.node_names[-1], circuit.node_names[0])])
        values = circuit.arrays().value[[circuit.element_index(name) for name in sources]]
        solution = batch.solve(np.repeat(values[None], samples, axis=0))
        batch.adjoint(solution, np.ones((samples, 1)))
    return _commands(
        "sweep {out}/deck.cir --vary V1=-5:5:0.001 --format csv",
        "train circuit {out}/deck.cir --data {out}/data.csv --epochs 1 --out {out}/deck",
    )


BATCHES = (("grid", 700, 2), ("crossbar", 4_500, 2), ("grid", 4_500, 1))
"""Families, sizes and samples of batches: in one kernel, with one factor for all, with a factor each."""


def _convolution() -> str:
    """Convolutions and pooling of images, forwards and backwards, in both precisions."""
    import numpy as np

    from circuitsim.blocks import convolution, winograd

    window = convolution.Window()
    for dtype in (np.float32, np.float64):
        images, kernel = np.zeros((1, 4, 4, 1), dtype), np.zeros((9, 2), dtype)
        above = convolution.convolve(images, kernel, window)
        convolution.max_pool(above)
        convolution.convolve_back(above, kernel, window, images)
        images = np.zeros((1, 8, 8, 16), dtype)
        winograd.convolve(images, winograd.transformed(np.zeros((9 * 16, 16), dtype)), images.copy())
    return ""


def _rbm() -> str:
    return _commands("train rbm --dataset digits --hidden 8 --epochs 1 --out {out}/rbm")


def _layered() -> str:
    return _commands(
        "train drn --preset drn-xs --dataset digits --epochs 1 --input-gain 30 --out {out}/drn",
        "train dhn --preset dhn-1h --dataset digits --epochs 1 --hidden 8 --out {out}/dhn",
    )


def _chain() -> str:
    return _commands("train ffebm --dataset digits --epochs 1 --out {out}/chain")


def _devices() -> str:
    """Smooth devices: an operating point, samples, and gradients by the parameters of their laws."""
    from circuitsim.analysis.solve import prepared
    from circuitsim.bench.families import make
    from circuitsim.newton.kernels import newton_kernel
    from circuitsim.time_domain.stage_kernels import stage_kernel

    newton_kernel.load()
    stage_kernel.load()
    prepared(make("shockley-grid", 100, 0)).solve()
    return _commands(
        "train circuit {out}/junction.cir --data {out}/data.csv --epochs 1 --out {out}/ep",
        "train circuit {out}/junction.cir --data {out}/data.csv --epochs 1 --method implicit --out {out}/implicit",
    )


DECK = """A voltage divider with a diode, to sweep and to train
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
JUNCTION_DECK = DECK.replace("*! trainable", "*! trainable D1.is min=1f max=1u\n*! trainable").replace(
    "ideal D\n", "ideal D(IS=1p)\n"
)
DATA = "V1,v(out)\n2,1.4\n1,0.7\n-1,-0.2\n"


def _tran() -> str:
    """Waveforms that decay, waveforms that may ring, and those of a large circuit."""
    from circuitsim import Circuit
    from circuitsim.time_domain import Sine, transient
    from circuitsim.time_domain.kernels import time_kernel

    time_kernel.load()
    ladder = Circuit()
    ladder.voltage_source("V1", "n0", "0", 0.0)
    for k in range(LADDER):
        ladder.resistor(f"R{k}", f"n{k}", f"n{k + 1}", 1.0)
        ladder.add("C", f"C{k}", f"n{k + 1}", "0", 1e-3)
    ladder.diode("D1", "n9", "0")
    transient(ladder, 1e-3, {"V1": Sine(0.0, 1.0, 1e3)}, points=3, method="implicit", accuracy=1e-2)
    return _commands("tran {out}/time.cir --format csv", "tran {out}/ringing.cir --format csv")


LADDER = 10_001
"""Sections of a ladder with capacitors that are too many for one kernel."""
TIME_DECK = """A smoothed rectifier
V1 in 0 SIN(0 1 50)
D1 in out ideal
C1 out 0 10u
R1 out 0 1k
.model ideal D
.tran 1m 40m
"""
RINGING_DECK = TIME_DECK.replace("D1 in out", "L1 in a 1m\nD1 a out")


PARTS: dict[str, Callable[[], str]] = {
    "solve": _solve,
    "sweep": _sweep,
    "devices": _devices,
    "tran": _tran,
    "rbm": _rbm,
    "layered": _layered,
    "chain": _chain,
    "convolution": _convolution,
}
"""Parts of the program and what uses their kernels; each returns what it had to leave out."""


def _commands(*lines: str) -> str:
    """Run commands in a temporary folder, without their output."""
    from circuitsim.cli import main

    with tempfile.TemporaryDirectory() as out:
        Path(out, "deck.cir").write_text(DECK)
        Path(out, "junction.cir").write_text(JUNCTION_DECK)
        Path(out, "time.cir").write_text(TIME_DECK)
        Path(out, "ringing.cir").write_text(RINGING_DECK)
        Path(out, "data.csv").write_text(DATA)
        for line in lines:
            words = [word.format(out=out) for word in line.split()]
            errors = io.StringIO()
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
                code = main(words)
            if code:
                return f"{words[0]}: {errors.getvalue().strip().splitlines()[-1]}"
    return ""
