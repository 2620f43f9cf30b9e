"""Newton's method on circuits: smooth devices become companion models in one prepared circuit.

A step solves the circuit of elementary elements with each smooth device replaced by its tangent; ideal diodes and
piecewise-linear devices are exact in every step. The resulting voltage and current of a device are projected onto its
curve along a load line, whose resistance is that of the rest of the circuit, estimated from the elements at the
device's ends. The next tangent touches there. No conductance is added to the result: the minimum conductance of a
tangent acts only on the difference of two steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from circuitsim.analysis.convex import LazyOperatingPoint, SmallCircuitSolver
from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.certificate import RESOLUTION
from circuitsim.circuit import Circuit, CircuitArrays
from circuitsim.circuit.elements import CAPACITOR, CURRENT, DIODE, RESISTOR
from circuitsim.circuit.expansion import Expansion
from circuitsim.circuit.table import read_only
from circuitsim.engine.small.active_set import FEW
from circuitsim.engine.small.single import NO_GUESS
from circuitsim.errors import ConvergenceError, NoOperatingPointError
from circuitsim.kernels import SHORT, TERM, kernel
from circuitsim.models.smooth import SmoothDevice
from circuitsim.newton import steps
from circuitsim.newton.steps import (
    BEYOND,
    CONDUCTANCE,
    DISTANCE,
    INNER,
    KEPT,
    NEAR,
    NO_DEVICE,
    NOTHING,
    OPEN,
    PAIRS,
    RESISTANCE,
    TOUCH,
    mean_resistance,
    numbered_rows,
)
from circuitsim.newton.steps import CURRENT as AMPERES
from circuitsim.newton.steps import VOLTAGE as VOLTS
from circuitsim.program.components import component_labels

STEPS = 400
"""Maximum number of steps of Newton's method."""

DESCENT = 24
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

    def start(self, point: OperatingPoint, elementary: OperatingPoint | None) -> Found:
        """An initial guess from an operating point of the circuit, and that of its elementary elements."""
        return Found.at(elementary, point.drops[self.elements], point.currents[self.elements])

    def start_at(self, elementary: Solved) -> Found:
        """An initial guess from an operating point of the elementary elements."""
        currents = elementary.currents
        return Found.at(elementary, elementary.drops[self.rest], currents[self.slope] + currents[self.rest])

    def linearise(self, at: Found, column: np.ndarray) -> None:
        """Put the tangents at the devices' voltages and currents into the values (m,) of all elements."""
        own, size = at.own.copy(), self.rest.size
        kernel(steps.begin_at, size, TERM)(self.rows, own)
        kernel(steps.put_tangents, size, SHORT)(self.places(column.size)[0], own, column, OPEN)

    def hold(
        self,
        arrays: CircuitArrays,
        potentials: Sequence[np.ndarray],
        drops: np.ndarray,
        currents: np.ndarray,
        at: Found,
    ) -> None:
        """Overwrite a solution, as if each device were a source of its own current at its own voltage, and nothing left
        of its companion model.

        Parameters
        ----------
        arrays : CircuitArrays
        potentials : sequence of (n_nodes,) float arrays
            V, also low-order parts.
        drops, currents : (m,) float arrays
            V, A.
        at : Found
            The devices' voltages and currents.
        """
        for own in potentials:
            own[arrays.second[self.slope]] = own[arrays.first[self.slope]]
        drops[self.slope] = currents[self.slope] = currents[self.touch] = 0.0
        drops[self.touch] = drops[self.rest] = at.voltage
        currents[self.rest] = at.current

    def at_rest(self) -> Found:
        """The initial guess of zero volts."""
        return Found(None, np.zeros((KEPT, self.rest.size)))

    def places(self, elements: int) -> tuple[np.ndarray, np.ndarray]:
        """The positions of the companion models' elements (3, s), and the role of each of so many ``elements`` (m,);
        see `circuitsim.newton.steps.newton_once`."""
        places, role = np.array([self.slope, self.touch, self.rest]), np.full(elements, NO_DEVICE)
        role[places[:2].ravel()] = INNER
        role[self.rest] = np.arange(self.rest.size)
        return places, role


