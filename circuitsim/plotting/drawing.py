"""A circuit as shapes and texts in inches, from which every form of picture is painted.

Symbols lie along x from −half to +half, with the first terminal on the left. Parallel elements are drawn side by side,
and thin dashed curves lead from controlling nodes and branches to a controlled source.

Labels have positions in order of preference and are placed greedily, each at its best one: as little overlap as
possible of labels, and with symbols and wires.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from circuitsim.analysis.operating_point import OperatingPoint, inner_parts
from circuitsim.circuit import ELEMENTS, GROUND, Circuit
from circuitsim.circuit.dynamics import SwitchLaw
from circuitsim.circuit.elements import AFFINE_CURRENT, AFFINE_VOLTAGE, AMPLIFIER, RESISTOR, VOLTAGE
from circuitsim.circuit.laws import Quantity
from circuitsim.circuit.source import circuit_of
from circuitsim.models import base
from circuitsim.models.base import Symbol
from circuitsim.plotting.layout import Placed, Sketch, place, sketch, with_symbols
from circuitsim.program.components import component_labels
from circuitsim.units import format_quantity, short

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
        angle, box = math.radians(self.angle), np.array([(left, -high), (right, -high), (right, high), (left, high)])
        return box @ frame(np.array([math.cos(angle), math.sin(angle)])) + (self.x, self.y)


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
        pairs = (LABEL_COST, self.labels), (SYMBOL_COST, self.symbols), (WIRE_COST, self.wires)
        for preference, label in enumerate(places):
            if preference >= least:
                break
            cost = preference + sum(each * _covered(text.corners(), shapes) for text in label for each, shapes in pairs)
            if cost < least:
                best, least = label, cost
        self.labels = np.concatenate([self.labels, [text.corners() for text in best]])
        return best


def _covered(corners: np.ndarray, shapes: np.ndarray) -> int:
    """Number of segments (k, 2, 2) or rectangles (k, 4, 2) that intersect the rectangle ``corners``."""
    from matplotlib.path import Path

    near = ((shapes.min(1) < corners.max(0)) & (shapes.max(1) > corners.min(0))).all(1)
    label = Path([*corners, corners[0]])
    return sum(label.intersects_path(Path([*shape, shape[0]])) for shape in shapes[near])


SHORT = Symbol(0.2, graded=((-0.2, 0.0), (0.2, 0.0)))
"""A resistor of 0 Ω."""

CONTACTS = tuple(tuple((x + dx, y) for x, y in base.circle(0.03)) for dx in (-0.17, 0.17))

SWITCHES = [Symbol(0.2, (*CONTACTS, ((-0.15, 0.02), end))) for end in ((0.13, 0.15), (0.15, 0.02))]
"""Open, closed."""

MINUS, *PLUS = (((0.12, y - 0.035), (0.12, y + 0.035)) for y in (-0.08, 0.08))

OP_AMP = Symbol(0.2, (MINUS, *PLUS, ((0.085, 0.08), (0.155, 0.08))), ((-0.2, 0.0), (0.2, 0.2), (0.2, -0.2)))
"""The output is the first terminal; + and − lie across the wire to the second."""

PLAIN = {False: Symbol(0.0), True: Symbol(0.0, body=tuple((0.6 * x, 0.6 * y) for x, y in base.TRIANGLE))}
"""Any element, and a diode, of a circuit too large for symbols."""

HANGING = [((0.0, 0.0), (0.0, -0.1)), *(((-x, y), (x, y)) for x, y in ((0.13, -0.1), (0.08, -0.15), (0.03, -0.2)))]
"""The ground symbol, hanging from the origin."""

ARROW = np.array([(-0.055, 0.05), (0.055, 0.0), (-0.055, -0.05)])
"""A filled arrow-head that points along x."""

HIGH_GAIN = 1e3
"""Minimum gain of a voltage source with feedback to be drawn as an operational amplifier."""


def op_amp(circuit: Circuit, k: int) -> bool:
    """Whether a controlled element is an operational amplifier: a source of high gain between two nodes, or a nullor,
    with feedback from its output to its inputs through other elements."""
    law = circuit.laws.get(k)
    if law is None or len(law.voltages) != 1 or law.currents or law.quantity is Quantity.CURRENT:
        return False
    ((coefficient, *inputs),) = law.voltages
    _, first, second, value, n_nodes = circuit.arrays()
    if law.quantity is Quantity.VOLTAGE and abs(coefficient * np.nan_to_num(value[k], nan=1.0)) < HIGH_GAIN:
        return False
    others = (first != GROUND) & (second != GROUND) & (np.arange(len(first)) != k)
    part = component_labels(n_nodes, first[others], second[others])
    return any(node != GROUND and part[node] == part[first[k]] for node in inputs)


def _switches(circuit: Circuit) -> dict[int, SwitchLaw]:
    """The switches of a circuit, including those whose state an operating point has set."""
    of = circuit.dynamics
    return {} if of is None else {**of.set_switches, **of.switches}


def _read(circuit: Circuit, k: int) -> list[tuple[int, ...]]:
    """What an independent source reads by its formula: pairs of nodes, elements."""
    of = circuit.dynamics
    return of.reads(of.formulas[k]) if of is not None and k in of.formulas else []


def symbol(circuit: Circuit, k: int) -> Symbol:
    """The symbol of an element: a resistor of zero ohm is a wire, a switch is drawn open or closed by its resistance, a
    source of high gain with feedback is an operational amplifier, one by a formula of others a controlled source.
    """
    arrays = circuit.arrays()
    kind, value = int(arrays.kind[k]), float(arrays.value[k])
    if (law := _switches(circuit).get(k)) is not None:
        return SWITCHES[value * value <= law.numbers["ron"] * law.numbers["roff"]]
    if op_amp(circuit, k):
        return OP_AMP
    if k in circuit.devices and circuit.devices[k].values().get("bv") is not None:
        return base.ZENER
    if _read(circuit, k):
        return ELEMENTS[AFFINE_VOLTAGE if kind == VOLTAGE else AFFINE_CURRENT].symbol
    return SHORT if kind == RESISTOR and value == 0.0 else ELEMENTS[kind].symbol


def controls(circuit: Circuit) -> Iterator[tuple[int, Sequence[int], Sequence[int]]]:
    """The controlled elements, with the nodes and the elements that control each, or its inner parts."""
    found: dict[int, tuple[list[int], list[int]]] = {}
    hidden, parts = inner_parts(circuit)
    for k, law in circuit.laws.items():
        owner = circuit.element_index(circuit.names[k].rpartition(".")[0].rstrip(".")) if parts[k] else k
        nodes, elements = found.setdefault(owner, ([], []))
        nodes += [node for _, *ends in law.voltages for node in ends if not hidden[node]]
        elements += [c.element for c in law.currents]
    for k in () if circuit.dynamics is None else circuit.dynamics.formulas:
        read = _read(circuit, k)
        found[k] = [node for own in read if len(own) == 2 for node in own], [own[0] for own in read if len(own) == 1]
    for k, switch in _switches(circuit).items():
        own = switch.control
        found[k] = ([], [circuit.element_index(own)]) if isinstance(own, str) else ([*own], [])
    for k, (nodes, elements) in sorted(found.items()):
        yield k, [*dict.fromkeys(nodes)], [e for e in dict.fromkeys(elements) if e != k]


def frame(way: np.ndarray) -> np.ndarray:
    """The matrix (2, 2) that turns the x axis into a direction."""
    x, y = way / max(float(np.hypot(*way)), 1e-9)
    return np.array([(x, y), (-y, x)])


MOST = 20_000
"""Maximum number of elements of a readable drawing."""

CELL, SMALL = np.array([1.9, 1.35]), 0.55
"""Size of a layout cell, inches, with symbols and without."""

LANE = np.array([0.85, 0.62])
"""Distance, inches, between parallel elements: horizontal between upright ones, vertical between level ones."""

STACKED = 3
"""Minimum number of parallel level elements that are drawn on the wire and above it, not around it."""

THIN, WIDE = 1.0, 4.5
"""Widths of wires, points, without current and with the largest current."""

LINES = 1.4
"""Width of the lines of symbols, points."""

SHADES = 14
"""Number of colours along a line from one voltage to the other."""

BOW, POINTS = 0.14, 17
"""Sagitta of a control curve as a fraction of its length, and its number of points."""

CLEAR, NEAR, LEAST = 0.26, 0.07, 0.1
"""Distances, inches, of the ends of a control curve from the centre of a symbol, and from a node; its least length."""

DOT = np.array(base.circle(1.0))[::4]


Owner = tuple[str, int]
"""``("element", k)`` or ``("node", k)``; ``GROUNDED`` for ground symbols."""


class Shape(NamedTuple):
    """A polyline or a closed outline (k, 2) of an element or a node.

    Attributes
    ----------
    kind : {"control", "control-head", "body", "filled", "wire", "arrow", "dot"}
        The style; all but ``control`` and ``wire`` are closed.
    owner : Owner
    width : float
        Of the line, points.
    potential : float or None
        V; without it, the shape is drawn in ink.
    """

    kind: str
    points: np.ndarray
    owner: Owner
    width: float = LINES
    potential: float | None = None

    @property
    def closed(self) -> bool:
        return self.kind not in ("control", "wire")


LAYERS = ("control", "control-head", "body", "filled", "wire", "arrow", "dot")
"""Kinds of shapes from the bottom to the top."""

GROUNDED = ("", 0)


def arrange(source: OperatingPoint | Circuit) -> Drawing | None:
    """Shapes and texts of a circuit; None if it is too large for a drawing (`layout.place`)."""
    circuit = circuit_of(source)
    if len(circuit) > MOST:
        return None
    plan = sketch(circuit)
    placed = place(plan)
    return None if placed is None else Drawing(source, plan, placed)


class Drawing:
    """Everything to paint, in inches, x to the right and y up.

    Attributes
    ----------
    circuit : Circuit
    point : OperatingPoint or None
    shapes : list of Shape
        In the order of painting.
    labels : list of ((str, int), Place)
        Owners, as of shapes, and texts.
    low, high : (2,) float arrays
        Corners of what is drawn.
    detailed : bool
        Whether there are symbols and labels; otherwise a line per element.
    loops : list of int
        Elements with both ends on one node, which are not drawn.
    currents : (m,) float array
        Zeros without an operating point, and of inner parts.
    """

    def __init__(self, source: OperatingPoint | Circuit, plan: Sketch, placed: Placed) -> None:
        self.circuit, self.point = circuit_of(source), None if isinstance(source, Circuit) else source
        self.loops, self.detailed = plan.loops, with_symbols(plan)
        self.arrays = self.circuit.arrays()
        self.currents = np.zeros(len(self.circuit)) if self.point is None else self.point.currents.copy()
        self.currents[inner_parts(self.circuit)[1]] = 0.0
        self.shares = np.abs(self.currents) / (np.abs(self.currents).max(initial=0.0) or 1.0)
        self.shapes: list[Shape] = []
        self.boxes: list[np.ndarray] = []
        self.labels: list[tuple[Owner, Place]] = []
        self.centres: dict[int, np.ndarray] = {}
        self.where = placed.positions * (CELL if self.detailed else SMALL)
        self.dots = {node: v for v, node in enumerate(plan.node.tolist()) if node != GROUND}
        choices: list[tuple[Owner, list[Place]]] = []
        angles: dict[int, list[float]] = {v: [] for v in range(len(plan.node))}
        for u, v in [*plan.edges.tolist(), *plan.edges[:, ::-1].tolist()]:
            angles[u].append(float(np.arctan2(*(self.where[v] - self.where[u])[::-1])))
        for node, v in self.dots.items():
            size = 0.045 if self.detailed else 0.016
            self._add("dot", self.where[v] + size * DOT, ("node", node), 0.8, self.potential(node))
            self._box(self.where[v] + 0.06 * np.array([(-1, -1), (1, 1)]))
            made = partial(stacked, self._node_words(node))
            choices.append((("node", node), around(self.where[v], angles[v], (0.1, 0.22), made)))
        for at in self.where[plan.node == GROUND]:
            for line in HANGING:
                self._add("wire", at + np.array(line) * (1.0 if self.detailed else 0.4), GROUNDED, 1.3)
            self._box(at + [(-0.14, -0.21), (0.14, 0.0)])
        for ends, elements, share in zip(plan.edges.tolist(), plan.elements, placed.share.tolist()):
            wide, high = np.abs(self.where[ends[1]] - self.where[ends[0]])
            above = len(elements) >= STACKED and wide > high  # ground hangs below
            for lane, k in enumerate(elements):
                ahead = plan.node[ends[0]] == self.arrays.first[k]
                a, b = self.where[ends if ahead else ends[::-1]]
                offset = lane if above else lane - (len(elements) - 1) / 2
                choices.append((("element", k), self._element(k, a, b, offset, share if ahead else 1.0 - share)))
        for k, nodes, branches in controls(self.circuit):
            starts = [(self.where[self.dots[node]], NEAR) for node in nodes if node in self.dots]
            starts += [(self.centres[e], CLEAR) for e in branches if e in self.centres]
            for start, gap in starts if k in self.centres else ():
                self._control(k, start, gap, self.centres[k])
        if self.detailed:
            self._write(choices)
        self.shapes.sort(key=lambda shape: LAYERS.index(shape.kind))
        parts = [shape.points for shape in self.shapes]
        parts += [text.corners() for _, texts in self.labels for text in texts]
        every = np.concatenate(parts) if parts else np.zeros((1, 2))
        self.low, self.high = every.min(0), every.max(0)

    def _add(self, kind: str, points: np.ndarray, owner: Owner, *style: Any) -> None:
        self.shapes.append(Shape(kind, points, owner, *style))

    def _box(self, points: np.ndarray) -> None:
        """Labels avoid the box around some points."""
        self.boxes.append(np.concatenate([points.min(0), points.max(0)]))

    def potential(self, node: int) -> float | None:
        """The voltage of a node, V; None without an operating point."""
        return None if self.point is None else float(self.point.voltages[node])

    # ------------------------------------------------------------------ elements
    def _width(self, k: int, factor: float = 1.0) -> float:
        """Square-root scale: a hundredth of the largest current still has a tenth of its width."""
        if self.point is None:
            return LINES
        scale = 1.0 if self.detailed else 0.6
        return scale * (THIN + (WIDE - THIN) * float(np.sqrt(self.shares[k] * factor)))

    def _element(self, k: int, a: np.ndarray, b: np.ndarray, lane: float, share: float) -> list[Place]:
        """Wire, symbol and wire from the first terminal at a to the second at b; returns the positions of its label."""
        kind, first, second = (int(column[k]) for column in self.arrays[:3])
        owner, rotation = ("element", k), frame(b - a)
        along, normal = rotation
        if (normal[0], normal[1]) < (0.0, 0.0) or (abs(normal[0]) < 1e-9 and normal[1] < 0):
            normal = -normal  # the same side for both directions of the element
        shift = normal * lane * float(np.abs(normal) @ LANE) * self.detailed
        shape = symbol(self.circuit, k) if self.detailed else PLAIN[ELEMENTS[kind].letter == "D"]
        bend = along * min(0.3, 0.3 * float(np.hypot(*(b - a))))
        centre, reach = a + (b - a) * share + shift, along * shape.half
        begin, end = ([a, a + bend + shift], [b - bend + shift, b]) if shift.any() else ([a], [b])
        width = self._width(k)
        # The output current of an amplifier is its gain times its input current.
        delivered = self._width(k, abs(float(self.arrays.value[k]))) if kind == AMPLIFIER else width
        self._add("wire", np.array([*begin, centre - reach]), owner, width, self.potential(first))
        self._add("wire", np.array([centre + reach, *end]), owner, delivered, self.potential(second))
        wires = len(self.shapes)
        for line in shape.lines:
            self._add("wire", centre + np.array(line) @ rotation, owner)
        if shape.body is not None:
            region = None if self.point is None else self.point.region(k)
            filled = "filled" if region is not None and region.conducting else "body"
            self._add(filled, centre + np.array(shape.body) @ rotation, owner, LINES if self.detailed else 0.5)
        if shape.graded is not None:
            graded, pieces = centre + np.array(shape.graded) @ rotation, min(SHADES, len(shape.graded) - 1)
            low, high = (None, None) if self.point is None else self.point.voltages[[first, second]]
            for j, (p, q) in enumerate(pairwise(np.linspace(0, len(graded) - 1, pieces + 1).round().astype(int))):
                volts = None if low is None else float(low + (high - low) * (j + 0.5) / pieces)
                self._add("wire", graded[p : q + 1], owner, width, volts)
        if not self.detailed:
            return []
        self.centres[k] = centre
        ends = centre + np.array([(-shape.half, -0.05), (shape.half, 0.05)]) @ rotation
        self._box(np.concatenate([ends, *(own.points for own in self.shapes[wires:])]))
        if self.shares[k] > 1e-12:
            tip = 0.5 * (begin[-1] + centre - reach)
            if share != 0.5:  # the label is before the symbol, the arrow behind it
                tip = centre + along * np.sign(along[0]) * (shape.half + 0.15)
            self._add("arrow", tip + ARROW * np.sign(self.currents[k]) @ rotation, owner, 0.0)
        words = self._words(k)
        if share != 0.5:
            return along_wire(
                "  ".join(text.words for text in words), centre, along, shape.half, (a + shift, b + shift)
            )
        angle = float(np.arctan2(along[1], along[0]))
        return around(centre, (angle, angle + np.pi), (0.19, 0.3, 0.48), partial(stacked, words))

    def _control(self, k: int, start: np.ndarray, gap: float, stop: np.ndarray) -> None:
        """A curve that ends in an arrow from a position to the symbol of an element, unless the two are too close."""
        from matplotlib.bezier import BezierSegment

        way, length = stop - start, float(np.hypot(*(stop - start)))
        if length < gap + CLEAR + LEAST:
            return
        middle = start + way / 2 + 2.0 * BOW * np.array([-way[1], way[0]])
        points = BezierSegment([start, middle, stop])(np.linspace(gap / length, 1.0 - CLEAR / length, POINTS))
        self._add("control", points, ("element", k), 0.8)
        self._add("control-head", points[-1] + ARROW @ frame(points[-1] - points[-2]), ("element", k), 0.0)

    # ------------------------------------------------------------------ labels
    def _write(self, choices: list[tuple[Owner, list[Place]]]) -> None:
        """Every label at its position, those of nodes first."""
        lines = [s.points for s in self.shapes if not s.closed and s.owner != GROUNDED]
        ends = np.concatenate([np.empty((0, 4)), *(np.hstack([line[:-1], line[1:]]) for line in lines)])
        ends = ends[np.abs(ends[:, 2:] - ends[:, :2]).sum(1) > 0.1]
        placer = Placer(np.array(self.boxes), ends)
        self.labels = [(owner, placer.place(places)) for owner, places in choices]

    def _node_words(self, node: int) -> list[Text]:
        """The name of a node, and its voltage."""
        name = self.circuit.node_names[node]
        words = [Text(short(name, 16), bold=True)]
        if self.point is not None:
            free = "  (free)" if name in self.point.intervals else ""
            volts = format_quantity(float(self.point.voltages[node]) + 0.0, "V", 4)
            words.append(Text(volts + free, bold=True))
        return words

    def _words(self, k: int) -> list[Text]:
        """Name and value of an element, and (faint) its current."""
        name, row = short(self.circuit.names[k], 14), ELEMENTS[int(self.arrays.kind[k])]
        value = format_quantity(float(self.arrays.value[k]), row.unit, 4) if row.parameter else ""
        words = [Text(f"{name}  {value}".rstrip())]
        if self.point is not None:
            current = format_quantity(float(self.currents[k]) + 0.0, "A", 4)
            words.append(Text(current + ("" if self.point.unique[k] else " *"), faint=True))
        return words


def stacked(lines: Sequence[Text], x: float, y: float, side: str, up: int) -> Place:
    """Lines below each other; the block lies above, around or below y (``up`` is 1, 0 or −1)."""
    heights = [LINE * line.size / 72.0 for line in lines]
    top = y + 0.5 * (1 + up) * sum(heights)
    return tuple(
        line._replace(x=x, y=top - sum(heights[:k]) - 0.5 * heights[k], ha=side) for k, line in enumerate(lines)
    )


def along_wire(
    words: str, centre: np.ndarray, along: np.ndarray, half: float, ends: tuple[np.ndarray, np.ndarray]
) -> list[Place]:
    """One line on the wire: before or behind the symbol, farther along, above or below the wire."""
    along = along if along[0] >= 0 else -along
    rotation = float(np.degrees(np.arctan2(along[1], along[0])))
    low, high = sorted(float((end - centre) @ along) for end in ends)
    spots = [(-(half + 0.06), "right"), (half + 0.28, "left")]
    spots += [(t, "left") for t in np.arange(half + 0.6, high, 0.35).tolist()]
    spots += [(t, "right") for t in np.arange(-half - 0.4, low, -0.35).tolist()]
    line = Text(words, angle=rotation, size=7.0)
    places: list[Place] = []
    for t, side in spots:
        for offset in (0.03 + 0.5 * LINE * line.size / 72.0, -0.03 - 0.5 * LINE * line.size / 72.0):
            x, y = (centre + np.array([t, offset]) @ frame(along)).tolist()
            places.append((line._replace(x=x, y=y, ha=side),))
    return places


SIDES = {1: "left", 0: "center", -1: "right"}
"""The part of a text at a point that it lies to the right of, around, or to the left of."""


def around(
    centre: np.ndarray, angles: Sequence[float], reaches: Sequence[float], made: Callable[..., Place]
) -> list[Place]:
    """Positions of a label at these distances from a point, in eight directions, those with the widest gap between
    wires first; ``made(x, y, side, up)`` is the label with a corner or an edge at (x, y)."""
    choices = np.radians([45, 135, 315, 225, 90, 0, 180, 270])
    gaps = np.abs((choices[:, None] - np.array(angles) + np.pi) % (2 * np.pi) - np.pi).min(1)
    places: list[Place] = []
    for reach in reaches:
        for angle in choices[np.argsort(-np.round(gaps, 6), kind="stable")].tolist():
            way = np.array([np.cos(angle), np.sin(angle)])
            right, up = np.rint(way).astype(int).tolist()
            places.append(made(*(centre + reach * way).tolist(), SIDES[right], up))
    return places
