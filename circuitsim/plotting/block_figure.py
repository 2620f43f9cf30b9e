"""A large circuit as one picture: its blocks as boxes, the nodes they have in common as lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from circuitsim.circuit import Circuit
from circuitsim.plotting.diagram import HALF, box_words, diagram, without_current
from circuitsim.plotting.division import Block
from circuitsim.plotting.drawing import shown
from circuitsim.plotting.figure import FAINT, INK, MARGIN, colours_of, plain, sheet
from circuitsim.plotting.grid import BUDGET
from circuitsim.plotting.layout import SCALES, Effort
from circuitsim.units import short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from circuitsim.analysis import OperatingPoint


def draw_blocks(source: OperatingPoint | Circuit, whole: Block) -> Figure:
    """Draw the block diagram of a large circuit.

    Parameters
    ----------
    source : OperatingPoint or Circuit
    whole : Block
        Of `division.division`.

    Returns
    -------
    matplotlib.figure.Figure
        A line for one common node has the colour of its potential.
    """
    from matplotlib.collections import LineCollection

    what = shown(source)
    found = diagram(what, whole.parts, Effort(BUDGET, SCALES, {}))
    paper = sheet(found.low - MARGIN, found.high + MARGIN, what.circuit.title)
    volts = what.voltages
    colours = None if volts is None else colours_of(volts)

    def colour(nodes: list[int]) -> tuple[float, ...] | str:
        if colours is None or volts is None or len(nodes) > 1:
            return INK
        return tuple(colours.to_rgba(volts[nodes])[0])

    paper.axes.add_collection(
        LineCollection(
            [found.centres[list(line.parts)] for line in found.lines],
            colors=[colour(line.nodes) for line in found.lines],
            linewidths=[paper.scale * (1.1 + 0.75 * float(np.log2(len(line.nodes)))) for line in found.lines],
            zorder=1,
        )
    )
    idle = without_current(what)
    for part, centre in zip(whole.parts, found.centres):
        _box(paper.axes, part, centre, box_words(source, part), bool(idle[list(part.elements)].all()), paper.scale)
    for text in (line.label for line in found.lines if line.label is not None):
        paper.axes.text(
            text.x,
            text.y,
            plain(text.words),
            fontsize=paper.scale * text.size,
            color=INK,
            ha=text.ha,
            va=text.va,
            linespacing=1.0,
            zorder=3,
        )
    words = [f"{len(what.circuit):,} elements in {len(whole.parts)} blocks; lines: common nodes"]
    words += ["faint: no current"] if idle.any() else []
    paper.finish(colours, [*words, "circuitsim report opens each block"])
    return paper.figure


def _box(axes: Axes, part: Block, centre: np.ndarray, words: list[str], idle: bool, scale: float) -> None:
    """A block: its name, and below it what it holds."""
    from matplotlib.patches import FancyBboxPatch

    x, y = (centre - HALF).tolist()
    width, height = (2 * HALF).tolist()
    ink = FAINT if idle else INK
    style = "round,pad=0,rounding_size=0.06"
    axes.add_patch(
        FancyBboxPatch((x, y), width, height, style, facecolor="white", edgecolor=ink, linewidth=1.4 * scale, zorder=2)
    )
    middle = float(centre[0])
    axes.text(
        middle,
        float(centre[1]) + 0.02,
        plain(short(part.name, 18)),
        fontsize=9 * scale,
        color=ink,
        ha="center",
        va="bottom",
        fontweight="bold",
        zorder=3,
    )
    axes.text(
        middle,
        float(centre[1]),
        plain("\n".join(words)),
        fontsize=7.5 * scale,
        color=FAINT,
        ha="center",
        va="top",
        linespacing=1.15,
        zorder=3,
    )
