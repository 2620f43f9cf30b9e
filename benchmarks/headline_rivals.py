"""Times of other programs on the circuits of `headline_worker.py`, by the same protocol: a line of JSON in, one out.

A rival that is not installed is an error that says "… is missing".
"""

from __future__ import annotations

import functools
import itertools
import math
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import circuits
import numpy as np
from headline_worker import POOLS, Action, circuit_of, median, pictures, rectified, serve

LIMIT = 300.0
"""Longest run of ngspice, s."""


class Missing(Exception):
    """Something that is not installed."""


def need(*packages: str) -> None:
    """Refuse without these packages, or programs."""
    for name in packages:
        if find_spec(name) is None and shutil.which(name) is None:
            raise Missing(f"{name} is missing")


def whole(name: str, circuit: Any, tolerance: float | None) -> float:
    """Processor seconds from a circuit in memory to node voltages, the modelling included."""
    from circuitsim.bench.runner import create

    began = time.process_time()
    create(name)(circuit, tolerance)()
    return time.process_time() - began


def cvxpy(side: int) -> Action:
    """The fastest backend of cvxpy whose error, beside circuitsim's certified answer, is at most 1e-6; as a whole."""
    need("cvxpy")
    from cvxpy_backends import accurate, names

    circuit, tried = circuit_of(circuits.mesh(side)), []
    for name in names(parametrised=False):
        entry = accurate(name, circuit)[1]
        if entry.good:
            tried.append((min(whole(name, circuit, entry.tolerance) for _ in range(3)), name, entry.tolerance))
    if not tried:
        raise Missing("a backend of cvxpy that reaches an error of 1e-6 is missing")
    _, name, tolerance = min(tried, key=lambda one: one[0])
    return lambda _: {"seconds": whole(name, circuit, tolerance), "which": name}


IDEAL = ".model ideal D(is=1e-18 n=0.003)\n.options gmin=1e-21 reltol=1e-6 abstol=1e-18 vntol=1e-9\n"
TIGHT = ".options gmin=1e-30 reltol=1e-10 abstol=1e-18 vntol=1e-14\n"


