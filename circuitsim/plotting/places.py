"""Places of a label in the order of preference: beside a symbol, along a wire, around a node."""

from __future__ import annotations

import numpy as np

from circuitsim.plotting.labels import Place, Text


def stacked(words: list[tuple[str, bool]], x: float, y: float, ha: str, va: str) -> Place:
    """Lines below each other; the block as a whole lies above, about or below y."""
    line = 0.127
    top = y + {"bottom": len(words) * line, "center": len(words) * line / 2, "top": 0.0}[va]
    return tuple(Text(x, top - k * line, text, ha, "top", faint=faint) for k, (text, faint) in enumerate(words))


def along_wire(
    words: str, centre: np.ndarray, along: np.ndarray, half: float, ends: tuple[np.ndarray, np.ndarray]
) -> list[Place]:
    """One line on the wire: before the symbol, behind it, farther along, above or below the wire."""
    along = along if along[0] >= 0 else -along
    normal = np.array([-along[1], along[0]])
    turn = float(np.degrees(np.arctan2(along[1], along[0])))
    reach = sorted(float((end - centre) @ along) for end in ends)
    places: list[Place] = []
    spots = [(-(half + 0.06), "right"), (half + 0.28, "left")]
    spots += [(t, "left") for t in np.arange(half + 0.6, reach[1], 0.35).tolist()]
    spots += [(t, "right") for t in np.arange(-half - 0.4, reach[0], -0.35).tolist()]
    for t, ha in spots:
        for offset, va in ((0.03, "bottom"), (-0.03, "top")):
            x, y = (centre + along * t + normal * offset).tolist()
            places.append((Text(x, y, words, ha, va, turn, 7.0),))
    return places


def node_places(centre: tuple[float, float], words: str, angles: list[float]) -> list[Place]:
    """Eight directions, those with most room between the wires first."""
    choices = np.radians([45, 135, 315, 225, 90, 0, 180, 270])
    gaps = np.full(8, np.pi)
    if angles:
        gaps = np.abs((choices[:, None] - np.array(angles) + np.pi) % (2 * np.pi) - np.pi).min(1)
    places: list[Place] = []
    for reach in (0.1, 0.22):
        for k in np.argsort(-np.round(gaps, 6), kind="stable").tolist():
            dx, dy = float(np.cos(choices[k])), float(np.sin(choices[k]))
            style = _side(dx, "left", "right"), _side(dy, "bottom", "top")
            places.append((Text(centre[0] + reach * dx, centre[1] + reach * dy, words, *style, bold=True),))
    return places


def _side(component: float, positive: str, negative: str) -> str:
    """Text alignment for one component of a direction."""
    if abs(component) < 0.3:
        return "center"
    return positive if component > 0 else negative
