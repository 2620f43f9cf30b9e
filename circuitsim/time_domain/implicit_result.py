"""Runs of the implicit method, and their waveforms at any time: steps of their own, never interpolation.

Steps are taken again from their beginnings, which the run keeps; integrals are sums over their stages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.circuit.elements import CAPACITOR, CURRENT, VOLTAGE
from circuitsim.errors import CircuitError, ConvergenceError, Problem, UsageError
from circuitsim.time_domain.beginning import from_held, holding, operating_point_of
from circuitsim.time_domain.implicit import FLOOR, Implicit
from circuitsim.time_domain.implicit_ledger import ImplicitCertificate
from circuitsim.time_domain.implicit_step import WEIGHTS, Point, Step, euler_step, third_order_step
from circuitsim.time_domain.result import Beginning, Segments, TransientResult

TOGETHER = 2**20
"""Voltages and currents of stages that are looked at together."""
SIMPSON = np.array([1.0, 4.0, 1.0]) / 6.0
"""Weights of the ends and the middle in integrals over a step."""


class Sums(NamedTuple):
    """Waveforms whose weighted sums are integrals.

    Attributes
    ----------
    weights : (n,) float array
        s.
    voltage, current : (n, m) float arrays
        V, A.
    """

    weights: np.ndarray
    voltage: np.ndarray
    current: np.ndarray


class Outline(NamedTuple):
    """Waveforms at the beginnings of steps and in their stages (p, 4, m), V, A."""

    voltage: np.ndarray
    current: np.ndarray


class StepsAgain:
    """The steps of a run.

    Parameters
    ----------
    result : ImplicitResult
    """

    def __init__(self, result: Any) -> None:
        self.result, self.run, self.stretches = result, result.run, list(result.run.stretches)
        if self.stretches[-1].time < result.stop:  # an error ended the run
            self.stretches.append(self.stretches[-1]._replace(time=result.stop, late=0.0))
        self.last = len(self.stretches) - 2
        self._latest: tuple[int, OperatingPoint | None] = 0, None
        self._before: tuple[int, Step] | None = None

    def begins(self, n: int) -> float:
        """Where step ``n`` begins, s."""
        own = self.stretches[n]
        return own.time + 2.0 * own.instant

    def at_event(self, n: int) -> bool:
        """Whether an event ends step ``n``."""
        return self.stretches[n + 1].late > 0.0 and n < self.last

    def near(self, n: int) -> OperatingPoint | None:
        """An operating point that step ``n`` begins with: where there may be several, the one that the run had; where
        that is not kept, by the steps from the last one that is."""
        own, circuit = self.stretches[n], self.run.companion.circuit
        if own.near is not None or not circuit.laws:
            return own.near or self._latest[1]
        k, point = self._latest
        if k > n or point is None:
            k = max((j for j in range(n) if self.stretches[j].near is not None), default=0)
            point = self.stretches[k].near
        while k < n:
            self._latest = k, point
            point = self.whole(k).end.solved
            if first := self.first(k + 1, point):
                point = first[-1][1].end.solved
            k += 1
        self._latest = k, point
        return point

    def up_to(self, n: int, time: float) -> Step:
        """Step ``n`` up to a time, s."""
        own, begin = self.stretches[n], self.begins(n)
        if own.fresh and time <= begin:
            return self.first(n)[-1][1]
        moving, companion, near = self.run.moving(own.conduction.switches), self.run.companion, self.near(n)
        if self.result._beside(n, time):
            short = self.result._short(n, time)
            return self._kept(n, euler_step(companion, moving, own.time + short, own.x, short, near))
        beginning = begin, own.x, own.slope, near
        return self._kept(n, third_order_step(companion, moving, beginning, time - begin, time))

    def whole(self, n: int) -> Step:
        """Step ``n``; before an event, if one ends it."""
        own, after, begin = self.stretches[n], self.stretches[n + 1], self.begins(n)
        end, length = math.nextafter(after.time, 0.0), after.time - begin
        if self.at_event(n) and after.late < length:
            length -= after.late
            end = begin + length
        moving = self.run.moving(own.conduction.switches)
        beginning = begin, own.x, own.slope, self.near(n)
        step = self._kept(n, third_order_step(self.run.companion, moving, beginning, length, end))
        if self.run.companion.circuit.laws and not after.fresh:
            self._latest = n + 1, step.end.solved
        return step

    def first(self, n: int, near: OperatingPoint | None = None) -> list[tuple[Step, Step, np.ndarray]]:
        """The short steps at the beginning of step ``n``, where something changes, and the switches there; ``near``: an
        operating point before them, else the one after them."""
        own, found, companion = self.stretches[n], [], self.run.companion
        for x, switches in own.jumps:
            moving, instant, start = self.run.moving(switches), own.instant, near or self.near(n)
            jump = euler_step(companion, moving, own.time + instant, x, instant, start)
            step = euler_step(companion, moving, own.time + 2.0 * instant, jump.end.x, instant, jump.end.solved)
            found.append((jump, step, switches))
        return found

    def _kept(self, n: int, step: Step) -> Step:
        """A step, of which the next one finds a stage nearby."""
        if self.run.companion.follows and not self.run.companion.circuit.laws:
            self._latest = n, step.stages[0].solved
        return step

    # ------------------------------------------------------------------ stages
    def sums(self, begin: float, end: float, linear: bool) -> Iterator[Sums]:
        """Waveforms whose weighted sums are their integrals between two times, s, and where not ``linear`` those of
        their products too; some steps at a time."""
        starts = np.array([own.time for own in self.stretches])
        for some in self._between(starts, begin, end):
            parts = list[Sums]()
            for n in some:
                parts.append(self._sum(n, end if end < starts[n + 1] else None, linear))
                if begin > starts[n]:
                    before = self._sum(n, begin, linear)
                    parts.append(before._replace(weights=-before.weights))
            yield Sums(*(np.concatenate(columns) for columns in zip(*parts)))

    def _sum(self, n: int, time: float | None, linear: bool) -> Sums:
        """Step ``n`` up to a time, else all of it: the sum over its stages, else Simpson's rule."""
        own, points = self.stretches[n], self._points(n)
        last = self.stretches[n + 1].time if time is None else time
        if time is not None:
            stages = _waves(*self.up_to(n, time).stages)
            points = np.concatenate([points[:1], stages if len(stages) > 1 else np.repeat(stages, 3, axis=0)])
        weights = WEIGHTS * (last - self.begins(n))
        if not linear:
            middle = _waves(self.up_to(n, 0.5 * (own.time + last)).end)
            points, weights = np.concatenate([points[:1], middle, points[-1:]]), SIMPSON * (last - own.time)
        elif last > self.begins(n):
            weights[0] += 2.0 * own.instant
        else:
            weights = np.eye(WEIGHTS.size)[-1] * (last - own.time)
        return Sums(weights, *np.moveaxis(points, 1, 0))

    def outline(self, begin: float, end: float) -> Iterator[Outline]:
        """Waveforms in the stages between two times, s, some steps at a time."""
        starts = np.array([own.time for own in self.stretches])
        for some in self._between(starts, begin, end):
            yield Outline(*np.moveaxis(np.array([self._points(n) for n in some]), 2, 0))

    def _between(self, starts: np.ndarray, begin: float, end: float) -> Iterator[range]:
        """The steps between two times, some at a time."""
        first = min(max(int(np.searchsorted(starts, begin, side="right")) - 1, 0), self.last)
        until = min(int(np.searchsorted(starts, end)), self.last + 1)
        many = TOGETHER // (8 * len(self.run.circuit)) + 1
        yield from (range(n, min(n + many, until)) for n in range(first, until, many))

    def _points(self, n: int) -> np.ndarray:
        """Voltages and currents (4, 2, m) at the beginning and in the stages of step ``n``."""
        if n < len(self.run.stages):
            return self.run.stages[n]
        first = self.first(n)
        before = None if first or self._before is None or self._before[0] != n - 1 else self._before[1]
        begin = first[-1][1] if first else before or self.whole(n - 1)
        step = self.whole(n)
        self._before = n, step
        return _waves(begin.end, *step.stages)


