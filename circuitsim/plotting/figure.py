"""Figures without a display."""

from __future__ import annotations

import io
import math
import os
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from circuitsim._files import write_file
from circuitsim.errors import UsageError
from circuitsim.units import format_quantity

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

ROUNDING = 1e-9
"""Relative range of an axis that counts as rounding: the accuracy to which results are certified."""

INK, FAINT = "#30343b", "#8a919c"
BLUE, RED, CYAN = "#3b6ea5", "#b4413c", "#17becf"
"""Colours of data; of limits and poles; of pads."""
STYLES = {"-": "solid", "--": "dashed", ":": "dotted", "-.": "dash-dotted"}
"""Line styles of the quantities in a family of curves, whose colours show the varied value."""
DISTINCT = 10
"""Maximum number of curves in a panel with distinct colours."""
NAMED = 14
"""Maximum number of curves in a panel with names at their ends."""

DPI = 130
LARGEST = 40.0
"""Largest side of a picture, in inches."""
LEFT_OUT = {"png": "Software", "svg": "Date", "pdf": "CreationDate"}
"""Per format, what a picture does not state, so that the same figure gives the same bytes."""


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of that size in inches, within `LARGEST`."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    from circuitsim.plotting.shown import ShownFigure

    size = min(width, LARGEST), min(height, LARGEST)
    return FigureCanvasAgg(ShownFigure(figsize=size, dpi=DPI, facecolor="white")).figure


def stacked(heading: str, width: float, heights: Sequence[float], sharex: bool = False) -> tuple[Figure, list[Any]]:
    """A figure of panels one below the other.

    Parameters
    ----------
    heading : str
        Title above the first.
    width : float
        Inches.
    heights : sequence of float
        Of each panel, inches.
    sharex : bool
        Whether the panels share one horizontal axis.
    """
    figure = new_figure(width, sum(heights))
    figure.set_layout_engine("tight")
    axes = figure.subplots(len(heights), 1, sharex=sharex, squeeze=False, height_ratios=heights)[:, 0]
    title(axes[0], heading)
    return figure, list(axes)


def rendered(figure: Figure, form: str) -> bytes:
    """A figure as the bytes of a picture; the same figure gives the same bytes.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    form : {"png", "svg", "pdf"}

    Returns
    -------
    bytes
    """
    from matplotlib import backend_bases, rc_context

    buffer, shown = io.BytesIO(), figure.canvas
    drawn = getattr(backend_bases.get_registered_canvas_class(form)(figure), f"print_{form}")  # `savefig` draws twice
    with rc_context({"svg.hashsalt": "circuitsim", "svg.fonttype": "none"}):
        drawn(buffer, metadata={LEFT_OUT[form]: None})
    figure.set_canvas(shown)
    return buffer.getvalue()


