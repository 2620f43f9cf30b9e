"""Figures without a display."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from circuitsim.units import format_quantity

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

INK = "#30343b"
FAINT = "#8a919c"

DPI = 130
LARGEST = 40.0
"""Largest side of a picture, in inches."""


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of that size in inches, within `LARGEST`."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(min(width, LARGEST), min(height, LARGEST)), dpi=DPI, facecolor="white")
    FigureCanvasAgg(figure)
    return figure


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
    import matplotlib

    buffer = io.BytesIO()
    metadata = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[form]
    with matplotlib.rc_context({"svg.hashsalt": "circuitsim", "svg.fonttype": "none"}):
        figure.savefig(buffer, format=form, metadata=metadata)
    return buffer.getvalue()


def plain(text: str) -> str:
    """Text of a user's file as it is: a ``$`` must not begin a formula."""
    return text.replace("$", r"\$")


def measured(axis: Axis, name: str, unit: str) -> None:
    """Name an axis; its numbers have SI prefixes and the unit."""
    from matplotlib.ticker import FuncFormatter

    axis.set_label_text(plain(name), color=INK)
    if unit:
        axis.set_major_formatter(FuncFormatter(lambda value, _: format_quantity(value + 0.0, unit, 4)))


def title(axes: Axes, text: str) -> None:
    """The deck's title, on the left."""
    if text:
        axes.set_title(plain(text if len(text) <= 90 else text[:89] + "…"), loc="left", fontsize=11, color=INK)
