"""How far single-precision gradients are from double precision, layer by layer: as computed, and as squares would be.

    python benchmarks/layered/precision.py --dataset mnist [--data-dir DIR] [--steps 2000] [--out FILE.md]

Each network is trained for some steps; then one mini-batch's gradient is estimated from the same parameters and the
same start in both precisions, with the published sweeps. "Squares" is the paper's formula as printed, in single
precision: the difference of two squares of size (A x)².
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np

from circuitsim.blocks import Nudge
from circuitsim.blocks.layered import LayeredState
from circuitsim.datasets import choose, load
from circuitsim.layered.architecture import ResistivePreset, published_models
from circuitsim.layered.engine import Engine
from circuitsim.layered.network import DeepResistiveNetwork, initial_parameters


def network(preset: ResistivePreset, parameters: dict[str, np.ndarray], dtype: type) -> DeepResistiveNetwork:
    """The network with the published sweeps."""
    return DeepResistiveNetwork(
        preset.architecture, parameters, sweeps=preset.learning.sweeps, tolerance=0.0, dtype=dtype
    )


def nudged(net: DeepResistiveNetwork, beta: float, x: np.ndarray, y: np.ndarray) -> list[LayeredState]:
    """The states at −β and +β."""
    free = net.relax(x)
    return [net.relax(x, Nudge(-b * y, b), free) for b in (-beta, beta)]


def squares(preset: ResistivePreset, states: list[LayeredState], x: np.ndarray, share: float) -> list[np.ndarray]:
    """½ (v_j − v_k)² at +β minus the same at −β, one sample after the other."""
    below = [np.concatenate([x, -x], axis=1) * x.dtype.type(preset.architecture.input_gain)] * 2
    found = []
    for layer in range(preset.architecture.depth):
        here = [state.layers[layer] for state in states]
        total = np.zeros((below[0].shape[1], here[0].shape[1]), x.dtype)
        for b in range(len(x)):
            minus, plus = ((low[b][:, None] - top[b]) ** 2 / 2 for low, top in zip(below, here))
            total += (plus - minus) * x.dtype.type(share)
        found.append(total)
        below = here
    return found


def compare(preset: ResistivePreset, data: object, steps: int) -> list[str]:
    """One row a layer."""
    engine = Engine(preset.architecture, preset.learning, preset.batch)
    engine.set(initial_parameters(preset.architecture, np.random.default_rng(0), np.float32))
    order = np.random.default_rng(1).permutation(len(data.train))[: preset.batch * (steps + 1)]  # type: ignore[attr-defined]
    images, labels = data.train, data.train_labels  # type: ignore[attr-defined]
    engine.train(images, labels, order[: -preset.batch], preset.weight_rates, preset.bias_rates)
    single, rows = engine.get(), order[-preset.batch :]
    share = 1 / (2 * preset.learning.beta * preset.batch)
    found = {}
    for dtype in (np.float32, np.float64):
        net = network(preset, single, dtype)
        x, y = (images[rows] / 255).astype(np.float32).astype(dtype), np.eye(10, dtype=dtype)[labels[rows]]
        minus, plus = nudged(net, preset.learning.beta, x, y)
        by_name = net.parameter_difference(plus, minus, x, np.full(len(x), share))
        found[dtype] = [by_name[f"conductances{layer}"] for layer in range(preset.architecture.depth)]
        if dtype is np.float32:
            printed = squares(preset, [minus, plus], x, share)
    lines = []
    for layer, (ours, as_printed, exact) in enumerate(zip(found[np.float32], printed, found[np.float64]), 1):
        size = np.linalg.norm(exact)
        errors = [100 * np.linalg.norm(g - exact) / size for g in (ours, as_printed)]
        lines.append(f"| {preset.title} | {layer} | " + " | ".join(f"{error:.2g} %" for error in errors) + " |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset")
    parser.add_argument("--data-dir")
    parser.add_argument("--models", default="drn-xs,drn-1h,drn-2h,drn-3h")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    data = load(choose(args.dataset, args.data_dir)[0], args.data_dir)
    lines = [
        "# Single-precision gradients of layered networks",
        "",
        f"Relative error against double precision after {args.steps} steps on {Path(data.name).name}, one mini-batch, "
        "published sweeps.",
        "",
        "| network | layer | as computed | difference of squares |",
        "|---|---|---|---|",
    ]
    for name in args.models.split(","):
        lines += compare(published_models()[name], data, args.steps)
    page = "\n".join(lines) + "\n"
    print(page)
    if args.out:
        args.out.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