def _waves(*points: Point) -> np.ndarray:
    """Voltages and currents (n, 2, m) of points, V, A."""
    return np.array([(point.voltage, point.current) for point in points])


BALANCE = 10.0
"""Largest imbalance of energies, of the accuracy."""
TRIES, FINER = 3, 4.0
"""Runs until the energy balance is held, each with an accuracy so many times finer."""
TENTH, NODES, STEPS = 0.1, 50, 100_000
"""Accuracy of the run that a run is compared with; largest circuits, and most steps, that are."""
KEPT = 2
"""Sets of times whose waveforms are kept: several measurements ask for the same."""
BESIDE, SHORT = 1e-6, 1e-9
"""Share of a step up to which the circuit is taken to be at its beginning, and the least step there."""


class ImplicitOrigin(NamedTuple):
    """Where a run begins.

    Attributes
    ----------
    begins : Beginning
    point : OperatingPoint or None
        At time 0; None where values are stated.
    closed : (s,) bool array
        Switches.
    held : dict of str to float
        What the operating point was held at.
    level : (m,) float array
        Voltages of capacitors and currents of inductors, V, A.
    """

    begins: Beginning
    point: OperatingPoint | None
    closed: np.ndarray
    held: dict[str, float]
    level: np.ndarray


def implicit_run(
    make: Callable[[float], Implicit],
    accuracy: float,
    times: np.ndarray,
    initial: Mapping[str, float] | None,
    held: Mapping[str, float],
    tolerance: float,
    progress: Callable[[float, float], bool | None] | None,
) -> ImplicitResult:
    """A run through output times (n,), s, made for an accuracy; where the energy balance is off by more than belongs to
    that, it is made again with finer steps.

    Raises
    ------
    UsageError
        Unknown elements with initial values.
    ConvergenceError
        Events without end, steps that become too short, a certificate that fails.
    """
    for k in range(TRIES):
        run = make(accuracy / FINER**k)
        result = _run(run, times, initial, held, tolerance, BALANCE * accuracy, progress)
        if result is not None:
            result._finer = partial(implicit_run, make, TENTH * accuracy, times, initial, held, tolerance)
            result.asked = accuracy
            return result
        found = run.ledger.certificate(tolerance, BALANCE * accuracy)
        if not found.lawful or run.reached is None or run.reached.time < times[-1]:
            break
    raise ConvergenceError(f"{found.violations}; ask for more accuracy")


