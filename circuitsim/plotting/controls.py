"""Control arrows: thin dashed curves from the controlling nodes and branches to a controlled source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from circuitsim.circuit import Circuit
from circuitsim.plotting.symbols import ARROW

BOW = 0.14
"""How far a curve leaves the straight line, as a share of its length."""

CLEAR = 0.26
"""Inches between the middle of a symbol and the end of a curve."""

POINTS = 9
"""Points of a curve."""


class ControlArrow(NamedTuple):
    """A curve (k, 2) to a controlled element, and its head (3, 2), inches."""

    points: np.ndarray
    head: np.ndarray
    element: int


def control_arrows(
    circuit: Circuit, dots: Mapping[int, np.ndarray], centres: Mapping[int, np.ndarray]
) -> list[ControlArrow]:
    """The arrows of all controlled elements that are drawn.

    Parameters
    ----------
    circuit : Circuit
    dots : mapping of int to (2,) float array
        Where the nodes are, inches; ground, which has a symbol at many places, is not among them.
    centres : mapping of int to (2,) float array
        Where the symbols of the elements are, inches.
    """
    found = []
    for k, law in sorted(circuit.laws.items()):
        if k not in centres:
            continue
        nodes = dict.fromkeys(node for _, *ends in law.voltages for node in ends if node in dots)
        elements = dict.fromkeys(c.element for c in law.currents if c.element in centres and c.element != k)
        starts = [(dots[node], 0.07) for node in nodes] + [(centres[e], CLEAR) for e in elements]
        found += [arrow for start, gap in starts if (arrow := _arrow(k, start, gap, centres[k])) is not None]
    return found


def _arrow(k: int, start: np.ndarray, gap: float, stop: np.ndarray) -> ControlArrow | None:
    """From a place to the symbol of element ``k``; None where the two are too near."""
    way = stop - start
    length = float(np.hypot(*way))
    if length < gap + CLEAR + 0.1:
        return None
    middle = start + way / 2 + 2.0 * BOW * np.array([-way[1], way[0]])
    low, high = gap / length, 1.0 - CLEAR / length
    t = np.linspace(low, high, POINTS)[:, None]
    points = (1 - t) ** 2 * start + 2 * t * (1 - t) * middle + t**2 * stop
    along = points[-1] - points[-2]
    along = along / np.hypot(*along)
    turn = np.array([along, [-along[1], along[0]]])
    return ControlArrow(points, points[-1] + ARROW @ turn, k)


__all__ = ["ControlArrow", "control_arrows"]
