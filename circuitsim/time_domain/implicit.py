"""The implicit method: transient analysis whose stages are operating points, for any convex device and any size.

The error of the waveforms is propagated along the run. A perturbed run takes the same steps, but its stages also
integrate the residual of the run's dense output. To first order it differs from the run as the exact waveforms do
(Zadunaisky 1976; defect correction, Skeel 1986).

Energies, and the largest residuals at the ends of the steps, are kept in a ledger.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.analysis.switching import Switch, switching_of
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CURRENT, INDUCTOR, RESISTOR, VOLTAGE
from circuitsim.circuit.waveforms import Waveform, check_cycles
from circuitsim.errors import CircuitError, ConvergenceError, InfeasibleError, NoOperatingPointError, UsageError
from circuitsim.time_domain.beginning import check_amplifiers, waves_of
from circuitsim.time_domain.companion import BranchEnds, Companion, Solved
from circuitsim.time_domain.implicit_events import NOISE, Conduction, Watch, controlling, located, with_capacitances
from circuitsim.time_domain.implicit_step import (
    ORDER,
    SHARES,
    STAGES,
    WEIGHTS,
    Moving,
    Point,
    Step,
    first_steps,
    runge_kutta_step,
    with_inside,
)
from circuitsim.time_domain.proof import violations
from circuitsim.time_domain.result import Energies, Event, changed


class ImplicitCertificate(NamedTuple):
    """Largest relative residuals at the ends of all steps, and the energy balance of the run.

    Attributes
    ----------
    kcl, kvl, sources, diodes, complementarity, devices : float
        Of the operating points at these times (`circuitsim.certificate`); ``diodes`` is the larger of forward voltage
        and reverse current, ``devices`` the distance of smooth devices from their curves.
    energy : float
        Imbalance of energies over the energy turned over: an error of the method.
    tolerance, energy_tolerance : float
        Tolerances of the equations and of the energy balance.
    """

    kcl: float
    kvl: float
    sources: float
    diodes: float
    complementarity: float
    devices: float
    energy: float
    tolerance: float
    energy_tolerance: float

    @property
    def certified(self) -> bool:
        """Whether all are within their tolerances."""
        return all(size <= self.tolerance for size in self[:6]) and self.energy <= self.energy_tolerance

    @property
    def violations(self) -> str:
        """What is violated, in words."""
        return violations(zip(self._fields, self[:7], [*[self.tolerance] * 6, self.energy_tolerance]))


LAWS = (("kcl",), ("kvl",), ("source",), ("diode_drop", "diode_reverse"), ("complementarity",), ("devices",))
"""Names of these columns in certificates of operating points, in the order of `ImplicitCertificate`."""


class Ledger:
    """Sums over the steps of a run.

    Parameters
    ----------
    companion : Companion
    watch : Watch
    """

    def __init__(self, companion: Companion, watch: Watch) -> None:
        kind, _, _, value = companion.own.arrays()[:4]
        sources = np.isin(kind, (VOLTAGE, CURRENT))
        self.companion, self.watch, self._time = companion, watch, 0.0
        self._least = float(value[(kind == RESISTOR) & (value > 0.0)].min(initial=math.inf))
        self._shares = np.array([np.where(sources, -1.0, 0.0), ~sources & ~companion.elements]).T.copy()
        self.delivered = self.dissipated = self.turned = self.lost = 0.0
        self._worst = np.zeros(len(LAWS))

    def begin(self, x: np.ndarray) -> None:
        """The states (q,) at the beginning."""
        self._first = self._last = self.companion.energy(x)

    def jump(self, step: Step) -> None:
        """The energies of a step of backward Euler."""
        self.lost += self.companion.energy(step.change)
        self.take(step, step.wave, np.ones(1))

    def take(self, step: Step, waves: np.ndarray, weights: np.ndarray = WEIGHTS) -> None:
        """The energies of a step with these voltages and currents (stages, 2, m), V, A."""
        power = step.length * (waves[:, 0] * waves[:, 1])
        delivered, dissipated = (weights @ power @ self._shares).tolist()
        self.delivered, self.dissipated = self.delivered + delivered, self.dissipated + dissipated
        self.turned += float(weights @ np.abs(power).sum(axis=1))
        self._last, self._time = self.companion.energy(step.end.x), step.end.time

    def hold(self, point: Point) -> None:
        """Record the residuals at the end of a step."""
        found = point.solved.certificate.relative
        own = [max(found.get(name, 0.0) for name in law) for law in LAWS]
        self._worst = np.maximum(self._worst, own)

    def turned_over(self) -> float:
        """The energy turned over so far, J; at least that of rounded voltages and currents in the least resistance, for
        circuits where all currents, or all voltages, vanish."""
        volts, amperes, ohms = NOISE * self.watch.volts, NOISE * self.watch.amperes, self._least
        rounded = self._time * (volts * volts / ohms + amperes * amperes * ohms) if ohms < math.inf else 0.0
        return max(self.turned + max(self._first, self._last), rounded)

    def energies(self) -> Energies:
        """Of the whole run."""
        return Energies(self.delivered, self.dissipated, self._last - self._first, self.lost, self.turned_over())

    def certificate(self, tolerance: float, energy: float) -> ImplicitCertificate:
        """Of the whole run, laws held to ``tolerance``, the balance to ``energy``."""
        kcl, kvl, sources, diodes, complementarity, devices = self._worst.tolist()
        imbalance = float(self.energies().imbalance)
        return ImplicitCertificate(kcl, kvl, sources, diodes, complementarity, devices, imbalance, tolerance, energy)


class CarriedError:
    """The perturbed run, and its largest distance from the run.

    Parameters
    ----------
    companion : Companion

    Attributes
    ----------
    off : (2, m) float array
        Largest error of the voltage, V, and current, A, of each element so far.
    known : bool
        Whether the perturbed run has a solution at all times so far.
    """

    def __init__(self, companion: Companion) -> None:
        self.companion, self.known = companion, True
        self.off = np.zeros((2, len(companion.own)))

    def begin(self, x: np.ndarray) -> None:
        """Start at the states (q,) of the run."""
        self._x = self._slope = x

    def jump(self, moving: Moving, time: float, instant: float, near: OperatingPoint) -> None:
        """Take the two short steps after a discontinuity, of the same length, s."""
        try:
            end = first_steps(self.companion, moving, time, self._x, instant, near)[1].end
            self._x, self._slope = end.x, end.slope
        except CircuitError:
            self.known = False

    def shift(self, change: np.ndarray) -> None:
        """Shift the states (q,) for an event at another time."""
        self._x = self._x + change

    def step(self, step: Step) -> Solved | None:
        """Take the same step as the run; returns its stages, None if it has no solution."""
        if not self.known:
            return None
        try:
            own = step.perturbed(self.companion, self._x, self._slope)
        except CircuitError:
            self.known = False
            return None
        off = np.abs(own.wave()[-1] - step.waves[-1])
        self.off = np.maximum(self.off, off + step.between)
        self._x, self._slope = own.x[-1], own.slope[-1]
        return own


INSTANT, LONGEST = 1e-12, 1e-6
"""Length of each of the first steps after a discontinuity: fraction of the run, and largest fraction of the time to the
next corner. Shorter steps span more resistances than pairs of doubles hold, longer ones too much of the waveform."""
ULPS, UNRESOLVED = 4.0, 256.0
"""Minimum length of a step in ulps of its time, below which the length is rounding; and length below which rounding of
the stages' times exceeds a thousandth of it, so that the error estimate requests no shorter step."""
SAFETY, LEAST, MOST, KEEP = 0.85, 0.25, 8.0, 1.4
"""Bounds on the change of the step length; below `KEEP` the length, and with it the factors, is kept."""
SAME_TIME, SAME_LENGTH = 1e-14, 1e-9
"""Relative difference in time, and in length, up to which two step lengths differ by rounding only."""
AT_ONCE, CLOSE = 60, 1e-7
"""Number of consecutive events, each within this fraction of the run after the previous one, that end it: steps are
longer on average, since there are at most `MOST_STEPS`."""
FLOOR = 1e-3
"""Minimum scale of a state's error, relative to the largest voltage or current of all branches."""
SHARP = 0.1
"""Tolerance of an event's time, in steps, relative to the accuracy of a step."""
ROUNDING = 1e-14
"""Relative difference of times that is rounding, since corners are sums of a few numbers."""
BEGIN = 1e-3
"""Length of the first trial step, relative to the run."""
SAMPLES = 64
"""Number of times in the run, and of corners of each source, at which sources are sampled in advance."""
GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)
"""Spacing of these samples modulo the run, relative to it: incommensurate with any period."""
MOST_STEPS, STEPS_A_CYCLE, LATEST = 2_000_000, 4, 4_000
"""Maximum number of steps of a run (a kilobyte each); minimum per period of a source; steps between two progress
estimates."""
BATCH = 4096
"""Number of corners requested from a source at a time."""
APART = 1e-6
"""Resolution of times relative to the run: voltages may change within it as at an event."""
ROUNDED = 16 * float(np.finfo(float).eps)
"""Error of a step, relative to the states, that is rounding."""
LEFT = 0.1
"""Smallest fraction of the accuracy that the carried error leaves to further steps, while it leaves any."""
BETWEEN = 10.0
"""Largest residual of the dense output, relative to the accuracy of a step in the first run."""


