"""Bounds of one quantity over a box of values: branch and bound over values, with the diodes' states enumerated.

In a circuit of resistors and sources a quantity is a ratio of functions affine in each single value, so it is monotone
in each: its extreme is at a corner. The sign of the nominal gradient only suggests which one, since signs can change
inside the box; here enclosures of the gradient prove them. With diodes the box is cut where several states are
possible; states outside those that can be reached from the centre's cannot occur.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from circuitsim.tolerance.port_model import UNBOUNDED, Centre, PortModel, State, centre, state_of

ROUNDING = 1e-11
"""Share of its scale by which a quantity must differ from zero for its sign to count."""

KEPT = 20_000
"""Most points and states that are kept."""

STATES, FLIPS = 24, 4
"""Most states of the diodes in one box, and most diodes that may change at one point."""


class Region(NamedTuple):
    """Variables of the box: values of toleranced elements.

    Attributes
    ----------
    low, high : (v,) float arrays
        Ends of the deviations.
    """

    low: np.ndarray
    high: np.ndarray


class Found(NamedTuple):
    """The largest value that was found, at which deviations, and the bound above; work in linear systems and solves."""

    value: float
    at: np.ndarray
    bound: float
    systems: int
    solves: int


class Elements(NamedTuple):
    """How deviations make values: resistances and source changes as nominal + deviations · weights.

    Attributes
    ----------
    resistance : (r,) float array
    by_resistance : (v, r) float array
    by_source : (v, k) float array
    single : (v,) bool array
        Variables of which one element alone depends, and that by no other variable: the quantity is monotone in them.
    """

    resistance: np.ndarray
    by_resistance: np.ndarray
    by_source: np.ndarray
    single: np.ndarray

    def box(self, region: Region) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Centres and half-widths of conductances and of source changes."""
        middle, half = 0.5 * (region.low + region.high), 0.5 * (region.high - region.low)
        ohms = self.resistance + middle @ self.by_resistance
        width = half @ np.abs(self.by_resistance)
        low, high = 1.0 / (ohms + width), 1.0 / (ohms - width)
        return 0.5 * (low + high), 0.5 * (high - low), middle @ self.by_source, half @ np.abs(self.by_source)


