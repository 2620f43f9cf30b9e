"""``circuitsim reproduce table1``: Scellier (2024), Table 1, five deep resistive networks on MNIST."""

from __future__ import annotations

import argparse
import csv
import io
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from circuitsim.cli.studies.runs import COMPILED, Case, published, run_cases, train_run, write_results
from circuitsim.cli.workers import add_workers
from circuitsim.errors import UsageError
from circuitsim.training.history import Row

PUBLISHED = "mnist"
"""Data set of the published figures."""

ROWS = ("xs", "xl", "1h", "2h", "3h")


class DrnRun(NamedTuple):
    """One trained network: which, by which method, from which seed, on what, and its history."""

    row: str
    method: str
    seed: int
    dataset: str
    history: list[Row]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the study."""
    parser.add_argument("--rows", default=",".join(ROWS), metavar="LIST", help=f"networks: {','.join(ROWS)} (all)")
    parser.add_argument("--methods", default="ep", metavar="LIST", help="ep,bp (ep)")
    parser.add_argument("--seeds", type=int, default=5, metavar="N", help="runs of each network (5, as in the paper)")
    parser.add_argument("--epochs", type=int, metavar="N", help="at most so many epochs (each network's own number)")
    parser.add_argument("--budget", type=float, metavar="MINUTES", help="stop training after so many minutes in all")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="threads; they change no bit (1)")
    parser.add_argument("--dataset", metavar="NAME", help="mnist, digits or a folder (docs/data.md)")
    parser.add_argument("--data-dir", metavar="DIR", help="directory of data sets (docs/data.md)")
    parser.add_argument("--runs", metavar="DIR", help="store each run here, and continue stored ones")
    add_workers(parser, "this one")
    parser.add_argument("--out", metavar="DIR", help="write table1.md, table1.csv and table1.png here")


def run(args: argparse.Namespace) -> int:
    """Train, print the page, and write the requested files."""
    rows = _chosen(args.rows, ROWS, "row")
    methods = _chosen(args.methods, ("ep", "bp"), "method")
    keys = [(row, method, seed) for row in rows for method in methods for seed in range(args.seeds)]
    found, interrupted = run_cases(_one, keys, args)
    results = [run for run in found if run is not None]
    if not results:
        raise UsageError("no network finished an epoch; give more time with --budget")
    page = page_of(results)
    print(page, end="")
    if args.out is not None:
        write_results(Path(args.out), "table1", page, _table(results))
        _draw(results, Path(args.out) / "table1.png")
        print(f"written to {args.out}: table1.md, table1.csv, table1.png")
    return 130 if interrupted else 0


def _chosen(text: str, known: tuple[str, ...], what: str) -> list[str]:
    """What a list names, in the order of the table."""
    words = text.split(",")
    for word in words:
        if word not in known:
            raise UsageError(f"there is no {what} '{word}' in this table; there are {', '.join(known)}")
    return [word for word in known if word in words]


def _name(row: str, method: str, seed: int) -> str:
    return f"drn-{row}-{method}-{seed}"


def _one(case: Case, late: Callable[[], bool]) -> DrnRun | None:
    """One network, trained or continued; None without a finished epoch."""
    (row, method, seed), args = case.key, case.args
    name, folder = _name(row, method, seed), None if args.runs is None else Path(args.runs)
    # Stored runs are shown even after the time limit; new ones are not begun.
    if late() and (folder is None or not (folder / name).exists()):
        return None
    given = {
        "model": "drn",
        "preset": f"drn-{row}",
        "method": method,
        "seed": seed,
        "threads": args.threads,
        "dataset": args.dataset,
        "data_dir": args.data_dir,
    }
    _, dataset, history = train_run(name, given, args.epochs, folder, late, case.shown)
    return DrnRun(row, method, seed, dataset, history) if history else None


# ---------------------------------------------------------------------- the page
def page_of(results: list[DrnRun]) -> str:
    """The paper's table beside ours."""
    lines = [
        "# Deep resistive networks, Table 1",
        "",
        "After Scellier (2024), Table 1: mini-batches of 4, exact block coordinate descent, centred equilibrium "
        "propagation (EP) or backpropagation through the last sweeps (BP). "
        f"Trained here on {', '.join(sorted({run.dataset for run in results}))}.",
        "",
        "| network | method | runs | epochs | paper: test error, % | here: test error, % | training error, % "
        "| paper: s per epoch (A100) | here: s per epoch | paper / here | test, s |",
        "|" + "---|" * 11,
    ]
    lines += [_line(runs) for runs in _grouped(results)]
    lines += [
        "",
        "The paper's figures are of MNIST; none stands beside a run on other data (–).",
        "",
        "± is the deviation between runs. Errors are those after the last epoch trained; the training error is taken "
        "as it goes, before each step. Seconds per epoch are of training alone, the median over epochs and runs, "
        f"on whatever else the machine was doing, and {COMPILED}; the paper's are its wall clock over its epochs, "
        "tests included.",
        "",
    ]
    return "\n".join(lines)