class StepStart(NamedTuple):
    """The start of a step.

    Attributes
    ----------
    time : float
        s.
    x, slope : (q,) float arrays
        States and their derivatives.
    conduction : Conduction
    fresh : bool
        Whether a discontinuity starts it.
    aim : float
        Target time of the step that ends here, s.
    late : float
        Bound on the delay after the event it starts with, s; 0 without an event.
    jumps : tuple of ((q,) float array, (s,) bool array)
        States and switches before each pair of first steps after a discontinuity.
    instant : float
        Length of each of these two steps, s.
    """

    time: float
    x: np.ndarray
    slope: np.ndarray
    conduction: Conduction
    fresh: bool
    aim: float
    late: float = 0.0
    jumps: tuple[tuple[np.ndarray, np.ndarray], ...] = ()
    instant: float = 0.0


class Implicit:
    """A circuit with its waveforms, ready for a run.

    Parameters
    ----------
    circuit, waveforms, switches, couplings, tolerance, accuracy
        See `circuitsim.time_domain.transient`.
    parasitic : float
        Capacitance at each node that controls a source or switch, F; see `circuitsim.time_domain.implicit_events`.
    longest : float
        Maximum length of a step, s.

    Attributes
    ----------
    between : float
        Largest residual of the dense output.
    missed : float
        Largest carried error of a state, relative to this.
    shown, circuit : Circuit
        As given, and with these capacitances added.
    controlling : list of int
        Nodes that control sources or switches.
    companion : Companion
    switching : Switching
    reach : (2, m) float array
        Largest voltage, V, and current, A, of each element at the starts and ends of steps so far.
    step_starts : list of StepStart
    events : list of Event
    ledger : Ledger
    reached : Point or None
        The end of the last step.
    waves : list of (stages + 1, 2, m) float arrays
        Voltages, V, and currents, A, at the starts and in the stages of the steps.
    error : CarriedError
    """

    def __init__(
        self,
        circuit: Circuit,
        waveforms: Mapping[str, Waveform],
        switches: Mapping[str, Switch],
        couplings: Mapping[tuple[str, str], float],
        tolerance: float,
        accuracy: float,
        parasitic: float = 0.0,
        longest: float = math.inf,
    ) -> None:
        if not 0.0 < accuracy <= 0.1:
            raise UsageError(f"the accuracy must lie between 0 and 0.1, not {accuracy!r}")
        check_amplifiers(circuit)
        self.shown, self.parasitic, self.controlling = circuit, parasitic, controlling(circuit, switches.values())
        if parasitic:
            nodes = [str(circuit.node_names[node]) for node in self.controlling]
            circuit = with_capacitances(circuit, dict.fromkeys(nodes, parasitic))
        kind = circuit.arrays().kind
        self.circuit, self.accuracy, self.between, self._longest = circuit, accuracy, BETWEEN * accuracy, longest
        self.companion = Companion(circuit, couplings, tolerance)
        self.switching = switching_of(circuit, switches)
        self._ohms = self.switching.ohms(np.eye(2, 1, dtype=bool))
        self.sources = waves_of(circuit, waveforms)
        self._moved = np.concatenate([np.array([*self.sources], dtype=np.int64), self.switching.places])
        degree = np.bincount(np.concatenate(circuit.arrays()[1:3]), minlength=1)
        degree[[0, *controlling(circuit, [])]] = 2
        # A source without current only drives switches.
        self._unloaded = {k for k in self.sources if min(degree[own[k]] for own in circuit.arrays()[1:3]) == 1}
        self.watch = Watch(self.companion, self.switching)
        self.ledger = Ledger(self.companion, self.watch)
        self.step_starts: list[StepStart] = []
        self.events: list[Event] = []
        self.reached: Point | None = None
        self.waves = list[np.ndarray]()
        self.error = CarriedError(self.companion)
        # Checked in the dense output: states, and (at resolved times) all voltages and what drives them.
        states = np.isin(np.arange(len(circuit)), self.companion.storing)
        inductors = states & (kind == INDUCTOR)
        self._held = np.array([[states & ~inductors, inductors], [~inductors, states]], dtype=float)
        self.reach = np.zeros((2, len(circuit)))
        self._size, self._length = np.zeros(self.companion.size.size), 0.0
        self._refused, self.missed, self._left = 0.0, 0.0, 1.0

    # ------------------------------------------------------------------ sources
    def moving(self, closed: np.ndarray) -> Moving:
        """Values of sources as functions of time, and of switches in these states."""
        ohms = np.where(closed, *self._ohms)

        def values(times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            rows = np.empty((times.size, self._moved.size))
            for k, wave in enumerate(self.sources.values()):
                rows[:, k] = wave.at(times)
            rows[:, len(self.sources) :] = ohms
            return self._moved, rows

        return values

    def _largest_sources(self, end: float) -> tuple[float, float]:
        """Largest source voltage, V, and current, A, at the samples; without current sources the current that this
        voltage drives through the largest resistance."""
        kind, level = self.circuit.arrays().kind, np.abs(self.circuit.arrays().value)
        for k, wave in self.sources.items():
            spread = end * np.modf(GOLDEN * np.arange(SAMPLES + 1))[0]
            times = np.concatenate([spread, wave.corners(0.0, end, SAMPLES), [end]])
            level[k] = np.abs(wave.at(times)).max()
        volts, amperes, ohms = (float(level[kind == own].max(initial=0.0)) for own in (VOLTAGE, CURRENT, RESISTOR))
        return volts, amperes or (volts / ohms if ohms else 0.0)

    def _corners(self, after: float, end: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Corners of all sources up to ``end``, the last of these: first and last of each group that differs by
        rounding only, and whether anything but a controlled switch changes there."""
        found = {k: wave.corners(after, end, BATCH) for k, wave in self.sources.items()}
        until = min([end, *(float(times[-1]) for times in found.values() if times.size >= BATCH)])
        marks = np.unique(np.concatenate([*found.values(), [until]]))
        marks = marks[(marks <= until) & ((marks == end) | (marks < end * (1.0 - ROUNDING)))]
        apart = np.diff(marks) > ROUNDING * marks[1:]
        first, last = np.flatnonzero(np.append(True, apart)), np.flatnonzero(np.append(apart, True))
        changes = last > first
        for k in np.flatnonzero(changes).tolist():
            self._hold_short(marks[first[k] : last[k] + 1])
        for k, times in found.items():
            if k in self._unloaded:
                wave, before = self.sources[k], np.nextafter(times, 0.0)
                levels = wave.at(times)
                times = times[np.abs(levels - wave.at(before)) > NOISE * np.abs(levels).max(initial=0.0)]
            changes |= np.isin(marks[first], times) | np.isin(marks[last], times)
        return marks[first], marks[last], changes

    def _hold_short(self, marks: np.ndarray) -> None:
        """Refuse a pulse between corners (n,) that differ by rounding only; a step is one corner.

        Raises
        ------
        UsageError
        """
        times = np.append(math.nextafter(marks[0], 0.0), marks)
        for k, wave in self.sources.items():
            levels = wave.at(times)
            ends = sorted((levels[0], levels[-1]))
            if max(ends[0] - levels.min(), levels.max() - ends[1]) > NOISE * np.abs(levels).max():
                raise UsageError(
                    f"{self.circuit.names[k]} has a pulse of {marks[-1] - marks[0]:.2g} s at {marks[0]:.9g} s, where "
                    "double precision does not resolve such times; make it longer, or begin the run just before it"
                )

    # ------------------------------------------------------------------ the run
    def run(
        self, x: np.ndarray, closed: np.ndarray, end: float, progress: Callable[[float, float], bool | None] | None
    ) -> float:
        """Run from 0 to ``end``.

        Parameters
        ----------
        x : (q,) float array
            States at 0.
        closed : (switches,) bool array
            States of the switches at 0.
        end : float
            s.
        progress : callable, optional
            See `circuitsim.time_domain.transient`.

        Returns
        -------
        float
            The time reached, s.
        """
        self._end = end
        for k, wave in self.sources.items():
            check_cycles(self.circuit.names[k], wave, end, MOST_STEPS // STEPS_A_CYCLE)
        now = Conduction(np.zeros(self.companion.diodes.size, dtype=bool), closed)
        (marks, passed, changes), m, want, at = self._corners(0.0, end), 0, BEGIN * end, None
        time, error, busy, aim = 0.0, 0.0, 0, 0.0
        last: tuple[Step, Solved] | None = None
        self.ledger.begin(x)
        self.error.begin(x)
        # States that decay at once leave rounding of their size; sources that start at zero need a scale before that.
        self.watch.see(x[self.companion.of_capacitors], x[self.companion.of_inductors])
        self.watch.see(*self._largest_sources(end))
        while time < end:
            if m == marks.size:
                (marks, passed, changes), m = self._corners(float(passed[-1]), end), 0
            if len(self.step_starts) > MOST_STEPS or self._too_slow(time, end):
                raise ConvergenceError(
                    f"{time:.6g} s took {len(self.step_starts):,} steps, and all of the run would take more than the "
                    f"{MOST_STEPS:,} that memory is meant to hold: end it earlier, accept less accuracy, or look for "
                    "sources and parts that are much faster than the run"
                )
            target, corner = float(marks[m]), bool(changes[m])
            if at is None:
                at, now = self._begin(time, x, now, self._instant(time, target), (aim, error), last)
                continue
            began, aim = at, target
            step, after, error, want = self._step(at, now, target, want)
            perturbed = self._keep(step)
            last = (step, perturbed) if perturbed else None
            at = step.end
            if at.time >= math.nextafter(target, 0.0):  # before the sources' jump, where they have one
                at = at._replace(time=float(passed[m]))
            x, time = at.x, at.time
            self.reached = at
            m += time >= marks[m] * (1.0 - ROUNDING)
            busy = busy + 1 if after is not None and time - began.time <= CLOSE * end else 0
            if busy > AT_ONCE:
                self._chatter(now, after, time)
            if (after is not None or (corner and time >= target)) and time < end:
                now, at = after or now, None
            else:
                self.step_starts.append(StepStart(time, x, at.slope, now, False, aim))
                error = 0.0
            if progress is not None and progress(time, end):
                break
        return time

    def _keep(self, step: Step) -> Solved | None:
        """Store a step's waveforms, energies and residuals; returns the stages of the perturbed run's step."""
        self.waves.append(step.waves)
        for end in (0, -1):
            self.reach = np.maximum(self.reach, np.abs(step.waves[end]))
        self.ledger.take(step, step.waves)
        self.ledger.hold(step.end)
        found = self.error.step(step)
        if found is not None:
            self.missed = max(self.missed, self._share(found.x[-1] - step.end.x, step) / self.between)
            self._left = max(1.0 - self.missed, LEFT) if self.missed < 1.0 else 1.0
        return found

    def _too_slow(self, time: float, end: float) -> bool:
        """Whether the latest steps are so short that a hundred times the permitted number would not reach the end."""
        many = len(self.step_starts)
        if many % LATEST or not many:
            return False
        return end - time > 100.0 * MOST_STEPS / LATEST * (time - self.step_starts[-LATEST].time)

    def _instant(self, time: float, corner: float) -> float:
        """Length of each of the first steps after a discontinuity, s, given the next corner."""
        return max(min(INSTANT * self._end, LONGEST * (corner - time)), ULPS * math.ulp(time))

    def _begin(
        self,
        time: float,
        x: np.ndarray,
        now: Conduction,
        instant: float,
        ended: tuple[float, float],
        last: tuple[Step, Solved] | None,
    ) -> tuple[Point, Conduction]:
        """Two short steps of backward Euler after a discontinuity: the first lets states jump, the second has their
        derivatives. ``ended``: target time of the previous step and its event's error, s; ``last``: this step, and the
        stages of the perturbed run in it."""
        before, lost = self.step_starts[-1].conduction if self.step_starts else None, 0.0
        near = None if self.reached is None or not self.companion.follows else self.reached.solved
        (aim, error), jumps = ended, list[tuple[np.ndarray, np.ndarray]]()
        for _ in range(AT_ONCE):
            jumps.append((x, now.switches))
            jump, step, instant = self._first(time, x, self.moving(now.switches), instant, near)
            self.watch.see_at(step.end)
            self.ledger.jump(jump)
            self.ledger.jump(step)
            self.error.jump(self.moving(now.switches), time, instant, step.end.solved)
            lost += self.companion.energy(jump.change)
            x, near = step.end.x, step.end.solved
            after = self.watch.after(now, self.watch.distances(now, step.solved.points)[0])
            same_switches = after is None or (after.switches == now.switches).all()
            now = after or now
            if same_switches:
                break
        else:
            self._chatter(now, after, time)
        names = () if before is None else self._names(before, now)
        if names or (before is not None and lost > NOISE * self.ledger.turned_over()):
            self.events.append(Event(time, error, names, lost))
        if before is not None and last is not None:
            self.error.shift(self._late(before, now, *last) * (last[0].end.slope - step.end.slope))
        self._scale(x)
        self.step_starts.append(StepStart(time, x, step.end.slope, now, True, aim, error, tuple(jumps), instant))
        return step.end, now

    def _late(self, before: Conduction, now: Conduction, step: Step, perturbed: Solved) -> float:
        """The delay of a change of switches in the perturbed run, s, after this step."""
        *_, earlier, end = step.stages
        points = end.solved, perturbed.points[-1], earlier.solved
        here, there, past = self.watch.distances(before, points)
        d = before.diodes.size
        for k in d + np.flatnonzero(before.switches != now.switches):
            rate = (past[k] - here[k]) / (end.time - earlier.time)
            if rate > 0.0:
                return float((there[k] - here[k]) / rate)
        return 0.0

    def _first(
        self, time: float, x: np.ndarray, moving: Moving, instant: float, near: OperatingPoint | None
    ) -> tuple[Step, Step, float]:
        """Both steps and their length, s: short enough for the accuracy, except where states jump at any length."""
        missed, found, longest = math.inf, None, 1e6 * instant
        while True:
            try:
                jump, step = first_steps(self.companion, moving, time, x, instant, near)
            except (ConvergenceError, NoOperatingPointError):  # sources that have just started may be below rounding
                if found is not None:
                    return found
                if instant >= longest:
                    raise
                instant *= 1e3
                continue
            found, off = (jump, step, instant), self._local(step.change - jump.change, step)
            if off <= 1.0 or off > 0.5 * missed or instant <= ULPS * math.ulp(time):
                return found
            missed, instant = off, max(1e-3 * instant, ULPS * math.ulp(time))

    def _step(
        self, at: Point, now: Conduction, target: float, want: float
    ) -> tuple[Step, Conduction | None, float, float]:
        """A step of the required accuracy towards ``target``; returns the new conduction, event error and next
        length."""
        moving = self.moving(now.switches)

        def attempt(length: float, end: float | None = None, inside: bool = False) -> Step:
            end = at.time + length if end is None else end
            return runge_kutta_step(self.companion, moving, at, length, end, inside, follow=bool(self.controlling))

        def judged(step: Step) -> tuple[float, Conduction | None, float]:
            off = self._off(step)  # of a refused step, changes matter only where it cannot be shorter
            seen = off <= 1.0 or step.length <= UNRESOLVED * math.ulp(at.time)
            return off, *(self._changes(now, step) if seen else (None, 0.0))

        resolving, least = (wave.resolving(at.time) for wave in self.sources.values()), UNRESOLVED * math.ulp(at.time)
        left, want, tries = target - at.time, min(want, self._longest, max(min(resolving, default=math.inf), least)), 0
        while True:
            count = max(math.ceil(left / want - 1e-9), 1)
            length = self._like_last(left / count, target)
            if length < ULPS * math.ulp(at.time):
                raise ConvergenceError(
                    f"after {at.time:.9g} s the waveforms need steps of {length:.1e} s, shorter than double precision "
                    "resolves there; look for a resistance, capacitance or inductance much smaller than the "
                    "others, or accept less accuracy"
                )
            end = math.nextafter(target, 0.0) if count == 1 else None
            try:
                step, late = attempt(length, end, inside=self.companion.at_once is not None), 0.0
                off, after, beyond = judged(step)
                if after is not None and off <= 1.0:
                    length, late, step = self._located(attempt, at, now, step, target)
                    off, after, beyond = judged(step)
            except BranchEnds:
                if length <= NOISE * self._end and not self.parasitic:
                    raise ConvergenceError(
                        f"after {at.time:.9g} s the circuit has no operating point near the one before"
                    ) from None
                want, self._refused = LEAST * length, at.time + length
                continue
            except (InfeasibleError, NoOperatingPointError, ConvergenceError):  # a shorter step may be solved
                if length <= NOISE * self._end:
                    raise
                want = LEAST * length
                continue
            if off <= 1.0 and not step.inside:
                step = with_inside(self.companion, step)
                off, after, beyond = judged(step)
            # A stage beyond an event by more than the accuracy: an event and its reverse, two events, or too long a
            # step over a transient. An event at the start, within its error, leaves one in any step. Below `UNRESOLVED`
            # the error is that of the rounded stage times, which shorter steps do not reduce.
            good = off <= 1.0 or (after is None and length <= UNRESOLVED * math.ulp(at.time))
            inside = good and late < length and beyond
            if good and not inside:
                break
            if off > 1.0:
                self._refused = at.time + length
            tries += 1
            want = length * (inside or min(max(LEAST, SAFETY * off ** (-1.0 / ORDER)), 1.0 if tries == 1 else 0.5))
        self._scale(step.end.x)
        self._length = step.length
        self.watch.see_at(step.end)
        grown = SAFETY * max(off, 1e-9) ** (-1.0 / ORDER)
        if grown >= KEEP:
            want = max(want, length * min(grown, MOST))
        elif after is None:
            want = max(length * min(grown, 1.0), UNRESOLVED * math.ulp(step.end.time))
        if step.end.time < self._refused:  # a breakpoint of a curve; the error does not locate it
            want = min(want, max(0.5 * (self._refused - step.end.time), length))
        return step, after, late, want

    def _changes(self, now: Conduction, step: Step) -> tuple[Conduction | None, float]:
        """The states after a step, None if unchanged; the time, in steps, of the first inner stage that is beyond an
        event by more than the accuracy, 0 without one."""
        far = self.watch.distances(now, step.solved.points)
        early = SHARES[: len(far)][(far < -self.accuracy).any(axis=1)].min(initial=1.0) % 1.0
        return self.watch.after(now, far[STAGES - 1]), float(early)

    def _like_last(self, length: float, time: float) -> float:
        """The previous step's length where rounding of times alone separates this one from it, s, since factors depend
        on every bit of the length."""
        return self._length if abs(length - self._length) <= min(SAME_TIME * time, SAME_LENGTH * length) else length

    def _located(
        self, attempt: Callable[[float], Step], at: Point, now: Conduction, step: Step, target: float
    ) -> tuple[float, float, Step]:
        """The shortest step past the first of the changes found at the end of a longer one; see `located`."""
        which = self.watch.distances(now, [step.end.solved])[0] < 0.0

        def distance(point: Point) -> float:
            return float(self.watch.distances(now, [point.solved])[0, which].min())

        resolution = max(SHARP * self.accuracy * step.length, 4e-16 * target)
        bend = NOISE if which[: now.diodes.size].any() else math.inf
        return located(attempt, distance, bend, at, step, resolution, SHARP * FLOOR * self.accuracy)

    # ------------------------------------------------------------------ sizes
    def _scale(self, x: np.ndarray) -> None:
        self._size = np.maximum(self._size, np.abs(x))

    def _off(self, step: Step) -> float:
        """The estimate of the local error over the accuracy, or the residual of the dense output over its own bound.
        What the residual adds to the states is an error, too, and the only one that sees a corner between stages."""
        error, between = np.abs(step.error), 0.0
        if step.inside and self.between * step.length > ULPS * math.ulp(step.begin.time):
            error = np.maximum(error, np.abs(step.residual[-1]))
            reach = np.maximum(self.reach, np.abs(step.waves[-1]))
            least = FLOOR * np.array([[self.watch.volts], [self.watch.amperes]])
            held = self._held[int(step.length > APART * self._end)]
            between = float((held * step.between / np.maximum(reach, least)).max()) / self.between
        return max(self._local(error, step), between)

    def _local(self, error: np.ndarray, step: Step) -> float:
        """The largest of these local errors of the states (q,) over the accuracy."""
        return self._share(error, step) / max(self.accuracy * self._left, ROUNDED)

    def _share(self, error: np.ndarray, step: Step) -> float:
        """The largest of these errors of the states (q,), relative to their largest values."""
        size = np.maximum(np.maximum(self._size, np.abs(step.solved.x[:STAGES][-1])), FLOOR * self.companion.size)
        return float((np.abs(error) / size).max(initial=0.0))

    # ------------------------------------------------------------------ words
    def _names(self, before: Conduction, now: Conduction) -> tuple[str, ...]:
        """The diodes and switches that change."""
        names = (*self.companion.diode_names, *self.switching.names)
        return changed(np.concatenate(before), np.concatenate(now), names)

    def _chatter(self, now: Conduction, after: Conduction | None, time: float) -> None:
        named = self._names(now, after or now)
        raise ConvergenceError(
            f"after {time:g} s {', '.join(name[1:] for name in named)} would open and close endlessly: add a hysteresis"
        )
