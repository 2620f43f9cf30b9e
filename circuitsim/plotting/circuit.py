"""The drawing of a circuit: voltages as colour, currents as width and arrows, conducting diodes filled.

Of circuits too large for it: the map of a power grid's voltage drops, or tables of the worst.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from circuitsim.circuit import ELEMENTS, Circuit
from circuitsim.circuit.source import circuit_of
from circuitsim.errors import TopologyError
from circuitsim.formats.table import Table
from circuitsim.plotting.drawing import Drawing, arrange
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
    colours = colours_of(drawing)
    _paint(axes, drawing, colours, min(1.0, LARGEST / max(width, height)))
    if drawing.point is not None:
        bar = figure.add_axes((1.0 - 0.95 / width, 0.5 / height, 0.14 / width, 1.0 - 1.1 / height))
        figure.colorbar(colours, cax=bar)
        bar.tick_params(labelsize=7, colors=INK)
        measured(bar.yaxis, "", "V")
    space = "\N{NO-BREAK SPACE}"  # within a note
    words = "   ·   ".join(note.replace(" ", space) for note in notes(drawing))
    lines = [line.replace(space, " ").strip(" ·") for line in textwrap.wrap(words, letters(width, 7))]
    figure.text(0.1 / width, 0.1 / height, plain("\n".join(lines)), fontsize=7, color=FAINT)
    return figure


def colours_of(drawing: Drawing) -> ScalarMappable:
    """The map from node voltage, V, to colour, over the range of a drawing."""
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    potentials = [shape.potential for shape in drawing.shapes if shape.potential is not None]
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
    if any(shape.kind == "control" for shape in drawing.shapes):
        words.append("dashed: what controls a source or switch")
    dynamics = drawing.circuit.dynamics
    for (first, second), factor in () if dynamics is None else list(dynamics.coupled({}).items())[:5]:
        words.append(f"coupled: {first} and {second}, k = {factor:g}")
    if drawing.loops:
        names = ", ".join(drawing.circuit.names[k] for k in drawing.loops[:5])
        words.append(f"not drawn (both ends on one node): {names}{' …' if len(drawing.loops) > 5 else ''}")
    return words


FILLS = {"body": "white", "filled": INK, "arrow": INK, "dot": INK, "control-head": FAINT}
"""Colours of closed shapes."""


def _paint(axes: Axes, drawing: Drawing, colours: ScalarMappable, scale: float) -> None:
    """Put a drawing on axes whose inches are ``scale`` inches of the figure."""
    from matplotlib.collections import PathCollection
    from matplotlib.path import Path
    from matplotlib.patheffects import withStroke

    shapes, edges, fills = drawing.shapes, list[Any](), list[Any]()
    for shape, colour in zip(shapes, colours.to_rgba(np.array([s.potential or 0.0 for s in shapes])).tolist()):
        ink = FAINT if shape.kind.startswith("control") else INK
        edges.append(ink if shape.closed or shape.potential is None else colour)
        fills.append("none" if not shape.closed else FILLS[shape.kind] if shape.potential is None else colour)
    axes.add_collection(
        PathCollection(
            [Path(np.concatenate([s.points, s.points[: s.closed]])) for s in shapes],
            edgecolors=edges,
            facecolors=fills,
            linewidths=[scale * s.width for s in shapes],
            linestyles=[(0, (4, 3)) if s.kind == "control" else "-" for s in shapes],
            capstyle="round",
        )
    )
    halo = [withStroke(linewidth=2.2 * scale, foreground="white")]
    for text in (text for _, texts in drawing.labels for text in texts):
        axes.text(
            text.x,
            text.y,
            plain(text.words),
            path_effects=halo,
            fontsize=scale * text.size,
            color=FAINT if text.faint else INK,
            rotation=text.angle,
            rotation_mode="anchor",
            ha=text.ha,
            va="center",
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
