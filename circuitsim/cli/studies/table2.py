"""``circuitsim reproduce table2``: Nest & Ernoult (2024), Table 2: deep networks in blocks of two on many classes."""

from __future__ import annotations

import argparse
import csv
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from circuitsim.cli.studies.runs import COMPILED, Case, published, run_cases, train_run, write_results
from circuitsim.cli.workers import add_workers
from circuitsim.errors import UsageError
from circuitsim.training.history import Row

DATASETS = ("cifar100", "imagenet32")
METHODS = {"ep": "EP", "bp": "ID"}
"""Methods, and what the paper calls them."""
DIVISORS = {"paper": 1, "small": 16}
"""Size → what the published numbers of channels are divided by."""


class Published(NamedTuple):
    """Accuracies in percent, mean and deviation over three runs, and wall-clock time in hours and minutes."""

    top1: tuple[float, float]
    top5: tuple[float, float]
    time: str


PAPER: dict[tuple[str, int, str], Published] = {
    ("cifar100", 12, "ep"): Published((69.3, 0.2), (89.9, 0.5), "4:33"),
    ("cifar100", 12, "bp"): Published((69.2, 0.1), (90.0, 0.2), "4:16"),
    ("cifar100", 15, "ep"): Published((71.2, 0.2), (90.2, 1.2), "2:54"),
    ("cifar100", 15, "bp"): Published((71.1, 0.3), (90.9, 0.1), "2:44"),
    ("imagenet32", 12, "ep"): Published((44.7, 0.1), (61.0, 0.1), "65:23"),
    ("imagenet32", 12, "bp"): Published((44.7, 0.6), (68.9, 0.6), "57:00"),
    ("imagenet32", 15, "ep"): Published((46.0, 0.1), (70.0, 0.2), "46:00"),
    ("imagenet32", 15, "bp"): Published((45.5, 0.1), (69.0, 0.1), "40:01"),
}
"""(data set, layers, method) → the paper's figures; its 61.0 stands there as 61:00."""


