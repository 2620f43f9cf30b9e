"""Runs of the implicit method, and their waveforms at any time: steps of their own, never interpolation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.circuit.elements import CAPACITOR, CURRENT, VOLTAGE
from circuitsim.errors import CircuitError, ConvergenceError, Problem, UsageError
from circuitsim.time_domain.beginning import from_held, holding, operating_point_of
from circuitsim.time_domain.implicit import FLOOR, Implicit
from circuitsim.time_domain.implicit_again import StepsAgain
from circuitsim.time_domain.implicit_ledger import ImplicitCertificate
from circuitsim.time_domain.implicit_step import Point
from circuitsim.time_domain.result import Beginning, Segments, TransientResult
from circuitsim.time_domain.waveforms import value

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
            circuit.names[k]: value(run.waves[k], 0.0) if k in run.waves else float(own[k])
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


__all__ = ["ImplicitResult", "implicit_run"]
