"""The drawing of a circuit: voltages as colour, currents as width and arrows, conducting diodes filled; as a figure, or
as SVG whose elements and nodes are groups with names, values and descriptions, in the colours of their page.

Of circuits too large for it: the map of a power grid's voltage drops, or tables of the worst.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Collection
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from circuitsim.analysis import OperatingPoint
from circuitsim.analysis.ir_drop import IrDrop, ir_drop
from circuitsim.circuit import ELEMENTS, Circuit
from circuitsim.circuit.source import circuit_of
from circuitsim.errors import TopologyError
from circuitsim.formats import Table
from circuitsim.plotting.charts import FAINT, INK, LARGEST, ROUNDING, letters, measured, new_figure, plain, title
from circuitsim.plotting.drawing import Drawing, Text, arrange
from circuitsim.units import format_quantity, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure


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
        from circuitsim.plotting.charts import plot_drops

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


SCALE = 96.0
"""Units of the picture per inch."""

STYLE = """\
.cs-drawing { --cs-ink: var(--ink, #30343b); --cs-faint: var(--faint, #6a717c); --cs-paper: var(--paper, #ffffff);
  font-family: "DejaVu Sans", Verdana, sans-serif; }
.cs-drawing .wire { fill: none; stroke-linecap: round; stroke-linejoin: round; stroke: var(--cs-ink); }
.cs-drawing .wire.volts { stroke: color-mix(in srgb, var(--volts) var(--lighter, 100%), white); }
.cs-drawing .dot { fill: var(--cs-ink); stroke: var(--cs-ink); }
.cs-drawing .dot.volts { fill: color-mix(in srgb, var(--volts) var(--lighter, 100%), white); }
.cs-drawing .body { fill: var(--cs-paper); stroke: var(--cs-ink); }
.cs-drawing .control { fill: none; stroke: var(--cs-faint); stroke-dasharray: 5 4; }
.cs-drawing .control-head { fill: var(--cs-faint); }
.cs-drawing .filled, .cs-drawing .arrow { fill: var(--cs-ink); stroke: var(--cs-ink); }
.cs-drawing text { fill: var(--cs-ink); stroke: var(--cs-paper); stroke-width: 3px; paint-order: stroke;
  white-space: pre; dominant-baseline: central; }
.cs-drawing text.faint { fill: var(--cs-faint); }
.cs-drawing .marked .wire { stroke: #d22 !important; stroke-width: 5px; }
.cs-drawing .marked .body { stroke: #d22; }
.cs-drawing .marked text { fill: #d22; }
"""


def circuit_svg(source: OperatingPoint | Circuit, marked: Collection[str] = (), style: bool = True) -> str:
    """A circuit as an ``<svg>`` element.

    Parameters
    ----------
    source : OperatingPoint or Circuit
        A circuit alone is drawn without voltages and currents.
    marked : collection of str
        Elements to draw in red.
    style : bool
        Whether the picture carries its own style sheet; a page may have it once instead.

    Returns
    -------
    str
        Each element is ``<g class="element" data-element="index">``, each node ``<g class="node" data-node="index">``.
        Empty for a circuit that is too large for a drawing.
    """
    from matplotlib.colors import to_hex

    drawing = arrange(source)
    if drawing is None:
        return ""
    circuit, corner = drawing.circuit, np.array([drawing.low[0] - MARGIN, drawing.high[1] + MARGIN])
    colours, groups = colours_of(drawing), dict[tuple[str, int], list[str]]()
    for shape, colour in zip(drawing.shapes, colours.to_rgba(np.array([s.potential or 0.0 for s in drawing.shapes]))):
        places = " ".join(f"{x:.1f},{y:.1f}" for x, y in ((shape.points - corner) * (SCALE, -SCALE)).tolist())
        volts = "" if shape.potential is None else f' volts" style="--volts:{to_hex(colour)}'
        groups.setdefault(shape.owner, []).append(
            f'<path class="{shape.kind}{volts}" stroke-width="{shape.width * SCALE / 72.0:.1f}" '
            f'd="M{places}{"Z" * shape.closed}"/>'
        )
    for owner, texts in drawing.labels:
        groups[owner] += [_text(text, *((text.x - corner[0]) * SCALE, (corner[1] - text.y) * SCALE)) for text in texts]
    red = {name.lower() for name in marked}
    parts = []
    for (kind, k), pieces in sorted(groups.items()):
        if not kind:
            parts += pieces
            continue
        name = circuit.names[k] if kind == "element" else circuit.node_names[k]
        states = {
            " marked": kind == "element" and name.lower() in red,
            " idle": kind == "element" and drawing.point is not None and drawing.shares[k] <= 1e-12,
        }
        said = escape(describe(source, k) if kind == "element" else describe_node(source, k))
        parts.append(
            f'<g class="{kind}{"".join(state for state, holds in states.items() if holds)}" data-{kind}="{k}" '
            f'data-name="{escape(name)}" role="img" aria-label="{said}"><title>{said}</title>{"".join(pieces)}</g>'
        )
    width, height = (drawing.high - drawing.low + 2 * MARGIN) * SCALE
    how = "without an operating point" if drawing.point is None else "with its voltages and currents"
    begin = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="cs-drawing" role="group" '
        f'aria-label="{escape(f"Circuit {circuit.title!r}, {how}")}" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" style="max-width:100%;height:auto">'
    )
    return "\n".join([begin, f"<style>{STYLE}</style>" * style, *parts, "</svg>"])


def _text(text: Text, x: float, y: float) -> str:
    """A text at a point of the picture."""
    anchor = {"left": "start", "center": "middle", "right": "end"}[text.ha]
    how = ' font-weight="bold"' * text.bold + ' class="faint"' * text.faint
    rotation = f' transform="rotate({-text.angle:.1f} {x:.1f} {y:.1f})"' if text.angle else ""
    size = f'font-size="{text.size * SCALE / 72.0:.1f}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {size} text-anchor="{anchor}"{how}{rotation}>{escape(text.words)}</text>'


def describe_node(source: OperatingPoint | Circuit, node: int) -> str:
    """Name of a node, and its voltage if solved."""
    name = f"node {circuit_of(source).node_names[node]}"
    return name if isinstance(source, Circuit) else f"{name}: {_quantity(source.voltages[node], 'V')}"


def describe(source: OperatingPoint | Circuit, k: int) -> str:
    """Description of an element: name, kind, nodes, value, and if solved volts, amperes, watts and state."""
    circuit = circuit_of(source)
    kind, first, second, value = (column[k] for column in circuit.arrays()[:4])
    row = ELEMENTS[int(kind)]
    words = f"{circuit.names[k]}, {row.name} from {circuit.node_names[int(first)]} to {circuit.node_names[int(second)]}"
    if row.parameter:
        words += f", {format_quantity(float(value), row.unit, 5)}"
    if isinstance(source, Circuit):
        return words
    numbers = ((source.drops[k], "V"), (source.currents[k], "A"), (source.powers[k], "W"))
    words += ": " + ", ".join(_quantity(number, unit) for number, unit in numbers)
    region = source.region(k)
    return words + (f", {region.name}" if region is not None else "")


def _quantity(number: float, unit: str) -> str:
    return format_quantity(float(number) + 0.0, unit, 5)
