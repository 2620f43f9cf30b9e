"""The same chain on numpy, torch and CuPy arrays, on a GPU where there is one: seconds of a gradient, in one run.

    python benchmarks/ffebm/arrays.py [--layers 512,512,512,512] [--batch 256] [--out benchmarks/results/ffebm]

A chain of a fully connected Hopfield block between linear stages, EP, float32. Only what is installed is timed, and the
gradients of all must agree with numpy's.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from circuitsim.ffebm import Chain, DeepHopfieldBlock, Linear, Readout, Sweeps

INPUTS, CLASSES = 784, 10
AGREE = 1e-2
"""Gradients that differ by more than this share of their largest entry are another gradient: EP divides differences of
single precision by β."""


def places() -> dict[str, tuple[Callable[[np.ndarray], Any], Callable[[Any], np.ndarray], Callable[[], None]]]:
    """Name → how to bring an array there, how to bring it back, and how to wait until all work there is done."""
    found: dict[str, Any] = {"numpy": (np.asarray, np.asarray, lambda: None)}
    try:
        import torch
    except ImportError:
        print("torch is not installed: left out")
    else:
        found[f"torch {torch.__version__}, processor"] = (torch.asarray, lambda a: a.numpy(), lambda: None)
        if torch.cuda.is_available():
            name = f"torch {torch.__version__}, {torch.cuda.get_device_name()}"
            found[name] = (partial(torch.asarray, device="cuda"), lambda a: a.cpu().numpy(), torch.cuda.synchronize)
        else:
            print("torch sees no GPU: left out")
    try:
        import cupy
    except ImportError:
        print("cupy is not installed: left out")
    else:
        found[f"cupy {cupy.__version__}"] = (cupy.asarray, cupy.asnumpy, cupy.cuda.Device().synchronize)
    return found


def chain(layers: list[int], sweeps: int) -> Chain:
    """The network, always the same."""
    block = DeepHopfieldBlock(layers, bias=0.2, sweeps=Sweeps(sweeps, sweeps // 2))
    return Chain([Linear(INPUTS, layers[0]), block, Readout(layers[-1], CLASSES)], dtype=np.float32, seed=0)


def main() -> int:
    """Time all, print the table, write it where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", default="512,512,512,512", help="units of the block's layers")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--sweeps", type=int, default=20, help="free sweeps; half as many nudged ones")
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--out", type=Path, help="write arrays.md here")
    args = parser.parse_args()
    layers = [int(word) for word in args.layers.split(",")]
    rng = np.random.default_rng(1)
    x = rng.random((args.batch, INPUTS)).astype(np.float32)
    y = rng.integers(CLASSES, size=args.batch)
    lines = [
        "# One chain on several kinds of arrays",
        "",
        f"{platform.machine()}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} at the start. A gradient of "
        f"a Hopfield block of {layers} units, batch {args.batch}, {args.sweeps} free sweeps, float32; medians of "
        f"{args.repetitions}.",
        "",
        "| arrays | ms | numpy's time over it | largest difference of a gradient |",
        "|---|---|---|---|",
    ]
    expected: dict[str, np.ndarray] = {}
    first = 0.0
    for name, (there, back, wait) in places().items():
        model = chain(layers, args.sweeps)
        model = model if name == "numpy" else model.convert(there)
        batch = (there(x), there(y))
        found: Any = model.gradient(batch, rng)[0]
        gradients = {key: back(array) for key, array in found.items()}
        expected = expected or gradients
        off = max(
            float(np.abs(array - expected[key]).max() / np.abs(expected[key]).max()) for key, array in gradients.items()
        )
        if not off < AGREE:
            raise SystemExit(f"{name} gives other gradients than numpy: off by {off:.0e}")
        times = []
        for _ in range(args.repetitions):
            wait()
            began = time.perf_counter()
            model.gradient(batch, rng)
            wait()
            times.append(time.perf_counter() - began)
        seconds = statistics.median(times)
        first = first or seconds
        lines.append(f"| {name} | {1e3 * seconds:.1f} | {first / seconds:.2f} | {off:.0e} |")
    page = "\n".join([*lines, ""])
    print(page)
    if args.out is not None:
        args.out.mkdir(parents=True, exist_ok=True)
        (args.out / "arrays.md").write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
