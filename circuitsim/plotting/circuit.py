"""The drawing of a circuit: voltages as colour, currents as width and arrows, conducting diodes filled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from circuitsim.plotting.drawing import Drawing, Label, arrange
from circuitsim.plotting.figure import FAINT, INK, MARGIN, colours_of, plain, sheet
from circuitsim.plotting.worst import draw_worst
from circuitsim.units import format_quantity

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure

    from circuitsim.analysis import OperatingPoint
    from circuitsim.circuit import Circuit


def draw_circuit(source: OperatingPoint | Circuit, strength: np.ndarray | None = None, unit: str = "A") -> Figure:
    """Draw a circuit, with its voltages and currents if it is solved.

    Up to 160 nodes as a schematic with symbols and labels, beyond as coloured lines if the circuit is in layers. For
    other large circuits the figure is the map of a power grid's drops, or tables of the worst nodes and elements.

    Parameters
    ----------
    source : OperatingPoint or Circuit
        A circuit alone is drawn without voltages and currents.
    strength : (m,) float array, optional
        What the widths of wires show, in ``unit``; the currents if not given.
    unit : str
        ``"A"`` for currents, ``"S"`` for conductances.
    """
    drawing = arrange(source, strength)
    if drawing is None:
        return draw_worst(source)
    paper = sheet(drawing.low - MARGIN, drawing.high + MARGIN, drawing.circuit.title)
    colours = None if drawing.voltages is None else potential_colours(drawing, drawing.voltages)
    _paint(paper.axes, drawing, drawing.voltages, colours, paper.scale)
    paper.finish(colours, notes(drawing, drawing.unique, unit))
    return paper.figure


def potential_colours(drawing: Drawing, voltages: np.ndarray) -> ScalarMappable:
    """The map from potential, V, to colour, over the potentials of a drawing."""
    potentials = [s.potential for s in drawing.strokes if s.potential is not None]
    potentials += [float(voltages[dot.node]) for dot in drawing.dots]
    return colours_of(np.array(potentials))


def notes(drawing: Drawing, unique: np.ndarray | None, unit: str) -> list[str]:
    """What a reader of the picture needs."""
    words = []
    if unique is not None:
        what = {"A": "current", "S": "conductance"}[unit]
        words += [f"wire width: {what}, up to {format_quantity(drawing.strongest, unit, 3)}", "filled diodes conduct"]
        if not unique.all():
            words.append("* not unique")
    if drawing.controls:
        words.append("dashed: what controls a source or switch")
    if drawing.loops:
        names = ", ".join(drawing.circuit.names[k] for k in drawing.loops[:5])
        words.append(f"not drawn (both ends on one node): {names}{' …' if len(drawing.loops) > 5 else ''}")
    return words


def _paint(
    axes: Axes, drawing: Drawing, voltages: np.ndarray | None, colours: ScalarMappable | None, scale: float
) -> None:
    """Put a drawing on axes whose inches are ``scale`` inches of the figure."""
    from matplotlib.collections import LineCollection, PolyCollection

    def colour(volts: float | None) -> tuple[float, ...] | str:
        return INK if colours is None or volts is None else tuple(colours.to_rgba(np.array([volts]))[0])

    strokes, edge = drawing.strokes, scale * (1.4 if drawing.detailed else 0.5)
    axes.add_collection(
        LineCollection(
            [s.points for s in strokes],
            colors=[colour(s.potential) for s in strokes],
            linewidths=[scale * s.width for s in strokes],
            capstyle="round",
            zorder=2,
        )
    )
    fills = [INK if body.filled else "white" for body in drawing.bodies]
    axes.add_collection(
        PolyCollection(
            [body.points for body in drawing.bodies], facecolors=fills, edgecolors=INK, linewidths=edge, zorder=1.5
        )
    )
    axes.add_collection(
        LineCollection(
            [c.points for c in drawing.controls],
            colors=FAINT,
            linewidths=0.8 * scale,
            linestyles=(0, (4, 3)),
            zorder=1.4,
        )
    )
    heads = [c.head for c in drawing.controls]
    axes.add_collection(PolyCollection(heads, facecolors=FAINT, edgecolors="none", zorder=4))
    axes.add_collection(PolyCollection([a.points for a in drawing.arrows], facecolors=INK, edgecolors="none", zorder=4))
    if drawing.dots:
        area = scale**2 * (34 if drawing.detailed else 5)
        axes.scatter(
            [dot.x for dot in drawing.dots],
            [dot.y for dot in drawing.dots],
            s=area,
            c=[colour(None if voltages is None else float(voltages[dot.node])) for dot in drawing.dots],
            edgecolors=INK if drawing.detailed else "none",
            linewidths=0.8,
            zorder=5,
        )
    _write(axes, drawing.labels, scale)


def _write(axes: Axes, labels: list[Label], scale: float) -> None:
    from matplotlib.patheffects import withStroke

    halo = [withStroke(linewidth=2.2 * scale, foreground="white")]
    for text in (text for label in labels for text in label.texts):
        axes.text(
            text.x,
            text.y,
            plain(text.words),
            path_effects=halo,
            zorder=6,
            fontsize=scale * text.size,
            color=FAINT if text.faint else INK,
            rotation=text.angle,
            rotation_mode="anchor",
            ha=text.ha,
            va=text.va,
            linespacing=1.0,
            fontweight="bold" if text.bold else "normal",
        )
