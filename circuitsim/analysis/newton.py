"""Newton's method on circuits: smooth devices become companion models in one prepared circuit.

A step solves the circuit of elementary elements with each smooth device replaced by its tangent; ideal diodes and
piecewise-linear devices are exact in every step. The resulting voltage and current of a device are projected onto its
curve along a load line, whose resistance is the driving-point resistance of the rest of the circuit, bounded from below
by the elements at the device's ends. The next tangent touches there. No conductance is added to the result: the minimum
conductance of a tangent acts only on the difference of two steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from circuitsim.certificate import RESOLUTION, largest_at_nodes
from circuitsim.circuit import Circuit, CircuitArrays
from circuitsim.circuit.elements import CAPACITOR, CURRENT, DIODE, RESISTOR
from circuitsim.circuit.expansion import Expansion
from circuitsim.errors import ConvergenceError, NoOperatingPointError
from circuitsim.kernels import TERM, kernel
from circuitsim.models.smooth import SmoothDevice
from circuitsim.newton import steps
from circuitsim.newton.steps import charging, mean_resistance, numbered_rows
from circuitsim.program.components import component_labels

if TYPE_CHECKING:
    from circuitsim.analysis.operating_point import OperatingPoint

STEPS = 400
"""Maximum number of steps of Newton's method."""

CIRCLING = 24
"""Number of steps after which only half a step is taken, and after twice as many a quarter, because load lines
cycled."""

LEAD = 0.5
"""Distance from the curves below which full steps are taken all the same."""

DESCENT = 96
"""Number of steps after which each step ends at the minimum of the energy, if there is one: slower, but convergent."""

HUGE = 1e150
"""Currents above this, A, are truncated in the slope of the energy."""

PARTS = 40
"""Maximum number of evaluations of a line search."""

PATIENT = 10
"""Number of steps along the circuit's load lines; later ones alternate with load lines closer to the tangents' own."""

POLISHED = 1e-11
"""Distance from the curves, relative to each device's own voltage and current, above which points are refined where
nothing else, such as an energy, distinguishes two: a hundredth of the tolerance of certificates."""

MORE = 6
"""Number of steps up to which currents through tangents limited by `FALLBACKS` are no error: later steps may not need
them."""

CLOSE = 2e-15
"""Relative distance from the curves at which the iteration ends."""

ROUNDING = 1e-4
"""Weight of potentials and currents at a device's ends in the scales of its own voltage and current: at a tolerance of
1e-9 their rounding may be a thousand times that of doubles."""

LEAST_SLOPE = 1e-14
"""Minimum conductance of a tangent, relative to current / voltage."""

BEYOND = 1e200
"""Currents and slopes of tangents above this bound lead out of the range of doubles."""

NOTHING = 1e-90
"""Currents and voltages below this, A and V, count as zero: `OPEN` causes values of this size."""

OPEN = 1e-100
"""Minimum conductance of any tangent, S."""


FALLBACKS = (1e25, 1e19, 1e14)
"""Largest resistances of tangents, Ω, tried in steps that cannot be solved otherwise."""


class Solved(Protocol):
    """An operating point of the elementary elements: potentials (n_nodes,), V, currents (m,), A, drops (m,), V."""

    @property
    def voltages(self) -> np.ndarray: ...
    @property
    def currents(self) -> np.ndarray: ...
    @property
    def drops(self) -> np.ndarray: ...


Solve = Callable[[np.ndarray, Any], Any]
"""Maps values of all elements and the previous operating point to an operating point (`Solved`)."""


PortResistance = Callable[[np.ndarray, Any, np.ndarray], np.ndarray]
"""Maps values of all elements, a solution and the conductances of the tangents to the driving-point resistance of the
rest of the circuit at each device, Ω (s,)."""