class Surface:
    """Quantities at points of the box and states of the diodes, each found once for all searches.

    Parameters
    ----------
    model : PortModel
    elements : Elements
    solve : callable
        Deviations (v,) → quantities (q,) at a certified operating point, and the conducting diodes (d,).
    """

    def __init__(
        self, model: PortModel, elements: Elements, solve: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
    ) -> None:
        self.model, self.elements, self._solve = model, elements, solve
        self._states: dict[bytes, State | None] = {}
        self._points: dict[bytes, tuple[np.ndarray, np.ndarray]] = {}

    def point(self, deviations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The quantities and the conducting diodes at a point."""
        key = deviations.tobytes()
        if key not in self._points:
            if len(self._points) >= KEPT:
                self._points.clear()
            self._points[key] = self._solve(deviations)
        return self._points[key]

    def state(self, conducting: np.ndarray) -> State | None:
        """The circuit for the conducting diodes."""
        key = conducting.tobytes()
        if key not in self._states:
            if len(self._states) >= KEPT:
                self._states.clear()
            self._states[key] = state_of(self.model, conducting)
        return self._states[key]


class Search:
    """The largest value of one quantity over a box.

    Parameters
    ----------
    surface : Surface
    quantity : int
    sign : float
        −1 for the smallest value, whose negative is found.
    """

    def __init__(self, surface: Surface, quantity: int, sign: float) -> None:
        self.surface, self.model, self.elements = surface, surface.model, surface.elements
        self.q, self.sign = quantity, sign
        self.systems = self.solves = 0
        self.value, self.at = -np.inf, np.zeros(self.elements.single.size)

    def run(self, region: Region, gap: float, budget: int) -> Found:
        """Branch and bound until the gap or the budget of linear systems is reached."""
        order = itertools.count()
        heap = [(-np.inf, next(order), region)]
        bound = np.inf
        closed = -np.inf  # the largest bound of boxes that are done
        while heap:
            upper, _, box = heapq.heappop(heap)
            bound = max(-upper, closed)
            if bound <= self.value + gap or self.systems > budget:
                return self._found(max(bound, self.value))
            high, cut = self._examine(box)
            high = min(high, -upper)
            if cut is None or high <= self.value + gap:
                closed = max(closed, high)
                continue
            for part in self._cut(box, *cut):
                heapq.heappush(heap, (-high, next(order), part))
        return self._found(max(closed, self.value))

    def suggest(self, region: Region) -> None:
        """Try the corner that the gradient at the centre suggests."""
        conducting = self._try(0.5 * (region.low + region.high))
        state = self.surface.state(conducting)
        if state is not None:
            at = self._centre(state, *self.elements.box(region))
            self._try(np.where(self._slopes(at, region)[0] > 0.0, region.high, region.low))

    def _found(self, bound: float) -> Found:
        return Found(self.value, self.at, bound, self.systems, self.solves)

    def _try(self, deviations: np.ndarray) -> np.ndarray:
        """Solve at one point; returns the conducting diodes."""
        self.solves += 1
        values, conducting = self.surface.point(deviations)
        value = self.sign * float(values[self.q])
        if value > self.value:
            self.value, self.at = value, deviations.copy()
        return conducting

    # ------------------------------------------------------------------ one box
    def _examine(self, box: Region) -> tuple[float, tuple[int, bool] | None]:
        """An upper bound over a box; the variable to cut, and whether the circuit is linear there (None: the bound is
        reached)."""
        middle = 0.5 * (box.low + box.high)
        first = self._try(middle)
        values = self.elements.box(box)
        waiting, known = [first], {first.tobytes()}
        upper, score = -np.inf, np.zeros(middle.size)
        only = True
        while waiting:
            conducting = waiting.pop()
            state = self.surface.state(conducting)
            if state is None or len(known) > STATES:
                return np.inf, self._widest(box)
            at = self._centre(state, *values)
            if not self.model.passive:
                # Only where no values in the box make the circuit singular is a quantity monotone in each.
                only = only and bool((at.around < UNBOUNDED).all())
            unsure = self._unsure(at, conducting.size)
            if unsure.size:
                only = False
                if unsure.size > FLIPS:
                    return np.inf, self._sharpest(box, at)
                for size in range(1, unsure.size + 1):
                    for flips in itertools.combinations(state.diode[unsure].tolist(), size):
                        other = conducting.copy()
                        other[list(flips)] ^= True
                        if other.tobytes() not in known:
                            known.add(other.tobytes())
                            waiting.append(other)
            high, left = self._linear_bound(state, box)
            upper = max(upper, high)
            score = np.maximum(score, self._influence(at, box))
            if only and left is None:
                return high, None
        score[box.high <= box.low] = -1.0
        # All derivatives can be zero at the centre alone.
        return upper, (int(score.argmax()), only) if score.max() > 0.0 else self._widest(box)

    def _centre(self, state: State, g: np.ndarray, half: np.ndarray, s: np.ndarray, s_half: np.ndarray) -> Centre:
        self.systems += 1
        return centre(self.model, state, g, half, s, s_half)

    def _unsure(self, at: Centre, diodes: int) -> np.ndarray:
        """Which diodes may leave their state inside the box, by their place among the state's."""
        if not diodes:
            return np.zeros(0, dtype=np.int64)
        start = at.values.size - diodes
        values, reach = at.values[start:], at.reach[start:]
        largest = np.abs(values).max(initial=0.0)
        # A quantity of exactly zero at a point of zero width is at a kink, where both states have one solution.
        return np.flatnonzero(values + reach > ROUNDING * largest)

    def _linear_bound(self, state: State, box: Region) -> tuple[float, bool | None]:
        """The largest value that the state's linear circuit takes in the box, or a bound; None: taken at a corner."""
        low, high = box.low.copy(), box.high.copy()
        while True:
            inner = Region(low, high)
            at = self._centre(state, *self.elements.box(inner))
            open_ = high > low
            value = self.sign * at.values[self.q]
            if not open_.any():
                self._try(low.copy())
                return float(value), None
            fixed = self._signs(at, inner)
            fixed[~open_ | ~self.elements.single] = 0.0
            if not fixed.any():
                self._try(np.where(self._slopes(at, inner)[0] > 0.0, high, low))
                bounded = at.around.max(initial=0.0) < UNBOUNDED
                return float(value + at.reach[self.q]) if bounded else np.inf, True
            low[fixed > 0.0] = high[fixed > 0.0]
            high[fixed < 0.0] = low[fixed < 0.0]

    def _slopes(self, at: Centre, box: Region) -> tuple[np.ndarray, np.ndarray]:
        """Derivatives by the deviations at the centre, and what they may change by inside the box."""
        e, g = self.elements, self.elements.box(box)
        adjoint, drops = at.adjoint[self.q], at.drops
        moving = at.around_adjoint[self.q]
        # df/dg = −λ y, dg/dR = −g²: the sign of df/dR is that of λ y.
        by_r = adjoint * drops
        change = np.abs(adjoint) * at.around + moving * (np.abs(drops) + at.around)
        slope = e.by_resistance @ (by_r * g[0] ** 2) + e.by_source @ at.by_source[self.q]
        spread = np.abs(e.by_resistance) @ (change * g[0] ** 2)
        spread += np.abs(e.by_source) @ at.around_source[self.q]
        return self.sign * slope, spread

    def _signs(self, at: Centre, box: Region) -> np.ndarray:
        """1 or −1 where a derivative by a single element's value has that sign all over the box; else 0."""
        e = self.elements
        by_r, moving = at.adjoint[self.q] * at.drops, at.around_adjoint[self.q]
        change = np.abs(at.adjoint[self.q]) * at.around + moving * (np.abs(at.drops) + at.around)
        sure_r = np.where(np.abs(by_r) > change + ROUNDING * np.abs(by_r).max(initial=0.0), np.sign(by_r), 0.0)
        source, around = at.by_source[self.q], at.around_source[self.q]
        sure_s = np.where(np.abs(source) > around + ROUNDING * np.abs(source).max(initial=0.0), np.sign(source), 0.0)
        found = np.sign(e.by_resistance) @ sure_r + np.sign(e.by_source) @ sure_s
        return self.sign * np.sign(found)

    def _influence(self, at: Centre, box: Region) -> np.ndarray:
        slope, spread = self._slopes(at, box)
        spread = np.where(spread < UNBOUNDED, spread, np.abs(slope))
        return (np.abs(slope) + spread) * (box.high - box.low)

    def _sharpest(self, box: Region, at: Centre) -> tuple[int, bool] | None:
        score = self._influence(at, box)
        score[box.high <= box.low] = -1.0
        return (int(score.argmax()), False) if score.max() > 0.0 else self._widest(box)

    def _widest(self, box: Region) -> tuple[int, bool] | None:
        width = (box.high - box.low) * (np.abs(self.elements.by_resistance).sum(axis=1) + 1e-300)
        return (int(width.argmax()), False) if (box.high > box.low).any() else None

    def _cut(self, box: Region, j: int, linear: bool) -> list[Region]:
        """Two parts of a box; the two faces where the circuit is linear and thus monotone in the variable."""
        low, high = box.low.copy(), box.high.copy()
        if linear and self.elements.single[j]:
            low[j], high[j] = box.high[j], box.low[j]
            return [Region(box.low, high), Region(low, box.high)]
        middle = 0.5 * (box.low[j] + box.high[j])
        high[j] = low[j] = middle
        return [Region(box.low, high), Region(low, box.high)]