def _run(
    run: Implicit,
    times: np.ndarray,
    initial: Mapping[str, float] | None,
    held: Mapping[str, float],
    tolerance: float,
    balance: float,
    progress: Callable[[float, float], bool | None] | None,
) -> ImplicitResult | None:
    """A run; None if it is not certified, its energy balance to ``balance``."""
    x, closed, origin = beginning(run, initial, held)
    waves = np.zeros((2, times.size, len(run.circuit)))

    def keep(k: int, point: Point) -> None:
        waves[:, k] = point.voltage, point.current
        run.ledger.hold(point)

    try:
        stop = run.run(x, closed, times, keep, progress)
    except CircuitError as error:
        reached, count = run.reached, 0
        if reached is not None and (count := int(np.searchsorted(times, reached.time))) > 0:
            keep(count, reached)
            cut = np.append(times[:count], reached.time)
            error.partial_result = _certified(run, cut, waves[:, : count + 1], origin, tolerance, balance)
        raise
    if stop < times[-1]:
        count = int(np.searchsorted(times, stop, side="right"))
        if count < 2:
            raise UsageError(f"the run was ended at {stop:g} s, before its second output time")
        times, waves = times[:count], waves[:, :count]
    return _certified(run, times, waves, origin, tolerance, balance)


def _certified(
    run: Implicit, times: np.ndarray, waves: np.ndarray, origin: ImplicitOrigin, tolerance: float, balance: float
) -> ImplicitResult | None:
    """The result of a run with voltages and currents (2, n, m) at output times (n,), s; None if it is not certified."""
    found = run.ledger.certificate(tolerance, balance)
    return ImplicitResult(run, times, (waves[0], waves[1]), found, origin) if found.certified else None