class NewtonOptions(NamedTuple):
    """Settings of the iteration: resistances of load lines, maximum number of steps, whether the circuit minimises an
    energy that is a sum over its elements, and minimum conductance of any tangent, S."""

    port_resistance: PortResistance
    steps: int = STEPS
    energy: bool = False
    least: float = OPEN


class Smooth(NamedTuple):
    """The smooth devices of a circuit.

    Attributes
    ----------
    elements : (s,) int array
        Their positions in the circuit.
    slope, touch, rest : (s,) int arrays
        Positions of conductance, voltage source and current source of the companion models in the elementary circuit.
    rows : (s, w) float array
        Their parameters (`circuitsim.newton.steps.numbered_rows`).
    """

    elements: np.ndarray
    slope: np.ndarray
    touch: np.ndarray
    rest: np.ndarray
    rows: np.ndarray

    def start(self, point: OperatingPoint, elementary: OperatingPoint) -> Start:
        """An initial guess from an operating point of the circuit, and that of its elementary elements."""
        return Start(elementary, point.drops[self.elements], point.currents[self.elements])


class State(NamedTuple):
    """Points on the curves, one column per device: voltage (V), current (A), slope (S), slope of the junction (S); and
    the junction voltages, V."""

    points: np.ndarray
    junctions: np.ndarray


class Found(NamedTuple):
    """Result of the iteration.

    Attributes
    ----------
    point : Solved
        The last step's operating point.
    voltage, current : (s,) float arrays
        Of the devices, V, A.
    state : State
        The nearest points of the curves.
    distance : (s,) float array
        Distance to these, relative to voltage and current.
    steps : int
    """

    point: Any
    voltage: np.ndarray
    current: np.ndarray
    state: State
    distance: np.ndarray
    steps: int


def smooth_devices(circuit: Circuit, expansion: Expansion) -> Smooth | None:
    """The smooth devices of a circuit; None if there are none."""
    devices = {k: device for k, device in circuit.devices.items() if isinstance(device, SmoothDevice)}
    if not devices:
        return None
    slope, touch, rest = np.array([expansion.parts[k] for k in devices]).T.copy()
    return Smooth(np.array([*devices]), slope, touch, rest, numbered_rows(devices.values()))


def project(
    smooth: Smooth, voltage: np.ndarray, current: np.ndarray, resistance: np.ndarray, guess: np.ndarray
) -> State:
    """Project (voltage, current) of each device along its load line onto its curve; ``guess``: junction voltages, V."""
    state = State(np.empty((4, guess.size)), guess.copy())
    find = kernel(steps.project, guess.size, TERM)
    find(smooth.rows, voltage, current, resistance, state.junctions, state.points)
    return state


