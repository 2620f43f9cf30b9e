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
    """One line of text; half of its height lies above its anchor (x, y), inches.

    Attributes
    ----------
    ha : {"left", "center", "right"}
        The part of the text at x.
    angle : float
        Rotation about the anchor, degrees.
    size : float
        Points.
    """

    words: str
    x: float = 0.0
    y: float = 0.0
    ha: str = "center"
    angle: float = 0.0
    size: float = 7.5
    bold: bool = False
    faint: bool = False

    def corners(self) -> np.ndarray:
        """The text's rectangle (4, 2), inches, with a free margin."""
        width = _width(self.words, self.bold) * self.size / 72.0
        left = {"left": 0.0, "center": -0.5, "right": -1.0}[self.ha] * width - GAP
        high = 0.5 * LINE * self.size / 72.0 + GAP
        right = left + width + 2.0 * GAP
        cos, sin = math.cos(math.radians(self.angle)), math.sin(math.radians(self.angle))
        box = np.array([(left, -high), (right, -high), (right, high), (left, high)])
        return box @ np.array([[cos, sin], [-sin, cos]]) + (self.x, self.y)


Place = tuple[Text, ...]
"""The lines of one label at one position."""


@cache
def _width(words: str, bold: bool) -> float:
    """Width of a line of text, relative to its size; small texts are hinted to whole pixels, up to 4 % wider."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(family="DejaVu Sans", weight="bold" if bold else "normal", size=100.0)
    return 0.0104 * float(text_to_path.get_text_width_height_descent(words, font, False)[0]) + 0.05


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
