"""``circuitsim reproduce gdu`` and ``cosine``: Nest & Ernoult (2024), Figures 3 and 4, on 6 blocks and 15 layers."""

from __future__ import annotations

import argparse
import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from circuitsim.errors import UsageError

BLOCKS = (2, 2, 3, 3, 2, 3)
# By how much the widths of the published chain are divided.
DIVISORS = {"small": 16, "paper": 1}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of both studies."""
    parser.add_argument(
        "--size", choices=list(DIVISORS), default="small", help="widths over 16 (small), or as published"
    )
    parser.add_argument("--beta", type=float, default=1e-4, metavar="B", help="nudge for errors of size 1 (1e-4)")
    parser.add_argument("--sweeps", type=int, default=60, metavar="T", help="free sweeps (60)")
    parser.add_argument("--nudged-sweeps", type=int, default=15, metavar="K", help="nudged sweeps (the paper's 15)")
    parser.add_argument("--batch", type=int, default=2, metavar="N", help="samples (2)")
    parser.add_argument("--dataset", metavar="NAME", help="cifar10, cifar100 or imagenet32; otherwise random images")
    parser.add_argument("--data-dir", metavar="DIR", help="directory of data sets (docs/data.md)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the random weights and samples (0)")
    parser.add_argument("--out", metavar="DIR", help="write figure, table and page here")


def figure_chain(size: str = "small", sweeps: int = 60, nudged: int = 20, beta: float = 1e-4, seed: int = 0) -> Any:
    """The chain of the figures in double precision, its widths divided by `DIVISORS`."""
    from circuitsim.ffebm.architectures import LayerSizes, published
    from circuitsim.ffebm.description import build_chain

    table = published()["layers"]["figure"]
    divisor = DIVISORS[size]
    # With fewer channels a kernel's sum has fewer terms; V grows so that the sums have equal size.
    narrow = {
        "channels": [width // divisor for width in table["channels"]],
        "dense": [width // divisor for width in table["dense"]],
        "variance": table["variance"] * divisor,
    }
    layers = LayerSizes(
        **{**table, **narrow, "free": sweeps, "nudged": nudged, "normalise": published()["pixels"]["cifar10"]}
    )
    return build_chain(layers.cut((32, 32, 3), BLOCKS, 10), chaining={"beta": beta}, dtype="float64", seed=seed)


def run_gdu(args: argparse.Namespace) -> int:
    """Figure 3: estimates of single weights, sweep by sweep."""
    import numpy as np

    from circuitsim.ffebm.comparison import gradient_curves

    chain, x, y = _setting(args)
    curves = gradient_curves(chain, x, y, seed=args.seed)
    weights = [curve for curve in curves if "weights" in curve.name]
    rows = [
        (curve.name, f"{curve.deviation[0]:.3g}", f"{curve.deviation.max():.3g}", f"{curve.deviation[-1]:.3g}")
        for curve in curves
    ]
    worst = max(float(curve.deviation.max()) for curve in curves)
    lines = [
        "# Every nudged sweep is a step of backpropagation",
        "",
        _about(args, chain),
        "",
        "Largest |EP − ID| of all entries over the largest |ID|: after the first nudged sweep, at worst, at the end.",
        "",
        *_table(("parameter", "first", "worst", "last"), rows),
        "",
        f"worst of all parameters and sweeps: {worst:.3g}",
        "",
        _kinks(chain, x, y),
        "",
    ]
    series = [
        (curve.name, sweep + 1, *(f"{v:.9g}" for v in np.concatenate([curve.ep[sweep], curve.id[sweep]])))
        for curve in curves
        for sweep in range(len(curve.ep))
    ]
    entries = curves[0].ep.shape[1]
    names = ["parameter", "sweep", *(f"ep{k}" for k in range(entries)), *(f"id{k}" for k in range(entries))]
    return _deliver(args, "gdu", lines, names, series, lambda figure: _draw_curves(figure, weights))


def run_cosine(args: argparse.Namespace) -> int:
    """Figure 4: cosines, layer by layer."""
    from circuitsim.ffebm.comparison import gradient_cosines

    chain, x, y = _setting(args)
    cosines = gradient_cosines(chain, x, y)
    rows = [(name, chain.elements[int(name.split(".")[0])].kind, f"{value:.9f}") for name, value in cosines.items()]
    lines = [
        "# Cosine between the gradients of EP and of implicit differentiation",
        "",
        _about(args, chain),
        "",
        *_table(("parameter", "of", "cosine"), rows),
        "",
        f"least: {min(cosines.values()):.9f}",
        "",
        _kinks(chain, x, y),
        "",
    ]
    return _deliver(args, "cosine", lines, ["parameter", "of", "cosine"], rows, lambda f: _draw_cosines(f, cosines))


def _setting(args: argparse.Namespace) -> tuple[Any, Any, Any]:
    """The chain and the samples."""
    import numpy as np

    if args.batch < 2:
        raise UsageError("batch normalisation needs at least two samples")
    if args.seed < 0:
        raise UsageError(f"--seed must be at least 0, not {args.seed}")
    chain = figure_chain(args.size, args.sweeps, args.nudged_sweeps, args.beta, args.seed)
    rng = np.random.default_rng((args.seed, 1))
    if args.dataset is None:
        return chain, rng.integers(256, size=(args.batch, 3072), dtype=np.uint8), rng.integers(10, size=args.batch)
    from circuitsim.datasets.colour import load_colour

    data = load_colour(args.dataset, args.data_dir)
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
    """How many clamped units change between the phases, where EP at a finite nudge differs from ID."""
    import numpy as np

    share = chain.gradient((x, y), np.random.default_rng(0))[1]["kink_share"]
    hint = ": EP and ID differ there; a smaller --beta has fewer" if share else ""
    return f"share of clamped units that change between the phases (kinks): {share:.3g}{hint}"


def _table(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    lines = [" | ".join(names), " | ".join("---" for _ in names), *(" | ".join(map(str, row)) for row in rows)]
    return [f"| {line} |" for line in lines]


def _deliver(
    args: argparse.Namespace, name: str, lines: list[str], columns: list[str], rows: Sequence[Sequence[Any]], draw: Any
) -> int:
    from circuitsim._files import atomic_write
    from circuitsim.training.curves import save_figure

    print("\n".join(lines))
    if args.out is None:
        return 0
    from matplotlib.figure import Figure

    directory = Path(args.out)
    directory.mkdir(parents=True, exist_ok=True)
    atomic_write(directory / f"{name}.md", "\n".join(lines).encode())
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    atomic_write(directory / f"{name}.csv", text.getvalue().encode())
    figure = Figure(figsize=(11, 7), layout="constrained")
    draw(figure)
    save_figure(figure, directory / f"{name}.png")
    print(f"written to {directory}: {name}.md, {name}.csv, {name}.png")
    return 0


def _draw_curves(figure: Any, curves: Sequence[Any]) -> None:
    """A panel for each layer: ID in colour, EP dotted in black on it."""
    columns = 4
    for place, curve in enumerate(curves, start=1):
        axes = figure.add_subplot(-(-len(curves) // columns), columns, place)
        sweeps = range(1, len(curve.ep) + 1)
        by_id = axes.plot(sweeps, curve.id, linewidth=2.5, alpha=0.6)
        by_ep = axes.plot(sweeps, curve.ep, "k:", linewidth=1.2)
        if place == 1:
            figure.legend(
                [by_id[0], by_ep[0]],
                ["implicit differentiation", "equilibrium propagation"],
                ncols=2,
                frameon=False,
                loc="outside upper center",
            )
        axes.set_title(curve.name, fontsize=8)
        axes.tick_params(labelsize=6)
    figure.supxlabel("sweeps: backward (ID) and nudged (EP)")
    figure.supylabel("estimated ∂ℓ/∂w of single weights")


def _draw_cosines(figure: Any, cosines: dict[str, float]) -> None:
    axes = figure.add_subplot()
    axes.plot(range(len(cosines)), list(cosines.values()), "o-", label="EP against ID")
    axes.axhline(1.0, color="#8a919c", linewidth=0.8)
    axes.set_xticks(range(len(cosines)), list(cosines), rotation=90, fontsize=7)
    axes.set(ylabel="cosine", xlabel="parameter, first to last", ylim=(min(0.99, min(cosines.values())), 1.0005))
    axes.legend(frameon=False)
