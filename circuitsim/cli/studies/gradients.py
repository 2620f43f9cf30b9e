"""``circuitsim reproduce gdu`` and ``cosine``: Nest & Ernoult (2024), Figures 3 and 4, on 6 blocks and 15 layers."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

from circuitsim.cli.models import SHARED
from circuitsim.cli.studies.runner import Comparison, Findings, Line, markdown
from circuitsim.errors import UsageError

BLOCKS = (2, 2, 3, 3, 2, 3)
DIVISORS = {"small": 16, "paper": 1}
"""Size → divisor of the widths of the published chain."""

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


def _compare(title: str, of: Callable[[Any, Any, Any, int], Findings], args: argparse.Namespace) -> Findings:
    """A comparison of the gradients of EP and of implicit differentiation (ID) on one chain."""
    chain, x, y = _setting(args)
    found = of(chain, x, y, args.seed)
    page = [f"# {title}", "", _about(args, chain), "", *found.page, "", _kinks(chain, x, y), ""]
    return found._replace(page=page)


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
    shown = [
        {"parameter": c.name}
        | {
            name: f"{v:.3g}"
            for name, v in zip(("first", "worst", "last"), (c.deviation[0], c.deviation.max(), c.deviation[-1]))
        }
        for c in curves
    ]
    text = "Largest |EP − ID| of all entries over the largest |ID|: after the first nudged sweep, at worst, at the end."
    worst = max(float(curve.deviation.max()) for curve in curves)
    entries, sweeps = range(curves[0].ep.shape[1]), range(1, len(curves[0].ep) + 1)
    table, drawn = list[dict[str, Any]](), list[Line]()
    for c in curves:
        both = {f"{method}{k}": own[:, k].tolist() for method, own in (("ep", c.ep), ("id", c.id)) for k in entries}
        table += [{"parameter": c.name, "sweep": n} | {name: own[n - 1] for name, own in both.items()} for n in sweeps]
        for k in entries if "weights" in c.name else ():
            drawn.append(Line(c.name, "_" if k else "ID", sweeps, both[f"id{k}"], {"linewidth": 2.5, "alpha": 0.6}))
            drawn.append(Line(c.name, "_" if k else "EP", sweeps, both[f"ep{k}"], {"color": "k", "linestyle": ":"}))
    page = [text, "", *markdown(shown), "", f"worst of all parameters and sweeps: {worst:.3g}"]
    return Findings(page, table, drawn, {"xlabel": "sweeps", "ylabel": "estimated ∂ℓ/∂w"})


def _cosines(chain: Any, x: Any, y: Any, seed: int) -> Findings:
    """Figure 4: cosines, layer by layer."""
    from circuitsim.ffebm.comparison import gradient_cosines

    cosines = gradient_cosines(chain, x, y)
    kinds = [chain.elements[int(name.split(".")[0])].kind for name in cosines]
    rows = [
        {"parameter": name, "of": kind, "cosine": f"{value:.9f}"} for (name, value), kind in zip(cosines.items(), kinds)
    ]
    least, places = min(cosines.values()), range(len(cosines))
    axes = {"xlabel": "parameter, first to last", "ylabel": "cosine", "ylim": (min(0.99, least), 1.0005)}
    curve = Line("", "EP against ID", places, list(cosines.values()), {"marker": "o"})
    return Findings([*markdown(rows), "", f"least: {least:.9f}"], rows, [curve], axes)


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


GDU = Comparison("gdu", OPTIONS, partial(_compare, "Every nudged sweep is a step of backpropagation", _curves))
COSINE = Comparison(
    "cosine",
    OPTIONS,
    partial(_compare, "Cosine between the gradients of EP and of implicit differentiation", _cosines),
)