class TrainedRun(NamedTuple):
    """One trained network and the rows of its history."""

    dataset: str
    layers: int
    method: str
    seed: int
    history: list[Row]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the study."""
    parser.add_argument("--datasets", nargs="+", choices=DATASETS, default=list(DATASETS), help="(both)")
    parser.add_argument("--layers", nargs="+", type=int, choices=(12, 15), default=[12, 15], help="(12 15)")
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS), help="(both)")
    parser.add_argument("--size", choices=list(DIVISORS), default="paper", help="as published, or channels over 16")
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="runs of each (3, as in the paper)")
    parser.add_argument("--epochs", type=int, metavar="N", help="passes over the data (12 layers 200, 15 layers 100)")
    parser.add_argument("--samples", type=int, metavar="N", help="train on the first N samples only")
    parser.add_argument("--budget", type=float, metavar="MINUTES", help="stop training after so many minutes in all")
    parser.add_argument("--data-dir", metavar="DIR", help="directory of data sets (docs/data.md)")
    parser.add_argument("--runs", metavar="DIR", help="store each run here, and continue stored ones")
    add_workers(parser, "this one")
    parser.add_argument("--out", metavar="DIR", help="write table2.md and table2.csv here")


def run(args: argparse.Namespace) -> int:
    """Train all, print the page, write the requested files."""
    keys = [
        (dataset, layers, method, seed)
        for seed in range(args.seeds)
        for dataset, layers, method in PAPER
        if dataset in args.datasets and layers in args.layers and method in args.methods
    ]
    found, interrupted = run_cases(_train, keys, args)
    results = [run for run in found if run is not None]
    if not results:
        raise UsageError("no network finished an epoch; give more time with --budget")
    page = page_of(results, args.size, args.samples)
    print(page, end="")
    if args.out is not None:
        write_results(Path(args.out), "table2", page, _table(results))
        print(f"written to {args.out}: table2.md, table2.csv")
    return 130 if interrupted else 0


def _train(case: Case, late: Callable[[], bool]) -> TrainedRun | None:
    """One network, trained or continued; None without a finished epoch."""
    (dataset, layers, method, seed), args = case.key, case.args
    if late():
        return None
    given = {**_options(dataset, layers, args.size), "method": method, "seed": seed, "data_dir": args.data_dir}
    epochs = given["epochs"] if args.epochs is None else args.epochs
    given |= {"epochs": epochs, "samples": args.samples}
    name, folder = f"{dataset}-l{layers}-{args.size}-{method}-{seed}", None if args.runs is None else Path(args.runs)
    history = train_run(name, given, epochs, folder, late, case.shown)[2]
    return TrainedRun(dataset, layers, method, seed, history) if history else None


def _options(dataset: str, layers: int, size: str) -> Mapping[str, Any]:
    """Options of ``circuitsim train`` for a network of the table."""
    from circuitsim.cli.models.ffebm import PUBLISHED
    from circuitsim.ffebm.architectures import preset

    return {"model": "ffebm", **PUBLISHED, **preset(f"l{layers}-{dataset}", DIVISORS[size])}


# ---------------------------------------------------------------------- the page
def page_of(results: Sequence[TrainedRun], size: str, samples: int | None = None) -> str:
    """The paper's table beside ours, trained on the first ``samples`` images only where given."""
    width = "" if size == "paper" else f" Numbers of channels divided by {DIVISORS[size]}."
    width += "" if samples is None else f" Trained on the first {samples:,} images only."
    width += " So no figure of the paper stands beside these runs (–)." if width else ""
    lines = [
        "# Many classes, deep networks in blocks of two",
        "",
        "After Nest & Ernoult (2024), Table 2: equilibrium propagation (EP) beside implicit differentiation (ID); "
        f"accuracy on the test images in percent.{width}",
        "",
        "| data | layers | method | runs | epochs | paper: top-1 | here: top-1 | paper: top-5 | here: top-5 "
        "| paper: h:min | here: h:min:s |",
        "|" + "---|" * 11,
    ]
    for (dataset, layers, method), paper in PAPER.items():
        runs = [r for r in results if (r.dataset, r.layers, r.method) == (dataset, layers, method)]
        if not runs:
            continue
        last = [run.history[-1] for run in runs]
        epochs = sorted({int(row["epoch"]) for row in last})
        figures = f"{paper.top1[0]:.1f} ± {paper.top1[1]:.1f}", f"{paper.top5[0]:.1f} ± {paper.top5[1]:.1f}", paper.time
        top1, top5, clock = published(figures, not width)
        cells = [
            dataset,
            str(layers),
            METHODS[method],
            str(len(runs)),
            "–".join(map(str, sorted({epochs[0], epochs[-1]}))),
            top1,
            _spread([100 * (1 - row["test_error"]) for row in last]),
            top5,
            _spread([100 * (1 - row["test_top5_error"]) for row in last]),
            clock,
            _clock(sum(row["seconds"] for row in last) / len(last)),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", f"Times here are those of whole runs; {COMPILED}.", ""])


def _spread(values: Sequence[float]) -> str:
    from statistics import mean, stdev

    return f"{mean(values):.2f}" + (f" ± {stdev(values):.2f}" if len(values) > 1 else "")


def _clock(seconds: float) -> str:
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def _table(results: Sequence[TrainedRun]) -> str:
    """One row a run and epoch."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    columns = ("epoch", "test_error", "test_top5_error", "error", "loss", "residual", "kink_share", "seconds")
    writer.writerow(["dataset", "layers", "method", "seed", *columns])
    for run in results:
        for row in run.history:
            writer.writerow([run.dataset, run.layers, run.method, run.seed, *(f"{row[name]:.6g}" for name in columns)])
    return text.getvalue()
