"""A drawing as SVG: elements and nodes are groups with names, values and descriptions, colours follow the page.

Ink and paper are the custom properties ``--ink``, ``--faint`` and ``--paper`` of the page, so that
a dark page has a dark drawing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from circuitsim.circuit import ELEMENTS, Circuit
from circuitsim.circuit.source import circuit_of
from circuitsim.plotting.circuit import MARGIN, potential_colours
from circuitsim.plotting.drawing import NOTHING, Drawing, Label, Stroke, arrange
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
.cs-drawing .volts { stroke: color-mix(in srgb, var(--volts) var(--lighter, 100%), white); }
.cs-drawing .dot { stroke-width: 1px; fill: color-mix(in srgb, var(--volts) var(--lighter, 100%), white); }
.cs-drawing .body { fill: var(--cs-paper); stroke: var(--cs-ink); }
.cs-drawing .control { fill: none; stroke: var(--cs-faint); stroke-width: 1px; stroke-dasharray: 5 4; }
.cs-drawing .control-head { fill: var(--cs-faint); }
.cs-drawing .filled { fill: var(--cs-ink); stroke: var(--cs-ink); }
.cs-drawing text { fill: var(--cs-ink); stroke: var(--cs-paper); stroke-width: 3px; paint-order: stroke;
  white-space: pre; }
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
    drawing = arrange(source)
    if drawing is None:
        return ""
    return _Writer(drawing, frozenset(name.lower() for name in marked)).text(source, STYLE if style else "")


class _Writer:
    """Groups the parts of a drawing by element and node; ``marked`` names are in lower case."""

    def __init__(self, drawing: Drawing, marked: frozenset[str]) -> None:
        self.drawing, self.colours, self.marked = drawing, potential_colours(drawing), marked
        self.left, self.top = drawing.low[0] - MARGIN, drawing.high[1] + MARGIN

    def text(self, source: OperatingPoint | Circuit, style: str) -> str:
        """The whole picture with its own style sheet."""
        size = (self.drawing.high - self.drawing.low + 2 * MARGIN) * SCALE
        kind = "with its voltages and currents" if self.colours is not None else "without an operating point"
        title = f"Circuit {self.drawing.circuit.title!r}, {kind}"
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="cs-drawing" role="group" '
            f'aria-label="{escape(title)}" viewBox="0 0 {size[0]:.0f} {size[1]:.0f}" width="{size[0]:.0f}" '
            'style="max-width:100%;height:auto">'
        ]
        if style:
            parts.append(f"<style>{style}</style>")
        groups = self._by_element()
        parts += [self._wire(s) for s in self.drawing.strokes if s.element == NOTHING]
        parts += [self._element(k, pieces, source) for k, pieces in sorted(groups.items())]
        parts += self._nodes(source)
        return "\n".join([*parts, "</svg>"])

    def _by_element(self) -> dict[int, list[str]]:
        """The parts of every element, bodies first, texts last."""
        groups: dict[int, list[str]] = {}
        edge = 1.9 if self.drawing.detailed else 0.7
        for control in self.drawing.controls:
            groups.setdefault(control.element, []).append(
                f'<polyline class="control" points="{self._points(control.points)}"/>'
                f'<polygon class="control-head" points="{self._points(control.head)}"/>'
            )
        for body in self.drawing.bodies:
            name = "filled" if body.filled else "body"
            shape = f'<polygon class="{name}" stroke-width="{edge}" points="{self._points(body.points)}"/>'
            groups.setdefault(body.element, []).append(shape)
        for stroke in self.drawing.strokes:
            if stroke.element != NOTHING:
                groups.setdefault(stroke.element, []).append(self._wire(stroke))
        for arrow in self.drawing.arrows:
            groups[arrow.element].append(f'<polygon class="filled" points="{self._points(arrow.points)}"/>')
        for label in self.drawing.labels:
            if label.element != NOTHING:
                groups[label.element] += self._words(label)
        return groups

    def _element(self, k: int, pieces: Sequence[str], source: OperatingPoint | Circuit) -> str:
        circuit = self.drawing.circuit
        name = " marked" if circuit.names[k].lower() in self.marked else ""
        if self.drawing.point is not None and self.drawing.shares[k] <= 1e-12:
            name += " idle"
        said = escape(describe(source, k), quote=True)
        begin = f'<g class="element{name}" data-element="{k}" data-name="{escape(circuit.names[k])}" role="img" '
        return f'{begin}aria-label="{said}"><title>{said}</title>{"".join(pieces)}</g>'

    def _nodes(self, source: OperatingPoint | Circuit) -> list[str]:
        labels = {label.node: "".join(self._words(label)) for label in self.drawing.labels if label.element == NOTHING}
        found = []
        radius = 4.0 if self.drawing.detailed else 1.6
        for dot in self.drawing.dots:
            potential = self.drawing.potential(dot.node)
            fill = self._colour(potential)
            shown_as = f"node {self.drawing.circuit.node_names[dot.node]}"
            if potential is not None:
                shown_as += f": {format_quantity(potential + 0.0, 'V', 5)}"
            said = escape(shown_as, quote=True)
            circle = (
                f'<circle cx="{self._x(dot.x):.1f}" cy="{self._y(dot.y):.1f}" r="{radius}" class="wire dot" '
                f'style="--volts:{fill}"/>'
            )
            name = escape(self.drawing.circuit.node_names[dot.node])
            begin = f'<g class="node" data-node="{dot.node}" data-name="{name}" role="img" aria-label="{said}">'
            found.append(f"{begin}<title>{said}</title>{circle}{labels.get(dot.node, '')}</g>")
        return found

    # ------------------------------------------------------------------ pieces
    def _x(self, x: float) -> float:
        return float((x - self.left) * SCALE)

    def _y(self, y: float) -> float:
        return float((self.top - y) * SCALE)

    def _points(self, points: np.ndarray) -> str:
        return " ".join(f"{self._x(x):.1f},{self._y(y):.1f}" for x, y in points.tolist())

    def _colour(self, volts: float | None) -> str:
        from matplotlib.colors import to_hex

        if self.colours is None or volts is None:
            return "var(--cs-ink)"
        return to_hex(self.colours.to_rgba(np.array([volts]))[0])

    def _wire(self, stroke: Stroke) -> str:
        volts = "" if stroke.potential is None else f' volts" style="--volts:{self._colour(stroke.potential)}'
        width = stroke.width * SCALE / 72.0
        return f'<polyline class="wire{volts}" stroke-width="{width:.1f}" points="{self._points(stroke.points)}"/>'

    def _words(self, label: Label) -> list[str]:
        return [_words(text, self._x(text.x), self._y(text.y)) for text in label.texts]


def _words(text: Text, x: float, y: float) -> str:
    """A text at a point of the picture; the baseline of a line lies a fifth of the size above its bottom."""
    size, count = text.size * SCALE / 72.0, text.words.count("\n") + 1
    bottom = {"bottom": 0.0, "center": 0.5, "top": 1.0}[text.va] * 1.22 * size * count
    anchor = {"left": "start", "center": "middle", "right": "end"}[text.ha]
    turn = f' transform="rotate({-text.angle:.1f} {x:.1f} {y:.1f})"' if text.angle else ""
    weight = ' font-weight="bold"' if text.bold else ""
    faint = ' class="faint"' if text.faint else ""
    lines = []
    for k, line in enumerate(text.words.split("\n")):
        down = bottom - 1.22 * size * (count - 1 - k) - 0.28 * size
        lines.append(
            f'<text x="{x:.1f}" y="{y + down:.1f}" font-size="{size:.1f}" text-anchor="{anchor}"'
            f"{weight}{faint}{turn}>{escape(line)}</text>"
        )
    return "".join(lines)


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
    words += ": " + ", ".join(format_quantity(float(number) + 0.0, unit, 5) for number, unit in numbers)
    region = source.region(k)
    return words + (f", {region.name}" if region is not None else "")
