"""A circuit as lines, outlines and texts in inches, from which every form of picture is painted.

Symbols lie along x from −half to +half, with the first terminal on the left. Parallel elements are drawn side by side,
labels have positions in order of preference, and thin dashed curves lead from controlling nodes and branches to a
controlled source.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from circuitsim.circuit import ELEMENTS, GROUND, Circuit
from circuitsim.circuit.elements import AMPLIFIER, RESISTOR
from circuitsim.circuit.laws import Quantity
from circuitsim.circuit.source import circuit_of
from circuitsim.models import base
from circuitsim.plotting.labels import Place, Placer, Text
from circuitsim.plotting.layout import Placed, place, with_symbols
from circuitsim.plotting.sketch import Sketch, sketch
from circuitsim.program.components import component_labels
from circuitsim.units import format_quantity, short

if TYPE_CHECKING:
    from circuitsim.analysis import OperatingPoint
    from circuitsim.circuit.dynamics import SwitchLaw


class SymbolArrays(NamedTuple):
    """One element's drawing.

    Attributes
    ----------
    half : float
        The wires end at ±half.
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


def _drawn(shape: base.Symbol) -> SymbolArrays:
    """The symbol of a model as arrays."""
    body, graded = (None if line is None else np.array(line) for line in (shape.body, shape.graded))
    return SymbolArrays(shape.half, [np.array(line) for line in shape.lines], body, graded)


TRIANGLE = np.array(base.TRIANGLE)
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


_ZENER = _drawn(base.ZENER)

_CONTACTS = [0.03 * np.array(base.circle(1.0)) + np.array([x, 0.0]) for x in (-0.17, 0.17)]

_SWITCHES = [SymbolArrays(0.2, [*_CONTACTS, _points((-0.15, 0.02), end)]) for end in ((0.13, 0.15), (0.15, 0.02))]
"""Open, closed."""


_OP_AMP = SymbolArrays(
    0.2,
    [_points((0.12, y - 0.035), (0.12, y + 0.035)) for y in (-0.08, 0.08)] + [_points((0.085, 0.08), (0.155, 0.08))],
    _points((-0.2, 0.0), (0.2, 0.2), (0.2, -0.2)),
)
"""The output is the first terminal; + and − lie across the wire to the second."""
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


def symbol(circuit: Circuit, k: int) -> SymbolArrays:
    """The symbol of an element: a resistor of zero ohm is a wire, a switch is drawn open or closed by its resistance, a
    source of high gain with feedback is an operational amplifier.
    """
    arrays = circuit.arrays()
    kind, value = int(arrays.kind[k]), float(arrays.value[k])
    if (law := _switches(circuit).get(k)) is not None:
        return _SWITCHES[value * value <= law.numbers["ron"] * law.numbers["roff"]]
    if op_amp(circuit, k):
        return _OP_AMP
    if k in circuit.devices and circuit.devices[k].values().get("bv") is not None:
        return _ZENER
    return _SHORT if kind == RESISTOR and value == 0.0 else _SYMBOLS[kind]


BOW = 0.14
"""Sagitta of a curve as a fraction of its length."""

CLEAR = 0.26
"""Distance, inches, between the centre of a symbol and the end of a curve."""

