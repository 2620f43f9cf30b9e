"""``circuitsim reproduce gdu`` and ``cosine``: Nest & Ernoult (2024), Figures 3 and 4, on 6 blocks and 15 layers."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

from circuitsim.cli.models import SHARED
from circuitsim.cli.studies.runner import Comparison, csv_text, markdown
from circuitsim.errors import UsageError

BLOCKS = (2, 2, 3, 3, 2, 3)
DIVISORS = {"small": 16, "paper": 1}
"""Size → divisor of the widths of the published chain."""

Findings = tuple[list[str], str, Callable[[Any], None]]
"""Lines of a page, a table as CSV, and a function that draws on a figure."""


OPTIONS = f"""
size NAME = small {{small paper}}  small: widths over 16, or paper: as published
beta B = 1e-4  nudge for errors of size 1
sweeps N = 60  free sweeps
nudged_sweeps N = 15  nudged sweeps, the paper's
batch N = 2  samples
dataset NAME  cifar10, cifar100 or imagenet32; otherwise random images
data_dir DIR  {SHARED["data_dir"].words}
seed N = 0  of the random weights and samples
out DIR  write figure, table and page here
"""


def _compare(title: str, of: Callable[[Any, Any, Any, int], Findings], args: argparse.Namespace) -> Any:
    """A comparison of the gradients of EP and of implicit differentiation (ID) on one chain."""
    chain, x, y = _setting(args)
    lines, table, draw = of(chain, x, y, args.seed)
    page = [f"# {title}", "", _about(args, chain), "", *lines, "", _kinks(chain, x, y), "", ""]
    return "\n".join(page), table, draw


def figure_chain(size: str = "small", sweeps: int = 60, nudged: int = 20, beta: float = 1e-4, seed: int = 0) -> Any:
    """The chain of the figures in double precision, its widths divided by `DIVISORS`."""
    from circuitsim.ffebm import build_chain
    from circuitsim.ffebm.architectures import published_layers
    from circuitsim.training.presets import published

    pixels = published("chains")["pixels"]["cifar10"]
    layers = published_layers("figure", DIVISORS[size], free=sweeps, nudged=nudged, normalise=pixels)
    return build_chain(layers.cut((32, 32, 3), BLOCKS, 10), chaining={"beta": beta}, dtype="float64", seed=seed)


def _curves(chain: Any, x: Any, y: Any, seed: int) -> Findings:
    """Figure 3: estimates of single weights, sweep by sweep."""
    from circuitsim.ffebm.comparison import gradient_curves

    curves = gradient_curves(chain, x, y, seed=seed)
    columns = ["parameter", "first", "worst", "last"]
    rows = [
        dict(zip(columns, [c.name, *(f"{v:.3g}" for v in (c.deviation[0], c.deviation.max(), c.deviation[-1]))]))
        for c in curves
    ]
    text = "Largest |EP − ID| of all entries over the largest |ID|: after the first nudged sweep, at worst, at the end."
    worst = max(float(curve.deviation.max()) for curve in curves)
    entries = range(curves[0].ep.shape[1])
    head = ["parameter", "sweep", *(f"ep{k}" for k in entries), *(f"id{k}" for k in entries)]
    table = [
        [curve.name, sweep, *map(float, ep), *map(float, by_id)]
        for curve in curves
        for sweep, (ep, by_id) in enumerate(zip(curve.ep, curve.id), start=1)
    ]
    weights = [curve for curve in curves if "weights" in curve.name]
    lines = [text, "", *markdown(columns, rows), "", f"worst of all parameters and sweeps: {worst:.3g}"]
    return lines, csv_text(head, table), lambda figure: _draw_curves(figure, weights)


def _cosines(chain: Any, x: Any, y: Any, seed: int) -> Findings:
    """Figure 4: cosines, layer by layer."""
    from circuitsim.ffebm.comparison import gradient_cosines

    cosines, columns = gradient_cosines(chain, x, y), ["parameter", "of", "cosine"]
    kinds = [chain.elements[int(name.split(".")[0])].kind for name in cosines]
    rows = [[name, kind, f"{value:.9f}"] for (name, value), kind in zip(cosines.items(), kinds)]
    lines = [*markdown(columns, [dict(zip(columns, row)) for row in rows]), "", f"least: {min(cosines.values()):.9f}"]

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        axes.plot(range(len(cosines)), list(cosines.values()), "o-", label="EP against ID")
        axes.axhline(1.0, color="#8a919c", linewidth=0.8)
        axes.set_xticks(range(len(cosines)), list(cosines), rotation=90, fontsize=7)
        axes.set(ylabel="cosine", xlabel="parameter, first to last", ylim=(min(0.99, min(cosines.values())), 1.0005))
        axes.legend(frameon=False)

    return lines, csv_text(columns, rows), draw


def _setting(args: argparse.Namespace) -> tuple[Any, Any, Any]:
    """The chain and the samples."""
    import numpy as np

    if args.batch < 2:
        raise UsageError("batch normalisation needs at least two samples")
    chain = figure_chain(args.size, args.sweeps, args.nudged_sweeps, args.beta, args.seed)
    rng = np.random.default_rng((args.seed, 1))
    if args.dataset is None:
        return chain, rng.integers(256, size=(args.batch, 3072), dtype=np.uint8), rng.integers(10, size=args.batch)
    from circuitsim.datasets import load

    data = load(args.dataset, args.data_dir)
    if args.batch > len(data.train):
        raise UsageError(f"{args.dataset} has {len(data.train)} training images here, fewer than --batch {args.batch}")
    rows = rng.choice(len(data.train), args.batch, replace=False)
    # Ten outputs for every data set: only gradients are compared.
    return chain, data.train[rows], data.train_labels[rows] % 10


def _about(args: argparse.Namespace, chain: Any) -> str:
    samples = f"samples of {args.dataset}" if args.dataset else "random images"
    return (
        f"6 blocks, 15 layers, {sum(a.size for a in chain.parameters.values())} parameters (widths over "
        f"{DIVISORS[args.size]}), {args.batch} {samples}, {args.sweeps} free and {args.nudged_sweeps} nudged sweeps, "
        f"beta {args.beta}, seed {args.seed}, double precision. After Nest & Ernoult (2024), §4.2."
    )


def _kinks(chain: Any, x: Any, y: Any) -> str:
    """Number of clamped units that change between the phases, where EP at a finite nudge differs from ID."""
    import numpy as np

    share = chain.gradient((x, y), np.random.default_rng(0))[1]["kink_share"]
    hint = ": EP and ID differ there; a smaller --beta has fewer" if share else ""
    return f"share of clamped units that change between the phases (kinks): {share:.3g}{hint}"


def _draw_curves(figure: Any, curves: list[Any]) -> None:
    """A panel per layer: ID in colour, EP dotted in black over it."""
    figure.set_size_inches(11, 7)
    for place, curve in enumerate(curves, start=1):
        axes, sweeps = figure.add_subplot(-(-len(curves) // 4), 4, place), range(1, len(curve.ep) + 1)
        by_id = axes.plot(sweeps, curve.id, linewidth=2.5, alpha=0.6)
        by_ep = axes.plot(sweeps, curve.ep, "k:", linewidth=1.2)
        if place == 1:
            names = ["implicit differentiation", "equilibrium propagation"]
            figure.legend([by_id[0], by_ep[0]], names, ncols=2, frameon=False, loc="outside upper center")
        axes.set_title(curve.name, fontsize=8)
        axes.tick_params(labelsize=6)
    figure.supxlabel("sweeps: backward (ID) and nudged (EP)")
    figure.supylabel("estimated ∂ℓ/∂w of single weights")


GDU = Comparison("gdu", OPTIONS, partial(_compare, "Every nudged sweep is a step of backpropagation", _curves))
COSINE = Comparison(
    "cosine",
    OPTIONS,
    partial(_compare, "Cosine between the gradients of EP and of implicit differentiation", _cosines),
)
