"""Blocks beside their bare matrix products, and a convolutional network beside PyTorch, in one run each.

    python benchmarks/ffebm/speed.py [--out benchmarks/results/ffebm]

The times are medians over repetitions that alternate between the two. The bare products are those of all sweeps, into
memory that is there, with nothing between them. PyTorch, where it is installed, runs the same sweeps of the published
6-layer network's single block: the same convolutions, pooling with stored places, clipping.
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

from circuitsim._files import atomic_write
from circuitsim.blocks.convolutional import ConvolutionalHopfieldBlock
from circuitsim.blocks.hopfield import DeepHopfieldBlock
from circuitsim.blocks.layered import Sweeps
from circuitsim.blocks.resistive import ResistiveBlock

SWEEPS = 20


def alternate(first: Callable[[], Any], second: Callable[[], Any], repetitions: int) -> tuple[float, float, float]:
    """Median seconds of each, and the median of the ratios second / first of neighbours in time."""
    first(), second()
    times: tuple[list[float], list[float]] = [], []
    for _ in range(repetitions):
        for which, work in enumerate((first, second)):
            began = time.perf_counter()
            work()
            times[which].append(time.perf_counter() - began)
    ratios = [b / a for a, b in zip(*times, strict=True)]
    return statistics.median(times[0]), statistics.median(times[1]), statistics.median(ratios)


def bare(weights: list[np.ndarray], batch: int) -> Callable[[], None]:
    """All products of `SWEEPS` sweeps."""
    states = [np.random.default_rng(0).random((batch, w.shape[0])).astype(w.dtype) for w in weights]
    states.append(np.random.default_rng(0).random((batch, weights[-1].shape[1])).astype(weights[0].dtype))
    outs = [np.empty_like(state) for state in states]

    def work() -> None:
        for _ in range(SWEEPS):
            for k, w in enumerate(weights):
                np.matmul(states[k], w, out=outs[k + 1])
                np.matmul(states[k + 1], w.T, out=outs[k])

    return work


def dense_rows(repetitions: int) -> list[str]:
    """Fully connected blocks: the ratio is what the issue of speed is about."""
    lines = ["| block | batch | layers | bare, ms | block, ms | ratio |", "|---|---|---|---|---|---|"]
    for kind in ("Hopfield", "resistive"):
        for batch, layers in ((128, [256] * 4), (256, [256] * 4), (128, [512] * 3)):
            sweeps = Sweeps(SWEEPS, SWEEPS)
            if kind == "Hopfield":
                block: Any = DeepHopfieldBlock(layers, sweeps=sweeps, dtype=np.float32)
            else:
                block = ResistiveBlock(layers, sweeps=sweeps, dtype=np.float32)
            x = np.random.default_rng(1).random((batch, layers[0])).astype(np.float32)
            weights = [array for array in block.parameters.values() if array.ndim == 2]
            products = bare(weights, batch)
            alone, whole, ratio = alternate(products, partial(block.relax, x), repetitions)
            lines.append(f"| {kind} | {batch} | {layers} | {1e3 * alone:.1f} | {1e3 * whole:.1f} | {ratio:.2f} |")
    return lines


def convolutional_rows(batch: int, repetitions: int) -> list[str]:
    """The block of the published 6-layer network, free phase, beside the same sweeps in PyTorch."""
    try:
        import torch
    except ImportError:
        return ["PyTorch is not installed: the convolutional comparison was left out."]
    functional = torch.nn.functional
    torch.set_num_threads(int(os.environ.get("OPENBLAS_NUM_THREADS", "1")))
    block = ConvolutionalHopfieldBlock(
        (16, 16, 128),
        [256, 256, 512, 512],
        [True, True, True, False],
        [256],
        sweeps=Sweeps(SWEEPS, SWEEPS),
        variance=8.4e-4,
    )
    x = np.random.default_rng(2).normal(size=(batch, block.n_inputs)).astype(np.float32)
    pools = [True, True, True, False]
    kernels = [torch.from_numpy(block.parameters[f"weights{k}"].transpose(3, 2, 0, 1).copy()) for k in range(1, 5)]
    # Rows of the dense weights are in the order rows, columns, channels; torch has channels first.
    last = block.parameters["weights5"].reshape(2, 2, 512, 256)
    dense = torch.from_numpy(last.transpose(2, 0, 1, 3).reshape(2048, 256))
    first = torch.from_numpy(x.reshape(batch, 16, 16, 128).transpose(0, 3, 1, 2).copy())

    @torch.no_grad()
    def theirs() -> list[Any]:
        shapes = [(128, 16, 16), (256, 8, 8), (256, 4, 4), (512, 2, 2), (512, 2, 2)]
        states = [torch.zeros((batch, *shape)) for shape in shapes] + [torch.zeros((batch, 256))]
        places: list[Any] = [None] * 4
        for _ in range(SWEEPS):
            for layer in (0, 2, 4, 1, 3, 5):
                pull: Any = first if layer == 0 else 0
                if layer == 5:
                    pull = states[4].reshape(batch, -1) @ dense
                elif layer > 0:
                    full = functional.conv2d(states[layer - 1], kernels[layer - 1], padding=1)
                    if pools[layer - 1]:
                        full, places[layer - 1] = functional.max_pool2d(full, 2, return_indices=True)
                    pull = full
                if layer == 4:
                    pull = pull + (states[5] @ dense.T).reshape(batch, 512, 2, 2)
                elif layer < 4:
                    above = states[layer + 1]
                    if pools[layer]:
                        if places[layer] is None:
                            above = None
                        else:
                            above = functional.max_unpool2d(above, places[layer], 2)
                    if above is not None:
                        pull = pull + functional.conv_transpose2d(above, kernels[layer], padding=1)
                states[layer] = torch.clamp(pull, 0, 1)
        return states

    ours = block.relax(x).output
    same = float(np.abs(ours - theirs()[5].numpy()).max())
    slow, fast, _ = alternate(theirs, lambda: block.relax(x), repetitions)
    return [
        f"Published 6-layer network, one block, batch {batch}, {SWEEPS} free sweeps, float32; the outputs differ by at "
        f"most {same:.1e} (in single precision rounding decides between nearly equal maxima; a test holds the sweeps "
        "equal in double precision).",
        "",
        "| | images/s |",
        "|---|---|",
        f"| PyTorch {torch.__version__} | {batch / slow:.2f} |",
        f"| circuitsim | {batch / fast:.2f} |",
        "",
        f"ratio circuitsim / PyTorch: {slow / fast:.2f}",
    ]


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out")
    parser.add_argument("--repetitions", type=int, default=9)
    parser.add_argument("--batch", type=int, default=4, help="images of the convolutional comparison")
    args = parser.parse_args()
    load = f"load {os.getloadavg()[0]:.1f} at the start" if hasattr(os, "getloadavg") else ""
    lines = [
        "# Speed of blocks",
        "",
        f"{platform.machine()}, {os.cpu_count()} processors, {load}; numpy {np.__version__}, "
        f"{os.environ.get('OPENBLAS_NUM_THREADS', 'all')} BLAS thread(s); medians of {args.repetitions}.",
        "",
        f"Fully connected, {SWEEPS} free sweeps, float32, beside the products alone:",
        "",
        *dense_rows(args.repetitions),
        "",
        *convolutional_rows(args.batch, max(3, args.repetitions // 3)),
        "",
    ]
    text = "\n".join(lines)
    print(text)
    if args.out:
        Path(args.out).mkdir(parents=True, exist_ok=True)
        atomic_write(Path(args.out) / "speed.md", text.encode())


if __name__ == "__main__":
    main()
