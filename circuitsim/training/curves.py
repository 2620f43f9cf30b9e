"""The history as a picture."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from circuitsim._files import atomic_write
from circuitsim.plotting.figure import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PERCENT_TICKS = (0.1, 0.2, 0.5, 1, 1.5, 2, 3, 5, 10, 20, 50, 100)
"""Of a logarithmic axis of errors."""

ACROSS = 4
"""Panels beside each other."""

TITLE_LETTERS = 40
"""In a line of a panel's title."""


def save_figure(figure: Any, path: Path) -> Path:
    """Write a matplotlib figure as PNG, whole or not at all."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=120)
    atomic_write(path, buffer.getvalue())
    return path


def marker_of(points: int) -> str:
    """Marker of a curve: points are shown where they are few, so that one epoch is visible."""
    return "." if points < 30 else ""


def percent_over_epochs(axes: Any, title: str) -> None:
    """Title and axes of errors in percent over epochs: whole epochs, percent logarithmic with plain numbers."""
    from matplotlib.ticker import MaxNLocator

    axes.set(title=title, xlabel="epochs", ylabel="%", yscale="log")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    low, high = axes.get_ylim()
    ticks = [tick for tick in PERCENT_TICKS if low <= tick <= high]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()


def spans_decades(values: Sequence[float]) -> bool:
    """Whether positive values, such as losses, differ by a factor of ten or more: their axis is logarithmic then."""
    return bool(values) and min(values) > 0.0 and max(values) > 10.0 * min(values)


def history_figure(rows: Sequence[Mapping[str, float]], panels: Mapping[str, Sequence[str]]) -> Figure:
    """Chosen columns of a history over the updates, up to `ACROSS` panels beside each other.

    Parameters
    ----------
    rows : sequence of mapping of str to float
        At least one.
    panels : mapping of str to sequence of str
        Title of each panel → its columns; those that are missing or have no finite value are left out, and panels
        without any.
    """
    from matplotlib.ticker import MaxNLocator

    drawn = {
        title: [name for name in names if any(math.isfinite(row.get(name, math.nan)) for row in rows)]
        for title, names in panels.items()
    }
    drawn = {title: names for title, names in drawn.items() if names}
    across, down = min(max(1, len(drawn)), ACROSS), max(1, math.ceil(len(drawn) / ACROSS))
    figure = new_figure(4.5 * across, 3.4 * down)
    figure.set_layout_engine("constrained")
    updates = [row["updates"] for row in rows]
    for place, (title, names) in enumerate(drawn.items(), start=1):
        axes = figure.add_subplot(down, across, place)
        for name in names:
            axes.plot(updates, [row[name] for row in rows], marker=marker_of(len(updates)), label=name)
        values = [value for name in names for row in rows if math.isfinite(value := row[name])]
        if spans_decades(values):
            axes.set_yscale("log")
        axes.set(title=textwrap.fill(title, TITLE_LETTERS), xlabel="updates")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.legend(frameon=False)
    return figure
