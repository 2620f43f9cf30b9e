"""The drawing of a circuit: voltages as colour, currents as width and arrows, conducting diodes filled."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from circuitsim.circuit import ELEMENTS, GROUND
from circuitsim.circuit.elements import AMPLIFIER, VOLTAGE
from circuitsim.errors import UsageError
from circuitsim.plotting.figure import FAINT, INK, new_figure, plain, title
from circuitsim.plotting.layout import ON_GRID, place
from circuitsim.plotting.sketch import Bundle, Sketch, sketch
from circuitsim.plotting.symbols import ARROW, GROUND_LINES, TRIANGLE, SymbolArrays, symbol
from circuitsim.units import format_quantity, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from circuitsim.analysis import OperatingPoint

MOST = 20_000
"""Largest number of elements in a readable drawing."""

CELL = np.array([1.9, 1.35])
"""Inches a cell of the layout takes."""

LANE = np.array([0.85, 0.5])
"""Inches between parallel elements: beside each other where they stand upright, above each other where they lie."""

THIN, WIDE = 1.0, 4.5
"""Points a wire is wide without current, and with the largest."""

MARGIN = 0.65
RIGHT = 1.1
"""Inches around the vertices; labels stand on the right of upright elements."""


def draw_circuit(point: OperatingPoint, strength: np.ndarray | None = None, unit: str = "A") -> Figure:
    """Draw a solved circuit.

    Up to some hundred nodes as a schematic with symbols and labels, beyond that as coloured lines.

    Parameters
    ----------
    point : OperatingPoint
    strength : (m,) float array, optional
        What the widths of wires show, in ``unit``; the currents if not given.
    unit : str
        ``"A"`` for currents, ``"S"`` for conductances.

    Raises
    ------
    UsageError
        A circuit with more elements than a picture can show.
    """
    if len(point.circuit) > MOST:
        raise UsageError(
            f"the circuit has {len(point.circuit):,} elements, a drawing shows at most {MOST:,}; draw a sub-circuit"
        )
    plan = sketch(point.circuit)
    kinds = point.circuit.arrays().kind
    placed = place(plan, [b.start for b in plan.bundles if any(kinds[k] == VOLTAGE for k in b.elements)])
    detailed = len(plan.node) <= ON_GRID
    where = placed.positions * (CELL if detailed else 0.55)
    low, high = where.min(0, initial=0.0), where.max(0, initial=0.0)
    if plan.node:
        low, high = where.min(0), where.max(0)
    size = high - low + np.array([MARGIN + RIGHT, 2 * MARGIN])
    width, height = max(4.5, size[0] + 1.2), max(2.6, size[1] + 0.7)
    figure = new_figure(width, height)
    axes = figure.add_axes((0.1 / width, 0.3 / height, 1.0 - 1.2 / width, 1.0 - 0.7 / height))
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.set_xlim(low[0] - MARGIN, high[0] + RIGHT)
    axes.set_ylim(low[1] - MARGIN, high[1] + MARGIN)
    title(axes, point.circuit.title)
    _Pen(axes, point, plan, where, placed.share, detailed, strength, unit).draw(figure)
    return figure


class _Pen:
    """Collects lines and shapes while the circuit is walked through, and puts them on the axes at the end."""

    def __init__(
        self, axes: Axes, point: OperatingPoint, plan: Sketch, where: np.ndarray, share: np.ndarray, detailed: bool,
        strength: np.ndarray | None = None, unit: str = "A",
    ) -> None:  # fmt: skip
        import matplotlib

        self.axes, self.point, self.plan, self.where, self.detailed = axes, point, plan, where, detailed
        self.share = share.tolist()
        self.arrays = point.circuit.arrays()
        shown = point.voltages[sorted(set(plan.node))] if plan.node else np.zeros(1)
        low, high = float(shown.min()), float(shown.max())
        pad = 0.5 if high - low <= 1e-12 * max(abs(low), abs(high)) else 0.0
        self.scale = matplotlib.colors.Normalize(low - pad, high + pad)
        # The bright end of the map would vanish on white paper.
        self.map = matplotlib.colors.LinearSegmentedColormap.from_list(
            "potential", matplotlib.colormaps["plasma"](np.linspace(0.0, 0.88, 256))
        )
        self.strength, self.unit = np.abs(point.currents if strength is None else strength), unit
        self.largest = float(np.abs(point.currents).max(initial=0.0))
        self.strongest = float(self.strength.max(initial=0.0))
        self.lines: list[np.ndarray] = []
        self.colours: list[tuple[float, ...] | str] = []
        self.widths: list[float] = []
        self.bodies: list[np.ndarray] = []
        self.fills: list[tuple[float, ...] | str] = []
        self.arrows: list[np.ndarray] = []

    def draw(self, figure: Figure) -> None:
        """Everything."""
        for bundle, share in zip(self.plan.bundles, self.share):
            for lane, k in enumerate(bundle.elements):
                self._element(k, bundle, lane - (len(bundle.elements) - 1) / 2, share)
        for v, node in enumerate(self.plan.node):
            if node == GROUND:
                for line in GROUND_LINES:
                    self._line(line * (1.0 if self.detailed else 0.4) + self.where[v], INK, 1.3)
        self._flush()
        self._nodes()
        self._legend(figure)

    # ------------------------------------------------------------------ pieces
    def _colour(self, volts: float) -> tuple[float, ...]:
        return tuple(self.map(float(self.scale(volts))))

    def _width(self, k: int, factor: float = 1.0) -> float:
        """Square root: a hundredth of the largest current is still a tenth of its width."""
        share = float(self.strength[k]) * factor / self.strongest if self.strongest else 0.0
        return THIN + (WIDE - THIN) * float(np.sqrt(share))

    def _line(self, line: np.ndarray, colour: tuple[float, ...] | str, width: float) -> None:
        self.lines.append(line)
        self.colours.append(colour)
        self.widths.append(width)

    def _element(self, k: int, bundle: Bundle, lane: float, share: float) -> None:
        """Wire, symbol, wire, from the first terminal to the second."""
        kind, first, second = (int(column[k]) for column in self.arrays[:3])
        ends = [bundle.start, bundle.end]
        if self.plan.node[ends[0]] != first:
            ends.reverse()
            share = 1.0 - share
        a, b = self.where[ends[0]], self.where[ends[1]]
        along, shift = self._direction(a, b, bundle, lane)
        length = float(np.hypot(*(b - a)))
        if not self.detailed:
            self._simple(k, a, b, along)
            return
        shape = symbol(kind, float(self.arrays.value[k]))
        bend = min(0.3, 0.3 * length) if lane else 0.0
        centre = a + (b - a) * share + shift
        volts, amperes = self.point.voltages[[first, second]], float(self.point.currents[k])
        width = self._width(k)
        left, right = centre - along * shape.half, centre + along * shape.half
        start = [a, a + along * bend + shift] if lane else [a]
        stop = [b - along * bend + shift, b] if lane else [b]
        self._line(np.array([*start, left]), self._colour(volts[0]), width)
        # What leaves an amplifier on its right is its gain times what enters it.
        delivered = self._width(k, abs(float(self.arrays.value[k]))) if kind == AMPLIFIER else width
        self._line(np.array([right, *stop]), self._colour(volts[1]), delivered)
        turn = np.array([along, [-along[1], along[0]]])
        region = self.point.region(k)
        self._symbol(shape, turn, centre, volts, width, region is not None and region.conducting)
        if abs(amperes) > 1e-12 * self.largest:
            tip = start[-1] + (left - start[-1]) * 0.5
            if share != 0.5:  # the label is before the symbol, the arrow behind it
                tip = centre + along * np.sign(along[0]) * (shape.half + 0.15)
            self.arrows.append(tip + (ARROW * (1.0 if amperes > 0 else -1.0)) @ turn)
        if share == 0.5:
            self._label(k, centre, along)
        else:
            self._label_along(k, centre, along, shape.half)

    @staticmethod
    def _direction(a: np.ndarray, b: np.ndarray, bundle: Bundle, lane: float) -> tuple[np.ndarray, np.ndarray]:
        """Unit vector from the first terminal to the second, and how far the lane lies beside the straight line."""
        along = (b - a) / max(float(np.hypot(*(b - a))), 1e-9)
        normal = np.array([-along[1], along[0]])
        if (normal[0], normal[1]) < (0.0, 0.0) or (abs(normal[0]) < 1e-9 and normal[1] < 0):
            normal = -normal  # the same side for both directions of the element
        spread = float(np.abs(normal) @ LANE)
        return along, normal * lane * spread

    def _symbol(
        self, shape: SymbolArrays, turn: np.ndarray, centre: np.ndarray, volts: np.ndarray, width: float, filled: bool
    ) -> None:  # fmt: skip
        if shape.body is not None:
            self.bodies.append(centre + shape.body @ turn)
            self.fills.append(INK if filled else "white")
        for line in shape.lines:
            self._line(centre + line @ turn, INK, 1.4)
        if shape.graded is not None:
            line = centre + shape.graded @ turn
            steps = min(14, len(line) - 1)
            marks = np.linspace(0, len(line) - 1, steps + 1).round().astype(int)
            for j, (p, q) in enumerate(pairwise(marks.tolist())):
                self._line(line[p : q + 1], self._colour(volts[0] + (volts[1] - volts[0]) * (j + 0.5) / steps), width)

    def _simple(self, k: int, a: np.ndarray, b: np.ndarray, along: np.ndarray) -> None:
        """A large circuit: a line an element, a small triangle a diode."""
        first, second = int(self.arrays.first[k]), int(self.arrays.second[k])
        middle = (a + b) / 2
        for p, q, node in ((a, middle, first), (middle, b, second)):
            self._line(np.array([p, q]), self._colour(float(self.point.voltages[node])), 0.6 * self._width(k))
        region = self.point.region(k)
        if region is not None:
            turn = np.array([along, [-along[1], along[0]]])
            self.bodies.append(middle + 0.6 * TRIANGLE @ turn)
            self.fills.append(INK if region.conducting else "white")

    # ------------------------------------------------------------------ words
    def _text(self, x: float, y: float, text: str, **style: Any) -> None:
        from matplotlib.patheffects import withStroke

        halo = [withStroke(linewidth=2.2, foreground="white")]
        self.axes.text(x, y, plain(text), path_effects=halo, zorder=6, **{"fontsize": 7.5, "color": INK, **style})

    def _words(self, k: int) -> tuple[str, str]:
        """Name and value of an element, and its current."""
        name, row = short(self.point.circuit.names[k], 14), ELEMENTS[int(self.arrays.kind[k])]
        value = format_quantity(float(self.arrays.value[k]), row.unit, 4) if row.parameter else ""
        current = format_quantity(float(self.point.currents[k]) + 0.0, "A", 4)
        return f"{name}  {value}".rstrip(), current + ("" if self.point.unique[k] else " *")

    def _label_along(self, k: int, centre: np.ndarray, along: np.ndarray, half: float) -> None:
        """Where wires fan out: everything in one line on the wire, before the symbol; behind it the wires cross."""
        along = along if along[0] >= 0 else -along
        x, y = centre - along * (half + 0.06) + 0.02 * np.array([-along[1], along[0]])
        turn = float(np.degrees(np.arctan2(along[1], along[0])))
        style = {"rotation": turn, "rotation_mode": "anchor", "ha": "right", "va": "bottom", "fontsize": 7}
        self._text(x, y, "  ".join(self._words(k)), **style)

    def _label(self, k: int, centre: np.ndarray, along: np.ndarray) -> None:
        """Name and value above or to the right of the symbol, the current below them or under the symbol."""
        what, current = self._words(k)
        x, y = centre
        if abs(along[1]) < 0.35:
            self._text(x, y + 0.19, what, ha="center", va="bottom")
            self._text(x, y - 0.19, current, ha="center", va="top", color=FAINT)
            return
        side = 0.2 if abs(along[1]) > 0.9 else 0.22
        lift = 0.0 if abs(along[1]) > 0.9 else -0.12 * np.sign(along[0] * along[1])
        self._text(x + side, y + lift + 0.01, what, ha="left", va="bottom")
        self._text(x + side, y + lift - 0.02, current, ha="left", va="top", color=FAINT)

    def _nodes(self) -> None:
        """A dot a node, with its name and potential in the free space."""
        real = [v for v, node in enumerate(self.plan.node) if node != GROUND]
        volts = self.point.voltages[[self.plan.node[v] for v in real]]
        x, y = self.where[real].T
        self.axes.scatter(
            x, y, s=34 if self.detailed else 5, c=[self._colour(v) for v in volts],
            edgecolors=INK if self.detailed else "none", linewidths=0.8, zorder=5,
        )  # fmt: skip
        if not self.detailed:
            return
        angles: dict[int, list[float]] = {v: [] for v in real}
        for bundle in self.plan.bundles:
            for u, v in ((bundle.start, bundle.end), (bundle.end, bundle.start)):
                if u in angles:
                    angles[u].append(float(np.arctan2(*(self.where[v] - self.where[u])[::-1])))
        for v, potential in zip(real, volts.tolist()):
            direction = _roomiest(angles[v])
            px, py = self.where[v] + 0.1 * np.array([np.cos(direction), np.sin(direction)])
            style = {"ha": _side(np.cos(direction), "left", "right"), "va": _side(np.sin(direction), "bottom", "top")}
            name = self.point.circuit.node_names[self.plan.node[v]]
            free = "  (free)" if name in self.point.intervals else ""
            words = f"{short(name, 16)}\n{format_quantity(potential + 0.0, 'V', 4)}{free}"
            self._text(px, py, words, linespacing=1.0, fontweight="bold", fontsize=7.5, **style)

    # ------------------------------------------------------------------ the end
    def _flush(self) -> None:
        from matplotlib.collections import LineCollection, PolyCollection

        self.axes.add_collection(
            LineCollection(self.lines, colors=self.colours, linewidths=self.widths, capstyle="round", zorder=2)
        )
        edge = 1.4 if self.detailed else 0.5
        self.axes.add_collection(
            PolyCollection(self.bodies, facecolors=self.fills, edgecolors=INK, linewidths=edge, zorder=1.5)
        )
        self.axes.add_collection(PolyCollection(self.arrows, facecolors=INK, edgecolors="none", zorder=4))

    def _legend(self, figure: Figure) -> None:
        from matplotlib.cm import ScalarMappable

        width, height = figure.get_size_inches()
        bar = figure.add_axes((1.0 - 0.95 / width, 0.5 / height, 0.14 / width, 1.0 - 1.1 / height))
        figure.colorbar(ScalarMappable(self.scale, self.map), cax=bar)
        bar.tick_params(labelsize=7, colors=INK)
        bar.set_title("V", fontsize=8, color=INK)
        what = {"A": "current", "S": "conductance"}[self.unit]
        most = format_quantity(self.strongest, self.unit, 3)
        words = [f"wire width: {what}, up to {most}", "filled diodes conduct"]
        if not self.point.unique.all():
            words.append("* not unique")
        if self.plan.loops:
            names = ", ".join(self.point.circuit.names[k] for k in self.plan.loops[:5])
            words.append(f"not drawn (both ends on one node): {names}{' …' if len(self.plan.loops) > 5 else ''}")
        figure.text(0.1 / width, 0.1 / height, plain("   ·   ".join(words)), fontsize=7, color=FAINT)


def _roomiest(angles: list[float]) -> float:
    """The direction farthest from all wires; up and to the right where that is equally good."""
    choices = np.radians([45, 135, 315, 225, 90, 0, 180, 270])
    if not angles:
        return float(choices[0])
    gap = np.abs((choices[:, None] - np.array(angles) + np.pi) % (2 * np.pi) - np.pi).min(1)
    return float(choices[int(np.argmax(np.round(gap, 6)))])


def _side(component: float, positive: str, negative: str) -> str:
    """Text alignment for one component of a direction."""
    if abs(component) < 0.3:
        return "center"
    return positive if component > 0 else negative
