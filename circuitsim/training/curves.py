"""Training curves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING

from circuitsim.plotting.figure import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COUNTED = ("epoch", "updates", "skipped", "rate_factor", "seconds", "train_seconds")
"""Columns that are not measurements."""

PANELS: dict[str, tuple[str, ...]] = {
    "loss": ("loss", "lower", "upper"),
    "error": ("error",),
    "largest relative residual": ("residual", "nudged_residual", "certificate"),
    "fraction of clamped units and diodes that change": ("kink_share",),
    "fraction of samples without a certified state": ("uncertified_fraction",),
    "log-likelihood of a sample, nats": ("log_likelihood", "pseudo_likelihood"),
    "mean squared error of the reconstruction": ("reconstruction",),
    "error of the gradient": ("bound", "exact_bias"),
    "maximum energy change by one unit, nats": ("delta",),
    "Gibbs steps of an update": ("k",),
}
"""Label of a vertical axis → the columns of its panel; a column of no panel has one of its own by its name."""

UNSEEN = (*COUNTED, "vacuous", "distance", "kinks", "clamped", "sweeps")
"""Columns that have no panel."""

ACROSS, MOST, LINE = 4, 16, 30
"""Panels in a row, and in all; characters of a line of a vertical label."""


def marker_of(points: int) -> str:
    """Marker of a curve: points are shown where they are few, so that one epoch is visible."""
    return "." if points < 30 else ""


def history_figure(rows: Sequence[Mapping[str, float]]) -> Figure:
    """What a history measures over the updates, up to `ACROSS` panels in a row, `MOST` in all.

    Parameters
    ----------
    rows : sequence of mapping of str to float
        At least one. Columns with and without ``test_`` share a panel, bounds that of the loss; an axis is logarithmic
        where it spans a factor of ten. Columns without a finite value are left out, and, but for the loss, those that
        never change.
    """
    from matplotlib.ticker import MaxNLocator

    panels: dict[str, list[str]] = {}
    for name in rows[0]:
        title, found = name.removeprefix("test_"), {row[name] for row in rows if math.isfinite(row[name])}
        if title not in UNSEEN and len(found) > (len(rows) > 1 and title != "loss"):
            label = next((label for label, columns in PANELS.items() if title in columns), title)
            panels.setdefault(label, []).append(name)
    shown = list(panels.items())[:MOST]
    across, down = min(max(1, len(shown)), ACROSS), max(1, math.ceil(len(shown) / ACROSS))
    figure = new_figure(4.5 * across, 3.4 * down)
    figure.set_layout_engine("constrained")
    updates = [row.get("updates", number) for number, row in enumerate(rows, 1)]
    for place, (label, names) in enumerate(shown, 1):
        axes = figure.add_subplot(down, across, place)
        axes.ticklabel_format(useOffset=False)
        for name in names:
            axes.plot(updates, [row[name] for row in rows], marker=marker_of(len(updates)), label=name)
        values = [value for name in names for row in rows if math.isfinite(value := row[name])]
        if 0.0 < 10.0 * min(values) < max(values):
            axes.set_yscale("log")
        axes.set(xlabel="updates", ylabel=fill(label, LINE))
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True, min_n_ticks=1))
        axes.legend(frameon=False)
    return figure
