"""Bars: which numbers of a circuit a quantity depends on most."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from circuitsim.plotting.figure import INK, new_figure, plain, title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from circuitsim.analysis.sensitivity import Sensitivity

BARS, PANELS = 20, 8
"""Most bars in a panel, most panels in a picture; a note counts what is left out."""
COLOUR = "#3b6ea5"


def plot_sensitivity(found: Sensitivity) -> Figure:
    """One panel an output: its change for 1 % of each number, the largest first."""
    outputs = found.outputs[:PANELS]
    counts = [min(len(found.names), BARS) for _ in outputs]
    figure = new_figure(7.5, 0.9 + sum(0.9 + 0.24 * count for count in counts))
    for q, output in enumerate(outputs):
        axes = figure.add_subplot(len(outputs), 1, q + 1)
        rows = [row for row in found.rows(q) if not row.kink]
        bars(axes, [(row.name, row.per_percent) for row in rows], f"change of {output} for 1 %, {found.units[q]}")
        if q == 0:
            title(axes, found.point.circuit.title)
    figure.tight_layout()
    return figure


def bars(axes: Axes, rows: Sequence[tuple[str, float]], label: str) -> None:
    """Horizontal bars with their names, the first on top."""
    shown = list(rows)[:BARS]
    axes.barh([plain(name) for name, _ in shown], [value for _, value in shown], color=COLOUR, height=0.7)
    axes.invert_yaxis()
    axes.axvline(0.0, color=INK, linewidth=0.8)
    axes.set_xlabel(plain(label), color=INK)
    axes.grid(True, axis="x", linewidth=0.4, alpha=0.6)
    axes.tick_params(labelsize=8, colors=INK)
    if len(rows) > len(shown):
        axes.text(0.99, 0.02, f"and {len(rows) - len(shown)} of smaller effect", fontsize=7, ha="right",
                  transform=axes.transAxes, color=INK)  # fmt: skip
