"""``circuitsim reproduce cd-bias``: Figure 1 of Fischer & Igel (2011) as a figure, a CSV and a Markdown page."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from circuitsim.cli.studies.runner import Comparison, beside, csv_text, markdown

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


def _compare(args: argparse.Namespace) -> tuple[str, str, Callable[[Any], None]]:
    from circuitsim.boltzmann.study import Settings, run_study
    from circuitsim.training import ProgressLine

    settings, results = Settings(args.runs, args.updates, args.k, args.batches, args.seed), dict[str, Any]()
    for name in PAPER if args.patterns == "both" else [args.patterns]:
        line = ProgressLine(sys.stderr, TITLES[name])
        results[name] = run_study(settings, name, line.update)
        line.close()
    return _page(settings, results), _table(results), lambda figure: _draw(figure, settings, results)


def _page(settings: Settings, results: dict[str, BiasCurves]) -> str:
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
    lines = [
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
        *markdown(list(first[0]), first),
        "",
        *markdown(list(second[0]), second),
        "",
        "The second table holds means over all runs after the last update, ± the deviation between runs.",
        "`bound < bias` counts measurements along training at which the bound was broken.",
        "",
    ]
    return "\n".join(lines)


def _table(results: dict[str, BiasCurves]) -> str:
    """The curves: one row per pattern set and time, means and deviations over all runs."""
    rows = []
    for name, curves in results.items():
        values = [getattr(curves, of) for of in CURVES.values()]
        for index, updates in enumerate(curves.updates.tolist()):
            columns = [value[:, index] for value in values]
            rows.append([name, updates, *(float(f) for x in columns for f in (x.mean(), x.std(ddof=1)))])
    return csv_text(
        ["patterns", "updates", *(f"{of}_{kind}" for of in CURVES.values() for kind in ("mean", "sd"))], rows
    )


def _draw(figure: Any, settings: Settings, results: dict[str, BiasCurves]) -> None:
    """Each pattern set as in the paper, and below on a scale that shows the older bound."""
    figure.set_size_inches(5.2 * len(results), 7)
    for place, (name, curves) in enumerate(results.items(), start=1):
        lines = {"bound (Fischer & Igel)": curves.bound, "largest |bias|": curves.largest_bias}
        for row, more in ((0, {}), (1, {"older bound (Bengio & Delalleau)": curves.older})):
            axes = figure.add_subplot(2, len(results), place + row * len(results))
            for label, values in {**lines, **more}.items():
                (line,) = axes.plot(curves.updates, values.mean(axis=0), label=label)
                axes.fill_between(
                    curves.updates, values.min(axis=0), values.max(axis=0), color=line.get_color(), alpha=0.2
                )
            axes.legend(frameon=False)
            if row:
                axes.margins(y=0.3)  # the legend's place
                axes.set(xlabel="updates", ylabel="the same, logarithmic", yscale="log")
            else:
                title = f"{TITLES[name]}, CD-{settings.k}"
                axes.set(title=title, ylabel="error of the expected gradient", ylim=(0, 1))


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
