"""``circuitsim reproduce table3``: Scellier (2024), Table 3, resistive beside Hopfield networks of the same size."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from circuitsim.cli.studies.runs import Case, published, run_cases, train_run, write_results
from circuitsim.cli.workers import add_workers
from circuitsim.errors import UsageError

ROWS = ("1h", "2h", "3h")
KINDS = ("drn", "dhn")
TITLES = {"drn": "DRN", "dhn": "DHN"}
SHARE = 1e-3
"""A state counts as converged within this share of each layer's largest value."""

LIMIT = 400
IMAGES = 500

# T, K and test error in percent, mean and deviation over five runs.
PAPER: dict[str, tuple[int, int, float, float]] = {
    "drn-1h": (4, 4, 1.57, 0.07),
    "drn-2h": (5, 5, 1.48, 0.05),
    "drn-3h": (6, 6, 1.66, 0.09),
    "dhn-1h": (15, 15, 1.79, 0.06),
    "dhn-2h": (50, 20, 1.65, 0.05),
    "dhn-3h": (100, 10, 1.65, 0.02),
}


class DhnRun(NamedTuple):
    """One trained network.

    Attributes
    ----------
    model, seed : str, int
    dataset : str
    history : list of dict
        Rows of its training.
    free, nudged : (images,) int arrays
        Sweeps to convergence: from zero, and nudged from the free state.
    """

    model: str
    seed: int
    dataset: str
    history: list[dict[str, Any]]
    free: np.ndarray
    nudged: np.ndarray


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the study."""
    parser.add_argument("--rows", default="1h,2h,3h", metavar="LIST", help="hidden layers: 1h,2h,3h (all)")
    parser.add_argument("--models", default="drn,dhn", metavar="LIST", help="drn,dhn (both)")
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="runs of each network (1; the paper has 5)")
    parser.add_argument("--epochs", type=int, metavar="N", help="at most so many epochs (each model's own number)")
    parser.add_argument("--budget", type=float, metavar="MINUTES", help="stop training after so many minutes in all")
    parser.add_argument("--dataset", metavar="NAME", help="mnist, digits or a folder (docs/data.md)")
    parser.add_argument("--data-dir", metavar="DIR", help="directory of data sets (docs/data.md)")
    parser.add_argument("--tolerance", type=float, metavar="R", help="end a phase of dhn when no unit moves by more")
    parser.add_argument("--runs", metavar="DIR", help="store each run here, and continue stored ones")
    add_workers(parser, "this one")
    parser.add_argument("--out", metavar="DIR", help="write table3.md, table3.csv and table3.png here")


def run(args: argparse.Namespace) -> int:
    """Train, measure, print the page, and write the requested files."""
    models = _models(args)
    found, interrupted = run_cases(_one, [(model, seed) for model in models for seed in range(args.seeds)], args)
    results = [run for run in found if run is not None]
    if not results:
        raise UsageError("no network finished an epoch; give more time with --budget")
    page = _page(results)
    print(page, end="")
    if args.out is not None:
        write_results(Path(args.out), "table3", page, _table(results))
        _draw(results, Path(args.out) / "table3.png")
        print(f"written to {args.out}: table3.md, table3.csv, table3.png")
    return 130 if interrupted else 0


def _models(args: argparse.Namespace) -> list[str]:
    """The requested models, in the order of the table."""
    for given, known, what in ((args.rows, ROWS, "row"), (args.models, KINDS, "model")):
        for word in given.split(","):
            if word not in known:
                raise UsageError(f"there is no {what} '{word}' in this table; there are {', '.join(known)}")
    rows, kinds = args.rows.split(","), args.models.split(",")
    return [f"{kind}-{row}" for row in ROWS if row in rows for kind in KINDS if kind in kinds]


def _one(case: Case, late: Callable[[], bool]) -> DhnRun | None:
    """Train one network, or continue it, and measure its convergence; None without a finished epoch."""
    (model, seed), args = case.key, case.args
    given = {"model": model[:3], "preset": model, "seed": seed, "dataset": args.dataset, "data_dir": args.data_dir}
    given |= {"tolerance": args.tolerance} if model.startswith("dhn") else {}
    folder = None if args.runs is None else Path(args.runs)
    asked = _preset(model).epochs if args.epochs is None else args.epochs
    experiment, dataset, history = train_run(f"{model}-{seed}", given, asked, folder, late, case.shown)
    if not history:
        return None
    test: Any = experiment.evaluate
    free, nudged = _convergence(experiment.trainable, test.images[:IMAGES], test.labels[:IMAGES])
    return DhnRun(model, seed, dataset, history, free, nudged)


def _preset(model: str) -> Any:
    if model.startswith("dhn"):
        from circuitsim.hopfield import published_models

        return published_models()[model]
    from circuitsim.layered.architecture import published_models as published_networks

    return published_networks()[model]


def _convergence(trainable: Any, images: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sweeps to convergence of some test images: from zero, and nudged by +β from the free state."""
    from circuitsim.hopfield import DeepHopfieldNetwork, convergence

    block = trainable.block if isinstance(trainable, DeepHopfieldNetwork) else trainable.network()
    dtype = block.parameters["bias1"].dtype
    x, targets = (images / 255).astype(dtype), np.eye(block.n_outputs, dtype=dtype)[labels]
    return convergence.phases(block, x, targets, trainable.learning.beta, SHARE, LIMIT)


