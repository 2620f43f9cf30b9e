"""Shapes of symbols as plain numbers: along x from −half to +half, the first terminal on the left, in inches."""

from __future__ import annotations

import math
from typing import NamedTuple

Line = tuple[tuple[float, float], ...]
"""A polyline of (x, y)."""


class Symbol(NamedTuple):
    """One element's drawing.

    Attributes
    ----------
    half : float
        Where the wires end: ±half.
    lines : tuple of Line
        Polylines in ink.
    body : Line or None
        A closed outline to fill.
    graded : Line or None
        A polyline coloured from the first terminal's potential to the second's.
    """

    half: float
    lines: tuple[Line, ...] = ()
    body: Line | None = None
    graded: Line | None = None


def circle(radius: float) -> Line:
    """A circle about the origin."""
    angles = [2.0 * math.pi * k / 48 for k in range(49)]
    return tuple((radius * math.cos(angle), radius * math.sin(angle)) for angle in angles)


def zigzag(half: float, height: float, teeth: int = 6, pieces: int = 84) -> Line:
    """A resistor's line, in many short pieces, so that the colour runs smoothly along it."""
    x = [-half, *(-half + (k + 0.5) * (2.0 * half / teeth) for k in range(teeth)), half]
    y = [0.0, *(height * (-1.0) ** k for k in range(teeth)), 0.0]
    points = []
    for step in range(pieces + 1):
        k, part = divmod(step * (len(x) - 1), pieces)
        share = part / pieces
        ends = (k, min(k + 1, len(x) - 1))
        points.append(tuple(c[ends[0]] + (c[ends[1]] - c[ends[0]]) * share for c in (x, y)))
    return tuple((px, py) for px, py in points)


def coil(half: float, loops: int = 4) -> Line:
    """Half circles in a row."""
    radius = half / loops
    return tuple(
        (-half + radius * (2 * k + 1) + radius * math.cos(angle), radius * math.sin(angle))
        for k in range(loops)
        for angle in (math.pi * (16 - step) / 16 for step in range(17))
    )


def arrow(tail: float, tip: float, barb: float = 0.045) -> tuple[Line, ...]:
    """An arrow along x."""
    return ((tail, 0.0), (tip, 0.0)), ((tip - barb, barb), (tip, 0.0), (tip - barb, -barb))


RADIUS = 0.17
"""Of a source's circle."""

TRIANGLE: Line = ((-0.12, 0.13), (0.12, 0.0), (-0.12, -0.13))
"""A diode's body."""