def _grouped(results: list[DrnRun]) -> list[list[DrnRun]]:
    keys = dict.fromkeys((run.row, run.method) for run in results)
    return [[run for run in results if (run.row, run.method) == key] for key in keys]


def _comparable(runs: list[DrnRun]) -> bool:
    """Whether all runs are on the paper's data."""
    return {run.dataset for run in runs} == {PUBLISHED}


def _line(runs: list[DrnRun]) -> str:
    from circuitsim.layered.architecture import published_models

    preset = published_models()[f"drn-{runs[0].row}"]
    paper = preset.published[runs[0].method]
    epochs = sorted({int(run.history[-1]["epoch"]) for run in runs})
    theirs, ours = 3600 * paper["hours"] / preset.epochs, seconds_per_epoch(runs)
    figures = f"{paper['error']:.2f} ± {paper['spread']:.2f}", f"{theirs:.0f}", f"{theirs / ours:.3g}"
    error, seconds, ratio = published(figures, _comparable(runs))
    cells = [
        preset.title,
        runs[0].method.upper(),
        str(len(runs)),
        f"{epochs[0] if len(epochs) == 1 else f'{epochs[0]}–{epochs[-1]}'} of {preset.epochs}",
        error,
        _spread([100 * run.history[-1]["test_error"] for run in runs]),
        _spread([100 * run.history[-1]["error"] for run in runs]),
        seconds,
        f"{ours:.3g}",
        ratio,
        f"{statistics.median(float(row['test_seconds']) for run in runs for row in run.history):.2g}",
    ]
    return "| " + " | ".join(cells) + " |"


def seconds_per_epoch(runs: list[DrnRun]) -> float:
    """Median over the epochs of all runs, training alone."""
    found = []
    for run in runs:
        before = 0
        for row in run.history:
            found.append(float(row["train_seconds"]) / (int(row["epoch"]) - before))
            before = int(row["epoch"])
    return statistics.median(found)


def _spread(values: list[float]) -> str:
    mean = f"{statistics.mean(values):.2f}"
    return mean if len(values) == 1 else f"{mean} ± {statistics.stdev(values):.2f}"


def _table(results: list[DrnRun]) -> str:
    """One row a run and epoch."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    columns = ("epoch", "test_error", "test_loss", "error", "loss", "residual", "train_seconds", "test_seconds")
    writer.writerow(["network", "method", "seed", "dataset", *columns])
    for run in results:
        for row in run.history:
            writer.writerow(
                [f"drn-{run.row}", run.method, run.seed, run.dataset, *(f"{row[name]:.6g}" for name in columns)]
            )
    return text.getvalue()


def _draw(results: list[DrnRun], path: Path) -> None:
    """Test errors over the epochs, the paper's final ones as dotted lines."""
    from matplotlib.figure import Figure

    from circuitsim.layered.architecture import published_models
    from circuitsim.training.curves import marker_of, percent_over_epochs, save_figure

    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.add_subplot()
    for k, runs in enumerate(_grouped(results)):
        preset = published_models()[f"drn-{runs[0].row}"]
        for run in runs:
            label = f"{preset.title}, {run.method.upper()}" if run is runs[0] else None
            errors = [100 * row["test_error"] for row in run.history]
            epochs, marker = [row["epoch"] for row in run.history], marker_of(len(errors))
            axes.plot(epochs, errors, color=f"C{k}", linewidth=1, marker=marker, label=label)
        if _comparable(runs):
            axes.axhline(preset.published[runs[0].method]["error"], color=f"C{k}", linewidth=0.8, linestyle=":")
    dotted = " (dotted: the paper's last)" if any(map(_comparable, _grouped(results))) else ""
    percent_over_epochs(axes, f"test error{dotted}")
    axes.legend(frameon=False)
    save_figure(figure, path)
