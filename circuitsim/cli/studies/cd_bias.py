"""``circuitsim reproduce cd-bias``: Figure 1 of Fischer & Igel (2011) as a figure, a CSV and a Markdown page."""

from __future__ import annotations

import argparse
import csv
import io
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from circuitsim.cli.studies.runs import published

if TYPE_CHECKING:
    from circuitsim.boltzmann.study import BiasCurves, Settings

# What the paper reports for bound − bias after 50,000 updates (§3).
PAPER = {"diag": 0.00138, "1dball": 0.02628}
TITLES = {"diag": "Diag", "1dball": "1DBall"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the study."""
    parser.add_argument("--runs", type=int, default=25, metavar="N", help="initialisations in a batch of runs (25)")
    parser.add_argument("--updates", type=int, default=50_000, metavar="N", help="updates of each run (50000)")
    parser.add_argument("--k", type=int, default=1, metavar="K", help="Gibbs steps of CD-k (1)")
    parser.add_argument(
        "--batches",
        type=int,
        default=1,
        metavar="N",
        help="batches of runs, between which the spread is measured; with 1 it is bootstrapped (1)",
    )
    parser.add_argument("--patterns", choices=[*PAPER, "both"], default="both", help="pattern set to learn (both)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the random initial weights (0)")
    parser.add_argument("--out", metavar="DIR", help="write cd-bias.png, cd-bias.csv and cd-bias.md here")


def run(args: argparse.Namespace) -> int:
    """Run, print the page, and write the requested files."""
    from circuitsim.boltzmann.study import Settings, run_study
    from circuitsim.training import ProgressLine

    settings = Settings(args.runs, args.updates, args.k, args.batches, args.seed)
    directory = None if args.out is None else Path(args.out)
    if directory is not None:
        directory.mkdir(parents=True, exist_ok=True)
    chosen = list(PAPER) if args.patterns == "both" else [args.patterns]
    results: dict[str, Any] = {}
    seconds = {}
    for name in chosen:
        line = ProgressLine(sys.stderr, TITLES[name])
        began = time.perf_counter()
        results[name] = run_study(settings, name, line.update)
        seconds[name] = time.perf_counter() - began
        line.close()
    page = _page(settings, results)
    print(page, end="")
    print("seconds, compilation included: " + ", ".join(f"{TITLES[n]} {s:.1f}" for n, s in seconds.items()))
    if directory is not None:
        _write(directory, settings, results, page)
        print(f"written to {directory}: cd-bias.md, cd-bias.csv, cd-bias.png")
    return 0


def _write(directory: Path, settings: Settings, results: dict[str, BiasCurves], page: str) -> None:
    from circuitsim._files import atomic_write

    atomic_write(directory / "cd-bias.md", page.encode())
    atomic_write(directory / "cd-bias.csv", _table(results).encode())
    _draw(settings, results, directory / "cd-bias.png")


def _page(settings: Settings, results: dict[str, BiasCurves]) -> str:
    """The result in words and numbers; independent of machine and day."""
    from circuitsim.boltzmann.study import final_gaps

    lines = [
        "# Bias of contrastive divergence and its bounds",
        "",
        f"{settings.visible} visible and {settings.hidden} hidden units, full-batch expected CD-{settings.k}, "
        f"learning rate {settings.rate}, {settings.updates} updates, {settings.batches} × {settings.runs} runs, "
        f"initial weights uniform in ±{settings.spread}, seed {settings.seed}. "
        "After Fischer & Igel (2011), §3 and Figure 1.",
        "",
        f"Gap between bound and bias after {settings.updates} updates; ± is the standard deviation "
        + ("between batches of runs" if settings.batches > 1 else "of batches redrawn from the runs (bootstrap)")
        + (
            ". The paper ran 50000 updates of CD-1, so its figure does not stand beside these runs (–)."
            if not _comparable(settings)
            else ". The paper's summary of its 25 runs is not specified."
        ),
        "",
        "| patterns | " + " | ".join(_names()) + " | paper |",
        "|---" * 5 + "|",
    ]
    for name, curves in results.items():
        gaps = final_gaps(curves, settings).values()
        cells = " | ".join(f"{gap.mean:.5f} ± {gap.spread:.5f}" for gap in gaps)
        lines.append(f"| {TITLES[name]} | {cells} | {published([f'{PAPER[name]:.5f}'], _comparable(settings))[0]} |")
    lines += ["", "| patterns | " + " | ".join(_FINAL) + " | bound < bias |", "|---" * (len(_FINAL) + 2) + "|"]
    for name, curves in results.items():
        values = (curves.largest_bias, curves.bound, curves.older, curves.distance, curves.delta, curves.log_likelihood)
        cells = " | ".join(f"{value[:, -1].mean():.5g} ± {value[:, -1].std(ddof=1):.2g}" for value in values)
        lines.append(f"| {TITLES[name]} | {cells} | {_violations(curves)} of {curves.bound.size} |")
    lines += ["", "The second table holds means over all runs after the last update, ± the deviation between runs."]
    lines += ["`bound < bias` counts measurements along training at which the bound was broken.", ""]
    return "\n".join(lines)


_FINAL = ("largest bias", "bound", "older bound", "½‖p_e − p‖₁", "Δ", "log-likelihood")


def _comparable(settings: Settings) -> bool:
    """Whether runs are as long as the paper's, by the same rule."""
    return (settings.updates, settings.k) == (50_000, 1)


def _names() -> tuple[str, ...]:
    from circuitsim.boltzmann.study import AGGREGATIONS

    # A bar inside a cell would end it.
    return tuple(name.replace("|", "\\|") for name in AGGREGATIONS)


def _violations(curves: BiasCurves) -> int:
    """Measurements whose bias exceeds the bound by more than round-off."""
    return int((curves.largest_bias > curves.bound + 1e-12).sum())


def _table(results: dict[str, BiasCurves]) -> str:
    """The curves: one row for each pattern set and moment, means and deviations over all runs."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    columns = ("largest_bias", "bound", "older", "distance", "delta", "log_likelihood")
    writer.writerow(["patterns", "updates", *(f"{name}_{kind}" for name in columns for kind in ("mean", "sd"))])
    for name, curves in results.items():
        values = [getattr(curves, column) for column in columns]
        for index, updates in enumerate(curves.updates):
            cells = [f(value[:, index]) for value in values for f in (lambda x: x.mean(), lambda x: x.std(ddof=1))]
            writer.writerow([name, updates, *(f"{cell:.9g}" for cell in cells)])
    return text.getvalue()


def _draw(settings: Settings, results: dict[str, BiasCurves], path: Path) -> None:
    """Each pattern set as the paper draws it, and below on a scale on which the older bound can be seen."""
    from matplotlib.figure import Figure

    from circuitsim.training.curves import save_figure

    figure = Figure(figsize=(5.2 * len(results), 7), layout="constrained")
    for place, (name, curves) in enumerate(results.items(), start=1):
        above = figure.add_subplot(2, len(results), place)
        below = figure.add_subplot(2, len(results), place + len(results))
        lines = {"bound (Fischer & Igel)": curves.bound, "largest |bias|": curves.largest_bias}
        _draw_bands(above, curves.updates, lines)
        _draw_bands(below, curves.updates, {**lines, "older bound (Bengio & Delalleau)": curves.older})
        above.set(title=f"{TITLES[name]}, CD-{settings.k}", ylabel="error of the expected gradient", ylim=(0, 1))
        below.set(xlabel="updates", ylabel="the same, logarithmic", yscale="log")
        above.legend(frameon=False)
        below.legend(frameon=False)
    save_figure(figure, path)


def _draw_bands(axes: Any, updates: Any, lines: dict[str, Any]) -> None:
    """Mean over the runs, and a band from the least to the largest run."""
    from circuitsim.training.curves import marker_of

    for label, values in lines.items():
        (line,) = axes.plot(updates, values.mean(axis=0), marker=marker_of(len(updates)), label=label)
        axes.fill_between(updates, values.min(axis=0), values.max(axis=0), color=line.get_color(), alpha=0.2)