class Found(NamedTuple):
    """Result of the iteration, or an initial guess for it.

    Attributes
    ----------
    point : Solved or None
        The last step's operating point of the elementary elements.
    own : (KEPT, s) float array
        Rows of the devices (`circuitsim.newton.steps`); of an initial guess voltages and currents alone.
    steps : int
    certified : bool
        Whether one kernel has proven the point.
    """

    point: Any
    own: np.ndarray
    steps: int = 0
    certified: bool = False

    @classmethod
    def at(cls, point: Solved | None, voltage: np.ndarray, current: np.ndarray) -> Found:
        """An initial guess with these voltages, V, and currents, A, of the devices (s,)."""
        own = np.zeros((KEPT, voltage.size))
        own[VOLTS], own[AMPERES] = voltage, current
        return cls(point, own)

    @property
    def voltage(self) -> np.ndarray:
        """Voltages of the devices, V (s,)."""
        return self.own[VOLTS]

    @property
    def current(self) -> np.ndarray:
        """Currents of the devices, A (s,)."""
        return self.own[AMPERES]

    @property
    def distance(self) -> np.ndarray:
        """Distances to the curves, relative to voltage and current (s,)."""
        return self.own[DISTANCE]

    @property
    def near(self) -> np.ndarray:
        """The nearest points of the curves, as `project` gives them (5, s)."""
        return self.own[NEAR : NEAR + 5]

    @property
    def gap(self) -> float:
        """Sum of the products of the distances in voltage and current, W."""
        off = np.abs(self.own[[VOLTS, AMPERES]] - self.near[1:3])
        return float(off[0] @ off[1])


def smooth_devices(circuit: Circuit, expansion: Expansion) -> Smooth | None:
    """The smooth devices of a circuit; None if there are none."""
    devices = {k: device for k, device in circuit.devices.items() if isinstance(device, SmoothDevice)}
    if not devices:
        return None
    slope, touch, rest = np.array([expansion.parts[k] for k in devices]).T.copy()
    return Smooth(np.array([*devices]), slope, touch, rest, numbered_rows(devices.values()))


def project(
    smooth: Smooth, voltage: np.ndarray, current: np.ndarray, resistance: np.ndarray, guess: np.ndarray
) -> np.ndarray:
    """Points of the curves along load lines through (voltage, current): junction voltage (V), voltage (V), current (A),
    slope (S) and slope of the junction (S) of each device (5, s); ``guess``: junction voltages, V."""
    points = np.empty((5, guess.size))
    points[0] = guess
    kernel(steps.project, guess.size, TERM)(smooth.rows, voltage, current, resistance, points)
    return points


