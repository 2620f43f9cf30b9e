"""Parallel elements side by side: on which side of the straight line they lie."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from circuitsim.plotting.sketch import Bundle

LANE = np.array([0.85, 0.62])
"""Inches between parallel elements: beside each other where they stand upright, above each other where they lie."""

END = 0.35
"""Inches at the ends of a bundle where it may meet others: they share nodes there."""

MANY = 3
"""Elements from which on a bundle may leave the middle: two reach little further than a symbol."""

GAIN = 0.05
"""Square inches of overlap for which a bundle leaves the middle."""


def direction(a: np.ndarray, b: np.ndarray, lane: float) -> tuple[np.ndarray, np.ndarray]:
    """Unit vector from the first terminal to the second, and how far the lane lies beside the straight line."""
    along = (b - a) / max(float(np.hypot(*(b - a))), 1e-9)
    normal = np.array([-along[1], along[0]])
    if (normal[0], normal[1]) < (0.0, 0.0) or (abs(normal[0]) < 1e-9 and normal[1] < 0):
        normal = -normal  # the same side for both directions of the element
    return along, normal * lane * float(np.abs(normal) @ LANE)


def beside(bundles: Sequence[Bundle], where: np.ndarray) -> list[float]:
    """By how many lanes each bundle lies beside its straight line, so that it covers little of the others.

    Parameters
    ----------
    bundles : sequence of Bundle
    where : (vertices, 2) float array
        Their places, inches.

    Returns
    -------
    list of float
        0 for one and two elements, and where all elements on one side would cover no less.
    """
    sides = [0.0] * len(bundles)
    boxes = np.array([_box(bundle, where, 0.0) for bundle in bundles]).reshape(-1, 4)
    for place, bundle in enumerate(bundles):
        most = (len(bundle.elements) - 1) / 2
        others = np.delete(boxes, place, axis=0)
        if len(bundle.elements) < MANY or not len(others):
            continue
        covered = [(_overlap(_box(bundle, where, side), others), side) for side in (0.0, most, -most)]
        least = min(covered, key=lambda pair: pair[0])
        if least[0] < covered[0][0] - GAIN:
            sides[place] = least[1]
            boxes[place] = _box(bundle, where, least[1])
    return sides


def _box(bundle: Bundle, where: np.ndarray, side: float) -> list[float]:
    """The rectangle around a bundle without its ends: left, bottom, right, top."""
    a, b = where[bundle.start], where[bundle.end]
    half = len(bundle.elements) / 2
    along = direction(a, b, 0.0)[0] * min(END, 0.4 * float(np.hypot(*(b - a))))
    corners = [end + direction(a, b, side + lane)[1] for end in (a + along, b - along) for lane in (half, -half)]
    return [*np.min(corners, axis=0).tolist(), *np.max(corners, axis=0).tolist()]


def _overlap(box: list[float], others: np.ndarray) -> float:
    """The area that a rectangle shares with others, square inches."""
    wide = np.minimum(box[2], others[:, 2]) - np.maximum(box[0], others[:, 0])
    high = np.minimum(box[3], others[:, 3]) - np.maximum(box[1], others[:, 1])
    return float((np.maximum(wide, 0.0) * np.maximum(high, 0.0)).sum())
