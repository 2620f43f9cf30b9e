"""Curves as SVG: axes with SI prefixes, a point with its values for every sample, the colours of the page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

from circuitsim.units import format_quantity

WIDTH, HEIGHT = 640, 260
LEFT, RIGHT, TOP, BOTTOM = 84, 16, 30, 44

MARKED = 400
"""Most points of a curve that carry their values."""

COLOURS = ("#3b7dd8", "#d8722c", "#2e9e5b", "#b6459e", "#8a6d1f", "#5a5fd0", "#c23b3b", "#2a9aa5")

CHART_STYLE = """\
.cs-chart { font-family: "DejaVu Sans", Verdana, sans-serif; font-size: 11px; }
.cs-chart text { fill: var(--ink, #30343b); }
.cs-chart .grid { stroke: var(--faint, #9aa0a8); stroke-opacity: 0.35; stroke-width: 0.6; }
.cs-chart .curve { fill: none; stroke-width: 1.8; stroke-linejoin: round; }
"""


class Axis(NamedTuple):
    """Name, unit and scale of an axis."""

    name: str
    unit: str = ""
    logarithmic: bool = False


class _Scale(NamedTuple):
    low: float
    high: float
    begin: float
    end: float
    logarithmic: bool

    def __call__(self, value: float) -> float:
        value = math.log10(value) if self.logarithmic else value
        return self.begin + (self.end - self.begin) * (value - self.low) / (self.high - self.low)


def line_chart(
    x: Sequence[float], curves: Mapping[str, Sequence[float]], across: Axis, up: Axis, style: bool = True
) -> str:
    """Curves over one common axis as an ``<svg>`` element; values that are not finite interrupt a curve.

    Parameters
    ----------
    x : sequence of float
        In the unit of ``across``.
    curves : mapping of str to sequence of float
        By name, in the unit of ``up``.
    across, up : Axis
        A logarithmic axis leaves out values that are not positive.
    style : bool
        Whether the picture carries its own style sheet.
    """
    every = [value for values in curves.values() for value in values]
    sx = _scale(x, LEFT, WIDTH - RIGHT, across.logarithmic)
    sy = _scale(every, HEIGHT - BOTTOM, TOP, up.logarithmic)
    title = f"{', '.join(curves)} over {across.name}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="cs-chart" role="img" aria-label="{escape(title)}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" style="max-width:100%;height:auto">'
    ]
    if style:
        parts.append(f"<style>{CHART_STYLE}</style>")
    for value in _ticks(sx):
        at = sx(value)
        parts += [
            f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>',
            _text(at, HEIGHT - BOTTOM + 15, "middle", _tick(value, across)),
        ]
    for value in _ticks(sy):
        at = sy(value)
        parts += [
            f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>',
            _text(LEFT - 6, at + 4, "end", _tick(value, up)),
        ]
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, "middle", across.name))
    for number, (name, values) in enumerate(curves.items()):
        colour = COLOURS[number % len(COLOURS)]
        parts += _curve(name, list(zip(x, values)), (sx, sy), colour, (across, up))
        parts.append(_text(LEFT + 6 + 140 * (number % 4), 12 + 12 * (number // 4), "start", name, f"fill:{colour}"))
    return "".join([*parts, "</svg>"])


def _text(x: float, y: float, anchor: str, words: str, style: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" style="{style}">{escape(words)}</text>'


def _usable(value: float, logarithmic: bool) -> bool:
    return math.isfinite(value) and (value > 0.0 or not logarithmic)


def _scale(values: Sequence[float], begin: float, end: float, logarithmic: bool) -> _Scale:
    found = [math.log10(v) if logarithmic else v for v in values if _usable(v, logarithmic)] or [0.0, 1.0]
    low, high = min(found), max(found)
    pad = 0.5 * abs(low) + 1e-12 if high - low <= 1e-9 * max(abs(low), abs(high)) else 0.0
    return _Scale(low - (pad or 0.0), high + (pad or 0.0), begin, end, logarithmic)


def _ticks(scale: _Scale) -> list[float]:
    """Round values on an axis, four to eight of them; powers of ten where it is logarithmic."""
    span = scale.high - scale.low
    if scale.logarithmic and span >= 1.0:
        step = max(1, math.ceil(span / 6))
        return [10.0**k for k in range(math.ceil(scale.low - 1e-9), math.floor(scale.high + 1e-9) + 1, step)]
    width = 10.0 ** math.floor(math.log10(span / 4))
    width *= next(factor for factor in (1, 2, 5, 10) if span / (width * factor) <= 7)
    first = math.ceil(scale.low / width - 1e-9)
    found = [k * width for k in range(first, math.floor(scale.high / width + 1e-9) + 1)]
    return [10.0**value if scale.logarithmic else value for value in found]


def _tick(value: float, axis: Axis) -> str:
    return format_quantity(value + 0.0, axis.unit, 4) if axis.unit else f"{value:.4g}"


def _curve(
    name: str,
    points: Sequence[tuple[float, float]],
    scales: tuple[_Scale, _Scale],
    colour: str,
    axes: tuple[Axis, Axis],
) -> list[str]:
    """One curve in pieces, and its points with their values."""
    pieces: list[list[str]] = [[]]
    marks = []
    for x, y in points:
        if not (_usable(x, axes[0].logarithmic) and _usable(y, axes[1].logarithmic)):
            pieces.append([])
            continue
        px, py = scales[0](x), scales[1](y)
        pieces[-1].append(f"{px:.1f},{py:.1f}")
        if len(points) <= MARKED:
            said = escape(f"{name}: {_tick(y, axes[1])} at {_tick(x, axes[0])}")
            marks.append(f'<circle cx="{px:.1f}" cy="{py:.1f}" r="3" fill="{colour}"><title>{said}</title></circle>')
    lines = [f'<polyline class="curve" stroke="{colour}" points="{" ".join(piece)}"/>' for piece in pieces if piece]
    return lines + marks