@np.errstate(over="ignore", invalid="ignore")
def iterate(
    solve: Solve,
    circuit: Circuit,
    smooth: Smooth,
    column: np.ndarray,
    start: Start | None,
    tolerance: float,
    options: NewtonOptions | None = None,
) -> Found:
    """Newton's method from zero volts or an initial guess, until all devices are on their curves or the steps are used
    up.

    Parameters
    ----------
    solve : callable
        Solves the circuit of elementary elements for their values, starting from the previous operating point.
    circuit : Circuit
        Of elementary elements.
    column : (m,) float array
        Their values; those of the companion models are overwritten.
    options : NewtonOptions, optional
        By default load lines of `Ports` and `STEPS` steps.
    """
    arrays = circuit.arrays()
    zero = np.zeros(smooth.slope.size)
    state = project(smooth, zero, zero, zero, zero) if start is None else start.state(smooth)
    point = None if start is None else start.point
    options = NewtonOptions(Ports(circuit, smooth).resistances, STEPS, True) if options is None else options
    best, left, last, found, before, polished = np.inf, np.inf, np.inf, None, None, None
    earlier = 0 if start is None else start.steps
    for step in range(1, options.steps + 1):
        conductance = tangents(state, column, smooth, options.least)
        try:
            point = _solved(solve, column, smooth, point)
        except ConvergenceError:
            if found is None:
                raise
            break  # the previous steps are more informative than the linearised circuit
        voltage = _voltages(arrays, point, smooth, column, tolerance)
        current = column[smooth.rest] + point.currents[smooth.slope]
        scales = _scales(arrays, point, smooth, voltage, current)
        near = project(smooth, voltage, current, scales[0] / scales[1], state.junctions)
        distance = np.maximum(
            np.abs(near.points[0] - voltage) / scales[0], np.abs(near.points[1] - current) / scales[1]
        )
        _settle(smooth, voltage, current, near, distance, tolerance * RESOLUTION * np.abs(point.currents).max())
        found = Found(point, voltage, current, near, distance, earlier + step)
        worst = float(distance.max())
        if worst <= CLOSE or (worst <= 0.5 * tolerance and worst > 0.25 * best):
            if options.energy:
                limited = (column[smooth.slope] * conductance < 0.5).any()
                if step > MORE or not limited:
                    break
                state = near
                continue
            nearer, own = own_distance(smooth, voltage, current, near)
            if own < left:
                left, polished = own, (found, column.copy())
            if own <= POLISHED or not own <= 0.5 * last:
                break
            last, state = own, nearer
            continue
        best = min(best, worst)
        if options.energy and step > DESCENT:
            part = 1.0 if before is None else least_energy(arrays, smooth, column, before, point.drops, state)
            before = point.drops if before is None else before + part * (point.drops - before)
            there = project(smooth, _across(before, smooth), zero, zero, state.junctions)
            if np.abs(there.points[:3]).max() < BEYOND:
                state = there
                continue
            before = None
        resistance = options.port_resistance(column, point, conductance)
        if step > PATIENT:
            resistance = mean_resistance(resistance, conductance)
        share = 1.0 if step <= CIRCLING or worst < LEAD else 0.5 if step <= 2 * CIRCLING else 0.25
        v, i = (old + share * (new - old) for old, new in zip(state.points, (voltage, current)))
        moved = project(smooth, v, i, resistance, state.junctions)
        state = _bounded(smooth, moved, voltage, current, state)
        if not np.abs(state.points[:3]).max() < BEYOND:
            break
    assert found is not None
    if polished is not None:
        found, column[:] = polished
    return found


def _voltages(arrays: CircuitArrays, point: Solved, smooth: Smooth, column: np.ndarray, tolerance: float) -> np.ndarray:
    """Voltages of the devices (s,), V, from their tangents, whose drops have more digits than potentials; except that a
    drop R i of 1e100 Ω is rounding where i is lost among larger currents."""
    voltage = column[smooth.touch] + point.drops[smooth.slope]
    a, b = (point.voltages[ends[smooth.rest]] for ends in (arrays.first, arrays.second))
    lost = column[smooth.slope] > FALLBACKS[0]
    lost &= np.abs(a - b - voltage) > tolerance * np.maximum(np.abs(a), np.abs(b))
    return np.where(lost, a - b, voltage)


def _settle(
    smooth: Smooth, voltage: np.ndarray, current: np.ndarray, near: State, distance: np.ndarray, least: float
) -> None:
    """Set currents below the certificates' resolution ``least``, A, to zero if that lies on the curve at their voltage:
    on flat segments, the nearest point to a noisy current is arbitrary."""
    lost = (distance > CLOSE) & (np.abs(current) <= least)
    if not lost.any():
        return
    still = project(smooth, voltage, np.zeros(current.size), np.ones(current.size), voltage)
    lost &= (still.points[0] == voltage) & (still.points[1] == 0.0)
    near.points[:, lost], near.junctions[lost] = still.points[:, lost], still.junctions[lost]
    current[lost], distance[lost] = 0.0, 0.0


