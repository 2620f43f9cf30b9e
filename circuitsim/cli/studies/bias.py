"""``circuitsim reproduce cd-bias``: Figure 1 of Fischer & Igel (2011) as a figure, a CSV and a Markdown page."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from circuitsim.cli.studies.runner import Comparison, Findings, Line, beside, markdown

if TYPE_CHECKING:
    from circuitsim.boltzmann.study import BiasCurves, Settings

PAPER = {"diag": 0.00138, "1dball": 0.02628}
"""Pattern set → bound − bias after 50,000 updates (§3)."""
TITLES = {"diag": "Diag", "1dball": "1DBall"}
CURVES = {
    "largest bias": "largest_bias",
    "bound": "bound",
    "older bound": "older",
    "½‖p_e − p‖₁": "distance",
    "Δ": "delta",
    "log-likelihood": "log_likelihood",
}
"""Column of the page → attribute of `BiasCurves`."""
DRAWN = {
    "bound (Fischer & Igel)": "bound",
    "largest |bias|": "largest_bias",
    "older bound (Bengio & Delalleau)": "older",
}
"""Name of a curve → attribute of `BiasCurves`."""


def _compare(args: argparse.Namespace) -> Findings:
    from circuitsim.boltzmann.study import Settings, run_study
    from circuitsim.training import ProgressLine

    settings, results = Settings(args.runs, args.updates, args.k, args.batches, args.seed), dict[str, Any]()
    for name in PAPER if args.patterns == "both" else [args.patterns]:
        line = ProgressLine(sys.stderr, TITLES[name])
        results[name] = run_study(settings, name, line.update)
        line.close()
    axes = {"xlabel": "updates", "ylabel": "error of the expected gradient", "yscale": "log"}
    curves = [
        Line(f"{TITLES[name]}, CD-{settings.k}", label, found.updates, getattr(found, of).mean(axis=0))
        for name, found in results.items()
        for label, of in DRAWN.items()
    ]
    return Findings(_page(settings, results), _rows(results), curves, axes)


def _page(settings: Settings, results: dict[str, BiasCurves]) -> list[str]:
    """The result as text and numbers; independent of machine and date."""
    from circuitsim.boltzmann.study import final_gaps

    comparable = (settings.updates, settings.k) == (50_000, 1)
    first, second = [], []
    for name, curves in results.items():
        row: dict[str, str] = {"patterns": TITLES[name]}
        # A bar inside a cell would end it.
        gaps = {key.replace("|", "\\|"): gap for key, gap in final_gaps(curves, settings).items()}
        cells = {key: f"{gap.mean:.5f} ± {gap.spread:.5f}" for key, gap in gaps.items()}
        first.append(row | cells | beside({"paper": f"{PAPER[name]:.5f}"}, comparable))
        last = {column: getattr(curves, of)[:, -1] for column, of in CURVES.items()}
        cells = {column: f"{value.mean():.5g} ± {value.std(ddof=1):.2g}" for column, value in last.items()}
        broken = int((curves.largest_bias > curves.bound + 1e-12).sum())  # by more than round-off
        second.append(row | cells | {"bound < bias": f"{broken} of {curves.bound.size}"})
    between = "between batches of runs" if settings.batches > 1 else "of batches redrawn from the runs (bootstrap)"
    return [
        "# Bias of contrastive divergence and its bounds",
        "",
        f"{settings.visible} visible and {settings.hidden} hidden units, full-batch expected CD-{settings.k}, "
        f"learning rate {settings.rate}, {settings.updates} updates, {settings.batches} × {settings.runs} runs, "
        f"initial weights uniform in ±{settings.spread}, seed {settings.seed}. "
        "After Fischer & Igel (2011), §3 and Figure 1.",
        "",
        f"Gap between bound and bias after {settings.updates} updates; ± is the standard deviation {between}. "
        "The paper ran 50000 updates of CD-1 and does not say how it sums up its 25 runs; its figure does not stand "
        "beside other runs (–).",
        "",
        *markdown(first),
        "",
        *markdown(second),
        "",
        "The second table holds means over all runs after the last update, ± the deviation between runs.",
        "`bound < bias` counts measurements along training at which the bound was broken.",
    ]


def _rows(results: dict[str, BiasCurves]) -> list[dict[str, Any]]:
    """The curves: one row per pattern set and time, means and deviations over all runs."""
    found = []
    for name, curves in results.items():
        for index, updates in enumerate(curves.updates.tolist()):
            row: dict[str, Any] = {"patterns": name, "updates": updates}
            for of in CURVES.values():
                values = getattr(curves, of)[:, index]
                row |= {f"{of}_mean": float(values.mean()), f"{of}_sd": float(values.std(ddof=1))}
            found.append(row)
    return found


BIAS = Comparison(
    "cd-bias",
    """
runs N = 25  initialisations in a batch of runs
updates N = 50000  updates of each run
k N = 1  Gibbs steps of CD-k
batches N = 1  batches of runs; their spread is measured, that of one bootstrapped (1)
seed N = 0  of the random initial weights
patterns NAME = both {diag 1dball both}  pattern set: diag, 1dball or both
out DIR  write cd-bias.png, cd-bias.csv and cd-bias.md here
""",
    _compare,
)
