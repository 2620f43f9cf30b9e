"""Label placement: as little overlap as possible of labels, and with symbols and wires.

Every label has a list of positions in order of preference. Labels are placed greedily, each at its best position.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

GAP = 0.015
"""Free margin around a label, inches."""

LINE = 1.22
"""Height of a line of text as a fraction of its size."""

LABEL_COST, SYMBOL_COST, WIRE_COST = 1e6, 30.0, 4.0
"""Costs of a label over another, over a symbol, and over a wire, in steps of preference."""


class Text(NamedTuple):
    """One text: its anchor (x, y), in inches, and its alignment.

    Attributes
    ----------
    ha : {"left", "center", "right"}
        The part of the text at x.
    va : {"bottom", "center", "top"}
        The part of the text at y.
    angle : float
        Rotation about the anchor, degrees.
    size : float
        Points.
    """

    x: float
    y: float
    words: str
    ha: str = "center"
    va: str = "center"
    angle: float = 0.0
    size: float = 7.5
    bold: bool = False
    faint: bool = False

    def corners(self) -> np.ndarray:
        """The text's rectangle (4, 2), inches, with a free margin."""
        lines = self.words.split("\n")
        width = max(_advance(line, self.bold) for line in lines) * self.size / 72.0
        height = LINE * self.size / 72.0 * len(lines)
        left = {"left": 0.0, "center": -0.5, "right": -1.0}[self.ha] * width - GAP
        low = {"bottom": 0.0, "center": -0.5, "top": -1.0}[self.va] * height - GAP
        box = np.array([(left, low), (left + width + 2 * GAP, low)])
        box = np.concatenate([box, box[::-1] + (0.0, height + 2 * GAP)])
        cos, sin = math.cos(math.radians(self.angle)), math.sin(math.radians(self.angle))
        return box @ np.array([[cos, sin], [-sin, cos]]) + (self.x, self.y)


Place = tuple[Text, ...]
"""The texts of one label at one position."""


def _advance(line: str, bold: bool) -> float:
    """Width of a line of text, relative to its size; small texts are hinted to whole pixels, up to 4 % wider."""
    if not line.strip():
        return 0.3 * len(line)
    return sum(_advance_of(character, bold) for character in line) * 1.04 + 0.05


@cache
def _advance_of(character: str, bold: bool) -> float:
    """Width of a character, relative to the size of the text."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    font = get_font(findfont(FontProperties(family="DejaVu Sans", weight="bold" if bold else "normal")))
    font.set_size(100.0, 72.0)
    return float(font.load_char(ord(character)).linearHoriAdvance) / 65536.0 / 100.0


class Placer:
    """Labels placed so far, and what they should not cover.

    Parameters
    ----------
    symbols : (s, 4) float array
        Boxes (left, low, right, high), inches.
    wires : (w, 4) float array
        Straight pieces (x, y, x, y), inches.
    """

    def __init__(self, symbols: np.ndarray, wires: np.ndarray) -> None:
        self.symbols = symbols.reshape(-1, 4)[:, [0, 1, 2, 1, 2, 3, 0, 3]].reshape(-1, 4, 2)
        self.wires, self.labels = wires.reshape(-1, 2, 2), np.empty((0, 4, 2))

    def place(self, places: Sequence[Place]) -> Place:
        """Choose the best of these positions and reserve it."""
        best, least = places[0], math.inf
        for preference, place in enumerate(places):
            if preference >= least:
                break
            cost = preference + sum(map(self._cost, place))
            if cost < least:
                best, least = place, cost
        self.labels = np.concatenate([self.labels, [text.corners() for text in best]])
        return best

    def _cost(self, text: Text) -> float:
        """Cost of a text at its position."""
        pairs = (LABEL_COST, self.labels), (SYMBOL_COST, self.symbols), (WIRE_COST, self.wires)
        return sum(cost * _covered(text.corners(), shapes) for cost, shapes in pairs)


def _covered(corners: np.ndarray, shapes: np.ndarray) -> int:
    """Number of segments (k, 2, 2) or rectangles (k, 4, 2) with a point inside the rectangle ``corners``, by separating
    axes."""
    low, high = corners.min(0), corners.max(0)
    shapes = shapes[((shapes.min(1) < high) & (shapes.max(1) > low)).all(1)]
    own = np.broadcast_to(corners[1:3] - corners[:2], (len(shapes), 2, 2))
    sides = np.concatenate([own, np.diff(shapes[:, :3], axis=1)], axis=1)
    normals = np.stack([-sides[..., 1], sides[..., 0]], axis=1)
    one, other = corners @ normals, shapes @ normals
    apart = (one.max(1) <= other.min(1)) | (other.max(1) <= one.min(1))
    return int((~apart.any(1)).sum())