def beginning(
    run: Implicit, initial: Mapping[str, float] | None, held: Mapping[str, float]
) -> tuple[np.ndarray, np.ndarray, ImplicitOrigin]:
    """States (q,) and switches (s,) at time 0, and where they come from."""
    circuit, stores = run.circuit, run.companion.elements
    kind, own = circuit.arrays().kind, circuit.arrays().value
    closed = np.array([switch.closed for switch in run.switching.switches], dtype=bool)
    level, point = np.zeros(kind.size), None
    if initial is None:
        values = {
            circuit.names[k]: run.waves[k].value(0.0) if k in run.waves else float(own[k])
            for k in np.flatnonzero(np.isin(kind, (VOLTAGE, CURRENT))).tolist()
        }
        point, closed = operating_point_of(holding(circuit, held), values, run.switching, closed)
        level = np.where(kind == CAPACITOR, point.drops[: kind.size], point.currents[: kind.size])
    for name, stated in ({} if initial is None else from_held(circuit, held) | dict(initial)).items():
        k = circuit.element_index(name)
        if not stores[k]:
            raise UsageError(f"{circuit.names[k]} is neither a capacitor nor an inductor: it has no initial value")
        level[k] = stated
    begins = Beginning.STATED if point is None else Beginning.HELD if held else Beginning.OPERATING_POINT
    return run.companion.states(level), closed, ImplicitOrigin(begins, point, closed, dict(held), level)


