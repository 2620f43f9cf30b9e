"""The history as a picture."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from circuitsim.plotting.figure import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ACROSS = 4
"""Panels beside each other."""

TITLE_LETTERS = 40
"""In a line of a panel's title."""


def marker_of(points: int) -> str:
    """Marker of a curve: points are shown where they are few, so that one epoch is visible."""
    return "." if points < 30 else ""


def percent_over_epochs(axes: Any, title: str) -> None:
    """Title and axes of errors in percent over epochs: whole epochs, percent logarithmic with plain numbers."""
    from matplotlib.ticker import MaxNLocator

    axes.set(title=title, xlabel="epochs", ylabel="%", yscale="log")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("{x:g}")


def history_figure(rows: Sequence[Mapping[str, float]], panels: Mapping[str, Sequence[str]]) -> Figure:
    """Chosen columns of a history over the updates, up to `ACROSS` panels beside each other.

    Parameters
    ----------
    rows : sequence of mapping of str to float
        At least one.
    panels : mapping of str to sequence of str
        Title of each panel → its columns, on a logarithmic axis where they span a factor of ten; those that are missing
        or have no finite value are left out, and panels without any.
    """
    from matplotlib.ticker import MaxNLocator

    known = {name for row in rows for name, value in row.items() if math.isfinite(value)}
    drawn = {title: names for title, own in panels.items() if (names := [name for name in own if name in known])}
    across, down = min(max(1, len(drawn)), ACROSS), max(1, math.ceil(len(drawn) / ACROSS))
    figure = new_figure(4.5 * across, 3.4 * down)
    figure.set_layout_engine("constrained")
    updates = [row["updates"] for row in rows]
    for place, (title, names) in enumerate(drawn.items(), start=1):
        axes = figure.add_subplot(down, across, place)
        for name in names:
            axes.plot(updates, [row[name] for row in rows], marker=marker_of(len(updates)), label=name)
        values = [value for name in names for row in rows if math.isfinite(value := row[name])]
        if 0.0 < 10.0 * min(values) < max(values):
            axes.set_yscale("log")
        axes.set(title=textwrap.fill(title, TITLE_LETTERS), xlabel="updates")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.legend(frameon=False)
    return figure
