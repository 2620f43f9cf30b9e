"""Shapes of the elements, along the x-axis from −half to +half with the first terminal on the left, in inches."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.circuit.elements import AMPLIFIER, CAPACITOR, CURRENT, DIODE, INDUCTOR, RESISTOR, VOLTAGE


class Symbol(NamedTuple):
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


def _circle(radius: float, x: float = 0.0) -> np.ndarray:
    angle = np.linspace(0.0, 2.0 * np.pi, 49)
    return np.column_stack([x + radius * np.cos(angle), radius * np.sin(angle)])


def _zigzag(half: float, height: float, teeth: int = 6) -> np.ndarray:
    x = np.concatenate([[-half], -half + (np.arange(teeth) + 0.5) * (2.0 * half / teeth), [half]])
    y = np.concatenate([[0.0], height * (-1.0) ** np.arange(teeth), [0.0]])
    # Many short pieces, so that the colour runs smoothly along it.
    return np.column_stack([np.interp(np.linspace(0, x.size - 1, 85), np.arange(x.size), c) for c in (x, y)])


def _coil(half: float, loops: int = 4) -> np.ndarray:
    angle = np.linspace(np.pi, 0.0, 17)
    radius = half / loops
    arcs = [
        np.column_stack([-half + radius * (2 * k + 1) + radius * np.cos(angle), radius * np.sin(angle)])
        for k in range(loops)
    ]
    return np.concatenate(arcs)


def _arrow(tail: float, tip: float) -> list[np.ndarray]:
    barb = 0.045
    return [_points((tail, 0), (tip, 0)), _points((tip - barb, barb), (tip, 0), (tip - barb, -barb))]


TRIANGLE = _points((-0.12, 0.13), (0.12, 0), (-0.12, -0.13))
"""A diode's body."""

_R = 0.17
_SYMBOLS: dict[int, Symbol] = {
    RESISTOR: Symbol(0.3, [], graded=_zigzag(0.3, 0.085)),
    DIODE: Symbol(0.12, [_points((0.12, 0.13), (0.12, -0.13))], body=TRIANGLE),
    VOLTAGE: Symbol(_R, [
        _points((-0.12, 0), (-0.05, 0)), *(_points((x, 0.035), (x, -0.035)) for x in (-0.085, 0.085)),
    ], body=_circle(_R)),
    CURRENT: Symbol(_R, _arrow(-0.1, 0.11), body=_circle(_R)),
    INDUCTOR: Symbol(0.28, [], graded=_coil(0.28)),
    CAPACITOR: Symbol(0.04, [_points((x, 0.14), (x, -0.14)) for x in (-0.04, 0.04)]),
    AMPLIFIER: Symbol(0.15, [], body=_points((-0.15, 0.16), (0.15, 0), (-0.15, -0.16))),
}  # fmt: skip

_SHORT = Symbol(0.2, [], graded=_points((-0.2, 0), (0.2, 0)))

GROUND_LINES = [
    _points((0, 0), (0, -0.1)), _points((-0.13, -0.1), (0.13, -0.1)),
    _points((-0.08, -0.15), (0.08, -0.15)), _points((-0.03, -0.2), (0.03, -0.2)),
]  # fmt: skip
"""The ground symbol, hanging from the origin."""

ARROW = _points((-0.055, 0.05), (0.055, 0), (-0.055, -0.05))
"""A filled arrow-head that points along x."""


def symbol(kind: int, value: float) -> Symbol:
    """The symbol of an element; a resistor of zero ohm is a wire."""
    return _SHORT if kind == RESISTOR and value == 0.0 else _SYMBOLS[kind]
