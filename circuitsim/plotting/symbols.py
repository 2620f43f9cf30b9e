"""Symbols of the elements as arrays: along x from −half to +half, the first terminal on the left, in inches."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.circuit.elements import ELEMENTS, RESISTOR
from circuitsim.models import shapes


class SymbolArrays(NamedTuple):
    """One element's drawing.

    Attributes
    ----------
    half : float
        Where the wires end: ±half.
    lines : list of (k, 2) arrays
        Polylines in ink.
    body : (k, 2) array or None
        A closed outline to fill.
    graded : (k, 2) array or None
        A polyline coloured from the first terminal's potential to the second's.
    """

    half: float
    lines: list[np.ndarray]
    body: np.ndarray | None = None
    graded: np.ndarray | None = None


def _points(*pairs: tuple[float, float]) -> np.ndarray:
    return np.array(pairs, dtype=float)


def _drawn(shape: shapes.Symbol) -> SymbolArrays:
    """The symbol of a model as arrays."""
    body, graded = (None if line is None else np.array(line) for line in (shape.body, shape.graded))
    return SymbolArrays(shape.half, [np.array(line) for line in shape.lines], body, graded)


TRIANGLE = np.array(shapes.TRIANGLE)
"""A diode's body."""

_SYMBOLS = [_drawn(row.symbol) for row in ELEMENTS]

_SHORT = SymbolArrays(0.2, [], graded=_points((-0.2, 0), (0.2, 0)))

GROUND_LINES = [
    _points((0, 0), (0, -0.1)),
    _points((-0.13, -0.1), (0.13, -0.1)),
    _points((-0.08, -0.15), (0.08, -0.15)),
    _points((-0.03, -0.2), (0.03, -0.2)),
]
"""The ground symbol, hanging from the origin."""

ARROW = _points((-0.055, 0.05), (0.055, 0), (-0.055, -0.05))
"""A filled arrow-head that points along x."""


def symbol(kind: int, value: float) -> SymbolArrays:
    """The symbol of an element; a resistor of zero ohm is a wire."""
    return _SHORT if kind == RESISTOR and value == 0.0 else _SYMBOLS[kind]