@np.errstate(over="ignore", invalid="ignore")
def iterate(
    solve: Solve,
    circuit: Circuit,
    smooth: Smooth,
    column: np.ndarray,
    start: Found | None,
    tolerance: float,
    limit: int = STEPS,
    energy: bool = True,
    resistances: Callable[[np.ndarray, Any, np.ndarray], np.ndarray] | None = None,
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
    limit : int
        Maximum number of steps.
    energy : bool
        Whether the circuit minimises an energy that is a sum over its elements.
    resistances : callable, optional
        Driving-point resistances of the rest of the circuit at each device, Ω (s,), from values of all elements, a
        solution and the conductances of the tangents; by default `estimated_resistances`.
    """
    arrays, (places, role) = circuit.arrays(), smooth.places(column.size)
    zero, start = np.zeros(smooth.slope.size), smooth.at_rest() if start is None else start
    point, own, at_node = start.point, start.own.copy(), np.empty((2, arrays.n_nodes))
    touch = own[TOUCH : TOUCH + 5]
    resistances = resistances or partial(estimated_resistances, arrays, smooth)
    best, left, last, found, before, polished = np.inf, np.inf, np.inf, None, None, None
    kernel(steps.begin_at, zero.size, TERM)(smooth.rows, own)
    for step in range(1, limit + 1):
        kernel(steps.put_tangents, zero.size, SHORT)(places, own, column, OPEN)
        conductance = own[CONDUCTANCE].copy()
        try:
            point = _solved(solve, column, smooth, point)
        except ConvergenceError:
            if found is None:
                raise
            break  # the previous steps are more informative than the linearised circuit
        v, i, slope = read_only(point.voltages), point.currents.copy(), smooth.slope
        own[VOLTS] = point.drops[smooth.rest]
        # Currents below rounding are no numbers of the solution, but their drops are.
        i[slope] = np.where(i[slope] == 0.0, point.drops[slope] / column[slope], i[slope])
        kernel(steps.distances, column.size + 20 * zero.size, SHORT)(
            arrays.first,
            arrays.second,
            column,
            places,
            role,
            smooth.rows,
            own,
            v,
            PAIRS if energy else 1.0,
            read_only(i),
            at_node,
        )
        _settle(smooth, own, tolerance * RESOLUTION * np.abs(i).max())
        found = Found(point, own.copy(), start.steps + step)
        worst = float(found.distance.max())
        if worst <= CLOSE or (worst <= 0.5 * tolerance and worst > 0.25 * best):
            if energy:
                if step > MORE or not (column[smooth.slope] * conductance < 0.5).any():
                    break
                touch[:] = found.near
                continue
            nearer, away = own_distance(smooth, found)
            if away < left:
                left, polished = away, (found, column.copy())
            if away <= POLISHED or not away <= 0.5 * last:
                break
            last, touch[:] = away, nearer
            continue
        best = min(best, worst)
        if energy and step > DESCENT:
            part = 1.0 if before is None else least_energy(arrays, smooth, column, before, point.drops, touch[0])
            before = point.drops if before is None else before + part * (point.drops - before)
            there = project(smooth, before[smooth.rest], zero, zero, touch[0])
            if np.abs(there[1:4]).max() < BEYOND:
                touch[:] = there
                continue
            before = None
        own[RESISTANCE] = resistances(column, point, conductance)
        if step > PATIENT:
            own[RESISTANCE] = mean_resistance(own[RESISTANCE], conductance)
        if not kernel(steps.move, zero.size, TERM)(smooth.rows, own):
            break
    assert found is not None
    if polished is not None:
        found, column[:] = polished
    return found


def _settle(smooth: Smooth, own: np.ndarray, least: float) -> None:
    """Set currents below the certificates' resolution ``least``, A, to zero if that lies on the curve at their voltage:
    on flat segments, the nearest point to a noisy current is arbitrary."""
    lost = (own[DISTANCE] > CLOSE) & (np.abs(own[AMPERES]) <= least)
    if not lost.any():
        return
    still = project(smooth, own[VOLTS], np.zeros(lost.size), np.ones(lost.size), own[VOLTS])
    lost &= (still[1] == own[VOLTS]) & (still[2] == 0.0)
    own[NEAR : NEAR + 5, lost] = still[:, lost]
    own[AMPERES, lost] = own[DISTANCE, lost] = 0.0


class SmallNewton:
    """The kernel for one circuit of elementary elements.

    Parameters
    ----------
    small : SmallCircuitSolver
        Of the circuit of elementary elements.
    smooth : Smooth
        The positions of its devices.
    """

    def __init__(self, small: SmallCircuitSolver, smooth: Smooth) -> None:
        self.small, self._places = small, smooth.places(small.value.size)
        self._nodes = small.circuit.arrays().n_nodes

    def solve(self, smooth: Smooth, column: np.ndarray, start: Found | None, few: bool = False) -> Found | None:
        """The certified solution for element values (m,); an initial guess where it fails its certificate, and for few
        nodes, where refined steps give all digits; None where the kernel has neither.

        Parameters
        ----------
        smooth : Smooth
            The devices with the parameters to solve for.
        start : Found, optional
            A nearby solution.
        few : bool
            Whether the kernel also takes circuits of few nodes: within the tolerance, but not to all digits.
        """
        start = smooth.at_rest() if start is None else start
        guess = NO_GUESS if start.point is None else read_only(start.point.currents)
        own, out, memory = start.own.copy(), np.empty(self.small.size), self.small.take()
        out[: column.size] = column
        taken, worst = kernel(steps.newton_once, self._nodes + 20 * smooth.rest.size, TERM)(
            *memory, guess, *self._places, smooth.rows, own, self.small.tolerance, out
        )
        self.small.give(memory)
        if taken == 0:
            return None
        if not worst <= self.small.tolerance:
            return Found(None, own, int(taken))
        out.setflags(write=False)
        point = LazyOperatingPoint(self.small, out, float(worst))
        return Found(point, own, int(taken), few or self._nodes > FEW)


def attempts(
    solve: Solve,
    circuit: Circuit,
    smooth: Smooth,
    small: SmallNewton | None,
    column: np.ndarray,
    start: Found | None,
    tolerance: float,
    few: bool = False,
    energy: bool = True,
) -> Iterator[Found]:
    """Results of Newton's method, for callers that take the first good one: of the kernel ``small``, of refined steps
    from there, and from ``start``.

    Tangents at the end of one iteration give potentials with more digits in the next. The other arguments are those of
    `iterate` and `SmallNewton.solve`.
    """
    starts = [start]
    for begin in (start, None)[start is None :]:
        solved = None if small is None else small.solve(smooth, column, begin, few)
        if solved is not None:
            starts = [solved, start]
            if solved.certified:
                yield solved
                break
    for number, begin in enumerate(starts, 1):
        try:
            for _ in range(2):
                begin = iterate(solve, circuit, smooth, column.copy(), begin, tolerance, energy=energy)
                yield begin
        except ConvergenceError:  # rounding at the start: another one may give more digits
            if number == len(starts):
                raise


def own_distance(smooth: Smooth, found: Found) -> tuple[np.ndarray, float]:
    """The points of the curves nearest to the devices' voltages and currents, relative to each device's own scales, and
    the largest distance: a leakage current next to amperes keeps its digits."""
    own = found.own[[VOLTS, AMPERES]]
    scale = np.abs(own) + NOTHING
    near = project(smooth, own[0], own[1], scale[0] / scale[1], found.near[0])
    return near, float((np.abs(near[1:3] - own) / scale).max())


def least_energy(
    arrays: CircuitArrays, smooth: Smooth, column: np.ndarray, before: np.ndarray, after: np.ndarray, guess: np.ndarray
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
    v, dv, zero = before[smooth.rest], change[smooth.rest], np.zeros(smooth.rest.size)

    def slope(t: float) -> float:
        current = project(smooth, v + t * dv, zero, zero, guess)[2]
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


def estimated_resistances(
    arrays: CircuitArrays, smooth: Smooth, column: np.ndarray, point: Solved, conductance: np.ndarray
) -> np.ndarray:
    """Driving-point resistances, Ω (s,), of the rest of a circuit at its smooth devices, estimated from the elements at
    their ends, for values (m,) of all elements, a solution and the conductances of the tangents.

    With all other nodes joined, the resistance between two nodes is 1/G + 1/G', with the sums G and G' of the
    conductances there: a lower bound (Rayleigh's monotonicity law) unless another element joins the two. Nodes joined
    by sources, shorts and conducting diodes count as one.
    """
    kind, first, second, _, n = arrays
    resistor = kind == RESISTOR
    joins = ~np.isin(kind, (RESISTOR, DIODE, CURRENT, CAPACITOR)) | (resistor & (column == 0.0))
    joins |= (kind == DIODE) & (point.currents > 0.0)
    label, r = component_labels(n, first[joins], second[joins]), np.flatnonzero(resistor & (column > 0.0))
    a, b, g = label[first[r]], label[second[r]], 1.0 / column[r]
    g[a == b] = 0.0
    total = np.bincount(a, g, n) + np.bincount(b, g, n)
    p, q = label[first[smooth.rest]], label[second[smooth.rest]]
    others = [np.maximum(total[node] - conductance, 1e-15 * total[node] + 1e-250) for node in (p, q)]
    return np.where(p == q, 0.0, 1.0 / others[0] + 1.0 / others[1])
