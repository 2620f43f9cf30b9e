"""Block diagrams: a box for each part, lines for the nodes that two parts have in common."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from circuitsim.circuit import Circuit
from circuitsim.plotting.division import Block, common_nodes
from circuitsim.plotting.drawing import Shown
from circuitsim.plotting.labels import Placer, Text
from circuitsim.plotting.layout import Effort, place
from circuitsim.plotting.sketch import Bundle, Sketch
from circuitsim.units import format_quantity, short

if TYPE_CHECKING:
    from circuitsim.analysis import OperatingPoint

CELL = np.array([2.6, 1.5])
"""Inches from box to box."""

HALF = np.array([0.85, 0.36])
"""Half the width and height of a box, inches."""

DENSE = 2.0
"""Lines a box from which the boxes stand in a circle, so that no line runs under a box."""


class Line(NamedTuple):
    """The nodes that two parts have in common, as a straight line between their boxes."""

    parts: tuple[int, int]
    nodes: list[int]
    label: Text | None


class Diagram(NamedTuple):
    """Boxes, all of one size, and lines, in inches, x to the right and y up.

    Attributes
    ----------
    centres : (k, 2) float array
    lines : list of Line
    low, high : (2,) float arrays
        Corners of everything.
    """

    centres: np.ndarray
    lines: list[Line]
    low: np.ndarray
    high: np.ndarray


def diagram(what: Shown, parts: Sequence[Block], effort: Effort) -> Diagram:
    """Places of the parts of a block, and the lines between them.

    Parameters
    ----------
    what : Shown
    parts : sequence of Block
    effort : Effort
    """
    common = common_nodes(what.circuit, parts)
    dense = len(common) > DENSE * len(parts)
    path = _path(len(parts), list(common))
    if dense:
        centres = _circle(len(parts))
    elif path:
        centres = _rows(path)
    else:
        bundles = [Bundle(one, other, (0,)) for one, other in common]
        centres = place(Sketch(list(range(len(parts))), [-1] * len(parts), bundles, [], []), (), effort).positions
    centres = centres * CELL
    ends = np.array([(*centres[one], *centres[other]) for one, other in common]).reshape(-1, 4)
    placer = Placer(np.concatenate([centres - HALF, centres + HALF], axis=1), ends)
    lines = []
    corners = [centres - HALF, centres + HALF]
    for (one, other), nodes in common.items():
        label = None if dense else _label(placer, centres[one], centres[other], shared_words(what, nodes))
        lines.append(Line((one, other), nodes, label))
        if label is not None:
            corners.append(label.corners())
    every = np.concatenate(corners)
    return Diagram(centres, lines, every.min(0), every.max(0))


def shared_words(what: Shown, nodes: Sequence[int]) -> str:
    """The label of a line: the one node and its potential, or how many."""
    if len(nodes) > 1:
        return f"{len(nodes)} nodes"
    name = short(what.circuit.node_names[nodes[0]], 16)
    volts = what.voltages
    return name if volts is None else f"{name}\n{format_quantity(float(volts[nodes[0]]) + 0.0, 'V', 4)}"


def box_words(source: OperatingPoint | Circuit, part: Block) -> list[str]:
    """What a box states below its name: its number of elements, and what they absorb if the circuit is solved."""
    own = list(part.elements)
    words = [f"{len(own)} element{'s' if len(own) > 1 else ''}"]
    if not isinstance(source, Circuit):
        words.append(format_quantity(float(source.powers[own].sum()) + 0.0, "W", 4))
    return words


def without_current(what: Shown) -> np.ndarray:
    """Which elements (m,) carry no current; none of a circuit without an operating point."""
    if what.currents is None:
        return np.zeros(len(what.circuit), dtype=bool)
    size = np.abs(what.currents)
    return size <= 1e-12 * size.max(initial=0.0)


def _circle(count: int) -> np.ndarray:
    """Cells on an ellipse, neighbours at least a cell apart, the first on top, clockwise."""
    turn = np.pi / 2 - 2 * np.pi * np.arange(count) / count
    return max(1.0, 0.6 / np.sin(np.pi / count)) * np.column_stack([np.cos(turn), np.sin(turn)])


def _path(count: int, pairs: Sequence[tuple[int, int]]) -> list[int]:
    """The parts in their order, if the lines make them one path; else none."""
    neighbours: list[list[int]] = [[] for _ in range(count)]
    for one, other in pairs:
        neighbours[one].append(other)
        neighbours[other].append(one)
    ends = [k for k, near in enumerate(neighbours) if len(near) == 1]
    if len(pairs) != count - 1 or len(ends) != 2 or max(map(len, neighbours)) > 2:
        return []
    order = [ends[0]]
    while len(order) < count:
        onward = [k for k in neighbours[order[-1]] if k not in order[-2:]]
        if not onward:
            return []
        order.append(onward[0])
    return order


def _rows(order: Sequence[int]) -> np.ndarray:
    """Cells of a path in rows, to the right and back in turn."""
    across = max(1, math.ceil(math.sqrt(0.8 * len(order))))
    cells = np.zeros((len(order), 2))
    for number, part in enumerate(order):
        row, column = divmod(number, across)
        cells[part] = column if row % 2 == 0 else across - 1 - column, -row
    return cells


def _label(placer: Placer, a: np.ndarray, b: np.ndarray, words: str) -> Text:
    """The label of a line: about its middle, above or beside it."""
    places = []
    for share in (0.5, 0.4, 0.6, 0.3, 0.7):
        x, y = (a + (b - a) * share).tolist()
        places += [(Text(x, y + 0.04, words, "center", "bottom"),), (Text(x + 0.05, y, words, "left", "center"),)]
        places += [(Text(x, y - 0.04, words, "center", "top"),), (Text(x - 0.05, y, words, "right", "center"),)]
    return placer.place(places)[0]