# ---------------------------------------------------------------------- the page
def _page(results: list[DhnRun]) -> str:
    """The paper's table beside ours; it is independent of the day."""
    lines = [
        "# Resistive and Hopfield networks of the same size",
        "",
        "After Scellier (2024), Table 3: centred equilibrium propagation, exact block coordinate descent with "
        f"T free and K nudged sweeps. Trained here on {', '.join(sorted({run.dataset for run in results}))}; "
        "the paper's figures are of MNIST, and none stands beside a run on other data (–).",
        "",
        "| network | T, K | paper: test error, % | epochs | here: test error, % | training error, % "
        "| sweeps to convergence, free | nudged |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for model, runs in _by_model(results).items():
        t, k, error, spread = PAPER[model]
        epochs = sorted({run.history[-1]["epoch"] for run in runs})
        cells = [
            _title(model),
            f"{t}, {k}",
            *published([f"{error:.2f} ± {spread:.2f}"], _comparable(runs)),
            f"{'–'.join(map(str, sorted({epochs[0], epochs[-1]})))} of {_preset(model).epochs}",
            _spread([100 * run.history[-1]["test_error"] for run in runs]),
            _spread([100 * _training_error(run) for run in runs]),
            _quantiles(np.concatenate([run.free for run in runs])),
            _quantiles(np.concatenate([run.nudged for run in runs])),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    counts = sorted({len(part) for part in _by_model(results).values()})
    lines += [
        "",
        f"Runs of each network: {', '.join(map(str, counts))} (the paper has 5; ± is the deviation between runs). Test "
        "errors are those after the last epoch trained here.",
        "",
        f"Sweeps to convergence: median and largest over {results[0].free.size} test images of the trained network, "
        f"until no unit is farther from its final value than {SHARE:g} of the largest value in its layer; free from "
        f"zero, nudged by +β from the free state; {LIMIT} stands for {LIMIT} and more.",
        "",
    ]
    return "\n".join(lines)


def _comparable(runs: list[DhnRun]) -> bool:
    """Whether all runs are on the paper's data."""
    return {run.dataset for run in runs} == {"mnist"}


def _by_model(results: list[DhnRun]) -> dict[str, list[DhnRun]]:
    return {model: [r for r in results if r.model == model] for model in dict.fromkeys(r.model for r in results)}


def _title(model: str) -> str:
    kind, row = model.split("-")
    return f"{TITLES[kind]}-{row.upper()}"


def _training_error(run: DhnRun) -> float:
    """Share of wrong answers on the training data during the last epoch."""
    return float(run.history[-1]["error"])


def _spread(values: list[float]) -> str:
    mean = f"{np.mean(values):.2f}"
    return mean if len(values) == 1 else f"{mean} ± {np.std(values, ddof=1):.2f}"


def _quantiles(sweeps: np.ndarray) -> str:
    return f"{np.median(sweeps):g}, {sweeps.max()}"


def _table(results: list[DhnRun]) -> str:
    """One row a run and epoch; the sweeps to convergence are in the last epoch's row."""
    import csv
    import io

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = [f"convergence_sweeps_{state}_{of}" for state in ("free", "nudged") for of in ("median", "max")]
    writer.writerow(["model", "seed", "epoch", "test_error", "error", "residual", "seconds", *names])
    for run in results:
        for row in run.history:
            last = row is run.history[-1]
            counts = [f(x) for x in (run.free, run.nudged) for f in (np.median, np.max)] if last else [""] * 4
            writer.writerow(
                [
                    run.model,
                    run.seed,
                    row["epoch"],
                    row["test_error"],
                    f"{row['error']:.9g}",
                    f"{row['residual']:.4g}",
                    row["seconds"],
                    *counts,
                ]
            )
    return text.getvalue()


def _draw(results: list[DhnRun], path: Path) -> None:
    """Test errors over the epochs, and the share of converged images after each number of sweeps."""
    from matplotlib.figure import Figure

    from circuitsim.training.curves import marker_of, percent_over_epochs, save_figure

    figure = Figure(figsize=(10, 3.8), layout="constrained")
    left, right = figure.add_subplot(1, 2, 1), figure.add_subplot(1, 2, 2)
    colours = {model: f"C{k}" for k, model in enumerate(PAPER)}
    for run in results:
        style: dict[str, Any] = {"color": colours[run.model], "linestyle": "-" if run.model.startswith("dhn") else "--"}
        epochs = [row["epoch"] for row in run.history]
        errors = [100 * row["test_error"] for row in run.history]
        left.plot(epochs, errors, marker=marker_of(len(errors)), label=_title(run.model), **style)
        if _comparable([run]):
            left.axhline(PAPER[run.model][2], color=style["color"], linewidth=0.8, linestyle=":")
        counts = np.sort(run.free)
        right.step(counts, np.arange(1, counts.size + 1) / counts.size, where="post", label=_title(run.model), **style)
    percent_over_epochs(left, "test error (dotted: the paper's)" if _comparable(results) else "test error")
    right.set(
        title="converged, from zero", xlabel="sweeps", ylabel="share of test images", xscale="log", ylim=(0, 1.02)
    )
    handles, labels = right.get_legend_handles_labels()
    unique = dict(zip(labels, handles))
    right.legend(unique.values(), unique.keys(), frameon=False)
    save_figure(figure, path)
