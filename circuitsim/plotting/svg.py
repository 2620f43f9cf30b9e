"""A drawing as SVG: elements and nodes are groups with names, values and descriptions, colours follow the page.

Ink and paper are the custom properties ``--ink``, ``--faint`` and ``--paper`` of the page, so that
a dark page has a dark drawing.
"""

from __future__ import annotations

from collections.abc import Collection
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from circuitsim.circuit import ELEMENTS, Circuit
from circuitsim.circuit.source import circuit_of
from circuitsim.plotting.circuit import MARGIN, colours_of
from circuitsim.plotting.drawing import arrange
from circuitsim.plotting.labels import Text
from circuitsim.units import format_quantity

if TYPE_CHECKING:
    from circuitsim.analysis import OperatingPoint

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