def own_distance(smooth: Smooth, voltage: np.ndarray, current: np.ndarray, guess: State) -> tuple[State, float]:
    """The points of the curves nearest to the devices' voltages and currents, relative to each device's own scales, and
    the largest distance: a leakage current next to amperes keeps its digits."""
    scale = np.abs(voltage) + NOTHING, np.abs(current) + NOTHING
    near = project(smooth, voltage, current, scale[0] / scale[1], guess.junctions)
    away = (np.abs(near.points[k] - x) / scale[k] for k, x in enumerate((voltage, current)))
    return near, float(np.maximum(*away).max())


def _across(drops: np.ndarray, smooth: Smooth) -> np.ndarray:
    """Voltages of the devices, V, from the drops of all elements."""
    return drops[smooth.rest]


def least_energy(
    arrays: CircuitArrays, smooth: Smooth, column: np.ndarray, before: np.ndarray, after: np.ndarray, state: State
) -> float:
    """The fraction of a step that minimises the energy.

    Along the step all drops are affine in the fraction t, and ideal diodes and voltage sources satisfy their equations;
    the slope of the energy, Σ i(v) dv/dt over resistors, current sources and devices, increases with t.
    """
    kind, change = arrays.kind, after - before
    own = np.zeros(kind.size, dtype=bool)
    own[smooth.slope] = own[smooth.touch] = own[smooth.rest] = True
    ohmic = (kind == RESISTOR) & ~own & (column > 0.0)
    given = (kind == CURRENT) & ~own
    curved = float((change[ohmic] ** 2 / column[ohmic]).sum())
    at_start = float((before[ohmic] * change[ohmic] / column[ohmic]).sum() + column[given] @ change[given])
    v, dv, zero = _across(before, smooth), _across(change, smooth), np.zeros(smooth.rest.size)

    def slope(t: float) -> float:
        current = project(smooth, v + t * dv, zero, zero, state.junctions).points[1]
        return at_start + t * curved + float(np.clip(current, -HUGE, HUGE) @ dv)

    low, high = 0.0, 1.0
    at_low, at_high = slope(low), slope(high)
    if at_high <= 0.0 or not at_low < 0.0:
        return 1.0
    for turn in range(PARTS):
        t = 0.5 * (low + high)
        if turn % 3 and at_low > -HUGE and at_high < HUGE:
            t = low + (high - low) * min(max(at_low / (at_low - at_high), 0.01), 0.99)
        here = slope(t)
        if here <= 0.0:
            low, at_low = t, here
        else:
            high, at_high = t, here
        if low > 0.0 and high - low <= 0.05 * low:
            break
    return low if low > 0.0 else high


def _solved(solve: Solve, column: np.ndarray, smooth: Smooth, before: Any) -> Any:
    """The operating point of a step; where its conductances span too wide a range, with a larger minimum
    conductance."""
    while True:
        try:
            return solve(column, before)
        except (ConvergenceError, NoOperatingPointError):
            smaller = [largest for largest in FALLBACKS if (column[smooth.slope] > largest).any()]
            if not smaller:
                raise
        column[smooth.slope] = np.minimum(column[smooth.slope], smaller[0])


class Start(NamedTuple):
    """An operating point of the elementary elements, if known, with voltage (V) and current (A) of each smooth device;
    the number of steps it took, if counted."""

    point: Any
    voltage: np.ndarray
    current: np.ndarray
    steps: int = 0

    def state(self, smooth: Smooth) -> State:
        """The nearby points of the curves."""
        size = np.abs(self.current) + NOTHING
        guess = np.zeros(self.voltage.size)
        return project(smooth, self.voltage, self.current, np.abs(self.voltage) / size, guess)


def tangents(state: State, column: np.ndarray, smooth: Smooth, least: float = OPEN) -> np.ndarray:
    """Put the companion models at the points of the curves into the column of values; returns their conductances, S."""
    v, i, g, _ = state.points
    g = np.maximum(g, np.maximum(LEAST_SLOPE * np.abs(i) / np.maximum(np.abs(v), 1e-3), least))
    column[smooth.slope], column[smooth.touch], column[smooth.rest] = 1.0 / g, v, i
    return g


