"""A large circuit as several pictures: block diagrams, and drawings of the blocks without parts."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from circuitsim.circuit import GROUND, Circuit
from circuitsim.plotting.diagram import HALF, Diagram, Line, box_words, diagram, without_current
from circuitsim.plotting.division import Block
from circuitsim.plotting.drawing import arrange, shown
from circuitsim.plotting.figure import MARGIN, colours_of
from circuitsim.plotting.labels import Text
from circuitsim.plotting.layout import Effort
from circuitsim.plotting.svg import SCALE, STYLE, Writer, words
from circuitsim.units import short

if TYPE_CHECKING:
    from circuitsim.analysis import OperatingPoint

BUDGET = 400
"""Moves to weigh for one of many drawings."""


def block_svgs(source: OperatingPoint | Circuit, whole: Block, marked: Collection[str] = ()) -> Iterator[str]:
    """The pictures of a block and of all in it, each an ``<svg>`` without a style sheet; the first is the whole.

    Parameters
    ----------
    source : OperatingPoint or Circuit
    whole : Block
        Of `division.division`.
    marked : collection of str
        Elements to draw in red; so are the boxes they are in.

    Yields
    ------
    str
        ``data-block`` is its number, ``data-up`` that of the block it is part of, ``data-name`` its name. A box is
        ``<g class="block" data-block="number">``, elements and nodes are as in `svg.circuit_svg`.
    """
    yield from _Pictures(source, marked).of(whole, 0, None)


def overview_svg(source: OperatingPoint | Circuit, whole: Block) -> str:
    """The diagram of the whole alone, with its style sheet; its boxes do not open.

    Parameters
    ----------
    source : OperatingPoint or Circuit
    whole : Block
        Of `division.division`.

    Returns
    -------
    str
        An ``<svg>`` element.
    """
    return next(_Pictures(source, (), STYLE).of(whole, 0, None))


class _Pictures:
    """What all pictures have in common: colours, widths, known arrangements; a style sheet for a picture alone."""

    def __init__(self, source: OperatingPoint | Circuit, marked: Collection[str], style: str = "") -> None:
        self.source, self.what, self.style = source, shown(source), style
        self.marked = frozenset(name.lower() for name in marked)
        self.effort = Effort(BUDGET, (1.3,), {})
        self.colours = None if self.what.voltages is None else colours_of(self.what.voltages)
        self.idle = without_current(self.what)

    def of(self, block: Block, number: int, up: int | None) -> Iterator[str]:
        """The pictures of a block and of its parts; numbers in the order of the pictures."""
        attributes = f'data-block="{number}" data-name="{escape(block.name or "whole circuit")}" '
        attributes += "" if up is None else f'data-up="{up}" hidden="" '
        if not block.parts:
            drawing = arrange(self.what, block.elements, self.effort)
            yield Writer(drawing, self.what.voltages, self.marked, self.colours).text(self.source, "", attributes)
            return
        numbers, after = [], number + 1
        for part in block.parts:
            numbers.append(after)
            after += _count(part)
        yield self._diagram(block, numbers, attributes)
        for part, own in zip(block.parts, numbers):
            yield from self.of(part, own, number)

    def _diagram(self, block: Block, numbers: list[int], attributes: str) -> str:
        found = diagram(self.what, block.parts, self.effort)
        size = (found.high - found.low + 2 * MARGIN) * SCALE
        title = f"Block diagram of {block.name or 'the whole circuit'}"
        begin = (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="cs-drawing" role="group" '
            f'aria-label="{escape(title)}" viewBox="0 0 {size[0]:.0f} {size[1]:.0f}" '
            f'width="{size[0]:.0f}" {attributes}'
            f'style="max-width:100%;height:auto">'
        )
        lines = [self._line(found, line, block) for line in found.lines]
        boxes = [self._box(found, k, part, own) for k, (part, own) in enumerate(zip(block.parts, numbers))]
        style = [f"<style>{self.style}</style>"] if self.style else []
        return "\n".join([begin, *style, *lines, *boxes, "</svg>"])

    def _line(self, found: Diagram, line: Line, block: Block) -> str:
        one, other = (block.parts[k].name for k in line.parts)
        names = [self.what.circuit.node_names[node] for node in line.nodes[:8]]
        more = ", …" if len(line.nodes) > len(names) else ""
        said = escape(f"{one} and {other}: {len(line.nodes)} common nodes ({', '.join(names)}{more})", quote=True)
        (x1, y1), (x2, y2) = (self._at(found, found.centres[k]) for k in line.parts)
        width = 1.5 + np.log2(len(line.nodes))
        text = "" if line.label is None else words(line.label, *self._at(found, np.array(line.label[:2], dtype=float)))
        return (
            f'<g class="link" role="img" aria-label="{said}"><title>{said}</title><polyline class="wire" '
            f'stroke-width="{width:.1f}" points="{x1:.1f},{y1:.1f} {x2:.1f},{y2:.1f}"/>{text}</g>'
        )

    def _box(self, found: Diagram, k: int, part: Block, number: int) -> str:
        x, y = self._at(found, found.centres[k])
        width, height = (2 * HALF * SCALE).tolist()
        own = list(part.elements)
        inside = box_words(self.source, part)
        names = self.what.circuit.names
        state = " marked" if any(names[e].lower() in self.marked for e in own) else ""
        state += " idle" if self.what.currents is not None and self.idle[own].all() else ""
        nodes = {int(node) for column in self.what.circuit.arrays()[1:3] for node in column[own]} - {GROUND}
        said = f"{part.name}: {', '.join(inside)}, {len(nodes)} nodes; {names[own[0]]} to {names[own[-1]]}"
        said = escape(said, quote=True)
        lines = Text(0.0, 0.0, short(part.name, 18), "center", "bottom", size=9.0, bold=True)
        more = Text(0.0, 0.0, "\n".join(inside), "center", "top", size=7.5, faint=True)
        return (
            f'<g class="block{state}" data-block="{number}" data-name="{escape(part.name)}" '
            f'role="{"img" if self.style else "button"}" aria-label="{said}"><title>{said}</title>'
            f'<rect class="body" stroke-width="1.9" rx="6" '
            f'x="{x - width / 2:.1f}" y="{y - height / 2:.1f}" width="{width:.1f}" height="{height:.1f}"/>'
            f"{words(lines, x, y - 1)}{words(more, x, y + 1)}</g>"
        )

    @staticmethod
    def _at(found: Diagram, place: np.ndarray) -> tuple[float, float]:
        """A place in inches as a point of the picture."""
        return float(place[0] - found.low[0] + MARGIN) * SCALE, float(found.high[1] + MARGIN - place[1]) * SCALE


def _count(block: Block) -> int:
    """Pictures of a block."""
    return 1 + sum(map(_count, block.parts))