POINTS = 9
"""Number of points of a curve."""


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
        Positions of the nodes, inches, except ground, which has many symbols.
    centres : mapping of int to (2,) float array
        Centres of the elements' symbols, inches.
    """
    found, controls = [], dict[int, tuple[list[int], list[int]]]()
    for k, law in circuit.laws.items():
        controls[k] = [node for _, *ends in law.voltages for node in ends], [c.element for c in law.currents]
    for k, switch in _switches(circuit).items():
        own = switch.control
        controls[k] = ([], [circuit.element_index(own)]) if isinstance(own, str) else ([*own], [])
    for k, (nodes, elements) in sorted(controls.items()):
        starts = [(dots[node], 0.07) for node in dict.fromkeys(nodes) if node in dots]
        starts += [(centres[e], CLEAR) for e in dict.fromkeys(elements) if e in centres and e != k]
        for start, gap in starts if k in centres else ():
            if (arrow := _arrow(k, start, gap, centres[k])) is not None:
                found.append(arrow)
    return found


def _arrow(k: int, start: np.ndarray, gap: float, stop: np.ndarray) -> ControlArrow | None:
    """Arrow from a position to the symbol of element ``k``; None where the two are too close."""
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


LANE = np.array([0.85, 0.62])
"""Distance, inches, between parallel elements: horizontal between upright ones, vertical between level ones."""


MANY = 3
"""Minimum number of parallel level elements that are drawn on the wire and above it, not around it."""


def direction(a: np.ndarray, b: np.ndarray, lane: float) -> tuple[np.ndarray, np.ndarray]:
    """Unit vector from the first terminal to the second, and the offset of a lane from the straight line."""
    along = (b - a) / max(float(np.hypot(*(b - a))), 1e-9)
    normal = np.array([-along[1], along[0]])
    if (normal[0], normal[1]) < (0.0, 0.0) or (abs(normal[0]) < 1e-9 and normal[1] < 0):
        normal = -normal  # the same side for both directions of the element
    return along, normal * lane * float(np.abs(normal) @ LANE)


def stacked(words: Sequence[tuple[str, bool]], x: float, y: float, ha: str, va: str) -> Place:
    """Lines below each other; the block lies above, around or below y."""
    line = 0.127
    top = y + {"bottom": len(words) * line, "center": len(words) * line / 2, "top": 0.0}[va]
    return tuple(Text(x, top - k * line, text, ha, "top", faint=faint) for k, (text, faint) in enumerate(words))


def along_wire(
    words: str, centre: np.ndarray, along: np.ndarray, half: float, ends: tuple[np.ndarray, np.ndarray]
) -> list[Place]:
    """One line on the wire: before or behind the symbol, farther along, above or below the wire."""
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


def around(
    centre: tuple[float, float], angles: Sequence[float], reaches: Sequence[float], made: Callable[..., Place]
) -> list[Place]:
    """Positions of a label at these distances from a point, in eight directions, those with the widest gap between
    wires first; ``made(x, y, ha, va)`` is the label with a corner or an edge at (x, y)."""
    choices = np.radians([45, 135, 315, 225, 90, 0, 180, 270])
    gaps = np.full(8, np.pi)
    if angles:
        gaps = np.abs((choices[:, None] - np.array(angles) + np.pi) % (2 * np.pi) - np.pi).min(1)
    places: list[Place] = []
    for reach in reaches:
        for k in np.argsort(-np.round(gaps, 6), kind="stable").tolist():
            dx, dy = float(np.cos(choices[k])), float(np.sin(choices[k]))
            sides = _side(dx, "left", "right"), _side(dy, "bottom", "top")
            places.append(made(centre[0] + reach * dx, centre[1] + reach * dy, *sides))
    return places


def _side(component: float, positive: str, negative: str) -> str:
    """Text alignment for one component of a direction."""
    if abs(component) < 0.3:
        return "center"
    return positive if component > 0 else negative


MOST = 20_000
"""Maximum number of elements of a readable drawing."""

CELL = np.array([1.9, 1.35])
"""Size of a layout cell, inches."""

THIN, WIDE = 1.0, 4.5
"""Widths of wires, points, without current and with the largest current."""

SHADES = 14
"""Number of colours along a line from one voltage to the other."""

NOTHING = -1
"""Element index of a ground symbol."""


class Stroke(NamedTuple):
    """A polyline (k, 2) of an element and its width in points; without a potential (V) it is drawn in ink."""

    points: np.ndarray
    width: float
    element: int
    potential: float | None = None


class Outline(NamedTuple):
    """A closed outline (k, 2) of an element, filled with ink or with paper."""

    points: np.ndarray
    element: int
    filled: bool = False


class Dot(NamedTuple):
    """A node at (x, y)."""

    node: int
    x: float
    y: float


class Label(NamedTuple):
    """The texts of an element, or of a node."""

    texts: Place
    element: int = NOTHING
    node: int = -1


def arrange(source: OperatingPoint | Circuit) -> Drawing | None:
    """Lines, outlines and texts of a circuit; None if it is too large for a drawing (`layout.place`)."""
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
    strokes, bodies, arrows, dots, labels : list
        To paint in this order, bodies below strokes.
    controls : list of ControlArrow
        From controlling quantities to sources; drawn below everything else.
    low, high : (2,) float arrays
        Corners of what is drawn.
    detailed : bool
        Whether there are symbols and labels; otherwise a line per element.
    loops : list of int
        Elements with both ends on one node, which are not drawn.
    currents : (m,) float array
        Zeros without an operating point.
    """

    def __init__(self, source: OperatingPoint | Circuit, plan: Sketch, placed: Placed) -> None:
        self.circuit, self.point = circuit_of(source), None if isinstance(source, Circuit) else source
        self.plan, self.loops, self.detailed = plan, plan.loops, with_symbols(plan)
        self.where = placed.positions * (CELL if self.detailed else 0.55)
        self.arrays = self.circuit.arrays()
        self.currents = np.zeros(len(self.circuit)) if self.point is None else self.point.currents
        self.shares = np.abs(self.currents) / (np.abs(self.currents).max(initial=0.0) or 1.0)
        self.strokes: list[Stroke] = []
        self.bodies: list[Outline] = []
        self.arrows: list[Outline] = []
        self.boxes: list[tuple[float, float, float, float]] = []
        self.choices: list[tuple[int, list[Place]]] = []
        self.centres: dict[int, np.ndarray] = {}
        for ends, elements, share in zip(plan.edges.tolist(), plan.elements, placed.share.tolist()):
            wide, high = np.abs(self.where[ends[1]] - self.where[ends[0]])
            above = len(elements) >= MANY and wide > high  # ground hangs below
            for lane, k in enumerate(elements):
                self._element(k, ends, lane if above else lane - (len(elements) - 1) / 2, share)
        self.dots: list[Dot] = []
        size = 1.0 if self.detailed else 0.4
        for node, at in zip(plan.node.tolist(), self.where):
            x, y = at.tolist()
            if node != GROUND:
                self.dots.append(Dot(node, x, y))
                continue
            self.strokes += [Stroke(line * size + at, 1.3, NOTHING) for line in GROUND_LINES]
            self.boxes.append((x - 0.14, y - 0.21, x + 0.14, y))
        places = {dot.node: np.array([dot.x, dot.y]) for dot in self.dots}
        self.controls = control_arrows(self.circuit, places, self.centres)
        self.labels = self._labels() if self.detailed else []
        parts = [stroke.points for stroke in self.strokes] + [self.where] + [arrow.points for arrow in self.controls]
        parts += [text.corners() for label in self.labels for text in label.texts]
        every = np.concatenate(parts) if plan.node.size else np.zeros((1, 2))
        self.low, self.high = every.min(0), every.max(0)

    # ------------------------------------------------------------------ elements
    def _width(self, k: int, factor: float = 1.0) -> float:
        """Square-root scale: a hundredth of the largest current still has a tenth of its width."""
        if self.point is None:
            return 1.4
        return THIN + (WIDE - THIN) * float(np.sqrt(self.shares[k] * factor))

    def potential(self, node: int) -> float | None:
        """The voltage of a node, V; None without an operating point."""
        return None if self.point is None else float(self.point.voltages[node])

    def _conducts(self, k: int) -> bool:
        """Whether an element is a diode or a device that conducts."""
        region = None if self.point is None else self.point.region(k)
        return region is not None and region.conducting

    def _element(self, k: int, ends: Sequence[int], lane: float, share: float) -> None:
        """Wire, symbol, wire, from the first terminal to the second."""
        kind, first, second = (int(column[k]) for column in self.arrays[:3])
        if self.plan.node[ends[0]] != first:
            ends, share = ends[::-1], 1.0 - share
        a, b = self.where[ends[0]], self.where[ends[1]]
        along, shift = direction(a, b, lane)
        length = float(np.hypot(*(b - a)))
        if not self.detailed:
            self._simple(k, a, b, along)
            return
        shape = symbol(self.circuit, k)
        bend = min(0.3, 0.3 * length) if lane else 0.0
        centre = a + (b - a) * share + shift
        width = self._width(k)
        self.centres[k] = centre
        left, right = centre - along * shape.half, centre + along * shape.half
        start = [a, a + along * bend + shift] if lane else [a]
        stop = [b - along * bend + shift, b] if lane else [b]
        self.strokes.append(Stroke(np.array([*start, left]), width, k, self.potential(first)))
        # The output current of an amplifier is its gain times its input current.
        delivered = self._width(k, abs(float(self.arrays.value[k]))) if kind == AMPLIFIER else width
        self.strokes.append(Stroke(np.array([right, *stop]), delivered, k, self.potential(second)))
        turn = np.array([along, [-along[1], along[0]]])
        self._symbol(k, shape, turn, centre, (first, second), width)
        self._arrow(k, shape, turn, centre, (start[-1], left), share)
        self.choices.append((k, self._choices(k, centre, along, shape.half, share, (a + shift, b + shift))))

    def _arrow(
        self,
        k: int,
        shape: SymbolArrays,
        turn: np.ndarray,
        centre: np.ndarray,
        wire: tuple[np.ndarray, np.ndarray],
        share: float,
    ) -> None:
        """Direction of the current, on the wire."""
        if self.shares[k] <= 1e-12:
            return
        along = turn[0]
        tip = wire[0] + (wire[1] - wire[0]) * 0.5
        if share != 0.5:  # the label is before the symbol, the arrow behind it
            tip = centre + along * np.sign(along[0]) * (shape.half + 0.15)
        sign = 1.0 if self.currents[k] > 0 else -1.0
        self.arrows.append(Outline(tip + (ARROW * sign) @ turn, k, True))

    def _symbol(
        self, k: int, shape: SymbolArrays, turn: np.ndarray, centre: np.ndarray, nodes: tuple[int, int], width: float
    ) -> None:
        parts = [np.array([(-shape.half, -0.05), (shape.half, 0.05)]) @ turn + centre]
        if shape.body is not None:
            self.bodies.append(Outline(centre + shape.body @ turn, k, self._conducts(k)))
            parts.append(self.bodies[-1].points)
        for line in shape.lines:
            self.strokes.append(Stroke(centre + line @ turn, 1.4, k))
            parts.append(self.strokes[-1].points)
        if shape.graded is not None:
            parts.append(centre + shape.graded @ turn)
            self._graded(k, parts[-1], nodes, width)
        every = np.concatenate(parts)
        self.boxes.append((*every.min(0).tolist(), *every.max(0).tolist()))

    def _graded(self, k: int, line: np.ndarray, nodes: tuple[int, int], width: float) -> None:
        """A line whose colour varies from one potential to the other."""
        begin, end = (self.potential(node) for node in nodes)
        if begin is None or end is None:
            self.strokes.append(Stroke(line, width, k))
            return
        steps = min(SHADES, len(line) - 1)
        marks = np.linspace(0, len(line) - 1, steps + 1).round().astype(int)
        for j, (p, q) in enumerate(pairwise(marks.tolist())):
            self.strokes.append(Stroke(line[p : q + 1], width, k, begin + (end - begin) * (j + 0.5) / steps))

    def _simple(self, k: int, a: np.ndarray, b: np.ndarray, along: np.ndarray) -> None:
        """A large circuit: a line per element, a small triangle per diode."""
        first, second = int(self.arrays.first[k]), int(self.arrays.second[k])
        middle = (a + b) / 2
        for p, q, node in ((a, middle, first), (middle, b, second)):
            self.strokes.append(Stroke(np.array([p, q]), 0.6 * self._width(k), k, self.potential(node)))
        if ELEMENTS[int(self.arrays.kind[k])].letter == "D":
            turn = np.array([along, [-along[1], along[0]]])
            self.bodies.append(Outline(middle + 0.6 * TRIANGLE @ turn, k, self._conducts(k)))

    # ------------------------------------------------------------------ labels
    def _labels(self) -> list[Label]:
        """Every label at its position, those of nodes first."""
        wires = [piece for s in self.strokes if s.element != NOTHING for piece in pairwise(s.points.tolist())]
        wires += [piece for arrow in self.controls for piece in pairwise(arrow.points[::2].tolist())]
        ends = np.array([(*p, *q) for p, q in wires if abs(p[0] - q[0]) + abs(p[1] - q[1]) > 0.1])
        dot_boxes = [(d.x - 0.06, d.y - 0.06, d.x + 0.06, d.y + 0.06) for d in self.dots]
        placer = Placer(np.array([*self.boxes, *dot_boxes]), ends)
        labels = []
        angles = self._angles()
        vertex = {node: v for v, node in enumerate(self.plan.node.tolist()) if node != GROUND}
        for dot in self.dots:
            made = partial(self._node_label, dot.node)
            places = around((dot.x, dot.y), angles[vertex[dot.node]], (0.1, 0.22), made)
            labels.append(Label(placer.place(places), node=dot.node))
        for k, places in self.choices:
            labels.append(Label(placer.place(places), element=k))
        return labels

    def _angles(self) -> dict[int, list[float]]:
        """The directions in which wires leave each vertex."""
        angles: dict[int, list[float]] = {v: [] for v in range(len(self.plan.node))}
        for begin, end in self.plan.edges.tolist():
            for u, v in ((begin, end), (end, begin)):
                angles[u].append(float(np.arctan2(*(self.where[v] - self.where[u])[::-1])))
        return angles

    def _node_label(self, node: int, x: float, y: float, ha: str, va: str) -> Place:
        """The name of a node, and its voltage."""
        name = self.circuit.node_names[node]
        words = short(name, 16)
        if self.point is not None:
            free = "  (free)" if name in self.point.intervals else ""
            words += f"\n{format_quantity(float(self.point.voltages[node]) + 0.0, 'V', 4)}{free}"
        return (Text(x, y, words, ha, va, bold=True),)

    def _words(self, k: int) -> list[tuple[str, bool]]:
        """Name and value of an element, and (faint) its current."""
        name, row = short(self.circuit.names[k], 14), ELEMENTS[int(self.arrays.kind[k])]
        value = format_quantity(float(self.arrays.value[k]), row.unit, 4) if row.parameter else ""
        words = [(f"{name}  {value}".rstrip(), False)]
        if self.point is not None:
            current = format_quantity(float(self.currents[k]) + 0.0, "A", 4)
            words.append((current + ("" if self.point.unique[k] else " *"), True))
        return words

    def _choices(
        self,
        k: int,
        centre: np.ndarray,
        along: np.ndarray,
        half: float,
        share: float,
        ends: tuple[np.ndarray, np.ndarray],
    ) -> list[Place]:
        """Positions of an element's label: next to its symbol, or along its wire where wires fan out."""
        words = self._words(k)
        if share != 0.5:
            return along_wire("  ".join(text for text, _ in words), centre, along, half, ends)
        turn = float(np.arctan2(along[1], along[0]))
        return around(centre.tolist(), (turn, turn + np.pi), (0.19, 0.3, 0.48), partial(stacked, words))
