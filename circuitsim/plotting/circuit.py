"""The drawing of a circuit: voltages as colour, currents as width and arrows, conducting diodes filled.

Of circuits too large for it: the map of a power grid's voltage drops, or tables of the worst.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from circuitsim.circuit import ELEMENTS, Circuit
from circuitsim.circuit.source import circuit_of
from circuitsim.errors import TopologyError
from circuitsim.formats.table import Table
from circuitsim.plotting.drawing import Drawing, Label, arrange
from circuitsim.plotting.figure import FAINT, INK, LARGEST, ROUNDING, letters, measured, new_figure, plain, title
from circuitsim.units import format_quantity, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure

    from circuitsim.analysis import OperatingPoint
    from circuitsim.analysis.ir_drop import IrDrop
    from circuitsim.circuit import Circuit

MARGIN = 0.2
"""Inches around a drawing."""


def draw_circuit(source: OperatingPoint | Circuit) -> Figure:
    """Draw a circuit, with its voltages and currents if it is solved.

    Circuits of up to 160 nodes are drawn as a schematic with symbols and labels, larger or denser ones as coloured
    lines if they are layered. For others the figure is the map of a power grid's drops, or tables of the worst nodes
    and elements.

    Parameters
    ----------
    source : OperatingPoint or Circuit
        A circuit alone is drawn without voltages and currents.
    """
    drawing = arrange(source)
    if drawing is None:
        return draw_worst(source)
    low, high = (drawing.low - MARGIN).tolist(), (drawing.high + MARGIN).tolist()
    width, height = max(4.5, high[0] - low[0] + 1.2), max(2.6, high[1] - low[1] + 0.7)
    figure = new_figure(width, height)
    axes = figure.add_axes((0.1 / width, 0.3 / height, 1.0 - 1.2 / width, 1.0 - 0.7 / height))
    axes.set_axis_off()
    axes.set(aspect="equal", xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    title(axes, drawing.circuit.title)
    colours = potential_colours(drawing)
    _paint(axes, drawing, colours, min(1.0, LARGEST / max(width, height)))
    if colours is not None:
        bar = figure.add_axes((1.0 - 0.95 / width, 0.5 / height, 0.14 / width, 1.0 - 1.1 / height))
        figure.colorbar(colours, cax=bar)
        bar.tick_params(labelsize=7, colors=INK)
        measured(bar.yaxis, "", "V")
    space = "\N{NO-BREAK SPACE}"  # within a note
    words = "   ·   ".join(note.replace(" ", space) for note in notes(drawing))
    lines = [line.replace(space, " ").strip(" ·") for line in textwrap.wrap(words, letters(width, 7))]
    figure.text(0.1 / width, 0.1 / height, plain("\n".join(lines)), fontsize=7, color=FAINT)
    return figure


def potential_colours(drawing: Drawing) -> ScalarMappable | None:
    """The map from node voltage, V, to colour, over the range of a drawing; None without an operating point."""
    if drawing.point is None:
        return None
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    potentials = [s.potential for s in drawing.strokes if s.potential is not None]
    potentials += [float(drawing.point.voltages[dot.node]) for dot in drawing.dots]
    low, high = min(potentials, default=0.0), max(potentials, default=0.0)
    pad = 0.5 if high - low <= ROUNDING * max(abs(low), abs(high)) else 0.0
    # The bright end of the map would be invisible on white paper.
    shades = LinearSegmentedColormap.from_list("potential", colormaps["plasma"](np.linspace(0.0, 0.88, 256)))
    return ScalarMappable(Normalize(low - pad, high + pad), shades)


def notes(drawing: Drawing) -> list[str]:
    """Notes for the reader of the picture."""
    words = []
    if drawing.point is not None:
        strongest = format_quantity(float(np.abs(drawing.currents).max(initial=0.0)), "A", 3)
        words.append(f"wire width: current, up to {strongest}")
        if "D" in drawing.circuit.count():
            words.append("filled diodes conduct")
        if not drawing.point.unique.all():
            words.append("* not unique")
    if drawing.controls:
        words.append("dashed: what controls a source or switch")
    dynamics = drawing.circuit.dynamics
    for (first, second), factor in () if dynamics is None else list(dynamics.coupled({}).items())[:5]:
        words.append(f"coupled: {first} and {second}, k = {factor:g}")
    if drawing.loops:
        names = ", ".join(drawing.circuit.names[k] for k in drawing.loops[:5])
        words.append(f"not drawn (both ends on one node): {names}{' …' if len(drawing.loops) > 5 else ''}")
    return words


def _paint(axes: Axes, drawing: Drawing, colours: ScalarMappable | None, scale: float) -> None:
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
            c=[colour(drawing.potential(dot.node)) for dot in drawing.dots],
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


SHOWN = 12
"""Number of rows in a table."""


def drops_of(source: OperatingPoint | Circuit) -> IrDrop | None:
    """The voltage drops of a solved power grid whose node names have coordinates; None for other circuits."""
    from circuitsim.analysis.ir_drop import ir_drop

    if isinstance(source, Circuit):
        return None
    try:
        found = ir_drop(source)
    except TopologyError:
        return None
    return found if np.isfinite(found.places).any() else None


def worst(source: OperatingPoint | Circuit) -> list[Table]:
    """Tables: the nodes with the largest drops of a power grid, otherwise with the largest voltages in magnitude, and
    the elements with the largest powers; for an unsolved circuit, the number of elements of each kind."""
    circuit = circuit_of(source)
    if isinstance(source, Circuit):
        kinds = Counter(circuit.arrays().kind.tolist())
        return [Table.of("elements, number", [(ELEMENTS[kind].name, n) for kind, n in kinds.most_common()])]
    grid = drops_of(source)
    if grid is not None:
        rows = [(short(name, 40), volts, drop) for name, _, volts, drop in grid.worst(SHOWN)]
        first = Table.of("worst node, voltage, drop", rows, ("", "V", "V"))
    else:
        order = np.argsort(-np.abs(source.voltages), kind="stable")[:SHOWN]
        names = [short(circuit.node_names[k], 40) for k in order.tolist()]
        first = Table(("largest node voltages", "voltage"), ("", "V"), (names, source.voltages[order]))
    order = np.argsort(-np.abs(source.powers), kind="stable")[:SHOWN]
    names = [short(circuit.names[k], 40) for k in order.tolist()]
    numbers = source.powers[order], source.drops[order], source.currents[order]
    return [first, Table(("largest powers", "power", "voltage", "current"), ("", "W", "V", "A"), (names, *numbers))]


def draw_worst(source: OperatingPoint | Circuit) -> Figure:
    """The map of the drops if there is one, otherwise the tables of `worst` as a figure."""
    grid = drops_of(source)
    if grid is not None:
        from circuitsim.plotting.maps import plot_drops

        return plot_drops(grid)
    circuit = circuit_of(source)
    lines = [f"{len(circuit.node_names):,} nodes, {len(circuit):,} elements: too many for a drawing"]
    for table in worst(source):
        lines += ["", *table.text().splitlines()]
    figure = new_figure(5.5, 0.8 + 0.145 * len(lines))
    axes = figure.add_axes((0.03, 0.02, 0.94, 0.9))
    axes.set_axis_off()
    title(axes, circuit.title)
    axes.text(0.0, 1.0, plain("\n".join(lines)), va="top", family="monospace", fontsize=8, color=INK)
    return figure