def write(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure, in the format of the file name's extension; an existing file is replaced atomically.

    Raises
    ------
    UsageError
        The name does not end in ``.png``, ``.svg`` or ``.pdf``.
    """
    form = Path(path).suffix[1:].lower()
    if form not in LEFT_OUT:
        raise UsageError(f"{os.fspath(path)!r}: the name must end in .png, .svg or .pdf")
    write_file(path, rendered(figure, form))


def plain(text: str) -> str:
    """A user's text with ``$`` escaped, so that it does not begin a formula."""
    return text.replace("$", r"\$")


def measured(axis: Axis, name: str, unit: str) -> None:
    """Label an axis after its curves are drawn; its numbers have SI prefixes and the unit.

    A range of rounding alone is widened, so that a constant looks constant. Tick labels have as many digits as needed
    to differ.
    """
    from matplotlib.ticker import FuncFormatter

    axis.set_label_text(plain(name), color=INK)
    low, high = axis.get_view_interval()
    scale = max(abs(low), abs(high))
    widen(axis, ROUNDING * scale, 0.05 * scale)
    span = np.ptp(axis.get_view_interval())
    digits = 4 + max(0, math.ceil(math.log10(0.1 * scale / span))) if span > 0.0 else 4
    axis.set_major_formatter(FuncFormatter(lambda value, _: format_quantity(value + 0.0, unit, digits).strip()))


def widen(axis: Axis, rounding: float, margin: float) -> None:
    """Widen an axis around its centre where its range is rounding alone."""
    low, high = axis.get_view_interval()
    if abs(high - low) < rounding:
        middle = 0.5 * (low + high)
        axis.set_view_interval(middle - margin, middle + margin, ignore=True)


def gridded(axes: Axes, axis: Literal["both", "x", "y"] = "both") -> None:
    """Faint lines behind the curves, small numbers at the axes."""
    axes.grid(True, axis=axis, linewidth=0.4, alpha=0.6)
    axes.tick_params(labelsize=8, colors=INK)


def grows_by_factors(x: np.ndarray) -> bool:
    """Whether the values increase geometrically, over at least a factor of 30."""
    if x.size < 3 or (x <= 0).any() or x.max() < 30 * x.min():
        return False
    ratio, step = np.diff(np.log(x)), np.diff(x)
    return bool(np.ptp(ratio) / np.abs(ratio).max() < np.ptp(step) / np.abs(step).max())


def family(values: np.ndarray) -> list[Any]:
    """A colour for each of these values, from dark to light in ascending order."""
    from matplotlib import colormaps

    scale = np.log(values) if grows_by_factors(np.unique(values)) else values
    return [*map(tuple, colormaps["viridis"](0.9 * (scale - scale.min()) / (np.ptp(scale) or 1.0)))]


def name_curves(axes: Axes, name: str, unit: str, note: str = "") -> None:
    """Label the vertical axis of a panel, and each of its curves at its end; for more than `NAMED` state their number
    and quantities.

    Parameters
    ----------
    axes : Axes
    name, unit : str
        Of the axis; without a name it is already labelled.
    note : str
        Meaning of the colours; by default they only distinguish curves.
    """
    if name:
        measured(axes.yaxis, name, unit)
    gridded(axes)
    curves = [line for line in axes.lines if not str(line.get_label()).startswith("_")]
    if not note and len(curves) > DISTINCT:
        for line, colour in zip(curves, family(np.arange(len(curves)))):
            line.set_color(colour)
    how: dict[str, Any] = {"fontsize": 7, "transform": axes.transAxes}
    low, high = axes.get_ylim()
    if len(curves) > NAMED:
        styles = {str(line.get_label()).partition("  ")[0]: str(line.get_linestyle()) for line in curves}
        names = [name + f" ({STYLES[style]})" * (len(styles) > 1) for name, style in styles.items()]
        what = f" of {', '.join(names)}" if len(names) <= len(STYLES) else ""
        words = f"{len(curves)} curves{what}, dark to light {note or 'in their order'}"
        axes.text(0.01, 0.97, plain(words), va="top", **how)
        axes.set_ylim(low, high + 0.1 * (high - low))  # the words are above the curves
        return
    values = [np.asarray(line.get_ydata(), dtype=float) for line in curves]
    last = [float(y[np.isfinite(y)][-1]) if np.isfinite(y).any() else low for y in values]
    order = sorted(range(len(curves)), key=last.__getitem__)
    step = 8.5 * DPI / 72.0 / axes.bbox.height
    place, places = -step, []
    for k in order:  # none over the one below
        place = max(place + step, (last[k] - low) / (high - low))
        places.append(place)
    place = 1.0 + step
    for k, wanted in zip(reversed(order), reversed(places)):  # nor above the panel
        place = min(place - step, wanted)
        axes.text(1.01, place, str(curves[k].get_label()), va="center", color=curves[k].get_color(), **how)


def legend(axes: Axes) -> None:
    """The names of the curves, legible over them."""
    axes.legend(fontsize=7, loc="best", framealpha=0.8, edgecolor="none")


def title(axes: Axes, text: str) -> None:
    """The deck's title without a comment's star, on the left, in at most two lines."""
    text = text.lstrip("* ")
    if text:
        width = axes.bbox.width / DPI
        lines = textwrap.wrap(text, min(90, letters(width, 11)))
        if len(lines) > 1:
            lines = textwrap.wrap(text, letters(width, 9), max_lines=2, placeholder=" …")
        size = 11 if len(lines) == 1 else 9
        axes.set_title(plain("\n".join(lines)), loc="left", fontsize=size, color=INK)


def letters(width: float, size: float) -> int:
    """Approximate number of letters of a size, points, in a line of a figure of a given width, inches."""
    return max(20, int((width - 0.2) / (0.62 * size / 72.0)))