def ngspice(text: str) -> float:
    """Processor seconds of a run; an error where it finds nothing."""
    need("ngspice")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "deck.cir").write_text(text, encoding="ascii")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        words = ["ngspice", "-b", "deck.cir"]
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, timeout=LIMIT)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if "found =" not in done.stdout:
        raise ArithmeticError(f"ngspice found no operating point: {(done.stdout + done.stderr)[-200:]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def inside(text: str, turn: str, node: str, more: int) -> Action:
    """Seconds of one turn inside a running ngspice: what so many more turns take, each."""

    def run(repeats: int) -> float:
        loop = f".control\nrepeat {repeats}\n{turn}\nend\nlet found = v({node})\nprint found\nquit\n.endc\n.end\n"
        return ngspice(text + loop)

    run(1)
    return lambda _: {"seconds": max(run(1 + more) - run(1), 1e-9) / more}


def ngspice_values(circuit: str, size: int) -> Action:
    """``.op`` repeated in one process: near-ideal diodes, or the deck's own junctions at tight tolerances."""
    text = getattr(circuits, circuit)(size)
    if circuit == "mesh":
        lines = [f"{line} ideal" if line[0] == "D" else line for line in text.splitlines()]
        text = "\n".join([*lines, IDEAL])
    else:
        text += TIGHT
    nodes = size**2 if circuit == "mesh" else size
    return inside(text, "op", "2", max(3, 20_000 // nodes))


def ngspice_turned(size: int, more: int = 40) -> Action:
    """``alter`` and ``.op`` in one process."""
    lines = [f"{line} ideal" if line[0] == "D" else line for line in circuits.stages(size).splitlines()]
    turn = "\n".join(f"alter v0 = {volts}\nop" for volts in (1.5, -2.5, 3.5, -0.5))
    once = inside("\n".join([*lines, IDEAL]), turn, f"d{size}", more // 4)
    return lambda budget: {"seconds": once(budget)["seconds"] / 4.0}


def bernoulli(batch: int, samples: int) -> Action:
    """An epoch of scikit-learn's BernoulliRBM."""
    need("sklearn")
    from sklearn.neural_network import BernoulliRBM

    x = pictures(samples)
    made = functools.partial(BernoulliRBM, 256, learning_rate=0.05, batch_size=batch, n_iter=1, random_state=0)
    return lambda budget: {"seconds": median(lambda: made().fit(x), budget)}


def torch_convolution(batch: int, sweeps: int) -> Action:
    """The same sweeps of the same block by PyTorch, one thread."""
    need("torch")
    import torch

    functional = torch.nn.functional
    torch.set_num_threads(1)
    shapes = [(128, 16, 16), (256, 8, 8), (256, 4, 4), (512, 2, 2), (512, 2, 2)]
    generator = torch.Generator().manual_seed(0)
    kernels = [torch.randn(b[0], a[0], 3, 3, generator=generator) * 0.03 for a, b in itertools.pairwise(shapes)]
    dense, first = (
        torch.randn(2048, 256, generator=generator) * 0.03,
        torch.randn(batch, *shapes[0], generator=generator),
    )

    @torch.no_grad()
    def call() -> None:
        states = [torch.zeros((batch, *shape)) for shape in shapes] + [torch.zeros((batch, 256))]
        places: list[Any] = [None] * 4
        for _ in range(sweeps):
            for layer in (0, 2, 4, 1, 3, 5):
                pull: Any = first if layer == 0 else 0
                if layer == 5:
                    pull = states[4].reshape(batch, -1) @ dense
                elif layer > 0:
                    pull = functional.conv2d(states[layer - 1], kernels[layer - 1], padding=1)
                    if POOLS[layer - 1]:
                        pull, places[layer - 1] = functional.max_pool2d(pull, 2, return_indices=True)
                if layer == 4:
                    pull = pull + (states[5] @ dense.T).reshape(batch, 512, 2, 2)
                elif layer < 4 and not (POOLS[layer] and places[layer] is None):
                    above = states[layer + 1]
                    above = functional.max_unpool2d(above, places[layer], 2) if POOLS[layer] else above
                    pull = pull + functional.conv_transpose2d(above, kernels[layer], padding=1)
                states[layer] = torch.clamp(pull, 0, 1)

    call()
    return lambda budget: {"seconds": median(call, budget)}


class Setting(NamedTuple):
    """Of ngspice over time: the diode's model, the method, the relative tolerance and the least number of steps."""

    diode: str
    method: str
    tolerance: float
    steps: int


SETTINGS = [
    Setting(diode, method, tolerance, steps)
    for diode in (
        "sidiode(Roff=1e12 Ron=1e-2 Vfwd=0)",
        "sidiode(Roff=1e12 Ron=1e-3 Vfwd=0)",
        "sidiode(Roff=1e12 Ron=1e-5 Vfwd=0)",
        "D(IS=1e-12 N=0.0005)",
    )
    for method in ("trap", "gear")
    for tolerance, steps in ((1e-3, 1000), (1e-4, 4000), (1e-5, 20_000), (1e-6, 100_000))
]
ERRORS = 1e-2, 1e-3, 1e-4, 1e-5, 1e-6
STOP, SLOWEST = 0.2, 20.0
"""Ten periods, s; longest run of ngspice that counts, s."""


def waveform_deck(name: str, of: Setting, out: Path) -> str:
    """The deck of a rectifier for ngspice."""
    text, _, pair = circuits.RECTIFIERS[name]
    lines = []
    for line in text.splitlines():
        letter = line[:1]
        if letter == "D":
            line = ("a" if of.diode.startswith("sidiode") else "") + f"{line} ideal"
        elif letter == "V":
            line = f"{line.rsplit(' ', 1)[0]} SIN(0 10 50 0 0 {-120 * int(line[1])})"
        lines.append(line + " ic=0" * (letter == "C"))
    step, least = STOP / of.steps, of.tolerance
    shown = f"v({pair[0]})" + ("" if pair[1] == "0" else f"-v({pair[1]})")
    lines += [f".model ideal {of.diode}", f".tran {step} {STOP} 0 {step} uic"]
    lines += [
        f".options reltol={least} abstol={1e-9 * least} vntol={1e-3 * least} chgtol={1e-11 * least} method={of.method}"
    ]
    lines += [".control", "set wr_singlescale", "set numdgt=12", "run", f"wrdata {out} {shown}", ".endc", ".end", ""]
    return "\n".join(lines)


def spent(text: str, folder: Path) -> float:
    """Processor seconds of ngspice on a deck; infinite where it does not end."""
    (folder / "deck.cir").write_text(text)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        subprocess.run(["ngspice", "-b", "deck.cir"], cwd=folder, capture_output=True, check=False, timeout=SLOWEST)
    except subprocess.TimeoutExpired:
        return math.inf
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@functools.cache
def waveform_runs(name: str) -> list[tuple[float, float, Setting]]:
    """Error (of the largest output, against the exact waveform), seconds and setting of every run that ends."""
    need("ngspice")
    exact, pair, found = rectified(name), circuits.RECTIFIERS[name][2], []
    with tempfile.TemporaryDirectory() as folder:
        for of in SETTINGS:
            out = Path(folder, "waves.txt")
            out.unlink(missing_ok=True)
            taken = spent(waveform_deck(name, of, out), Path(folder))
            if math.isinf(taken) or not out.exists():
                continue
            times, volts = np.loadtxt(out)[:, :2].T
            if times[-1] >= 0.999 * STOP:
                known = times <= STOP
                ideal = exact.voltage(*pair, times=times[known])
                found.append((float(np.abs(volts[known] - ideal).max() / np.abs(ideal).max()), taken, of))
    return found


def ngspice_rectifier(name: str, error: float) -> Action:
    """The fastest run of ngspice within an error, less the start of the program; ``error`` 0 asks for the smallest."""
    runs = waveform_runs(name)
    error = max(error, min(off for off, *_ in runs))
    off, _, of = min((one for one in runs if one[0] <= error), key=lambda one: one[1])

    def go(_: float) -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            empty = spent("start\nV1 a 0 1\nR1 a 0 1\n.op\n.end\n", Path(folder))
            taken = spent(waveform_deck(name, of, Path(folder, "waves.txt")), Path(folder))
        which = f"{of.diode}, {of.method}, reltol {of.tolerance:g}, {of.steps:,} steps, error {off:.1e}"
        return {"seconds": taken - empty, "which": which}

    return go


TASKS: dict[str, Callable[..., Action]] = {
    made.__name__: made
    for made in (cvxpy, ngspice_values, ngspice_turned, bernoulli, torch_convolution, ngspice_rectifier)
}

if __name__ == "__main__":
    serve(TASKS)
