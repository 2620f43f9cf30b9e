"""How fast layered networks train, beside what the machine can do and beside C, all in one run.

    python benchmarks/layered/speed.py --dataset mnist [--data-dir DIR] [--threads 2] [--out FILE.md]

Times are processor time of this thread (wall-clock time with --threads 2), the least and the median of many short
windows. The C pass needs gcc and is left out where there is none.
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import os
import platform
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numba
import numpy as np

from circuitsim._vectors import add, aligned, fma, kernel, maximum, splat, store, sub
from circuitsim._vectors import load as load_vector
from circuitsim.datasets import choose, load
from circuitsim.layered import tiles
from circuitsim.layered.architecture import published_models
from circuitsim.layered.engine import Engine
from circuitsim.layered.network import initial_parameters
from circuitsim.layered.tiles import all_tiles

HERE = Path(__file__).parent
LANES = 16
MODELS = {"drn-xs": 400, "drn-1h": 40, "drn-2h": 8, "drn-3h": 5, "drn-xl": 2}


@kernel()
def multiply(x, turns):
    """12 independent chains of fused multiply-adds in registers."""
    a = b = c = d = e = f = g = h = i = j = k = m = load_vector(x, 0, LANES)
    w, y = load_vector(x, LANES, LANES), load_vector(x, 2 * LANES, LANES)
    for _ in range(turns):
        a, b, c, d, e, f = fma(w, y, a), fma(w, y, b), fma(w, y, c), fma(w, y, d), fma(w, y, e), fma(w, y, f)
        g, h, i, j, k, m = fma(w, y, g), fma(w, y, h), fma(w, y, i), fma(w, y, j), fma(w, y, k), fma(w, y, m)
    s = add(add(add(a, b), add(c, d)), add(add(e, f), add(g, h)))
    store(x, 0, add(s, add(add(i, j), add(k, m))))


@kernel()
def stream(x, q):
    """Read and write all of an array in order, with next to no arithmetic: what the pass could reach at best."""
    zero, drop = splat(x.dtype.type(0), 32), splat(q, 32)
    for i in range(0, x.size, 64):
        store(x, i, maximum(sub(load_vector(x, i, 32), drop), zero))
        store(x, i + 32, maximum(sub(load_vector(x, i + 32, 32), drop), zero))


@kernel()
def many_passes(start, count, memory, width, slots, pixels, shift, drop, unit, sums, product):
    """Passes over one mini-batch after the other."""
    for i in range(start, start + count):
        k = i % (len(slots) - 1)
        all_tiles(memory, width, 4, slots[k], pixels[k], slots[k + 1], pixels[k + 1], shift, drop, unit, sums, product)


def windows(clock: Callable[[], float], calls: dict[str, Callable[[], object]], rounds: int) -> dict[str, np.ndarray]:
    """Seconds of each call, taken in turns, so that all see the same machine."""
    found: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(rounds):
        for name, call in calls.items():
            begun = clock()
            call()
            found[name].append(clock() - begun)
    return {name: np.array(times) for name, times in found.items()}


def compiled_c() -> ctypes.CDLL | None:
    """The pass in C, or None without a compiler."""
    compiler = shutil.which("gcc")
    if compiler is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "tile_pass.so"
        options = ["-O3", "-march=native", "-mprefer-vector-width=512", "-ffp-contract=fast", "-shared", "-fPIC"]
        subprocess.run([compiler, *options, str(HERE / "tile_pass.c"), "-o", str(library)], check=True)
        return ctypes.CDLL(str(library))


def passes(name: str, images: np.ndarray, library: ctypes.CDLL | None, rounds: int) -> list[str]:
    """The pass over the first layer: ours, C, and a mere stream over the same memory."""
    preset = published_models()[name]
    engine = Engine(preset.architecture, preset.learning, 4)
    engine.set(initial_parameters(preset.architecture, np.random.default_rng(0), np.float32))
    m, width, depth = engine.memory, int(engine.layout.width[1]), images.shape[1]
    rng = np.random.default_rng(1)
    rows = rng.permutation(len(images))[:400].reshape(-1, 4)
    slots = np.empty((len(rows), depth), np.int32)
    pixels = aligned(len(rows) * 4 * depth, np.float32).reshape(len(rows), -1)
    for k, some in enumerate(rows):
        tiles.gather_nonzero_inputs(images, some, 4, 4, m.levels, slots[k], pixels[k], m.where)
    shift, drop = rng.normal(0, 1e-6, 4 * width).astype(np.float32), np.zeros(width, np.float32)
    count, at = MODELS[name], iter(range(10**9))

    def ours() -> None:
        start = next(at) * count % (len(rows) - 1)
        many_passes(start, count, m.tiles, width, slots, pixels, shift, drop, m.levels[255], m.tile_sums, m.product)

    def pointers(*arrays: np.ndarray) -> list[ctypes.c_void_p]:
        return [ctypes.c_void_p(array.ctypes.data) for array in arrays]

    # Made once: converting arguments is no part of the pass.
    fixed, paired = pointers(shift, drop, m.tile_sums, m.product), [pointers(*batch) for batch in zip(slots, pixels)]
    # C knows whole tiles only: where our last one is half, it gets memory of its own, and the ratio is for each column.
    columns = m.tiles.size // (2 * depth)
    foreign = m.tiles if columns == width else aligned(2 * depth * width, np.float32)
    place = pointers(foreign)[0]

    def c() -> None:
        for _ in range(count):
            k = next(at) % (len(rows) - 1)
            library.tile_pass(place, width // 32, depth, *paired[k], *paired[k + 1], *fixed, width)

    def least() -> None:
        for _ in range(count):
            stream(m.tiles, np.float32(0))

    calls = {"ours": ours, "stream": least} | ({"c": c} if library else {})
    times = {key: value / count for key, value in windows(time.thread_time, calls, rounds).items()}
    size = 2 * m.tiles.nbytes

    def cell(key: str) -> str:
        return f"{1e6 * times[key].min():.4g}" if key in times else ""

    ratio = f"{np.median(times['ours'] / times['c']) * width / columns:.2f}" if "c" in times else ""
    share = np.median(times["stream"] / times["ours"])
    rate = size / times["ours"].min() / 1e9
    return [preset.title, f"{size / 2**20:.3g}", cell("ours"), cell("c"), ratio, f"{rate:.3g}", f"{100 * share:.0f} %"]


def whole_steps(name: str, images: np.ndarray, labels: np.ndarray, threads: int, rounds: int) -> list[str]:
    """Whole training steps, and how much of the machine's multiplications and memory they use."""
    preset = published_models()[name]
    engine = Engine(preset.architecture, preset.learning, 4, np.float32, threads)
    engine.set(initial_parameters(preset.architecture, np.random.default_rng(0), np.float32))
    order, count = np.random.default_rng(1).permutation(len(images)), MODELS[name]
    engine.train(images, labels, order[:400] if count > 10 else order[:40], preset.weight_rates, preset.bias_rates)
    at = iter(range(10**9))

    def train() -> None:
        start = next(at) * 4 * count % (len(order) - 4 * count)
        engine.train(images, labels, order[start : start + 4 * count], preset.weight_rates, preset.bias_rates)

    clock = time.thread_time if threads == 1 else time.perf_counter
    vector = aligned(3 * LANES, np.float32)
    calls = {"train": train, "multiply": lambda: multiply(vector, 20_000)}
    times = windows(clock, calls, rounds)
    step = times["train"] / count
    units, t, k = preset.architecture.units, preset.learning.sweeps, preset.learning.nudged_sweeps
    inner = sum(a * b for a, b in itertools.pairwise(units[1:]))
    products = inner * (2 * 4 * t + 2 * 8 * k)
    peak = 12 * 20_000 * LANES / np.median(times["multiply"])
    epoch = 15_000 * step
    return [
        preset.title,
        f"{1e6 * step.min():.4g}",
        f"{1e6 * np.median(step):.4g}",
        f"{epoch.min():.3g}",
        f"{np.median(epoch):.3g}",
        f"{100 * products / np.median(step) / peak / threads:.0f} %",
        f"{3600 * preset.published['ep']['hours'] / preset.epochs:.0f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset")
    parser.add_argument("--data-dir")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    data = load(choose(args.dataset, args.data_dir)[0], args.data_dir)
    names, library, before = args.models.split(","), compiled_c(), os.getloadavg()
    lines = [
        "# Speed of layered networks",
        "",
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} processors, numba {numba.__version__}, "
        f"{data.name}, {args.threads} thread(s); load average before {before[0]:.1f}, after {{load:.1f}}.",
        "",
        "The pass over the first layer (update, clamp, sums, product with the next pixels), one thread. C is gcc -O3 "
        "-march=native of the same loop for batches of four, on whole tiles (DRN-XS: 128 columns where ours are 112); "
        "the ratio is for each column, the median over windows taken in turns. The last column is the time of a mere "
        "read and write of the same memory over ours.",
        "",
        "| network | MiB moved | µs (least) | C: µs (least) | ours / C | GB/s | of the stream |",
        "|---" * 7 + "|",
    ]
    lines += [
        "| " + " | ".join(passes(name, data.train, library, args.rounds)) + " |"
        for name in names
        if name[4:] not in ("2h", "3h")
    ]
    lines += [
        "",
        "Whole steps of four samples; an epoch has 15000. Multiplications are those of the inner matrices, as "
        "a share of what registers reach in the same windows.",
        "",
        "| network | µs a step, least | median | s an epoch, least | median | of peak FMA | paper (A100), s |",
        "|---" * 7 + "|",
    ]
    for name in names:
        row = whole_steps(name, data.train, data.train_labels, args.threads, args.rounds)
        lines.append("| " + " | ".join(row) + " |")
    page = "\n".join(lines).format(load=os.getloadavg()[0]) + "\n"
    print(page)
    if args.out:
        args.out.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
