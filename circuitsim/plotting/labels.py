"""Label placement: no overlap of labels, and as little as possible with symbols and wires.

Every label has a list of positions in order of preference. Labels are placed greedily, each at its best free position.
If none is free, positions around the preferred one are tried at increasing distances.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

GAP = 0.015
"""Free margin around a label, inches."""

LINE = 1.22
"""Height of a line of text as a fraction of its size."""

SYMBOL_COST, WIRE_COST = 30.0, 4.0
"""Cost of a label over a symbol, and of one over a wire, in steps of preference."""


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

    def moved(self, dx: float, dy: float) -> Text:
        """The same text at another position."""
        return self._replace(x=self.x + dx, y=self.y + dy)


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
        self.symbols, self.wires = symbols.reshape(-1, 4), wires.reshape(-1, 4)
        self._boxes = np.empty((0, 4))
        self._corners: list[np.ndarray] = []

    def place(self, places: Sequence[Place]) -> Place:
        """Choose the best of these positions and reserve it."""
        best, least = None, math.inf
        for preference, place in enumerate(places):
            if preference >= least:
                break
            cost = preference + self._cost(place, least - preference)
            if cost < least:
                best, least = place, cost
        if best is None:
            best = next(place for place in self._around(places[0]) if self._free(place))
        for text in best:
            self._take(text.corners())
        return best

    @staticmethod
    def _around(place: Place) -> Iterable[Place]:
        """The same label at increasing distances in all directions."""
        step = 0.08
        for ring in range(1, 10_000):
            for turn in range(8 + 4 * ring):
                angle = 2.0 * math.pi * turn / (8 + 4 * ring) + math.pi / 2
                yield tuple(t.moved(step * ring * math.cos(angle), step * ring * math.sin(angle)) for t in place)

    def _free(self, place: Place) -> bool:
        return not any(self._covers_label(text.corners()) for text in place)

    def _cost(self, place: Place, enough: float) -> float:
        """Cost of a position; infinite where it covers a label."""
        cost = 0.0
        for text in place:
            corners = text.corners()
            if self._covers_label(corners):
                return math.inf
            low, high = corners.min(0), corners.max(0)
            s = self.symbols
            over = (s[:, 0] < high[0]) & (s[:, 2] > low[0]) & (s[:, 1] < high[1]) & (s[:, 3] > low[1])
            if text.angle:
                over[over] = [_overlap(corners, _rectangle(box)) for box in s[over]]
            cost += SYMBOL_COST * int(over.sum()) + WIRE_COST * self._crossed(corners)
            if cost > enough:
                return cost
        return cost

    def _crossed(self, corners: np.ndarray) -> int:
        """Number of wire segments that cross a rectangle."""
        low, high = corners.min(0), corners.max(0)
        w = self.wires
        near = (np.minimum(w[:, 0], w[:, 2]) < high[0]) & (np.maximum(w[:, 0], w[:, 2]) > low[0])
        near &= (np.minimum(w[:, 1], w[:, 3]) < high[1]) & (np.maximum(w[:, 1], w[:, 3]) > low[1])
        return _run_through(corners, w[near])

    def _covers_label(self, corners: np.ndarray) -> bool:
        low, high = corners.min(0), corners.max(0)
        b = self._boxes
        near = (b[:, 0] < high[0]) & (b[:, 2] > low[0]) & (b[:, 1] < high[1]) & (b[:, 3] > low[1])
        return any(_overlap(corners, self._corners[k]) for k in np.flatnonzero(near).tolist())

    def _take(self, corners: np.ndarray) -> None:
        self._boxes = np.vstack([self._boxes, [*corners.min(0), *corners.max(0)]])
        self._corners.append(corners)


def _rectangle(box: np.ndarray) -> np.ndarray:
    left, low, right, high = box.tolist()
    return np.array([(left, low), (right, low), (right, high), (left, high)])


def _run_through(corners: np.ndarray, pieces: np.ndarray) -> int:
    """Number of segments (w, 4) with a point in the interior of the rectangle ``corners``, by separating axes."""
    if not len(pieces):
        return 0
    ends = pieces.reshape(-1, 2, 2)
    apart = np.zeros(len(pieces), dtype=bool)
    for side in (corners[1] - corners[0], corners[2] - corners[1]):
        a, b = corners @ side, ends @ side
        apart |= (a.max() <= b.min(1)) | (b.max(1) <= a.min())
    along = ends[:, 1] - ends[:, 0]
    normal = np.stack([-along[:, 1], along[:, 0]], axis=1)
    a, b = corners @ normal.T, np.einsum("wk,wk->w", ends[:, 0], normal)
    apart |= (a.max(0) <= b) | (b <= a.min(0))
    return int((~apart).sum())


def _overlap(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether the interiors of two rectangles intersect, by separating axes."""
    for polygon in (one, other):
        for side in (polygon[1] - polygon[0], polygon[2] - polygon[1]):
            a, b = one @ side, other @ side
            if a.max() <= b.min() or b.max() <= a.min():
                return False
    return True
