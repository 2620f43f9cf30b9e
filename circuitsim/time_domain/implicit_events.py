"""Events of the implicit method: which diodes conduct, which switches are closed, and when that changes.

Regeneration: circuits with feedback switch because their operating point ceases to exist. A comparator with positive
feedback has three operating points between its thresholds. Where the one that a run follows ends (a fold), parasitic
capacitances decide the next one, however small they are: with them the waveform is unique and leaves the fold for a
stable operating point within picoseconds (parasitics and jumps: Chua & Alexander 1971; Sastry & Desoer 1981).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.analysis.switching import Switch, Switching
from circuitsim.circuit import GROUND, Circuit
from circuitsim.errors import UsageError
from circuitsim.time_domain.companion import Companion
from circuitsim.time_domain.implicit_step import NODES, Point, Step

NOISE = 1e-9
"""Voltage or current of a diode, relative to the largest of the run, that does not change its state."""
HALVINGS = 200
"""Maximum number of iterations to locate an event."""
MOST = 3
"""Maximum number of points of the inverse interpolation."""
SLOW = 3
"""Number of iterations without halving the interval after which it is bisected."""


class Conduction(NamedTuple):
    """States of ideal diodes (d,) and switches (s,)."""

    diodes: np.ndarray
    switches: np.ndarray


class Watch:
    """Distances of a circuit from its events.

    Parameters
    ----------
    companion : Companion
    switching : Switching

    Attributes
    ----------
    volts, amperes : float
        Largest voltage and current so far.
    """

    def __init__(self, companion: Companion, switching: Switching) -> None:
        self.companion, self.switching = companion, switching
        self.volts = self.amperes = 1e-300
        companion.see(self.volts, self.amperes)
        circuit, controls = companion.circuit, [switch.control for switch in switching.switches]
        pairs = [(0, 0) if isinstance(own, str) else tuple(map(circuit.node_index, own)) for own in controls]
        self._plus, self._minus = np.array(pairs, dtype=np.int64).reshape(len(pairs), 2).T
        self._by_current = np.array([isinstance(own, str) for own in controls], dtype=bool)
        self._flowing = np.array([circuit.element_index(own) for own in controls if isinstance(own, str)], np.int64)
        self._reach = np.zeros(len(controls))
        self._opening, self._closing = switching.thresholds(np.eye(2, 1, dtype=bool))

    def see_at(self, point: Point) -> None:
        """Update the largest voltage and current, and the largest control of each switch."""
        self.see(point.voltage, point.current)
        if self._reach.size:
            self._reach = np.maximum(self._reach, np.abs(self._controls([point.solved])[0]))

    def see(self, voltages: np.ndarray | float, currents: np.ndarray | float) -> None:
        """Update the largest voltage, V, and current, A."""
        volts, amperes = (float(np.abs(own).max(initial=0.0)) for own in (voltages, currents))
        if volts > self.volts or amperes > self.amperes:
            self.volts, self.amperes = max(self.volts, volts), max(self.amperes, amperes)
            self.companion.see(self.volts, self.amperes)

    def distances(self, now: Conduction, points: Sequence[OperatingPoint]) -> np.ndarray:
        """Distances of diodes and switches (k, d + s) from a change of these states at points; negative beyond it."""
        found = np.empty((len(points), now.diodes.size + now.switches.size))
        diodes, gaps = found[:, : now.diodes.size], found[:, now.diodes.size :]
        if now.diodes.size:
            v, i = (np.array(own) for own in zip(*map(self.companion.diode_waves, points)))
            forward = v / self.volts + i / self.amperes
            diodes[:] = np.where(now.diodes, forward, -forward) + NOISE
        if now.switches.size:
            controls, at = self._controls(points), np.where(now.switches, self._opening, self._closing)
            gap = np.where(now.switches, controls - at, at - controls)
            gaps[:] = gap / (self._reach + np.abs(at) + 1e-300)
        return found

    def _controls(self, points: Sequence[OperatingPoint]) -> np.ndarray:
        """Control quantities of the switches, V, A, at points (k, s)."""
        potentials = np.array([point.voltages for point in points])
        found = potentials.take(self._plus, axis=1) - potentials.take(self._minus, axis=1)
        if self._flowing.size:
            found[:, self._by_current] = np.array([point.currents for point in points])[:, self._flowing]
        return np.asarray(found)

    def after(self, now: Conduction, distances: np.ndarray) -> Conduction | None:
        """The states after these, of which some are so far from their change (d + s,); None if none is beyond."""
        beyond = distances < 0.0
        if not beyond.any():
            return None
        d = now.diodes.size
        return Conduction(now.diodes ^ beyond[:d], now.switches ^ beyond[d:])


def located(
    attempt: Callable[[float], Step],
    distance: Callable[[Point], float],
    bend: float,
    at: Point,
    step: Step,
    resolution: float,
    noise: float,
) -> tuple[float, float, Step]:
    """The shortest step over an event, to a resolution: inverse interpolation (Brent 1973) of what is known.

    Where three steps in succession do not halve the interval (a distance that jumps, or that begins with rounding), it
    is bisected.

    Parameters
    ----------
    attempt : callable
        The step of a length, s.
    distance : callable
        Of a point from the first event; negative beyond.
    bend : float
        Distance at which its slope may jump.
    at : Point
        The beginning.
    step : Step
        Over an event.
    resolution : float
        s.
    noise : float
        Distance beyond the event that is less than the error of the step.

    Returns
    -------
    length, error : float
        Length of the step, s, and how much too long it is at most.
    Step
    """
    low, high = 0.0, step.length
    known = [(low, max(distance(at), 0.0)), (high, distance(step.end))]
    inner = [(high * share, distance(stage)) for share, stage in zip(NODES[3:5].tolist(), step.stages[2:])]
    slow, width, late = 0, high, math.inf
    for _ in range(HALVINGS):
        if high - low <= resolution or late <= resolution:
            break
        slow = 0 if high - low <= 0.5 * width else slow + 1
        width = high - low if slow == 0 else width
        length = _root(known, inner, bend, low, high) if slow < SLOW else 0.5 * (low + high)
        # Beyond the root, on the side where the interval is longer: both ends come to the root.
        beyond = 0.4 * resolution
        length += beyond if length - low < high - length else -beyond
        length = min(max(length, low + beyond), high - beyond)
        found = attempt(length)
        d = distance(found.end)
        if d < 0.0:
            # The distance over its smallest slope bounds the delay, unless the slope may jump.
            slope = min(abs((d - other) / (length - place)) for place, other in known)
            late = 2.0 * abs(d) / slope if slope > 0.0 and (math.isinf(bend) or -noise <= d) else math.inf
            high, step = length, found
        else:
            low = length
        known.append((length, d))
        if -noise <= d < 0.0:
            break
    return high, min(late, high - low), step


def _root(
    known: list[tuple[float, float]], inner: list[tuple[float, float]], bend: float, low: float, high: float
) -> float:
    """A length of distance 0 between two, from the points up to the bend of the distance or from those beyond it, whose
    nearest two are nearer to it; half-way if neither side tells one."""
    ordered, found = [*sorted(known, key=_size), *sorted(inner, key=_size)], []
    for side in ([p for p in ordered if p[1] < 0.5 * bend], [p for p in ordered if p[1] >= 0.5 * bend]):
        length = _at_zero(side[:MOST]) if len(side) > 1 else low
        if low < length < high:
            found.append((abs((length - side[0][0]) * (length - side[1][0])), length))
    return min(found)[1] if found else 0.5 * (low + high)


def _size(point: tuple[float, float]) -> float:
    return abs(point[1])


def _at_zero(points: list[tuple[float, float]]) -> float:
    """The polynomial of length by distance through points, at distance 0 (Neville's scheme); else infinite."""
    row: list[float] = []
    for k, (length, d) in enumerate(points):
        new = [length]
        for j in range(k):
            other = points[k - 1 - j][1]
            if other == d:
                return math.inf
            new.append((new[j] * other - row[j] * d) / (other - d))
        row = new
    return row[-1]


PARASITICS = 1e-15, 1e-12
"""Capacitances of each controlling node, F: one below that of any pin; and that of a pin, for transitions whose times
double precision does not resolve with the first."""


def controlling(circuit: Circuit, switches: Iterable[Switch]) -> list[int]:
    """Nodes whose voltages control sources or switches, except ground."""
    laws = (pair for law in circuit.laws.values() for control in law.voltages for pair in (control.plus, control.minus))
    pairs = (switch.control for switch in switches if not isinstance(switch.control, str))
    return sorted({*laws, *(circuit.node_index(name) for pair in pairs for name in pair)} - {0})


def with_capacitances(circuit: Circuit, capacitances: Mapping[str, float]) -> Circuit:
    """The circuit with a capacitor from each named node to ground (F), after its own elements.

    Raises
    ------
    UsageError
        A capacitance that is not positive, or at ground.
    """
    made = circuit.with_values({}).carrying(None)
    for node, farads in capacitances.items():
        if not 0.0 < farads < math.inf:
            raise UsageError(f"the capacitance of {node} is {farads:g} F: it must be positive")
        if circuit.node_index(node) == GROUND:
            raise UsageError(f"{node} is ground: it has no capacitance to itself")
        name = f"C({node})"
        while name in made:
            name += "'"
        made.capacitor(name, node, "0", farads)
    return made