class ImplicitResult(TransientResult):
    """Waveforms of the implicit method; see `TransientResult`.

    Attributes
    ----------
    accuracy : float
        Largest local error of a step, of the largest values of the state.
    asked : float
        The accuracy that was asked for; that of the run is finer where its energy balance asked for that.
    steps : int
        Steps that the run took.
    difference : float or None
        See `compared`.
    warnings : tuple of Problem
        One of the kind ``accuracy`` where the difference is larger than the accuracy.
    run : Implicit
    begun : ImplicitOrigin
    """

    method = "implicit"
    points = 4
    certificate: ImplicitCertificate  # type: ignore[assignment]
    _finer: Callable[[Callable[[float, float], bool | None] | None], ImplicitResult] | None = None
    asked: float

    def __init__(
        self,
        run: Implicit,
        times: np.ndarray,
        waves: tuple[np.ndarray, np.ndarray],
        certificate: ImplicitCertificate,
        begun: ImplicitOrigin,
    ) -> None:
        self.circuit, self.times, self.stop = run.circuit, times, float(times[-1])
        self.events, self.energies, self.certificate = tuple(run.events), run.ledger.energies(), certificate
        self.accuracy, self.steps = run.accuracy, len(run.stretches)
        self.run, self.begun, self._resolution, self._waves = run, begun, BALANCE * run.accuracy, waves
        self._kept: dict[bytes, tuple[np.ndarray, np.ndarray]] = {}
        self._starts = np.array([stretch.time for stretch in run.stretches])

    @cached_property
    def again(self) -> StepsAgain:
        """The steps, taken again."""
        return StepsAgain(self)

    def compared(self, progress: Callable[[float, float], bool | None] | None = None) -> float | None:
        """The largest distance of a capacitor's voltage or an inductor's current from those of a run at a tenth of the
        accuracy, of the largest of each: at the output times, and of the largest and smallest values. The second run is
        made when it is first asked for; it takes about 2.2 times as many steps.

        Parameters
        ----------
        progress : callable, optional
            See `circuitsim.time_domain.transient`.

        Returns
        -------
        float or None
            None without capacitors and inductors, beyond 50 nodes or 100,000 steps, and where the second run ends by an
            error.
        """
        own, finer, states = self.run.companion, self._finer, self.run.companion.storing
        if finer is None or not states.size or len(self.circuit.node_names) > NODES or self.steps > STEPS:
            return None
        try:
            other = finer(progress)
        except CircuitError:
            return None
        many = int(np.searchsorted(self.times, other.times[-1], side="right"))
        capacitor = own.capacitor if own.windings is None else self.circuit.arrays().kind[states] == CAPACITOR
        here, there = (
            np.where(capacitor, run.at(run.times)[0][:many, states], run.at(run.times)[1][:many, states])
            for run in (self, other)
        )
        off, size = np.abs(here - there).max(axis=0), np.abs(there).max(axis=0)
        if own.windings is None and many == self.times.size:
            ours, theirs = (np.array([start.x for start in run.run.stretches]) for run in (self, other))
            size = np.maximum(size, np.abs(theirs).max(axis=0))
            for edge in (np.min, np.max):
                off = np.maximum(off, np.abs(edge(ours, axis=0) - edge(theirs, axis=0)))
        return float((off / np.maximum(size, FLOOR * own.size)).max())

    def checks(self) -> dict[str, Any]:
        """See `TransientResult`; the accuracy and the steps of the run."""
        return super().checks() | {"accuracy": self.accuracy, "steps": self.steps}

    @cached_property
    def difference(self) -> float | None:  # type: ignore[override]
        """See `compared`."""
        return self.compared()

    @cached_property
    def warnings(self) -> tuple[Problem, ...]:  # type: ignore[override]
        """See `ImplicitResult`."""
        found = self.difference
        if found is None or found <= self.asked:
            return ()
        better = 10.0 ** math.floor(math.log10(max(self.asked**2 / found, 1e-12)))
        what = f"the waveforms are off by {found:.1e} of their largest values, by a run at a tenth of the accuracy"
        hint = f"ask for more accuracy, for instance {better:g}"
        return (Problem("accuracy", f"{what} of {self.asked:g}", hint=hint),)

    def at(self, times: Sequence[float] | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Branch voltages (n, m), V, and currents (n, m), A, at any times of the run: each ends a step from the one
        before it, so the laws hold there too.

        Raises
        ------
        UsageError
            A time outside the run.
        """
        if times is self.times:
            return self._waves
        times = self._checked(times)
        key = times.tobytes()
        waves = self._kept.pop(key, None) or self._evaluated(times)
        if len(self._kept) == KEPT:
            self._kept.pop(next(iter(self._kept)))
        self._kept[key] = waves
        return waves

    def _evaluated(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """`at` for times (n,) within the run."""
        voltage, current = np.zeros((2, times.size, len(self.circuit)))
        for k in np.argsort(times, kind="stable").tolist():
            time = float(times[k])
            point = self.again.up_to(self._stretch_at(time), time).end
            voltage[k], current[k] = point.voltage, point.current
        voltage.setflags(write=False)
        current.setflags(write=False)
        return voltage, current

    def _stretch_at(self, time: float) -> int:
        """The step that a time, s, is in; between two of which nothing changes the first."""
        place = max(int(np.searchsorted(self._starts, time, side="right")) - 1, 0)
        start = self.run.stretches[place]
        return place - 1 if time == start.time and not start.fresh and place > 0 else place

    def _beside(self, place: int, time: float) -> bool:
        """Whether a time is so near the beginning of a step that the circuit is taken to be there.

        Parameters
        ----------
        place : int
            The step, as `_stretch_at` gives it.
        time : float
            s.
        """
        start, instant = float(self._starts[place]), 2.0 * self.run.stretches[place].instant
        return time - start <= max(BESIDE * (self._ends(place) - start), instant)

    def _short(self, place: int, time: float) -> float:
        """The length of the step there, s.

        Parameters
        ----------
        place : int
            The step, as `_stretch_at` gives it.
        time : float
            s.
        """
        start = float(self._starts[place])
        return max(time - start, SHORT * (self._ends(place) - start))

    def _moves_at(self, time: float) -> bool:
        """Whether an event that moves with the circuit's numbers is at a time, s."""
        return any(own.time == time and own.late > 0.0 for own in self.run.stretches)

    def _ends(self, place: int) -> float:
        return float(self._starts[place + 1]) if place + 1 < self._starts.size else self.stop

    @property
    def segments(self) -> Segments:
        """None: the run has no matrix exponentials.

        Raises
        ------
        UsageError
        """
        raise UsageError("only runs of the exact method have segments; ask for method='exact'")

    @property
    def origin(self) -> None:  # type: ignore[override]
        """None; see `segments`."""
        return self.segments  # type: ignore[return-value]

    def segment_starts(self) -> np.ndarray:
        """Times between which all waveforms are smooth (n,), s; 0 is the first."""
        return self._starts[:-1] if self._starts[-1] >= self.stop else self._starts

    def conduction(self) -> list[tuple[str, list[tuple[float, float]]]]:
        """For each diode and switch its name and the spans of time, s, in which it conducts."""
        changes = [stretch for stretch in self.run.stretches if stretch.fresh]
        names = [*self.run.companion.diode_names, *self.run.switching.names]
        sets = np.array([np.concatenate(stretch.conduction) for stretch in changes], dtype=np.int8)
        step = np.diff(sets.reshape(len(changes), len(names)), axis=0, prepend=0, append=0)
        ends = np.append([stretch.time for stretch in changes], self.stop)
        return [
            (name, list(zip(ends[step[:, k] > 0].tolist(), ends[step[:, k] < 0].tolist())))
            for k, name in enumerate(names)
        ]