def _scales(
    arrays: CircuitArrays, point: Solved, smooth: Smooth, voltage: np.ndarray, current: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The scales of voltage and current of each device: its own plus a fraction of the largest voltage at its ends, and
    of the largest current at the end with the smaller one."""
    size = np.abs(point.currents)
    size[smooth.slope], size[smooth.touch], size[smooth.rest] = 0.0, 0.0, np.abs(current)
    largest = largest_at_nodes(arrays, size)
    a, b = arrays.first[smooth.rest], arrays.second[smooth.rest]
    reach = np.maximum(np.abs(point.voltages[a]), np.abs(point.voltages[b]))
    local = np.minimum(largest[a], largest[b])  # Kirchhoff's current law holds at both ends
    local = np.maximum(local, [charging(row) for row in smooth.rows])
    return np.abs(voltage) + ROUNDING * reach + NOTHING, np.abs(current) + ROUNDING * local + NOTHING


def _bounded(smooth: Smooth, moved: State, voltage: np.ndarray, current: np.ndarray, before: State) -> State:
    """The points; for junctions across fixed voltages beyond the range of doubles, those on a short load line."""
    with np.errstate(invalid="ignore"):
        far = ~((np.abs(moved.points[1]) < BEYOND) & (moved.points[2] < BEYOND))
    if not far.any():
        return moved
    short = np.where(far, 1e-15, 0.0)
    nearer = project(smooth, voltage, current, short, before.junctions)
    return State(np.where(far, nearer.points, moved.points), np.where(far, nearer.junctions, moved.junctions))


class Ports:
    """Driving-point resistances of the rest of a circuit at its smooth devices, estimated from the elements at their
    ends.

    With all other nodes joined, the resistance between two nodes is 1/G + 1/G', with the sums G and G' of the
    conductances there: a lower bound (Rayleigh's monotonicity law) unless another element joins the two. Nodes joined
    by sources, shorts and conducting diodes count as one.
    """

    def __init__(self, circuit: Circuit, smooth: Smooth) -> None:
        self._kind, self._first, self._second, _, self._count = circuit.arrays()
        self._ends = self._first[smooth.rest], self._second[smooth.rest]
        self._diodes = np.flatnonzero(self._kind == DIODE)
        self._resistors = np.flatnonzero(self._kind == RESISTOR)
        self._joined: tuple[bytes, np.ndarray] | None = None

    def resistances(self, column: np.ndarray, point: Solved, conductance: np.ndarray) -> np.ndarray:
        """In Ω, for values of all elements, a solution and the conductances of the tangents."""
        ohms = column[self._resistors]
        label = self._labels(ohms, point.currents[self._diodes] > 0.0)
        r = self._resistors[ohms > 0.0]
        a, b, g = label[self._first[r]], label[self._second[r]], 1.0 / ohms[ohms > 0.0]
        g[a == b] = 0.0
        total = np.bincount(a, g, self._count) + np.bincount(b, g, self._count)
        p, q = label[self._ends[0]], label[self._ends[1]]
        others = [np.maximum(total[node] - conductance, 1e-15 * total[node] + 1e-250) for node in (p, q)]
        return np.where(p == q, 0.0, 1.0 / others[0] + 1.0 / others[1])

    def _labels(self, ohms: np.ndarray, conducting: np.ndarray) -> np.ndarray:
        """The number of the merged node of each node."""
        joins = ~np.isin(self._kind, (RESISTOR, DIODE, CURRENT, CAPACITOR))
        joins[self._resistors[ohms == 0.0]] = True
        joins[self._diodes[conducting]] = True
        key = joins.tobytes()
        if self._joined is None or self._joined[0] != key:
            self._joined = key, component_labels(self._count, self._first[joins], self._second[joins])
        return self._joined[1]
